#include "thimble/inspect/timeline.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "inspect/effects/head_names.h"
#include "inspect/scores/require_heads.h"
#include "inspect/timeline/head_log.h"
#include "inspect/timeline/run_series.h"
#include "thimble/train/json.h"
#include "thimble/train/run.h"
#include "train/config/with_precision.h"

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
    out.attention = head.value("attention", "");
    if (!head.contains("chance")) continue;
    out.chance = scores(head.at("chance"));
    out.attainable = scores(head.at("attainable"));
  }
  return step;
}

// The points of a course, each with a step: every n-th one, so that there are few of a long run, and the last.
template <class Point>
class Course {
 public:
  void add(Point point) {
    last_ = std::move(point);
    if (seen_++ % every_ != 0) return;
    points_.push_back(*last_);
    if (points_.size() <= kCurvePoints) return;
    every_ *= 2;
    std::size_t i = 0;
    std::erase_if(points_, [&](const Point&) { return i++ % 2 == 1; });
  }

  void move_to(std::vector<Point>& points) {
    if (last_ && points_.back().step != last_->step) points_.push_back(*last_);
    std::ranges::move(points_, std::back_inserter(points));
  }

 private:
  std::vector<Point> points_;
  std::optional<Point> last_;
  std::size_t seen_ = 0, every_ = 1;
};

}  // namespace

Timeline read_timeline(const RunDirectory& run, const RunState& state) {
  Timeline timeline;
  std::map<std::string, Course<CurvePoint>> curves;
  Course<Samples> samples;
  const auto add = [&](const Json& line) {
    const auto split = line.at("split").get<std::string>();
    try {
      if (split == "heads") timeline.steps.push_back(head_snapshot(line));
      if (split == "samples")
        samples.add({line.at("step"), line.at("texts").get<std::vector<std::string>>()});
      if (split != "train" && split != "validation") return;
      curves[split].add({line.at("step"), split, number(line.at("loss")), number(line.at("accuracy")),
                         count(line, "sequences"), count(line, "labels")});
      if (line.contains("chance")) timeline.chance = line.at("chance").get<double>();
      if (line.contains("lowest_possible_loss"))
        timeline.lowest_loss = line.at("lowest_possible_loss").get<double>();
    } catch (const Json::exception&) {
      // A line without these values was changed, which read_metrics() remarks.
    }
  };
  run.read_metrics(state, add, timeline.remarks);
  for (auto& [split, curve] : curves) curve.move_to(timeline.curves);
  samples.move_to(timeline.samples);
  std::ranges::stable_sort(timeline.curves, {}, &CurvePoint::step);
  return timeline;
}

HeadLog head_log(const OpenConfig& config) {
  require_weights(config.model);
  return with_precision(config, [&]<class R>() { return make_head_log<R>(config); });
}

std::vector<SeriesStep> read_checkpoint_series(const ModelSource& model, std::int64_t examples,
                                               std::vector<std::string>& remarks) {
  if (model.run.empty() || !model.config.train.checkpoint_series) return {};
  require_weights(model.config.model);
  const auto checkpoints = model.run.series(model.file, remarks);
  return with_precision(model.config, [&]<class R>() { return run_series<R>(model, checkpoints, examples); });
}

Json to_json(const Timeline& timeline) {
  Json steps = Json::array(), events = Json::array(), curves = Json::array();
  for (const HeadSnapshot& s : timeline.steps) {
    Json heads = Json::array();
    for (const HeadSnapshot::Head& h : s.heads) {
      heads.push_back(head_json(h.id, h.attention));
      heads.back().update({{"scores", h.scores}, {"eligible", h.eligible}});
    }
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
  for (const Samples& s : timeline.samples) json["samples"].push_back({{"step", s.step}, {"texts", s.texts}});
  if (timeline.chance) json["chance"] = *timeline.chance;
  if (timeline.lowest_loss) json["lowest_possible_loss"] = *timeline.lowest_loss;
  if (!timeline.remarks.empty()) json["remarks"] = timeline.remarks;
  return json;
}

}  // namespace thimble
