#include "train/step/plan.h"

#include "thimble/engine/make_model.h"
#include "train/step/forward.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {

namespace {

// Replaces every value but attention weights, or none.
struct PlannedHooks : Hooks {
  explicit PlannedHooks(bool replaces) : replaces_(replaces) {}
  bool may_replace(Site site) const override { return replaces_ && site.kind != SiteKind::attention_weights; }
  bool replace(Site, const Shape&, MatrixView) override { return true; }

 private:
  bool replaces_;
};

}  // namespace

}  // namespace THIMBLE_PRECISION

template <>
ModelPlan run_plan<Real>(const Config& config, const Batch& batch, const PlanOptions& options) {
  const std::unique_ptr<Model> model = make_model(config.model, model_sizes(config), Storage::shapes);
  Tape tape(Tape::Mode::plan);
  tape.bind_plan(model->parameters(), options.gradients);
  ModelPlan plan;
  plan.parameters = static_cast<double>(model->parameters().count());
  plan.packed_bytes = static_cast<double>(sizeof(Real) * PackedWeights::size(model->parameters()));
  if (options.decoding) {
    const double kept = model->plan_decoding(tape, model_input(batch));
    // A step has its logits on the tape and in a tensor.
    const double logits = 2 * static_cast<double>(batch.sequences * model->vocabulary());
    if (kept > 0) plan.other_bytes = sizeof(Real) * (kept + logits);
  } else {
    PlannedHooks hooks(options.replaced);
    const Var logits = (*model)(tape, labeled_input(batch),
                                {.training = options.dropout, .hooks = options.observed ? &hooks : nullptr});
    tape.set_layer("loss");
    const Var loss = options.loss ? cross_entropy(logits, batch.row_labels) : logits;
    if (options.per_sequence) tape.scratch(logits.value().rows, logits.value().cols);
    if (options.gradients)
      tape.backward(loss, 1, options.all ? Tape::RetainGrads::all : Tape::RetainGrads::leaves);
  }
  plan.tape_bytes = static_cast<double>(tape.bytes());
  plan.ops = tape.costs();
  return plan;
}

}  // namespace thimble
