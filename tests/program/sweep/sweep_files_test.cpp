// The files of a sweep: which directories and records are its own.
#include "program/sweep/sweep_state.h"

#include "catch.h"
#include "program/sweep/workshop.h"
#include "train/step/forward.h"

using namespace thimble;

namespace fs = std::filesystem;

namespace {

// Returns the record with an error that is no text.
std::string replaced_error(const std::string& record) {
  Json json = parse_json(record);
  json["error"] = 3;
  return json_text(json);
}

}  // namespace

TEST_CASE("a directory that is not this sweep's is refused and left as it is", "[sweep]") {
  Workshop w;
  fs::create_directories(w.directory / "out/runs");
  CHECK(w.refusal().empty());  // a sweep that has done nothing may have left that
  const std::string out = (w.directory / "out").string();

  write_file(w.directory / "s.yaml", "config: base.yaml\ngrid: {model.heads: [1, 4]}\nseeds: [7, 8]\n");
  w.load();
  CHECK(
      w.refusal() ==
      out +
          ": belongs to another sweep: its setting 2 is {\"model.heads\":2} with seeds [7,8] and a config of hash " +
          w.json()["settings"][1]["config_hash"].get<std::string>() +
          ", here {\"model.heads\":4} with seeds [7,8] and a config of hash " +
          to_json(w.sweep, plan_runs(w.sweep), "")["settings"][1]["config_hash"].get<std::string>() +
          "; choose another directory with --out");
  write_file(w.directory / "s.yaml", "config: base.yaml\ngrid: {model.heads: [1, 2]}\nseeds: [7, 9]\n");
  w.load();
  CHECK_THAT(w.refusal(), ContainsSubstring("setting 1 is {\"model.heads\":1} with seeds [7,8]") &&
                              ContainsSubstring(", here {\"model.heads\":1} with seeds [7,9]"));
  // Where the file cannot tell, a directory with other files than the sweep's is refused.
  const std::string intact = read_file(w.directory / "out/sweep.json");
  for (const char* text : {"", "{", "{}"}) {
    write_file(w.directory / "out/sweep.json", text);
    CHECK(w.refusal() == out + ": exists and is not the directory of this sweep; choose another with --out");
    CHECK(read_file(w.directory / "out/sweep.json") == text);
  }
  write_file(w.directory / "out/sweep.json", intact);
  write_file(w.directory / "s.yaml", "config: base.yaml\ngrid: {model.heads: [1, 2, 4]}\nseeds: [7, 8]\n");
  w.load();
  CHECK_THAT(w.refusal(), ContainsSubstring("belongs to another sweep: it has 2 settings, this one 3"));

  write_file(w.directory / "s.yaml", "config: base.yaml\ngrid: {model.heads: [1, 2]}\nseeds: [7, 8]\n");
  w.load();
  fs::remove(w.directory / "out/sweep.json");
  write_file(w.directory / "out/runs/mine", "");
  CHECK(w.refusal() == out + ": exists and is not the directory of this sweep; choose another with --out");
  CHECK_FALSE(fs::exists(w.directory / "out/sweep.json"));
  fs::remove_all(w.directory / "out/runs");
  write_file(w.directory / "out/sweep.json", "mine");
  CHECK(w.refusal() == out + ": exists and is not the directory of this sweep; choose another with --out");
}

TEST_CASE("a sweep.json that is missing, changed or old is written again, and no run is trained", "[sweep]") {
  const Workshop w;
  w.run();
  const fs::path out = w.directory / "out", file = out / "sweep.json";
  const std::string intact = read_file(file);
  const Json before = w.json();
  Json old = before, edited = before, without = before;
  old["format"] = "thimble sweep 2";
  old["checksum"] = "0123456789abcdef";
  edited["settings"][0]["mean"]["test"]["loss"] = 0.25;
  without["settings"][0].erase("config_hash");
  fs::remove(w.directory / "calls");
  const std::string sorted = canonical_text(before);
  for (const std::string& text :
       {std::string("missing"), std::string(), intact.substr(0, intact.size() / 2), sorted, json_text(edited),
        json_text(old), json_text(without), std::string("[]"), std::string(intact.size(), '\0')}) {
    CAPTURE(text);
    write_file(file, text);
    if (text == "missing") fs::remove(file);
    if (text != sorted && text != json_text(edited)) {
      const bool is_there = text != "missing";
      CHECK_THROWS_WITH(
          open_sweep(out),
          file.string() + (is_there ? ": is not what this version writes" : ": is missing") +
              "; the command of the sweep writes it again: thimble sweep FILE --out " + out.string() +
              (is_there ? "" : "; where there was no sweep, name the runs: thimble compare RUN RUN"));
    }
    CHECK(statuses(w.run().runs) == "done, done, done, done");
    CHECK(w.json() == before);
    CHECK(statuses(open_sweep(out).runs) == "done, done, done, done");
  }
  CHECK_FALSE(fs::exists(w.directory / "calls"));
  Json broken = before;
  broken["settings"][0]["runs"][0]["seed"] = "x";
  write_file(file, json_text(broken));
  CHECK_THROWS_WITH(open_sweep(out), StartsWith(file.string() + ": is not what this version writes; "));
}

