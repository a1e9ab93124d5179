#include "ops/masks_around.h"

#include "openrnn/params.h"
#include "ops/dropout.h"
#include "ops/gradients/gradients.h"

namespace openrnn::ops {
namespace {

// A mask of its own for each matrix; the same in every part of a batch.
DropoutKey key_of_matrix(DropoutKey key, std::uint64_t matrix) {
  return {.seed = key.seed + (matrix + 1) * 0xD1B54A32D192ED03U, .call = key.call};
}

// A copy of the buffer, or of its gradient, whose recurrent weights are times their masks.
DeviceArray run_drop_connect(const RnnSpec& spec, DeviceArray out, DropoutKey key) {
  out.make_unique_owner();
  auto* const bytes = static_cast<std::byte*>(out.mutable_data());
  const std::size_t element = dtype_size(out.dtype());
  const ParamsLayout layout(spec);
  std::uint64_t matrix = 0;
  for (const ParamRegion& region : layout.weights()) {
    if (region.role != ParamRole::kRecurrentWeight) continue;
    void* const at = bytes + static_cast<std::size_t>(region.offset) * element;
    out.device().dropout({.dtype = out.dtype(),
                          .rows = region.rows,
                          .cols = region.cols,
                          .key = key_of_matrix(key, matrix++),
                          .rate = spec.training.drop_connect,
                          .x = at,
                          .out = at});
  }
  return out;
}

Tensor drop_weights(const RnnSpec& spec, const Tensor& params, DropoutKey key) {
  return record_one(
      "drop_connect", {params}, run_drop_connect(spec, params.value(), key),
      [spec, key](const DeviceArray& d) { return std::vector{run_drop_connect(spec, d, key)}; },
      [spec, key](const GradientCall& call) {
        return gradients::Tensors{drop_weights(spec, gradients::upstream(call), key)};
      });
}

}  // namespace

RnnOutputs run_with_masks(
    const RnnSpec& spec, const RnnInputs& in, DropoutKey key,
    const std::function<RnnOutputs(const ValidSpec&, const RnnInputs&)>& run) {
  const TrainingOptions& rates = spec.training;
  RnnSpec inside = spec;
  inside.training.input_dropout = inside.training.output_dropout = 0.0;
  inside.training.drop_connect = 0.0;
  if (!in.training) return run(inside, in);
  const std::size_t batch_axis = in.time_major ? 1 : 0;
  RnnInputs given = in;
  given.dropout = key;
  given.next_dropout = {};
  if (rates.input_dropout > 0.0) {
    given.x = dropout_along(in.x, rates.input_dropout, key_of(key, MaskOf::kInput), batch_axis);
  }
  if (rates.drop_connect > 0.0) {
    given.params = drop_weights(spec, in.params, key_of(key, MaskOf::kWeights));
  }
  RnnOutputs out = run(inside, given);
  if (rates.output_dropout > 0.0) {
    out.output =
        dropout_along(out.output, rates.output_dropout, key_of(key, MaskOf::kOutput), batch_axis);
  }
  return out;
}

}  // namespace openrnn::ops
