// Parts of the subcommand inspect.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "cli/cli.h"
#include "thimble/inspect/passage.h"

namespace thimble::cli {

// Which heads to show; all by default.
struct HeadChoice {
  std::optional<std::int64_t> layer, head;

  void add_to(CLI::App& command);
  void check(const ModelConfig& model) const;  // throws ConfigError when the model has no such layer or head
  bool has(std::int64_t l, std::int64_t h) const { return l == layer.value_or(l) && h == head.value_or(h); }
};

// The subcommand for one's own sequence: its tokens and the predictions below them, and maps of the heads.
void show_input(const ModelSource& source, const std::string& text, const HeadChoice& heads,
                const Output& output);

}  // namespace thimble::cli
