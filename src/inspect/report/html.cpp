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

constexpr std::size_t kTwoByteBudget = 2 << 20;  // of base64, for the attention of all examples together

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

// Nested arrays as their sizes and their numbers in order.
struct Flat {
  std::vector<std::size_t> shape;
  std::vector<double> values;
};

void append(const Json& array, std::size_t depth, Flat& flat) {
  if (!array.is_array()) {
    require<ShapeError>(depth == flat.shape.size(), "html: a map with rows of different lengths");
    require<NumericError>(array.is_number(), "html: a map holds {}: it must hold numbers", json_text(array));
    flat.values.push_back(array.get<double>());
    return;
  }
  if (depth == flat.shape.size() && flat.values.empty()) flat.shape.push_back(array.size());
  require<ShapeError>(depth < flat.shape.size() && array.size() == flat.shape[depth],
                      "html: a map with rows of different lengths");
  for (const Json& part : array) append(part, depth + 1, flat);
}

Flat flatten(const Json& map) {
  Flat flat;
  append(map, 0, flat);
  return flat;
}

// Each value in steps of 1 / steps, as a whole number of `width` bytes, the lowest first.
Json packed(const Flat& flat, std::size_t width, double steps) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(flat.values.size() * width);
  for (const double value : flat.values) {
    const auto number = static_cast<std::uint64_t>(std::llround(value * steps));
    for (std::size_t k = 0; k < width; ++k) bytes.push_back(static_cast<std::uint8_t>(number >> 8 * k));
  }
  return {{"shape", flat.shape}, {"bytes", width}, {"data", base64(bytes)}};
}

Json packed_weights(const Flat& flat, std::size_t width = 2) {
  constexpr double kRounding = 1e-5;
  for (const double w : flat.values)
    require<NumericError>(w >= 0 && w <= 1 + kRounding,
                          "html: an attention weight is {}: it must be within 0 and 1", w);
  Flat within = flat;
  for (double& w : within.values) w = std::min(w, 1.0);
  return packed(within, width, width == 1 ? 255 : 65535);
}

Json packed_signed(const Flat& flat) {
  double largest = 0;
  for (const double x : flat.values) {
    require<NumericError>(std::isfinite(x), "html: a matrix of tokens holds {}: it must be finite", x);
    largest = std::max(largest, std::abs(x));
  }
  Json out = packed(flat, 2, largest > 0 ? 32767 / largest : 0);
  out["scale"] = largest;
  return out;
}

Json packed_head(Json head) {
  if (head.contains("mean_weights")) head["mean_weights"] = packed_weights(flatten(head["mean_weights"]));
  if (head.contains("circuits"))
    for (auto& [key, value] : head["circuits"].items())
      if (key.ends_with("_tokens") && !value.is_null()) value = packed_signed(flatten(value));
  return head;
}

// The attention of every place by itself: (heads, queries, keys).
Json packed_examples(const std::vector<const Json*>& examples) {
  std::vector<std::vector<Flat>> maps;
  std::size_t numbers = 0;
  for (const Json* example : examples) {
    std::vector<Flat>& places = maps.emplace_back();
    for (const Json& place : example->at("attention")) {
      places.push_back(flatten(place));
      numbers += places.back().values.size();
    }
  }
  const std::size_t width = numbers * 2 / 3 * 4 <= kTwoByteBudget ? 2 : 1;
  Json out = Json::array();
  for (std::size_t i = 0; i < examples.size(); ++i) {
    Json example = Json::object();
    for (const auto& [key, value] : examples[i]->items())
      if (key != "attention") example[key] = value;
    Json& attention = example["attention"] = Json::array();
    for (const Flat& place : maps[i]) attention.push_back(packed_weights(place, width));
    out.push_back(std::move(example));
  }
  return out;
}

// The report as the page reads it: its maps are packed, and the user's own sequence is the first example.
Json packed_report(const Json& report) {
  std::vector<const Json*> examples;
  if (report.contains("input")) examples.push_back(&report["input"]);
  for (const Json& example : report.at("examples")) examples.push_back(&example);
  Json out = Json::object();
  for (const auto& [key, value] : report.items()) {
    if (key == "heads") {
      Json& heads = out[key] = Json::array();
      for (const Json& head : value) heads.push_back(packed_head(head));
    } else if (key == "examples") {
      out[key] = packed_examples(examples);
      if (report.contains("input")) out[key][0]["own"] = true;
    } else if (key == "rollout" && !value.is_null()) {
      out[key] = packed_weights(flatten(value));
    } else if (key != "input") {
      out[key] = value;
    }
  }
  return out;
}

// JSON that can stand inside <script>: what could end the element, or a line of a script, is written as an
// escape.
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

// Content-Security-Policy: nothing is loaded, and no style or script runs but the two of this page.
std::string policy() {
  return "default-src 'none'; style-src " + page::policy_source(page::style_hash()) + "; script-src " +
         page::policy_source(page::script_hash()) + "; base-uri 'none'; form-action 'none'";
}

}  // namespace

std::string page::policy_source(std::string_view hash) {
  return "'sha256-" + base64(from_hexadecimal(hash)) + "'";
}

std::string html_page(const Json& report) {
  std::string script;
  for (const std::string_view piece : page::scripts()) script += piece;
  const std::vector<std::pair<std::string_view, std::string>> parts = {
      {"{{policy}}", policy()},
      {"{{style}}", std::string(page::style())},
      {"{{report}}", script_safe(packed_report(report))},
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
