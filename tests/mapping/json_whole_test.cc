// Whole models in JSON of RTNeural and of NeuralAmpModeler: layers there and back, what is refused.
#include <gtest/gtest.h>

#include <functional>

#include "base/message.h"
#include "formats/temp_folder.h"
#include "mapping/networks.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

using formats::TempFolder;

constexpr std::int64_t kUnits = 5, kInput = 3;

MappedLayer dense_of(const std::string& name, std::int64_t width, std::int64_t units,
                     const std::string& activation = "linear") {
  return {.name = name,
          .kind = "dense",
          .options = {{"units", units}, {"activation", activation}},
          .weights = {{"kernel", values_of(DType::kFloat32, {width, units}, 5)},
                      {"bias", values_of(DType::kFloat32, {units}, 6)}}};
}

MappedLayer activation_of(const std::string& name, const std::string& function) {
  return {.name = name, .kind = "activation", .options = {{"activation", function}}};
}

MappedLayer recurrent_of(const std::string& network) {
  return {.name = network, .kind = "recurrent", .options = {{"network", network}}};
}

// The layers behind an input, one behind the other.
MappedModel chain_of(std::vector<MappedNetwork> networks, std::vector<MappedLayer> layers) {
  MappedModel model;
  model.networks = std::move(networks);
  model.layers.push_back({.name = "x",
                          .kind = "input",
                          .options = {{"shape", std::vector<std::int64_t>{-1, -1, kInput}}}});
  for (MappedLayer& layer : layers) {
    layer.inputs = {{model.layers.back().name, 0}};
    model.layers.push_back(std::move(layer));
  }
  model.outputs = {{model.layers.back().name, 0}};
  return model;
}

RnnSpec spec_of(RnnMode mode, std::int64_t input_size = kInput, std::int64_t layers = 1) {
  return {.mode = mode,
          .num_layers = layers,
          .num_units = kUnits,
          .input_size = input_size,
          .single_bias = mode == RnnMode::kLstm};
}

MappedModel rtneural_model() {
  return chain_of({network_of(spec_of(RnnMode::kLstm, kInput, 2), "first", 1),
                   network_of(spec_of(RnnMode::kGru, 4), "second", 2)},
                  {recurrent_of("first"), dense_of("between", kUnits, 4, "relu"),
                   recurrent_of("second"), activation_of("elu", "elu"),
                   dense_of("head", kUnits, 2, "sigmoid"), activation_of("end", "softmax")});
}

MappedModel nam_model(std::int64_t layers = 1) {
  MappedModel model = chain_of({network_of(spec_of(RnnMode::kLstm, kInput, layers), "lstm")},
                               {recurrent_of("lstm"), dense_of("head", kUnits, 1)});
  std::vector<double> h, c;
  for (std::int64_t i = 0; i < layers * kUnits; ++i) {
    h.push_back(0.125 * static_cast<double>(i + 1));
    c.push_back(-0.25 * static_cast<double>(i + 1));
  }
  model.layers[1].options["initial_h"] = h;
  model.layers[1].options["initial_c"] = c;
  model.values = {{"sample_rate", std::int64_t{48000}},
                  {"metadata.name", std::string("an amplifier")}};
  return model;
}

void expect_same_layers(const MappedModel& found, const MappedModel& given) {
  ASSERT_EQ(found.layers.size(), given.layers.size());
  EXPECT_TRUE(found.notes.empty() && found.not_understood.empty());
  EXPECT_EQ(found.outputs, given.outputs);
  for (std::size_t i = 1; i < given.layers.size(); ++i) {
    const MappedLayer &one = found.layers[i], &wanted = given.layers[i];
    EXPECT_EQ(one.name, wanted.name);
    EXPECT_EQ(one.kind, wanted.kind) << one.name;
    for (const auto& [name, value] : wanted.options)
      EXPECT_EQ(layer_option(one, name), value) << name;
    ASSERT_EQ(one.weights.size(), wanted.weights.size()) << one.name;
    for (std::size_t k = 0; k < wanted.weights.size(); ++k) {
      EXPECT_EQ(one.weights[k].name, wanted.weights[k].name);
      EXPECT_TRUE(same_bytes(one.weights[k].values, wanted.weights[k].values)) << one.name;
    }
  }
  ASSERT_EQ(found.networks.size(), given.networks.size());
  for (std::size_t i = 0; i < given.networks.size(); ++i) {
    EXPECT_EQ(found.networks[i].spec, given.networks[i].spec);
    EXPECT_TRUE(same_bytes(found.networks[i].params, given.networks[i].params));
  }
}

