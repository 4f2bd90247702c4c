#include "program/compare/heads.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "program/compare/assignment.h"
#include "thimble/engine/error.h"
#include "thimble/train/run.h"
#include "thimble/train/statistics.h"
#include "train/step/cost.h"

namespace thimble {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr std::uint64_t kFirstUntrained = 0x756e'7472'6169'6e00;  // "untrain": a seed that no run has

std::size_t heads_of(const ModelConfig& model) {
  return attention_layers(model).size() * static_cast<std::size_t>(model.heads);
}

HeadId id_of(const ModelConfig& model, std::size_t index) {
  const auto number = static_cast<std::int64_t>(index);
  return {number / model.heads, number % model.heads};
}

const AttentionLayer& layer_of(const std::vector<AttentionLayer>& layers, HeadId id) {
  return layers[static_cast<std::size_t>(id.layer)];
}

// A head on a sequence.
struct HeadOn {
  const OutputConfig& output;
  const AttentionLayer& layer;
  bool is_last;  // whether the layer's block feeds the output
  const ForwardTrace& trace;
  std::span<const double> weights;  // (queries, keys)

  // Returns whether what the head adds at a query can reach the loss, as ScoreTargets has it.
  bool counts(std::int64_t query) const {
    if (!is_last || trace.targets.empty()) return true;
    if (output.per == OutputPer::sequence)
      return output.pooling == Pooling::mean ||
             query == (output.pooling == Pooling::first ? 0 : std::ssize(trace.tokens) - 1);
    return trace.targets[static_cast<std::size_t>(query)] != kIgnore;
  }
};

// Returns the summed overlap of two heads on a sequence, and the number of queries that count for both.
std::pair<double, double> overlap(const HeadOn& a, const HeadOn& b) {
  const std::int64_t keys = a.trace.keys(a.layer);
  double sum = 0, count = 0;
  for (std::int64_t q = 0; q < a.trace.queries(a.layer); ++q) {
    const std::int64_t visible = a.layer.causal || b.layer.causal ? q + 1 : keys;
    if (visible < 2 || !a.counts(q) || !b.counts(q)) continue;
    const double *row_a = a.weights.data() + q * keys, *row_b = b.weights.data() + q * keys;
    for (std::int64_t k = 0; k < keys; ++k) sum += std::min(row_a[k], row_b[k]);
    ++count;
  }
  return {sum, count};
}

// Returns for each sequence the one before it with the same lengths, or -1.
std::vector<std::int64_t> previous_of_length(const Attention& traces) {
  std::map<std::pair<std::size_t, std::size_t>, std::int64_t> last;
  std::vector<std::int64_t> previous;
  for (const ForwardTrace& trace : traces) {
    const auto [found, is_new] = last.try_emplace({trace.tokens.size(), trace.source.size()}, -1);
    previous.push_back(found->second);
    found->second = std::ssize(previous) - 1;
  }
  return previous;
}

// Returns why the heads of two models cannot be compared, or "".
std::string obstacle_of(const ModelSource& first, const ModelSource& second) {
  const OpenConfig &a = first.config, &b = second.config;
  if (heads_of(a.model) == 0 || heads_of(b.model) == 0) return "one of the models has no attention heads";
  if (!kind_of(a.model.attention.score).softmax || !kind_of(b.model.attention.score).softmax)
    return "one of the models has attention weights that do not sum to 1";
  if (a.task.name != b.task.name)
    return fmt::format("the tasks differ, {} and {}; heads are compared on the same sequences", a.task.name,
                       b.task.name);
  const Layout layout = layout_of(a.model);
  if (layout != layout_of(b.model)) return "the models read the sequences of the task in different layouts";
  if (vocabulary(first) != vocabulary(second))
    return "the vocabularies differ; heads are compared on the same sequences";
  const ModelSizes of_a = model_sizes(a), of_b = model_sizes(b);
  if (layout == Layout::seq2seq && (of_a.length != of_b.length || of_a.source_length != of_b.source_length))
    return "the lengths of the encoder-decoders' sequences differ";
  return "";
}

// Returns the model with the data of another config, of sequences that are not longer.
ModelSource on_data_of(const OpenConfig& data, ModelSource model) {
  if (OpenConfig& config = model.config; layout_of(config.model) != Layout::seq2seq) {
    if (config.model.max_length == 0) config.model.max_length = model_sizes(config).length;
  }
  model.config.task = data.task;
  model.config.source = data.source;
  model.config.data = data.data;
  model.config.train.seed = data.train.seed;
  return model;
}

Attention read_attention(const ModelSource& model, std::int64_t sequences,
                         std::optional<std::uint64_t> untrained = {}) {
  Attention attention;
  trace_split(model, Split::test, sequences, [&](const ForwardTrace& trace) { attention.push_back(trace); },
              {.untrained = untrained, .logits = false});
  return attention;
}

// Returns the largest overlap of each head of the first model.
std::vector<double> largest(const Overlaps& overlap) {
  std::vector<double> best(static_cast<std::size_t>(overlap.values.rows), kUnknown);
  for (std::size_t i = 0; i < best.size(); ++i)
    for (std::int64_t j = 0; j < overlap.values.cols; ++j)
      best[i] = std::fmax(best[i], overlap.values(static_cast<std::int64_t>(i), j));
  return best;
}

std::int64_t count(const Overlaps& overlap, std::size_t i, std::size_t j) {
  return std::llround(overlap.queries(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j)));
}

