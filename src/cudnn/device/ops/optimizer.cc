#include "base/message.h"
#include "cudnn/device/decision.h"
#include "cudnn/device/gpu.h"
#include "cudnn/device/launch.h"

namespace openrnn::cudnn {
namespace {

constexpr bool same(gpu::Rule rule, OptimizerKind kind) {
  return static_cast<int>(rule) == static_cast<int>(kind);
}
static_assert(same(gpu::Rule::kGradientDescent, OptimizerKind::kGradientDescent) &&
              same(gpu::Rule::kMomentum, OptimizerKind::kMomentum) &&
              same(gpu::Rule::kNesterov, OptimizerKind::kNesterov) &&
              same(gpu::Rule::kAdagrad, OptimizerKind::kAdagrad) &&
              same(gpu::Rule::kRmsProp, OptimizerKind::kRmsProp) &&
              same(gpu::Rule::kCenteredRmsProp, OptimizerKind::kCenteredRmsProp) &&
              same(gpu::Rule::kAdam, OptimizerKind::kAdam) &&
              same(gpu::Rule::kAdamW, OptimizerKind::kAdamW));

}  // namespace

void GpuDevice::optimizer_step(const OptimizerStep& step) const {
  if (step.dtype != DType::kFloat32 && step.dtype != DType::kFloat64) {
    throw TypeError(message("[optimizer_step] dtype is ", dtype_name(step.dtype),
                            ", expected float32 or float64"));
  }
  if (step.size <= 0) return;
  const Context::Current current(context_);
  launch(context_, "openrnn_optimizer", for_elements(step.size),
         gpu::OptimizerArguments{.rule = static_cast<gpu::Rule>(step.kind),
                                 .number = number_of("optimizer_step", step.dtype),
                                 .size = step.size,
                                 .variable = step.variable,
                                 .gradient = step.gradient,
                                 .a = step.slots[0],
                                 .b = step.slots[1],
                                 .c = step.slots[2],
                                 .rate = step.learning_rate,
                                 .momentum = step.momentum,
                                 .decay = step.decay,
                                 .beta1 = step.beta1,
                                 .beta2 = step.beta2,
                                 .epsilon = step.epsilon,
                                 .decision = decision_of(step.decision)});
}

}  // namespace openrnn::cudnn
