// What metrics.jsonl and summary.json say is shown, marked or left out; it keeps nobody from the weights.
#include <sys/resource.h>

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

}  // namespace

TEST_CASE("metrics are compared as values: what keeps them is no change", "[train][slow]") {
  const TemporaryDirectory directory;
  const fs::path ended = directory / "ended", stopped = directory / "stopped";
  const TrainResult whole = train(short_run_config(12), {.directory = ended.string()});
  train(short_run_config(12), {.directory = stopped.string(), .stop_after = 7});
  for (const fs::path& run : {ended, stopped}) {
    const fs::path metrics = run / "metrics.jsonl";
    const std::string intact = read_file(metrics);
    const std::size_t points = read_timeline(run).curves.size();
    for (const std::string& text :
         {intact, replaced(intact, "\n", "\r\n"), replaced(intact, "\n", "\n\n  \n"), intact + "\n\n",
          replaced(replaced(intact, ":", ": "), ",", " , "), intact.substr(0, intact.size() - 1),
          intact + "{\"step\":13,\"spl", intact + "{\"step\":13,\"split\":\"mine\"}\n"}) {
      CAPTURE(text);
      write_file(metrics, text);
      CHECK(remarks_on(run).empty());
      CHECK(read_timeline(run).curves.size() == points);
      CHECK(compare({run.string(), run.string()}).remarks.empty());
      const fs::path copy = directory / "copy";
      fs::copy(run, copy, fs::copy_options::recursive);
      std::string remarks;
      CHECK(resume(copy, &remarks).weights_hash == whole.weights_hash);
      CHECK(remarks.empty());
      CHECK(remarks_on(copy).empty());
      fs::remove_all(copy);
    }
    write_file(metrics, intact);
  }
}

TEST_CASE("metrics that differ are shown and marked, and resumed only with a new file", "[train][slow]") {
  const TemporaryDirectory directory;
  const fs::path ended = directory / "ended", stopped = directory / "stopped", other = directory / "other";
  const TrainResult whole = train(short_run_config(12), {.directory = ended.string()});
  train(short_run_config(12), {.directory = stopped.string(), .stop_after = 7});
  train(other_run(), {.directory = other.string()});
  for (const fs::path& run : {ended, stopped}) {
    const fs::path metrics = run / "metrics.jsonl";
    const std::string intact = read_file(metrics);
    std::vector<std::string> broken = {
        read_file(other / "metrics.jsonl"),
        with_other_digit(intact, intact.find("loss") + 9),
        with_other_digit(intact, intact.rfind("loss\":") + 9),
        replaced(intact, "\"split\":\"train\"", "\"split\":\"brain\""),
        replaced(intact, "{\"step\":3,", "{\"step\":3 3,"),
        replaced(intact, "{\"step\":3,", "{\"step\":\"3\","),
        std::string(intact.size(), '\0') + "\n",
    };
    for (const std::string& text : broken) {
      CAPTURE(text);
      write_file(metrics, text);
      CHECK(evaluate(open_run(run), Split::test).sequences == 60);
      CHECK_THAT(remarks_on(run),
                 StartsWith(metrics.string() + ": ") &&
                     (ContainsSubstring("has other values than the run wrote, or is of another run") ||
                      ContainsSubstring("is no object of step and split")));
      CHECK_FALSE(compare({run.string(), run.string()}).remarks.empty());
      if (run == ended && text == broken[2]) continue;  // the last line comes after the checkpoint
      const auto before = tree(run);
      CHECK_THROWS_WITH(
          resume(run),
          StartsWith(metrics.string() + ": ") &&
              EndsWith("or give --new-metrics to keep it as metrics.jsonl.replaced and begin a new one"));
      CHECK(tree(run) == before);
      const fs::path copy = directory / "copy";
      fs::copy(run, copy, fs::copy_options::recursive);
      CHECK(resume(copy, nullptr, true).weights_hash == whole.weights_hash);
      CHECK(read_file(copy / "metrics.jsonl.replaced") == text);
      CHECK_NOTHROW(resume(copy));
      fs::remove_all(copy);
    }
    write_file(metrics, intact);
  }
}

