// The products of AMX, on its emulation, against their definition: the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "cpu/gemm/product.h"
#include "cpu/pack/packed.h"
#include "cpu/support/amx_model.h"

namespace openrnn::cpu {
namespace {

std::vector<float> random_numbers(std::int64_t size, std::uint64_t stream) {
  RandomStream random(31, stream);
  std::vector<float> values(static_cast<std::size_t>(size));
  for (float& v : values) v = static_cast<float>(random.uniform(-1.0, 1.3));
  return values;
}

std::vector<float> take(const std::vector<float>& from, std::int64_t first, std::int64_t step,
                        std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(from[static_cast<std::size_t>(first + i * step)]);
  }
  return values;
}

/// a [rows][k] times w [k][columns].
struct Problem {
  Arithmetic kind;
  std::int64_t rows, k, columns;
  std::vector<float> a, w, bias;

  Problem(Arithmetic arithmetic, std::int64_t m, std::int64_t inner, std::int64_t n)
      : kind(arithmetic),
        rows(m),
        k(inner),
        columns(n),
        a(random_numbers(m * inner, 1)),
        w(random_numbers(inner * n, 2)),
        bias(random_numbers(divide_up(n, 64) * 64, 3)) {}

  float expected(std::int64_t row, std::int64_t column, float from, bool apart = true) const {
    return model_sum(kind, from, SplitNumbers(take(a, row * k, 1, k)),
                     SplitNumbers(take(w, column, columns, k)), apart);
  }
};

/// The weights of a problem in panels of columns, and memory for its rows.
class PackedProblem {
 public:
  explicit PackedProblem(const Problem& p, std::int64_t staged_rows) {
    matrix_ = {
        nullptr, p.k, kColumnWidth, divide_up(p.columns, 16), 16, count_elements(p.kind, p.k)};
    data_ = Block(static_cast<std::size_t>(matrix_.size()) * sizeof(float));
    matrix_.data = static_cast<float*>(data_.data());
    for (std::int64_t first = 0; first < p.columns; first += 64) {
      std::vector<float> plain(static_cast<std::size_t>(p.k * 64));
      for (std::int64_t k = 0; k < p.k; ++k) {
        for (std::int64_t c = first; c < std::min(first + 64, p.columns); ++c) {
          plain[static_cast<std::size_t>(k * 64 + c - first)] =
              p.w[static_cast<std::size_t>(k * p.columns + c)];
        }
      }
      narrow_panel(p.kind, plain.data(), p.k, 64, 16,
                   matrix_.data + first / 64 * matrix_.panel_size());
    }
    staging_ = Block(static_cast<std::size_t>(staging_bytes(p.kind, staged_rows, p.k)));
    rows_ = staged_rows;
  }
  Panels<float> panels() { return matrix_.panels(0, matrix_.vectors, {staging_.data(), rows_}); }

