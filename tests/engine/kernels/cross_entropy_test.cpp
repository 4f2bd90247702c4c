#include "engine/kernels/cross_entropy.h"

#include "catch.h"
#include "engine/kernels/matrix.h"
#include "engine/kernels/reference.h"

using namespace thimble;

namespace {

using Labels = std::vector<std::int32_t>;

Labels labels_for(std::int64_t n) {
  return {0, -1, static_cast<std::int32_t>(n - 1), static_cast<std::int32_t>(n / 2), -7, 0};
}

}  // namespace

TEST_CASE("cross entropy and its slope, at every width", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    for (const Real smoothing : {Real(0), Real(0.3)}) {
      for (const std::int64_t gap : {0, 3}) {
        CAPTURE(n, smoothing, gap);
        const Labels labels = labels_for(n);
        const Matrix z(6, n, 1, gap);
        Matrix slope(6, n, 2, gap);
        const double loss = kernels::cross_entropy_forward(slope, z, labels, smoothing, Real(0.25));
        const WideMatrix wanted(6, n);
        CHECK_THAT(
            loss, WithinAbs(reference::cross_entropy_forward(wanted, WideMatrix(z), labels, smoothing, 0.25L),
                            kRounding));
        CHECK(worst_error(slope, wanted) < kRounding / 10);
        CHECK(slope.intact());
      }
    }
  }
}

TEST_CASE("unlabeled rows count for nothing, whatever they hold", "[kernels]") {
  Matrix z(3, 5, 1);
  z(1, 2) = std::numeric_limits<Real>::quiet_NaN();
  Matrix slope(3, 5, 2);
  const double loss = kernels::cross_entropy_forward(slope, z, Labels{1, -1, 4}, 0, 1);
  CHECK(std::isfinite(loss));
  for (std::int64_t c = 0; c < 5; ++c) CHECK(slope(1, c) == 0);
  CHECK(kernels::cross_entropy_forward(slope, z, Labels{-1, -1, -1}, 0, 1) == 0);
}

TEST_CASE("huge logits neither overflow nor cancel", "[kernels]") {
  for (const std::int64_t n : {2, 16, 37}) {
    for (const Real size : {Real(1e4), Real(1e30)}) {
      CAPTURE(n, size);
      Matrix z(4, n), slope(4, n);
      z.fill(-size);
      for (std::int64_t r = 0; r < 4; ++r) z(r, r == 1 ? 0 : n - 1) = r == 3 ? size + 1 : size;
      for (std::int64_t c = 0; c < n; ++c) z(2, c) = size;  // all equal
      const Labels right{static_cast<std::int32_t>(n - 1), 0, 0, static_cast<std::int32_t>(n - 1)};
      CHECK_THAT(kernels::cross_entropy_forward(slope, z, right, 0, 1),
                 WithinRel(std::log(static_cast<double>(n)), 1e-6));
      const Labels wrong{0, static_cast<std::int32_t>(n - 1), -1, -1};
      CHECK_THAT(kernels::cross_entropy_forward(slope, z, wrong, 0, 1),
                 WithinRel(4 * static_cast<double>(size), 1e-6));
      CHECK(slope(0, 0) == -1);
      CHECK(slope(0, n - 1) == 1);
    }
  }
}

TEST_CASE("a NaN among the logits of a labeled row makes the loss NaN", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    std::int64_t finite = 0;
    for (std::int64_t at = 0; at < n; ++at) {
      Matrix z(1, n, 1), slope(1, n);
      z(0, at) = std::numeric_limits<Real>::quiet_NaN();
      finite += std::isfinite(kernels::cross_entropy_forward(slope, z, Labels{0}, 0, 1));
    }
    CAPTURE(n);
    CHECK(finite == 0);
  }
}

TEST_CASE("a row is right when its first largest logit is at the label", "[kernels]") {
  for (const std::int64_t n : kSizes) {
    for (std::int64_t best = 0; best < n; ++best) {
      for (std::int64_t twin = best; twin < n; twin += 3) {  // an equal one further on loses
        Matrix z(2, n);
        for (std::int64_t c = 0; c < n; ++c)
          z(0, c) = z(1, c) = c == best || c == twin ? 3 : Real(0.01) * static_cast<Real>(c);
        for (std::int32_t label = -1; label < n; ++label) {
          if (kernels::count_correct(z, Labels{label, -1}) != (label == best)) {
            CAPTURE(n, best, twin, label);
            FAIL_CHECK("counted wrong");
          }
        }
      }
    }
  }
  Matrix z(4, 3);
  CHECK(kernels::count_correct(z, Labels{0, 0, 1, -1}) == 2);  // all equal: the first
}

TEST_CASE("every labeled row has its weight in the loss, however many there are", "[kernels]") {
  for (const std::int64_t rows : {1, 15, 16, 17, 31, 32, 33, 48, 100}) {
    for (const Real weight : {Real(0.25), Real(3)}) {
      CAPTURE(rows, weight);
      const Matrix z(rows, 7, 1);
      Matrix slope(rows, 7);
      Labels labels(static_cast<std::size_t>(rows));
      for (std::size_t r = 0; r < labels.size(); ++r) labels[r] = static_cast<std::int32_t>(r % 8) - 1;
      CHECK_THAT(
          kernels::cross_entropy_forward(slope, z, labels, 0, weight),
          WithinRel(reference::cross_entropy_forward(WideMatrix(z), WideMatrix(z), labels, 0, Wide(weight)),
                    10 * kRounding));
    }
  }
}

TEST_CASE("the loss of many rows over a large vocabulary is finite", "[kernels]") {
  // One row serves as all of them: 2^17 equal logits, whose sums multiply to 2^1088, beyond any double.
  constexpr std::int64_t kVocabulary = 1 << 17, kRows = 64;
  Matrix row(1, kVocabulary), slope(1, kVocabulary);
  const ConstMatrixView z{row.view().data, kRows, kVocabulary, 0};
  const MatrixView to{slope.view().data, kRows, kVocabulary, 0};
  CHECK_THAT(kernels::cross_entropy_forward(to, z, Labels(kRows, 5), 0, 1),
             WithinRel(kRows * 17 * std::log(2), 1e-6));
}
