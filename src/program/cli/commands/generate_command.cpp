#include <cmath>
#include <limits>
#include <utility>

#include "program/cli/text/heat_map.h"
#include "program/cli/text/inspect.h"
#include "program/cli/text/progress_meter.h"
#include "thimble/inspect/forward_trace.h"
#include "thimble/train/json.h"
#include "thimble/train/run.h"
#include "thimble/train/tokenization.h"
#include "train/files/text/text.h"

namespace thimble::cli {

namespace {

struct GenerateArguments {
  ModelArguments model;
  Output output;
  std::string input;
  Generation how;
  std::int64_t seed = 0;
  bool probabilities = false;
};

// Prints each token of an output with its probability.
void print_probabilities(const GeneratedSequence& s) {
  std::string line;
  for (std::size_t i = 0; i < s.log_probabilities.size(); ++i)
    line += fmt::format("{}{} {:.3f}", i > 0 ? ",  " : "", i < s.tokens.size() ? s.tokens[i] : "<end>",
                        std::exp(s.log_probabilities[i]));
  print_out("       {}\n", line);
}

// Prints a text with the probability of each token, and of its end, as its shade.
void print_shaded(const GeneratedSequence& s, const std::string& end, Tokenization tokens) {
  std::string text;
  for (std::size_t i = 0; i < s.log_probabilities.size(); ++i) {
    const std::string token = i < s.tokens.size() ? s.tokens[i] : end;
    text += shaded(token == shown_token(" ") ? " " : escape_controls(token), std::exp(s.log_probabilities[i]),
                   colors());
    text += token == shown_token("\n") ? "\n" : is_spelled(tokens) ? "" : " ";
  }
  write_picture(text + (s.finished ? "" : own_text(" …")) + (text.ends_with('\n') ? "" : "\n"));
}

// Takes the text that stands among the overrides out of them; "" for none.
std::string take_text(ModelArguments& model) {
  std::string text;
  if (!model.weights.empty() && !model.run.empty())
    model.overrides.insert(model.overrides.begin(), std::exchange(model.run, ""));
  std::erase_if(model.overrides, [&](const std::string& argument) {
    constexpr std::string_view kKey = "abcdefghijklmnopqrstuvwxyz0123456789_.";
    const std::size_t end = argument.find_first_not_of(kKey);
    const bool is_override = end != argument.npos && end > 0 && argument[end] == '=';
    if (!is_override) text += (text.empty() ? "" : " ") + argument;
    return !is_override;
  });
  return text;
}

// Returns the command that generates the most probable output.
std::string plain_command(const ModelArguments& model, const std::string& option, const std::string& text) {
  std::vector<std::string> words = {"thimble", "generate"};
  if (model.weights.empty()) words.push_back(model.run);
  for (const auto& [name, value] : {std::pair("--weights", model.weights), {"--config", model.config}})
    if (!value.empty()) words.insert(words.end(), {name, value});
  words.insert(words.end(), model.overrides.begin(), model.overrides.end());
  if (!text.empty()) words.insert(words.end(), {option, text});
  return shell_command(words);
}

void run(GenerateArguments& arguments) {
  if (!arguments.input.empty()) arguments.model.require_one_text(arguments.input, "--input");
  const std::string text = take_text(arguments.model);
  arguments.how.sampling.seed = static_cast<std::uint64_t>(arguments.seed);
  const bool prints = arguments.output.prints_text();
  Generation& how = arguments.how;
  const ModelSource model = arguments.model.open();
  const bool is_text = find_task(model.config.task.name).predicts_next;
  const Tokenization tokens = model.config.task.input_tokens();
  const bool has_lines = model.config.task.text.documents != TextForm::lines;
  const std::string end = shown_token(has_lines ? kDocumentBoundary : "\n"),
                    option = is_text ? "--prompt" : "--input";
  require<ConfigError>(text.empty() || !generates(model.config), "{}: is given by {}: {}", printable(text),
                       option, plain_command(arguments.model, option, text));
  require<ConfigError>(
      how.sampling.temperature > 0,
      "--temperature 0: must be a number above 0, at most 1000; the most probable output: {}",
      plain_command(arguments.model, option, arguments.input));
  require<ConfigError>(how.samples > 0 || how.sampling.temperature == 1,
                       "--temperature requires --samples; see thimble generate --help");
  // Prints the start of a text as it was typed; a space separates words from those that follow.
  const auto print_prompt = [&](std::string_view output) {
    const bool joins = is_spelled(tokens) ||
                       arguments.input.find_last_of(" \t\n") + 1 == arguments.input.size() ||
                       output.starts_with('\n');
    write_text(arguments.input + (joins ? "" : " "));
  };
  // A single text is printed as it is generated, after its prompt once that is known to be right.
  bool begun = false;
  const auto begin = [&](std::string_view output) {
    if (!std::exchange(begun, true)) print_prompt(output);
  };
  const bool at_once = prints && is_text && how.beams <= 1 && how.samples <= 1 && !arguments.probabilities;
  if (at_once)
    how.on_text = [&](std::string_view output) {
      if (output.empty()) return;
      begin(output);
      write_text(output);
      flush_out();
    };
  const ProgressMeter meter(arguments.output.quiet || at_once);
  auto json = Json::array();
  for (const GeneratedSequence& s : generate(model, arguments.input, how)) {
    json.push_back({{"tokens", s.tokens},
                    {"text", s.text},
                    {"log_probability", s.log_probability},
                    {"log_probabilities", s.log_probabilities},
                    {"finished", s.finished}});
    if (tokens == Tokenization::bytes) json.back()["bytes"] = s.bytes;
    if (!prints) continue;
    if (at_once) {
      begin("");
      print_out("{}\n", s.finished ? "" : own_text(" …"));
      continue;
    }
    if (json.size() > 1 && is_text && has_lines) print_out("---\n");
    const bool is_shaded = arguments.probabilities && is_text && colors() != Colors::none;
    if (is_text) print_prompt(s.text);
    if (is_shaded) {
      print_shaded(s, end, tokens);
      continue;
    }
    // Of a text the probability says little.
    const std::string probability = is_text ? "" : fmt::format("{:.3f}  ", std::exp(s.log_probability));
    write_text(probability + s.text + (s.finished ? "" : own_text(" …")) + "\n");
    if (arguments.probabilities) print_probabilities(s);
  }
  if (prints && is_text && arguments.probabilities && colors() != Colors::none)
    write_picture(fmt::format("probability of each token: {}\n", legend(colors())));
  if (prints && !arguments.input.empty()) warn_of_unseen(model, arguments.input);
  arguments.output.write({{"input", arguments.input}, {"hypotheses", json}});
}

}  // namespace

void add_generate(Command& program) {
  Command& command = program.add_command("generate", "Generate output with probabilities");
  auto arguments = std::make_shared<GenerateArguments>();
  arguments->model.add_to(command);
  Option& input = command.add_option("--input", arguments->input, "Input tokens, separated by spaces");
  input.value_name("TEXT");
  command.add_option("--prompt", arguments->input, "Of task text: the start of the output, as it is")
      .excludes(input)
      .value_name("TEXT");
  Generation& how = arguments->how;
  Option& beams =
      command.add_option("--beams", how.beams, "Beam width and number of results (1 = greedy decoding)");
  beams.between(1, 1000).shows_default();
  Option& samples = command.add_option("--samples", how.samples, "Draw N outputs in place of a search");
  samples.between(1, 1000).excludes(beams);
  const auto of_samples = [&](const std::string& name, auto& value, std::int64_t min, std::int64_t max,
                              const std::string& help) -> Option& {
    return command.add_option(name, value, help).between(min, max).needs(samples);
  };
  constexpr std::int64_t kMaxValue = std::numeric_limits<std::int64_t>::max();
  command.add_option("--temperature", how.sampling.temperature, "Divide the logits by X (default: 1)")
      .between(0, 1000, true);
  of_samples("--top-k", how.sampling.top_k, 1, kMaxValue, "Draw from the N most probable tokens");
  of_samples("--top-p", how.sampling.top_p, 0, 1, "Draw from the most probable tokens that have X together");
  of_samples("--seed", arguments->seed, 0, kMaxValue, "Draw other outputs (default: 0)");
  command
      .add_option("--tokens", how.tokens,
                  "The most tokens of an output, its end included (default: as the longest target)")
      .between(1, kMaxValue);
  command.add_flag("--probabilities", arguments->probabilities, "Print the probability of each token");
  arguments->output.add_to(command);
  command.action([arguments] {
    run(*arguments);
    return kDone;
  });
}

}  // namespace thimble::cli
