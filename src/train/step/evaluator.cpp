#include "train/step/evaluator.h"

#include <algorithm>
#include <cmath>

#include "engine/model/finite.h"
#include "thimble/engine/decoding.h"
#include "thimble/engine/error.h"
#include "thimble/engine/make_model.h"
#include "train/files/checkpoint.h"
#include "train/step/micro_batch.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

Evaluator::Evaluator(const OpenConfig& config)
    : config_(config),
      dataset_(make_dataset(config)),
      model_(make_model(config.model, dataset_)),
      packed_weights_(model_->parameters()),
      pool_(config.train.threads),
      chunk_size_(micro_batch(dataset_.length() + dataset_.source_length())),
      workers_(static_cast<std::size_t>(pool_.threads())) {
  model_->init(config.train.seed);
}

Evaluator::Evaluator(const OpenConfig& config, const SafetensorsFile& weights) : Evaluator(config) {
  load_weights(weights, model_->parameters());
}

void Evaluator::pack_for_all() {
  for (std::int64_t i = 0; i < packed_weights_.count(); ++i) packed_weights_.refresh(i);
  packed_for_all_ = true;
}

void Evaluator::each(std::size_t count, const Work& f, Tape::Mode mode) {
  if (!packed_for_all_)
    pool_.run(packed_weights_.count(), [&](std::int64_t i, int) { packed_weights_.refresh(i); });
  const bool training = mode == Tape::Mode::training;
  pool_.run(static_cast<std::int64_t>(count), [&](std::int64_t i, int thread) {
    Worker& worker = workers_[static_cast<std::size_t>(thread)];
    if (training) worker.gradients.resize(model_->parameters().size());
    Tape& tape = training ? worker.training : worker.inference;
    tape.bind(model_->parameters(), training ? std::span<Real>(worker.gradients) : std::span<Real>(),
              &packed_weights_);
    tape.rewind();
    f(static_cast<std::size_t>(i), tape);
  });
}

// Returns the logits of a pass, from a block on if `from` is given; it holds the sequences of the chunk or of
// all.
Var Evaluator::logits(const Chunk& chunk, ChunkHooks* hooks, Tape& tape, const BlockInput* from) const {
  const ModelInput input = labeled_input(chunk.batch);
  const ForwardOptions options{.hooks = hooks};
  if (from == nullptr) return (*model_)(tape, input, options);
  const std::int64_t sequences = chunk.batch.sequences;
  const auto of_chunk = [&](const Tensor& all) {
    const std::int64_t time = all.shape()[1], first = chunk.first_in(all);
    Tensor x({sequences, time, all.shape()[2]});
    std::copy_n(all.matrix().row(first * time), x.matrix().elements(), x.matrix().data);
    return tape.constant(x);
  };
  return model_->from_block(from->block, of_chunk(from->values),
                            from->memory ? of_chunk(*from->memory) : Var(), input, options);
}

EvalSums Evaluator::run_chunk(Split split, const Chunk& chunk, ChunkHooks* hooks, Tape& tape,
                              const BlockInput* from, std::span<SequenceResult> per_sequence,
                              std::span<Prediction> predictions) const {
  if (hooks != nullptr) hooks->begin(chunk);
  const Var z = logits(chunk, hooks, tape, from);
  tape.set_layer("loss");
  EvalSums sums;
  const Var loss = add_loss(z, chunk.batch, 0, sums, per_sequence, loss_cap_);
  if (!std::isfinite(sums.loss))
    require_finite(tape, config_.model,
                   fmt::format("the loss on the {} split is {}", split_name(split), std::abs(sums.loss)));
  for (std::int64_t i = 0; i < chunk.batch.sequences; ++i) {
    const SequenceResult& r = per_sequence[static_cast<std::size_t>(i)];
    sums.spread.add_draw({draw_number(dataset_, chunk.batch, i, chunk.first + i),
                          static_cast<double>(r.labeled), static_cast<double>(r.correct), r.loss});
  }
  if (!predictions.empty()) predict(split, chunk, z.value(), predictions);
  if (tape.mode() == Tape::Mode::training) tape.backward(loss);
  if (hooks != nullptr) hooks->end();
  return sums;
}

void Evaluator::predict(Split split, const Chunk& chunk, ConstMatrixView logits,
                        std::span<Prediction> predictions) const {
  std::int64_t row = 0, index = chunk.first;
  for (Prediction& prediction : predictions) {
    Example example;
    dataset_.example(split, index, example);
    prediction = {.input = example.input, .target = example.target, .answer = example.target};
    prediction.line = dataset_.where(split, index++);
    if (const std::int32_t unknown = dataset_.unknown_token(); unknown != kIgnore)
      prediction.has_unknown = std::ranges::count(example.target, unknown) > 0;
    if (dataset_.layout() == Layout::seq2seq) continue;  // its answer is generated
    for (std::int32_t& token : prediction.answer) {
      if (token == kIgnore) continue;
      const std::span<const Real> z(logits.row(row), static_cast<std::size_t>(logits.cols));
      const auto best = std::ranges::max_element(z) - z.begin();
      token = dataset_.token_of(static_cast<std::int32_t>(best));
      prediction.log_probability += log_probabilities(logits, row++)[static_cast<std::size_t>(best)];
    }
  }
}

