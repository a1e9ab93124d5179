// Dense, Embedding, Dropout, layers written in Python, and Model.
#include "base/message.h"
#include "graph/graph_state.h"
#include "python/layers/layer_ref.h"
#include "python/support/network.h"

namespace openrnn::python {
namespace {

template <class T>
T option(const nb::dict& options, const char* name, T otherwise) {
  if (!options.contains(name)) return otherwise;
  const nb::object value = options[name];
  return value.is_none() ? otherwise : as_value<T>(name, value);
}

template <class T>
T required(const nb::dict& options, const char* name) {
  return as_value<T>(name, nb::object(options[name]));
}

nb::object given(const nb::dict& options, const char* name) {
  return options.contains(name) ? nb::object(options[name]) : nb::none();
}

DType dtype_option(const nb::dict& options) {
  const nb::object dtype = given(options, "dtype");
  return dtype.is_none() ? DType::kFloat32 : as_dtype(dtype);
}

std::shared_ptr<Layer> make_rnn(const std::string& kind, const nb::dict& given_options) {
  layers::CudnnRnnOptions options;
  options.network = as_network("arguments", given_options);
  options.kernel_initializer = as_initializer(given(given_options, "kernel_initializer"));
  options.bias_initializer = as_initializer(given(given_options, "bias_initializer"));
  options.name = option<std::string>(given_options, "name", "");
  options.trainable = required<bool>(given_options, "trainable");
  options.activity_regularizer =
      as_tensor_function(given(given_options, "activity_regularizer"), "activity_regularizer");
  if (kind == "LSTM") return std::make_shared<layers::LSTM>(std::move(options));
  if (kind == "GRU") return std::make_shared<layers::GRU>(std::move(options));
  if (kind == "RNN") return std::make_shared<layers::RNN>(std::move(options));
  options.network.mode = parse_rnn_mode(kind);
  return layers::make_cudnn_rnn(std::move(options));
}

std::shared_ptr<Layer> make_dense(const nb::dict& options) {
  layers::DenseOptions dense;
  dense.units = required<std::int64_t>(options, "units");
  const auto name = option<std::string>(options, "activation", "linear");
  if (name == "linear")
    dense.activation = layers::Activation::kLinear;
  else if (name == "relu")
    dense.activation = layers::Activation::kRelu;
  else if (name == "tanh")
    dense.activation = layers::Activation::kTanh;
  else if (name == "sigmoid")
    dense.activation = layers::Activation::kSigmoid;
  else
    throw ArgumentError(
        message("[Dense] activation is '", name, "', expected linear, relu, tanh or sigmoid"));
  dense.use_bias = required<bool>(options, "use_bias");
  dense.kernel_initializer = as_initializer(given(options, "kernel_initializer"));
  dense.bias_initializer = as_initializer(given(options, "bias_initializer"));
  dense.seed = as_optional_int(given(options, "seed"));
  dense.dtype = dtype_option(options);
  dense.name = option<std::string>(options, "name", "");
  dense.device = as_device(given(options, "device"));
  return std::make_shared<layers::Dense>(std::move(dense));
}

std::shared_ptr<Layer> make_embedding(const nb::dict& options) {
  layers::EmbeddingOptions embedding;
  embedding.vocabulary = required<std::int64_t>(options, "input_dim");
  embedding.dim = required<std::int64_t>(options, "output_dim");
  embedding.initializer = as_initializer(given(options, "embeddings_initializer"));
  embedding.seed = as_optional_int(given(options, "seed"));
  embedding.dtype = dtype_option(options);
  embedding.name = option<std::string>(options, "name", "");
  embedding.device = as_device(given(options, "device"));
  return std::make_shared<layers::Embedding>(std::move(embedding));
}

std::shared_ptr<Layer> make_dropout(const nb::dict& options) {
  return std::make_shared<layers::Dropout>(
      layers::DropoutOptions{.rate = required<double>(options, "rate"),
                             .seed = as_optional_int(given(options, "seed")),
                             .name = option<std::string>(options, "name", "")});
}

Tensor as_indices(nb::handle value) {
  return as_tensor(value, {.call = "Embedding", .dtype = DType::kInt32});
}

Tensor call_simple(LayerRef& self, nb::handle inputs, nb::handle training) {
  self.keep_graph();
  const auto lock = self.exclusive();
  Layer& layer = self.get();
  if (auto* embedding = dynamic_cast<layers::Embedding*>(&layer)) {
    return (*embedding)(as_indices(inputs));
  }
  const Tensor x = as_tensor(inputs, {.call = layer.name().c_str(), .dtype = layer.dtype()});
  if (auto* dropout = dynamic_cast<layers::Dropout*>(&layer)) {
    return (*dropout)(x, as_flag(layer.name().c_str(), "training", training));
  }
  auto& dense = self.as<layers::Dense>("call");
  if (!layer.built() || x.is_symbolic()) return dense(x);
  return unlocked([&] { return dense(x); });
}

}  // namespace

std::shared_ptr<Layer> make_layer(const std::string& kind, const nb::dict& options) {
  if (kind == "python") return make_python_layer(options);
  if (kind == "dense") return make_dense(options);
  if (kind == "embedding") return make_embedding(options);
  if (kind == "dropout") return make_dropout(options);
  if (kind == "layer_graph") return make_layer_graph(options);
  if (kind == "model") {
    // A copy gets the name of its state: that which the constructor takes is given back.
    std::optional<graph::Rollback> names;
    if (options.contains("copied")) names.emplace(Graph::current());
    return std::make_shared<Model>(as_inputs(options["inputs"], {.call = "Model"}),
                                   as_inputs(options["outputs"], {.call = "Model"}),
                                   option<std::string>(options, "name", ""));
  }
  return make_rnn(kind, options);
}

void bind_simple_layers(nb::module_& m) {
  m.def("simple_call", &call_simple, "layer"_a, "inputs"_any, "training"_any);
  m.def(
      "simple_variable",
      [](const LayerRef& self, const std::string& which) -> std::optional<Variable> {
        Variable variable;
        if (const auto* dense = dynamic_cast<const layers::Dense*>(&self.get())) {
          variable = which == "bias" ? dense->bias() : dense->kernel();
        } else {
          variable = self.as<layers::Embedding>("embeddings").embeddings();
        }
        return variable.empty() ? std::nullopt : std::optional(variable);
      },
      "layer"_a, "which"_a);
  m.def(
      "dropout_rate", [](const LayerRef& self) { return self.as<layers::Dropout>("rate").rate(); },
      "layer"_a);
}

void bind_model(nb::module_& m) {
  m.def(
      "model_call",
      [](LayerRef& self, nb::handle inputs, nb::handle given_training) {
        auto& model = self.as<Model>("Model");
        std::optional<bool> training;
        if (!given_training.is_none()) training = as_flag("Model", "training", given_training);
        std::vector<Tensor> values;
        const nb::list given_inputs = nb::borrow<nb::list>(inputs);
        for (std::size_t i = 0; i < given_inputs.size(); ++i) {
          AsTensor how{.call = "Model"};
          if (i < model.inputs().size()) how.dtype = model.inputs()[i].dtype();
          values.push_back(as_tensor(given_inputs[i], how));
        }
        self.keep_graph();
        const auto lock = self.exclusive();
        if (any_symbolic(values)) return model(values, training);
        return unlocked([&] { return model(values, training); });
      },
      "model"_a, "inputs"_any, "training"_any);
  m.def(
      "model_inputs", [](const LayerRef& self) { return self.as<Model>("Model").inputs(); },
      "model"_a);
  m.def(
      "model_outputs", [](const LayerRef& self) { return self.as<Model>("Model").outputs(); },
      "model"_a);
  m.def(
      "model_layers",
      [](const LayerRef& self) {
        nb::list result;
        for (Layer* one : self.as<Model>("Model").layers()) {
          result.append(wrap_layer(one->weak_from_this().lock()));
        }
        return result;
      },
      "model"_a, nb::sig("def model_layers(model: LayerBase) -> list[typing.Any]"));
}

}  // namespace openrnn::python