TEST_CASE("lines after a checkpoint are compared with what the summary states", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", metrics = run / "metrics.jsonl";
  Config config = short_run_config(12);
  config.train.checkpoint_series = true;
  train(config, {.directory = run.string()});
  const std::string intact = read_file(metrics);
  const RunState earlier = open_run(run, {}, "5").state;
  CHECK(read_timeline(run, earlier).remarks.empty());
  write_file(metrics, with_other_digit(intact, intact.rfind("loss\":") + 8));
  const std::vector<std::string> remarks = read_timeline(run, earlier).remarks;
  REQUIRE(remarks.size() == 1);
  CHECK_THAT(remarks[0], StartsWith(metrics.string() + ": has other values than the run wrote"));
}

TEST_CASE("lines that are missing after a checkpoint are counted by the summary", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", metrics = run / "metrics.jsonl";
  const auto cut = [&] {
    const std::string text = read_file(metrics);
    write_file(metrics, text.substr(0, text.rfind('\n', text.size() - 2) + 1));
  };
  const auto remarks = [&](const char* checkpoint) {
    return read_timeline(run, open_run(run, {}, checkpoint).state).remarks;
  };
  using Lines = std::vector<std::string>;
  const auto counted = [&](const char* lines) {
    return Lines{fmt::format("{}: {} lines are there; the others are left out", metrics.string(), lines)};
  };
  Config config = short_run_config(12);
  config.train.checkpoint_series = true;
  train(config, {.directory = run.string()});
  REQUIRE(metrics_of(run).size() == 16);
  cut();  // the result on the test split, which comes after the last checkpoint
  CHECK(remarks("") == counted("15 of 16"));
  CHECK(remarks("5") == counted("15 of 16"));
  // A file that began after a checkpoint has none of its lines.
  fs::remove_all(run);
  train(config, {.directory = run.string(), .stop_after = 11});
  fs::remove(metrics);
  resume_run(run);
  REQUIRE(metrics_of(run).size() == 3);
  CHECK(remarks("10") == Lines{metrics.string() + ": begins at step 12"});
  cut();
  CHECK(remarks("10") == counted("2 of 3"));
}

TEST_CASE("of several invalid lines of metrics, the first is named", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", metrics = run / "metrics.jsonl";
  train(short_run_config(4), {.directory = run.string()});
  std::string text = read_file(metrics);
  text = replaced(text, "{\"step\":2,", "{\"step\":\"2\",");
  write_file(metrics, replaced(text, "{\"step\":3,", "{\"step\":[3],"));
  CHECK(read_timeline(run, open_run(run).state).remarks ==
        std::vector{metrics.string() + ": line 2 is no object of step and split, so it is left out"});
}

