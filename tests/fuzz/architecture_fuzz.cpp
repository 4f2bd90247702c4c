// Builds random models and compares, for each: float with double, gradients with numerical ones, and what must not change
// a result with the result (architecture_invariants.cpp). Writes parameters, batches, losses and gradients for
// architecture_torch.py, which compares them with PyTorch's. Prints what differs after the config; the status is then 1.
// Usage: architecture_fuzz COUNT FIRST_SEED [--json FILE] [--torch DIRECTORY]
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <stdexcept>
#include <string_view>

#include "fuzz/architecture.h"
#include "thimble/engine/gradcheck_result.h"
#include "thimble/engine/make_model.h"
#include "thimble/train/file.h"
#include "thimble/train/json.h"
#include "thimble/train/safetensors.h"

namespace thimble {

#define THIMBLE_PASSES                                                                              \
  NamedValues draw_parameters(const Architecture&);                                                 \
  PassResult run_pass(const Architecture&, const NamedValues& parameters, const PassOptions&);      \
  std::vector<GradcheckResult> check_gradients(const Architecture&, const NamedValues& parameters); \
  std::vector<std::string> broken_invariants(const Architecture&, const NamedValues& parameters);

namespace f32 {
THIMBLE_PASSES
}
namespace f64 {
THIMBLE_PASSES
}

namespace {

using Findings = std::vector<std::string>;

double largest_of(const std::vector<double>& values) {
  double largest = 0;
  for (const double x : values) largest = std::max(largest, std::abs(x));
  return largest;
}

// Returns the largest difference, infinity if one is not a number.
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double here = std::abs(a[i] - b[i]);
    worst = std::max(worst, std::isnan(here) ? HUGE_VAL : here);
  }
  return worst;
}

// Compares the float pass with the double one. u is float's unit round-off. A product of K terms is off by about
// sqrt(2 K) u times its size (Higham and Mary 2019); a layer has at most 12, and 2 are outside; 8 is for the
// backward pass and for norms and softmax. Sizes are those of the largest gradient, since what a norm's
// backward pass returns is a difference of such, plus what u in every parameter moves this one by, which
// four draws of signs tell: that is how far rounding early in the model reaches.
void compare_precisions(const Architecture& a, const NamedValues& parameters, Findings& findings) {
  const PassResult single = f32::run_pass(a, parameters, {}), exact = f64::run_pass(a, parameters, {});
  const double roundoff = std::ldexp(1, -24);
  double loss_moved = 0, largest = 0;
  std::map<std::string, double> moved;
  for (std::uint32_t draw = 0; draw < 4; ++draw) {
    const Random random(a.seed, Stream::inspect);
    NamedValues near = parameters;
    std::uint64_t i = 0;
    for (auto& [name, values] : near)
      for (double& x : values) x *= 1 + (random.below(2, i++, draw) == 0 ? roundoff : -roundoff);
    const PassResult result = f64::run_pass(a, near, {});
    loss_moved = std::max(loss_moved, std::abs(result.loss - exact.loss));
    for (const auto& [name, gradient] : exact.gradients)
      moved[name] = std::max(moved[name], distance(gradient, result.gradients.at(name)));
  }
  for (const auto& [name, gradient] : exact.gradients) largest = std::max(largest, largest_of(gradient));
  const ModelConfig& model = a.config.model;
  const auto terms = static_cast<double>(std::max({model.d_model, model.d_ff, a.sizes.vocabulary}));
  const double factor = 8 * static_cast<double>(12 * model.layers + 2) * std::sqrt(2 * terms);
  const auto check = [&](const std::string& name, double error, double bound) {
    if (!(error <= bound))
      findings.push_back(fmt::format("{} in float is {:.3g} away from that in double, more than {:.3g}", name,
                                     error, bound));
  };
  check("the loss", std::abs(single.loss - exact.loss),
        factor * (loss_moved + roundoff * std::max(1.0, exact.loss)));
  for (const auto& [name, gradient] : exact.gradients)
    check("the gradient of " + name, distance(gradient, single.gradients.at(name)),
          factor * (moved[name] + roundoff * largest));
}

struct Counts {
  std::int64_t models = 0, gradients = 0, undecided = 0, zero = 0, wrong = 0, findings = 0;
};

// Gradients that are zero everywhere, such as one through a layer norm of a single channel, are undecided, too.
void compare_numerically(const Architecture& a, const NamedValues& parameters, Counts& counts,
                         Findings& findings) {
  ++counts.models;
  for (const GradcheckResult& r : f64::check_gradients(a, parameters)) {
    ++counts.gradients;
    if (r.verdict == GradcheckVerdict::undecided) ++(r.analytic == 0 ? counts.zero : counts.undecided);
    if (r.verdict != GradcheckVerdict::wrong) continue;
    ++counts.wrong;
    findings.push_back(fmt::format("gradient of {} at {}: {}", r.input, r.index, r.reason));
  }
}

