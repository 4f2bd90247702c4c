// What metrics.jsonl and summary.json say is shown, marked or left out; it keeps nobody from the weights.
#include <sys/resource.h>

#include <sstream>

#include "program/compare/compare.h"
#include "thimble/engine/error.h"
#include "thimble/inspect/timeline.h"
#include "thimble/train/run.h"
#include "thimble/train/run_state.h"
#include "thimble/train/train.h"
#include "train/runs/changed_run.h"

using namespace thimble;

namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

Config other_run() {
  Config config = short_run_config(12);
  config.train.seed = 1;
  return config;
}

// Returns the text without the lines that have the part.
std::string without(const std::string& text, const std::string& part) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);)
    if (line.find(part) == line.npos) out += line + "\n";
  return out;
}

// Returns the lines of the log up to a step.
std::string up_to(const std::string& text, std::int64_t step) {
  return text.substr(0, text.find(fmt::format("{{\"step\":{},", step + 1)));
}

}  // namespace

TEST_CASE("an edited log resumes to the same weights, and keeps its lines up to the checkpoint",
          "[train][slow]") {
  const TemporaryDirectory directory;
  const fs::path stopped = directory / "stopped", whole = directory / "whole", copy = directory / "copy";
  const std::string hash = train(short_run_config(12), {.directory = whole.string()}).weights_hash;
  train(short_run_config(12), {.directory = stopped.string(), .stop_after = 7});
  const std::string intact = read_file(stopped / "metrics.jsonl"), third = "{\"step\":3,";
  const auto resumed = [&](const std::string& text) {
    CAPTURE(text);
    fs::remove_all(copy);
    fs::copy(stopped, copy, fs::copy_options::recursive);
    write_file(copy / "metrics.jsonl", text);
    std::string remarks;
    CHECK(resume(copy, &remarks).weights_hash == hash);
    CHECK(remarks.empty());
    std::size_t files = 0;
    for (const auto& entry : fs::directory_iterator(copy)) files += entry.is_regular_file() ? 1 : 0;
    CHECK(files == 4);
    return read_file(copy / "metrics.jsonl");
  };
  // The lines stay as they are, and training appends to them.
  for (const std::string& text :
       {intact, replaced(intact, "\n", "\r\n"), replaced(intact, "\n", "\n\n  \n"),
        replaced(replaced(intact, ":", ": "), ",", " , "), without(intact, third),
        without(intact, "{\"step\":1,"), with_other_digit(intact, intact.find("loss") + 9),
        replaced(intact, third, "{\"step\":3 3,"), intact + up_to(intact, 6), without(intact, "step")}) {
    const std::string kept = text.substr(0, text.find_last_not_of(" \r\n") + 1), now = resumed(text);
    CHECK_THAT(now, StartsWith(kept) && ContainsSubstring("{\"step\":12,\"split\":\"test\","));
    CHECK(std::ranges::count(now, '\n') - std::ranges::count(kept, '\n') < 12);
  }
  for (const std::string& text : {intact, intact.substr(0, intact.size() - 1)}) {
    resumed(text);
    CHECK(timeless_metrics(copy) == timeless_metrics(whole));
  }
  // What comes after the checkpoint, or is cut, goes.
  for (const std::string& more :
       {std::string("{\"step\":8,\"split\":\"train\",\"loss\":1}\n{\"step\":2,\"split\":\"mine\"}\n"),
        std::string("{\"step\":7,\"split\":\"test\"}\n"), std::string("{\"step\":13,\"spl"),
        std::string("{\"step\":7,\"split\":\"change\",\"key\":\"train.steps\",\"from\":12,\"to\":14}\n")}) {
    resumed(intact + more);
    CHECK(timeless_metrics(copy) == timeless_metrics(whole));
  }
  const std::string mine = "{\"step\":7,\"split\":\"change\",\"key\":\"/~\",\"from\":12}\n";
  CHECK_THAT(resumed(intact + mine), StartsWith(intact + mine));
}

