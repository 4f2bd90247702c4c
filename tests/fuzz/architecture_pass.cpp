#include "fuzz/architecture_pass.h"

#include <algorithm>

#include "thimble/engine/gradcheck.h"
#include "thimble/engine/make_model.h"
#include "thimble/engine/ops.h"
#include "train/step/evaluator.h"

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace {

struct Reader : Hooks {
  bool may_replace(Site) const override { return false; }
} reader;

}  // namespace

std::unique_ptr<Model> make_model(const Architecture& a, const NamedValues& parameters) {
  std::unique_ptr<Model> model = make_model(a.config.model, a.sizes);
  ParameterStore& store = model->parameters();
  for (int p = 0; p < static_cast<int>(store.entries().size()); ++p)
    std::ranges::transform(parameters.at(store.entry({p}).name), store.values(Parameter{p}).begin(),
                           [](double x) { return static_cast<Real>(x); });
  return model;
}

Var record_loss(Tape& tape, const Model& model, const Architecture& a, const Batch& batch,
                const PassOptions& options) {
  const Var logits = model(tape, labeled_input(batch),
                           {.training = options.training,
                            .seed = a.seed,
                            .step = 3,
                            .first_sample = 0,
                            .hooks = options.observed ? &reader : nullptr});
  tape.set_layer("loss");
  return cross_entropy(logits, batch.row_labels,
                       {.smoothing = static_cast<Real>(a.config.train.label_smoothing)});
}

NamedValues draw_parameters(const Architecture& a) {
  const std::unique_ptr<Model> model = make_model(a.config.model, a.sizes);
  model->init(a.seed);
  // Biases of 0 and norm weights of 1, the initial values, could hide a missing term.
  const Random random(a.seed, Stream::gradcheck);
  std::uint64_t i = 0;
  NamedValues out;
  const ParameterStore& store = model->parameters();
  for (int p = 0; p < static_cast<int>(store.entries().size()); ++p)
    for (const Real x : store.values(Parameter{p}))
      out[store.entry({p}).name].push_back(x + static_cast<Real>(0.2 * random.normal(i++, 0, 9)));
  return out;
}

PassResult run_pass(const Architecture& a, const NamedValues& parameters, const PassOptions& options) {
  const std::unique_ptr<Model> model = make_model(a, parameters);
  const ParameterStore& store = model->parameters();
  AlignedVector<Real> gradients(store.size());
  Tape tape;
  tape.bind(store, gradients);
  const Var loss = record_loss(tape, *model, a, a.batch, options);
  tape.backward(loss, 1, Tape::RetainGrads::leaves);
  PassResult result{.loss = static_cast<double>(loss.item()), .gradients = {}};
  for (int p = 0; p < static_cast<int>(store.entries().size()); ++p) {
    const auto values = store.slice(std::span<const Real>(gradients), {p});
    result.gradients[store.entry({p}).name].assign(values.begin(), values.end());
  }
  return result;
}

std::vector<GradcheckResult> check_gradients(const Architecture& a, const NamedValues& parameters) {
  const std::unique_ptr<Model> model = make_model(a, parameters);
  return gradcheck(model->parameters(),
                   [&](Tape& tape) { return record_loss(tape, *model, a, a.batch, {}); });
}

}  // namespace THIMBLE_PRECISION
}  // namespace thimble
