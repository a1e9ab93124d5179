#include <cstring>

#include "base/message.h"
#include "openrnn/layers.h"
#include "openrnn/runtime.h"
#include "openrnn/saveables.h"
#include "spec/gains.h"

namespace openrnn::layers {
namespace {

// The bit pattern, so that every int64 seed has its own stream.
std::optional<std::uint64_t> stream_seed(std::optional<std::int64_t> seed) {
  return seed ? std::optional<std::uint64_t>(static_cast<std::uint64_t>(*seed)) : std::nullopt;
}

ValidSpec depth_checked(RnnSpec network, std::int64_t input_size) {
  network.input_size = input_size;
  return network;
}

}  // namespace

CudnnRnn::CudnnRnn(RnnMode mode, Names names, CudnnRnnOptions options)
    : Layer(options.name, names.of_layer, options.network.dtype, options.network.compute.device),
      class_name_(names.of_class),
      options_(std::move(options)) {
  options_.network.mode = mode;
  options_.network.input_size = 0;
  depth_checked(options_.network, options_.network.num_units);  // U suits every input mode
  set_trainable(options_.trainable);
  set_activity_regularizer(options_.activity_regularizer);
}

std::string_view CudnnRnn::math_kind() const {
  return spec_ ? openrnn::math_kind(*spec_, device())
               : openrnn::math_kind(depth_checked(network(), network().num_units), device());
}

const RnnSpec& CudnnRnn::spec() const {
  if (!spec_) {
    throw ArgumentError(message("[", name(),
                                "] the input size is unknown since the layer has not been built, "
                                "expected a build or a call before"));
  }
  return *spec_;
}

std::int64_t CudnnRnn::input_size() const { return spec().input_size; }

const Variable& CudnnRnn::kernel() const { return (void)spec(), kernel_; }

std::vector<Shape> CudnnRnn::state_shape(std::int64_t batch_size) const {
  if (!network().has_cell()) return {network().h_shape(batch_size)};
  return {network().h_shape(batch_size), network().c_shape(batch_size)};
}

void CudnnRnn::require_built(const char* property) const {
  if (spec_) return;
  throw StateError(message("[", class_name_, "] ", property, " of '", name(),
                           "' before the input shape is known, expected a build or a call before"));
}

std::vector<Shape> CudnnRnn::canonical_weight_shapes() const {
  require_built("canonical_weight_shapes");
  const ParamsLayout layout(*spec_);
  std::vector<Shape> shapes;
  for (const ParamRegion& region : layout.weights()) shapes.push_back(region.shape());
  return shapes;
}

std::vector<Shape> CudnnRnn::canonical_weight_shape(std::int64_t layer) const {
  if (layer < 0 || layer >= network().num_layers) {
    throw ArgumentError(message("[", name(), "] canonical_weight_shape of layer ", layer,
                                ", expected 0 to ", network().num_layers - 1));
  }
  require_built("canonical_weight_shape");
  const ParamsLayout layout(*spec_);
  std::vector<Shape> shapes;
  for (const ParamRegion& region : layout.weights()) {
    if (region.layer == layer) shapes.push_back(region.shape());
  }
  return shapes;
}

std::vector<Shape> CudnnRnn::canonical_bias_shapes() const {
  const RnnSpec& spec = network();
  const std::int64_t peepholes = spec.use_peepholes ? 3 : 0;
  const std::int64_t of_cell = spec.normalizes_cell() ? 2 : 0;
  const std::int64_t vectors =
      (spec.biases_per_gate() + spec::gains_per_gate(spec)) * spec.num_gates() + peepholes +
      of_cell;
  return std::vector<Shape>(static_cast<std::size_t>(vectors * spec.num_pseudo_layers()),
                            Shape{spec.num_units});
}

Array CudnnRnn::canonical_to_opaque(std::span<const ConstArrayView> weights,
                                    std::span<const ConstArrayView> biases) const {
  require_built("canonical_to_opaque");
  return canonical_to_params(ParamsLayout(*spec_), weights, biases);
}

void CudnnRnn::create_saveable() {
  require_built("create_saveable");
  if (saveable_) {
    throw StateError(
        message("Cudnn saveable already created [", name(), "], expected a layer without"));
  }
  saveable_ = make_cudnn_saveable(
      kernel_,
      {.network = *spec_, .scope = saveable_scope(), .name = kernel_.name() + "_saveable"});
  Graph::current().add_saveable(saveable_, false);  // it refers to the kernel
}

Shape CudnnRnn::compute_output_shape(const Shape& input_shape) const {
  if (input_shape.size() != 3) {
    throw ArgumentError(message("[", name(), "] compute_output_shape of ", to_string(input_shape),
                                ", expected 3 dimensions: [time, batch, depth]"));
  }
  return {input_shape[0], input_shape[1], network().output_size()};
}

void CudnnRnn::do_build(const Shape& input_shape) {
  if (input_shape.size() != 3) {
    throw ArgumentError(message("[", name(), "] an input shape of ", input_shape.size(),
                                " dimensions ", to_string(input_shape),
                                ", expected 3: [time, batch, depth]"));
  }
  if (input_shape.back() < 0) {
    throw ArgumentError(message("[", name(), "] the last dimension of the input shape ",
                                to_string(input_shape), " is unknown, expected it to be defined"));
  }
  const ValidSpec spec = depth_checked(network(), input_shape.back());
  const ParamsLayout layout(spec);
  VariableOptions variable;
  variable.dtype = dtype();
  variable.seed = stream_seed(network().training.seed);
  variable.initializer = [this, &layout](ArrayView values, RandomStream& random) {
    const std::uint64_t high = random.next_uint32(), low = random.next_uint32();
    const Array params = initialize_params(layout, high << 32 | low, options_.kernel_initializer,
                                           options_.bias_initializer);
    std::memcpy(values.data, params.data(), params.size_bytes());
  };
  kernel_ = add_weight("opaque_kernel", {layout.size()}, variable);
  const std::uint64_t calls = dropout_.calls();
  dropout_ = ops::DropoutState(Graph::current().op_seeds(network().training.seed));
  dropout_.set_calls(calls);
  spec_ = spec;
  set_input_spec({.ndim = 3, .axes = {{-1, spec->input_size}}});
  // Under a reusing scope another layer made the variable, and has its saveable.
  if (!VariableScope::current_reuse()) create_saveable();
}

CudnnRnnOptions CudnnRnn::get_config() const {
  CudnnRnnOptions config = options_;
  config.name = name();
  config.trainable = trainable();
  config.activity_regularizer = activity_regularizer();
  return config;
}

std::shared_ptr<CudnnRnn> CudnnRnn::clone() const {
  std::shared_ptr<CudnnRnn> copy = another(options_);
  copy->copy_layer(*this);
  copy->spec_ = spec_;
  copy->kernel_ = kernel_;
  copy->saveable_ = saveable_;
  copy->dropout_ = dropout_;
  return copy;
}

std::shared_ptr<CudnnRnn> CudnnRnn::with_arithmetic(Math math, WeightsDType weights_dtype) const {
  require_built("with_arithmetic");
  RnnSpec network = *spec_;
  network.compute.math = math;
  network.compute.weights_dtype = weights_dtype;
  const ValidSpec spec = network;
  std::shared_ptr<CudnnRnn> copy = clone();
  copy->options_.network.compute = network.compute;
  copy->spec_ = spec;
  return copy;
}

}  // namespace openrnn::layers