TEST(JsonWhole, LayersOfRtneuralThereAndBackAlsoThroughOurFile) {
  const TempFolder folder;
  const MappedModel model = rtneural_model();
  save_networks(folder / "m.json", model, ModelFormat::kRtneural);
  const MappedModel found = load_networks(folder / "m.json");
  expect_same_layers(found, model);
  save_networks(folder / "m.openrnn", found, ModelFormat::kOpenrnn);
  const MappedModel own = load_networks(folder / "m.openrnn");
  expect_same_layers(own, model);
  save_networks(folder / "again.json", own, ModelFormat::kRtneural);
  EXPECT_EQ(read_file(folder / "m.json"), read_file(folder / "again.json"));
}

TEST(JsonWhole, LayersOfNamThereAndBackAlsoThroughOurFile) {
  const TempFolder folder;
  for (const std::int64_t layers : {1, 3}) {
    const MappedModel model = nam_model(layers);
    save_networks(folder / "m.nam", model, ModelFormat::kNam);
    const MappedModel found = load_networks(folder / "m.nam");
    expect_same_layers(found, model);
    EXPECT_EQ(found.networks[0].initial_h->view().as<float>()[1], 0.25F);
    EXPECT_EQ(found.networks[0].initial_c->view().as<float>()[1], -0.5F);
    save_networks(folder / "m.openrnn", found, ModelFormat::kOpenrnn);
    const MappedModel own = load_networks(folder / "m.openrnn");
    expect_same_layers(own, model);
    save_networks(folder / "again.nam", own, ModelFormat::kNam);
    EXPECT_EQ(read_file(folder / "m.nam"), read_file(folder / "again.nam"));
    EXPECT_NE(read_file(folder / "m.nam").find(R"("name":"an amplifier")"), std::string::npos);
  }
}

// Files of ours from before the head was a layer have it in their values.
TEST(JsonWhole, TheHeadMayBeInValues) {
  const TempFolder folder;
  MappedModel old = nam_model();
  old.layers.clear();
  old.outputs.clear();
  old.values.push_back({"head.weight", std::vector<double>{0.5, -0.25, 1.0, 2.0, -3.0}});
  old.values.push_back({"head.bias", 0.125});
  save_networks(folder / "old.openrnn", old, ModelFormat::kOpenrnn);
  save_networks(folder / "m.nam", load_networks(folder / "old.openrnn"), ModelFormat::kNam);
  const MappedModel found = load_networks(folder / "m.nam");
  const MappedLayer& head = found.layers.at(2);
  EXPECT_TRUE(same_bytes(head.weights[0].values,
                         Array::of<float>({5, 1}, std::vector<float>{0.5, -0.25, 1, 2, -3})));
  EXPECT_EQ(head.weights[1].values.view().as<float>()[0], 0.125F);
}

TEST(JsonWhole, ADenseLayerWithoutBiasesIsWrittenWithZeros) {
  const TempFolder folder;
  MappedModel model = chain_of({network_of(spec_of(RnnMode::kGru), "gru")},
                               {recurrent_of("gru"), dense_of("head", kUnits, 2)});
  model.layers[2].options["use_bias"] = false;
  model.layers[2].weights.pop_back();
  save_networks(folder / "m.json", model, ModelFormat::kRtneural);
  const MappedLayer head = load_networks(folder / "m.json").layers.at(2);
  ASSERT_EQ(head.weights.size(), 2U);
  EXPECT_TRUE(same_bytes(head.weights[1].values, Array(DType::kFloat32, {2})));
}

TEST(JsonWhole, NamesThatAreThereTwiceJoinNothing) {
  const TempFolder folder;
  MappedModel model = chain_of({network_of(spec_of(RnnMode::kGru), "a")},
                               {recurrent_of("a"), dense_of("b", kUnits, 2)});
  model.layers[1].name = "b";
  model.layers[2].name = "a";
  model.layers[2].inputs = {{"b", 0}};
  model.outputs = {{"a", 0}};
  save_networks(folder / "m.json", model, ModelFormat::kRtneural);
  const MappedModel found = load_networks(folder / "m.json");
  ASSERT_EQ(found.layers.size(), 3U);
  EXPECT_EQ(found.layers[1].name, "a");
  EXPECT_EQ(found.layers[2].name, "layers.1");
}

constexpr const char* kGruText =
    R"({"type": "gru", "weights": [[[1, 2, 3]], [[1, 2, 3]], [[1, 2, 3], [4, 5, 6]]]})";