TEST_CASE("a log that was edited is shown as it stands, each step and split once", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", metrics = run / "metrics.jsonl";
  train(short_run_config(12), {.directory = run.string()});
  const std::string intact = read_file(metrics);
  const std::vector<CurvePoint> points = read_timeline(run).curves;
  const auto shown = [&](const std::string& text) {
    CAPTURE(text);
    write_file(metrics, text);
    const std::vector<CurvePoint> now = read_timeline(run).curves;
    REQUIRE(now.size() == points.size());
    for (std::size_t i = 0; i < now.size(); ++i) CHECK(now[i].loss == points[i].loss);
    return remarks_on(run);
  };
  for (const std::string& text : {intact, replaced(intact, "\n", "\r\n"), replaced(intact, "\n", "\n\n  \n"),
                                  intact + "{\"step\":13,\"spl",
                                  intact + "{\"step\":13,\"split\":\"mine\"}\n", without(intact, "\"test\"")})
    CHECK(shown(text).empty());
  const std::string again =
      metrics.string() + ": {} of the same step and split as one before; the first is shown";
  const std::string third = intact.substr(intact.find("{\"step\":3,"));
  CHECK(shown(intact + up_to(third, 3)) == replaced(again, "{}", "1 line"));
  CHECK(shown(intact + replaced(intact, "\"loss\":", "\"loss\":9")) == replaced(again, "{}", "16 lines"));
  // In any order.
  std::string sorted;
  for (const char* step : {"1,", "10,", "11,", "12,", "9,", "8,", "2,", "3,", "4,", "5,", "7,", "6,"}) {
    std::istringstream lines(intact);
    for (std::string line; std::getline(lines, line);)
      if (line.starts_with(std::string("{\"step\":") + step)) sorted += line + "\n";
  }
  CHECK(shown(sorted).empty());
  CHECK(shown(sorted + intact) == replaced(again, "{}", "16 lines"));
  const auto change = [](int to) {
    return fmt::format("{{\"step\":3,\"split\":\"change\",\"key\":\"train.optimizer.lr\",\"to\":{}}}\n", to);
  };
  CHECK(shown(intact + change(1) + change(2)).empty());
  CHECK(shown(intact + change(1) + change(2) + change(1)) == replaced(again, "{}", "1 line"));
  write_file(metrics, with_other_digit(intact, intact.find("loss") + 9));
  CHECK(remarks_on(run).empty());
  write_file(metrics, without(without(intact, "{\"step\":1,"), "{\"step\":2,"));
  CHECK(remarks_on(run) == metrics.string() + ": begins at step 3");
  const std::string invalid = ": line 2 is no object of step and split, so it is left out";
  for (const char* line : {"\"2\"", "[2]", "-2", "2.5", "2 2"}) {
    write_file(metrics, replaced(replaced(intact, "{\"step\":2,", fmt::format("{{\"step\":{},", line)),
                                 "{\"step\":3,", "{"));
    CHECK(remarks_on(run) == metrics.string() + invalid);
  }
}

TEST_CASE("a log of another run is refused as any foreign file, and not shown", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", metrics = run / "metrics.jsonl", other = directory / "other";
  train(short_run_config(12), {.directory = run.string(), .stop_after = 7});
  train(other_run(), {.directory = other.string()});
  write_file(metrics, read_file(other / "metrics.jsonl"));
  const std::string foreign =
      ": is not of this run, which would overwrite or delete it; move it elsewhere, then resume";
  const auto is_refused = [&] {
    const auto before = tree(run);
    CHECK_THROWS_WITH(resume(run), metrics.string() + foreign);
    CHECK(tree(run) == before);
  };
  is_refused();
  CHECK(remarks_on(run) ==
        metrics.string() + ": is of another run; what was measured during training is left out");
  CHECK(read_timeline(run, open_run(run).state).curves.empty());
  CHECK(evaluate(open_run(run), Split::test).sequences == 60);
  fs::remove_all(run / "checkpoints");  // it begins again
  is_refused();
  fs::rename(metrics, directory / "elsewhere");
  CHECK(resume(run).steps == 12);
}

