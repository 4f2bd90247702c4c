#include "inspect/report/patching_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "train/files/text/text.h"

namespace thimble {

namespace {

constexpr double kMinShown = 0.01;  // of the largest effect; smaller edges are not drawn

std::string share_text(const PatchEffect& effect) {
  if (!std::isfinite(effect.effect)) return "not defined";
  std::string text = fmt::format("{:+.3f}", effect.effect);
  if (effect.interval)
    text += fmt::format(" (95 % CI {:+.2f} to {:+.2f})", effect.interval->low, effect.interval->high);
  return text;
}

std::string section_of(const char* id, const char* title, const std::string& about, const std::string& body) {
  return fmt::format(
      "<section id=\"{}\" data-title=\"{}\"><h2>{}</h2><p class=\"about\">{}</p>\n{}</section>\n", id, title,
      title, about, body);
}

// The effects of the heads of a layer at each position, as rows of squares.
std::string position_map(const std::vector<const PatchingReport::Head*>& heads, const std::string& title,
                         double largest) {
  constexpr double kCell = 16, kLeft = 60, kTop = 6, kBottom = 20;
  const std::size_t positions = heads.front()->noising.at.size();
  const double width = kLeft + kCell * static_cast<double>(positions) + 2,
               height = kTop + kCell * static_cast<double>(heads.size()) + kBottom;
  std::string svg = fmt::format(
      "<h3>{}</h3><div class=\"scroll\"><svg class=\"figure\" viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" "
      "role=\"img\"><title>{}: share of the logit difference by head and position</title>\n",
      title, width, height, width, title);
  for (std::size_t h = 0; h < heads.size(); ++h) {
    const double y = kTop + kCell * static_cast<double>(h);
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>", kLeft - 6, y + 12,
                       heads[h]->id.name(heads[h]->attention));
    for (std::size_t t = 0; t < positions; ++t) {
      const PatchEffect& effect = heads[h]->noising.at[t];
      svg += fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" class=\"cell\" "
          "fill-opacity=\"{:.3f}\"><title>head "
          "{}, position {}: {}, {} pair{}</title></rect>",
          kLeft + kCell * static_cast<double>(t), y, kCell, kCell,
          largest > 0 && std::isfinite(effect.effect) ? std::clamp(effect.effect / largest, 0.0, 1.0) : 0,
          heads[h]->id.name(heads[h]->attention), t, share_text(effect), effect.pairs,
          effect.pairs == 1 ? "" : "s");
    }
    svg += "\n";
  }
  for (std::size_t t = 0; t < positions; t += 5)
    svg += fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                       kLeft + kCell * (static_cast<double>(t) + 0.5), height - 6, t);
  return svg + "</svg></div>\n";
}

// The graph of edges: the embedding at the bottom, the logits on top.
class EdgeDrawing {
 public:
  explicit EdgeDrawing(const EdgesReport& report) : report_(report) {
    std::int64_t heads = 1, stages = 1;
    for (const Sender& sender : report.graph.senders) {
      heads = std::max(heads, sender.head + 1);
      stages = std::max(stages, sender.stage());
    }
    for (const EdgeEffect& effect : report.effects)
      largest_ = std::max(largest_, std::abs(effect.exact.effect));
    width_ = kColumn * static_cast<double>(heads) + 2 * kSide;
    rows_ = stages + 1;
    height_ = kRow * static_cast<double>(rows_) + kBox + 2 * kMargin;
  }

  std::string svg() const {
    std::string out = fmt::format(
        "<div class=\"scroll\"><svg class=\"figure edges\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
        "role=\"img\"><title>Edges between the parts of the model, as wide as their effect</title>\n",
        width_, height_);
    const std::vector<std::size_t> order = report_.by_effect();
    for (auto e = order.rbegin(); e != order.rend(); ++e) out += line(*e);
    for (const Sender& sender : report_.graph.senders)
      out += box(x_of(sender), y_of(sender.stage()), sender.name());
    return out + box(width_ / 2, y_of(rows_), "logits") + "</svg></div>\n";
  }

 private:
  static constexpr double kColumn = 110, kRow = 84, kBox = 28, kMargin = 8, kSide = 70;  // pixels
  static constexpr double kBoxWidth = 84, kMaxWidth = 14;

  double x_of(const Sender& sender) const {
    if (sender.kind != Sender::Kind::head) return width_ / 2;
    return kSide + kColumn * (static_cast<double>(sender.head) + 0.5);
  }
  // Returns the top of the boxes of a stage.
  double y_of(std::int64_t stage) const {
    return height_ - kMargin - kBox - kRow * static_cast<double>(stage);
  }

  // Returns where the edge enters its receiver: a head has places for query, key and value.
  double entry_of(const Receiver& receiver) const {
    if (!receiver.of_head()) return width_ / 2;
    const double middle = static_cast<double>(receiver.head) + static_cast<double>(receiver.heads) / 2;
    const double place = receiver.kind == Receiver::Kind::value ? 1
                         : receiver.kind == Receiver::Kind::key ? 0
                                                                : -1;
    return kSide + kColumn * middle + place * kBoxWidth / 3;
  }

