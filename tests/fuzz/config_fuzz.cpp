// The reader of configs takes any text or throws ConfigError; what it takes, its dump gives back. The last
// line of the input, when there are several, is an override as well.
#include <stdexcept>
#include <string>
#include <vector>

#include "thimble/engine/error.h"
#include "thimble/train/config.h"

using namespace thimble;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  std::vector<std::string> overrides;
  if (const std::size_t end = text.rfind('\n'); end != text.npos && end + 1 < text.size())
    overrides.push_back(text.substr(end + 1));
  Config config;
  try {
    config = parse_config(text.substr(0, text.rfind('\n')), "FILE", overrides);
  } catch (const ConfigError&) {
    return 0;
  }
  const std::string yaml = to_yaml(config);
  if (to_yaml(parse_config(yaml, "FILE")) != yaml)
    throw std::logic_error("the dump gives another config:\n" + yaml);
  return 0;
}
