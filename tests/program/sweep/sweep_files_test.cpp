// The files of a sweep: which directories and records are its own.
#include "program/sweep/sweep_state.h"

#include "catch.h"
#include "program/sweep/workshop.h"
#include "train/step/forward.h"

using namespace thimble;

namespace fs = std::filesystem;

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
  write_file(w.directory / "s.yaml", "config: base.yaml\ngrid: {model.heads: [1, 2, 4]}\nseeds: [7, 8]\n");
  w.load();
  CHECK_THAT(w.refusal(), ContainsSubstring("belongs to another sweep: it has 2 settings, this one 3"));

  Json changed = w.json();
  changed["settings"][0]["mean"]["/test/loss"] = 0.25;
  write_file(w.directory / "out/sweep.json", json_text(changed));
  CHECK(w.refusal() == out + "/sweep.json: the checksum does not match: the file was changed; restore it");
  CHECK_THROWS_WITH(open_sweep(out), StartsWith(out + "/sweep.json: the checksum does not match"));
  write_file(w.directory / "out/sweep.json", "{");
  CHECK_THAT(w.refusal(), StartsWith(out + "/sweep.json: not valid JSON at byte "));
  write_file(w.directory / "out/sweep.json", "{}");
  CHECK_THAT(w.refusal(), StartsWith(out + "/sweep.json: does not say \"format\": \"thimble sweep 3\""));
  // Without the file, only a directory with other files than the sweep's is refused.
  write_file(w.directory / "s.yaml", "config: base.yaml\ngrid: {model.heads: [1, 2]}\nseeds: [7, 8]\n");
  w.load();
  fs::remove(w.directory / "out/sweep.json");
  write_file(w.directory / "out/runs/mine", "");
  CHECK(w.refusal() == out + ": exists and is not the directory of this sweep; choose another with --out");
  CHECK_FALSE(fs::exists(w.directory / "out/sweep.json"));
}

TEST_CASE("a lost sweep.json is made again, and no run is trained again", "[sweep]") {
  const Workshop w;
  w.run();
  const Json before = w.json();
  fs::remove(w.directory / "out/sweep.json");
  fs::remove(w.directory / "calls");
  CHECK(statuses(w.run().runs) == "done, done, done, done");
  CHECK(w.json() == before);
  CHECK_FALSE(fs::exists(w.directory / "calls"));
}

TEST_CASE("a record of another run, or a damaged one, counts for nothing and is written again", "[sweep]") {
  const Workshop w("seeds: [7, 8]\n");
  w.run();
  const fs::path first = w.directory / "out/runs/001-seed_7.json",
                 second = w.directory / "out/runs/002-seed_8.json";
  const std::string intact = read_file(second);
  for (const std::string& text :
       {read_file(first), intact.substr(0, intact.size() / 2), std::string("{}"), std::string("3")}) {
    CAPTURE(text);
    write_file(second, text);
    const RecordedSweep recorded = open_sweep(w.directory / "out");
    CHECK(statuses(recorded.runs) == "done, interrupted");
    CHECK(recorded.runs[1].remark ==
          second.string() + ": was changed, or is of another run; thimble sweep writes it again");
    fs::remove(w.directory / "calls");
    const SweepResult again = w.run();
    CHECK(statuses(again.runs) == "done, done");
    CHECK(again.runs[1].remark.empty());
    CHECK_THAT(w.calls(), ContainsSubstring("train.seed=8") && !ContainsSubstring("train.seed=7"));
    CHECK(read_file(second) == intact);
  }
  // So does a summary.
  write_file(w.directory / "out/runs/002-seed_8/summary.json", "{}");
  CHECK(statuses(open_sweep(w.directory / "out").runs) == "done, interrupted");
  CHECK(statuses(w.run().runs) == "done, done");
}

TEST_CASE("a run that was trained further by hand is shown with a mark and stops nothing", "[sweep]") {
  const Workshop w("seeds: [7, 8]\n");
  w.run();
  const SweepRun run = plan_runs(w.sweep)[1];
  Json longer = kResult;
  longer["steps"] = 9;
  longer["weights_hash"] = "of 9 steps";
  const fs::path directory = w.directory / "out/runs/002-seed_8";
  write_file(directory / "summary.json", summary_text(longer, run.identity));
  const SweepResult again = w.run();
  CHECK(statuses(again.runs) == "done, done");
  CHECK(again.runs[1].result["steps"] == 9);
  CHECK(again.runs[1].remark ==
        directory.string() + ": was trained further, to step 9, after the sweep had ended it");
  CHECK(w.json()["settings"][0]["runs"][1]["remark"] == again.runs[1].remark);
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
