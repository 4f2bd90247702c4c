// Writes reports for the test of the page, made up but of the real shape: page_report DIRECTORY
// large.html has 4 layers of 8 heads and 16 examples of 64 tokens, causal; small.html one head, tokens that
// HTML and scripts could trip over, and no section that needs a run; own.html an input of the user's own.
// edges.html and patching.html begin with effects of either kind of patching; characters.txt has every character as
// the program escapes it.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "thimble/inspect/edges.h"
#include "thimble/inspect/html.h"
#include "thimble/inspect/inspect.h"
#include "train/files/text/text.h"

namespace {

using namespace thimble;

struct Size {
  int layers, heads, length, vocabulary;
  bool causal;
};

// A number in [0, 1) that depends on `n` alone.
double noise(double n) { return n = std::sin(n * 12.9898 + 4.1) * 43758.5453, n - std::floor(n); }

// Weights (queries, keys) of a head: each has one favorite key, more or less sharply.
std::vector<double> attention(const Size& s, int head, int example) {
  std::vector<double> rows;
  const double sharp = 0.5 + 8 * noise(head);
  for (int i = 0; i < s.length; ++i) {
    const int kinds[] = {i - 1, s.length - 1 - i, i, (i * 7 + example) % s.length, 0};
    const int favorite = kinds[head % 5];
    std::vector<double> row(static_cast<std::size_t>(s.length));
    double sum = 0;
    for (int j = 0; j < s.length; ++j) {
      if (s.causal && j > i) continue;
      const double content = 0.5 * noise(head * 91.0 + example * 17.0 + i * 1.3 + j * 2.7);
      sum += row[static_cast<std::size_t>(j)] =
          std::exp(sharp * ((j == favorite) + content) - 0.02 * std::abs(favorite - j));
    }
    for (const double w : row) rows.push_back(w / sum);
  }
  return rows;
}

HeadScore score(std::string_view name, double value, double chance) {
  return {.name = name,
          .value = value,
          .chance = chance,
          .attainable = 1,
          .at_init = chance * 1.1,
          .eligible = 16000};
}

Effect effect(double size) {
  return {.loss_change = 2.5 * size,
          .interval = {2.2 * size, 2.8 * size},
          .accuracy = {-size, {-1.1 * size, -0.9 * size}},
          .capped_loss = {2.4 * size, {2.1 * size, 2.7 * size}},
          .sequences = 1000,
          .labels = 16000};
}

DoubleMatrix matrix(int size, int seed) {
  DoubleMatrix all(size, size);
  for (int r = 0; r < size; ++r)
    for (int c = 0; c < size; ++c)
      all(r, c) = (r == c ? 3.5 : 0) + 2 * noise(seed * 31.0 + r * 5.1 + c * 0.7) - 1;
  return all;
}

HeadReport head(const Size& s, int index) {
  const Verdict verdicts[] = {Verdict::important, Verdict::redundant,  Verdict::unused,
                              Verdict::backup,    Verdict::not_enough, Verdict::minor};
  const Verdict verdict = s.layers == 1 ? Verdict::important : verdicts[index % 6];
  const double strength = noise(index + 0.5),
               size = (verdict == Verdict::important ? 0.63 : 0.001) * strength;
  HeadReport head;
  head.label = {
      .name = "previous token",
      .verdict = verdict,
      .sentence = fmt::format("previous token: {:.0f} % of its attention (chance 6 %); ablating it costs",
                              100 * strength)};
  for (const std::string_view name : {"entropy", "self", "first", "positional_share", "previous_token",
                                      "mirror", "same_token", "duplicate_token", "induction"})
    head.scores.push_back(score(name, noise(index * 3.0 + static_cast<double>(name.size())), 1.0 / s.length));
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  head.scores.push_back({.name = "distance",
                         .value = 12.5,
                         .chance = 21.3,
                         .attainable = 63,
                         .at_init = 21,
                         .eligible = 16000});
  head.scores.push_back(score("offset", 0.2 * strength, 0.0625));
  head.scores.back().at = -3;
  head.scores.push_back({.name = "task_target", .value = kNaN, .chance = kNaN, .attainable = kNaN});
  head.effects = {.id = {index / s.heads, index % s.heads},
                  .zero = effect(size),
                  .mean = effect(0.8 * size),
                  .resample = effect(0.9 * size),
                  .importance = {.raw = 0.0123 * strength, .normalized = strength}};
  HeadCircuits& circuits = head.circuits;
  circuits.ov_copying = 0.83 - strength;
  circuits.qk_reciprocity = strength;
  for (int k = 0; k < 8; ++k) circuits.ov_singular_values.push_back(4.0 * std::exp(-0.5 * k * strength));
  circuits.qk_singular_values = circuits.ov_singular_values;
  if (s.vocabulary <= 32) {
    circuits.qk_tokens = matrix(s.vocabulary, index);
    circuits.ov_tokens = matrix(s.vocabulary, index + 50);
  }
  head.mean_weights.from_start = attention(s, index, 0);
  return head;
}

ForwardTrace example(const Size& s, int index) {
  ForwardTrace trace;
  for (int i = 0; i < s.length; ++i) {
    const int token = (i * 5 + index * 3 + i / 7) % s.vocabulary;
    trace.tokens.push_back(token);
    trace.targets.push_back(i % 4 == 3 ? kIgnore : token);
    trace.predictions.push_back(index % 3 == 1 && i % 10 == 4 ? (i + index) % s.vocabulary : token);
  }
  for (int h = 0; h < s.layers * s.heads; ++h) {
    const std::vector<double> weights = attention(s, h, index);
    trace.attention.insert(trace.attention.end(), weights.begin(), weights.end());
  }
  return trace;
}

// Makes the means those of 45 sequences of 3 tokens or more, of which 35 have 4 or more, and 5 have 9.
void make_ragged(InspectReport& report, const Size& s) {
  std::vector<std::int64_t>& counts = report.mean_counts[0];
  for (int i = 0; i < s.length; ++i)
    for (int j = 0; j < s.length; ++j) {
      const int last = std::max(i, j);
      counts[static_cast<std::size_t>(i * s.length + j)] = last < 3 ? 45 : last < 4 ? 35 : last < 9 ? 5 : 0;
    }
  PositionMeans means = report.heads[0].mean_weights;
  means.from_end = means.from_start;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] > 0) continue;
    means.from_start[i] = means.from_end[counts.size() - 1 - i] = std::numeric_limits<double>::quiet_NaN();
  }
  report.heads[0].mean_weights = report.rollout = means;
}

