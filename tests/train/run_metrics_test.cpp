// Metrics and summaries are compared with what the checkpoints of their run state.
#include <cstdio>
#include <cstring>
#include <sstream>

#include "thimble/compare/compare.h"
#include "thimble/core/error.h"
#include "thimble/inspect/timeline/timeline.h"
#include "thimble/train/run_files.h"
#include "train/changed_run.h"
#include "train/run_state.h"

using namespace thimble;

namespace {

// Writes the lines with another loss in the last one, and the checks that belong to them.
void write_rechecked(const fs::path& metrics, const std::string& run) {
  std::string text;
  MetricsCheck check(run);
  std::istringstream lines(read_file(metrics));
  for (std::string line; std::getline(lines, line);) {
    Json values = parse_json(line);
    const auto seconds = values.at("seconds").get<double>();
    values.erase("check");
    values.erase("seconds");
    if (lines.peek() == EOF) {
      std::string changed = json_text(values);
      changed[changed.find("loss") + 8] ^= 1;
      values = parse_json(changed);
    }
    text += check.line(values, seconds);
  }
  write_file(metrics, text);
}

// Rewrites the metadata of a checkpoint.
void change_metadata(const fs::path& checkpoint, const char* key, const char* value = nullptr) {
  const SafetensorsFile file(checkpoint);
  const std::string content = read_file(checkpoint);
  std::uint64_t header = 0;
  std::memcpy(&header, content.data(), sizeof header);
  const auto data = std::as_bytes(std::span(content)).subspan(sizeof header + header);
  std::vector<NamedBytes> tensors;
  for (const auto& [name, entry] : file.entries())
    tensors.push_back({name, entry.dtype, entry.shape, data.subspan(entry.begin, entry.end - entry.begin)});
  auto metadata = file.metadata();
  metadata.erase(key);
  if (value != nullptr) metadata[key] = value;
  write_safetensors(checkpoint, tensors, metadata);
}

std::string without_checks(std::string metrics) {
  for (std::size_t at; (at = metrics.find(",\"check\"")) != metrics.npos;) metrics.erase(at, 27);
  return metrics;
}

// Makes the run one of version 0.2.0, whose files state no identity and no checks.
void forget_checks(const fs::path& run) {
  const std::string metrics = read_file(run / "metrics.jsonl");
  for (const auto& [name, content] : tree(run / "checkpoints")) {
    const fs::path path = run / "checkpoints" / name;
    Json state = parse_json(SafetensorsFile(path).metadata().at("state"));
    state.erase("run");
    state.erase("metrics_check");
    state["metrics_bytes"] = without_checks(metrics.substr(0, state["metrics_bytes"])).size();
    change_metadata(path, "state", json_text(state).c_str());
  }
  write_file(run / "metrics.jsonl", without_checks(metrics));
}

}  // namespace

TEST_CASE("metrics that were changed, cut, zeroed or are another run's are refused", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", metrics = run / "metrics.jsonl";
  train(short_run_config(12), {.directory = run.string()});
  Config other = short_run_config(12);
  other.train.seed = 1;
  train(other, {.directory = (directory / "other").string()});
  const std::string intact = read_file(metrics);
  CHECK(read_metrics(run) == intact);
  std::vector<std::string> broken = {read_file(directory / "other" / "metrics.jsonl"),
                                     std::string(intact.size(), '\0'),
                                     intact + "{\"step\":13}\n",
                                     intact + "{\"step\":13",
                                     intact.substr(0, intact.size() - 1),
                                     intact.substr(0, intact.rfind('\n', intact.size() - 2) + 1)};
  for (const std::size_t at : {intact.find("loss") + 7, intact.find("check") + 9, intact.rfind("test") + 1}) {
    broken.push_back(intact);
    broken.back()[at] ^= 1;
  }
  for (const std::string& text : broken) {
    CAPTURE(text);
    write_file(metrics, text);
    CHECK_THROWS_AS(read_metrics(run), CheckpointError);
    CHECK_THROWS_WITH(read_timeline(run),
                      StartsWith(metrics.string() + ":") && EndsWith("delete it to go without"));
    CHECK_THROWS_AS(compare({run.string(), run.string()}), CheckpointError);
  }
  fs::remove(metrics);
  CHECK(read_metrics(run).empty());
}

