// GELU and SiLU, y = x Phi(x).
//   erf form    Phi(x) = erfc(-x / sqrt 2) / 2                       dy/dx = Phi(x) + x phi(x)
//   tanh form   Phi(x) ~ (1 + tanh u) / 2 = s, s = sigmoid(2u)       dy/dx = s + x s (1 - s) d(2u)/dx
//   SiLU        Phi(x) ~ s = sigmoid(x)                              dy/dx = s + x s (1 - s)
//   backward    dx += dy dy/dx, which is mul_backward()
//   saved: dy/dx, from the exponential of the forward pass
#include "engine/kernels/gelu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/gelu.cpp"
#include <hwy/foreach_target.h>

#include "engine/kernels/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

// The coefficients of (1 + 2z) exp(z^2) erfc(z) for z >= 0 as a polynomial in q = (z - 3) / (z + 3), lowest
// power first: a Chebyshev expansion in the variable of Shepherd and Laframboise (Math. Comp. 36, 1981).
// Relative error 5e-9 in float, 3e-16 in double.
#ifdef THIMBLE_DOUBLE
constexpr Real kErfc[] = {
    1.25300805826972955,     -1.3562110612457575e-1,  -4.75622943534203791e-2, 1.29645158702283467e-1,
    -1.19273663416760023e-1, 6.83080273563839702e-2,  -2.37705148915300752e-2, 2.52939166720517231e-3,
    1.8886900977441495e-3,   -7.79831279729015847e-4, -1.05158312978131281e-4, 1.2509531076254534e-4,
    4.94412434222365688e-6,  -2.00899978332842753e-5, -7.18788383440421014e-7, 3.45429477027773625e-6,
    3.36697908064069078e-7,  -5.96398362552272774e-7, -1.20541422864888613e-7, 8.76588141173050352e-8,
    2.78438812655000308e-8,  -7.641962892589875e-9,   -3.18135414349652918e-9};
#else
constexpr Real kErfc[] = {1.25300805636775534f,     -1.35621069400273603e-1f, -4.75621569275200741e-2f,
                          1.29644114344081394e-1f,  -1.19275275282240893e-1f, 6.83165677711408534e-2f,
                          -2.37635764394950397e-2f, 2.49911686960694756e-3f,  1.875079123772353e-3f,
                          -7.26453679034048424e-4f, -9.25451668692396596e-5f, 7.73102422407689506e-5f};
#endif

// The |x| from which every form is x or 0 to the last bit, and below which nothing overflows.
constexpr Real kFar = 40;

// Returns x^2 - square, the rounding error of square = x x.
template <class D, class V>
HWY_INLINE V square_error(D d, V x, V square) {
  if constexpr (kFused) return hn::MulSub(x, x, square);
  // Without a fused multiply-add, from halves of x whose products are exact (Dekker 1971).
  const hn::RebindToUnsigned<D> bits;
  using Bits = hn::TFromD<decltype(bits)>;
  constexpr Bits kUpper = ~Bits{0} << (sizeof(Real) == 8 ? 27 : 12);
  const auto high = hn::BitCast(d, hn::And(hn::BitCast(bits, x), hn::Set(bits, kUpper))),
             low = hn::Sub(x, high);
  const auto middle = hn::Mul(hn::Add(high, high), low);
  return hn::Add(hn::Add(hn::Sub(hn::Mul(high, high), square), middle), hn::Mul(low, low));
}

template <class F>
HWY_INLINE void map_with_derivative(MatrixView y, MatrixView derivative, ConstMatrixView x, const F& f) {
  for (std::int64_t r = 0; r < y.rows; ++r) {
    lanes(y.cols, [&, to = y.row(r), to_derivative = derivative.row(r), from = x.row(r)](
                      auto d, std::int64_t i) HWY_ATTR {
      const auto v = load(d, from + i);
      auto dydx = v;
      store(f(d, v, dydx), d, to + i);
      store(dydx, d, to_derivative + i);
    });
  }
}

