// Heads of the last block are judged by the queries that can reach the loss.
#include <memory>
#include <regex>
#include <string>

#include "catch.h"
#include "inspect/hand_made.h"
#include "inspect/saved_model.h"
#include "inspect/timeline/head_log.h"
#include "thimble/train/file.h"
#include "thimble/train/train.h"

using namespace thimble;

namespace {

// The answer is the first token, and only the last query is read: it looks there, and all others at the token before.
hand_made::HandMade last_query() {
  std::string rows;
  for (int row = 0; row < 1024; ++row) {
    std::string input;
    for (int p = 0, rest = row; p < 5; ++p, rest /= 4)
      input += std::string(p > 0 ? " " : "") + "abcd"[rest % 4];
    rows += input + "\t" + input[0] + "\n";
  }
  DataTexts texts;
  texts.main = {"rows.tsv", rows};
  Config config = hand_made::hand_made_config({.name = "file"}, 4, 5);
  config.model.output.per = OutputPer::sequence;
  config.model.output.pooling = Pooling::last;
  config.data.test = 102;
  return {OpenConfig(config, std::make_shared<const Table>(texts)), [](Model& model) {
            hand_made::Maker make(model);
            make.start_layer(0, 2);
            for (std::int64_t p = 1; p < 5; ++p)
              make.match(p, make.position(p), make.position(p == 4 ? 0 : p - 1), hand_made::kSharp);
            make.copy_token_to_answer();
          }};
}

}  // namespace

TEST_CASE("the last block is judged by the queries that can reach the loss", "[inspect]") {
  hand_made::HandMade made = last_query();
  const InspectReport report =
      inspect_weights(made.config, made.set_weights, {.sequences = 102, .examples = 0});
  REQUIRE(report.baseline.accuracy == 1);
  const HeadReport& head = report.heads[0];
  CHECK(find_score(head.scores, "distance").eligible == report.baseline.labels);
  CHECK_THAT(find_score(head.scores, "distance").value, WithinAbs(4, 1e-6));
  CHECK(find_score(head.scores, "previous_token").value < 1e-6);
  CHECK(find_score(head.scores, "offset").at == -4);
  CHECK_THAT(find_score(head.scores, "first").value, WithinAbs(1, 1e-6));
  // Before a mean over positions all queries count.
  made.config.model.output.pooling = Pooling::mean;
  const InspectReport pooled =
      inspect_weights(made.config, made.set_weights, {.sequences = 102, .examples = 0});
  CHECK(find_score(pooled.heads[0].scores, "distance").eligible == 5 * pooled.baseline.labels);
  CHECK_THAT(find_score(pooled.heads[0].scores, "previous_token").value, WithinAbs(0.75, 0.01));
}

TEST_CASE("the log of heads has the levels of the last block where fewer queries count", "[inspect]") {
  Config config = small_config();
  config.task = {.name = "associative_recall", .symbols = 8, .length = 16, .pairs = 4};
  config.model.attention.mask = Mask::causal;
  config.model.layers = 2;
  config.data.validation = 120;
  const Trainer trainer(config);
  const Json line = head_log(config)(trainer.model().parameters().values());
  const Json &first = line["heads"][0], &last = line["heads"].back();
  CHECK_FALSE(first.contains("chance"));
  REQUIRE(last.contains("chance"));
  CHECK(last["eligible"]["distance"] == line["labels"]);
  CHECK(line["eligible"]["distance"] > line["labels"]);
  CHECK(last["chance"]["first"] != line["chance"]["first"]);
}

TEST_CASE("a log that counts all queries of the last block is said to be old", "[inspect]") {
  const TemporaryDirectory directory;
  Config config = small_config();
  config.task = {.name = "associative_recall", .symbols = 8, .length = 16, .pairs = 4};
  config.model.attention.mask = Mask::causal;
  config.data = {.train = 200, .validation = 120, .test = 120};
  config.train.steps = 2;
  config.train.log_heads = true;
  const std::string run = (directory / "run").string();
  train(config, {.directory = run, .make_head_log = head_log});
  const auto is_old = [&] {
    for (const std::string& remark : inspect(open_run(run), {.examples = 0}).timeline.remarks)
      if (remark.starts_with("the log of heads was written before thimble 0.4")) return true;
    return false;
  };
  CHECK_FALSE(is_old());
  std::string log = read_file(directory / "run" / "metrics.jsonl");
  log = std::regex_replace(log, std::regex(R"(("eligible":\{[^}]*"distance":)\d+)"), "$019999");
  write_file(directory / "run" / "metrics.jsonl", log);
  CHECK(is_old());
}
