// The files of src/inspect/report/page, put into the library by cmake/page.cmake.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace thimble::page {

std::string_view html();   // with the placeholders {{policy}}, {{style}}, {{report}} and {{script}}
std::string_view style();  // page.css
std::span<const std::string_view> scripts();  // one script, in pieces
std::string_view style_hash();                // SHA-256 of style(), in hexadecimal
std::string_view script_hash();               // SHA-256 of the whole script, in hexadecimal

// Returns a hash as a source of a Content-Security-Policy: 'sha256-...', in base64.
std::string policy_source(std::string_view hash);

}  // namespace thimble::page
