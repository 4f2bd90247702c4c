// Output of the subcommands inspect, trace, patch and ablate.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "program/cli/cli.h"
#include "thimble/inspect/inspect.h"
#include "thimble/inspect/patch.h"

namespace thimble::cli {

// The heads to show, all by default, and the option that chooses them.
class HeadChoice {
 public:
  void add_to(Command& command);
  void choose(std::span<const AttentionLayer> layers);  // throws ConfigError when there is no such head

  bool some() const { return names_.has_value(); }  // whether the user has chosen
  bool has(HeadId id) const { return std::ranges::count(heads_, id) > 0; }

 private:
  std::optional<std::string> names_;
  std::vector<HeadId> heads_;
};

// Prints the table of heads, mean attention maps and a summary of each head; with `details`, its evidence, cumulative
// ablation, the logit lens and how heads formed in place of summaries.
void print_report(const InspectReport& report, const HeadChoice& heads, bool details);

// Returns "; target by kind: agent 0.530, patient 0.120" of all scores of a head, where its strongest score is a
// task target of several kinds; otherwise "".
std::string kinds_text(std::span<const HeadScore> scores);

// Prints the predictions and the attention maps of the user's sequence.
void show_input(const ModelSource& model, const std::string& text, const HeadChoice& heads,
                const Output& output);

// Warns on standard error about tokens of the input that do not occur in the training inputs.
void warn_of_unseen(const ModelSource& model, const std::string& text);

// Prints the effect of patching each head, at all positions and at each.
void show_patching(const PatchingReport& report, const ModelConfig& model, const HeadChoice& heads,
                   const Output& output);

// Prints the largest effects of edges, the circuit, and how far edge attribution patching is off.
void show_edges(const EdgesReport& report, const Output& output);

// Prints the effect of ablating a set of heads.
void show_ablation(const AblationReport& report, const OpenConfig& config, const Output& output);

// Returns "1000 test sequences", or of a data file that has more, "1000 of 1941 test sequences, a random sample"; "50 rows of
// FILE" for one with hypotheses; and how many of them are different, if not all.
std::string sample_text(const OpenConfig& config, const Effect& effect, const std::string& file = "");

// Returns "head 0.1" or "head cross.0.1".
std::string head_title(const ModelConfig& model, HeadId id);

// Returns what the model loses without the head, to order heads by.
double cost_of(const InspectReport& report, const HeadReport& head);

// Draws the mean attention of the chosen heads, or of those that cost most, in that many columns. Returns the lines of the maps.
std::ptrdiff_t print_maps(const InspectReport& report, const HeadChoice& heads, std::size_t width);

}  // namespace thimble::cli
