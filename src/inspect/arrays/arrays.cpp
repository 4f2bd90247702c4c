#include "thimble/inspect/arrays.h"

#include <algorithm>

#include "inspect/arrays/model_arrays.h"
#include "thimble/engine/error.h"
#include "thimble/inspect/forward_trace.h"
#include "thimble/train/run.h"
#include "train/config/with_precision.h"
#include "train/files/text/suggest.h"
#include "train/files/text/text.h"

namespace thimble {

namespace {

// Returns whether a name matches a pattern, going back to the last * where it does not.
bool matches(std::string_view name, std::string_view pattern) {
  std::size_t at = 0, p = 0, star = pattern.npos, from = 0;
  while (at < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = at;
    } else if (p < pattern.size() && pattern[p] == name[at]) {
      ++p;
      ++at;
    } else if (star != pattern.npos) {
      p = star + 1;
      at = ++from;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', p) == pattern.npos;
}

// Sets the width of rows that have one element for each token to the longest length.
void cut(std::vector<std::int32_t>& rows, const std::vector<std::int32_t>& lengths, std::int64_t& width) {
  const std::int64_t longest = lengths.empty() ? 0 : std::ranges::max(lengths);
  if (std::ssize(rows) != std::ssize(lengths) * width) return;
  for (std::size_t b = 0; b < lengths.size(); ++b)
    std::copy_n(rows.begin() + static_cast<std::ptrdiff_t>(b) * width, longest,
                rows.begin() + static_cast<std::ptrdiff_t>(b) * longest);
  rows.resize(lengths.size() * static_cast<std::size_t>(longest));
  width = longest;
}

// Returns the tokens of a target that was typed; "." is a position without an answer where no token is.
std::vector<std::int32_t> target_tokens(const TaskConfig& task, const Names& names, std::string_view text) {
  std::vector<std::int32_t> ids;
  tokenize(text, task.target_tokens(), [&](std::string_view token) {
    auto found = std::ranges::find(names, shown_token(token));
    if (found == names.end()) found = std::ranges::find(names, token);
    const bool is_none = found == names.end() && (token == "." || token == task.options.no_answer);
    require<DataError>(found != names.end() || is_none, "target: there is no token {}{}", printable(token),
                       did_you_mean(token, names));
    ids.push_back(is_none ? kIgnore : static_cast<std::int32_t>(found - names.begin()));
  });
  return ids;
}

// Returns the batch of inputs alone, whose labels are known of a text only.
Batch batch_of_inputs(const Dataset& data, std::span<const Example> examples) {
  Batch out;
  out.sequences = std::ssize(examples);
  const bool pair = data.layout() == Layout::seq2seq, is_text = data.task().predicts_next;
  std::int64_t& width = pair ? out.source_length : out.length;
  for (const Example& e : examples) width = std::max(width, std::ssize(e.input));
  std::vector<std::int32_t>&rows = pair ? out.sources : out.tokens,
  &lengths = pair ? out.source_lengths : out.lengths;
  for (const Example& e : examples) {
    rows.insert(rows.end(), e.input.begin(), e.input.end());
    rows.resize(rows.size() + static_cast<std::size_t>(width - std::ssize(e.input)));
    lengths.push_back(static_cast<std::int32_t>(e.input.size()));
    if (!is_text) continue;
    out.labels.insert(out.labels.end(), e.input.begin() + 1, e.input.end());
    out.labels.resize(rows.size(), kIgnore);
  }
  if (!pair) return out;
  out.length = 1;
  out.tokens.assign(examples.size(), data.bos_token());
  out.lengths.assign(examples.size(), 1);
  return out;
}

}  // namespace

std::vector<std::string> matching(const std::vector<std::string>& names, const std::string& pattern) {
  std::vector<std::string> found;
  std::ranges::copy_if(names, std::back_inserter(found),
                       [&](const std::string& name) { return matches(name, pattern); });
  if (!found.empty()) return found;
  std::vector<std::string> endings = names;  // and "*.hook_z", for a name without its block
  for (const std::string& name : names) endings.push_back("*" + name.substr(name.rfind('.') + 1));
  throw DataError(fmt::format("there is no site {}{}", printable(pattern), did_you_mean(pattern, endings)));
}

std::unique_ptr<ModelArrays> open_arrays(const ModelSource& model, bool trained) {
  return with_precision(model.config, [&]<class R>() { return make_arrays<R>(model, trained); });
}

Batch batch_of_texts(const ModelSource& model, const Dataset& data, std::span<const std::string> texts,
                     std::span<const std::string> targets) {
  require<DataError>(targets.empty() || targets.size() == texts.size(),
                     "{} texts and {} targets; give one for each", texts.size(), targets.size());
  require<DataError>(targets.empty() || !data.task().predicts_next,
                     "the targets of a text are its tokens; leave them out");
  require<DataError>(!texts.empty(), "texts: none; give at least 1");
  std::vector<Example> examples(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    try {
      examples[i].input = input_tokens(model, texts[i]);
      if (!targets.empty()) examples[i].target = target_tokens(data.config(), data.names(), targets[i]);
    } catch (const DataError& e) {
      throw DataError(texts.size() == 1 ? e.what() : fmt::format("text {}: {}", i, e.what()));
    }
  }
  if (targets.empty()) return batch_of_inputs(data, examples);
  Batch out;
  data.fill(examples, out);
  std::int64_t of_labels = out.length;
  cut(out.labels, out.lengths, of_labels);
  cut(out.tokens, out.lengths, out.length);
  if (out.source_length > 0) cut(out.sources, out.source_lengths, out.source_length);
  return out;
}

}  // namespace thimble
