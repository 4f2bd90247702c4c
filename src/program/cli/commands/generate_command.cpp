#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>

#include "program/cli/memory.h"
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

// Prints a text with the probability of each token as its shade.
void print_shaded(const GeneratedSequence& s, bool is_spelled) {
  std::string text;
  for (std::size_t i = 0; i < s.log_probabilities.size(); ++i) {
    const std::string token = i < s.tokens.size() ? s.tokens[i] : shown_token("\n");
    const bool ends_line = token == shown_token("\n");
    text += shaded(token == shown_token(" ") ? " " : escape_controls(token), std::exp(s.log_probabilities[i]),
                   colors());
    text += ends_line ? "\n" : is_spelled ? "" : " ";
  }
  write_picture(text + (s.finished ? "" : own_text(" …")) + (text.ends_with('\n') ? "" : "\n"));
}

// Prints an output: of a text what follows the prompt, of which the probability says little.
void print_output(const GeneratedSequence& s, const std::string& prompt, bool is_text) {
  const std::string end = s.finished ? "" : own_text(" …");
  if (is_text)
    print_out("{}{}{}\n", prompt, s.text, end);
  else
    print_out("{:.3f}  {}{}\n", std::exp(s.log_probability), s.text, end);
}

void run(GenerateArguments& arguments) {
  arguments.model.require_one_text(arguments.input, "--input");
  arguments.how.sampling.seed = static_cast<std::uint64_t>(arguments.seed);
  const bool prints = arguments.output.prints_text();
  Generation& how = arguments.how;
  const ModelSource model = arguments.model.open();
  require_bound_fits(tracing_bound(model.config, 0, std::max(how.beams, how.samples)));
  const bool is_text = find_task(model.config.task.name).continues;
  const Tokenization tokens = model.config.task.input_tokens();
  const bool is_spelled = tokens == Tokenization::characters || tokens == Tokenization::bytes;
  const std::string prompt = arguments.input + (is_spelled || arguments.input.empty() ? "" : " ");
  // A single text is printed as it is generated, after its prompt once that is known to be right.
  bool begun = false;
  const auto begin = [&] {
    if (!std::exchange(begun, true)) print_out("{}", prompt);
  };
  const bool at_once = prints && is_text && how.beams <= 1 && how.samples <= 1 && !arguments.probabilities;
  if (at_once)
    how.on_text = [&](std::string_view text) {
      begin();
      print_out("{}", text);
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
    if (!prints) continue;
    if (at_once) {
      begin();
      print_out("{}\n", s.finished ? "" : own_text(" …"));
      continue;
    }
    if (json.size() > 1 && s.text.find('\n') != s.text.npos) print_out("---\n");
    const bool is_shaded = arguments.probabilities && is_text && colors() != Colors::none;
    if (is_shaded) {
      print_out("{}", prompt);
      print_shaded(s, is_spelled);
      continue;
    }
    print_output(s, prompt, is_text);
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
  beams.between(1, 1000).shows_default().value_name("N");
  Option& samples = command.add_option("--samples", how.samples, "Draw N outputs in place of a search");
  samples.between(1, 1000).excludes(beams).value_name("N");
  const auto of_samples = [&](const std::string& name, auto& value, std::int64_t min, std::int64_t max,
                              const std::string& help) {
    command.add_option(name, value, help)
        .between(min, max)
        .needs(samples)
        .value_name(std::is_same_v<decltype(value), double&> ? "X" : "N");
  };
  constexpr std::int64_t kMaxValue = std::numeric_limits<std::int64_t>::max();
  of_samples("--temperature", how.sampling.temperature, 0, 1000, "Divide the logits by X (default: 1)");
  of_samples("--top-k", how.sampling.top_k, 1, kMaxValue, "Draw from the N most probable tokens");
  of_samples("--top-p", how.sampling.top_p, 0, 1, "Draw from the most probable tokens that have X together");
  of_samples("--seed", arguments->seed, 0, kMaxValue, "Draw other outputs (default: 0)");
  command
      .add_option("--tokens", how.tokens,
                  "The most tokens of an output, its end included (default: as the longest target)")
      .between(1, kMaxValue)
      .value_name("N");
  command.add_flag("--probabilities", arguments->probabilities, "Print the probability of each token");
  arguments->output.add_to(command);
  command.action([arguments] {
    run(*arguments);
    return kDone;
  });
}

}  // namespace thimble::cli
