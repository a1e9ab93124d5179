// The four recurrent layers.
#include <chrono>

#include "base/message.h"
#include "ops/symbolic/rnn.h"
#include "python/layers/layer_ref.h"
#include "python/support/network.h"

namespace openrnn::python {
namespace {

nb::tuple states_tuple(std::vector<Tensor>& state) {
  if (state.size() == 2) {
    return nb::make_tuple(std::move(state[0]), std::move(state[1]));
  }
  return nb::make_tuple(std::move(state[0]));
}

// (c, h) of a cell, of ours or of TensorFlow, is taken by name: the tuple of a layer is (h, c).
nb::object in_order(nb::handle state) {
  const bool named =
      nb::hasattr(state, "_fields") && state.attr("_fields").equal(nb::make_tuple("c", "h"));
  if (!named) return nb::borrow(state);
  return nb::make_tuple(nb::object(state.attr("h")), nb::object(state.attr("c")));
}

// h and c in that order; tensors in the call's layout, other values unchanged.
nb::list state_parts(nb::handle state, bool time_major) {
  const bool several = PyTuple_Check(state.ptr()) || PyList_Check(state.ptr());
  nb::list parts;
  for (const nb::handle one : several ? in_order(state) : nb::make_tuple(state)) {
    const Tensor* tensor = nullptr;
    if (nb::try_cast<const Tensor*>(one, tensor) && tensor) {
      parts.append(ops::state_as(*tensor, time_major));
    } else {
      parts.append(one);
    }
  }
  return parts;
}

std::vector<Tensor> as_states(const Layer& layer, nb::handle state, const AsTensor& how) {
  if (state.is_none()) return {};
  if (!PyTuple_Check(state.ptr())) {
    throw ArgumentError(
        message("[", layer.name(), "] initial_state is ", quoted_type(state), ", expecting tuple"));
  }
  std::vector<Tensor> tensors;
  for (const nb::handle one : nb::borrow<nb::tuple>(in_order(state))) {
    tensors.push_back(as_tensor(one, how));
  }
  if (tensors.empty()) {
    throw ArgumentError(message("[", layer.name(), "] an initial_state of 0 tensors, expected ",
                                "one tensor for each of its states"));
  }
  return tensors;
}

struct Options {
  bool training = true, time_major = true, save = false, every = false;
};

nb::tuple result_tuple(layers::RnnResult& result, bool every) {
  nb::tuple states = states_tuple(result.state);
  if (!every) return nb::make_tuple(std::move(result.output), std::move(states));
  return nb::make_tuple(std::move(result.output), std::move(states),
                        std::move(result.layer_outputs), std::move(result.layer_cells));
}

// One byte a step, as Python's step_flags makes them.
std::vector<bool> flags_in(const nb::bytes& given) {
  return std::vector<bool>(given.c_str(), given.c_str() + given.size());
}

// (mask, zero_output_for_mask, reset, reset_to_initial), or None.
ops::StepFlags as_step_flags(nb::handle given) {
  if (given.is_none()) return {};
  const auto [mask, zero, reset, initial] =
      nb::cast<std::tuple<nb::bytes, bool, nb::bytes, bool>>(given);
  return {flags_in(mask), zero, flags_in(reset), initial};
}

nb::tuple call(LayerRef& self, nb::handle inputs, nb::handle initial_state, nb::handle training,
               nb::handle sequence_lengths, bool time_major, nb::handle save, bool every,
               nb::handle scope, nb::handle step_flags) {
  layers::CudnnRnn& layer = self.rnn();
  self.keep_graph();
  // Memory is borrowed only if nothing can read it after the call.
  layers::RnnCallOptions options;
  set_save(options, layer.name(), save);
  const bool leaves = options.save || tape_is_open() || layer.activity_regularizer() ||
                      is_symbolic(inputs) || is_symbolic(initial_state) ||
                      is_symbolic(sequence_lengths);
  AsTensor how{.call = layer.name().c_str(),
               .dtype = layer.dtype(),
               .memory = leaves ? Memory::kCopy : Memory::kBorrow};
  const Tensor x = as_tensor(inputs, how);
  const std::vector<Tensor> state = as_states(layer, initial_state, how);
  set_lengths(options, layer.name().c_str(), sequence_lengths);
  options.time_major = time_major;
  options.training = as_flag(layer.name().c_str(), "training", training);
  options.every = every;
  options.flags = as_step_flags(step_flags);
  const auto lock = self.exclusive();
  // Building and recording touch the graph and call Python back: one thread at a time.
  if (!layer.built() || any_symbolic(x, options.lengths) || any_symbolic(state)) {
    if (!scope.is_none()) {
      options.scope = nb::cast<std::string>(
          nb::hasattr(scope, "name") ? nb::object(scope.attr("name")) : nb::borrow(scope));
    }
    layers::RnnResult result = layer(x, state, options);
    return result_tuple(result, every);
  }
  layers::RnnResult result = unlocked([&] { return layer(x, state, options); });
  return result_tuple(result, every);
}

// Seconds of one call with the loop in C++: what the benchmark compares a Python call with.
double seconds_per_call(LayerRef& self, nb::handle inputs, std::int64_t calls, bool training) {
  layers::CudnnRnn& layer = self.rnn();
  const Tensor x = as_tensor(inputs, {.call = "benchmark", .dtype = layer.dtype()});
  layers::RnnCallOptions options;
  options.training = training;
  return unlocked([&] {
    const auto begin = std::chrono::steady_clock::now();
    for (std::int64_t i = 0; i < calls; ++i) layer(x, {}, options);
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    return seconds.count() / static_cast<double>(calls);
  });
}

nb::list shapes_list(const std::vector<Shape>& shapes, bool as_tuples) {
  nb::list result;
  for (const Shape& shape : shapes) {
    if (as_tuples) {
      result.append(shape_tuple(shape));
    } else {
      result.append(shape_list(shape));
    }
  }
  return result;
}

nb::dict config(const LayerRef& self) {
  const layers::CudnnRnnOptions options = self.rnn().get_config();
  nb::dict result = network_dict(options.network, [](const RnnField& field) {
    // The class and the first input say these.
    return field.name != "rnn_mode" && field.name != "input_size";
  });
  result["kernel_initializer"] = python_of(options.kernel_initializer);
  result["bias_initializer"] = python_of(options.bias_initializer);
  result["name"] = options.name;
  result["trainable"] = options.trainable;
  result["activity_regularizer"] = python_of(options.activity_regularizer);
  // As given: a layer without one follows the default device.
  const Device* const device = options.network.compute.device;
  result["device"] = device ? nb::object(device_str(*device)) : nb::none();
  return result;
}

void bind_properties(nb::module_& m) {
  m.def(
      "rnn_field",
      [](const LayerRef& self, const std::string& name) {
        return python_of(rnn_field(name), self.rnn().network());
      },
      "layer"_a, "name"_a, nb::sig("def rnn_field(layer: LayerBase, name: str) -> typing.Any"));
  m.def(
      "rnn_num_dirs", [](const LayerRef& self) { return self.rnn().network().num_dirs(); },
      "layer"_a);
  m.def(
      "rnn_input_size", [](const LayerRef& self) { return self.rnn().input_size(); }, "layer"_a);
  m.def(
      "rnn_math_kind", [](const LayerRef& self) { return self.rnn().math_kind(); }, "layer"_a);
  m.def("rnn_saveable", &LayerRef::saveable, "layer"_a,
        nb::sig("def rnn_saveable(layer: LayerBase) -> SaveableObject | None"));
  m.def(
      "rnn_dropout_calls", [](const LayerRef& self) { return self.rnn().dropout_calls(); },
      "layer"_a);
  m.def(
      "rnn_set_dropout_calls",
      [](LayerRef& self, std::uint64_t calls) { self.rnn().set_dropout_calls(calls); }, "layer"_a,
      "calls"_a);
  m.def(
      "rnn_kernel", [](const LayerRef& self) { return self.rnn().kernel(); }, "layer"_a);
  m.def(
      "rnn_config", [](const LayerRef& self) { return config(self); }, "layer"_a,
      nb::sig("def rnn_config(layer: LayerBase) -> dict[str, typing.Any]"));
}

void bind_shapes(nb::module_& m) {
  m.def(
      "rnn_canonical_weight_shapes",
      [](const LayerRef& self) { return shapes_list(self.rnn().canonical_weight_shapes(), true); },
      "layer"_a,
      nb::sig("def rnn_canonical_weight_shapes(layer: LayerBase) -> list[tuple[int, ...]]"));
  m.def(
      "rnn_canonical_bias_shapes",
      [](const LayerRef& self) { return shapes_list(self.rnn().canonical_bias_shapes(), false); },
      "layer"_a, nb::sig("def rnn_canonical_bias_shapes(layer: LayerBase) -> list[list[int]]"));
  m.def(
      "rnn_canonical_weight_shape",
      [](const LayerRef& self, std::int64_t index) {
        return shapes_list(self.rnn().canonical_weight_shape(index), true);
      },
      "layer"_a, "index"_a,
      nb::sig(
          "def rnn_canonical_weight_shape(layer: LayerBase, index: int) -> list[tuple[int, ...]]"));
  m.def(
      "rnn_state_shape",
      [](const LayerRef& self, nb::handle batch_size) {
        const std::int64_t batch = batch_size.is_none() ? -1 : as_int("state_shape", batch_size);
        return nb::tuple(shapes_list(self.rnn().state_shape(batch), false));
      },
      "layer"_a, "batch_size"_any,
      nb::sig(
          "def rnn_state_shape(layer: LayerBase, batch_size: object) -> tuple[list[int], ...]"));
}

}  // namespace

void bind_cudnn_rnn(nb::module_& m) {
  bind_properties(m);
  bind_shapes(m);
  m.def(
      "rnn_call", &call, "layer"_a, "inputs"_any, "initial_state"_any, "training"_any,
      "sequence_lengths"_any, "time_major"_a, "save"_any, "every"_a, "scope"_any, "step_flags"_any,
      nb::sig(
          "def rnn_call(layer: LayerBase, inputs: object, initial_state: object, training: object, "
          "sequence_lengths: object, time_major: bool, save: object, every: bool, "
          "scope: object, step_flags: object) -> typing.Any"));
  m.def("rnn_state_parts", &state_parts, "state"_any, "time_major"_a,
        nb::sig("def rnn_state_parts(state: object, time_major: bool) -> list[typing.Any]"));
  m.def("rnn_seconds_per_call", &seconds_per_call, "layer"_a, "inputs"_any, "calls"_a,
        "training"_a = true);
  m.def(
      "rnn_canonical_to_opaque",
      [](const LayerRef& self, nb::handle weights, nb::handle biases) {
        const AsTensor how{.call = "canonical_to_opaque", .dtype = self.get().dtype()};
        const std::vector<Array> w = as_arrays(weights, how), b = as_arrays(biases, how);
        const std::vector<ConstArrayView> w_views = views(w), b_views = views(b);
        return Tensor(self.rnn().canonical_to_opaque(w_views, b_views).view());
      },
      "layer"_a, "weights"_any, "biases"_any);
  m.def(
      "rnn_with_arithmetic",
      [](nb::handle self, const std::string& math,
         const std::optional<std::string>& weights_dtype) {
        const auto made = nb::cast<LayerRef&>(self).rnn().with_arithmetic(
            parse_math(math), parse_weights_dtype(weights_dtype.value_or("none")));
        return wrap_as(self.type(), LayerRef(made));
      },
      "layer"_a, "math"_a, "weights_dtype"_a.none(),
      nb::sig("def rnn_with_arithmetic(layer: LayerBase, math: str, weights_dtype: str | None) -> "
              "typing.Any"));
  m.def(
      "rnn_create_saveable", [](LayerRef& self) { self.rnn().create_saveable(); }, "layer"_a);
}

}  // namespace openrnn::python
