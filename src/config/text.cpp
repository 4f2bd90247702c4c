#include "config/text.h"

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "thimble/core/error.h"
#include "thimble/core/text.h"

namespace thimble::config {
namespace {

bool continues(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

}  // namespace

std::string read_file(const std::string& path) {
  constexpr std::size_t kLargest = 1 << 20;
  require<ConfigError>(utf8_size(path) == path.size(), "{}: the path is not UTF-8 text; rename the file",
                       printable(path));
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  require<ConfigError>(!std::filesystem::is_directory(status),
                       "{}: cannot be read: it is a directory, not a config file", path);
  require<ConfigError>(!std::filesystem::exists(status) || std::filesystem::is_regular_file(status),
                       "{}: cannot be read: it is a pipe or a device, not a config file", path);
  std::ifstream file(path, std::ios::binary);
  require<ConfigError>(file.is_open(), "{}: cannot be read: {}", path,
                       std::generic_category().message(errno));
  std::string text(kLargest + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  require<ConfigError>(!file.bad(), "{}: cannot be read: {}", path, std::generic_category().message(errno));
  text.resize(static_cast<std::size_t>(file.gcount()));
  require<ConfigError>(text.size() <= kLargest, "{}: more than {} bytes, which is no config", path, kLargest);
  return text;
}

bool check_text(std::string_view text, int file, Report& report) {
  Place place{.file = file};
  bool indentation = true;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    const std::size_t size = character_size(text.substr(i));
    std::string wrong;
    if (size == 0) wrong = "not UTF-8 text";
    if (is_control(c) && c != '\n' && c != '\r' && c != '\t')
      wrong = fmt::format("a control character, 0x{:02x}", c);
    if (c == '\t' && indentation) wrong = "a tab; YAML is indented with spaces";
    if (!wrong.empty()) {
      report.problem(place, "", wrong);
      return false;
    }
    indentation = c == '\n' || (indentation && c == ' ');
    place.column = c == '\n' ? 1 : place.column + 1;
    place.line += c == '\n';
    i += size;
  }
  return true;
}

std::string shortened(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return std::string(text);
  while (bytes > 0 && continues(text[bytes])) --bytes;
  return fmt::format("{}...", text.substr(0, bytes));
}

}  // namespace thimble::config
