#include "inspect/report/page.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "thimble/engine/error.h"

namespace thimble::page {

namespace {

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

// Returns a hash as a source of a Content-Security-Policy: 'sha256-...', in base64.
std::string policy_source(std::string_view hash) { return "'sha256-" + base64(from_hexadecimal(hash)) + "'"; }

// Returns the Content-Security-Policy: nothing is loaded, and only the style and script of the page run.
std::string policy(const Script& script) {
  return "default-src 'none'; style-src " + policy_source(style_hash()) + "; script-src " +
         policy_source(script.hash) + "; base-uri 'none'; form-action 'none'";
}

}  // namespace

Json packed(std::span<const double> values, const Sizes& shape, std::size_t width, double steps) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(values.size() * width);
  for (const double value : values) {
    const auto number = static_cast<std::uint64_t>(std::llround(value * steps));
    for (std::size_t k = 0; k < width; ++k) bytes.push_back(static_cast<std::uint8_t>(number >> 8 * k));
  }
  return {{"shape", shape}, {"bytes", width}, {"data", base64(bytes)}};
}

Json packed_weights(std::span<const double> weights, const Sizes& shape, std::size_t width) {
  constexpr double kRounding = 1e-5;
  std::vector<double> within;
  for (const double w : weights) {
    require<NumericError>(w >= 0 && w <= 1 + kRounding,
                          "html: an attention weight is {}: it must be within 0 and 1", w);
    within.push_back(std::min(w, 1.0));
  }
  return packed(within, shape, width, width == 1 ? 255 : 65535);
}

Json packed_attention(const ForwardTrace& trace, const ModelConfig& model, std::size_t width) {
  Json layers = Json::array();
  for (const auto& [shape, values] : trace.by_layer(model))
    layers.push_back(packed_weights(values, shape, width));
  return layers;
}

Json packed_trace(const ForwardTrace& trace, const ModelConfig& model, const Names& tokens,
                  std::size_t width) {
  Json json = sequence_json(trace, tokens);
  json["attention"] = packed_attention(trace, model, width);
  return json;
}

std::string document(std::string_view command, const Json& report, const Script& script) {
  std::map<std::string_view, std::string> parts = {{"policy", policy(script)},
                                                   {"command", std::string(command)},
                                                   {"style", std::string(style())},
                                                   {"report", script_safe(report)}};
  for (const std::string_view piece : script.pieces) parts["script"] += piece;
  std::string out;
  std::string_view rest = html();
  for (std::size_t at = 0; (at = rest.find("{{")) != std::string_view::npos;) {
    const std::size_t end = rest.find("}}", at);
    out.append(rest.substr(0, at)).append(parts.at(rest.substr(at + 2, end - at - 2)));
    rest.remove_prefix(end + 2);
  }
  return out.append(rest);
}

}  // namespace thimble::page
