#include "train/step/plan.h"

#include "thimble/engine/make_model.h"
#include "train/step/chunk_hooks.h"
#include "train/step/forward.h"

namespace thimble {

template <>
ModelPlan run_plan<Real>(const OpenConfig& config, const Batch& batch, const PlanOptions& options) {
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
    Replace hooks([&](Site site) { return options.replaced && site.kind != SiteKind::attention_weights; },
                  [](std::int64_t, Site, const Shape&, MatrixView value) { return value.rows; });
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
