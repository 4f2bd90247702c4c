#include "thimble/inspect/patch.h"

#include <algorithm>

#include "inspect/patching/corruption.h"
#include "inspect/patching/patching.h"
#include "inspect/scores/require_heads.h"
#include "thimble/engine/error.h"
#include "thimble/train/json.h"
#include "thimble/train/run.h"
#include "train/config/with_precision.h"
#include "train/files/line_reader.h"
#include "train/files/text/text.h"

namespace thimble {

std::optional<std::int64_t> replaced_position(const std::string& corruption) {
  constexpr std::string_view kToken = "token ";
  if (!corruption.starts_with(kToken)) return {};
  const auto position = parse_number<std::int64_t>(corruption.substr(kToken.size()));
  return position && *position >= 0 ? position : std::nullopt;
}

void check_corruption(const std::string& name) {
  require<ConfigError>(
      name == "resample" || name == "order" || name == "target" || replaced_position(name),
      "--corruption {}: must be resample, order, target, or \"token K\" with a position K from 0",
      printable(name));
}

namespace {

TextPair text_pair(std::string_view line) {
  const SortedJson json = parse_untrusted_json(line);
  const auto is_position = [](const SortedJson& value) {
    return value.is_number_integer() && value.get<double>() >= 0 && value.get<double>() < 1e9;
  };
  bool valid = json.is_object();
  TextPair pair;
  if (valid)
    for (const auto& [key, value] : json.items()) {
      if (key == "clean" && value.is_string()) {
        pair.clean = value.get<std::string>();
      } else if (key == "corrupted" && value.is_string()) {
        pair.corrupted = value.get<std::string>();
      } else if (key == "positions" && value.is_array() && std::ranges::all_of(value, is_position)) {
        pair.positions = value.get<std::vector<std::int64_t>>();
      } else {
        valid = false;
      }
    }
  require<DataError>(
      valid && !pair.clean.empty() && !pair.corrupted.empty(),
      R"(a line must be {{"clean": "...", "corrupted": "..."}}, two texts as thimble trace takes them, with "positions": [...] of the answers that count, from 0, if not all do)");
  return pair;
}

}  // namespace

std::vector<TextPair> read_text_pairs(const std::string& file) {
  const InputFile input(file);
  LineReader lines(input);
  std::vector<TextPair> pairs;
  std::size_t number = 0;
  for (std::string_view line; lines.next(line);) {
    const std::string where = fmt::format("{}:{}: ", printable(file), ++number);
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    try {
      require<DataError>(lines.size() <= LineReader::kMaxLine, "a line of {} bytes; at most {} are read",
                         lines.size(), LineReader::kMaxLine);
      pairs.push_back(text_pair(line));
    } catch (const DataError& e) {
      throw DataError(where + e.what());
    }
    pairs.back().where = where;
  }
  require<DataError>(!pairs.empty(), R"({}: no pair; write {{"clean": "...", "corrupted": "..."}} a line)",
                     printable(file));
  return pairs;
}

PatchingReport patch(const ModelSource& model, std::int64_t clean, std::int64_t corrupted) {
  require_heads(model.config.model);
  return with_precision(model.config, [&]<class R>() { return run_patching<R>(model, clean, corrupted); });
}

PatchingReport patch_pairs(const ModelSource& model, const PairChoice& choice) {
  require_heads(model.config.model);
  return with_precision(model.config, [&]<class R>() { return run_patching_pairs<R>(model, choice); });
}

EdgesReport patch_edges(const ModelSource& model, const PairChoice& choice) {
  require_heads(model.config.model);
  return with_precision(model.config, [&]<class R>() { return run_edges<R>(model, choice); });
}

}  // namespace thimble