TEST_CASE("metrics of another execution, whose times have other lengths, do not fit a checkpoint",
          "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", metrics = run / "metrics.jsonl";
  train(short_run_config(12), {.directory = run.string(), .stop_after = 7});
  const std::string intact = read_file(metrics);
  for (const char* seconds : {"1", "123456.0123456789"}) {
    const std::size_t at = intact.find("\"seconds\":") + 10;
    write_file(metrics, intact.substr(0, at) + seconds + intact.substr(intact.find('}', at)) +
                            intact.substr(intact.rfind('\n', intact.size() - 2) + 1));
    CHECK_THROWS_AS(resume_run(run), CheckpointError);
    CHECK_THROWS_AS(read_metrics(run), CheckpointError);
  }
  std::string unclosed = intact;
  unclosed[unclosed.find("}\n")] = ' ';
  write_file(metrics, unclosed);
  CHECK_THROWS_AS(read_metrics(run), CheckpointError);
  for (const char* broken : {"\"se\xe3onds\"", "\"seconds\":x", "\r"}) {
    std::string text = intact;
    write_file(metrics, text.insert(text.find("\"seconds\""), broken));
    CHECK_THROWS_AS(read_metrics(run), CheckpointError);
  }
}

TEST_CASE("a checkpoint of a longer run, whose schedule had other rates, is refused", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", longer = directory / "longer", checkpoints = run / "checkpoints";
  Config config = short_run_config(10);
  config.train.checkpoint_series = true;
  config.train.schedule.name = ScheduleKind::cosine;
  train(config, {.directory = run.string()});
  config.train.steps = 20;
  train(config, {.directory = longer.string(), .stop_after = 10});
  const std::string step = "step-5.safetensors", metrics = read_file(run / "metrics.jsonl");
  REQUIRE(read_file(checkpoints / step) != read_file(longer / "checkpoints" / step));
  CHECK_NOTHROW(open_run(run.string(), {}, "5"));
  fs::copy_file(longer / "checkpoints" / step, checkpoints / step, fs::copy_options::overwrite_existing);
  CHECK_THROWS_WITH(open_run(run.string(), {}, "5"),
                    (checkpoints / step).string() + ": is of another run than " +
                        (run / "metrics.jsonl").string() + ", or one of them was changed; restore the file");
  // Metrics that do not have the step say nothing.
  write_file(run / "metrics.jsonl", metrics.substr(0, metrics.find("{\"step\":5,")));
  CHECK_NOTHROW(open_run(run.string(), {}, "5"));
  // Nor do those of a run that was killed before the step was complete.
  fs::remove(run / "summary.json");
  write_file(run / "metrics.jsonl", metrics.substr(0, metrics.find("{\"step\":6,")));
  CHECK_NOTHROW(open_run(run.string(), {}, "5"));
  write_file(run / "metrics.jsonl", metrics.substr(0, metrics.find("{\"step\":7,")));
  CHECK_THROWS_WITH(open_run(run.string(), {}, "5"), ContainsSubstring("another run"));
  fs::remove(run / "metrics.jsonl");
  CHECK_NOTHROW(open_run(run.string(), {}, "5"));
}

TEST_CASE("the last line of a run that goes on may be incomplete", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", metrics = run / "metrics.jsonl";
  train(short_run_config(12), {.directory = run.string(), .stop_after = 7});
  const std::string intact = read_file(metrics);
  write_file(metrics, intact + R"({"step":8,"split":"tr)");
  CHECK_NOTHROW(read_metrics(run));
  write_file(metrics, intact + std::string(20, '\0'));
  CHECK_THROWS_AS(read_metrics(run), CheckpointError);
  write_file(metrics, intact.substr(0, intact.size() - 3));  // lines before the checkpoint are whole
  CHECK_THROWS_AS(read_metrics(run), CheckpointError);
}

TEST_CASE("a summary that was changed, cut, zeroed or is another run's is refused", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", summary = run / "summary.json";
  train(short_run_config(12), {.directory = run.string()});
  Config other = short_run_config(12);
  other.train.seed = 1;
  train(other, {.directory = (directory / "other").string()});
  const std::string intact = read_file(summary);
  CHECK(read_summary(run).at("steps") == 12);
  const std::string foreign = read_file(directory / "other" / "summary.json");
  const auto changed = [&](const char* key, char to) {
    std::string text = intact;
    text[text.find(':', text.find(key)) + 3] = to;
    return text;
  };
  Json unchecked = parse_json(intact);
  unchecked.erase("checksum");
  for (const std::string& text :
       {foreign, changed("\"steps\"", '3'), changed("weights_hash", 'x'), changed("\"run\"", 'x'),
        json_text(unchecked), std::string(intact.size(), '\0'), intact.substr(0, intact.size() / 2),
        std::string("{}"), std::string("3"), std::string()}) {
    CAPTURE(text);
    write_file(summary, text);
    CHECK_THROWS_AS(read_summary(run), CheckpointError);
    CHECK_THROWS_WITH(read_summary(run),
                      StartsWith(summary.string() + ": ") && EndsWith("or resume the run to write it again"));
    CHECK_THROWS_AS(compare({run.string(), run.string()}), CheckpointError);
  }
  resume_run(run);
  CHECK(read_summary(run).at("steps") == 12);
}

