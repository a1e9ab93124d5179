#include <cmath>

#include "device/support.h"

namespace openrnn::testing {
namespace {

struct Case {
  std::int64_t m, n, k;
  bool ta, tb, bias, accumulate;
};

// One fused chain an output, as promised; float16 in float.
template <class C>
double chain(const Case& c, const DeviceArray& a, const DeviceArray& b, double start,
             std::int64_t row, std::int64_t col) {
  C sum = static_cast<C>(start);
  for (std::int64_t k = 0; k < c.k; ++k) {
    const auto left = static_cast<C>(at(a, c.ta ? k * c.m + row : row * c.k + k));
    const auto right = static_cast<C>(at(b, c.tb ? col * c.k + k : k * c.n + col));
    sum = std::fma(left, right, sum);
  }
  return static_cast<double>(sum);
}

TEST(Matmul, IsOneChainAnOutput) {
  const Case cases[] = {
      {1, 1, 1, false, false, false, false}, {3, 17, 5, false, false, true, false},
      {7, 33, 16, true, false, false, true}, {5, 2, 9, false, true, true, false},
      {4, 6, 0, false, false, true, false},  {9, 19, 70, true, true, false, false}};
  for (const DType dtype : kFloating) {
    for (const Case& c : cases) {
      SCOPED_TRACE(::testing::Message()
                   << dtype_name(dtype) << " " << c.m << " " << c.n << " " << c.k);
      const DeviceArray a = random_array(dtype, {c.m * c.k}, 1);
      const DeviceArray b = random_array(dtype, {c.k * c.n}, 2);
      const DeviceArray bias = random_array(dtype, {c.n}, 3);
      const DeviceArray old = random_array(dtype, {c.m, c.n}, 4);
      DeviceArray out = DeviceArray::from_host(cpu_device(), old.host_view());
      cpu_device().matmul({.dtype = dtype,
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
        const double expected = dtype == DType::kFloat64 ? chain<double>(c, a, b, start, row, col)
                                                         : chain<float>(c, a, b, start, row, col);
        ASSERT_EQ(at(out, i), rounded(dtype, expected)) << row << ", " << col;
      }
    }
  }
}

TEST(Matmul, SameBitsForAnyThreads) {
  const DeviceArray a = random_array(DType::kFloat32, {63, 129}, 1);
  const DeviceArray b = random_array(DType::kFloat32, {129, 97}, 2);
  expect_same_for_threads([&] {
    DeviceArray c(cpu_device(), DType::kFloat32, {63, 97});
    cpu_device().matmul({.dtype = DType::kFloat32,
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