TEST_CASE("a log that is missing is said, and begins again after the checkpoint", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", metrics = run / "metrics.jsonl";
  train(short_run_config(12), {.directory = run.string(), .stop_after = 7});
  fs::remove(metrics);
  CHECK(remarks_on(run) == metrics.string() + ": missing; what was measured during training is left out");
  const std::string state = open_run(run).state.run;
  resume(run);
  CHECK(metrics_of(run).front().at("step") == 8);
  CHECK(metrics_of(run).front().at("run") == state);
  CHECK(remarks_on(run) == metrics.string() + ": begins at step 8");
  CHECK(open_run(run, {}, "best").remarks.empty());
}

TEST_CASE("a run that begins again begins its log again", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  train(short_run_config(12), {.directory = (directory / "whole").string()});
  train(short_run_config(12), {.directory = run.string(), .stop_after = 3});
  fs::remove_all(run / "checkpoints");
  resume(run);
  CHECK(timeless_metrics(run) == timeless_metrics(directory / "whole"));
}

TEST_CASE("metrics that cannot be read, or a summary that is missing, are said and left out", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", metrics = run / "metrics.jsonl";
  train(short_run_config(12), {.directory = run.string()});
  fs::remove(metrics);
  fs::create_directory(metrics);
  CHECK_THAT(remarks_on(run),
             Equals(metrics.string() +
                    ": cannot be read: Is a directory; what was measured during training is left out"));
  CHECK(compare({run.string(), run.string()}).remarks.size() == 2);
  fs::remove(metrics);
  fs::create_symlink("gone", metrics);
  CHECK_THAT(
      remarks_on(run),
      Equals(metrics.string() +
             ": cannot be read: No such file or directory; what was measured during training is left out"));
  fs::remove(metrics);
  const fs::path other = directory / "other";
  fs::copy(run, other, fs::copy_options::recursive);
  fs::remove(other / "summary.json");
  const Comparison comparison = compare({run.string(), other.string()});
  CHECK(comparison.remarks.back() ==
        other.string() + ": has no summary.json; its numbers are left out; measure them with thimble eval " +
            other.string());
  for (const ComparedValue& row : comparison.records) CHECK_FALSE(row.differs);
}