InspectReport base(const Size& s, const std::vector<std::string>& names, int examples) {
  InspectReport report;
  report.config.task.name = "reverse";
  ModelConfig& model = report.config.model;
  model.layers = s.layers;
  model.heads = s.heads;
  model.d_model = 32;
  model.norm = s.causal ? NormOrder::pre : NormOrder::post;
  model.attention.mask = s.causal ? Mask::causal : Mask::none;
  report.tokens = names;
  report.scale.smallest_accuracy = 0.0098;
  report.scale.smallest_loss = 0.022;
  report.weights_hash = "9f2c61d0a4b7e835";
  report.length = s.length;
  report.baseline = {.loss = 0.0020751,
                     .accuracy = 0.99975,
                     .sequence_accuracy = 0.9963,
                     .sequences = 1000,
                     .labels = 48000};
  for (int k = 0; k < s.layers * s.heads; ++k) report.heads.push_back(head(s, k));
  report.rollout.from_start = attention(s, 0, 0);
  report.mean_counts.assign(static_cast<std::size_t>(s.layers),
                            std::vector<std::int64_t>(static_cast<std::size_t>(s.length * s.length), 1000));
  for (int k = 0; k < examples; ++k) report.examples.push_back(example(s, k));
  return report;
}

void add_run(InspectReport& report, const Size& s) {
  for (int k = 0; k <= s.layers * s.heads; ++k) {
    RemovalStep step{.removed = k,
                     .loss = 0.002 + 3.2 / (1 + std::exp(0.6 * (24 - k))),
                     .accuracy = 1 - 0.9 / (1 + std::exp(0.6 * (25 - k)))};
    if (k > 0) step.id = {(k * 13 % 32) / s.heads, (k * 13 % 32) % s.heads};
    report.cumulative_ablation.push_back(step);
  }
  JointReport& joint = report.joint;
  joint.sequences = 400;
  joint.tested = 500;
  joint.removable_by_importance = 9;
  joint.removable_greedily = 21;
  joint.removable_alone = 25;
  joint.group_sequences = 100;
  std::vector<HeadId> heads;
  for (const HeadReport& head : report.heads) heads.push_back(head.effects.id);
  for (std::size_t b = 1; b < heads.size(); ++b)
    for (std::size_t a = 0; a < b; ++a) {
      const bool costly = (a + 2 * b) % 40 == 7;
      const double size = costly ? 0.2 + 0.01 * static_cast<double>(b)
                                 : 0.004 * (noise(static_cast<double>(a + 50 * b)) - 0.5);
      joint.pairs.push_back(
          {{heads[a], heads[b]}, 2.5 * size, -size, 2.4 * size, {size, size / 2}, {2.4 * size, 1.2 * size}});
      if (costly)
        joint.groups.push_back({{heads[a], heads[b]}, effect(size), {{heads[a], effect(size / 2)}}});
    }
  if (heads.size() > 8)
    joint.groups.push_back({{heads[0], heads[3], heads[8]},
                            effect(0.31),
                            {{heads[0], effect(0.2)}, {heads[3], effect(0.1)}, {heads[8], effect(0.15)}}});
  for (RemovalStep step : report.cumulative_ablation) {
    step.accuracy = 1 - 0.9 / (1 + std::exp(0.6 * (29 - static_cast<double>(step.removed))));
    step.loss *= 0.8;
    joint.greedy.push_back(step);
  }
  report.attribution.parts = {{"embedding", -0.8}, {"head 0.1", 5.2}, {"layer 0 feed-forward", 1.4}};
  report.attribution.worst_error = 3.1e-7;
  report.attribution.warning = "2 of 40 logits are not the sum of their parts";
  Timeline& timeline = report.timeline;
  for (int k = 0; k < 18; ++k) {
    HeadSnapshot& step = timeline.steps.emplace_back();
    step.step = static_cast<std::int64_t>(std::pow(1.6, k));
    step.loss = 0.2 + 2.6 / (1 + std::exp(0.8 * (k - 12)));
    step.chance = {{"induction", 0}};
    step.attainable = {{"induction", 1}};
    for (int h = 0; h < s.layers * s.heads; ++h)
      step.heads.push_back(
          {{h / s.heads, h % s.heads},
           {{"induction", noise(h) / (1 + std::exp(0.9 * (12 - k)))}, {"mirror", 0.1 * noise(h + k)}}});
  }
  timeline.chance = 0.1;
  timeline.lowest_loss = 0;
  for (int k = 0; k <= 30; ++k)
    for (const char* split : {"train", "validation"})
      timeline.curves.push_back({.step = 100 * k,
                                 .split = split,
                                 .loss = 2.8 * std::exp(-k / 6.0) + (*split == 'v' ? 0.15 : 0.05),
                                 .accuracy = 1 - 0.9 * std::exp(-k / 5.0)});
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file.exceptions(std::ios::failbit | std::ios::badbit);
  file << text;
  file.close();
}

