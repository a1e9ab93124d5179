// Arrays of test data on the cpu device.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <functional>

#include "cpu/cpu_device.h"

namespace openrnn::testing {

/// Uniform in [low, high), from the seed alone.
inline DeviceArray random_array(DType dtype, const Shape& shape, std::uint64_t seed,
                                double low = -2.0, double high = 2.0) {
  Array values(DType::kFloat64, shape);
  RandomStream random(seed);
  for (double& value : values.as<double>()) value = random.uniform(low, high);
  return DeviceArray::from_host(cpu_device(), cast(values.view(), dtype).view());
}

inline DeviceArray int_array(const std::vector<std::int32_t>& values) {
  return DeviceArray::from_host(
      cpu_device(), {values.data(), DType::kInt32, {static_cast<std::int64_t>(values.size())}});
}

/// Element i as double.
inline double at(const DeviceArray& array, std::int64_t i) { return element(array.host_view(), i); }

/// What a value becomes when it is stored.
inline double rounded(DType dtype, double value) {
  const Array one = cast(ConstArrayView{&value, DType::kFloat64, {1}}, dtype);
  return element(one.view(), 0);
}

/// Same bits, NaN included.
inline void expect_same_bits(const DeviceArray& a, const DeviceArray& b) {
  ASSERT_EQ(a.size_bytes(), b.size_bytes());
  const auto* left = static_cast<const unsigned char*>(a.data());
  EXPECT_TRUE(std::equal(left, left + a.size_bytes(), static_cast<const unsigned char*>(b.data())));
}

/// Runs `make` with 1, 2, 3 and 4 threads and compares the bits.
inline void expect_same_for_threads(const std::function<DeviceArray()>& make) {
  const int before = num_threads();
  set_num_threads(1);
  const DeviceArray alone = make();
  for (const int threads : {2, 3, 4}) {
    SCOPED_TRACE(::testing::Message() << threads << " threads");
    set_num_threads(threads);
    expect_same_bits(alone, make());
  }
  set_num_threads(before);
}

inline constexpr DType kFloating[] = {DType::kFloat16, DType::kFloat32, DType::kFloat64};

}  // namespace openrnn::testing
