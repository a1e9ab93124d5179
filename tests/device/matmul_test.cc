#include <cmath>

#include "device/support.h"
#include "support/sum_model.h"

namespace openrnn::testing {
namespace {

struct Case {
  std::int64_t m, n, k;
  bool ta, tb, bias, accumulate;
};

struct Expected {
  double sum, magnitude;
};

// In the order of sums, as promised; float16 in float. `other`: the bias, or the old output.
template <class C>
Expected expected_of(const Case& c, const Array& a, const Array& b, double other, std::int64_t row,
                     std::int64_t col) {
  std::vector<C> left, right;
  double magnitude = std::abs(other);
  for (std::int64_t k = 0; k < c.k; ++k) {
    left.push_back(static_cast<C>(element(a.view(), c.ta ? k * c.m + row : row * c.k + k)));
    right.push_back(static_cast<C>(element(b.view(), c.tb ? col * c.k + k : k * c.n + col)));
    magnitude += std::abs(static_cast<double>(left.back()) * static_cast<double>(right.back()));
  }
  const std::span<const C> l(left), r(right);
  const C sum = c.accumulate ? SumModel{}(l, r, std::optional<C>(static_cast<C>(other)))
                             : SumModel{}(l, r) + static_cast<C>(other);
  return {static_cast<double>(sum), magnitude};
}

// The cpu device has these very bits. cuBLAS adds in an order of its own: two sums of k products
// and a start differ by at most 2 (k + 1) half units of what is added, and by one of the dtype
// where it is rounded at the end.
void expect_product(DType dtype, std::int64_t k, const Expected& expected, double value) {
  const double sum = rounded(dtype, expected.sum);
  if (tests_cpu()) {
    ASSERT_EQ(value, sum);
  } else {
    const double unit = dtype == DType::kFloat64 ? 0x1p-53 : 0x1p-24;
    const double stored = dtype == DType::kFloat16 ? 0x1p-10 * std::abs(sum) : 0.0;
    ASSERT_NEAR(value, sum, 2 * static_cast<double>(k + 1) * unit * expected.magnitude + stored);
  }
}

TEST(Matmul, HasTheOrderOfSums) {
  const Case cases[] = {
      {1, 1, 1, false, false, false, false}, {3, 17, 5, false, false, true, false},
      {7, 33, 16, true, false, false, true}, {5, 2, 9, false, true, true, false},
      {4, 6, 0, false, false, true, false},  {9, 19, 70, true, true, false, false},
      {4, 6, 0, false, false, false, false}, {3, 5, 0, false, false, false, true},
      {2, 65, 33, true, false, true, false}, {3, 5, 600, false, false, true, false},
      {2, 7, 1100, true, false, false, true}};
  for (const DType dtype : floating()) {
    for (const Case& c : cases) {
      SCOPED_TRACE(::testing::Message()
                   << dtype_name(dtype) << " " << c.m << " " << c.n << " " << c.k);
      const DeviceArray a = random_array(dtype, {c.m * c.k}, 1);
      const DeviceArray b = random_array(dtype, {c.k * c.n}, 2);
      const DeviceArray bias = random_array(dtype, {c.n}, 3);
      const Array host_a = a.to_host(), host_b = b.to_host();
      const DeviceArray old = random_array(dtype, {c.m, c.n}, 4);
      DeviceArray out = DeviceArray::from_host(tested(), old.to_host().view());
      tested().matmul({.dtype = dtype,
                       .m = c.m,
                       .n = c.n,
                       .k = c.k,
                       .a = a.data(),
                       .b = b.data(),
                       .bias = c.bias ? bias.data() : nullptr,
                       .c = out.mutable_data(),
                       .transpose_a = c.ta,
                       .transpose_b = c.tb,
                       .accumulate = c.accumulate});
      for (std::int64_t i = 0; i < out.size(); ++i) {
        const std::int64_t row = i / c.n, col = i % c.n;
        const double start = c.bias ? at(bias, col) : c.accumulate ? at(old, i) : 0.0;
        const Expected expected = dtype == DType::kFloat64
                                      ? expected_of<double>(c, host_a, host_b, start, row, col)
                                      : expected_of<float>(c, host_a, host_b, start, row, col);
        ASSERT_NO_FATAL_FAILURE(expect_product(dtype, c.k, expected, at(out, i)))
            << row << ", " << col;
      }
    }
  }
}

// The variable of NVIDIA's changes what is promised here, and libraries may read it once.
[[maybe_unused]] const int not_overridden = unsetenv("NVIDIA_TF32_OVERRIDE");

// TF32 has ten bits of a fraction, and would lose all but the first. Of sizes for which a library
// has fast kernels.
TEST(Matmul, KeepsEveryBitOfFloat32) {
  constexpr std::int64_t kSize = 128;
  const float more = 1.0F + 0x1p-12F;
  const auto filled = [](float value) {
    return array_of<float>({kSize, kSize},
                           std::vector<float>(static_cast<std::size_t>(kSize * kSize), value));
  };
  const DeviceArray a = filled(more), b = filled(1.0F);
  DeviceArray c(tested(), DType::kFloat32, {kSize, kSize});
  tested().matmul({.dtype = DType::kFloat32,
                   .m = kSize,
                   .n = kSize,
                   .k = kSize,
                   .a = a.data(),
                   .b = b.data(),
                   .c = c.mutable_data()});
  const Array found = c.to_host();
  // Every partial sum is a float32.
  for (const float value : found.as<float>()) ASSERT_EQ(value, kSize * more);
}

TEST(Matmul, RefusesWhatItCannotMultiply) {
  const auto error_of = [](const MatmulArgs& args) -> std::string {
    try {
      tested().matmul(args);
    } catch (const ArgumentError& error) {
      // The cpu device passes them on to its product.
      const std::string text = error.what();
      return text.substr(text.find(']') + 2);
    }
    return {};
  };
  float number = 0.0f;
  EXPECT_EQ(error_of({.dtype = DType::kInt32}),
            tests_cpu() ? "dtype is int32, expected float16, bfloat16, float32 or float64"
                        : "dtype is int32, expected float16, float32 or float64");
  EXPECT_EQ(error_of({.m = 2, .n = -1, .k = 3}), "m, n, k are 2, -1, 3, expected 0 or more");
  EXPECT_EQ(error_of({.bias = &number, .accumulate = true}),
            "both bias and accumulate are given, expected one of them");
  EXPECT_EQ(error_of({.m = 0, .n = 5, .k = 3}), "");
}

TEST(Matmul, SameBitsForAnyThreads) {
  const DeviceArray a = random_array(DType::kFloat32, {63, 129}, 1);
  const DeviceArray b = random_array(DType::kFloat32, {129, 97}, 2);
  expect_same_for_threads([&] {
    DeviceArray c(tested(), DType::kFloat32, {63, 97});
    tested().matmul({.dtype = DType::kFloat32,
                     .m = 63,
                     .n = 97,
                     .k = 129,
                     .a = a.data(),
                     .b = b.data(),
                     .c = c.mutable_data()});
    return c;
  });
}

}  // namespace
}  // namespace openrnn::testing