 private:
  PackedMatrix<float> matrix_;
  Block data_, staging_;
  std::int64_t rows_ = 0;
};

enum class From { kZero, kBias, kOld };

// Every second pair of rows of c is exchanged when `scattered`, so that they lie unevenly.
std::vector<float> multiply(const Problem& p, From from, bool scattered) {
  const FlushSubnormals flush;
  PackedProblem packed(p, 40);
  std::vector<float> c = random_numbers(p.rows * p.columns, 4);
  std::vector<const float*> a_rows;
  std::vector<float*> c_rows;
  for (std::int64_t r = 0; r < p.rows; ++r) {
    const std::int64_t at = scattered && (r ^ 1) < p.rows && r % 4 < 2 ? r ^ 1 : r;
    a_rows.push_back(p.a.data() + at * p.k);
    c_rows.push_back(c.data() + at * p.columns);
  }
  kernels_for<float>(kernels(), p.kind)
      .product({packed.panels(), a_rows.data(), 1, p.rows,
                from == From::kBias ? p.bias.data() : nullptr, from == From::kOld, c_rows.data(),
                p.columns, nullptr, nullptr});
  return c;
}

void expect_model(const Problem& p, From from, bool scattered) {
  const std::vector<float> old = random_numbers(p.rows * p.columns, 4);
  const std::vector<float> c = multiply(p, from, scattered);
  const FlushSubnormals flush;
  for (std::int64_t r = 0; r<p.rows; r += p.rows> 40 ? 7 : 1) {
    for (std::int64_t n = 0; n < p.columns; n += 1 + p.columns / 11) {
      const auto at = static_cast<std::size_t>(r * p.columns + n);
      float want = p.expected(r, n, from == From::kOld ? old[at] : 0.0f);
      if (from == From::kBias) want += p.bias[static_cast<std::size_t>(n)];
      ASSERT_TRUE(same_number(c[at], want))
          << p.kind << " rows " << p.rows << " k " << p.k << " columns " << p.columns << " at " << r
          << ", " << n << ": " << c[at] << " and " << want;
    }
  }
}

class AmxProduct : public testing::TestWithParam<Arithmetic> {
 protected:
  void SetUp() override {
    if (!has_emulation()) GTEST_SKIP() << kNoEmulation;
    isa_.emplace("amx_emulated");
  }
  std::optional<OnIsa> isa_;
};

TEST_P(AmxProduct, IsItsDefinition) {
  for (const std::int64_t rows : {1, 2, 15, 16, 17, 33, 70}) {
    for (const std::int64_t k : {1, 3, 7, 15, 17, 32, 33, 130}) {
      for (const std::int64_t columns : {1, 16, 17, 48, 64, 130}) {
        const Problem p(GetParam(), rows, k, columns);
        expect_model(p, From::kZero, rows % 2 == 0);
        expect_model(p, From::kBias, rows % 2 == 1);
        expect_model(p, From::kOld, columns % 3 == 0);
      }
    }
  }
}

TEST_P(AmxProduct, HasTheSameBitsInPanelForm) {
  for (const std::int64_t rows : {1, 17, 33}) {
    const Problem p(GetParam(), rows, 70, 130);
    const std::vector<float> c = multiply(p, From::kZero, false);
    const FlushSubnormals flush;
    PackedProblem packed(p, 20);
    std::vector<const float*> a_rows;
    for (std::int64_t r = 0; r < rows; ++r) a_rows.push_back(p.a.data() + r * p.k);
    std::vector<float> pre(static_cast<std::size_t>(rows * 144));
    kernels_for<float>(kernels(), p.kind)
        .product({packed.panels(), a_rows.data(), 1, rows, nullptr, false, nullptr, p.columns,
                  pre.data(), nullptr});
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t n = 0; n < p.columns; ++n) {
        // Panels of 64, the last one of a vector alone.
        const std::int64_t panel = n / 64, width = panel == 2 ? 16 : 64;
        const auto at = static_cast<std::size_t>(panel * 64 * rows + r * width + n % 64);
        ASSERT_EQ(pre[at], c[static_cast<std::size_t>(r * p.columns + n)]) << r << ", " << n;
      }
    }
  }
}