TEST_CASE("what came of a run is read from its directory, and a record says only why one failed", "[sweep]") {
  const Workshop w("seeds: [7, 8]\n");
  w.script("case $* in *seed=8*) mkdir -p $out; echo 'thimble: too hot' >&2; exit 5;; esac; finish");
  w.run();
  const fs::path out = w.directory / "out", record = out / "runs/002-seed_8.json";
  CHECK_FALSE(fs::exists(out / "runs/001-seed_7.json"));
  const std::string identity = plan_runs(w.sweep)[1].identity, intact = read_file(record);
  CHECK(parse_json(intact) == Json{{"run", identity}, {"exit", 5}, {"error", "too hot"}});
  const auto failed = [&] {
    const SweepRun run = open_sweep(out).runs[1];
    return run.status == RunStatus::failed && run.exit == 5 && run.error == "too hot" && run.remark.empty();
  };
  CHECK(failed());
  // Those of version 0.3 are read.
  Json old{{"run", identity},
           {"status", "failed"},
           {"exit", 5},
           {"error", "too hot"},
           {"weights_hash", nullptr},
           {"halving_losses", Json::array()},
           {"checksum", "0123456789abcdef"}};
  write_file(record, json_text(old));
  CHECK(failed());
  old["status"] = "done";
  old["exit"] = 0;
  write_file(record, json_text(old));
  CHECK(statuses(open_sweep(out).runs) == "done, interrupted");
  // What is damaged, or of another run, counts for nothing.
  Json other = parse_json(intact);
  other["run"] = plan_runs(w.sweep)[0].identity;
  for (const std::string& text : {json_text(other), intact.substr(0, intact.size() / 2), std::string("{}"),
                                  std::string("3"), replaced_error(intact)}) {
    CAPTURE(text);
    write_file(record, text);
    CHECK(statuses(open_sweep(out).runs) == "done, interrupted");
  }
  fs::remove(w.directory / "calls");
  w.script("finish");
  const SweepResult again = w.run();
  CHECK(statuses(again.runs) == "done, done");
  CHECK(again.runs[1].remark.empty());
  CHECK_THAT(w.calls(), ContainsSubstring("train.seed=8") && !ContainsSubstring("train.seed=7"));
  CHECK_FALSE(fs::exists(record));
  // A summary of another run is none.
  write_file(out / "runs/002-seed_8/summary.json", read_file(out / "runs/001-seed_7/summary.json"));
  CHECK(statuses(open_sweep(out).runs) == "done, interrupted");
  CHECK_THAT(open_sweep(out).runs[1].remark, ContainsSubstring("summary.json: is of another run"));
  CHECK(statuses(w.run().runs) == "done, done");
}

TEST_CASE("a run that was trained further by hand is shown with a mark and stops nothing", "[sweep]") {
  const Workshop w("seeds: [7, 8]\n");
  w.run();
  const SweepRun run = plan_runs(w.sweep)[1];
  Json longer = kResult;
  longer["steps"] = 3001;
  longer["weights_hash"] = "of 9 steps";
  const fs::path directory = w.directory / "out/runs/002-seed_8";
  write_file(directory / "summary.json", summary_text(longer, run.identity));
  const SweepResult again = w.run();
  CHECK(statuses(again.runs) == "done, done");
  CHECK(again.runs[1].result["steps"] == 3001);
  CHECK(again.runs[1].remark ==
        directory.string() + ": was trained further, to step 3001, after the sweep had ended it");
  CHECK(w.json()["settings"][0]["runs"][1]["remark"] == again.runs[1].remark);
  CHECK(open_sweep(w.directory / "out").runs[1].remark == again.runs[1].remark);
  longer["steps"] = 3002;
  write_file(directory / "summary.json", summary_text(longer, run.identity));
  CHECK_THAT(open_sweep(w.directory / "out").runs[1].remark, ContainsSubstring("to step 3002"));
}

TEST_CASE("a run of another config is refused", "[sweep]") {
  Workshop w;
  w.run();
  const SweepRun planned = plan_runs(w.sweep)[2];
  const fs::path run = w.directory / "out/runs/003-heads_2-seed_7";
  Config config = planned.config.values();
  config.train.steps = 2000;  // trained longer by hand
  write_hand_made_run(run, config, to_json(record_of(config)), "", kResult);
  CHECK(w.refusal().empty());
  config.train.batch = 7;
  write_hand_made_run(run, config, to_json(record_of(config)), "", kResult);
  CHECK(
      w.refusal() ==
      run.string() +
          ": trained with another config: train.batch: 7 in the directory, 128 in the sweep; choose another directory with --out");
  write_hand_made_run(run, planned.config, to_json(record_of(config)), "", kResult);
  write_file(w.directory / "base.yaml", "model: {d_model: 32}\ntrain: {steps: 50}\n");
  w.load();
  CHECK_THAT(w.refusal(),
             StartsWith((w.directory / "out").string() + ": belongs to another sweep: its setting 1 is "));
}
