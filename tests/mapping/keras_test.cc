// Networks of Keras's files: layouts and options, there and back.
#include <gtest/gtest.h>
#include <openrnn/mapping_keras.h>

#include "formats/temp_folder.h"
#include "mapping/networks.h"
#include "support/files/source_file.h"

namespace openrnn {
namespace {

using formats::TempFolder;

constexpr ModelFormat kFormats[] = {ModelFormat::kKeras, ModelFormat::kKerasWeights,
                                    ModelFormat::kKerasH5};

// A network as Keras has it: one bias, but for a GRU that resets after the product.
RnnSpec keras_spec(RnnMode mode, Direction direction, std::int64_t layers, DType dtype) {
  return {.mode = mode,
          .num_layers = layers,
          .num_units = 7,
          .input_size = 3,
          .direction = direction,
          .dtype = dtype,
          .single_bias = mode != RnnMode::kGru};
}

std::vector<RnnSpec> keras_specs() {
  std::vector<RnnSpec> specs;
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnTanh, RnnMode::kRnnRelu}) {
    for (const Direction direction : {Direction::kUnidirectional, Direction::kBidirectional}) {
      for (const std::int64_t layers : {1, 3}) {
        for (const DType dtype :
             {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
          specs.push_back(keras_spec(mode, direction, layers, dtype));
        }
      }
    }
  }
  RnnSpec before = keras_spec(RnnMode::kGru, Direction::kBidirectional, 2, DType::kFloat32);
  before.reset_after = false;
  before.single_bias = true;
  RnnSpec bare = keras_spec(RnnMode::kLstm, Direction::kUnidirectional, 2, DType::kFloat32);
  bare.single_bias = false;
  bare.use_bias = false;
  specs.insert(specs.end(), {before, bare});
  return specs;
}

MappedModel model_of(std::vector<MappedNetwork> networks) {
  MappedModel model;
  model.networks = std::move(networks);
  return model;
}

MappedModel saved_and_loaded(const MappedModel& model, ModelFormat format) {
  const TempFolder folder;
  save_networks(folder / "m", model, format);
  return load_networks(folder / "m");
}

bool holds(ModelFormat format, const RnnSpec& spec) {
  return format != ModelFormat::kKerasWeights || spec.mode != RnnMode::kRnnRelu;
}

TEST(KerasNetworks, EveryNetworkThereAndBack) {
  for (const RnnSpec& spec : keras_specs()) {
    for (const ModelFormat format : kFormats) {
      if (!holds(format, spec)) continue;
      SCOPED_TRACE(describe(spec) + " as " + std::string(to_string(format)));
      const MappedNetwork one = network_of(spec, "one"), two = network_of(spec, "a/b", 2);
      const MappedModel found = saved_and_loaded(model_of({one, two}), format);
      ASSERT_EQ(found.networks.size(), 2U);
      EXPECT_TRUE(found.not_understood.empty());
      for (const MappedNetwork& network : found.networks) {
        const MappedNetwork& expected = network.name == "one" ? one : two;
        EXPECT_EQ(network.name, expected.name);
        EXPECT_EQ(network.spec, spec) << describe(network.spec);
        EXPECT_TRUE(same_bytes(network.params, expected.params));
      }
    }
  }
}

TEST(KerasNetworks, WhatIsNotInKerasFormIsMadeSo) {
  // cuDNN's two biases become their sum, forget_bias joins it.
  RnnSpec spec{.num_units = 5, .input_size = 3, .dtype = DType::kFloat64, .forget_bias = 0.75};
  const MappedNetwork lstm = network_of(spec);
  const MappedModel found = saved_and_loaded(model_of({lstm}), ModelFormat::kKerasH5);
  EXPECT_EQ(found.networks.at(0).name, "");
  EXPECT_TRUE(found.networks[0].spec.single_bias);
  EXPECT_EQ(found.networks[0].spec.forget_bias, 0.0);
  const std::vector<double> y = output_of(lstm), again = output_of(found.networks[0]);
  for (std::size_t i = 0; i < y.size(); ++i) EXPECT_NEAR(y[i], again[i], 1e-14);
}

TEST(KerasNetworks, NamesThatLayersCannotHave) {
  RnnSpec spec = keras_spec(RnnMode::kLstm, Direction::kUnidirectional, 2, DType::kFloat32);
  const std::vector<std::string> names{"", "_a", "\xc3\xa4 b", "__ b", "a/b", "a.b"};
  std::vector<MappedNetwork> networks;
  for (const std::string& name : names) networks.push_back(network_of(spec, name));
  for (const ModelFormat format : kFormats) {
    const MappedModel found = saved_and_loaded(model_of(networks), format);
    ASSERT_EQ(found.networks.size(), names.size());
    for (std::size_t i = 0; i < names.size(); ++i) EXPECT_EQ(found.networks[i].name, names[i]);
  }
}

TEST(KerasNetworks, Activations) {
  RnnSpec spec = keras_spec(RnnMode::kLstm, Direction::kBidirectional, 1, DType::kFloat32);
  for (const char* name : {"relu", "linear", "elu", "leaky_relu(0.2)", "softplus",
                           "hard_sigmoid(0.16666666666666666, 0.5)"}) {
    spec.activation = spec.output_activation = parse_cell_activation(name);
    spec.recurrent_activation = parse_cell_activation("softsign");
    const MappedNetwork network = network_of(spec, "one");
    for (const ModelFormat format : {ModelFormat::kKeras, ModelFormat::kKerasH5}) {
      EXPECT_EQ(saved_and_loaded(model_of({network}), format).networks.at(0).spec, spec) << name;
    }
  }
}

TEST(KerasNetworks, WhatKerasCannotHold) {
  const TempFolder folder;
  const auto refused = [&](RnnSpec spec, const char* what) {
    const MappedModel model = model_of({network_of(spec, "n")});
    EXPECT_MESSAGE(UnsupportedError, save_networks(folder / "m", model, ModelFormat::kKeras), what);
    EXPECT_TRUE(folder.names().empty());
  };
  const RnnSpec lstm = keras_spec(RnnMode::kLstm, Direction::kUnidirectional, 1, DType::kFloat32);
  RnnSpec spec = lstm;
  spec.use_peepholes = true;
  refused(spec, "the network 'n' has use_peepholes true, which a .keras file cannot hold");
  spec = lstm;
  spec.activation = parse_cell_activation("relu");
  refused(spec, "has activation relu and output_activation tanh");
  spec = lstm;
  spec.recurrent_activation = parse_cell_activation("hard_sigmoid");
  refused(spec, "has the activation hard_sigmoid(0.2, 0.5)");
  spec = keras_spec(RnnMode::kGru, Direction::kUnidirectional, 1, DType::kFloat32);
  spec.single_bias = true;  // its candidate has no recurrent bias, which Keras's is then 0
  EXPECT_FALSE(saved_and_loaded(model_of({network_of(spec, "n")}), ModelFormat::kKeras)
                   .networks.at(0)
                   .spec.single_bias);
  MappedModel model = model_of({network_of(lstm, "n")});
  model.networks[0].initial_h = values_of(DType::kFloat32, {1, 7}, 3);
  EXPECT_MESSAGE(UnsupportedError, save_networks(folder / "m", model, ModelFormat::kKeras),
                 "has initial states");
}

TEST(KerasNetworks, CanonicalForm) {
  for (const RnnSpec& spec : keras_specs()) {
    const ParamsLayout layout(spec);
    const MappedNetwork network = network_of(spec);
    const CanonicalParams canonical = params_to_canonical(layout, network.params.view());
    std::vector<ConstArrayView> weights, biases, views;
    for (const Array& one : canonical.weights) weights.push_back(one.view());
    for (const Array& one : canonical.biases) biases.push_back(one.view());
    const std::vector<Array> arrays = keras_from_canonical(spec, weights, biases);
    const std::int64_t gates = spec.num_gates();
    EXPECT_EQ(arrays[0].shape(), (Shape{3, gates * 7}));
    EXPECT_EQ(arrays[1].shape(), (Shape{7, gates * 7}));
    // Row i of a kernel is column i of the gates' matrices.
    const std::size_t first = spec.mode == RnnMode::kGru ? 1 : 0;  // z r h
    EXPECT_EQ(element(arrays[0].view(), gates * 7 * 2 + 4),
              element(canonical.weights[first].view(), 4 * 3 + 2));
    for (const Array& one : arrays) views.push_back(one.view());
    const CanonicalParams again = canonical_from_keras(spec, views);
    for (std::size_t i = 0; i < again.weights.size(); ++i) {
      EXPECT_TRUE(same_bytes(again.weights[i], canonical.weights[i]));
    }
    for (std::size_t i = 0; i < again.biases.size(); ++i) {
      EXPECT_TRUE(same_bytes(again.biases[i], canonical.biases[i]));
    }
    views.pop_back();
    EXPECT_MESSAGE(ArgumentError, canonical_from_keras(spec, views), "[canonical_from_keras] ");
  }
  const RnnSpec two{.num_units = 2, .input_size = 2};
  EXPECT_MESSAGE(UnsupportedError, canonical_from_keras(two, {}), "2 biases a gate");
}

// A file of Keras 2 without a configuration, whose only layer lists these names.
MappedModel load_listed(const std::vector<std::string>& names) {
  const TempFolder folder;
  const Array kernel = values_of(DType::kFloat32, {3, 12}, 1);
  const Array recurrent = values_of(DType::kFloat32, {3, 12}, 2);
  const NamedView tensors[] = {{"l/" + names[0], kernel.view()},
                               {"l/" + names[1], recurrent.view()}};
  const NamedValue values[] = {{"keras_version", "2.4.0"},
                               {"layer_names", std::vector<std::string>{"l"}},
                               {"l/weight_names", names}};
  write_hdf5(folder / "m.h5", tensors, values);
  return load_networks(folder / "m.h5");
}

TEST(KerasNetworks, ListsOfNames) {
  // A colon that is no output's, in front of a slash.
  const MappedModel model = load_listed({"a:b/kernel", "a:b/recurrent_kernel"});
  ASSERT_EQ(model.networks.size(), 1U);
  EXPECT_EQ(model.networks[0].spec.num_units, 3);
  // A hundred layers of one layer's tensors would be as many times its memory.
  EXPECT_MESSAGE(FormatError,
                 load_listed({"a/kernel", "a/recurrent_kernel", "a/kernel", "a/recurrent_kernel"}),
                 "weight_names has 'l/a/kernel' twice, expected it once");
}

TEST(KerasNetworks, AnyChangedByteDoesNoHarm) {
  const TempFolder folder;
  const RnnSpec spec = keras_spec(RnnMode::kGru, Direction::kBidirectional, 2, DType::kFloat16);
  const MappedModel model = model_of({network_of(spec, "n")});
  int refused = 0;
  for (const ModelFormat format : kFormats) {
    save_networks(folder / "m", model, format);
    const std::string whole = read_file(folder / "m");
    for (std::size_t at = 0; at < whole.size(); at += 13) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ 0x11);
      // A new name each time: a file system may sync one that is written again.
      const std::string path = folder / (std::string(to_string(format)) + std::to_string(at));
      formats::write_raw(path, changed);
      try {
        load_networks(path);
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 100);
}

}  // namespace
}  // namespace openrnn
