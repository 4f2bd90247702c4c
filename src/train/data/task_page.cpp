#include "train/data/task_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "thimble/train/json.h"
#include "thimble/train/listing.h"
#include "train/data/layout.h"
#include "train/files/text/width.h"

namespace thimble {
namespace {

constexpr std::int64_t kVariedShown = 2;

std::int64_t all_rows(const Source& source) {
  return source.rows(Split::train) + source.rows(Split::validation) + source.rows(Split::test);
}

std::string facts(const Source& source, const Names& names, const Json& keys, std::size_t width) {
  const Task& task = source.task();
  const bool is_file = task.open != nullptr;
  std::string values;
  for (const auto& [key, value] : keys.items())
    values += fmt::format("{}{}={}", values.empty() ? "" : ", ", key, json_text(value));
  std::string out = wrapped("keys         " + (values.empty() ? "none" : values), width, 13);
  out += fmt::format("vocabulary   {}\n", vocabulary_text(names, width - 13));
  out += fmt::format("inputs       {:.6g} distinct{}\n", source.distinct_inputs(),
                     is_file ? fmt::format(", in {} {}s", all_rows(source), source.row_name()) : "");
  out += fmt::format("chance       {:.2f} % accuracy of the best constant answer{}\n", 100 * source.chance(),
                     is_file ? fmt::format(", of all {}s", source.row_name()) : "");
  const std::optional<double> floor = source.floor();
  out += floor ? fmt::format("lowest loss  {:.6g} nats\n", *floor) : "lowest loss  unknown\n";
  if (!task.kinds.empty()) out += fmt::format("depends on   {}\n", fmt::join(task.kinds, ", "));
  for (const std::string& remark : source.remarks()) out += wrapped("note: " + remark, width);
  if (task.causal) out += "mask         must be causal, or the model could read the answers\n";
  return out;
}

}  // namespace

TaskPage task_page(const std::shared_ptr<const Source>& source, const Json& keys, std::uint64_t seed,
                   std::int64_t examples, std::size_t width) {
  const TaskConfig& config = source->config();
  const Task& task = source->task();
  const bool is_file = task.open != nullptr;
  const Names names = token_names(*source, Layout::position);
  const double inputs = source->distinct_inputs();
  TaskPage page;
  page.text = fmt::format("{}: {}\n\n{}\n{}", config.name, task.summary, wrapped(task.definition, width),
                          facts(*source, names, keys, width));
  page.json = {{"task", config.name}, {"summary", task.summary},    {"definition", task.definition},
               {"keys", keys},        {"causal", task.causal},      {"tokens", names},
               {"inputs", inputs},    {"chance", source->chance()}, {"floor", nullptr}};
  if (is_file) page.json.update({{"rows", all_rows(*source)}, {"remarks", source->remarks()}});
  if (const auto floor = source->floor()) page.json["floor"] = *floor;
  auto& list = page.json["examples"] = Json::array();

  // Rows that no layout suits are reported with their lines.
  const Layout layout = source->suitable_layout().value_or(usual_layout(source->longest()));
  source->check(layout);
  page.json["per"] = layout_name(layout);
  const std::int64_t train = is_file ? kAll : task.at == nullptr ? 0 : static_cast<std::int64_t>(inputs) - 1;
  const Dataset data = is_file ? Dataset(source, {.train = train}, layout, seed)
                               : Dataset(config, {.train = train}, layout, seed);
  if (const std::int64_t rows = is_file ? source->rows(Split::train) : train; rows > 0)
    examples = std::min(examples, rows);
  std::string relevant;
  Example e;
  page.json["kinds"] = task.kinds;
  auto& varied = page.json["varied"] = Json::array();
  for (std::int64_t i = 0; i < examples; ++i) {
    data.example(Split::train, i, e);
    page.text += '\n' + example_text(names, e.input, e.target, width);
    if (i == 0) relevant = relevant_text(config, e, width);
    list.push_back(example_json(names, e.input, e.target, config));
    list.back()["relevant"] = relevant_json(config, e);
  }
  if (!relevant.empty())
    page.text +=
        "\nFirst example: position, answer, and the positions that the answer depends on:\n" + relevant;
  const std::int64_t shown = std::min({examples, kVariedShown, data.size(Split::varied)});
  if (shown > 0) page.text += "\nVaried, so that position and content part:\n";
  for (std::int64_t i = 0; i < shown; ++i) {
    data.example(Split::varied, i, e);
    page.text += example_text(names, e.input, e.target, width);
    varied.push_back(example_json(names, e.input, e.target, config));
  }
  return page;
}

}  // namespace thimble
