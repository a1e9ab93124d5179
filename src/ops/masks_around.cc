#include "ops/masks_around.h"

#include "openrnn/ops.h"
#include "openrnn/params.h"

namespace openrnn::ops {
namespace {

// 1 for every parameter, but a mask for the recurrent weights: a row of it for each of theirs.
template <class T>
Array weight_mask(const RnnSpec& spec, const Shape& params, DropoutKey key) {
  Array mask(kDTypeOf<T>, params);
  const std::span<T> values = mask.as<T>();
  std::fill(values.begin(), values.end(), T{1});
  std::uint32_t matrix = 0;
  const ParamsLayout layout(spec);
  for (const ParamRegion& region : layout.weights()) {
    if (region.role != ParamRole::kRecurrentWeight) continue;
    for (std::int64_t row = 0; row < region.rows; ++row) {
      const auto first = static_cast<std::size_t>(region.offset + row * region.cols);
      dropout_mask<T>(key, {matrix, 0, static_cast<std::uint32_t>(row)}, spec.training.drop_connect,
                      values.subspan(first, static_cast<std::size_t>(region.cols)));
    }
    ++matrix;
  }
  return mask;
}

Tensor drop_weights(const RnnSpec& spec, const Tensor& params, DropoutKey key) {
  const Array mask = params.dtype() == DType::kFloat64
                         ? weight_mask<double>(spec, params.shape(), key)
                         : weight_mask<float>(spec, params.shape(), key);
  const Tensor kept(openrnn::cast(mask.view(), params.dtype()).view(), params.device());
  return multiply(params, kept);
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
  RnnInputs given = in;
  given.dropout = key;
  given.next_dropout = {};
  if (rates.input_dropout > 0.0) {
    given.x = dropout(in.x, rates.input_dropout, key_of(key, MaskOf::kInput));
  }
  if (rates.drop_connect > 0.0) {
    given.params = drop_weights(spec, in.params, key_of(key, MaskOf::kWeights));
  }
  RnnOutputs out = run(inside, given);
  if (rates.output_dropout > 0.0) {
    out.output = dropout(out.output, rates.output_dropout, key_of(key, MaskOf::kOutput));
  }
  return out;
}

}  // namespace openrnn::ops
