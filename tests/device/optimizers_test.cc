#include <cmath>

#include "device/support.h"

namespace openrnn::testing {
namespace {

constexpr std::int64_t kSize = 37;

// One element of the plain formulas, in double.
struct Plain {
  double v, a, b, c;

  void step(const OptimizerStep& s, double g) {
    const double lr = s.learning_rate;
    switch (s.kind) {
      case OptimizerKind::kGradientDescent:
        v -= lr * g;
        return;
      case OptimizerKind::kMomentum:
        a = s.momentum * a + g;
        v -= lr * a;
        return;
      case OptimizerKind::kNesterov:
        a = s.momentum * a + g;
        v -= lr * (g + s.momentum * a);
        return;
      case OptimizerKind::kAdagrad:
        a += g * g;
        v -= lr * g / std::sqrt(a);
        return;
      case OptimizerKind::kRmsProp:
        a += (1 - s.decay) * (g * g - a);
        b = s.momentum * b + lr * g / std::sqrt(a + s.epsilon);
        v -= b;
        return;
      case OptimizerKind::kCenteredRmsProp:
        a += (1 - s.decay) * (g * g - a);
        b += (1 - s.decay) * (g - b);
        c = s.momentum * c + lr * g / std::sqrt(a - b * b + s.epsilon);
        v -= c;
        return;
      case OptimizerKind::kAdamW:
        v *= s.decay;
        [[fallthrough]];
      case OptimizerKind::kAdam:
        a += (1 - s.beta1) * (g - a);
        b += (1 - s.beta2) * (g * g - b);
        v -= lr * a / (std::sqrt(b) + s.epsilon);
        return;
    }
  }
};

constexpr OptimizerKind kKinds[] = {OptimizerKind::kGradientDescent,
                                    OptimizerKind::kMomentum,
                                    OptimizerKind::kNesterov,
                                    OptimizerKind::kAdagrad,
                                    OptimizerKind::kRmsProp,
                                    OptimizerKind::kCenteredRmsProp,
                                    OptimizerKind::kAdam,
                                    OptimizerKind::kAdamW};

OptimizerStep settings(OptimizerKind kind, DType dtype, std::int64_t size) {
  return {.kind = kind,
          .dtype = dtype,
          .size = size,
          .learning_rate = 0.03,
          .momentum = 0.7,
          .decay = 0.9,
          .beta1 = 0.9,
          .beta2 = 0.99,
          .epsilon = 1e-8};
}

TEST(Optimizers, FollowThePlainFormulas) {
  for (const OptimizerKind kind : kKinds) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      SCOPED_TRACE(::testing::Message() << static_cast<int>(kind) << " " << dtype_name(dtype));
      DeviceArray v = random_array(dtype, {kSize}, 1);
      // Slots start at 1, so that the centered variance stays above 0.
      DeviceArray slots[3];
      std::vector<Plain> plain;
      OptimizerStep step = settings(kind, dtype, kSize);
      for (std::size_t s = 0; s < 3; ++s) {
        slots[s] = DeviceArray(tested(), dtype, {kSize});
        tested().fill(dtype, kSize, s ? 0.0 : 1.0, dtype, nullptr, slots[s].mutable_data());
        step.slots[s] = slots[s].mutable_data();
      }
      for (std::int64_t i = 0; i < kSize; ++i) plain.push_back({at(v, i), 1.0, 0.0, 0.0});
      for (std::uint64_t n = 0; n < 20; ++n) {
        const DeviceArray g = random_array(dtype, {kSize}, 100 + n, -0.5, 0.5);
        step.variable = v.mutable_data();
        step.gradient = g.data();
        tested().optimizer_step(step);
        for (std::int64_t i = 0; i < kSize; ++i) {
          plain[static_cast<std::size_t>(i)].step(step, at(g, i));
        }
      }
      const double tolerance = dtype == DType::kFloat32 ? 2e-6 : 1e-13;
      for (std::int64_t i = 0; i < kSize; ++i) {
        const double expected = plain[static_cast<std::size_t>(i)].v;
        ASSERT_NEAR(at(v, i), expected, tolerance * (1 + std::abs(expected))) << i;
      }
    }
  }
}

TEST(Optimizers, SameBitsForAnyThreads) {
  constexpr std::int64_t kLarge = 70001;
  for (const OptimizerKind kind : kKinds) {
    expect_same_for_threads([kind] {
      DeviceArray v = random_array(DType::kFloat32, {kLarge}, 1);
      const DeviceArray g = random_array(DType::kFloat32, {kLarge}, 2);
      DeviceArray a = random_array(DType::kFloat32, {kLarge}, 3, 4.0, 9.0);
      DeviceArray b = random_array(DType::kFloat32, {kLarge}, 4, 0.0, 0.5);
      DeviceArray c = random_array(DType::kFloat32, {kLarge}, 5);
      OptimizerStep step = settings(kind, DType::kFloat32, kLarge);
      step.variable = v.mutable_data();
      step.gradient = g.data();
      step.slots = {a.mutable_data(), b.mutable_data(), c.mutable_data()};
      tested().optimizer_step(step);
      return v;
    });
  }
}

TEST(Optimizers, Refuse16Bits) {
  EXPECT_THROW(tested().optimizer_step({.dtype = DType::kBfloat16}), TypeError);
  EXPECT_THROW(tested().optimizer_step({.dtype = DType::kFloat16}), TypeError);
}

}  // namespace
}  // namespace openrnn::testing