  std::string line(std::size_t e) const {
    const double share = std::abs(report_.effects[e].exact.effect) / std::max(largest_, 1e-12);
    if (share < kMinShown) return "";
    const Sender& from = report_.graph.senders[report_.graph.edges[e].sender];
    const Receiver& to = report_.graph.receivers[report_.graph.edges[e].receiver];
    const double x1 = x_of(from), y1 = y_of(from.stage()), x2 = entry_of(to), y2 = y_of(to.stage + 1) + kBox;
    // Edges that skip rows bend outward, around the boxes between.
    const auto skipped = static_cast<double>(to.stage - from.stage());
    const double bend = skipped * kColumn * 0.45 * (x1 + x2 < width_ - 1 ? -1 : 1), reach = (y1 - y2) / 2;
    constexpr std::string_view kKinds[] = {"query", "key", "query", "value", "other", "other"};
    return fmt::format(
        "<path d=\"M{:.1f} {:.1f}C{:.1f} {:.1f} {:.1f} {:.1f} {:.1f} {:.1f}\" class=\"edge to-{}{}\" "
        "stroke-width=\"{:.2f}\"><title>{}: {}</title></path>\n",
        x1, y1, std::clamp(x1 + bend, 2.0, width_ - 2), y1 - reach, std::clamp(x2 + bend, 2.0, width_ - 2),
        y2 + reach, x2, y2, kKinds[static_cast<std::size_t>(to.kind)],
        report_.in_circuit(e) ? "" : " outside", std::max(0.6, kMaxWidth * share),
        escape_markup(report_.graph.name(e)), share_text(report_.effects[e].exact));
  }

  static std::string box(double middle, double top, const std::string& name) {
    return fmt::format(
        "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" rx=\"6\" class=\"node\"/><text "
        "x=\"{:.1f}\" "
        "y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
        middle - kBoxWidth / 2, top, kBoxWidth, kBox, middle, top + 18, name);
  }

  const EdgesReport& report_;
  double largest_ = 0, width_ = 0, height_ = 0;
  std::int64_t rows_ = 0;
};

}  // namespace

std::string patching_section(const PatchingReport& report, const ModelConfig& model) {
  std::map<std::int64_t, std::vector<const PatchingReport::Head*>> layers;
  double largest = 0;
  for (const PatchingReport::Head& head : report.heads) {
    layers[head.id.layer].push_back(&head);
    for (const PatchEffect& at : head.noising.at) largest = std::max(largest, at.effect);
  }
  const std::vector<AttentionLayer> all = attention_layers(model);
  std::string body =
      "<div class=\"panel "
      "scroll\"><table><thead><tr><th>head</th><th>noising</th><th>denoising</th></tr></thead>"
      "<tbody>";
  for (const PatchingReport::Head& head : report.heads)
    body += fmt::format("<tr><th>{}</th><td>{}</td><td>{}</td></tr>", head.id.name(head.attention),
                        share_text(head.noising.all), share_text(head.denoising.all));
  body += "</tbody></table></div>\n<div class=\"panel\">";
  for (const auto& [layer, heads] : layers)
    body += position_map(heads, all[static_cast<std::size_t>(layer)].title(), largest);
  const std::string about = fmt::format(
      "{} pair{} of test sequences. Noising: the share of the logit difference that is lost when the clean "
      "run gets "
      "the head's output on the corrupted input. Denoising: the share that is restored when the corrupted "
      "run gets "
      "the clean one. The maps show noising at one position; the strongest square is {:.3f}.",
      report.pairs, report.pairs == 1 ? "" : "s", largest);
  return section_of("patching", "Activation patching", about, body + "</div>\n");
}

std::string edges_section(const EdgesReport& report) {
  constexpr std::size_t kMaxRows = 20;
  const Circuit& circuit = report.circuit;
  std::string body =
      "<div class=\"panel\">" + EdgeDrawing(report).svg() +
      "<p class=\"legend\"><span class=\"to-query\">query</span> <span class=\"to-key\">key</span> "
      "<span class=\"to-value\">value</span> <span class=\"to-other\">feed-forward net, "
      "logits</span> <span>faint: not in the circuit</span></p></div>\n";
  body += fmt::format(
      "<p>Circuit: {} of {} edges keep {:.1f} % of the logit difference (required: {:.0f} %); without them "
      "{:.1f} % "
      "is left. {} random circuits of as many edges keep {:.1f} % on average and {:.1f} % at best. Edge "
      "attribution "
      "patching correlates with the exact effects at {:.3f}.</p>\n",
      circuit.edges.size(), report.effects.size(), 100 * circuit.kept, 100 * report.keep, 100 * circuit.left,
      circuit.random, 100 * circuit.random_mean, 100 * circuit.random_best, report.correlation);
  body +=
      "<div class=\"panel scroll\"><table><thead><tr><th>edge</th><th>effect</th><th>attribution</th>"
      "<th>circuit</th></tr></thead><tbody>";
  const std::vector<std::size_t> order = report.by_effect();
  for (std::size_t k = 0; k < std::min(kMaxRows, order.size()); ++k) {
    const EdgeEffect& effect = report.effects[order[k]];
    body += fmt::format("<tr><th>{}</th><td>{}</td><td>{:+.3f}</td><td>{}</td></tr>",
                        escape_markup(report.graph.name(order[k])), share_text(effect.exact),
                        effect.attribution, report.in_circuit(order[k]) ? "yes" : "");
  }
  const std::string about = fmt::format(
      "{} pairs of test sequences. The effect of an edge is the share of the logit difference that is lost "
      "when it "
      "alone carries what it carries on the corrupted input. Lines are as wide as the effect; 0.1 is head 1 "
      "of layer 0.",
      report.pairs);
  return section_of("edges", "Edges", about, body + "</tbody></table></div>\n");
}

}  // namespace thimble
