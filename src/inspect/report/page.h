// The parts of HTML pages. The files of src/inspect/report/page are put into the library by cmake/page.cmake.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/inspect/forward_trace.h"
#include "thimble/train/json.h"
#include "thimble/train/listing.h"

namespace thimble::page {

// The script of a page, in pieces, and the SHA-256 of the whole, in hexadecimal.
struct Script {
  std::span<const std::string_view> pieces;
  std::string_view hash;
};

std::string_view
html();  // with the placeholders {{policy}}, {{command}}, {{style}}, {{report}} and {{script}}
std::string_view style();       // page.css
std::string_view style_hash();  // SHA-256 of style(), in hexadecimal
Script inspect_script();
Script compare_script();

// Returns a self-contained HTML file of a command, such as "inspect", with a report for the script.
std::string document(std::string_view command, const Json& report, const Script& script);

using Sizes = std::vector<std::int64_t>;

// Returns {"shape", "bytes", "data"}: each value, in units of 1 / steps, as a little-endian integer of `width`
// bytes, in base64.
Json packed(std::span<const double> values, const Sizes& shape, std::size_t width, double steps);

// Packs attention weights in units of 1/65535, or for a width of 1 of 1/255. Throws NumericError for a weight
// outside [0, 1].
Json packed_weights(std::span<const double> weights, const Sizes& shape, std::size_t width = 2);

// Packs the attention of a trace, one array (heads, queries, keys) for each attention layer; alone, and in the
// JSON of the trace.
Json packed_attention(const ForwardTrace& trace, const ModelConfig& model, std::size_t width);
Json packed_trace(const ForwardTrace& trace, const ModelConfig& model, const Names& tokens,
                  std::size_t width);

}  // namespace thimble::page