// c = a' b as weight gradients are computed: both sides by k.
TEST_P(AmxProduct, OfWeightGradientsIsItsDefinition) {
  for (const std::int64_t k : {1, 2, 31, 33, 1100}) {
    for (const std::int64_t m : {1, 15, 17, 130}) {
      const std::int64_t n = m == 17 ? 130 : 35;
      const std::vector<float> a = random_numbers(k * m, 5), b = random_numbers(k * n, 6);
      std::vector<float> c(static_cast<std::size_t>(m * n));
      std::vector<const float*> a_rows, b_rows;
      std::vector<float*> c_rows;
      for (std::int64_t i = 0; i < k; ++i) a_rows.push_back(a.data() + i * m);
      for (std::int64_t i = 0; i < k; ++i) b_rows.push_back(b.data() + i * n);
      for (std::int64_t i = 0; i < m; ++i) c_rows.push_back(c.data() + i * n);
      Carver measure;
      ProductScratch<float>::carve(measure, n, k);
      const Block memory(measure.used());
      Carver carver(memory.data());
      const auto scratch = ProductScratch<float>::carve(carver, n, k);
      const FlushSubnormals flush;
      big_product<float>(kernels_for<float>(kernels(), GetParam()),
                         {{{{0, m}}},
                          k,
                          a_rows.data(),
                          true,
                          {{{0, m, 0, n, b_rows.data(), false, c_rows.data()}}}},
                         scratch);
      for (std::int64_t r = 0; r < m; r += 7) {
        for (std::int64_t column = 0; column < n; column += 5) {
          const float want = model_sum(GetParam(), 0.0f, SplitNumbers(take(a, r, m, k)),
                                       SplitNumbers(take(b, column, n, k)), false);
          ASSERT_TRUE(same_number(c[static_cast<std::size_t>(r * n + column)], want))
              << k << ": " << r << ", " << column;
        }
      }
    }
  }
}

TEST_P(AmxProduct, TakesStrangeNumbers) {
  Problem p(GetParam(), 40, 100, 70);
  const float infinity = std::numeric_limits<float>::infinity();
  const auto place = [&](std::int64_t row, std::int64_t k) -> float& {
    return p.a[static_cast<std::size_t>(row * p.k + k)];
  };
  place(0, 0) = std::nanf("");
  place(3, 99) = infinity;
  place(17, 40) = -infinity;
  place(17, 41) = 0x1p127f;
  place(20, 64) = 0x1.8p126f;
  place(21, 33) = 0x1p126f;
  place(22, 5) = 0x1p-120f;
  place(23, 6) = 0x1p-127f;
  place(39, 98) = -0x1.FFFFFEp127f;
  // Large ones that meet zeros hide nothing of the numbers around them.
  for (const std::int64_t k : {44, 60}) {
    place(k / 2, k) = 0x1p127f;
    std::fill_n(p.w.begin() + k * p.columns, p.columns, 0.0f);
  }
  for (const From from : {From::kZero, From::kBias, From::kOld}) expect_model(p, from, false);
  // Rows do not touch each other.
  const std::vector<float> c = multiply(p, From::kZero, false);
  place(0, 0) = 1;
  const std::vector<float> other = multiply(p, From::kZero, false);
  EXPECT_TRUE(std::isnan(c[5]));
  EXPECT_TRUE(std::isfinite(other[5]));
  for (std::size_t i = 70; i < c.size(); ++i) ASSERT_TRUE(same_number(c[i], other[i])) << i;
}

TEST(Bf16x3, IsNearFloat32) {
  if (!has_emulation()) GTEST_SKIP() << kNoEmulation;
  const OnIsa isa("amx_emulated");
  const Problem p(kBf16x3, 33, 513, 130);
  const std::vector<float> c = multiply(p, From::kZero, false);
  double error = 0, norm = 0;
  for (std::int64_t r = 0; r < p.rows; ++r) {
    for (std::int64_t n = 0; n < p.columns; ++n) {
      double want = 0;
      for (std::int64_t k = 0; k < p.k; ++k) {
        want += double{p.a[static_cast<std::size_t>(r * p.k + k)]} *
                p.w[static_cast<std::size_t>(k * p.columns + n)];
      }
      error = std::max(error, std::abs(want - c[static_cast<std::size_t>(r * p.columns + n)]));
      norm = std::max(norm, std::abs(want));
    }
  }
  // Three of four products: each number is off by up to 2^-17 of itself, in no direction.
  EXPECT_LT(error, 4e-6 * norm);
  EXPECT_GT(error, 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, AmxProduct, testing::Values(kAmx, kBf16x3),
                         [](const auto& at) { return at.param == kAmx ? "amx" : "bf16x3"; });

}  // namespace
}  // namespace openrnn::cpu
