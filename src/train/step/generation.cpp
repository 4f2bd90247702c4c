#include "train/step/generation.h"

#include <algorithm>
#include <memory>

#include "engine/model/finite.h"
#include "thimble/engine/error.h"
#include "thimble/train/listing.h"
#include "thimble/train/tokenization.h"
#include "train/files/progress.h"
#include "train/step/forward.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

// A decoder of texts that are longer than its model accepts: where one is full, its last half is read again, from
// position 0.
class LongState : public DecoderState {
 public:
  LongState(const Model& model, std::vector<std::int32_t> tokens)
      : model_(model), texts_{std::move(tokens)}, state_(start()) {}

  Tensor next(std::span<const std::int32_t> tokens) override {
    for (std::size_t i = 0; i < texts_.size(); ++i) texts_[i].back() = tokens[i];
    if (std::ssize(texts_[0]) > model_.max_length()) {
      const auto kept = std::max<std::ptrdiff_t>(1, model_.max_length() / 2);
      for (auto& text : texts_) text.erase(text.begin(), text.end() - kept);
      state_ = start();
    }
    Tensor logits = state_->next(tokens);
    for (auto& text : texts_) text.push_back(0);  // replaced by the next token
    return logits;
  }

  void reorder(std::span<const std::int32_t> from) override {
    std::vector<std::vector<std::int32_t>> texts;
    for (const std::int32_t i : from) texts.push_back(texts_[static_cast<std::size_t>(i)]);
    texts_ = std::move(texts);
    state_->reorder(from);
  }

 private:
  std::unique_ptr<DecoderState> start() const {
    Batch batch;
    batch.sequences = std::ssize(texts_);
    batch.length = std::ssize(texts_[0]);
    for (const auto& text : texts_) batch.tokens.insert(batch.tokens.end(), text.begin(), text.end());
    batch.lengths.assign(texts_.size(), static_cast<std::int32_t>(batch.length));
    return model_.start_decoding(model_input(batch));
  }

  const Model& model_;
  std::vector<std::vector<std::int32_t>> texts_;  // the tokens so far, the last of which is not read yet
  std::unique_ptr<DecoderState> state_;
};

// Returns the token that a text starts after: its boundary, or of a stream a line break, or the first known token.
std::int32_t start_token(const Dataset& data) {
  const Names& names = data.names();
  if (data.source().boundary() != kIgnore) return data.source().boundary();
  const auto line_break = std::ranges::find(names, shown_token("\n"));
  if (line_break != names.end()) return static_cast<std::int32_t>(line_break - names.begin());
  return data.unknown_token() == 0 ? 1 : 0;
}

}  // namespace

std::vector<Hypothesis> hypotheses(const Model& model, const Dataset& dataset, Batch batch,
                                   const Generation& how, const OnTokens& on_tokens) {
  const bool pair = batch.source_length > 0;
  if (pair) batch.tokens = {dataset.bos_token()};
  batch.length = std::ssize(batch.tokens);
  batch.lengths = {static_cast<std::int32_t>(batch.length)};
  Tape tape(Tape::Mode::inference);
  tape.bind(model.parameters(), {});
  model(tape, model_input(batch), {});
  require_finite(tape, model.config(), "input");
  const bool is_text = dataset.task().predicts_next;
  const std::int32_t boundary = dataset.source().boundary();
  const bool endless = is_text && boundary == kIgnore;
  const std::int64_t room =
      endless ? std::max(how.tokens, model.max_length()) : model.max_length() + 1 - batch.length;
  require<ConfigError>(how.tokens <= room,
                       "generate: {} tokens; after this input, the model writes at most {}", how.tokens,
                       room);
  const std::int64_t longest = pair || is_text ? room : dataset.source().longest().target;
  ProgressCounter progress("generating", static_cast<double>(room));
  const std::int32_t end = pair ? dataset.eos_token() : boundary == kIgnore ? kNoEnd : boundary;
  const DecodingOptions options{batch.tokens.back(), end,
                                how.tokens > 0 ? how.tokens : std::min(longest, room),
                                [&](std::span<const Hypothesis> now) {
                                  progress.advance();
                                  if (on_tokens) on_tokens(now.front().tokens);
                                }};
  const std::unique_ptr<DecoderState> state =
      endless ? std::make_unique<LongState>(model, batch.tokens) : model.start_decoding(model_input(batch));
  if (how.samples > 0) state->reorder(std::vector<std::int32_t>(static_cast<std::size_t>(how.samples), 0));
  std::vector<Hypothesis> found = how.samples > 0 ? sample(*state, how.samples, options, how.sampling)
                                  : how.beams > 1 ? beam_search(*state, how.beams, options)
                                                  : greedy_decode(*state, 1, options);
  if (end == kNoEnd)
    for (Hypothesis& output : found) output.finished = true;
  return found;
}

std::vector<Hypothesis> draw_texts(const Model& model, const Dataset& dataset, std::uint64_t seed) {
  Batch batch;
  batch.sequences = 1;
  batch.tokens = {start_token(dataset)};
  const bool is_stream = dataset.source().boundary() == kIgnore;
  const Generation how{.samples = is_stream ? 1 : kSampledDocuments, .sampling = {.seed = seed}};
  return hypotheses(model, dataset, std::move(batch), how, {});
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
