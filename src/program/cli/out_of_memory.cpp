// The end of memory: what did not fit is remembered, and std::bad_alloc ends the program with a message also where it
// cannot propagate, as destructors of JSON values and directory iterators allocate memory.
#include "program/cli/out_of_memory.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <exception>
#include <new>

#include "program/cli/cli.h"
#include "train/files/progress.h"
#include "train/files/text/format.h"

namespace {

// The size of the last allocation that failed; std::terminate does not always know the exception.
std::atomic<std::size_t> failed_size = 0;

[[noreturn]] void on_terminate() {
  if (failed_size == 0) std::abort();
  thimble::cli::write_plain(thimble::cli::kOutOfMemory);
  ::_exit(thimble::cli::kBadInput);
}

[[maybe_unused]] const std::terminate_handler kTerminateBefore = std::set_terminate(on_terminate);

void* checked(void* memory, std::size_t size) {
  if (memory != nullptr) return memory;
  failed_size = size;
  throw std::bad_alloc();
}

// What to do about it, by command.
constexpr std::string_view kTraining =
                               "lower train.batch, train.threads, task.length or the sizes of the model",
                           kSequences = "lower --sequences, --threads or task.length";
constexpr std::pair<std::string_view, std::string_view> kRemedies[] = {
    {"train", kTraining},
    {"bench", kTraining},
    {"gradcheck", "lower task.length or the sizes of the model"},
    {"eval", kSequences},
    {"ablate", kSequences},
    {"compare", "lower --sequences"},
    {"inspect", "lower --sequences, --examples, --threads or task.length"},
    {"patch", "lower --pairs, --sequences or --threads"},
    {"trace", "give a shorter sequence, or lower --examples"},
    {"generate", "lower --samples or --beams"},
};

}  // namespace

// These do what those of the standard library do, and remember.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void* operator new(std::size_t size) { return checked(std::malloc(size), size); }

void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto to = static_cast<std::size_t>(alignment);
  return checked(std::aligned_alloc(to, (size + to - 1) / to * to), size);
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
#endif

namespace thimble::cli {

std::string out_of_memory(std::string_view command) {
  const std::string_view work = interrupted_work();
  std::string text = "out of memory";
  if (!work.empty()) text += fmt::format(" while {}", work);
  if (failed_size > 0)
    text += fmt::format(": no room for {} more", format_bytes(static_cast<double>(failed_size.load())));
  if (work == kReadingData) return text + "; use a smaller file";
  if (work == kTimingMachine)
    return text + ", which the config does not change; free memory, or raise its limit";
  for (const auto& [name, remedy] : kRemedies)
    if (name == command) text += fmt::format("; {}", remedy);
  return text;
}

}  // namespace thimble::cli