TEST(JsonWhole, WhatIsNotUnderstoodLeavesTheNetworks) {
  const TempFolder folder;
  const std::pair<const char*, const char*> cases[] = {
      {R"({"type": "conv1d", "kernel_size": 3, "weights": [[[[1]]]]})", "conv1d"},
      {R"({"type": "prelu", "weights": [[[1]]]})", "prelu"},
      {R"({"type": "dense", "activation": "gelu", "weights": [[[1]], [1]]})", "gelu"},
      {R"({"type": "dense", "weights": [[[1, 2]], [1]]})", "shapes of a dense layer"},
      {R"({"type": "dense", "weights": [[[1], [2]], [1]]})", "kernel"},
      {R"({"type": "activation", "activation": "prelu"})", "prelu"},
      {R"({"type": "activation", "activation": 3})", "no text"},
      {R"({"type": "activation", "activation": {"name": "tanh"}})", R"('{"name":"tanh"}')"},
      {R"({"type": "activation", "activation": [1, 2]})", "'[1,2]'"},
      {R"({"type": "dense", "activation": ["tanh"], "weights": [[[1]], [1]]})", R"('["tanh"]')"},
      {R"({"type": "activation", "activation": {}})", "'{}'"},
      {R"({"type": "dense", "name": "layers.0", "weights": [[[1]], [1]]})", "name of its own"},
      {R"({}, {"type": "dense", "weights": [[[1]], [1]]})", "layers.1"}};
  for (const auto& [text, word] : cases) {
    formats::write_raw(folder / "m.json", R"({"in_shape": [null, null, 1], "layers": [)" +
                                              std::string(kGruText) + ", " + text + "]}");
    const MappedModel found = load_networks(folder / "m.json");
    EXPECT_EQ(found.networks.size(), 1U);
    EXPECT_TRUE(found.layers.empty() && found.outputs.empty());
    ASSERT_EQ(found.notes.size(), 1U) << text;
    EXPECT_NE(found.notes[0].find("read as its networks alone"), std::string::npos);
    EXPECT_NE(found.notes[0].find(word), std::string::npos) << found.notes[0];
  }
}

// Layers and networks of a text that somebody else wrote, as 'kind:name' and the networks' specs.
MappedModel layers_of(const TempFolder& folder, const std::string& layers) {
  formats::write_raw(folder / "m.json",
                     R"({"in_shape": [null, null, 1], "layers": [)" + layers + "]}");
  return load_networks(folder / "m.json");
}

std::vector<std::string> names_of(const std::vector<MappedLayer>& layers) {
  std::vector<std::string> names;
  for (const MappedLayer& layer : layers) names.push_back(layer.kind + ":" + layer.name);
  return names;
}

// A GRU of one unit on one input with a name of its own.
std::string gru_named(const std::string& name) {
  return R"({"name": ")" + name + R"(", "type": "gru", "weights": )" +
         R"([[[1, 2, 3]], [[1, 2, 3]], [[1, 2, 3], [4, 5, 6]]]})";
}

constexpr const char* kDenseText = R"({"type": "dense", "weights": [[[0.5]], [1]]})";

TEST(JsonWhole, NeighboursOfOneNameAndFormAreOneNetwork) {
  const TempFolder folder;
  const std::string without =
      R"({"name": "a", "type": "gru", "weights": [[[1, 2, 3]], [[1, 2, 3]], [1, 2, 3]]})";
  const std::string wider = R"({"name": "a", "type": "gru", "weights": [[[1, 2, 3], [1, 2, 3]],
      [[1, 2, 3]], [[1, 2, 3], [4, 5, 6]]]})";
  const std::pair<std::string, std::vector<std::int64_t>> cases[] = {
      {gru_named("a") + "," + gru_named("a"), {2}},
      {gru_named("a") + "," + gru_named("b"), {1, 1}},
      {gru_named("a") + "," + kDenseText + "," + gru_named("a"), {1, 1}},
      {gru_named("a") + "," + without, {1, 1}},
      {gru_named("a") + "," + wider, {1, 1}},
      {gru_named("a") + "," + gru_named("a") + "," + without, {2, 1}}};
  for (const auto& [layers, expected] : cases) {
    std::vector<std::int64_t> depths;
    for (const MappedNetwork& network : layers_of(folder, layers).networks) {
      depths.push_back(network.spec.num_layers);
    }
    EXPECT_EQ(depths, expected) << layers;
  }
}

