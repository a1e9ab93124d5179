// Products against the order that defines their sums, bit for bit.
#include "cpu/gemm/gemm.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "cpu/isa/isa.h"
#include "support/sum_model.h"

namespace openrnn::cpu {
namespace {

struct Case {
  std::int64_t m, n, k;
};

// Around every block: tiles of 3 to 8 rows, panels of 4 to 64 columns, 96 rows, 1024 columns, and
// of k 64, 512 and 1024, of which the second one goes on from what the first one left.
const Case kCases[] = {{1, 1, 1},    {0, 3, 2},     {3, 0, 2},    {2, 3, 0},     {1, 17, 5},
                       {5, 1, 9},    {7, 16, 33},   {6, 64, 64},  {13, 65, 130}, {33, 130, 7},
                       {97, 9, 513}, {24, 1030, 3}, {3, 5, 1025}, {9, 17, 2053}, {4, 70, 64},
                       {2, 16, 128}, {1, 64, 512},  {1, 130, 577}};

template <class T>
Array random_array(std::int64_t size, std::uint64_t stream) {
  RandomStream random(3, stream);
  Array values(kDTypeOf<T>, {size});
  for (T& v : values.as<T>()) v = static_cast<T>(random.uniform(-1.0, 1.3));
  return values;
}

template <class T>
class Product {
 public:
  Product(const Case& c, bool trans_a, bool trans_b, int start)
      : lda_((trans_a ? c.m : c.k) + 3),
        ldb_((trans_b ? c.k : c.n) + 1),
        ldc_(c.n + 2),
        a_(random_array<T>((trans_a ? c.k : c.m) * lda_, 1)),
        b_(random_array<T>((trans_b ? c.n : c.k) * ldb_, 2)),
        c_(random_array<T>(c.m * ldc_, 3)),
        bias_(random_array<T>(c.n, 4)) {
    args_ = {kDTypeOf<T>,
             trans_a,
             trans_b,
             c.m,
             c.n,
             c.k,
             a_.data(),
             lda_,
             b_.data(),
             ldb_,
             c_.data(),
             ldc_,
             start == 1 ? bias_.data() : nullptr,
             start == 2};
  }
  Array expected() const {
    Array out = c_;
    for (std::int64_t i = 0; i < args_.m; ++i) {
      for (std::int64_t j = 0; j < args_.n; ++j) {
        std::vector<T> a, b;
        for (std::int64_t k = 0; k < args_.k; ++k) {
          a.push_back(a_.as<T>()[args_.trans_a ? k * lda_ + i : i * lda_ + k]);
          b.push_back(b_.as<T>()[args_.trans_b ? j * ldb_ + k : k * ldb_ + j]);
        }
        std::optional<T> old;
        if (args_.accumulate) old = c_.as<T>()[i * ldc_ + j];
        const T sum = SumModel{}(std::span<const T>(a), std::span<const T>(b), old);
        out.as<T>()[i * ldc_ + j] = args_.bias ? sum + bias_.as<T>()[j] : sum;
      }
    }
    return out;
  }
  Array run() const {
    Array out = c_;
    GemmArgs args = args_;
    args.c = out.data();
    gemm(args);
    return out;
  }

  /// The same numbers as far as `dtype` has them.
  Product rounded_to(DType dtype) const {
    Product rounded = *this;
    for (Array* array : {&rounded.a_, &rounded.b_, &rounded.c_, &rounded.bias_}) {
      *array = cast(cast(array->view(), dtype).view(), DType::kFloat32);
    }
    rounded.args_.a = rounded.a_.data();
    rounded.args_.b = rounded.b_.data();
    if (args_.bias) rounded.args_.bias = rounded.bias_.data();
    return rounded;
  }
  Array run_in(DType dtype) const {
    const Array a = cast(a_.view(), dtype), b = cast(b_.view(), dtype);
    const Array bias = cast(bias_.view(), dtype);
    Array out = cast(c_.view(), dtype);
    GemmArgs args = args_;
    args.dtype = dtype;
    args.a = a.data();
    args.b = b.data();
    args.c = out.data();
    if (args_.bias) args.bias = bias.data();
    gemm(args);
    return out;
  }

