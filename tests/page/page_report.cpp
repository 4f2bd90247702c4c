// Writes reports for the test of the page, made up but of the real shape: page_report DIRECTORY
// large.html has 4 layers of 8 heads and 16 examples of 64 tokens, causal; small.html one head, tokens that
// HTML and scripts could trip over, and no section that needs a run; own.html an input of the user's own.
// reproduce.html is a page of `thimble reproduce`.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "thimble/core/json.h"
#include "thimble/inspect/report/html.h"
#include "thimble/inspect/report/svg.h"
#include "thimble/reproduce/page.h"

namespace {

using thimble::Json;

struct Size {
  int layers, heads, length, vocabulary;
  bool causal;
};

// A number in [0, 1) that depends on `n` alone.
double noise(double n) { return n = std::sin(n * 12.9898 + 4.1) * 43758.5453, n - std::floor(n); }

// Weights of a head: each has one favourite key, more or less sharply.
Json attention(const Size& s, int head, int example) {
  Json rows = Json::array();
  const double sharp = 0.5 + 8 * noise(head);
  for (int i = 0; i < s.length; ++i) {
    const int kinds[] = {i - 1, s.length - 1 - i, i, (i * 7 + example) % s.length, 0};
    const int favourite = kinds[head % 5];
    std::vector<double> row(s.length);
    double sum = 0;
    for (int j = 0; j < s.length; ++j) {
      if (s.causal && j > i) continue;
      const double content = 0.5 * noise(head * 91.0 + example * 17.0 + i * 1.3 + j * 2.7);
      sum += row[j] = std::exp(sharp * ((j == favourite) + content) - 0.02 * std::abs(favourite - j));
    }
    for (double& w : row) w /= sum;
    rows.push_back(row);
  }
  return rows;
}

Json score(double value, double chance) {
  return {{"value", value},
          {"chance", chance},
          {"at_init", chance * 1.1},
          {"attainable", 1.0},
          {"eligible", 16000}};
}

Json effect(double size) {
  return {{"loss_change", 2.5 * size},
          {"accuracy_change", -size},
          {"interval", {2.2 * size, 2.8 * size}},
          {"accuracy_interval", {-1.1 * size, -0.9 * size}}};
}

Json matrix(int size, int seed) {
  Json rows = Json::array();
  for (int r = 0; r < size; ++r) {
    rows.push_back(Json::array());
    for (int c = 0; c < size; ++c)
      rows.back().push_back((r == c ? 3.5 : 0) + 2 * noise(seed * 31.0 + r * 5.1 + c * 0.7) - 1);
  }
  return rows;
}

Json head(const Size& s, int index) {
  const std::vector<std::string> verdicts = {"shown", "no_effect", "none", "no_pattern", "not_enough"};
  const std::string verdict = s.layers == 1 ? "shown" : verdicts[index % 5];
  const double strength = noise(index + 0.5), size = verdict == "shown" ? 0.63 * strength : 0.001 * strength;
  Json scores;
  for (const std::string name : {"entropy", "self", "first", "positional_share", "previous_token", "mirror",
                                 "same_token", "duplicate_token", "induction"})
    scores[name] = score(noise(index * 3.0 + static_cast<double>(name.size())), 1.0 / s.length);
  scores["distance"] = {
      {"value", 12.5}, {"chance", 21.3}, {"at_init", 21.0}, {"attainable", 63.0}, {"eligible", 16000}};
  scores["offset"] = score(0.2 * strength, 0.0625);
  scores["offset"]["at"] = -3;
  scores["task_target"] = {{"value", nullptr},
                           {"chance", nullptr},
                           {"at_init", nullptr},
                           {"attainable", nullptr},
                           {"eligible", 0}};
  std::vector<double> singular;
  for (int k = 0; k < 8; ++k) singular.push_back(4.0 * std::exp(-0.5 * k * strength));
  const bool tokens = s.vocabulary <= 32;
  return {
      {"layer", index / s.heads},
      {"head", index % s.heads},
      {"label", "previous token"},
      {"verdict", verdict},
      {"sentence",
       fmt::format("previous token: {:.2f} of the weight (chance 0.06); without it accuracy falls",
                   strength)},
      {"scores", scores},
      {"ablation", {{"zero", effect(size)}, {"mean", effect(0.8 * size)}, {"resample", effect(0.9 * size)}}},
      {"importance", {{"raw", 0.0123 * strength}, {"normalised", strength}}},
      {"circuits",
       {{"ov_copying", 0.83 - strength},
        {"qk_reciprocity", strength},
        {"ov_singular_values", singular},
        {"qk_singular_values", singular},
        {"qk_tokens", tokens ? matrix(s.vocabulary, index) : nullptr},
        {"ov_tokens", tokens ? matrix(s.vocabulary, index + 50) : nullptr}}},
      {"mean_weights", attention(s, index, 0)}};
}

Json example(const Size& s, const std::vector<std::string>& names, int index) {
  Json tokens = Json::array(), targets = Json::array(), predictions = Json::array();
  for (int i = 0; i < s.length; ++i) {
    const auto& name = names[(i * 5 + index * 3 + i / 7) % names.size()];
    tokens.push_back(name);
    targets.push_back(i % 4 == 3 ? Json(nullptr) : Json(name));
    predictions.push_back(index % 3 == 1 && i % 10 == 4 ? names[(i + index) % names.size()] : name);
  }
  Json layers = Json::array();
  for (int l = 0; l < s.layers; ++l) {
    layers.push_back(Json::array());
    for (int h = 0; h < s.heads; ++h) layers.back().push_back(attention(s, l * s.heads + h, index));
  }
  return {{"tokens", tokens}, {"targets", targets}, {"predictions", predictions}, {"attention", layers}};
}

Json base(const Size& s, const std::vector<std::string>& names, int examples) {
  Json report = {
      {"task", "reverse"},
      {"split", "test"},
      {"sequences", 1000},
      {"length", s.length},
      {"tokens", names},
      {"model",
       {{"layers", s.layers},
        {"heads", s.heads},
        {"d_model", 32},
        {"norm", s.causal ? "pre" : "post"},
        {"mask", s.causal ? "causal" : "none"},
        {"output", "position"}}},
      {"weights_hash", "9f2c61d0a4b7e835"},
      {"baseline",
       {{"loss", 0.0020751}, {"accuracy", 0.99975}, {"sequence_accuracy", 0.9963}, {"sequences", 1000}}}};
  report["heads"] = Json::array();
  for (int k = 0; k < s.layers * s.heads; ++k) report["heads"].push_back(head(s, k));
  report["rollout"] = attention(s, 0, 0);
  report["examples"] = Json::array();
  for (int k = 0; k < examples; ++k) report["examples"].push_back(example(s, names, k));
  return report;
}

void add_run(Json& report, const Size& s) {
  for (int k = 0; k <= s.layers * s.heads; ++k) {
    Json step = {{"removed", k}, {"layer", nullptr}, {"head", nullptr}};
    if (k > 0) step["layer"] = (k * 13 % 32) / s.heads, step["head"] = (k * 13 % 32) % s.heads;
    step["loss"] = 0.002 + 3.2 / (1 + std::exp(0.6 * (24 - k)));
    step["accuracy"] = 1 - 0.9 / (1 + std::exp(0.6 * (25 - k)));
    report["cumulative_ablation"].push_back(step);
  }
  report["attribution"] = {{"available", true},
                           {"worst_error", 3.1e-7},
                           {"warning", "2 of 40 logits are not the sum of their parts"},
                           {"parts",
                            {{{"name", "embedding"}, {"mean", -0.8}},
                             {{"name", "layer 0 head 1"}, {"mean", 5.2}},
                             {{"name", "layer 0 feed-forward"}, {"mean", 1.4}}}}};
  for (int k = 0; k < 18; ++k) {
    const int step = static_cast<int>(std::pow(1.6, k));
    Json heads = Json::array();
    for (int h = 0; h < s.layers * s.heads; ++h)
      heads.push_back(
          {{"layer", h / s.heads},
           {"head", h % s.heads},
           {"scores",
            {{"induction", noise(h) / (1 + std::exp(0.9 * (12 - k)))}, {"mirror", 0.1 * noise(h + k)}}}});
    report["timeline"].push_back(
        {{"step", step}, {"loss", 0.2 + 2.6 / (1 + std::exp(0.8 * (k - 12)))}, {"heads", heads}});
  }
  report["chance"] = 0.1;
  report["lowest_possible_loss"] = 0;
  report["events"] = {
      "layer 1 head 0 became an induction head between steps 210 and 240, when the loss fell from 2.8 to "
      "2.2"};
  for (int k = 0; k <= 30; ++k)
    for (const char* split : {"train", "validation"})
      report["curves"].push_back({{"step", 100 * k},
                                  {"split", split},
                                  {"loss", 2.8 * std::exp(-k / 6.0) + (*split == 'v' ? 0.15 : 0.05)},
                                  {"accuracy", 1 - 0.9 * std::exp(-k / 5.0)}});
}

thimble::ExperimentResult experiment() {
  thimble::ExperimentResult result;
  result.experiment.name = "reversal";
  result.experiment.statement = "A small transformer reverses a sequence.";
  result.experiment.source = "somewhere";
  result.experiment.seeds = {1, 2, 3, 4, 5, 6, 7, 8};
  result.experiment.values.resize(1);
  result.experiment.values[0].name = "test accuracy of the run that reverses";
  result.values = {{0.991234, 0.992345, 0.993456, 0.994567, 0.995678, 0.996789, 0.997891, 0.998912}};
  result.verdict = thimble::ExperimentVerdict::pass;
  return result;
}

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file.exceptions(std::ios::failbit | std::ios::badbit);
  file << text;
  file.close();
}

}  // namespace