// Sets the matches of the heads of a kind, "" in an encoder-only model, "cross" and so on.
void match_kind(const std::string& stack, const ModelConfig& first, const ModelConfig& second,
                const Overlaps& overlap, HeadComparison& comparison) {
  const std::vector<AttentionLayer> in_first = attention_layers(first), in_second = attention_layers(second);
  std::vector<std::size_t> rows, columns;
  for (std::size_t i = 0; i < heads_of(first); ++i)
    if (layer_of(in_first, id_of(first, i)).stack == stack) rows.push_back(i);
  for (std::size_t j = 0; j < heads_of(second); ++j)
    if (layer_of(in_second, id_of(second, j)).stack == stack) columns.push_back(j);
  DoubleMatrix gains(std::ssize(rows), std::ssize(columns));
  const auto value = [&](std::size_t i, std::size_t j) {
    return overlap.values(static_cast<std::int64_t>(i), static_cast<std::int64_t>(j));
  };
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t c = 0; c < columns.size(); ++c) {
      const double gain = value(rows[r], columns[c]);
      gains(static_cast<std::int64_t>(r), static_cast<std::int64_t>(c)) = std::isfinite(gain) ? gain : 0;
    }
  const std::vector<std::int64_t> assigned = assign(gains);
  std::vector<bool> used(columns.size());
  for (std::size_t r = 0; r < rows.size(); ++r) {
    if (assigned[r] < 0) continue;
    const auto column = static_cast<std::size_t>(assigned[r]);
    used[column] = true;
    HeadMatch& match = comparison.matches[rows[r]];
    match.match = id_of(second, columns[column]);
    match.overlap = value(rows[r], columns[column]);
    match.queries = count(overlap, rows[r], columns[column]);
  }
  for (std::size_t c = 0; c < columns.size(); ++c)
    if (!used[c]) comparison.unmatched.push_back(id_of(second, columns[c]));
}

}  // namespace

Overlaps overlaps(const ModelConfig& first, const Attention& a, const ModelConfig& second, const Attention& b,
                  bool shift) {
  const std::vector<AttentionLayer> in_first = attention_layers(first), in_second = attention_layers(second);
  const std::vector<std::int64_t> previous = previous_of_length(a);
  const auto rows = static_cast<std::int64_t>(heads_of(first)),
             columns = static_cast<std::int64_t>(heads_of(second));
  Overlaps out{DoubleMatrix(rows, columns), DoubleMatrix(rows, columns)};
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < columns; ++j) {
      const HeadId head = id_of(first, static_cast<std::size_t>(i)),
                   other = id_of(second, static_cast<std::size_t>(j));
      const AttentionLayer &layer = layer_of(in_first, head), &other_layer = layer_of(in_second, other);
      double sum = 0, count = 0;
      if (layer.stack == other_layer.stack)
        for (std::size_t s = 0; s < a.size(); ++s) {
          const std::int64_t partner = shift ? previous[s] : static_cast<std::int64_t>(s);
          if (partner < 0) continue;
          const ForwardTrace& with = b[static_cast<std::size_t>(partner)];
          const auto [shared, queries] = overlap(
              {first.output, layer, layer.block == in_first.back().block, a[s], a[s].weights(first, head)},
              {second.output, other_layer, other_layer.block == in_second.back().block, with,
               with.weights(second, other)});
          sum += shared;
          count += queries;
        }
      out.values(i, j) = count > 0 ? sum / count : kUnknown;
      out.queries(i, j) = count;
    }
  return out;
}