// Effects of two edges, the second of less than 1 % of the first, which alone is the circuit.
EdgesReport edges(const ModelConfig& model) {
  EdgesReport edges{.inputs = {.pairs = 3}, .graph = EdgeGraph(model), .effects = {}, .circuit = {}};
  edges.effects.resize(edges.graph.edges.size());
  edges.effects[4].exact = {0.5, Interval{0.4, 0.6}};
  edges.effects[5].exact = {0.001, Interval{0, 0.002}};
  edges.circuit.edges = {4};
  return edges;
}

// Effects of one head of layer 1 at two positions.
PatchingReport patching() {
  const HeadPatch patch{{0.25, Interval{0.2, 0.3}, 2},
                        {{0.125, Interval{0, 1}, 2}, {-0.5, Interval{-1, 0}, 1}}};
  return {{2}, 4, {}, {}, {}, {}, {{{1, 0}, "", patch, patch}}};
}

// Every character in two lines: before marks of emoji, and after a character that such a mark may follow.
std::string all_characters() {
  std::string out;
  for (char32_t point = 0; point <= 0x10FFFF; ++point) {
    if (point >= 0xD800 && point <= 0xDFFF) continue;
    std::string c;
    if (point < 0x80)
      c = {static_cast<char>(point)};
    else {
      const int rest = point < 0x800 ? 1 : point < 0x10000 ? 2 : 3;
      c += static_cast<char>((0xFF00 >> (rest + 1) & 0xFF) | point >> 6 * rest);
      for (int k = rest - 1; k >= 0; --k) c += static_cast<char>(0x80 | (point >> 6 * k & 0x3F));
    }
    out += c + "\u200d\ufe0f\ufe0e\n\u00e9" + c + "\ufe0e\n";
  }
  return out;
}

}  // namespace

