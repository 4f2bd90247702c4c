#include "thimble/train/source.h"

#include <algorithm>

#include "thimble/engine/error.h"
#include "train/data/layout.h"
#include "train/files/hash.h"
#include "train/files/progress.h"

namespace thimble {

std::string_view split_name(Split split) {
  constexpr std::string_view kNames[] = {"train", "validation", "test", "varied"};
  return kNames[static_cast<std::size_t>(split)];
}

Split split_of_hash(std::uint64_t hash) {
  constexpr std::uint64_t kTenth = std::numeric_limits<std::uint64_t>::max() / 10;
  return hash < kTenth ? Split::validation : hash < 2 * kTenth ? Split::test : Split::train;
}

Split split_by_hash(std::span<const std::int32_t> input) {
  return split_of_hash(hash_of({reinterpret_cast<const char*>(input.data()), input.size_bytes()}));
}

namespace {

std::uint64_t input_hash(const Source& source, Split split, std::int64_t index, Example& out) {
  source.example(split, index, out);
  return hash_of({reinterpret_cast<const char*>(out.input.data()), out.input.size() * sizeof(std::int32_t)});
}

}  // namespace

void Source::add_inputs(Split split, std::int64_t count, double most, Hashes& inputs) const {
  Example e;
  for (std::int64_t i = 0; i < count && static_cast<double>(inputs.size()) < most; ++i)
    inputs.insert(input_hash(*this, split, i, e));
}

Coincidences Source::coincidences(Split split, std::int64_t count, std::int64_t train) const {
  Coincidences found;
  if (disjoint_ || starts() > 0) return found;    // windows at random places are not compared
  if (train == 0) return {.equal_lines = count};  // unlimited training draws every input sooner or later
  ProgressCounter progress("comparing the splits", 1);
  Hashes inputs, texts;
  const double most = files_.empty() ? distinct_inputs() : std::numeric_limits<double>::infinity();
  add_inputs(Split::train, train, most, inputs);
  for (std::int64_t i = 0; i < rows(Split::train) && i < train; ++i) texts.insert(text_hash(Split::train, i));
  Example e;
  for (std::int64_t i = 0; i < count; ++i)
    if (inputs.contains(input_hash(*this, split, i, e))) ++(found.*coincidence(split, i, e, texts));
  return found;
}

DataConfig split_sizes(const Source& source, const DataConfig& wanted) {
  require<DataError>(wanted.train >= 0 && wanted.validation >= 0 && wanted.test >= 0,
                     "data: {} train, {} validation, {} test sequences: must not be negative", wanted.train,
                     wanted.validation, wanted.test);
  return source.sizes(wanted);
}

ModelSizes model_sizes(const Source& source, Layout layout, Outputs outputs) {
  source.check(layout);
  const ExampleSize size = source.longest();
  return {.vocabulary = std::ssize(vocabulary_of(source, layout)),
          .length = laid_out_length(layout, size),
          .source_length = layout == Layout::seq2seq ? size.input : 0,
          .outputs =
              layout == Layout::sequence && outputs == Outputs::answers ? std::ssize(source.answers()) : 0};
}

std::vector<std::string> vocabulary_of(const Source& source, Layout layout) {
  std::vector<std::string> tokens = source.tokens();
  if (layout != Layout::seq2seq) return tokens;
  for (std::string mark : {"<begin>", "<end>"}) {
    while (std::ranges::find(tokens, mark) != tokens.end()) mark.insert(mark.size() - 1, 1, '\'');
    tokens.push_back(mark);
  }
  return tokens;
}

std::vector<std::string> token_names(const Source& source, Layout layout) {
  std::vector<std::string> names = vocabulary_of(source, layout);
  for (std::string& name : names) name = shown_token(name);
  return names;
}

}  // namespace thimble