int main(int, char** argv) {
  const std::filesystem::path directory = argv[1];

  std::vector<std::string> letters;
  for (char c = 'a'; c <= 'x'; ++c) letters.push_back(std::string(1, c));
  const Size large{4, 8, 64, 24, true};
  Json report = base(large, letters, 16);
  add_run(report, large);
  write(directory / "large.html", thimble::html_page(report));

  const std::vector<std::string> odd = {
      "</script>", "<img src=x onerror=alert(1)>",        "&amp;", "\"'", " ", "é", "😀", "\u2028",
      "שלום",      "a-very-long-token-that-does-not-fit", "<!--",  "0"};
  const Size small{1, 1, 12, 12, false};
  report = base(small, odd, 3);
  report["examples"][2]["targets"] = {"é"};  // one answer for the sequence
  report["examples"][2]["predictions"] = {"0"};
  report["attribution"] = {{"available", false},
                           {"reason", "post-norm: the last norm comes after the last sum"}};
  report["timeline"] = report["events"] = report["curves"] = report["cumulative_ablation"] = Json::array();
  write(directory / "small.html", thimble::html_page(report));

  Size shorter = small;
  shorter.length = 5;
  report["input"] = example(shorter, letters, 7);
  report["input"].erase("targets");
  write(directory / "own.html", thimble::html_page(report));

  std::vector<double> weights;
  for (const auto& row : report["heads"][0]["mean_weights"])
    for (const auto& w : row) weights.push_back(w.get<double>());
  write(directory / "head.svg", thimble::head_svg("layer 0 head 0: previous token", odd, odd, weights));
  write(directory / "long_title.svg",
        thimble::head_svg("WWWW WWWW 注意 layer 10 head 10, mean of 1000000 sequences of 语言", {"中文"},
                          {"previous", "中文中文"}, {0.25, 0.75}));
  write(directory / "usual_title.svg", thimble::head_svg("layer 0 head 0, mean of 1000 sequences", {"0", "1"},
                                                         {"0", "1"}, {1, 0, 0.5, 0.5}));
  write(directory / "reproduce.html", thimble::reproduce_page(std::vector{experiment()}));
}
