// A call of ops::rnn as a function of its tensors, for tests of values and gradients.
#pragma once

#include "ops/check_gradient.h"
#include "ops/small_spec.h"

namespace openrnn::testing {

constexpr RnnMode kModes[] = {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnTanh, RnnMode::kRnnRelu};

struct RnnCall {
  RnnSpec spec;
  ops::RnnInputs inputs;

  ops::RnnOutputs operator()() const { return ops::rnn(spec, inputs, nullptr); }

  /// x, params and the states that are given.
  std::vector<Tensor> sources() const {
    std::vector<Tensor> all{inputs.x, inputs.params};
    if (!inputs.h0.empty()) all.push_back(inputs.h0);
    if (!inputs.c0.empty()) all.push_back(inputs.c0);
    return all;
  }

  /// Output and final states for other sources.
  std::vector<Tensor> operator()(const std::vector<Tensor>& sources) const {
    RnnCall moved = *this;
    ops::RnnInputs& in = moved.inputs;
    in.x = sources[0];
    in.params = sources[1];
    if (!in.h0.empty()) in.h0 = sources[2];
    if (!in.c0.empty()) in.c0 = sources[3];
    const ops::RnnOutputs out = moved();
    std::vector<Tensor> outputs{out.output, out.h};
    if (spec.has_cell()) outputs.push_back(out.c);
    return outputs;
  }
};

struct Sizes {
  std::int64_t time, batch;
};

/// The relu network keeps every pre-activation above 0, so no kink is near. The buffer is longer
/// than the network needs.
inline RnnCall rnn_call(const RnnSpec& spec, bool time_major, Sizes size) {
  const bool relu = spec.mode == RnnMode::kRnnRelu && !spec.activation;
  const double low = relu ? 0.05 : -0.9, high = relu ? 0.3 : 0.9;
  Shape h = spec.h_shape(size.batch), c = spec.c_shape(size.batch);
  if (!time_major) {
    std::swap(h[0], h[1]);
    std::swap(c[0], c[1]);
  }
  RnnCall call{spec, {}};
  const Shape x = time_major ? Shape{size.time, size.batch, spec.input_size}
                             : Shape{size.batch, size.time, spec.input_size};
  call.inputs.x = random_tensor(x, 1, low, high);
  call.inputs.h0 = random_tensor(h, 2, low, high);
  if (spec.has_cell()) call.inputs.c0 = random_tensor(c, 3, low, high);
  call.inputs.params = random_tensor({params_size(spec) + 5}, 4, low, high);
  call.inputs.time_major = time_major;
  return call;
}

}  // namespace openrnn::testing
