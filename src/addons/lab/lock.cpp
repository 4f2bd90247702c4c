// The files of a page belong to it alone.
#include "train/files/lock.h"

namespace thimble {

std::string process_name() { return "this page"; }

DirectoryLock::DirectoryLock(const std::filesystem::path& directory) : path_(directory / kFile) {}

DirectoryLock::~DirectoryLock() = default;

bool DirectoryLock::is_held(const std::filesystem::path&) { return false; }

}  // namespace thimble