std::vector<double> chance_levels(const std::vector<std::vector<double>>& best) {
  const std::size_t heads = best[0].size();
  std::vector<Spread> spreads;
  double highest = 0;
  for (std::size_t i = 0; i < heads; ++i) {
    std::vector<double> of_head;
    for (const std::vector<double>& of_model : best) of_head.push_back(of_model[i]);
    spreads.push_back(spread(of_head));
    const double sd = spreads[i].sd.value_or(0);
    for (std::size_t m = 1; sd > 0 && m < best.size(); ++m)
      highest = std::max(highest, (of_head[m] - spreads[i].mean) / sd);
  }
  std::vector<double> levels;
  for (const Spread& of_head : spreads) levels.push_back(of_head.mean + of_head.sd.value_or(0) * highest);
  return levels;
}

HeadComparison compare_heads(const ModelSource& first, const ModelSource& second, std::int64_t sequences,
                             std::int64_t examples) {
  HeadComparison comparison{.obstacle = obstacle_of(first, second)};
  if (!comparison.obstacle.empty()) return comparison;
  const ModelConfig &model = first.config.model, &other = second.config.model;
  const bool is_shorter = model_sizes(second.config).length < model_sizes(first.config).length;
  const OpenConfig& data = is_shorter ? second.config : first.config;
  const ModelSource first_here = on_data_of(data, first), second_here = on_data_of(data, second);
  const std::int64_t count_read = readable(first_here, Split::test, sequences);
  if (count_read == 0) {
    comparison.obstacle = "there are no test sequences";
    return comparison;
  }
  // Both models and an untrained copy.
  require_attention_fits(first_here.config, count_read, 3);
  const Attention a = read_attention(first_here, sequences), b = read_attention(second_here, sequences);
  comparison.sequences = std::ssize(a);
  comparison.elsewhere = std::ranges::count_if(previous_of_length(a), [](std::int64_t p) { return p >= 0; });
  for (std::size_t i = 0; i < heads_of(model); ++i) comparison.matches.push_back({.head = id_of(model, i)});
  const Overlaps same = overlaps(model, a, other, b);
  for (const char* stack : {"", "encoder", "decoder", "cross"})
    match_kind(stack, model, other, same, comparison);

  const Overlaps elsewhere = overlaps(model, a, other, b, true);
  for (std::size_t i = 0; i < comparison.matches.size(); ++i) {
    HeadMatch& match = comparison.matches[i];
    if (match.match) {
      const std::int64_t j = match.match->layer * other.heads + match.match->head;
      match.elsewhere = elsewhere.values(static_cast<std::int64_t>(i), j);
      match.elsewhere_queries = count(elsewhere, i, static_cast<std::size_t>(j));
    }
  }
  std::vector<std::vector<double>> best{largest(same)};
  for (int k = 0; k < kChanceModels; ++k)
    best.push_back(largest(
        overlaps(model, a, other,
                 read_attention(second_here, sequences, kFirstUntrained + static_cast<std::uint64_t>(k)))));
  const std::vector<double> chance = chance_levels(best);
  for (std::size_t i = 0; i < chance.size(); ++i) comparison.matches[i].chance = chance[i];
  for (HeadMatch& match : comparison.matches) {
    if (!match.match || match.overlap > match.chance) continue;
    comparison.unmatched.push_back(*match.match);
    match = {.head = match.head, .overlap = match.overlap, .chance = match.chance, .queries = match.queries};
  }
  std::ranges::sort(comparison.unmatched);
  for (std::size_t s = 0; s < std::min(a.size(), static_cast<std::size_t>(examples)); ++s)
    comparison.examples.emplace_back(a[s], b[s]);
  return comparison;
}

}  // namespace thimble
