#include "train/step/plan.h"

#include "thimble/engine/hooks.h"
#include "thimble/engine/make_model.h"
#include "train/step/forward.h"

namespace thimble {

template <>
ModelPlan run_plan<Real>(const OpenConfig& config, const Batch& batch, PlannedPass pass) {
  const std::unique_ptr<Model> model = make_model(config.model, model_sizes(config), Storage::shapes);
  Tape tape(Tape::Mode::plan);
  const bool is_training = pass == PlannedPass::training;
  tape.bind_plan(model->parameters(), is_training);
  ModelPlan plan;
  plan.parameters = static_cast<double>(model->parameters().count());
  plan.packed_bytes = static_cast<double>(sizeof(Real) * PackedWeights::size(model->parameters()));
  if (pass == PlannedPass::decoding) {
    const double kept = model->plan_decoding(tape, model_input(batch));
    // A step has its logits on the tape and in a tensor.
    const double logits = 2 * static_cast<double>(batch.sequences * model->vocabulary());
    if (kept > 0) plan.other_bytes = sizeof(Real) * (kept + logits);
  } else {
    struct Observer : Hooks {
      bool may_replace(Site) const override { return false; }
    } observer;
    Hooks* hooks = pass == PlannedPass::observed ? &observer : nullptr;
    const Var logits = (*model)(tape, labeled_input(batch), {.training = is_training, .hooks = hooks});
    tape.set_layer("loss");
    const Var loss = cross_entropy(logits, batch.row_labels);
    if (is_training) tape.backward(loss, 1, Tape::RetainGrads::leaves);
  }
  plan.tape_bytes = static_cast<double>(tape.bytes());
  plan.ops = tape.costs();
  return plan;
}

}  // namespace thimble
