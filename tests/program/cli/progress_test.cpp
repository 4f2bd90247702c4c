#include "program/cli/text/progress.h"

#include <chrono>
#include <string>
#include <thread>

#include "catch.h"
#include "program/cli/terminal.h"
#include "program/cli/text/progress_meter.h"
#include "train/files/text/width.h"

using namespace thimble;

namespace {

const std::string kErase = "\r\033[K";

// Returns the text after the line was erased.
std::string shown_line(Terminal& terminal) {
  const std::string text = terminal.text();
  REQUIRE(text.starts_with(kErase));
  return text.substr(kErase.size());
}

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

void wait_for(std::chrono::milliseconds time) { std::this_thread::sleep_for(time); }

}  // namespace

TEST_CASE("long work shows one line, which fits the terminal and is removed at the end", "[cli][slow]") {
  using namespace std::chrono_literals;
  Terminal terminal(80);
  cli::ProgressMeter meter(false);
  const std::string work = "measuring the effects of 128 heads on 1000 sequences of validation data";
  meter.on_progress(work, 0);
  meter.on_progress(work, 0.1);
  CHECK(terminal.text().empty());
  wait_for(2050ms);
  for (const unsigned short columns : {60, 80, 120}) {
    CAPTURE(columns);
    terminal.resize(columns);
    meter.on_progress(work, 0.5);
    const std::string line = shown_line(terminal);
    CHECK(display_width(line) < columns);
    CHECK(has(line, columns == 60 ? "sequences" : ": 50 %"));
    if (columns == 120) CHECK(line == work + ": 50 %, 2 s left");
    meter.on_progress(work, 0.6);
    CHECK(terminal.text().empty());  // too soon after the line before
    wait_for(110ms);
  }
  meter.on_end();
  CHECK(terminal.text() == kErase);
  meter.on_end();
  CHECK(terminal.text().empty());
}

TEST_CASE("a step of training is one line, without the parts that do not fit the terminal", "[cli]") {
  Terminal terminal(120);
  cli::Progress progress(false);
  Config config;
  config.task.name = "reverse";
  config.train.steps = 200'000;
  TrainResult result;
  result.parameters = 12345;
  result.threads = 2;
  progress.on_start(config, result);
  CHECK_THAT(terminal.text(), ContainsSubstring("reverse: 12345 parameters, "));
  StepReport step;
  step.step = 100'000;
  step.loss = 1.25;
  step.accuracy = 0.5;
  step.learning_rate = 1e-3;
  for (const unsigned short columns : {40, 60, 80, 120}) {
    CAPTURE(columns);
    terminal.resize(columns);
    wait_for(std::chrono::milliseconds(110));
    progress.on_step(step);
    const std::string line = shown_line(terminal);
    CHECK(display_width(line) < columns);
    CHECK(line.starts_with("step 100000/200000  loss 1.2500"));
    CHECK(has(line, "tokens  50.00 %") == (columns >= 60));
    CHECK(has(line, "seq/s") == (columns >= 80));
    CHECK(has(line, "lr 1.00e-03") == (columns >= 120));
    CHECK(has(line, " left") == (columns >= 60));
  }
  progress.on_step(step);
  CHECK(terminal.text().empty());  // too soon
  step.step = config.train.steps;
  terminal.resize(120);
  progress.on_step(step);
  CHECK(shown_line(terminal).ends_with("left\n"));  // the last step stays
}

TEST_CASE("quiet shows nothing", "[cli]") {
  Terminal terminal(80);
  cli::Progress progress(true);
  const cli::ProgressMeter meter(true);
  CHECK(set_progress_observer(nullptr) == nullptr);
  Config config;
  progress.on_start(config, {});
  StepReport step;
  step.step = config.train.steps;
  progress.on_step(step);
  CHECK(terminal.text().empty());
}
