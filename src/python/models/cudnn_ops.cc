// The op-level models and functions.
#include "base/message.h"
#include "openrnn/ops.h"
#include "ops/symbolic/rnn.h"
#include "python/layers/layer_ref.h"
#include "python/support/network.h"

namespace openrnn::python {
namespace {

/// One of the four op-level models; the call's shape is all in which they differ.
class OpModel {
 public:
  explicit OpModel(const RnnSpec& network) {
    switch (network.mode) {
      case RnnMode::kLstm:
        model_ = lstm_ = std::make_shared<ops::CudnnLSTM>(network);
        break;
      case RnnMode::kGru:
        model_ = gru_ = std::make_shared<ops::CudnnGRU>(network);
        break;
      case RnnMode::kRnnTanh:
        model_ = tanh_ = std::make_shared<ops::CudnnRNNTanh>(network);
        break;
      default:
        model_ = relu_ = std::make_shared<ops::CudnnRNNRelu>(network);
    }
  }
  ops::CudnnRnnModel& get() const { return *model_; }
  ops::RnnOutputs call(const std::vector<Tensor>& in, bool is_training,
                       const ops::CudnnCallOptions& options) const {
    if (lstm_) return (*lstm_)(in[0], in[1], in[2], in[3], is_training, options);
    if (gru_) return (*gru_)(in[0], in[1], in[3], is_training, options);
    if (tanh_) return (*tanh_)(in[0], in[1], in[3], is_training, options);
    return (*relu_)(in[0], in[1], in[3], is_training, options);
  }
  std::recursive_mutex& mutex() const { return *mutex_; }

