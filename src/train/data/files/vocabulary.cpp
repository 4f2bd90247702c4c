#include "train/data/files/vocabulary.h"

#include <algorithm>

#include "thimble/engine/error.h"
#include "train/data/files/data_lines.h"
#include "train/files/text/suggest.h"
#include "train/files/text/text.h"

namespace thimble {

constexpr std::size_t kMaxToken = 4096;
constexpr std::size_t kMaxDistinct = 1 << 24;  // tokens of files, before rare ones are left out

void Vocabulary::read(const DataText& file, Problems& problems, DataFile& source) {
  for_lines(
      file, Lines::filled, source,
      [&](std::size_t line, const char* rule) { problems.add(file.name, line, rule); },
      [&](std::string_view line, std::size_t, bool) {
        const std::size_t before = numbers_.size();
        number(line, false);
        require<DataError>(numbers_.size() > before, "duplicate token {}", line);
      });
  fixed_by_ = "the vocabulary file";
}

void Vocabulary::read(const std::vector<std::string>& trained) {
  for (const std::string& token : trained) {
    const auto before = static_cast<std::int32_t>(numbers_.size());
    require<DataError>(number(token, false) == before, "the model's vocabulary: duplicate token {}",
                       printable(token));
  }
  fixed_by_ = "the vocabulary that the model was trained with";
}

std::int32_t Vocabulary::number(std::string_view token, bool guess) {
  if (const auto found = numbers_.find(token); found != numbers_.end()) return found->second;
  require<DataError>(!token.empty(), "empty token");
  require<DataError>(token.size() <= kMaxToken, "token of {} bytes, {}; the maximum is {}", token.size(),
                     printable(token), kMaxToken);
  const auto is_unseen = [](char c) { return is_control(c) && c != '\t' && c != '\n' && c != '\r'; };
  require<DataError>((any_control_ && token.size() == 1) || std::ranges::none_of(token, is_unseen),
                     "control character in token {}", printable(token));
  if (fixed()) {
    if (const auto unknown = numbers_.find(kUnknownToken); has_unknown_ && unknown != numbers_.end())
      return unknown->second;
    std::vector<std::string_view> names;
    if (guess)
      for (const auto& [name, id] : sorted()) names.push_back(name);
    throw DataError(
        fmt::format("token {} is not in {}{}", printable(token), fixed_by_, did_you_mean(token, names)));
  }
  require<DataError>(numbers_.size() < kMaxDistinct, "token {} is one more than {} different ones",
                     printable(token), kMaxDistinct);
  const auto id = static_cast<std::int32_t>(numbers_.size());
  numbers_.emplace(token, id);
  return id;
}

std::vector<std::pair<std::string_view, std::int32_t>> Vocabulary::sorted() const {
  std::vector<std::pair<std::string_view, std::int32_t>> all(numbers_.begin(), numbers_.end());
  std::ranges::sort(all);
  return all;
}

}  // namespace thimble
