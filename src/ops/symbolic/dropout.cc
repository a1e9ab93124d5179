#include "ops/symbolic/dropout.h"

#include "openrnn/ops.h"
#include "ops/symbolic/infer.h"
#include "ops/symbolic/replay.h"

namespace openrnn::ops {

Tensor record_dropout(const Tensor& x, double rate, const DropoutKey& key) {
  const auto state = std::make_shared<CudnnModelState>();
  state->dropout = DropoutState::of(key.seed, key.call);
  ArgumentWriter writer;
  writer.write(x);
  writer.write(rate);
  writer.attributes.emplace_back(std::shared_ptr<CallState>(state));
  return record_operation("next_dropout", writer.inputs, {infer::like("dropout", x)},
                          std::move(writer.attributes))[0];
}

std::vector<Tensor> run_recorded_dropout(const std::vector<Tensor>& inputs,
                                         const Attributes& attributes, const Replay&) {
  ArgumentReader reader{inputs, attributes};
  Tensor x;
  double rate = 0.0;
  reader.read(x);
  reader.read(rate);
  const auto state =
      std::dynamic_pointer_cast<CudnnModelState>(reader.next<std::shared_ptr<CallState>>());
  return {next_dropout(x, rate, state->dropout)};
}

}  // namespace openrnn::ops
