#include "thimble/train/listing.h"

#include <fmt/format.h>

#include <algorithm>

#include "thimble/train/json.h"
#include "train/files/text/format.h"
#include "train/files/text/text.h"
#include "train/files/text/width.h"

namespace thimble {
namespace {

std::string_view name_of(const Names& names, std::int32_t token) {
  return token == kIgnore ? std::string_view(".") : names[static_cast<std::size_t>(token)];
}

constexpr std::size_t kTitle = 7;

// Returns a title and tokens, as a row of aligned().
std::vector<std::string> row_of(const Names& names, std::string title, std::span<const std::int32_t> tokens) {
  std::vector<std::string> row{std::move(title)};
  for (const std::int32_t token : tokens) row.emplace_back(name_of(names, token));
  return row;
}

// Returns the positions that answer i depends on, by kind and then ascending.
std::vector<Relevant> relevant_to(const Task& task, const TaskConfig& config, const Example& example,
                                  std::size_t i) {
  std::vector<Relevant> keys;
  if (example.target[i] != kIgnore) task.relevant(config, example, i, keys);
  std::ranges::sort(keys, {}, [](const Relevant& r) { return std::pair(r.kind, r.key); });
  return keys;
}

// Returns ascending numbers as "0-3 7".
std::string ranges_text(const std::vector<std::int32_t>& numbers) {
  std::string out;
  for (std::size_t first = 0, last = 0; first < numbers.size(); first = last) {
    do ++last;
    while (last < numbers.size() && numbers[last] == numbers[last - 1] + 1);
    if (first > 0) out += ' ';
    out += std::to_string(numbers[first]);
    if (last - first > 1) out += fmt::format("-{}", numbers[last - 1]);
  }
  return out;
}

// Returns positions as "0-3 7", after the names of their kinds if the task has several: "agent 2, patient 5".
std::string relevant_text(const Task& task, const std::vector<Relevant>& keys) {
  std::string out;
  for (std::size_t kind = 0; kind < task.kinds.size(); ++kind) {
    std::vector<std::int32_t> numbers;
    for (const Relevant& r : keys)
      if (r.kind == static_cast<std::int32_t>(kind)) numbers.push_back(r.key);
    if (numbers.empty()) continue;
    if (!out.empty()) out += ", ";
    if (task.kinds.size() > 1) out += fmt::format("{} ", task.kinds[kind]);
    out += ranges_text(numbers);
  }
  return out.empty() ? "none" : out;
}

}  // namespace

std::vector<Sequence> first_sequences(const Dataset& data, Split split, std::int64_t count,
                                      std::int64_t batch) {
  const std::int64_t size = data.size(split),
                     whole = split == Split::train ? std::max(batch, size / batch * batch) : size;
  if (split != Split::train || size > 0) count = std::min(count, whole);
  std::vector<Sequence> out;
  Batch one;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t step = i / batch, row = i % batch;
    std::int64_t index = i;
    if (split == Split::train) {
      data.fill_step(step, batch, row, 1, one);
      index = data.training_index(step, batch, row);
    } else {
      data.fill(split, i, 1, one);
    }
    const bool per_token = one.labels.size() == one.tokens.size();
    for (std::int32_t& label : one.labels) label = data.token_of(label);
    one.tokens.resize(static_cast<std::size_t>(one.lengths[0]));
    if (per_token) one.labels.resize(one.tokens.size());
    const auto source = one.source_length > 0 ? one.source_of(0) : std::span<const std::int32_t>();
    out.push_back({index, one.tokens, one.labels, {source.begin(), source.end()}});
  }
  return out;
}

std::string example_text(const Names& names, std::span<const std::int32_t> input,
                         std::span<const std::int32_t> answers, std::size_t width) {
  const std::vector rows{row_of(names, "input", input), row_of(names, "answer", answers)};
  if (input.size() == answers.size()) return aligned(rows, kTitle, width);
  return aligned(std::span(rows).first(1), kTitle, width) + aligned(std::span(rows).last(1), kTitle, width);
}

std::string example_text(const Names& names, const Sequence& sequence, std::size_t width) {
  const std::vector<std::string> source = row_of(names, "source", sequence.source);
  return aligned(std::span(&source, 1), kTitle, width) +
         example_text(names, sequence.tokens, sequence.labels, width);
}

std::string vocabulary_text(const Names& names, std::size_t width) {
  const auto text = [&](std::size_t shown) {
    std::string out = counted(std::ssize(names), "token") + ':';
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (i == shown / 2 && shown < names.size()) {
        out += " ...";
        i += names.size() - shown;
      }
      out += ' ' + escape_controls(names[i], "");
    }
    return out;
  };
  std::string all = text(names.size());
  for (std::size_t shown = std::min(names.size(), width); shown > 2 && all.size() > width; --shown)
    all = text(shown - 1);
  return all;
}

std::string relevant_text(const TaskConfig& config, const Example& example, std::size_t width) {
  const Task& task = find_task(config.name);
  if (task.relevant == nullptr) return "";
  const Names names = task.tokens(config);
  std::string out;
  for (std::size_t i = 0; i < example.target.size(); ++i) {
    if (example.target[i] == kIgnore) continue;
    const std::string title = fmt::format("{:>5}  {:<8}", i, name_of(names, example.target[i]));
    out += wrapped(title + ' ' + relevant_text(task, relevant_to(task, config, example, i)), width,
                   title.size() + 1);
  }
  return out;
}

Json example_json(const Names& names, std::span<const std::int32_t> input,
                  std::span<const std::int32_t> target, const TaskConfig& task) {
  Json json{{"input", input},
            {"target", target},
            {"input_text", token_text(names, input, task.input_tokens())},
            {"target_text", token_text(names, target, task.target_tokens())}};
  if (task.input_tokens() == Tokenization::bytes)
    json.update({{"input_bytes", token_bytes(names, input)}, {"target_bytes", token_bytes(names, target)}});
  return json;
}

Json example_json(const Names& names, const Sequence& sequence, const TaskConfig& task) {
  Json json{{"index", sequence.index}};
  json.update(example_json(names, sequence.tokens, sequence.labels, task));
  if (!sequence.source.empty()) {
    json["source"] = sequence.source;
    json["source_text"] = token_text(names, sequence.source, task.input_tokens());
  }
  return json;
}

Json relevant_json(const TaskConfig& config, const Example& example) {
  const Task& task = find_task(config.name);
  if (task.relevant == nullptr) return nullptr;
  auto out = Json::array();
  for (std::size_t i = 0; i < example.target.size(); ++i) {
    auto& positions = out.emplace_back(Json::array());
    for (const Relevant& r : relevant_to(task, config, example, i)) positions.push_back(r.key);
  }
  return out;
}

}  // namespace thimble
