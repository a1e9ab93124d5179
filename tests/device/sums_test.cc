#include <cmath>

#include "device/support.h"

namespace openrnn::testing {
namespace {

TEST(Sums, AreThoseOfDoubles) {
  for (const DType dtype : floating()) {
    for (const std::int64_t size : {0, 1, 15, 16, 17, 4095, 4096, 4097, 30001}) {
      const DeviceArray x = random_array(dtype, {size}, 1, -1.0, 2.0);
      long double sum = 0, squares = 0, magnitude = 0;
      for (std::int64_t i = 0; i < size; ++i) {
        sum += at(x, i);
        magnitude += std::abs(at(x, i));
        squares += static_cast<long double>(at(x, i)) * at(x, i);
      }
      // Each addition rounds by at most 2^-53 of what is summed so far.
      const double bound = 0x1p-53 * static_cast<double>(size + 1);
      EXPECT_NEAR(tested().sum(dtype, size, x.data()), static_cast<double>(sum),
                  bound * static_cast<double>(magnitude));
      EXPECT_NEAR(tested().sum_of_squares(dtype, size, x.data()), static_cast<double>(squares),
                  bound * static_cast<double>(squares));
    }
  }
}

TEST(Sums, SameBitsForAnyThreads) {
  const DeviceArray x = random_array(DType::kFloat32, {300007}, 2);
  expect_same_for_threads([&] {
    const double sums[] = {tested().sum(DType::kFloat32, x.size(), x.data()),
                           tested().sum_of_squares(DType::kFloat32, x.size(), x.data())};
    return DeviceArray::from_host(tested(), ConstArrayView{sums, DType::kFloat64, {2}});
  });
}

TEST(Sums, NanAndInfinityShow) {
  DeviceArray x = random_array(DType::kFloat32, {5000}, 3);
  set_element(x, 4321, NAN);
  EXPECT_TRUE(std::isnan(tested().sum(DType::kFloat32, 5000, x.data())));
  set_element(x, 4321, INFINITY);
  EXPECT_EQ(tested().sum_of_squares(DType::kFloat32, 5000, x.data()), INFINITY);
}

}  // namespace
}  // namespace openrnn::testing
