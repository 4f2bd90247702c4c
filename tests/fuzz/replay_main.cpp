// Runs a fuzz target on files, without libFuzzer: replay DIRECTORY...
#include <cstdint>
#include <cstdio>
#include <filesystem>

#include "thimble/train/file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  int inputs = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
      std::printf("%s\n", entry.path().c_str());
      const std::string content = thimble::read_file(entry.path());
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(content.data()), content.size());
      ++inputs;
    }
  }
  return inputs > 0 ? 0 : 1;
}
