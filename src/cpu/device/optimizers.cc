#include <cmath>
#include <vector>

#include "base/message.h"
#include "cpu/device/loops.h"
#include "cpu/device/parallel.h"

namespace openrnn::cpu::device {
namespace {

// The arguments as the variable's type; slots a, b, c in the optimizer's order.
template <class T>
struct Update {
  T* variable;
  const T* gradient;
  T *a, *b, *c;
  T rate, momentum, decay, beta1, beta2, epsilon, rest1, rest2;

  explicit Update(const OptimizerStep& step)
      : variable(static_cast<T*>(step.variable)),
        gradient(static_cast<const T*>(step.gradient)),
        a(static_cast<T*>(step.slots[0])),
        b(static_cast<T*>(step.slots[1])),
        c(static_cast<T*>(step.slots[2])),
        rate(static_cast<T>(step.learning_rate)),
        momentum(static_cast<T>(step.momentum)),
        decay(static_cast<T>(step.decay)),
        beta1(static_cast<T>(step.beta1)),
        beta2(static_cast<T>(step.beta2)),
        epsilon(static_cast<T>(step.epsilon)),
        rest1(static_cast<T>(1.0 - step.beta1)),
        rest2(static_cast<T>(1.0 - step.beta2)) {}

  void gradient_descent(std::int64_t i) const { variable[i] -= rate * gradient[i]; }
  void momentum_step(std::int64_t i) const {
    a[i] = momentum * a[i] + gradient[i];
    variable[i] -= rate * a[i];
  }
  void nesterov(std::int64_t i) const {
    a[i] = momentum * a[i] + gradient[i];
    variable[i] -= rate * gradient[i] + rate * momentum * a[i];
  }
  void adagrad(std::int64_t i) const {
    a[i] += gradient[i] * gradient[i];
    variable[i] -= rate * gradient[i] / std::sqrt(a[i]);
  }
  void rms_prop(std::int64_t i) const {
    a[i] = decay * a[i] + (T{1} - decay) * (gradient[i] * gradient[i]);
    b[i] = momentum * b[i] + rate * gradient[i] / std::sqrt(a[i] + epsilon);
    variable[i] -= b[i];
  }
  void centered_rms_prop(std::int64_t i) const {
    a[i] = decay * a[i] + (T{1} - decay) * (gradient[i] * gradient[i]);
    b[i] = decay * b[i] + (T{1} - decay) * gradient[i];
    c[i] = momentum * c[i] + rate * gradient[i] / std::sqrt(a[i] - b[i] * b[i] + epsilon);
    variable[i] -= c[i];
  }
  void adam(std::int64_t i) const {
    a[i] = beta1 * a[i] + (T{1} - beta1) * gradient[i];
    b[i] = beta2 * b[i] + (T{1} - beta2) * (gradient[i] * gradient[i]);
    variable[i] -= rate * a[i] / (std::sqrt(b[i]) + epsilon);
  }
  // As PyTorch: 1 - beta is not rounded to the variable's type before it is subtracted.
  void adam_w(std::int64_t i) const {
    a[i] = beta1 * a[i] + rest1 * gradient[i];
    b[i] = beta2 * b[i] + rest2 * (gradient[i] * gradient[i]);
    variable[i] = decay * variable[i] - rate * a[i] / (std::sqrt(b[i]) + epsilon);
  }
};

template <class F>
void each(std::int64_t size, const F& f) {
  parallel_ranges(size, 64, 4, [&f](std::int64_t begin, std::int64_t end) {
    // A copy whose address is not known elsewhere: no store through its pointers changes it, so the
    // loop becomes vector instructions.
    const F own = f;
    for (std::int64_t i = begin; i < end; ++i) own(i);
  });
}

template <class T>
void step_as(const OptimizerStep& given) {
  OptimizerStep step = given;
  std::vector<T> clipped;
  if (given.decision) {
    if (given.decision->taken == 0.0) return;
    if (given.decision->factor != 1.0) {
      clipped.resize(static_cast<std::size_t>(given.size));
      scale(given.dtype, given.size, given.decision->factor, given.gradient, clipped.data());
      step.gradient = clipped.data();
    }
  }
  const Update<T> update(step);
  switch (step.kind) {
    case OptimizerKind::kGradientDescent:
      return each(step.size, [update](std::int64_t i) { update.gradient_descent(i); });
    case OptimizerKind::kMomentum:
      return each(step.size, [update](std::int64_t i) { update.momentum_step(i); });
    case OptimizerKind::kNesterov:
      return each(step.size, [update](std::int64_t i) { update.nesterov(i); });
    case OptimizerKind::kAdagrad:
      return each(step.size, [update](std::int64_t i) { update.adagrad(i); });
    case OptimizerKind::kRmsProp:
      return each(step.size, [update](std::int64_t i) { update.rms_prop(i); });
    case OptimizerKind::kCenteredRmsProp:
      return each(step.size, [update](std::int64_t i) { update.centered_rms_prop(i); });
    case OptimizerKind::kAdam:
      return each(step.size, [update](std::int64_t i) { update.adam(i); });
    case OptimizerKind::kAdamW:
      return each(step.size, [update](std::int64_t i) { update.adam_w(i); });
  }
}

}  // namespace

void optimizer_step(const OptimizerStep& step) {
  if (step.dtype == DType::kFloat32) return step_as<float>(step);
  if (step.dtype == DType::kFloat64) return step_as<double>(step);
  throw TypeError(message("[optimizer_step] dtype is ", dtype_name(step.dtype),
                          ", expected float32 or float64"));
}

}  // namespace openrnn::cpu::device
