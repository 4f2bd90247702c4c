#include "thimble/core/path.h"

#include "thimble/core/error.h"
#include "thimble/core/hash.h"
#include "thimble/core/text.h"

namespace thimble {

void require_utf8(const std::filesystem::path& path) {
  const std::string& text = path.native();
  require<FileError>(utf8_size(text) == text.size(),
                     "{}: the path is not UTF-8 text; rename it, or choose another", printable(text));
}

std::filesystem::path path_under_runs(const std::string& name, std::string_view content) {
  return fmt::format("runs/{}-{:08x}", name, static_cast<std::uint32_t>(hash_of(content)));
}

void remove_temporary_files(const std::filesystem::path& directory, std::chrono::seconds age) {
  const auto oldest = std::filesystem::file_time_type::clock::now() - age;
  std::error_code gone;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.path().extension() == ".tmp" && (age.count() == 0 || entry.last_write_time(gone) < oldest))
      std::filesystem::remove(entry.path());
}

}  // namespace thimble
