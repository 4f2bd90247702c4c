#include "thimble/inspect/report/html.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "thimble/core/error.h"
#include "thimble/core/json.h"
#include "thimble/inspect/report/page.h"

namespace thimble {

namespace {

constexpr std::size_t kTwoByteBudget = 2 << 20;  // bytes of base64 for the attention of all examples

std::string base64(const std::vector<std::uint8_t>& bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t given = std::min<std::size_t>(3, bytes.size() - i);
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k) word = word << 8 | (k < given ? bytes[i + k] : 0u);
    for (std::size_t k = 0; k < 4; ++k) out += k <= given ? kDigits[word >> (18 - 6 * k) & 63] : '=';
  }
  return out;
}

std::vector<std::uint8_t> from_hexadecimal(std::string_view digits) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(std::string(digits.substr(i, 2)), nullptr, 16)));
  return bytes;
}

using Sizes = std::vector<std::int64_t>;

// Packs each value, in units of 1 / steps, as a little-endian integer of `width` bytes.
Json packed(std::span<const double> values, const Sizes& shape, std::size_t width, double steps) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(values.size() * width);
  for (const double value : values) {
    const auto number = static_cast<std::uint64_t>(std::llround(value * steps));
    for (std::size_t k = 0; k < width; ++k) bytes.push_back(static_cast<std::uint8_t>(number >> 8 * k));
  }
  return {{"shape", shape}, {"bytes", width}, {"data", base64(bytes)}};
}

Json packed_weights(std::span<const double> weights, const Sizes& shape, std::size_t width = 2) {
  constexpr double kRounding = 1e-5;
  std::vector<double> within;
  for (const double w : weights) {
    require<NumericError>(w >= 0 && w <= 1 + kRounding,
                          "html: an attention weight is {}: it must be within 0 and 1", w);
    within.push_back(std::min(w, 1.0));
  }
  return packed(within, shape, width, width == 1 ? 255 : 65535);
}

Json packed_matrix(const DoubleMatrix& matrix) {
  if (matrix.values.empty()) return nullptr;
  double largest = 0;
  for (const double x : matrix.values) {
    require<NumericError>(std::isfinite(x), "html: a matrix of tokens holds {}: it must be finite", x);
    largest = std::max(largest, std::abs(x));
  }
  Json out = packed(matrix.values, {matrix.rows, matrix.cols}, 2, largest > 0 ? 32767 / largest : 0);
  out["scale"] = largest;
  return out;
}

// Packs a trace, with one array (heads, queries, keys) for each attention layer.
Json packed_trace(const ForwardTrace& trace, const InspectReport& report, std::size_t width) {
  const ModelConfig& model = report.config.model;
  Json json = example_json(trace, model, report.tokens);
  Json& attention = json["attention"] = Json::array();
  std::span<const double> rest = trace.attention;
  for (const AttentionLayer& layer : attention_layers(model)) {
    const Sizes shape{layer.heads, trace.queries(layer), trace.keys(layer)};
    const auto size = static_cast<std::size_t>(shape[0] * shape[1] * shape[2]);
    attention.push_back(packed_weights(rest.first(size), shape, width));
    rest = rest.subspan(size);
  }
  return json;
}

// Returns the report for the page: maps are packed, and the user's own sequence is the first example.
Json packed_report(const InspectReport& report, const ForwardTrace* own) {
  const std::vector<AttentionLayer> layers = attention_layers(report.config.model);
  Json json = to_json(report);
  for (std::size_t i = 0; i < report.heads.size(); ++i) {
    const HeadReport& head = report.heads[i];
    const AttentionLayer& layer = layers[static_cast<std::size_t>(head.effects.id.layer)];
    Json& out = json["heads"][i];
    out["mean_weights"] = packed_weights(head.mean_weights, {report.queries(layer), report.keys(layer)});
    out["circuits"]["qk_tokens"] = packed_matrix(head.circuits.qk_tokens);
    out["circuits"]["ov_tokens"] = packed_matrix(head.circuits.ov_tokens);
  }
  if (const DoubleMatrix& rollout = report.rollout; !rollout.values.empty())
    json["rollout"] = packed_weights(rollout.values, {rollout.rows, rollout.cols});
  std::vector<const ForwardTrace*> traces;
  if (own != nullptr) traces.push_back(own);
  for (const ForwardTrace& example : report.examples) traces.push_back(&example);
  std::size_t numbers = 0;
  for (const ForwardTrace* trace : traces) numbers += trace->attention.size();
  const std::size_t width = numbers * 2 / 3 * 4 <= kTwoByteBudget ? 2 : 1;
  Json& examples = json["examples"] = Json::array();
  for (const ForwardTrace* trace : traces) examples.push_back(packed_trace(*trace, report, width));
  if (own != nullptr) examples[0]["own"] = true;
  return json;
}

// Returns JSON that is safe inside <script>: characters that could end the element or a line are escaped.
std::string script_safe(const Json& json) {
  const std::string text = json_text(json, -1, Json::error_handler_t::replace);
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = std::string_view(text).substr(i, 3);
    if (rest[0] == '<' || rest[0] == '>' || rest[0] == '&') {
      out += rest[0] == '<' ? "\\u003c" : rest[0] == '>' ? "\\u003e" : "\\u0026";
    } else if (rest == "\u2028" || rest == "\u2029") {
      out += rest == "\u2028" ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += rest[0];
    }
  }
  return out;
}

// Returns the Content-Security-Policy: nothing is loaded, and only the style and script of the page run.
std::string policy() {
  return "default-src 'none'; style-src " + page::policy_source(page::style_hash()) + "; script-src " +
         page::policy_source(page::script_hash()) + "; base-uri 'none'; form-action 'none'";
}

}  // namespace

std::string page::policy_source(std::string_view hash) {
  return "'sha256-" + base64(from_hexadecimal(hash)) + "'";
}

std::string html_page(const InspectReport& report, const ForwardTrace* own) {
  std::string script;
  for (const std::string_view piece : page::scripts()) script += piece;
  const std::vector<std::pair<std::string_view, std::string>> parts = {
      {"{{policy}}", policy()},
      {"{{style}}", std::string(page::style())},
      {"{{report}}", script_safe(packed_report(report, own))},
      {"{{script}}", std::move(script)}};
  std::string out;
  std::string_view rest = page::html();
  for (const auto& [place, text] : parts) {
    const std::size_t at = rest.find(place);
    out.append(rest.substr(0, at)).append(text);
    rest.remove_prefix(at + place.size());
  }
  return out.append(rest);
}

}  // namespace thimble
