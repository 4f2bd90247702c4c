// The vocabulary of data files, while they are read.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "train/data/files/file_source.h"
#include "train/data/files/problems.h"
#include "train/files/hash.h"

namespace thimble {

// The numbers of tokens, given in order of their first occurrence or fixed.
class Vocabulary {
 public:
  // With `has_unknown`, a fixed vocabulary that has <unk> gives its number to other tokens. With `any_control`,
  // a token may be a control character.
  explicit Vocabulary(bool has_unknown, bool any_control = false)
      : has_unknown_(has_unknown), any_control_(any_control) {}

  // Reads the tokens of a vocabulary file, sets what is known of the file, and allows no others from then on.
  void read(const DataText&, Problems&, DataFile& source);

  // Takes the tokens that a model was trained with, in the order of their ids, and allows no others from then
  // on. Throws DataError for an invalid or duplicate token.
  void read(const std::vector<std::string>& trained);

  // Returns the number of a token. Throws DataError, whose message is only the rule, when the token is
  // invalid or not in the vocabulary, or when there are too many; with `guess`, it suggests a similar token.
  std::int32_t number(std::string_view token, bool guess);

  bool fixed() const { return !fixed_by_.empty(); }
  std::size_t size() const { return numbers_.size(); }
  // Returns the tokens with their numbers, in the order of their bytes.
  std::vector<std::pair<std::string_view, std::int32_t>> sorted() const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return static_cast<std::size_t>(hash_of(text)); }
  };

  std::unordered_map<std::string, std::int32_t, Hash, std::equal_to<>> numbers_;
  std::string_view fixed_by_{};
  bool has_unknown_, any_control_;
};

}  // namespace thimble
