#include "addons/cluster/claim.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>

#include "thimble/engine/error.h"
#include "thimble/train/file.h"
#include "train/files/lock.h"

namespace thimble {

namespace fs = std::filesystem;

namespace {

fs::path claim_file(const fs::path& name, int number) {
  return name.string() + fmt::format(".claim-{}", number);
}

// Returns the number of the claim that counts; 0: none.
int newest_claim(const fs::path& name) {
  int number = 0;
  while (fs::exists(claim_file(name, number + 1))) ++number;
  return number;
}

// Returns a text that differs between machines, and between starts of a machine; "" if there is none.
std::string boot_id() {
  try {
    return read_file("/proc/sys/kernel/random/boot_id");
  } catch (const FileError&) {
    return "";
  }
}

double seconds_of(const timespec& time) {
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Returns the time of the file system, which may differ from this machine's, from a file made for that.
double file_system_time(const fs::path& directory) {
  std::string name = (directory / "clock.XXXXXX.tmp").string();
  constexpr int kSuffix = 4;
  const int descriptor = ::mkostemps(name.data(), kSuffix, O_CLOEXEC);
  require<FileError>(descriptor >= 0, "{}: cannot be written: {}", directory.string(), system_message(errno));
  struct stat status {};
  const bool known = ::futimens(descriptor, nullptr) == 0 && ::fstat(descriptor, &status) == 0;
  const int error = errno;
  ::close(descriptor);
  ::unlink(name.c_str());
  require<FileError>(known, "{}: cannot be read: {}", name, system_message(error));
  return seconds_of(status.st_mtim);
}

// A claim file as another process finds it: its content is the holder, the machine and the time, a line each.
struct FoundClaim {
  std::string content;
  bool held = false;

  std::string holder() const { return content.substr(0, content.find('\n')); }
};

FoundClaim find_claim(const fs::path& file, double lease) {
  FoundClaim found;
  const int descriptor =
      ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // NFS then fetches its time
  if (descriptor < 0) return found;                             // released meanwhile
  char buffer[1024];
  const ssize_t size = ::read(descriptor, buffer, sizeof buffer);
  struct stat status {};
  if (size >= 0 && ::fstat(descriptor, &status) == 0) {
    found.content.assign(buffer, static_cast<std::size_t>(size));
    const std::string machine = boot_id();
    // On its own machine a lock shows whether the holder lives; on others, the lease.
    if (!machine.empty() && found.content.find('\n' + machine) != std::string::npos)
      found.held = ::flock(descriptor, LOCK_SH | LOCK_NB) != 0;
    else
      found.held = file_system_time(file.parent_path()) - seconds_of(status.st_mtim) <= lease;
  }
  ::close(descriptor);
  return found;
}

}  // namespace

Claim::Claim(fs::path name, int number, int descriptor)
    : name_(std::move(name)), number_(number), descriptor_(descriptor) {
  const bool locked = ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
  const std::string content = fmt::format("{}\n{}{}\n", process_name(), locked ? boot_id() : "\n",
                                          std::chrono::system_clock::now().time_since_epoch().count());
  // Without its content the claim holds too, until the lease ends.
  [[maybe_unused]] const ssize_t written = ::write(descriptor, content.data(), content.size());
}

Claim::~Claim() {
  // Claims that this one replaced go after it, so that none of them counts again.
  for (int number = number_; number > 0 && (counts_ || number == number_); --number)
    ::unlink(claim_file(name_, number).c_str());
  ::close(descriptor_);
}

fs::path Claim::file() const { return claim_file(name_, number_); }

std::unique_ptr<Claim> Claim::take(const fs::path& name, double lease) {
  const int before = newest_claim(name);
  FoundClaim replaced;
  if (before > 0) replaced = find_claim(claim_file(name, before), lease);
  if (replaced.held) return nullptr;
  const fs::path file = claim_file(name, before + 1);
  const int descriptor = ::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (descriptor < 0 && errno == EEXIST) return nullptr;
  require<FileError>(descriptor >= 0, "{}: cannot be written: {}", file.string(), system_message(errno));
  std::unique_ptr<Claim> claim(new Claim(name, before + 1, descriptor));
  // Meanwhile the replaced claim may have been taken over, released and its number used again.
  claim->counts_ = newest_claim(name) == before + 1 &&
                   (before == 0 || find_claim(claim_file(name, before), lease).content == replaced.content);
  return claim->counts_ ? std::move(claim) : nullptr;
}

bool Claim::renew() {
  ::futimens(descriptor_, nullptr);
  return is_same_file(descriptor_, file()) && !fs::exists(claim_file(name_, number_ + 1));
}

std::string claim_holder(const fs::path& name, double lease) {
  const int number = newest_claim(name);
  if (number == 0) return "";
  const FoundClaim found = find_claim(claim_file(name, number), lease);
  return found.held ? found.holder() : "";
}

}  // namespace thimble