TEST_CASE("metrics with checks of their own do not fit what the checkpoint and the summary state",
          "[train]") {
  const TemporaryDirectory directory;
  const fs::path ended = directory / "ended", stopped = directory / "stopped";
  train(short_run_config(12), {.directory = ended.string()});
  train(short_run_config(12), {.directory = stopped.string(), .stop_after = 7});
  const auto identity = read_summary(ended).at("run").get<std::string>();
  for (const fs::path& run : {ended, stopped}) {
    write_rechecked(run / "metrics.jsonl", identity);
    CHECK_THROWS_WITH(read_metrics(run), ContainsSubstring("was changed, or belongs to another run"));
  }
  const auto before = tree(stopped);
  CHECK_THROWS_WITH(resume_run(stopped), ContainsSubstring("was changed, or belongs to another run"));
  CHECK(tree(stopped) == before);
  fs::remove(stopped / "metrics.jsonl");
  CHECK_THROWS_WITH(resume_run(stopped), ContainsSubstring("has 0 bytes, but"));
}

TEST_CASE("metrics of a run without a checkpoint are compared line by line", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", metrics = run / "metrics.jsonl";
  train(short_run_config(12), {.directory = run.string()});
  fs::remove(run / "summary.json");
  fs::remove_all(run / "checkpoints");
  CHECK_THROWS_WITH(open_run(run), EndsWith("not a run: config.yaml or checkpoints is missing"));
  CHECK_NOTHROW(read_metrics(run));
  const std::string intact = read_file(metrics);
  std::string text = intact;
  text[text.rfind("loss") + 8] ^= 1;
  write_file(metrics, text);
  CHECK_THROWS_AS(read_metrics(run), CheckpointError);
  // Of another run: training does not begin over them.
  Config other = short_run_config(12);
  other.train.seed = 1;
  train(other, {.directory = (directory / "other").string(), .stop_after = 3});
  fs::copy_file(directory / "other" / "metrics.jsonl", metrics, fs::copy_options::overwrite_existing);
  fs::create_directory(run / "checkpoints");
  const auto before = tree(run);
  CHECK_THROWS_WITH(resume_run(run),
                    EndsWith("belongs to a run with another config or other data; start a new run"));
  CHECK(tree(run) == before);
  write_file(metrics, intact);
  CHECK(resume_run(run).steps == 12);
}

TEST_CASE("runs of 0.2.0, which have no checks, are read and go on", "[train]") {
  const TemporaryDirectory directory;
  const fs::path ended = directory / "ended", stopped = directory / "stopped";
  const TrainResult expected = train(short_run_config(12), {.directory = ended.string()});
  const fs::path final_path = ended / "checkpoints" / "final.safetensors";
  fs::copy(ended, stopped, fs::copy_options::recursive);
  forget_checks(ended);
  write_file(ended / "summary.json", json_text(summary_json(to_json(expected), "", 0, "")));
  CHECK(read_summary(ended) == to_json(expected));
  CHECK_FALSE(has_changed(read_summary(ended)));
  CHECK(read_metrics(ended) == read_file(ended / "metrics.jsonl"));
  change_metadata(final_path, "data");
  fs::remove(ended / "data.json");
  CHECK_NOTHROW(open_run(ended));
  // Without the record of the data, no key of the task may change.
  Config longer = short_run_config(16);
  CHECK_NOTHROW(RunWriter(ended, longer, true));
  longer.task.length = 5;
  CHECK_THROWS_WITH(RunWriter(ended, longer, true), ContainsSubstring("holds a run with another config"));
  change_metadata(final_path, "state");
  CHECK(read_metrics(ended) == read_file(ended / "metrics.jsonl"));
  CHECK_THROWS_WITH(resume_run(ended), ContainsSubstring("not a checkpoint of format thimble 2"));
  change_metadata(stopped / "checkpoints" / "final.safetensors", "format");
  CHECK_THROWS_WITH(resume_run(stopped), ContainsSubstring("not a checkpoint of format thimble 2"));
}

TEST_CASE("a run of 0.2.0 that goes on ends like one that has checks", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  const TrainResult expected = train(short_run_config(12), {.directory = (directory / "whole").string()});
  train(short_run_config(12), {.directory = run.string(), .stop_after = 7});
  forget_checks(run);
  CHECK(resume_run(run).weights_hash == expected.weights_hash);
  CHECK_FALSE(read_summary(run).contains("checksum"));
  CHECK(read_metrics(run).find("\"check\"") == std::string::npos);
}

TEST_CASE("a leak that was found is in the state", "[train]") {
  RunState state;
  state.step = 1;
  state.validation = EvalResult{};
  state.validation->leak = 0.25;
  CHECK(run_state(to_json(state)).validation->leak == 0.25);
}
