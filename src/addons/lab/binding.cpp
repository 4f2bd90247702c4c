// What JavaScript calls.
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "addons/lab/engine.h"

// Answers a request; the caller frees the text.
extern "C" char* lab_call(const char* request) { return ::strdup(thimble::lab::answer(request).c_str()); }

int main() {
  std::filesystem::create_directories(thimble::lab::kFiles);
  return ::chdir(thimble::lab::kFiles);
}