std::int64_t Evaluator::count_exact_matches(const Batch& batch, std::span<Prediction> predictions) const {
  const std::unique_ptr<DecoderState> decoding = model_->start_decoding(model_input(batch));
  const DecodingOptions options{dataset_.bos_token(), dataset_.eos_token(), dataset_.length()};
  std::int64_t right = 0;
  const std::vector<Hypothesis> answers = greedy_decode(*decoding, batch.sequences, options);
  for (std::size_t i = 0; i < answers.size(); ++i) {
    const std::span<const std::int32_t> target = batch.tokens_of(static_cast<std::int64_t>(i)).subspan(1);
    right += std::ranges::equal(target, answers[i].tokens, [&](std::int32_t label, std::int32_t token) {
      return label == token && label != dataset_.unknown_token();
    });
    if (predictions.empty()) continue;
    predictions[i].answer = answers[i].tokens;
    predictions[i].log_probability = answers[i].log_probability;
    predictions[i].finished = answers[i].finished;
  }
  return right;
}

EvalResult Evaluator::evaluate(Split split, std::int64_t limit, std::vector<Prediction>* predictions,
                               Ranks& ranks) {
  const std::int64_t size = dataset_.size(split);
  const std::int64_t count = limit > 0 && (size == 0 || limit < size) ? limit : size;
  dataset_.require_rows(split);
  require<DataError>(count > 0, "evaluate: the {} split is unlimited; set a limit above 0 (--sequences)",
                     split_name(split));
  const bool generates = dataset_.layout() == Layout::seq2seq;
  if (!usual_answer_) usual_answer_ = usual_answer(dataset_);
  const auto chunks = static_cast<std::size_t>((count + chunk_size_ - 1) / chunk_size_);
  const Range own = ranks.own(chunks);
  ProgressCounter progress(fmt::format("evaluating the {} split", split_name(split)),
                           static_cast<double>(own.size()));
  std::vector<EvalSums> sums(chunks);
  if (predictions != nullptr) predictions->resize(static_cast<std::size_t>(count));
  each(own.size(), [&](std::size_t i, Tape& tape) {
    Chunk chunk{.first = static_cast<std::int64_t>(own.first + i) * chunk_size_, .batch = {}};
    dataset_.fill(split, chunk.first, std::min(chunk_size_, count - chunk.first), chunk.batch, true);
    std::span<Prediction> rows;
    if (predictions != nullptr)
      rows = std::span(*predictions)
                 .subspan(static_cast<std::size_t>(chunk.first),
                          static_cast<std::size_t>(chunk.batch.sequences));
    std::vector<SequenceResult> results(static_cast<std::size_t>(chunk.batch.sequences));
    EvalSums& sum = sums[own.first + i] = run_chunk(split, chunk, nullptr, tape, nullptr, results, rows);
    if (usual_answer_) sum.usual = std::ranges::count(chunk.batch.row_labels, *usual_answer_);
    if (generates) sum.exact_matches = count_exact_matches(chunk.batch, rows);
    progress.advance();
  });
  ranks.all_gather(std::span(sums));
  EvalResult result = mean_of(sums, count);
  EvalSums all;
  for (const EvalSums& sum : sums) all.add(sum);
  if (all.labeled > 0 && usual_answer_ != kIgnore)
    result.chance =
        usual_answer_ ? static_cast<double>(all.usual) / all.labels() : dataset_.source().chance();
  if (generates) result.exact_match = static_cast<double>(all.exact_matches) / static_cast<double>(count);
  result.lowest_loss = lowest_loss(dataset_, split);
  if (result.lowest_loss && count >= EvalResult::kEnoughSequences && *result.loss_error > 0 &&
      result.loss < *result.lowest_loss - 4 * *result.loss_error)
    result.leak = result.lowest_loss;
  return result;
}

void Evaluator::select(Split split, std::int64_t sequences) {
  const std::int64_t size = dataset_.size(split);
  dataset_.require_rows(split);
  require<DataError>(sequences > 0 && (split == Split::train || size > 0),
                     "inspect: no sequences of the {} split; select at least 1, and set data.{} above 0",
                     split_name(split), split_name(split));
  split_ = split;
  sequences_ = size > 0 ? std::min(sequences, size) : sequences;
  if (most_labels_ == 0) most_labels_ = thimble::most_labels(dataset_);
  chunks_.clear();
  equal_inputs_ = {};
  ProgressCounter progress("reading sequences", static_cast<double>(sequences_));
  for (std::int64_t first = 0; first < sequences_; first += chunk_size_) {
    Chunk& chunk = chunks_.emplace_back();
    chunk.first = first;
    dataset_.fill(split, first, std::min(chunk_size_, sequences_ - first), chunk.batch);
    equal_inputs_.add(dataset_, chunk.batch, first);
    progress.advance(static_cast<double>(chunk.batch.sequences));
  }
  most_labels_ = std::max(most_labels_, equal_inputs_.most_labels());
}