 private:
  std::int64_t lda_, ldb_, ldc_;
  Array a_, b_, c_, bias_;
  GemmArgs args_;
};

bool same_bits(const Array& a, const Array& b) {
  return a.size_bytes() == 0 || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

template <class T>
void expect_defined_bits() {
  for (const Case& c : kCases) {
    for (int variant = 0; variant < 12; ++variant) {
      const Product<T> product(c, variant & 1, variant & 2, variant / 4);
      const Array want = product.expected();
      for (const std::string_view isa : available_isas()) {
        force_isa(isa);
        const Array got = product.run();
        ASSERT_TRUE(same_bits(want, got))
            << isa << " m " << c.m << " n " << c.n << " k " << c.k << " variant " << variant;
      }
    }
  }
}

TEST(GemmTest, HasTheOrderOfSumsWhateverTheInstructionSet) {
  const std::string_view old = isa_name();
  expect_defined_bits<float>();
  expect_defined_bits<double>();
  force_isa(old);
}

TEST(GemmTest, HasTheOrderOfSumsWhateverTheThreads) {
  const int old = num_threads();
  const Product<float> product({190, 200, 70}, false, true, 1);
  const Array want = product.expected();
  for (const int threads : {1, 2, 3, 5}) {
    set_num_threads(threads);
    const Array got = product.run();
    EXPECT_TRUE(same_bits(want, got)) << threads;
  }
  set_num_threads(old);
}

TEST(GemmTest, HalfIsComputedInFloatAndRoundedOnce) {
  const std::int64_t m = 5, n = 19, k = 40;
  const Array a = cast(random_array<float>(m * k, 1).view(), DType::kFloat16);
  const Array b = cast(random_array<float>(k * n, 2).view(), DType::kFloat16);
  Array c(DType::kFloat16, {m, n});
  gemm({DType::kFloat16, false, false, m, n, k, a.data(), k, b.data(), n, c.data(), n});
  for (std::int64_t i = 0; i < m; ++i) {
    for (std::int64_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::int64_t kk = 0; kk < k; ++kk) {
        sum = std::fma(to_float(a.as<Half>()[i * k + kk]), to_float(b.as<Half>()[kk * n + j]), sum);
      }
      EXPECT_EQ(c.as<Half>()[i * n + j], to_half(sum)) << i << ", " << j;
    }
  }
}

// The same product in float, of the same numbers, rounded: with rows longer than they are used.
TEST(GemmTest, SixteenBitsOfEveryVariantAreFloatRounded) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16}) {
    for (int variant = 0; variant < 12; ++variant) {
      const Product<float> given({5, 19, 40}, variant & 1, variant & 2, variant / 4);
      const Product<float> exact = given.rounded_to(dtype);
      const Array wide = cast(exact.run().view(), dtype), got = exact.run_in(dtype);
      EXPECT_TRUE(same_bits(wide, got)) << dtype_name(dtype) << " " << variant;
    }
  }
}

std::string refusal(const GemmArgs& args) {
  try {
    gemm(args);
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "taken";
}

TEST(GemmTest, RefusesWhatItCannotDo) {
  float x = 0;
  GemmArgs args{DType::kInt32, false, false, 1, 1, 1, &x, 1, &x, 1, &x, 1, nullptr, false};
  EXPECT_EQ(refusal(args), "[gemm] dtype is int32, expected float16, bfloat16, float32 or float64");
  args.dtype = DType::kFloat32;
  args.k = -1;
  EXPECT_EQ(refusal(args), "[gemm] m, n, k are 1, 1, -1, expected 0 or more");
  args.k = 1;
  args.bias = &x;
  args.accumulate = true;
  EXPECT_EQ(refusal(args), "[gemm] both bias and accumulate are given, expected one of them");
}

}  // namespace
}  // namespace openrnn::cpu