TEST_CASE("metrics that could be read but for a limit of the process are an error", "[train]") {
  const TemporaryDirectory directory;
  write_file(directory / "metrics.jsonl", "{}\n");
  const RunDirectory run = directory.path();
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  std::vector<std::string> remarks;
  std::exception_ptr thrown;  // read later: sanitizers open files
  ::setrlimit(RLIMIT_NOFILE, &none);
  try {
    run.read_metrics(
        RunState(), [](const Json&) {}, remarks);
  } catch (...) {
    thrown = std::current_exception();
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  CHECK(remarks.empty());
  REQUIRE(thrown);
  CHECK_THROWS_AS(std::rethrow_exception(thrown), CheckpointError);
  CHECK_THROWS_WITH(std::rethrow_exception(thrown),
                    (directory / "metrics.jsonl").string() +
                        ": cannot be read: Too many open files; raise the limit (ulimit -n)");
}

TEST_CASE("a summary is compared with its run and its weights, nothing else", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", file = run / "summary.json";
  train(short_run_config(12), {.directory = run.string()});
  train(other_run(), {.directory = (directory / "other").string()});
  const fs::path longer = directory / "longer";  // is the same run, trained further
  fs::copy(run, longer, fs::copy_options::recursive);
  train(short_run_config(14), {.directory = longer, .resume = true});
  const Checkpoint newest = checkpoint_of(open_run(run).file);
  const std::string intact = read_file(file);
  const auto summary = [&](std::vector<std::string>& remarks) {
    return RunDirectory(run).summary(newest.state.run, newest.weights_hash(), remarks);
  };
  const Json values = parse_json(intact);
  std::vector<std::string> none;
  CHECK(summary(none) == values);
  write_file(file, json_text(values));  // on one line
  CHECK(summary(none) == values);
  write_file(file, replaced(intact, "\"steps\": 12", "\"steps\": 13"));
  CHECK(summary(none).at("steps") == 13);
  CHECK(none.empty());
  for (const std::string& text :
       {replaced(intact, newest.weights_hash(), "x"), replaced(intact, newest.state.run, "x"),
        read_file(directory / "other" / "summary.json"), read_file(longer / "summary.json"),
        std::string(intact.size(), '\0'), intact.substr(0, intact.size() / 2), std::string("{}"),
        std::string("3"), std::string()}) {
    CAPTURE(text);
    write_file(file, text);
    std::vector<std::string> remarks;
    CHECK(summary(remarks).is_null());
    REQUIRE(remarks.size() == 1);
    CHECK_THAT(remarks[0], StartsWith(file.string() + ": ") &&
                               EndsWith("measure them with thimble eval " + run.string()));
    CHECK(evaluate(open_run(run), Split::test).sequences == 60);
    const Comparison comparison = compare({run.string(), run.string()});
    CHECK(comparison.remarks.size() == 2);
    CHECK(comparison.results.empty());
  }
  const std::string metrics = timeless_metrics(run);
  for (const std::string& text :
       {intact.substr(0, intact.size() / 2), replaced(intact, newest.weights_hash(), "x")}) {
    CAPTURE(text);
    write_file(file, text);
    std::string remarks;
    resume(run, &remarks);
    CHECK(remarks.empty());
    CHECK(summary(none).at("steps") == 12);
    CHECK(timeless_metrics(run) == metrics);
  }
  // What is whole stays as it is.
  const auto before = tree(run);
  resume(run);
  CHECK(tree(run) == before);
}

TEST_CASE("values of a summary that were edited are no error", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", file = run / "summary.json";
  train(short_run_config(4), {.directory = run.string()});
  const Json values = parse_json(read_file(file));
  for (const auto& [key, value] : values.items()) {
    if (key == "run" || key == "weights_hash") continue;
    for (const Json& other : {Json(), Json("x"), Json::object(), Json{{"loss", "x"}}, Json{1, 2}}) {
      CAPTURE(key, json_text(other));
      Json edited = values;
      edited[key] = other;
      write_file(file, json_text(edited));
      CHECK_NOTHROW(compare({run.string(), run.string()}));
    }
  }
}

TEST_CASE("a leak that was found is in the state", "[train]") {
  RunState state;
  state.step = 1;
  state.validation = EvalResult{};
  state.validation->leak = 0.25;
  CHECK(run_state(to_json(state)).validation->leak == 0.25);
}

TEST_CASE("a state keeps the losses of its stops, and one of before is read", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run";
  train(short_run_config(12), {.directory = run.string(), .stop_after = 4});
  train(short_run_config(12), {.directory = run, .resume = true, .stop_after = 6});  // without an evaluation
  train(short_run_config(12), {.directory = run, .resume = true, .stop_after = 8});
  resume(run);
  std::map<std::int64_t, double> losses;
  for (const Json& line : metrics_of(run))
    if (line.at("split") == "validation" && line.at("step") < 12) losses[line.at("step")] = line.at("loss");
  REQUIRE(losses.size() == 2);
  const RunState state = open_run(run).state;
  CHECK(state.stops == losses);
  Json before = to_json(state);
  before["metrics"] = {{"lines", 3}, {"hash", "0123456789abcdef"}};
  before.erase("stops");
  CHECK(run_state(before).stops.empty());
  CHECK(run_state(before).best_loss == state.best_loss);
}