int main(int, char** argv) {
  const std::filesystem::path directory = argv[1];

  std::vector<std::string> letters;
  for (char c = 'a'; c <= 'x'; ++c) letters.push_back(std::string(1, c));
  const Size large{4, 8, 64, 24, true};
  InspectReport report = base(large, letters, 16);
  add_run(report, large);
  write(directory / "large.html", thimble::html_page(report));

  const std::vector<std::string> odd = {"</script>",   "<img src=x onerror=alert(1)>",
                                        "&amp;",       "\"'",
                                        " ",           "é",
                                        "👩‍💻", "\u2028\u202e\u200b",
                                        "שלום",        "a-very-long-token-that-does-not-fit",
                                        "<!--",        "0"};
  const Size small{1, 1, 12, 12, false};
  report = base({2, 2, 4, 24, true}, letters, 1);
  write(directory / "edges.html",
        thimble::html_page(report, nullptr, {{"edges", to_json(edges(report.config.model))}}));
  write(directory / "patching.html",
        thimble::html_page(report, nullptr, {{"patching", to_json(patching())}}));
  PatchingReport pair = patching();
  pair.clean = {"a", "b"};
  pair.corrupted = {"a", "<c>"};
  pair.clean_labels = {"d"};
  pair.corrupted_labels = {"e"};
  write(directory / "patching_pair.html", thimble::html_page(report, nullptr, {{"patching", to_json(pair)}}));

  report = base(small, odd, 3);
  report.examples[2].targets = {5};  // one answer for the sequence
  report.examples[2].predictions = {11};
  report.attribution.reason = "post-norm: the last norm comes after the last sum";
  write(directory / "small.html", thimble::html_page(report));

  // Every third answer of the first example can only be guessed, and 9 of 10 others are right.
  InspectReport guessed = report;
  guessed.config.task.name = "induction";
  guessed.run = "runs";
  guessed.baseline.per_sequence = {
      {.labeled = 48000, .correct = 30000, .knowable = 32000, .knowable_correct = 28800}};
  for (int i = 0; i < small.length; ++i) guessed.examples[0].guessed.push_back(i % 3 == 0);
  guessed.heads[0].label.summary = "looks at the token before";
  write(directory / "guessed.html", thimble::html_page(guessed));

  InspectReport ragged = report;
  ragged.tokens = letters;
  make_ragged(ragged, small);
  write(directory / "ragged.html", thimble::html_page(ragged));

  Size shorter = small;
  shorter.length = 5;
  report.tokens = letters;
  ForwardTrace own = example(shorter, 7);
  own.targets.clear();
  own.guessed = {1, 0, 0, 0, 1};
  own.guessed_reason = "there is no answer";
  write(directory / "own.html", thimble::html_page(report, &own));
  write(directory / "characters.txt", thimble::escape_controls(all_characters()));
}
