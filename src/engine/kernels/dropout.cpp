// Dropout.
//   forward    y = x f,  f = 0 with probability p, else 1 / (1 - p)
//   backward   dx += dy f
//   saved: f. This file draws f; mul_forward() and mul_backward() apply it.
//
// Element 4 i + j of a sample is drawn from word j of Random::words(step and sample, i, site): a vector holds one word of the
// counter for as many consecutive i as it has lanes.
#include "engine/kernels/dropout.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/kernels/dropout.cpp"
#include <hwy/foreach_target.h>

#include <array>
#include <cmath>

#include "engine/kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels::HWY_NAMESPACE {

using WordTag = hn::ScalableTag<std::uint32_t>;
using WordVector = hn::Vec<WordTag>;

// The upper and the lower 32 bits of products.
struct Products {
  WordVector high, low;
};

HWY_INLINE Products mul_wide(WordVector a, std::uint32_t factor) {
  const WordTag d;
#if HWY_TARGET == HWY_SCALAR
  const std::uint64_t product = std::uint64_t{factor} * hn::GetLane(a);
  return {hn::Set(d, static_cast<std::uint32_t>(product >> 32)),
          hn::Set(d, static_cast<std::uint32_t>(product))};
#else
  const hn::Repartition<std::uint64_t, WordTag> wide;
  const WordVector b = hn::Set(d, factor);
  const auto even = hn::MulEven(a, b);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, a))), b);
  return {hn::OddEven(hn::BitCast(d, odd), hn::BitCast(d, hn::ShiftRight<32>(even))),
          hn::OddEven(hn::BitCast(d, hn::ShiftLeft<32>(odd)), hn::BitCast(d, even))};
#endif
}

// Stores the words of consecutive counters, the first of which is given (Philox4x32-10, Salmon et al. 2011): of two vectors,
// so that one is not waited for by the other.
HWY_INLINE void store_words(const std::array<std::uint32_t, 2>& key,
                            const std::array<std::uint32_t, 4>& first, std::uint32_t* words) {
  const WordTag d;
  const auto lanes = static_cast<std::uint32_t>(width(d));
  std::uint32_t k0 = key[0], k1 = key[1];
  WordVector a0 = hn::Set(d, first[0]), a1 = hn::Set(d, first[1]), a2 = hn::Iota(d, first[2]),
             a3 = hn::Set(d, first[3]);
  WordVector b0 = a0, b1 = a1, b2 = hn::Iota(d, first[2] + lanes), b3 = a3;
  const auto mix = [&](WordVector& c0, WordVector& c1, WordVector& c2, WordVector& c3) HWY_ATTR {
    const auto [high0, low0] = mul_wide(c0, 0xD2511F53);
    const auto [high1, low1] = mul_wide(c2, 0xCD9E8D57);
    c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(d, k0));
    c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(d, k1));
    c1 = low1;
    c3 = low0;
  };
  for (int round = 0; round < 10; ++round) {
    mix(a0, a1, a2, a3);
    mix(b0, b1, b2, b3);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  hn::StoreInterleaved4(a0, a1, a2, a3, d, words);
  hn::StoreInterleaved4(b0, b1, b2, b3, d, words + 4 * lanes);
}

void sample_dropout_factors(Real* factor, Real p, const DropoutKey& key, std::int64_t sample,
                            std::int64_t first, std::int64_t count) {
  const Real kept = 1 / (1 - p);
  const auto threshold = static_cast<std::uint64_t>(std::llround(static_cast<double>(p) * 0x1p32));
  const std::uint64_t counter =
      std::uint64_t{key.step} << 32 | (key.first_sample + static_cast<std::uint32_t>(sample));
  HWY_ALIGN std::uint32_t words[8 * hn::MaxLanes(WordTag())];
  const std::int64_t drawn = 8 * width(WordTag());  // at once
  for (std::int64_t i = first / 4 * 4; i < first + count; i += drawn) {
    store_words(key.random.key(), key.random.counter(counter, static_cast<std::uint32_t>(i / 4), key.site),
                words);
    const std::int64_t begin = std::max(i, first), end = std::min(i + drawn, first + count);
    for (std::int64_t j = begin; j < end; ++j) factor[j - first] = words[j - i] < threshold ? Real{0} : kept;
  }
}

}  // namespace kernels::HWY_NAMESPACE
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
HWY_AFTER_NAMESPACE();

THIMBLE_DISPATCH(void, sample_dropout_factors,
                 (Real * factor, Real p, const DropoutKey& key, std::int64_t sample, std::int64_t first,
                  std::int64_t count),
                 factor, p, key, sample, first, count)

#if HWY_ONCE
namespace thimble {
inline namespace THIMBLE_PRECISION {
namespace kernels {

void dropout_factors(MatrixView factor, Real p, const DropoutKey& key, std::int64_t rows_per_sample) {
  for (std::int64_t sample = 0; sample * rows_per_sample < factor.rows; ++sample)
    sample_dropout_factors(factor.row(sample * rows_per_sample), p, key, sample, 0,
                           rows_per_sample * factor.cols);
}

}  // namespace kernels
}  // namespace THIMBLE_PRECISION
}  // namespace thimble
#endif
