// Arrays of test data on the device that is tested.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <functional>

#include "cpu/device/cpu_device.h"
#include "engine/cudnn_entry.h"

namespace openrnn::testing {

/// The cpu device, or gpu:0 where OPENRNN_TEST_DEVICE says so: a GPU, or its stand-in.
inline const Device& tested() {
  const char* name = std::getenv("OPENRNN_TEST_DEVICE");
  return name && std::string(name) == "gpu:0" ? gpu_device(0) : cpu_device();
}

/// Skips everything where the GPU that is asked for cannot be used.
class NeedsTestedDevice : public ::testing::Environment {
 public:
  void SetUp() override {
    const char* name = std::getenv("OPENRNN_TEST_DEVICE");
    if (!name || std::string(name) != "gpu:0") return;
    if (const std::string reason = cudnn_missing(); !reason.empty()) {
      GTEST_SKIP() << "no GPU: " << reason;
    }
  }
};
inline const ::testing::Environment* const needs_tested_device =
    ::testing::AddGlobalTestEnvironment(new NeedsTestedDevice);

inline bool tests_cpu() { return &tested() == &cpu_device(); }

/// Uniform in [low, high), from the seed alone.
inline DeviceArray random_array(DType dtype, const Shape& shape, std::uint64_t seed,
                                double low = -2.0, double high = 2.0) {
  Array values(DType::kFloat64, shape);
  RandomStream random(seed);
  for (double& value : values.as<double>()) value = random.uniform(low, high);
  return DeviceArray::from_host(tested(), cast(values.view(), dtype).view());
}

/// In one dimension, each rounded to the dtype.
inline DeviceArray numbers(DType dtype, const std::vector<double>& values) {
  const ConstArrayView wide{
      values.data(), DType::kFloat64, {static_cast<std::int64_t>(values.size())}};
  return DeviceArray::from_host(tested(), cast(wide, dtype).view());
}

inline DeviceArray int_array(const std::vector<std::int32_t>& values) {
  return DeviceArray::from_host(
      tested(), {values.data(), DType::kInt32, {static_cast<std::int64_t>(values.size())}});
}

/// Element i as double.
inline double at(const DeviceArray& array, std::int64_t i) {
  if (array.device().name() == "cpu") return element(array.host_view(), i);
  const std::size_t bytes = dtype_size(array.dtype());
  double one = 0.0;
  array.device().download(
      &one, static_cast<const std::byte*>(array.data()) + static_cast<std::size_t>(i) * bytes,
      bytes);
  return element(ConstArrayView{&one, array.dtype(), {1}}, 0);
}

/// Values of the host on the device that is tested.
template <class T>
DeviceArray array_of(const Shape& shape, const std::vector<T>& values) {
  return DeviceArray::from_host(tested(), Array::of<T>(shape, values).view());
}

/// What a value becomes when it is stored.
inline double rounded(DType dtype, double value) {
  const Array one = cast(ConstArrayView{&value, DType::kFloat64, {1}}, dtype);
  return element(one.view(), 0);
}

/// Changes element i of a float32 array.
inline void set_element(DeviceArray& array, std::int64_t i, float value) {
  array.device().upload(static_cast<float*>(array.mutable_data()) + i, &value, sizeof value);
}

/// Where the array's int32 elements lie on its device.
inline const std::int32_t* places_of(const DeviceArray& array) {
  return static_cast<const std::int32_t*>(array.data());
}

/// Same bits, NaN included.
inline void expect_same_bits(const DeviceArray& a, const DeviceArray& b) {
  ASSERT_EQ(a.size_bytes(), b.size_bytes());
  const Array left = a.to_host(), right = b.to_host();
  const auto* bytes = static_cast<const unsigned char*>(left.data());
  EXPECT_TRUE(
      std::equal(bytes, bytes + a.size_bytes(), static_cast<const unsigned char*>(right.data())));
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

// Of a GPU; the cpu device has bfloat16 too.
inline constexpr DType kFloating[] = {DType::kFloat16, DType::kFloat32, DType::kFloat64};
/// Of the device that is tested.
inline std::vector<DType> floating() {
  std::vector<DType> all(std::begin(kFloating), std::end(kFloating));
  if (tests_cpu()) all.push_back(DType::kBfloat16);
  return all;
}

}  // namespace openrnn::testing
