#include "inspect/circuits/logit_lens.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

// Returns the number of the first block whose input the lens reads.
std::size_t first_lens_block(const Model& model) {
  return model.blocks() + 1 - lens_names(model.config()).size();
}

}  // namespace

void each_lens(const Model& model, Tape& tape, const ModelInput& input,
               const std::function<void(std::size_t, Var)>& visit) {
  const std::size_t depths = lens_names(model.config()).size();
  if (depths == 0) return;
  const std::int64_t sequences = std::ssize(input.tokens) / input.length;
  std::vector<Tensor> streams(depths);
  Capture::Sites sites;
  for (std::size_t depth = 0; depth < depths; ++depth) {
    streams[depth] = Tensor({sequences, input.length, model.config().d_model});
    sites.emplace(model.input_site(first_lens_block(model) + depth), &streams[depth]);
  }
  Capture capture(sites);
  ModelInput whole = input;
  whole.rows = {};
  tape.rewind();
  model(tape, whole, {.hooks = &capture});
  for (std::size_t depth = 0; depth < depths; ++depth) {
    tape.rewind();
    visit(depth, model.from_block(model.blocks(), tape.constant(streams[depth]), {}, input, {}));
  }
}

std::vector<LensResult> logit_lens(Evaluator& evaluator, const EvalResult& whole) {
  const std::vector<std::string> names = lens_names(evaluator.config().model);
  const Model& model = evaluator.model();
  std::vector<LensResult> results;
  for (std::size_t depth = 0; depth + 1 < names.size(); ++depth) {
    BlockInput stream = evaluator.block_input(first_lens_block(model) + depth, evaluator.sequences());
    stream.memory.reset();  // only the output follows
    const Capture::Sites sites = evaluator.input_sites(stream);
    evaluator.run([&] { return std::make_unique<Capture>(sites); });
    stream.block = model.blocks();
    const EvalResult result = evaluator.run({}, Tape::Mode::inference, &stream);
    results.push_back({names[depth], result.loss, result.accuracy});
  }
  if (!names.empty()) results.push_back({names.back(), whole.loss, whole.accuracy});
  return results;
}

double lens_passes(const Evaluator& evaluator) {
  const std::size_t depths = lens_names(evaluator.config().model).size();
  return depths == 0 ? 0 : static_cast<double>(depths - 1);
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
