#include "train/files/path.h"

#include "thimble/engine/error.h"
#include "train/files/hash.h"
#include "train/files/text/text.h"

namespace thimble {

void require_utf8(const std::filesystem::path& path) {
  const std::string& text = path.native();
  require<FileError>(utf8_size(text) == text.size(),
                     "{}: the path is not UTF-8 text; rename it, or choose another", printable(text));
}

std::filesystem::path path_under_runs(const std::string& name, std::string_view content) {
  return fmt::format("runs/{}-{:08x}", name, static_cast<std::uint32_t>(hash_of(content)));
}

namespace {

// Returns whether NewFile could have made a file of the name: NAME.PROCESS-NUMBER.tmp.
bool is_temporary(const std::filesystem::path& path) {
  std::string name = path.filename().string();
  if (path.extension() != ".tmp") return false;
  name.resize(name.size() - 4);
  for (const char before : {'-', '.'}) {
    const std::size_t at = name.find_last_not_of("0123456789");
    if (at == name.npos || at + 1 == name.size() || name[at] != before) return false;
    name.resize(at);
  }
  return !name.empty();
}

}  // namespace

void remove_temporary_files(const std::filesystem::path& directory, std::chrono::seconds age) {
  const auto oldest = std::filesystem::file_time_type::clock::now() - age;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (is_temporary(entry.path()) && std::filesystem::is_regular_file(entry.symlink_status()) &&
        (age.count() == 0 || entry.last_write_time(gone) < oldest))
      std::filesystem::remove(entry.path());
}

}  // namespace thimble