void gelu_erf_forward(MatrixView y, MatrixView derivative, ConstMatrixView x) {
  map_with_derivative(y, derivative, x, [](auto d, auto v, auto& dydx) HWY_ATTR {
    const auto one = hn::Set(d, Real{1});
    const auto near = hn::Min(hn::Abs(v), hn::Set(d, kFar));
    const auto z = hn::Mul(near, hn::Set(d, static_cast<Real>(0.70710678118654752440)));
    const auto three = hn::Set(d, Real{3});
    // One division for both q and 1 / (1 + 2z).
    const auto z_plus = hn::Add(z, three), two_z_plus = hn::MulAdd(hn::Set(d, Real{2}), z, one);
    const auto inverse = hn::Div(one, hn::Mul(z_plus, two_z_plus));
    const auto q = hn::Mul(hn::Sub(z, three), hn::Mul(inverse, two_z_plus));
    constexpr int kLast = static_cast<int>(std::size(kErfc)) - 1;
    auto polynomial = hn::Set(d, kErfc[kLast]);
    for (int i = kLast; i-- > 0;) polynomial = hn::MulAdd(polynomial, q, hn::Set(d, kErfc[i]));
    // exp(-x^2 / 2), corrected for the rounding error of the square, which costs several digits for large x.
    const auto half = hn::Set(d, Real{-0.5}), square = hn::Mul(near, near);
    const auto rounded = exp_up_to_88(d, hn::Mul(half, square));
    const auto e = hn::MulAdd(hn::Mul(half, rounded), square_error(d, near, square), rounded);
    const auto tail =
        hn::Mul(hn::Mul(hn::Set(d, Real{0.5}), e), hn::Mul(polynomial, hn::Mul(inverse, z_plus)));
    const auto phi = hn::Mul(e, hn::Set(d, static_cast<Real>(0.39894228040143267794)));
    const auto distribution = hn::IfThenElse(hn::Lt(v, hn::Zero(d)), tail, hn::Sub(one, tail));
    dydx = hn::MulAdd(v, phi, distribution);
    return hn::Mul(v, distribution);
  });
}

void gelu_tanh_forward(MatrixView y, MatrixView derivative, ConstMatrixView x) {
  map_with_derivative(y, derivative, x, [](auto d, auto v, auto& dydx) HWY_ATTR {
    const auto one = hn::Set(d, Real{1});
    constexpr double kTwoRoot = 1.59576912160573071;  // 2 sqrt(2 / pi)
    const auto linear = hn::Set(d, static_cast<Real>(kTwoRoot));
    const auto cubic = hn::Set(d, static_cast<Real>(kTwoRoot * 0.044715));
    const auto near = hn::Max(hn::Min(v, hn::Set(d, kFar)), hn::Set(d, -kFar));
    const auto square = hn::Mul(near, near);
    const auto two_u = hn::Mul(near, hn::MulAdd(cubic, square, linear));
    // Exp has no upper clamp; beyond 80 the sigmoid is 0 in float anyway and in double below 1e-34.
    const auto e = hn::Exp(d, hn::Min(hn::Neg(two_u), hn::Set(d, Real{80})));
    const auto s = hn::Div(one, hn::Add(one, e));  // e s is 1 - s, without the cancellation
    const auto two_du = hn::MulAdd(hn::Mul(hn::Set(d, Real{3}), cubic), square, linear);
    dydx = hn::MulAdd(hn::Mul(hn::Mul(near, s), hn::Mul(e, s)), two_du, s);
    return hn::Mul(v, s);
  });
}

void silu_forward(MatrixView y, MatrixView derivative, ConstMatrixView x) {
  map_with_derivative(y, derivative, x, [](auto d, auto v, auto& dydx) HWY_ATTR {
    auto rest = v;  // 1 - s
    const auto s = sigmoid(d, v, rest);
    dydx = hn::MulAdd(v, hn::Mul(s, rest), s);
    return hn::Mul(v, s);
  });
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

THIMBLE_DISPATCH(void, gelu_erf_forward, (MatrixView y, MatrixView derivative, ConstMatrixView x), y,
                 derivative, x)
THIMBLE_DISPATCH(void, gelu_tanh_forward, (MatrixView y, MatrixView derivative, ConstMatrixView x), y,
                 derivative, x)
THIMBLE_DISPATCH(void, silu_forward, (MatrixView y, MatrixView derivative, ConstMatrixView x), y, derivative,
                 x)
