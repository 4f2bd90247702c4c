// The matrix products of linear layers as a step computes them, with operands that other ops have pushed out of the
// second cache: products/KIND/LAYER/MODEL/LIBRARY, in FLOP/s and as a share of the FMA peak of one core. KIND is
// `forward` (y = x W^T), `dx` (dx = dy W) or `dw` (dW += dy^T x). All libraries get the same numbers and must agree. One
// thread; OMP_NUM_THREADS=1 for oneDNN, which is in the table where it was found at build time.
#include "products_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cases.h"
#include "engine/kernels/products/backend.h"
#include "engine/kernels/products/peak.h"
#include "train/files/stopwatch.h"

#ifdef THIMBLE_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace bench {

namespace {

using kernels::Op;

enum class Kind { forward, dx, dw };

// The products of one layer: c (m, n) = op(a) op(b), or c += with `dw`.
struct Product {
  Kind kind;
  std::int64_t m, n, k;

  double flops() const {
    return 2.0 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  }
  Op op_a() const { return kind == Kind::dw ? Op::transpose : Op::none; }
  Op op_b() const { return kind == Kind::forward ? Op::transpose : Op::none; }
  double beta() const { return kind == Kind::dw ? 1 : 0; }
};

// Operands of a product, as many sets as fill several times the second cache. Weights are the same in all of them.
class Operands {
 public:
  explicit Operands(const Product& p) : p_(p) {
    constexpr std::int64_t kBytes = 16 << 20;
    const std::int64_t set = (p.m * p.k + p.m * p.n + (p.kind == Kind::dw ? p.k * p.n : 0)) *
                             static_cast<std::int64_t>(sizeof(Real));
    sets_.resize(static_cast<std::size_t>(std::max<std::int64_t>(2, kBytes / set)));
    const bool ta = p.op_a() == Op::transpose, tb = p.op_b() == Op::transpose;
    weight_ = memory_.matrix(tb ? p.n : p.k, tb ? p.k : p.n);
    for (Set& s : sets_) {
      s.c = memory_.matrix(p.m, p.n);
      s.a = memory_.matrix(ta ? p.k : p.m, ta ? p.m : p.k);
      s.b = p.kind == Kind::dw ? memory_.matrix(p.k, p.n) : weight_;
    }
    packed_ = kernels::pack(memory_.numbers(kernels::packed_size(p.k, p.n)).data(), weight_, p.op_b());
  }

  void thimble() {
    const Set& s = next();
    if (p_.kind == Kind::dw) return kernels::gemm_add({s.c, false}, s.a, Op::transpose, s.b, Op::none);
    kernels::gemm_packed(s.c, {}, s.a, packed_);
  }
  void openblas() {
    const Set& s = next();
    kernels::blas_gemm(s.c, s.a, p_.op_a(), s.b, p_.op_b(), 1, static_cast<Real>(p_.beta()));
  }
#ifdef THIMBLE_ONEDNN
  void onednn() {
    const Set& s = next();
    const auto name = [](Op op) { return op == Op::transpose ? 'T' : 'N'; };
    dnnl_sgemm(name(p_.op_a()), name(p_.op_b()), p_.m, p_.n, p_.k, 1, s.a.data, s.a.stride, s.b.data,
               s.b.stride, static_cast<float>(p_.beta()), s.c.data, s.c.stride);
  }
#endif

  // Returns the largest difference to OpenBLAS of a product that starts from 1, as a share of a typical element.
  double difference(void (Operands::*product)()) {
    const Set& s = sets_[0];
    const auto result = [&](void (Operands::*function)()) {
      std::fill_n(s.c.data, s.c.elements(), Real{1});
      next_ = 0;
      (this->*function)();
      return std::vector<Real>(s.c.data, s.c.data + s.c.elements());
    };
    const std::vector<Real> expected = result(&Operands::openblas), actual = result(product);
    double worst = 0;
    for (std::size_t i = 0; i < expected.size(); ++i)
      worst = std::max(worst, static_cast<double>(std::abs(actual[i] - expected[i])));
    return worst / std::sqrt(static_cast<double>(p_.k));
  }

 private:
  struct Set {
    MatrixView c, a, b;
  };
  const Set& next() { return sets_[next_++ % sets_.size()]; }

  Product p_;
  Memory memory_;
  MatrixView weight_;
  kernels::PackedView packed_;
  std::vector<Set> sets_;
  std::size_t next_ = 0;
};

// Returns FLOP per second of multiply-adds on registers, the best of several rounds.
double fma_peak() {
  double best = 0;
  for (int round = 0; round < 9; ++round) {
    Real result = 1;
    const Stopwatch timer;
    const double flops = kernels::multiply_adds(1'000'000, result);
    benchmark::DoNotOptimize(result);
    best = std::max(best, flops / timer.seconds());
  }
  return best;
}

void run(benchmark::State& state, const Product& p, void (Operands::*product)(), double peak) {
  static std::string last;  // the rows of a product follow each other
  static std::unique_ptr<Operands> operands;
  const std::string key = fmt::format("{} {} {} {}", static_cast<int>(p.kind), p.m, p.n, p.k);
  if (last != key) operands = std::make_unique<Operands>(p);
  last = key;
  if (operands->difference(product) > 1e-4) {
    return state.SkipWithError("this library and OpenBLAS do not agree");
  }
  for (auto _ : state) {
    ((*operands).*product)();
    benchmark::ClobberMemory();
  }
  state.counters["FLOP"] = {p.flops(), benchmark::Counter::kIsIterationInvariantRate};
  state.counters["of_peak"] = {p.flops() / peak, benchmark::Counter::kIsIterationInvariantRate};
  state.SetLabel(fmt::format("{} x {} x {}", p.m, p.n, p.k));
}

}  // namespace

void add_products(const std::string& model, std::int64_t rows, std::span<const Layer> layers) {
  static const double peak = fma_peak();
  const std::pair<const char*, void (Operands::*)()> libraries[] = {{"thimble", &Operands::thimble},
                                                                    {"openblas", &Operands::openblas},
#ifdef THIMBLE_ONEDNN
                                                                    {"onednn", &Operands::onednn}
#endif
  };
  for (const auto& [layer, in, out] : layers) {
    const std::pair<const char*, Product> products[] = {{"forward", {Kind::forward, rows, out, in}},
                                                        {"dx", {Kind::dx, rows, in, out}},
                                                        {"dw", {Kind::dw, out, in, rows}}};
    for (const auto& [kind, product] : products) {
      for (const auto& [library, function] : libraries) {
        const std::string name = fmt::format("products/{}{}/{}/{}", kind, layer, model, library);
        benchmark::RegisterBenchmark(name.c_str(), [=, p = product, f = function](benchmark::State& state) {
          run(state, p, f, peak);
        });
      }
    }
  }
}

}  // namespace bench
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