TEST(JsonWhole, FormsOfLayersOfRtneural) {
  const TempFolder folder;
  // Two arrays have no biases; a bias of one row is that of a GRU that resets before the product.
  MappedModel found = layers_of(folder, R"({"type": "gru", "weights": [[[1, 2, 3]], [[1, 2, 3]]]},
      {"type": "gru", "weights": [[[1, 2, 3]], [[1, 2, 3]], [1, 2, 3]]},
      {"type": "time-distributed-dense", "activation": "linear", "weights": [[[2]]]},
      {"type": "dense", "activation": "", "weights": [[[2]], [1]]},
      {"type": "activation", "activation": "elu"})");
  ASSERT_EQ(found.networks.size(), 2U);
  EXPECT_FALSE(found.networks[0].spec.use_bias);
  EXPECT_TRUE(found.networks[0].spec.reset_after);
  EXPECT_TRUE(found.networks[1].spec.use_bias && found.networks[1].spec.single_bias);
  EXPECT_FALSE(found.networks[1].spec.reset_after);
  EXPECT_TRUE(found.notes.empty());
  EXPECT_EQ(names_of(found.layers),
            (std::vector<std::string>{"input:input", "recurrent:layers.0", "recurrent:layers.1",
                                      "dense:layers.2", "dense:layers.3", "activation:layers.4"}));
  EXPECT_EQ(layer_option(found.layers.at(3), "use_bias"), PlainValue(false));
  EXPECT_EQ(layer_option(found.layers.at(3), "activation"), PlainValue(std::string("linear")));
  EXPECT_EQ(layer_option(found.layers.at(4), "use_bias"), PlainValue(true));
  EXPECT_EQ(layer_option(found.layers.at(4), "activation"), PlainValue(std::string("linear")));
  // The name of the input is not that of another layer.
  found = layers_of(
      folder, gru_named("input") + ",{\"name\": \"input_\"," + std::string(kDenseText).substr(1));
  EXPECT_TRUE(found.notes.empty());
  EXPECT_EQ(names_of(found.layers),
            (std::vector<std::string>{"input:input__", "recurrent:input", "dense:input_"}));
}

TEST(JsonWhole, ArraysThatMakeNoRecurrentLayer) {
  const TempFolder folder;
  const std::pair<int, const char*> cases[] = {
      {1, "[[[1, 2, 3]]]"},                                     // alone
      {4, "[[[1, 2, 3]], [[1, 2, 3]], [1, 2, 3], [1, 2, 3]]"},  // four
      {2, "[[1, 2, 3], [[1, 2, 3]]]"},                          // a kernel of one dimension
      {2, "[[[1, 2, 3]], [1, 2, 3]]"},                          // so the recurrent one
      {2, "[[[1, 2, 3]], [[1, 2, 3, 4]]]"},                     // of other gates
      {3, "[[[1, 2, 3]], [[1, 2, 3]], [1, 2]]"},                // a bias too short
      {3, "[[[1, 2, 3]], [[1, 2, 3]], [[1, 2, 3]]]"},           // of one row
      {3, "[[[1, 2, 3]], [[1, 2, 3], [1, 2, 3]], [[1, 2, 3], [4, 5, 6]]]"}};  // of two units
  for (const auto& [count, weights] : cases) {
    const MappedModel found =
        layers_of(folder, message(R"({"type": "gru", "weights": )", weights, "},", kDenseText));
    EXPECT_TRUE(found.networks.empty() && found.layers.empty()) << weights;
    ASSERT_EQ(found.notes.size(), 1U) << weights;
    EXPECT_EQ(found.notes[0], message("no network was made from 'layers.0': its ", count,
                                      " arrays have not the shapes of a gru"));
  }
}

// The networks are found all the same.
TEST(JsonWhole, ALayerWithoutAType) {
  const TempFolder folder;
  const std::string alone = "the model is read as its networks alone: 'layers.1' ";
  for (const auto& [layer, why] :
       {std::pair(R"({"weights": [[[1]]]})", "is of the type '', which is not computed here"),
        {"{}", "has no type"}}) {
    const MappedModel found =
        layers_of(folder, message(gru_named("a"), ",", layer, ",", kDenseText));
    EXPECT_TRUE(found.layers.empty()) << layer;
    EXPECT_EQ(found.networks.size(), 1U) << layer;
    EXPECT_EQ(found.notes, std::vector<std::string>{alone + why}) << layer;
  }
}

using Change = std::function<void(MappedModel*)>;