// Files for PyTorch, of kInFile architectures each. Names of tensors start with the seed; configs are metadata.
class Export {
 public:
  explicit Export(std::string directory) : directory_(std::move(directory)) {}

  void add(const Architecture& a, const NamedValues& parameters) {
    const PassResult result = f64::run_pass(a, parameters, {.training = false});
    const std::string seed = std::to_string(a.seed);
    const std::unique_ptr<Model> model = make_model(a.config.model, a.sizes, Storage::shapes);
    for (const auto& entry : model->parameters().entries()) {
      add(seed + ".parameter." + entry.name, entry.shape, parameters.at(entry.name));
      add(seed + ".gradient." + entry.name, entry.shape, result.gradients.at(entry.name));
    }
    add(seed + ".loss", {}, {result.loss});
    const Batch& b = a.batch;
    for (const auto& [name, numbers] :
         {std::pair("tokens", &b.tokens), std::pair("lengths", &b.lengths), std::pair("sources", &b.sources),
          std::pair("source_lengths", &b.source_lengths), std::pair("labels", &b.labels)})
      add(seed + "." + name, {std::ssize(*numbers)}, {numbers->begin(), numbers->end()});
    Json config = to_json(a.config);
    config["sequences"] = b.sequences;
    config["vocabulary"] = a.sizes.vocabulary;
    configs_[seed] = config.dump();
    if (std::ssize(configs_) == kInFile) write();
  }

  void write() {
    if (configs_.empty()) return;
    write_safetensors(directory_ + "/" + configs_.begin()->first + ".safetensors", tensors_, configs_);
    values_.clear();
    tensors_.clear();
    configs_.clear();
  }

 private:
  void add(const std::string& name, const Shape& shape, std::vector<double> values) {
    const std::vector<double>& kept = values_.emplace_back(std::move(values));
    tensors_.push_back({name, DType::f64, shape, std::as_bytes(std::span(kept))});
  }

  static constexpr std::int64_t kInFile = 200;
  std::string directory_;
  std::deque<std::vector<double>> values_;
  std::vector<NamedBytes> tensors_;
  std::map<std::string, std::string> configs_;
};

Findings examine(const Architecture& a, const NamedValues& parameters, Counts& counts) {
  Findings findings;
  compare_precisions(a, parameters, findings);
  std::int64_t count = 0;
  for (const auto& [name, values] : parameters) count += std::ssize(values);
  if (has_numerical_gradients(a, count)) compare_numerically(a, parameters, counts, findings);
  for (const std::string& broken : f32::broken_invariants(a, parameters)) findings.push_back(broken);
  for (const std::string& broken : f64::broken_invariants(a, parameters))
    findings.push_back(broken + ", in double");
  return findings;
}

}  // namespace
}  // namespace thimble

int main(int argc, char** argv) {
  using namespace thimble;
  if (argc < 3)
    return std::puts("usage: architecture_fuzz COUNT FIRST_SEED [--json FILE] [--torch DIRECTORY]"), 2;
  const std::uint64_t count = std::stoull(argv[1]), first = std::stoull(argv[2]);
  std::string json, torch;
  for (int i = 3; i + 1 < argc; i += 2) (std::string_view(argv[i]) == "--json" ? json : torch) = argv[i + 1];
  Counts counts;
  Export exported(torch);
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const Architecture a = random_architecture(seed);
    const NamedValues parameters = f32::draw_parameters(a);
    Findings findings;
    try {
      findings = examine(a, parameters, counts);
      if (!torch.empty()) exported.add(a, parameters);
    } catch (const std::exception& e) {
      findings.push_back(fmt::format("exception: {}", e.what()));
    }
    if (findings.empty()) continue;
    ++counts.findings;
    std::printf("%s", describe(a).c_str());
    for (const std::string& finding : findings)
      std::printf("FOUND: seed %s: %s\n", std::to_string(seed).c_str(), finding.c_str());
    std::fflush(stdout);
  }
  exported.write();
  const Json report = {{"architectures", count},
                       {"first_seed", first},
                       {"architectures_with_numerical_gradients", counts.models},
                       {"gradients_checked", counts.gradients},
                       {"gradients_wrong", counts.wrong},
                       {"gradients_undecided", counts.undecided},
                       {"gradients_undecided_as_zero", counts.zero},
                       {"architectures_with_findings", counts.findings}};
  if (!json.empty()) write_file(json, report.dump(2) + "\n");
  std::printf("architectures: %s\n", report.dump().c_str());
  return counts.findings == 0 ? 0 : 1;
}