double Evaluator::share_from(std::size_t block) const {
  const std::size_t blocks = model_->blocks();
  return blocks == 0 ? 1 : 1 - static_cast<double>(block) / static_cast<double>(blocks);
}

// Advances the progress by that many passes over the chunk.
void Evaluator::advance(double passes, const Chunk& chunk) const {
  if (progress_ == nullptr) return;
  progress_->advance(passes * static_cast<double>(chunk.batch.sequences) / static_cast<double>(sequences_));
}

EvalResult Evaluator::run(const MakeHooks& make_hooks, Tape::Mode mode, const BlockInput* from) {
  std::vector<SequenceResult> per_sequence(static_cast<std::size_t>(sequences_));
  std::vector<EvalSums> sums(chunks_.size());
  const auto pass = [&](std::size_t i, Tape& tape) {
    const Chunk& chunk = chunks_[i];
    const std::unique_ptr<ChunkHooks> hooks = make_hooks ? make_hooks() : nullptr;
    sums[i] = run_chunk(split_, chunk, hooks.get(), tape, from,
                        std::span(per_sequence).subspan(static_cast<std::size_t>(chunk.first)));
    advance(pass_cost(mode) * share_from(from != nullptr ? from->block : 0), chunk);
  };
  each(chunks_.size(), pass, mode);
  EvalResult result = mean_of(sums, sequences_);
  result.per_sequence = std::move(per_sequence);
  return result;
}

BlockInput Evaluator::block_input(std::size_t block, std::int64_t sequences) const {
  const std::int64_t source = dataset_.source_length(), width = config_.model.d_model;
  const bool of_decoder = source > 0 && std::cmp_greater_equal(block, config_.model.layers);
  BlockInput input{.block = block, .values = {}, .memory = {}};
  input.values = Tensor({sequences, source > 0 && !of_decoder ? source : dataset_.length(), width});
  if (of_decoder) input.memory.emplace(Shape{sequences, source, width});
  return input;
}

Capture::Sites Evaluator::input_sites(BlockInput& input) const {
  Capture::Sites sites{{model_->input_site(input.block), &input.values}};
  if (input.memory) sites.emplace(Site{SiteKind::encoder_output}, &*input.memory);
  return sites;
}

std::vector<EvalResult> Evaluator::run_series(std::span<const std::size_t> blocks,
                                              const MakeSeriesHooks& make_hooks) {
  std::vector<std::vector<EvalSums>> sums(blocks.size(), std::vector<EvalSums>(chunks_.size()));
  std::vector<std::vector<SequenceResult>> per_sequence(
      blocks.size(), std::vector<SequenceResult>(static_cast<std::size_t>(sequences_)));
  each(chunks_.size(), [&](std::size_t i, Tape& tape) {
    const Chunk& chunk = chunks_[i];
    std::vector<BlockInput> inputs(model_->blocks());
    Capture::Sites sites;
    for (std::size_t b = 0; b < inputs.size(); ++b) {
      inputs[b] = block_input(b, chunk.batch.sequences);
      sites.merge(input_sites(inputs[b]));
    }
    for (std::size_t k = 0; k < blocks.size(); ++k) {
      const std::unique_ptr<ChunkHooks> of_pass = make_hooks(k);
      Capture later_inputs(sites);
      Combined hooks{of_pass.get(), &later_inputs};
      tape.rewind();
      const bool whole = k == 0 || inputs.empty();
      sums[k][i] = run_chunk(split_, chunk, &hooks, tape, whole ? nullptr : &inputs[blocks[k]],
                             std::span(per_sequence[k]).subspan(static_cast<std::size_t>(chunk.first)));
      advance(share_from(blocks[k]), chunk);
    }
  });
  std::vector<EvalResult> results;
  for (std::size_t k = 0; k < sums.size(); ++k) {
    results.push_back(mean_of(sums[k], sequences_));
    results.back().per_sequence = std::move(per_sequence[k]);
  }
  return results;
}

void Evaluator::observe(ChunkHooks& hooks) {
  each(1, [&](std::size_t, Tape& tape) {
    for (const Chunk& chunk : chunks_) {
      hooks.begin(chunk);
      tape.rewind();
      (*model_)(tape, model_input(chunk.batch), {.hooks = &hooks});
      hooks.end();
      advance(observe_cost(), chunk);
    }
  });
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