void expect_refusals(const MappedModel& given, ModelFormat format,
                     const std::vector<std::pair<Change, const char*>>& cases) {
  const TempFolder folder;
  const std::string end =
      message(", which a file of ", format == ModelFormat::kNam ? "NeuralAmpModeler" : "RTNeural",
              " cannot hold");
  for (const auto& [change, expected] : cases) {
    const std::string what = expected;
    MappedModel model = given;
    change(&model);
    const std::string text = error_of([&] { save_networks(folder / "m", model, format); });
    EXPECT_EQ(text, what.starts_with('[') ? what : message("[save_networks] ", what, end));
    EXPECT_FALSE(std::filesystem::exists(folder / "m"));
  }
}

Change option(std::size_t layer, const char* name, PlainValue value) {
  return [=](MappedModel* model) { model->layers[layer].options[name] = value; };
}

TEST(JsonWhole, WhatRtneuralCannotHoldIsRefusedByName) {
  const auto last_is = [](const char* kind) {
    return [=](MappedModel* model) {
      model->layers.back() = {.name = "end", .kind = kind, .inputs = {{"head", 0}}};
    };
  };
  expect_refusals(rtneural_model(), ModelFormat::kRtneural,
                  {{option(2, "activation", std::string("selu")),
                    "the layer 'between' has the activation selu"},
                   {option(4, "activation", std::string("elu(0.5)")),
                    "the layer 'elu' has the activation elu(0.5)"},
                   {option(1, "initial_h", std::vector<double>(10, 0.5)),
                    "the network 'first' has states to begin with"},
                   {option(1, "initial_c", std::vector<double>(10, 0.5)),
                    "the network 'first' has states to begin with"},
                   {option(3, "return_state", true), "the layer 'second' has return_state true"},
                   {option(3, "reverse", true), "the layer 'second' has reverse true"},
                   {last_is("dropout"), "the layer 'end' has the kind dropout"},
                   {last_is("time_mean"), "the layer 'end' has the kind time_mean"},
                   {[](MappedModel* model) {
                      model->outputs = {{"head", 0}};
                    },
                    "the model has outputs other than its last layer's"},
                   {[](MappedModel* model) {
                      model->layers.back().inputs = {{"elu", 0}};
                    },
                    "the layer 'end' has inputs other than the layer before it"},
                   {[](MappedModel* model) {
                      model->networks.push_back(network_of(spec_of(RnnMode::kGru), "third"));
                    },
                    "the network 'third' is of no layer of the model"},
                   {[](MappedModel* model) {
                      model->layers[3].options["network"] = std::string("first");
                      model->layers[2] = dense_of("between", kUnits, kInput);
                      model->layers[2].inputs = {{"first", 0}};
                      model->networks.pop_back();
                    },
                    "the layer 'second' has the network of another layer"},
                   {[](MappedModel* model) {
                      model->layers.resize(2);
                      model->layers[1].options["return_sequences"] = false;
                      model->outputs = {{"first", 0}};
                    },
                    "the layer 'first' has return_sequences false"}});
}

TEST(JsonWhole, WhatNamCannotHoldIsRefusedByName) {
  const auto add = [](MappedLayer layer) {
    return [=](MappedModel* model) {
      model->layers.push_back(layer);
      model->layers.back().inputs = model->outputs;
      model->outputs = {{layer.name, 0}};
    };
  };
  expect_refusals(
      nam_model(), ModelFormat::kNam,
      {{option(2, "activation", std::string("tanh")), "the layer 'head' has the activation tanh"},
       {[](MappedModel* model) {
          model->layers[2] = dense_of("head", kUnits, 2);
          model->layers[2].inputs = {{"lstm", 0}};
        },
        "the layer 'head' has 2 units"},
       {[](MappedModel* model) {
          model->networks[0] = network_of(spec_of(RnnMode::kGru), "lstm");
          model->layers[1].options.erase("initial_c");
        },
        "the layer 'lstm' has a gru"},
       {[](MappedModel* model) {
          model->layers.pop_back();
          model->outputs = {{"lstm", 0}};
        },
        "[save_networks] a file of NeuralAmpModeler has a head behind its LSTM, expected a dense "
        "layer of 1 unit behind the recurrent one"},
       {add(activation_of("end", "tanh")), "the layer 'end' has a place behind the head"},
       {add(dense_of("second", 1, 1)), "the layer 'second' has a place behind the head"},
       {option(1, "initial_h", std::vector<double>(4, 0.5)),
        "[layers] the layer 'lstm' (recurrent) has 4 values of initial_h, expected 5 or none"}});
}

}  // namespace
}  // namespace openrnn
