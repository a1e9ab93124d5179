// As device_bits_test, for losses and optimizers.
#include <cmath>

#include "device/support.h"

namespace openrnn::testing {
namespace {

struct Both {
  DeviceArray here, there;
};

Both both(const DeviceArray& array) {
  const Array host = array.to_host();
  return {DeviceArray::from_host(cpu_device(), host.view()),
          DeviceArray::from_host(tested(), host.view())};
}

struct Losses {
  DeviceArray losses, probabilities, gradient, softmax_gradient;
};

Losses losses(const Device& device, const DeviceArray& logits, const DeviceArray& labels) {
  const DType dtype = logits.dtype();
  const DType wide = dtype == DType::kFloat64 ? dtype : DType::kFloat32;
  const std::int64_t rows = logits.shape()[0], classes = logits.shape()[1];
  Losses result{DeviceArray(device, wide, {rows}), DeviceArray(device, wide, logits.shape()),
                DeviceArray(device, dtype, logits.shape()),
                DeviceArray(device, dtype, logits.shape())};
  device.softmax_cross_entropy({.dtype = dtype,
                                .rows = rows,
                                .classes = classes,
                                .logits = logits.data(),
                                .labels = places_of(labels),
                                .losses = result.losses.mutable_data(),
                                .probabilities = result.probabilities.mutable_data()});
  device.softmax_cross_entropy_gradient({.dtype = dtype,
                                         .rows = rows,
                                         .classes = classes,
                                         .probabilities = result.probabilities.data(),
                                         .labels = places_of(labels),
                                         .row_gradients = result.losses.data(),
                                         .logits_gradient = result.gradient.mutable_data()});
  device.softmax_gradient(dtype, rows, classes, logits.data(), result.gradient.data(),
                          result.softmax_gradient.mutable_data());
  return result;
}

TEST(DeviceBits, SoftmaxAndItsGradients) {
  for (const DType dtype : kFloating) {
    for (const std::int64_t classes : {1, 2, 17, 100, 129, 1023, 1025, 2500}) {
      SCOPED_TRACE(::testing::Message() << dtype_name(dtype) << " " << classes);
      std::vector<std::int32_t> labels;
      for (std::int64_t row = 0; row < 5; ++row) {
        labels.push_back(row == 2 ? -1 : static_cast<std::int32_t>(row * 997 % classes));
      }
      const Both logits = both(random_array(dtype, {5, classes}, 1, -9, 9));
      const Both places = both(int_array(labels));
      const Losses here = losses(cpu_device(), logits.here, places.here);
      const Losses there = losses(tested(), logits.there, places.there);
      expect_same_bits(here.losses, there.losses);
      expect_same_bits(here.probabilities, there.probabilities);
      expect_same_bits(here.gradient, there.gradient);
      expect_same_bits(here.softmax_gradient, there.softmax_gradient);
    }
  }
}

TEST(DeviceBits, SoftmaxOfLargeNumbersAndNan) {
  const auto logits = array_of<float>({3, 3}, {1e30f, -1e30f, 0.0f, 5.0f, NAN, 1.0f, NAN, 1, 2});
  const Both x = both(logits), labels = both(int_array({2, 0, 1}));
  const Losses here = losses(cpu_device(), x.here, labels.here);
  const Losses there = losses(tested(), x.there, labels.there);
  EXPECT_EQ(at(here.losses, 0), at(there.losses, 0));
  for (std::int64_t row : {1, 2}) {
    EXPECT_TRUE(std::isnan(at(there.losses, row)));
    for (std::int64_t c = 0; c < 3; ++c) {
      EXPECT_TRUE(std::isnan(at(there.probabilities, row * 3 + c)));
    }
  }
}

TEST(DeviceBits, LossesOrProbabilitiesAlone) {
  const Both logits = both(random_array(DType::kFloat32, {3, 20}, 4));
  const Both labels = both(int_array({1, 2, 3}));
  const Losses all = losses(tested(), logits.there, labels.there);
  auto alone = DeviceArray::zeros(tested(), DType::kFloat32, {3});
  tested().softmax_cross_entropy({.rows = 3,
                                  .classes = 20,
                                  .logits = logits.there.data(),
                                  .labels = places_of(labels.there),
                                  .losses = alone.mutable_data()});
  expect_same_bits(alone, all.losses);
  auto shares = DeviceArray::zeros(tested(), DType::kFloat32, {3, 20});
  tested().softmax_cross_entropy({.rows = 3,
                                  .classes = 20,
                                  .logits = logits.there.data(),
                                  .probabilities = shares.mutable_data()});
  expect_same_bits(shares, all.probabilities);
}

TEST(DeviceBits, Optimizers) {
  for (int kind = 0; kind <= static_cast<int>(OptimizerKind::kAdamW); ++kind) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (const std::int64_t size : {1, 33, 1037}) {
        SCOPED_TRACE(::testing::Message() << kind << " " << dtype_name(dtype) << " " << size);
        const std::vector<DeviceArray> arrays = {
            random_array(dtype, {size}, 1), random_array(dtype, {size}, 3, 4.0, 9.0),
            random_array(dtype, {size}, 4, 0.0, 0.5), random_array(dtype, {size}, 5)};
        std::vector<Both> copies;
        for (const DeviceArray& array : arrays) copies.push_back(both(array));
        const Both gradient = both(random_array(dtype, {size}, 2));
        for (const bool there : {false, true}) {
          const auto data = [&](std::size_t i) {
            return (there ? copies[i].there : copies[i].here).mutable_data();
          };
          const OptimizerStep step{.kind = OptimizerKind(kind),
                                   .dtype = dtype,
                                   .size = size,
                                   .variable = data(0),
                                   .gradient = (there ? gradient.there : gradient.here).data(),
                                   .slots = {data(1), data(2), data(3)},
                                   .learning_rate = 0.03,
                                   .momentum = 0.7,
                                   .decay = 0.9,
                                   .beta1 = 0.9,
                                   .beta2 = 0.99,
                                   .epsilon = 1e-8};
          for (int n = 0; n < 3; ++n) (there ? tested() : cpu_device()).optimizer_step(step);
        }
        for (const Both& copy : copies) expect_same_bits(copy.here, copy.there);
      }
    }
  }
}

}  // namespace
}  // namespace openrnn::testing
