#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "inspect/effects/head_names.h"
#include "program/cli/text/heat_map.h"
#include "program/cli/text/inspect.h"
#include "program/cli/text/text_table.h"
#include "train/files/text/format.h"
#include "train/files/text/width.h"

namespace thimble::cli {

namespace {

constexpr std::size_t kMaxEdges = 15, kMaxErrors = 3;

std::string effect_text(const PatchEffect& effect) {
  if (!effect.interval) return fmt::format("{:+.3f}", effect.effect);
  return fmt::format("{:+.3f} ({:+.2f} to {:+.2f})", effect.effect, effect.interval->low,
                     effect.interval->high);
}

// Draws the effects (heads, positions) of each attention layer, negative ones as 0.
void print_positions(const PatchingReport& report, const ModelConfig& model, const HeadChoice& heads) {
  double largest = 0;
  for (const PatchingReport::Head& head : report.heads)
    for (const PatchEffect& at : head.noising.at) largest = std::max(largest, at.effect);
  if (largest == 0) return;
  print_paragraph(
      "\nNoising of one head (row) at one position (column); the darkest shade is {:.3f}, 0 and less is blank:",
      largest);
  std::vector<Picture> pictures;
  const std::vector<AttentionLayer> layers = attention_layers(model);
  for (std::size_t l = 0; l < layers.size(); ++l) {
    std::vector<double> shares;
    std::vector<std::string> rows, columns;
    for (const PatchingReport::Head& head : report.heads) {
      if (head.id.layer != static_cast<std::int64_t>(l) || !heads.has(head.id)) continue;
      rows.push_back(std::to_string(head.id.head));
      columns.clear();
      for (const PatchEffect& at : head.noising.at) {
        columns.push_back(std::to_string(columns.size()));
        shares.push_back(std::isnan(at.effect) ? at.effect : std::max(0.0, at.effect) / largest);
      }
    }
    if (rows.empty()) continue;
    Picture picture = heat_map(shares, rows, columns, colors(), line_width(1));
    if (picture.empty())
      return print_out("{} positions are too many to draw in {} columns; see --json or --html\n",
                       columns.size(), line_width(1));
    picture.insert(picture.begin(), layers[l].title());
    pictures.push_back(std::move(picture));
  }
  write_picture(side_by_side(pictures, line_width(1)));
}

void print_patching(const PatchingReport& report, const ModelConfig& model, const HeadChoice& heads) {
  const std::size_t width = line_width(1);
  const auto print_input = [&](const char* name, const std::vector<std::string>& tokens,
                               const std::vector<std::string>& labels) {
    const std::string text =
        fmt::format("{:<9}  {}  ->  {}", name, fmt::join(tokens, " "), fmt::join(labels, " "));
    print_out("{}", wrapped(text, width, 11));
  };
  if (!report.clean.empty()) {
    print_input("clean", report.clean, report.clean_labels);
    print_input("corrupted", report.corrupted, report.corrupted_labels);
    print_out("\n");
  }
  print_paragraph("{}. Share of the {} ({:.3g} a pair) that one head carries:", report.inputs.text(),
                  measure_text(report.inputs.measure), report.difference);
  print_out("\n");
  const std::vector<AttentionLayer> layers = attention_layers(model);
  TextTable table("head", {{.title = "noising", .is_left = true}, {.title = "denoising", .is_left = true}});
  for (const PatchingReport::Head& h : report.heads)
    if (heads.has(h.id))
      table.add(head_name(layers, h.id), {effect_text(h.noising.all), effect_text(h.denoising.all)});
  print_out("{}", table.text(width));
  print_out("\n");
  print_paragraph(
      "noising: lost when the clean run gets the head's output on the corrupted input; denoising: restored when the corrupted run gets the clean one{}",
      report.inputs.pairs > 1 ? "; in parentheses: approximate 95 % CI" : "");
  print_positions(report, model, heads);
}

void print_circuit(const EdgesReport& report) {
  const Circuit& circuit = report.circuit;
  print_paragraph(
      "\nCircuit (*): {} of {} edges keep {:.1f} % of the {}{} on {} that did not choose them (required: {:.0f} %); without "
      "them {:.1f} % is left. {} random circuits of as many edges keep {:.1f} % on average and {:.1f} % at "
      "best; without them {:.1f} % is left on average. Completeness: without a part of the circuit, circuit and model differ by "
      "{:.1f} points, at the worst of {} sets tried.",
      circuit.edges.size(), report.effects.size(), 100 * circuit.kept, measure_text(report.inputs.measure),
      circuit.interval ? own_text(fmt::format(" (approximate 95 % CI {:.1f}–{:.1f})",
                                              100 * circuit.interval->low, 100 * circuit.interval->high))
                       : "",
      counted(circuit.pairs, "pair"), 100 * report.keep, 100 * circuit.left, circuit.random,
      100 * circuit.random_mean, 100 * circuit.random_best, 100 * circuit.random_left,
      100 * circuit.incompleteness, circuit.tried);
}

void print_edges(const EdgesReport& report) {
  print_paragraph(
      "{}; {} edges. Share of the {} that is lost when one edge carries what it carries on the corrupted input{}:",
      report.inputs.text(), report.effects.size(), measure_text(report.inputs.measure),
      report.inputs.pairs > 1 ? ", with an approximate 95 % CI" : "");
  const std::vector<std::size_t> order = report.by_effect();
  const std::size_t shown = std::min(kMaxEdges, order.size());
  TextTable table("  edge",
                  {{.title = report.inputs.pairs > 1 ? "effect (95 % CI)" : "effect", .is_left = true},
                   {.title = "attribution", .is_left = true}});
  for (std::size_t k = 0; k < shown; ++k) {
    const EdgeEffect& effect = report.effects[order[k]];
    table.add(fmt::format("{} {}", report.in_circuit(order[k]) ? '*' : ' ', report.graph.name(order[k])),
              {effect_text(effect.exact), fmt::format("{:+.3f}", effect.attribution)});
  }
  print_out("\n{}", table.text(line_width(1)));
  if (shown < order.size()) print_out("  {} edges of smaller effect: see --json\n", order.size() - shown);
  print_circuit(report);
  std::vector<std::string> errors;
  for (const std::size_t e : report.by_error()) {
    if (errors.size() == kMaxErrors) break;
    errors.push_back(fmt::format("{} (exact {:+.3f}, estimate {:+.3f})", report.graph.name(e),
                                 report.effects[e].exact.effect, report.effects[e].attribution));
  }
  print_paragraph(
      "\nEdge attribution patching, the estimate from one gradient: correlation {:.3f} with the exact effects; most off: {}.",
      report.correlation, fmt::join(errors, ", "));
}

}  // namespace

void show_patching(const PatchingReport& report, const ModelConfig& model, const HeadChoice& heads,
                   const Output& output) {
  if (output.prints_text()) print_patching(report, model, heads);
  output.write(to_json(report));
}

void show_edges(const EdgesReport& report, const Output& output) {
  if (output.prints_text()) print_edges(report);
  output.write(to_json(report));
}

}  // namespace thimble::cli
