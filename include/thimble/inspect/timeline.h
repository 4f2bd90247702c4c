// The course of a run: the curves of its metrics.jsonl and, with train.log_heads, when its heads took up
// their patterns.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "thimble/engine/attention_layer.h"
#include "thimble/train/json.h"
#include "thimble/train/run_directory.h"

namespace thimble {

struct CurvePoint {
  std::int64_t step = 0;
  std::string split;  // train or validation
  double loss = 0, accuracy = 0;
  std::int64_t sequences = 0, labels = 0;  // of the step or evaluation; 0: unknown, from a log without
};

// Scores by name, such as "induction"; undefined ones are missing.
using ScoresByName = std::map<std::string, double>;
using CountsByName = std::map<std::string, std::int64_t>;

// The heads at one step, on the first validation sequences.
struct HeadSnapshot {
  struct Head {
    HeadId id;
    ScoresByName scores;
    std::string attention{};  // name of the layer, "cross.0"; empty in an encoder-only model
    ScoresByName chance{},
        attainable{};         // of a head that differs from the first; otherwise the step has them
    CountsByName eligible{};  // queries that each score is a mean over; missing: unknown
  };
  std::int64_t step = 0;
  double loss = 0;                  // nats
  std::int64_t sequences = 0;       // that loss and scores are of; 0: unknown, from a log without it
  std::int64_t labels = 0;          // that the loss is a mean over; 0: unknown
  ScoresByName chance, attainable;  // see HeadScore; of heads without their own
  std::vector<Head> heads;
};

// By head, the score of the pattern that the trained head has (FoundPattern::score). A log has no varied
// examples, so that its content scores alone show no pattern: where this is known, a pattern of content
// counts only if the trained head has it. Empty: unknown, every pattern counts.
using Patterns = std::span<const std::string_view>;

// What the model drew at a step, see train.sample_every.
struct Samples {
  std::int64_t step;
  std::vector<std::string> texts;
};

struct Timeline {
  std::vector<HeadSnapshot> steps;  // empty without train.log_heads
  std::vector<CurvePoint> curves;
  std::vector<Samples> samples{};            // empty without train.sample_every
  std::vector<std::string_view> patterns{};  // see Patterns
  // Accuracy of the best constant prediction and lowest possible loss on the validation split, if known.
  std::optional<double> chance{}, lowest_loss{};
  std::vector<std::string> remarks{};  // on lines that are missing or differ, see RunDirectory::read_metrics
};

// The most points of a split, and samples; a longer run has evenly spaced ones, and the last.
inline constexpr std::size_t kCurvePoints = 1000;

// Reads a run's metrics.jsonl, in constant memory, and compares it with the state of a checkpoint; the result is empty
// when there is none. Non-finite losses are NaN.
Timeline read_timeline(const RunDirectory& run, const RunState& state = {});

// Returns (value - chance) / (attainable - chance), or nullopt when the score is unknown.
std::optional<double> strength(const HeadSnapshot&, std::size_t head, std::string_view score);

// Returns the score of the pattern that names a head at a step; empty when no score is known.
std::string_view best_pattern(const HeadSnapshot&, std::size_t head, Patterns = {});

// A change of a head: it took up a pattern, or gave it up.
struct HeadEvent {
  HeadId id;
  std::string attention{};             // as in HeadSnapshot::Head
  std::string score;                   // of the pattern
  bool formed = true;                  // false: given up
  std::int64_t before = 0, after = 0;  // the last step before the change and the first after it
  double loss_before = 0, loss_after = 0;
};

// Returns the changes by layer, head and time. Strength and its margins above chance and above the first step
// are those of a label (label.h), and as in a label the pattern must be the one that names the head. A
// pattern that the head has at the end formed when its strength last passed half of its final rise: `before`
// is the last step with at most a quarter of the rise, `after` the first with three quarters. A pattern that
// the head had for three snapshots in a row, and that at the end has less than half of its peak strength, was
// given up; the rise is then that to the peak, and the fall that from the peak to the end. Unlike a label, a
// change does not depend on ablation.
std::vector<HeadEvent> find_events(const std::vector<HeadSnapshot>&, Patterns = {});

// Returns "head 1.0 became an induction head between steps 210 and 240, when the loss fell from 2.8 to
// 2.2"
std::string sentence(const HeadEvent&);

// Draws the most informative score of each head as a line of bars from 0 to 1, and the loss from 0 to its
// maximum: one column per snapshot, or per several when they exceed `width` columns, at least 60. Bars are
// block elements, or with `plain` ASCII characters. Empty without snapshots.
std::string draw(const std::vector<HeadSnapshot>&, bool plain, std::size_t width = 80, Patterns = {});

// Returns {"timeline": [{"step", "loss", "sequences", "labels", "heads": [{"layer", "head", "name",
// "scores", "eligible"}]}], "events": [sentence], "curves": [{"step", "split", "loss", "accuracy", "sequences",
// "labels"}]}
Json to_json(const Timeline&);

}  // namespace thimble
