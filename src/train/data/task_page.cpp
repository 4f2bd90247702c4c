#include "train/data/task_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "thimble/train/json.h"
#include "thimble/train/listing.h"
#include "train/data/layout.h"
#include "train/data/rows.h"
#include "train/files/text/width.h"

namespace thimble {
namespace {

constexpr std::int64_t kVariedShown = 2;

std::string facts(const Task& task, const TaskConfig& config, const Json& keys, std::size_t width) {
  std::string values;
  for (const auto& [key, value] : keys.items())
    values += fmt::format("{}{}={}", values.empty() ? "" : ", ", key, json_text(value));
  std::string out = wrapped("keys         " + (values.empty() ? "none" : values), width, 13);
  out += fmt::format("vocabulary   {}\n", vocabulary_text(token_names(config, Layout::position), width - 13));
  out += fmt::format("inputs       {:.6g} distinct\n", task.distinct_inputs(config));
  out += fmt::format("chance       {:.2f} % accuracy of the best constant answer{}\n",
                     100 * task.chance(config), task.open == nullptr ? "" : ", of all lines");
  out += task.floor == nullptr ? "lowest loss  unknown\n"
                               : fmt::format("lowest loss  {:.6g} nats\n", task.floor(config));
  if (!task.kinds.empty()) out += fmt::format("depends on   {}\n", fmt::join(task.kinds, ", "));
  if (task.open != nullptr)
    for (const std::string& remark : rows_of(config).remarks()) out += wrapped("note: " + remark, width);
  if (task.causal) out += "mask         must be causal, or the model could read the answers\n";
  return out;
}

}  // namespace

TaskPage task_page(const TaskConfig& config, const Json& keys, std::uint64_t seed, std::int64_t examples,
                   std::size_t width) {
  const Task& task = checked_task(config);
  const Names names = token_names(config, Layout::position);
  const double inputs = task.distinct_inputs(config);
  TaskPage page;
  page.text = fmt::format("{}: {}\n\n{}\n{}", config.name, task.summary, wrapped(task.definition, width),
                          facts(task, config, keys, width));
  page.json = {{"task", config.name}, {"summary", task.summary},      {"definition", task.definition},
               {"keys", keys},        {"causal", task.causal},        {"tokens", names},
               {"inputs", inputs},    {"chance", task.chance(config)}};
  page.json["floor"] = nullptr;
  if (task.open != nullptr) page.json["remarks"] = rows_of(config).remarks();
  if (task.floor != nullptr) page.json["floor"] = task.floor(config);
  auto& list = page.json["examples"] = Json::array();

  const std::int64_t train = task.at == nullptr ? 0 : static_cast<std::int64_t>(inputs) - 1;
  Layout layout = usual_layout(task.size(config));
  if (task.open != nullptr) {
    // Rows that no layout suits are reported with their lines.
    const std::optional<Layout> suitable = rows_of(config).suitable_layout();
    if (!suitable) rows_of(config).check(layout);
    layout = suitable.value_or(layout);
  }
  page.json["per"] = layout_name(layout);
  const Dataset data(config, {.train = train}, layout, seed);
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
