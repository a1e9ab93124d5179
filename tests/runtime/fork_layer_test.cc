// Layers, gradients and updates in a forked child.
#include <gtest/gtest.h>

#include "conformance/support/machine.h"
#include "conformance/support/run.h"
#include "openrnn/layers.h"
#include "openrnn/train.h"
#include "support/in_child.h"

namespace openrnn {
namespace {

/// What a layer gives, and the gradient of the sum of its outputs.
std::string call_and_differentiate(layers::CudnnLSTM& lstm, const Tensor& x) {
  const GradientTape tape;
  const auto result = lstm(x);
  const auto gradients =
      tape.gradient(ops::reduce_sum(result.output), std::vector<Variable>{lstm.kernel()});
  std::string bytes;
  for (const DeviceArray& array : {result.output.value(), gradients[0]}) {
    const Array host = array.to_host();
    bytes.append(static_cast<const char*>(host.data()), host.size_bytes());
  }
  return bytes;
}

TEST(ForkLayer, AChildCallsTheLayersOfItsParent) {
  if (const std::string reason = no_threads_in_children(); !reason.empty()) {
    GTEST_SKIP() << reason;
  }
  const conformance::ForcedThreads two(2);
  layers::CudnnLSTM lstm({.num_layers = 2, .num_units = 130, .training = {.seed = 3}});
  const Array values = conformance::random_array(DType::kFloat32, 495, -1.0, 1.2, 1);
  const Tensor x(ConstArrayView{values.data(), DType::kFloat32, {5, 3, 33}});
  const std::string expected = call_and_differentiate(lstm, x);
  const auto in_child_too = in_child([&] { return call_and_differentiate(lstm, x); });
  ASSERT_TRUE(in_child_too.has_value());
  EXPECT_TRUE(*in_child_too == expected) << "other bits in the child";
  EXPECT_TRUE(call_and_differentiate(lstm, x) == expected) << "the parent was disturbed";
}

}  // namespace
}  // namespace openrnn
