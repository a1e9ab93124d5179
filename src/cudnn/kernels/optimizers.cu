// One update of one variable, by the formulas of the cpu device in its order.
#include "cudnn/kernels/math.h"
#include "cudnn/kernels/thread.h"

namespace openrnn::gpu {

// The arguments as the variable's type; slots a, b, c in the optimizer's order.
template <class T>
struct Update {
  T* variable;
  const T* gradient;
  T *a, *b, *c;
  T rate, momentum, decay, beta1, beta2, epsilon, rest1, rest2;
  T factor;  // of the gradient

  __device__ explicit Update(const OptimizerArguments& step)
      : variable(static_cast<T*>(step.variable)),
        gradient(static_cast<const T*>(step.gradient)),
        a(static_cast<T*>(step.a)),
        b(static_cast<T*>(step.b)),
        c(static_cast<T*>(step.c)),
        rate(static_cast<T>(step.rate)),
        momentum(static_cast<T>(step.momentum)),
        decay(static_cast<T>(step.decay)),
        beta1(static_cast<T>(step.beta1)),
        beta2(static_cast<T>(step.beta2)),
        epsilon(static_cast<T>(step.epsilon)),
        rest1(static_cast<T>(1.0 - step.beta1)),
        rest2(static_cast<T>(1.0 - step.beta2)),
        factor(step.decision ? static_cast<T>(step.decision->factor) : T(1)) {}

  __device__ void adagrad(std::int64_t i, T g) const {
    a[i] += g * g;
    variable[i] -= rate * g / root(a[i]);
  }
  __device__ void rms_prop(std::int64_t i, T g) const {
    a[i] = decay * a[i] + (T(1) - decay) * (g * g);
    b[i] = momentum * b[i] + rate * g / root(a[i] + epsilon);
    variable[i] -= b[i];
  }
  __device__ void centered_rms_prop(std::int64_t i, T g) const {
    a[i] = decay * a[i] + (T(1) - decay) * (g * g);
    b[i] = decay * b[i] + (T(1) - decay) * g;
    c[i] = momentum * c[i] + rate * g / root(a[i] - b[i] * b[i] + epsilon);
    variable[i] -= c[i];
  }
  __device__ void adam(std::int64_t i, T g) const {
    const T first = beta1 * a[i] + (T(1) - beta1) * g;
    const T second = beta2 * b[i] + (T(1) - beta2) * (g * g);
    a[i] = first;
    b[i] = second;
    variable[i] -= rate * first / (root(second) + epsilon);
  }

  __device__ void adam_w(std::int64_t i, T g) const {
    const T first = beta1 * a[i] + rest1 * g;
    const T second = beta2 * b[i] + rest2 * (g * g);
    a[i] = first;
    b[i] = second;
    variable[i] = decay * variable[i] - rate * first / (root(second) + epsilon);
  }

  __device__ void step(Rule rule, std::int64_t i) const {
    const T g = factor == T(1) ? gradient[i] : narrow<T>(factor * gradient[i]);
    switch (rule) {
      case Rule::kGradientDescent:
        variable[i] -= rate * g;
        return;
      case Rule::kMomentum:
        a[i] = momentum * a[i] + g;
        variable[i] -= rate * a[i];
        return;
      case Rule::kNesterov:
        a[i] = momentum * a[i] + g;
        variable[i] -= rate * g + rate * momentum * a[i];
        return;
      case Rule::kAdagrad:
        return adagrad(i, g);
      case Rule::kRmsProp:
        return rms_prop(i, g);
      case Rule::kCenteredRmsProp:
        return centered_rms_prop(i, g);
      case Rule::kAdam:
        return adam(i, g);
      case Rule::kAdamW:
        return adam_w(i, g);
    }
  }
};

}  // namespace openrnn::gpu

using namespace openrnn::gpu;

extern "C" __global__ void openrnn_optimizer(OptimizerArguments arguments) {
  if (arguments.decision && arguments.decision->taken == 0.0) return;
  const Rule rule = arguments.rule;
  if (arguments.number == Number::kDouble) {
    const Update<double> update(arguments);
    each_element(arguments.size, [=](std::int64_t i) { update.step(rule, i); });
  } else {
    const Update<float> update(arguments);
    each_element(arguments.size, [=](std::int64_t i) { update.step(rule, i); });
  }
}
