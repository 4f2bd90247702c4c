// How a run went: the curves of its metrics.jsonl and, with train.log_heads, when its heads became what
// they are.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/core/json.h"
#include "thimble/model/attention_layer.h"

namespace thimble {

struct CurvePoint {
  std::int64_t step = 0;
  std::string split;  // train or validation
  double loss = 0, accuracy = 0;
};

// Scores by name, such as "induction"; what is undefined is missing.
using ScoresByName = std::map<std::string, double>;

// The heads at one step, on the first validation sequences.
struct HeadSnapshot {
  struct Head {
    HeadId id;
    ScoresByName scores;
    std::string attention{};              // name of the layer, "cross.0"; empty in an encoder-only model
    ScoresByName chance{}, attainable{};  // of a head with an attention; otherwise the step has them
  };
  std::int64_t step = 0;
  double loss = 0;                  // nats
  ScoresByName chance, attainable;  // see HeadScore; of every head that has none of its own
  std::vector<Head> heads;
};

struct Timeline {
  std::vector<HeadSnapshot> steps;  // empty without train.log_heads
  std::vector<CurvePoint> curves;
  // Of the validation split, where they are known: accuracy of a constant answer, lowest possible loss.
  std::optional<double> chance{}, lowest_loss{};
};

// Train points of a curve, at most; of a longer run they are evenly spaced, the last step among them.
inline constexpr std::size_t kCurvePoints = 1000;

// What a run's metrics.jsonl says; nothing when there is none. Losses that are not finite are NaN. A last
// line that is not whole, as a kill leaves it, is passed over. Throws CheckpointError, naming file and line,
// when any other is damaged.
Timeline read_timeline(const std::filesystem::path& run);

// (value - chance) / (attainable - chance); nothing when the score is not known.
std::optional<double> strength(const HeadSnapshot&, std::size_t head, std::string_view score);

// The score of the pattern that names a head at that step; empty when no score is known.
std::string_view best_pattern(const HeadSnapshot&, std::size_t head);

// A head that took up a pattern, or gave it up.
struct HeadEvent {
  HeadId id;
  std::string attention{};             // as in HeadSnapshot::Head
  std::string score;                   // of the pattern
  bool formed = true;                  // false: given up
  std::int64_t before = 0, after = 0;  // steps: the last and the first one outside the change
  double loss_before = 0, loss_after = 0;
};

// What changed, by layer, head and time. Strength, and how far above chance and above the first step it must
// be, are those of a label (label.h), and as there the pattern must be what describes the head best. A
// pattern that is there at the end formed when its strength last passed half of the way to that: `before` is
// the last step with at most a quarter of the way, `after` the first with three quarters. A pattern that was
// there for three snapshots in a row, and at the end is less than half as strong as at its best, was
// given up; the way is then that to its best, and from there to the end. Unlike a label this says nothing
// about whether the model needs the head.
std::vector<HeadEvent> find_events(const std::vector<HeadSnapshot>&);

// "layer 1 head 0 became an induction head between steps 210 and 240, when the loss fell from 2.8 to 2.2"
std::string sentence(const HeadEvent&);

// For each head the score that tells most, as a line of bars from 0 to 1, and the loss from 0 to its highest:
// a column for a snapshot, or for several when there are too many for `width` columns, at least 60.
// Bars of block elements, or with `plain` of ASCII characters. Empty without snapshots.
std::string draw(const std::vector<HeadSnapshot>&, bool plain, std::size_t width = 80);

// "layer 1 head 0", or with an attention "cross.0 head 0".
std::string head_title(HeadId, const std::string& attention);

// {"timeline": [{"step", "loss", "heads": [{"layer", "head", "scores"}]}], "events": [sentence], "curves":
// [{"step", "split", "loss", "accuracy"}]}
Json to_json(const Timeline&);

}  // namespace thimble
