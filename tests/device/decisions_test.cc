// What a training step leaves to the device: sums that stay there, and whether it is taken.
#include <cmath>
#include <cstring>

#include "device/support.h"

namespace openrnn::testing {
namespace {

ConstArrayView view_of(const DeviceArray& array) {
  return {array.data(), array.dtype(), array.shape()};
}

/// A decision in the device's memory.
struct OnDevice {
  DeviceArray memory = DeviceArray::zeros(tested(), DType::kFloat64, {4});
  StepDecision* get() { return static_cast<StepDecision*>(memory.mutable_data()); }
  StepDecision read() {
    const auto reading = tested().read_later(get(), sizeof(StepDecision));
    StepDecision found;
    std::memcpy(&found, reading->bytes(), sizeof(found));
    return found;
  }
  explicit OnDevice(const StepDecision& value = {}) {
    tested().upload(get(), &value, sizeof(value));
  }
};

StepDecision decided(const std::vector<DeviceArray>& gradients, double clip_norm,
                     const DeviceArray& loss = {}, bool loss_decides = false) {
  std::vector<ConstArrayView> views;
  for (const DeviceArray& each : gradients) views.push_back(view_of(each));
  OnDevice decision;
  tested().decide_step({.gradients = views,
                        .clip_norm = clip_norm,
                        .loss_dtype = loss.empty() ? DType::kFloat32 : loss.dtype(),
                        .loss = loss.empty() ? nullptr : loss.data(),
                        .loss_decides = loss_decides,
                        .decision = decision.get()});
  return decision.read();
}

TEST(Decisions, AreThoseOfTheNormThatIsRead) {
  std::vector<DeviceArray> gradients;
  std::vector<ConstArrayView> views;
  for (const std::int64_t size : {5000, 0, 1, 4096, 2200000, 33}) {
    for (const DType dtype : floating()) {
      if (size > 100000 && dtype != DType::kFloat32) continue;
      gradients.push_back(random_array(dtype, {size}, static_cast<std::uint64_t>(size) + 1));
    }
  }
  for (const DeviceArray& each : gradients) views.push_back(view_of(each));
  const double squares = tested().total_of_squares(views), norm = std::sqrt(squares);
  for (const double clip : {0.0, norm / 3, norm, norm * 2}) {
    const StepDecision found = decided(gradients, clip);
    EXPECT_EQ(found.norm, norm);
    EXPECT_EQ(found.factor, norm > clip && clip > 0 ? clip * std::min(1 / norm, 1 / clip) : 1.0);
    EXPECT_EQ(found.taken, 1.0);
    EXPECT_EQ(found.loss, 0.0);
  }
  EXPECT_EQ(decided({}, 1.0).norm, 0.0);
}

TEST(Decisions, WhatIsNotFiniteIsNotTaken) {
  DeviceArray gradient = random_array(DType::kFloat32, {70001}, 3);
  EXPECT_EQ(decided({gradient}, 1.0).taken, 1.0);
  set_element(gradient, 54321, NAN);
  EXPECT_EQ(decided({gradient}, 1.0).taken, 0.0);
  EXPECT_TRUE(std::isnan(decided({gradient}, 1.0).norm));
  set_element(gradient, 54321, -INFINITY);
  EXPECT_EQ(decided({gradient}, 0.0).taken, 0.0);
  EXPECT_EQ(decided({gradient}, 0.0).norm, INFINITY);
}

TEST(Decisions, TheLossDecidesWhereItIsAsked) {
  const DeviceArray gradient = random_array(DType::kFloat32, {7}, 3);
  for (const DType dtype : floating()) {
    const auto with = [&](double loss, bool decides) {
      const Array wide = Array::of<double>({}, std::span<const double>(&loss, 1));
      return decided({gradient}, 0.0,
                     DeviceArray::from_host(tested(), cast(wide.view(), dtype).view()), decides);
    };
    EXPECT_EQ(with(-2.5, true).loss, -2.5);
    EXPECT_EQ(with(-2.5, true).taken, 1.0);
    EXPECT_EQ(with(INFINITY, true).taken, 0.0);
    EXPECT_EQ(with(INFINITY, false).taken, 1.0);
    EXPECT_EQ(with(NAN, true).taken, 0.0);
    EXPECT_TRUE(std::isnan(with(NAN, false).loss));
  }
}

TEST(Decisions, SumsStayAndAreThoseThatAreRead) {
  for (const DType dtype : floating()) {
    for (const std::int64_t size : {0, 1, 4097, 30001, 1100000}) {
      if (size > 100000 && dtype != DType::kFloat32) continue;
      for (const bool squares : {false, true}) {
        const DeviceArray x = random_array(dtype, {size}, 5);
        const double total = squares ? tested().sum_of_squares(dtype, size, x.data())
                                     : tested().sum(dtype, size, x.data());
        for (const DType out_dtype : {DType::kFloat32, DType::kFloat64}) {
          DeviceArray out(tested(), out_dtype, {});
          tested().sum_to({.dtype = dtype,
                           .size = size,
                           .x = x.data(),
                           .squares = squares,
                           .factor = 1.0 / 3,
                           .out_dtype = out_dtype,
                           .out = out.mutable_data()});
          EXPECT_EQ(at(out, 0), rounded(out_dtype, 1.0 / 3 * total)) << size;
        }
      }
    }
  }
}

TEST(Decisions, CopiesAreMadeOrNot) {
  for (const double taken : {0.0, 1.0}) {
    OnDevice decision({.taken = taken});
    for (const std::int64_t size : {0, 1, 2, 7, 4099}) {
      const DeviceArray from = random_array(DType::kFloat16, {size}, 1);
      DeviceArray to = random_array(DType::kFloat16, {size}, 2);
      const DeviceArray before = DeviceArray::from_host(tested(), to.to_host().view());
      tested().copy_if(decision.get(), to.size_bytes(), from.data(), to.mutable_data());
      expect_same_bits(to, taken == 0.0 ? before : from);
    }
  }
}

TEST(Decisions, AnUpdateIsScaledOrLeftOut) {
  for (int kind = 0; kind <= static_cast<int>(OptimizerKind::kAdamW); ++kind) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (const double factor : {1.0, 0.3, 0.0}) {
        SCOPED_TRACE(::testing::Message() << kind << " " << dtype_name(dtype) << " " << factor);
        constexpr std::int64_t kSize = 1037;
        const DeviceArray gradient = random_array(dtype, {kSize}, 2);
        DeviceArray scaled(tested(), dtype, {kSize});
        tested().scale(dtype, kSize, factor, gradient.data(), scaled.mutable_data());
        const auto run = [&](const StepDecision* decision, const DeviceArray& by) {
          std::vector<DeviceArray> all{
              random_array(dtype, {kSize}, 1), random_array(dtype, {kSize}, 3, 4.0, 9.0),
              random_array(dtype, {kSize}, 4, 0.0, 0.5), random_array(dtype, {kSize}, 5)};
          tested().optimizer_step(
              {.kind = OptimizerKind(kind),
               .dtype = dtype,
               .size = kSize,
               .variable = all[0].mutable_data(),
               .gradient = by.data(),
               .slots = {all[1].mutable_data(), all[2].mutable_data(), all[3].mutable_data()},
               .learning_rate = 0.03,
               .momentum = 0.7,
               .decay = 0.9,
               .beta1 = 0.9,
               .beta2 = 0.99,
               .epsilon = 1e-8,
               .decision = decision});
          return all;
        };
        OnDevice taken({.factor = factor}), refused({.factor = factor, .taken = 0.0});
        const auto plain = run(nullptr, factor == 1.0 ? gradient : scaled);
        const auto decided = run(taken.get(), gradient);
        const auto left = run(refused.get(), gradient);
        for (std::size_t i = 0; i < plain.size(); ++i) expect_same_bits(decided[i], plain[i]);
        expect_same_bits(left[0], random_array(dtype, {kSize}, 1));
        expect_same_bits(left[1], random_array(dtype, {kSize}, 3, 4.0, 9.0));
        expect_same_bits(left[3], random_array(dtype, {kSize}, 5));
      }
    }
  }
}

// What comes after it changes nothing of a reading, and readings do not share memory.
TEST(Decisions, AReadingIsOfItsTime) {
  std::vector<std::unique_ptr<Reading>> readings;
  DeviceArray x(tested(), DType::kFloat64, {3});
  for (int n = 0; n < 5; ++n) {
    tested().fill(DType::kFloat64, 3, n, DType::kFloat64, nullptr, x.mutable_data());
    readings.push_back(tested().read_later(x.data(), 24));
  }
  readings.erase(readings.begin() + 1);
  tested().fill(DType::kFloat64, 3, 7.0, DType::kFloat64, nullptr, x.mutable_data());
  readings.push_back(tested().read_later(x.data(), 8));
  const double expected[] = {0, 2, 3, 4, 7};
  for (std::size_t i = 0; i < readings.size(); ++i) {
    EXPECT_EQ(*static_cast<const double*>(readings[i]->bytes()), expected[i]);
  }
}

}  // namespace
}  // namespace openrnn::testing