TEST_CASE("missing metrics are said, and a new file begins", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", metrics = run / "metrics.jsonl";
  const TrainResult whole = train(short_run_config(12), {.directory = (directory / "whole").string()});
  train(short_run_config(12), {.directory = run.string(), .stop_after = 7});
  const std::string intact = read_file(metrics);
  const auto before = tree(run);
  for (const std::string& text :
       {std::string("missing"), std::string(), intact.substr(0, intact.find("{\"step\":4,")),
        intact.substr(0, intact.size() - 9)}) {
    CAPTURE(text);
    fs::remove(metrics);
    if (text != "missing") write_file(metrics, text);
    CHECK_FALSE(remarks_on(run).empty());
    std::string remarks;
    const fs::path copy = directory / "copy";
    fs::copy(run, copy, fs::copy_options::recursive);
    CHECK(resume(copy, &remarks).weights_hash == whole.weights_hash);
    CHECK_THAT(remarks, StartsWith((copy / "metrics.jsonl").string() + ": ") &&
                            ContainsSubstring("a new file begins"));
    CHECK(fs::exists(copy / "metrics.jsonl.replaced") == (text.size() > 9));
    CHECK(metrics_of(copy).front().at("step") == 8);
    CHECK_THAT(remarks_on(copy), EndsWith("metrics.jsonl: begins at step 8"));
    CHECK(open_run(copy, {}, "best").remarks.empty());
    CHECK_NOTHROW(resume(copy));
    fs::remove_all(copy);
  }
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

TEST_CASE("metrics of a run that begins again are its own, or stay", "[train]") {
  const TemporaryDirectory directory;
  const fs::path run = directory / "run", metrics = run / "metrics.jsonl";
  train(short_run_config(12), {.directory = run.string(), .stop_after = 3});
  train(other_run(), {.directory = (directory / "other").string(), .stop_after = 3});
  fs::remove_all(run / "checkpoints");
  const std::string intact = read_file(metrics);
  write_file(metrics, read_file(directory / "other" / "metrics.jsonl"));
  const auto before = tree(run);
  CHECK_THROWS_WITH(resume(run), EndsWith("begin a new one"));
  CHECK(tree(run) == before);
  write_file(metrics, intact);
  CHECK(resume(run).steps == 12);
  CHECK_FALSE(fs::exists(metrics.string() + ".replaced"));
}

TEST_CASE("a summary that was changed, cut, zeroed or is another run's is left out", "[train]") {
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
  std::vector<std::string> none;
  CHECK(summary(none).at("steps") == 12);
  write_file(file, json_text(parse_json(intact)));  // on one line
  CHECK(summary(none).at("steps") == 12);
  std::map<std::string, Json> sorted;
  const Json values = parse_json(intact);
  for (const auto& [key, value] : values.items()) sorted[key] = value;
  write_file(file, json_text(Json(sorted), 7));  // as jq -S writes it
  CHECK(summary(none).at("steps") == 12);
  CHECK(none.empty());
  const auto changed = [&](const char* key, char to) {
    std::string text = intact;
    text[text.find(':', text.find(key)) + 3] = to;
    return text;
  };
  Json unchecked = parse_json(intact);
  unchecked.erase("checksum");
  for (const std::string& text :
       {changed("\"steps\"", '3'), changed("weights_hash", 'x'), changed("\"run\"", 'x'),
        json_text(unchecked), std::string(intact.size(), '\0'), intact.substr(0, intact.size() / 2),
        std::string("{}"), std::string("3"), std::string()}) {
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
  for (const fs::path& from : {directory / "other", longer}) {
    CAPTURE(from);
    write_file(file, read_file(from / "summary.json"));
    std::vector<std::string> remarks;
    CHECK(summary(remarks).is_null());
    REQUIRE(remarks.size() == 1);
    CHECK_THAT(remarks[0],
               StartsWith(file.string() + ": is of another run, or of other weights; its numbers"));
    CHECK(compare({run.string(), run.string()}).results.empty());
  }
  const std::string metrics = timeless_metrics(run);
  for (const std::string& text : {intact.substr(0, intact.size() / 2), changed("\"steps\"", '3')}) {
    CAPTURE(text);
    write_file(file, text);
    std::string remarks;
    resume(run, &remarks);
    CHECK(remarks == file.string() + ": was changed; set aside");
    CHECK(read_file(file.string() + ".damaged") == text);
    CHECK(summary(none).at("steps") == 12);
    CHECK(timeless_metrics(run) == metrics);
    fs::remove(file.string() + ".damaged");
  }
}

TEST_CASE("a leak that was found is in the state", "[train]") {
  RunState state;
  state.step = 1;
  state.validation = EvalResult{};
  state.validation->leak = 0.25;
  CHECK(run_state(to_json(state)).validation->leak == 0.25);
}
