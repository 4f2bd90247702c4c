// The reader of safetensors files takes any bytes or throws CheckpointError.
#include "thimble/engine/error.h"
#include "thimble/train/safetensors.h"

using namespace thimble;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const SafetensorsFile file(std::string(reinterpret_cast<const char*>(data), size), "FILE");
    for (const auto& [name, entry] : file.entries()) {
      try {
        file.values<float>(name);
        file.values<std::int64_t>(name);
      } catch (const CheckpointError&) {
      }
    }
  } catch (const CheckpointError&) {
  }
  return 0;
}