 private:
  std::shared_ptr<ops::CudnnRnnModel> model_;
  std::shared_ptr<ops::CudnnLSTM> lstm_;
  std::shared_ptr<ops::CudnnGRU> gru_;
  std::shared_ptr<ops::CudnnRNNTanh> tanh_;
  std::shared_ptr<ops::CudnnRNNRelu> relu_;
  std::shared_ptr<std::recursive_mutex> mutex_ = std::make_shared<std::recursive_mutex>();
};

nb::tuple outputs_tuple(ops::RnnOutputs& out, bool is_lstm) {
  if (is_lstm) return nb::make_tuple(std::move(out.output), std::move(out.h), std::move(out.c));
  return nb::make_tuple(std::move(out.output), std::move(out.h));
}

nb::tuple call_model(const OpModel& self, nb::handle input_data, nb::handle input_h,
                     nb::handle input_c, nb::handle params, nb::handle is_training,
                     nb::handle sequence_lengths, bool time_major, nb::handle save) {
  const RnnSpec spec = self.get().spec();
  const bool is_lstm = spec.is_lstm();
  const bool training = as_flag("cudnn_rnn", "is_training", is_training);
  const bool kept = tape_is_open() || is_symbolic(input_data) || is_symbolic(input_h) ||
                    is_symbolic(input_c) || is_symbolic(params) || is_symbolic(sequence_lengths);
  const AsTensor how{
      .call = "cudnn_rnn", .dtype = spec.dtype, .memory = kept ? Memory::kCopy : Memory::kBorrow};
  const Tensor x = as_tensor(input_data, how);
  const std::vector<Tensor> in{x, as_tensor(input_h, how),
                               is_lstm ? as_tensor(input_c, how) : Tensor(),
                               as_tensor(params, how)};
  ops::CudnnCallOptions options{.time_major = time_major};
  set_lengths(options, "cudnn_rnn", sequence_lengths);
  set_save(options, "cudnn_rnn", save);
  ops::RnnOutputs out;
  if (any_symbolic(in) || options.lengths.is_symbolic()) {
    out = self.call(in, training, options);
  } else {
    out = unlocked([&] {
      const std::lock_guard lock(self.mutex());
      return self.call(in, training, options);
    });
  }
  return outputs_tuple(out, is_lstm);
}

// Of symbolic parameters: recorded, so that a Model can compute it.
nb::tuple record_canonical(const OpModel& self, const Tensor& params) {
  const RnnSpec spec = self.get().spec();
  const ParamsLayout layout(spec);
  const std::vector<Tensor> made = ops::canonical_tensors(params, spec);
  nb::list weights, biases;
  for (std::size_t i = 0; i < made.size(); ++i) {
    (i < layout.weights().size() ? weights : biases).append(nb::cast(made[i]));
  }
  return nb::make_tuple(weights, biases);
}

nb::tuple canonical_tuple(const CanonicalParams& params) {
  nb::list weights, biases;
  for (const Array& weight : params.weights) weights.append(nb::cast(Tensor(weight.view())));
  for (const Array& bias : params.biases) biases.append(nb::cast(Tensor(bias.view())));
  return nb::make_tuple(weights, biases);
}

Tensor to_params(const OpModel& self, nb::handle weights, nb::handle biases) {
  const AsTensor how{.call = "canonical_to_params", .dtype = self.get().spec().dtype};
  const std::vector<Array> w = as_arrays(weights, how), b = as_arrays(biases, how);
  const std::vector<ConstArrayView> w_views = views(w), b_views = views(b);
  return self.get().canonical_to_params(w_views, b_views);
}

nb::tuple call_function(const std::string& mode, nb::handle inputs, nb::handle input_h,
                        nb::handle input_c, nb::handle params, nb::handle is_training,
                        nb::handle sequence_lengths, bool time_major, const nb::dict& network) {
  const std::string name = "cudnn_" + mode;
  ops::CudnnFunctionOptions options{
      .is_training = as_flag(name.c_str(), "is_training", is_training),
      .network = as_network(name.c_str(), network),
      .time_major = time_major};
  set_lengths(options, "cudnn_rnn", sequence_lengths);
  const RnnMode rnn_mode = parse_rnn_mode(mode);
  const AsTensor first{.call = "cudnn_rnn"};
  const Tensor x = as_tensor(inputs, first);
  const AsTensor how{.call = "cudnn_rnn", .dtype = x.dtype()};
  const Tensor h = as_tensor(input_h, how), p = as_tensor(params, how);
  const bool is_lstm = rnn_mode == RnnMode::kLstm;
  const Tensor c = is_lstm ? as_tensor(input_c, how) : Tensor();
  const auto run = [&] {
    switch (rnn_mode) {
      case RnnMode::kLstm:
        return ops::cudnn_lstm(x, h, c, p, options);
      case RnnMode::kGru:
        return ops::cudnn_gru(x, h, p, options);
      case RnnMode::kRnnTanh:
        return ops::cudnn_rnn_tanh(x, h, p, options);
      default:
        return ops::cudnn_rnn_relu(x, h, p, options);
    }
  };
  ops::RnnOutputs out = any_symbolic(x, h, c, p, options.lengths) ? run() : unlocked(run);
  return outputs_tuple(out, is_lstm);
}

void bind_properties(nb::class_<OpModel>& model) {
  // Those of TensorFlow's, by name.
  for (const char* const name : {"rnn_mode", "num_layers", "num_units", "input_size", "input_mode",
                                 "direction", "num_proj", "math", "weights_dtype"}) {
    const RnnField& field = rnn_field(name);
    const std::string signature = "def " + std::string(name) + "(self) -> " + annotation(field);
    model.def_prop_ro(
        name, [&field](const OpModel& self) { return python_of(field, self.get().spec()); },
        nb::sig(signature.c_str()), std::string(field.help).c_str());
  }
  model
      .def_prop_ro(
          "math_kind", [](const OpModel& self) { return self.get().math_kind(); },
          "The arithmetic of the products on this machine, as openrnn.math_kind.")
      .def_prop_ro(
          "device",
          [](const OpModel& self) {
            const Device* const device = self.get().spec().compute.device;
            return device ? nb::object(device_str(*device)) : nb::none();
          },
          nb::sig("def device(self) -> str | None"),
          "Device of the calls; None: that of the tensors that they are given.");
}

}  // namespace

void bind_models(nb::module_& m) {
  m.def("cudnn_rnn_function", &call_function, "rnn_mode"_a, "inputs"_any, "input_h"_any,
        "input_c"_any, "params"_any, "is_training"_any, "sequence_lengths"_any, "time_major"_a,
        "network"_a,
        nb::sig("def cudnn_rnn_function(rnn_mode: str, inputs: object, input_h: object, "
                "input_c: object, params: object, is_training: object, sequence_lengths: object, "
                "time_major: bool, network: dict[str, typing.Any]) -> typing.Any"));
  nb::class_<OpModel> model(m, "OpModel", nb::dynamic_attr(),
                            "What the four op-level models share.");
  bind_properties(model);
  model
      .def(
          "__init__",
          [](OpModel* self, const std::string& call, const nb::dict& network) {
            new (self) OpModel(as_network(call.c_str(), network));
          },
          "call"_a, "network"_a,
          nb::sig("def __init__(self, call: str, network: dict[str, typing.Any]) -> None"))
      .def("model_call", &call_model, "input_data"_any, "input_h"_any, "input_c"_any, "params"_any,
           "is_training"_any, "sequence_lengths"_any, "time_major"_a, "save"_any,
           nb::sig("def model_call(self, input_data: object, input_h: object, input_c: object, "
                   "params: object, is_training: object, sequence_lengths: object, "
                   "time_major: bool, save: object) -> typing.Any"))
      .def("model_params_size", [](const OpModel& self) { return self.get().params_size(); })
      .def(
          "model_params_to_canonical",
          [](const OpModel& self, nb::handle params) {
            const AsTensor how{.call = "params_to_canonical", .dtype = self.get().spec().dtype};
            const Tensor buffer = as_tensor(params, how);
            if (buffer.is_symbolic()) return record_canonical(self, buffer);
            return canonical_tuple(self.get().params_to_canonical(buffer));
          },
          "params"_any,
          nb::sig("def model_params_to_canonical(self, params: object) -> "
                  "tuple[list[Tensor], list[Tensor]]"))
      .def("model_canonical_to_params", &to_params, "weights"_any, "biases"_any);
}

}  // namespace openrnn::python
