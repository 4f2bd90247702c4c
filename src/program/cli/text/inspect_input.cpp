#include <fmt/format.h>

#include <algorithm>

#include "program/cli/text/heat_map.h"
#include "program/cli/text/inspect.h"
#include "thimble/inspect/lens_names.h"
#include "thimble/train/run.h"
#include "train/files/text/text.h"
#include "train/files/text/width.h"

namespace thimble::cli {

namespace {

constexpr std::size_t kTitle = 11, kMaxToken = 16, kGap = 3;

std::vector<std::string> names_of(const std::vector<std::int32_t>& tokens, const Names& names) {
  std::vector<std::string> out;
  for (const std::int32_t token : tokens)
    out.push_back(truncated(escape_controls(names[static_cast<std::size_t>(token)]), kMaxToken));
  return out;
}

void print_columns(const std::vector<std::vector<std::string>>& rows) {
  print_out("{}", aligned(rows, kTitle, line_width(1), "\n"));
}

void print_predictions(const ForwardTrace& trace, const ModelConfig& model, const Names& names) {
  const bool pair = !trace.source.empty();
  std::vector<std::string> tokens = names_of(pair ? trace.source : trace.tokens, names),
                           predictions = names_of(trace.predictions, names), probabilities;
  for (std::size_t i = 0; i < predictions.size(); ++i) {
    const std::size_t outputs = trace.probabilities.size() / predictions.size();
    const auto of_outputs = std::span(trace.probabilities).subspan(i * outputs, outputs);
    probabilities.push_back(fmt::format("{:.2f}", std::ranges::max(of_outputs)));
  }
  std::vector<std::vector<std::string>> lens;  // by depth
  const std::vector<std::string> depths = lens_names(model);
  for (std::size_t d = 0; d < trace.lens_predictions.size() / predictions.size(); ++d) {
    const auto first = trace.lens_predictions.begin() + static_cast<std::ptrdiff_t>(d * predictions.size());
    lens.push_back(names_of({first, first + std::ssize(predictions)}, names));
    lens.back().insert(lens.back().begin(), depths[d]);
  }
  const bool per_token = !pair && tokens.size() == predictions.size();
  tokens.insert(tokens.begin(), pair ? "source" : "token");
  predictions.insert(predictions.begin(), pair ? "output" : "prediction");
  std::vector<std::string> marked = predictions;
  for (std::size_t i = 0; i < trace.guessed.size(); ++i)
    if (trace.guessed[i] != 0) marked[i + 1] = '(' + marked[i + 1] + ')';
  probabilities.insert(probabilities.begin(), "probability");
  const auto print_lens = [&] {
    if (lens.empty()) return;
    lens.push_back(predictions);
    print_out("\nLogit lens: the prediction that the output reads after each layer:\n");
    print_columns(lens);
  };
  if (per_token) {
    print_columns({tokens, marked, probabilities});
    if (std::ranges::count(trace.guessed, 1) > 0)
      print_paragraph("(In parentheses: {}.)", trace.guessed_reason);
  } else {
    std::vector<std::string> output = predictions, certainty = probabilities;
    if (!trace.finished) {  // the answer goes on
      output.push_back(own_text("…"));
      certainty.emplace_back();
    }
    print_columns({tokens});
    print_columns({output, certainty});
  }
  print_lens();
}

void print_maps(const ForwardTrace& trace, const ModelConfig& model, const Names& names,
                const HeadChoice& heads) {
  const std::vector<std::string> tokens = names_of(trace.tokens, names),
                                 source = names_of(trace.source, names);
  const std::size_t width = line_width(1);
  print_out("\nAttention of query (row) on key (column):\n");
  write_picture(legend(colors()) + '\n');
  const std::vector<AttentionLayer> all = attention_layers(model);
  // Returns the maps, each in a share of the columns, or "" where there is no room.
  const auto drawn = [&](std::size_t beside) -> std::string {
    std::vector<Picture> pictures;
    for (std::int64_t l = 0; l < std::ssize(all); ++l) {
      const AttentionLayer& layer = all[static_cast<std::size_t>(l)];
      for (std::int64_t h = 0; h < layer.heads; ++h) {
        const HeadId id{l, h};
        if (!heads.has(id)) continue;
        Picture& picture = pictures.emplace_back(
            heat_map(trace.weights(model, id), layer.queries_source ? source : tokens,
                     layer.keys_source ? source : tokens, colors(), (width - kGap * (beside - 1)) / beside));
        if (picture.empty()) return "";
        picture.insert(picture.begin(), head_title(model, id));
      }
    }
    return side_by_side(pictures, width, kGap);
  };
  const auto height = [](const std::string& text) { return std::ranges::count(text, '\n'); };
  std::string shortest = drawn(1);
  for (std::size_t beside = 2; beside <= 4; ++beside)
    if (const std::string text = drawn(beside); !text.empty() && height(text) < height(shortest))
      shortest = text;
  if (shortest.empty())
    return print_out("\ntoo many tokens to draw in {} columns; --json and --html show them\n", width);
  write_picture(shortest);
}

}  // namespace

void warn_of_unseen(const ModelSource& model, const std::string& text) {
  const std::int64_t count = readable(model, Split::train, 1000);
  const std::vector<std::string> unseen = unseen_in(model, text, count);
  if (unseen.empty()) return;
  print_err("{}", wrapped(fmt::format("thimble: not in {} training inputs: {}; the output may be meaningless",
                                      count, fmt::join(unseen, ", ")),
                          line_width(2)));
}

void show_input(const ModelSource& model, const std::string& text, const HeadChoice& heads,
                const Output& output) {
  const ForwardTrace trace = trace_input(model, text);
  const Names names = vocabulary(model);
  if (output.prints_text()) {
    warn_of_unseen(model, text);  // reads the checkpoint, and may fail: before anything is printed
    print_predictions(trace, model.config.model, names);
    print_maps(trace, model.config.model, names, heads);
  }
  output.write(to_json(trace, model.config.model, names));
}

}  // namespace thimble::cli
