#include "thimble/inspect/timeline/timeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "thimble/core/error.h"
#include "thimble/core/json.h"
#include "thimble/core/progress.h"
#include "thimble/train/run_files.h"

namespace thimble {

namespace {

// Returns a number; non-finite numbers are null in JSON.
double number(const Json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

// Returns a number of sequences or labels of a line, which older logs do not state.
std::int64_t count(const Json& line, const char* key) {
  const Json number = line.value(key, Json());
  return number.is_null() ? 0 : number.get<std::int64_t>();
}
Json or_null(std::int64_t count) { return count > 0 ? Json(count) : Json(); }

ScoresByName scores(const Json& object) {
  ScoresByName found;
  for (const auto& [name, value] : object.items())
    if (!value.is_null()) found[name] = value.get<double>();
  return found;
}

CountsByName counts(const Json& object) { return object.value("eligible", CountsByName()); }

HeadSnapshot head_snapshot(const Json& line) {
  HeadSnapshot step{.step = line.at("step"),
                    .loss = number(line.at("loss")),
                    .sequences = count(line, "sequences"),
                    .labels = count(line, "labels"),
                    .chance = scores(line.at("chance")),
                    .attainable = scores(line.at("attainable")),
                    .heads = {}};
  const CountsByName common = counts(line);
  for (const Json& head : line.at("heads")) {
    HeadSnapshot::Head& out = step.heads.emplace_back();
    out = {{head.at("layer"), head.at("head")}, scores(head.at("scores"))};
    out.eligible = counts(head);
    out.eligible.insert(common.begin(), common.end());
    if (!head.contains("attention")) continue;
    out.attention = head.at("attention");
    out.chance = scores(head.at("chance"));
    out.attainable = scores(head.at("attainable"));
  }
  return step;
}

void add_line(const Json& line, Timeline& timeline) {
  const auto split = line.at("split").get<std::string>();
  if (split == "heads") {
    timeline.steps.push_back(head_snapshot(line));
  } else if (split == "train" || split == "validation") {
    timeline.curves.push_back({line.at("step"), split, number(line.at("loss")), number(line.at("accuracy")),
                               count(line, "sequences"), count(line, "labels")});
    if (line.contains("chance")) timeline.chance = line.at("chance").get<double>();
    if (line.contains("lowest_possible_loss"))
      timeline.lowest_loss = line.at("lowest_possible_loss").get<double>();
  }
}

// Keeps at most kCurvePoints points of the train split.
void thin(std::vector<CurvePoint>& curves) {
  const auto is_train = [](const CurvePoint& p) { return p.split == "train"; };
  const auto count = static_cast<std::size_t>(std::ranges::count_if(curves, is_train));
  const std::size_t every = (count + kCurvePoints - 1) / kCurvePoints;
  std::size_t left = count;
  std::erase_if(curves, [&](const CurvePoint& p) { return is_train(p) && --left % every != 0; });
}

}  // namespace

Timeline read_timeline(const std::filesystem::path& run) {
  const std::filesystem::path path = run / "metrics.jsonl";
  const std::string text = read_metrics(run);
  Timeline timeline;
  ProgressCounter progress("reading metrics", static_cast<double>(text.size()));
  std::size_t begin = 0;
  for (int line = 1; begin < text.size(); ++line) {
    const std::size_t newline = text.find('\n', begin), end = std::min(newline, text.size());
    try {
      add_line(parse_json(std::string_view(text).substr(begin, end - begin)), timeline);
    } catch (const Json::exception&) {
      if (newline == std::string::npos) break;  // incomplete, after a kill or during training
      throw CheckpointError(
          fmt::format("{}:{}: invalid metrics line; fix or delete it, or train again", path.string(), line));
    }
    progress.advance(static_cast<double>(end + 1 - begin));
    begin = end + 1;
  }
  thin(timeline.curves);
  return timeline;
}

Json to_json(const Timeline& timeline) {
  Json steps = Json::array(), events = Json::array(), curves = Json::array();
  for (const HeadSnapshot& s : timeline.steps) {
    Json heads = Json::array();
    for (const HeadSnapshot::Head& h : s.heads)
      heads.push_back(
          {{"layer", h.id.layer}, {"head", h.id.head}, {"scores", h.scores}, {"eligible", h.eligible}});
    steps.push_back({{"step", s.step},
                     {"loss", s.loss},
                     {"sequences", or_null(s.sequences)},
                     {"labels", or_null(s.labels)},
                     {"heads", heads}});
  }
  for (const HeadEvent& e : find_events(timeline.steps, timeline.patterns)) events.push_back(sentence(e));
  for (const CurvePoint& p : timeline.curves)
    curves.push_back({{"step", p.step},
                      {"split", p.split},
                      {"loss", p.loss},
                      {"accuracy", p.accuracy},
                      {"sequences", or_null(p.sequences)},
                      {"labels", or_null(p.labels)}});
  Json json{{"timeline", steps}, {"events", events}, {"curves", curves}};
  if (timeline.chance) json["chance"] = *timeline.chance;
  if (timeline.lowest_loss) json["lowest_possible_loss"] = *timeline.lowest_loss;
  return json;
}

}  // namespace thimble
