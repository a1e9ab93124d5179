// What we write of Keras's models word for word, and the attribute by which layers are networks.
#include <gtest/gtest.h>
#include <openrnn/mapping_keras.h>

#include "mapping/keras/keras_text.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

using formats::TempFolder;

std::string text_in(const std::string& path, const std::string& name) {
  const ModelFile file(path);
  for (const NamedValue& value : file.values()) {
    const auto* const text = std::get_if<std::string>(&value.value);
    if (value.name == name && text) return *text;
  }
  return "none";
}

std::string written(const MappedModel& model, const std::string& name = "model_config",
                    ModelFormat format = ModelFormat::kKerasH5) {
  const TempFolder folder;
  save_networks(folder / "m", model, format);
  return text_in(folder / "m", name);
}

std::string functional(const std::string& layers, const std::string& in, const std::string& out) {
  return message(R"({"module":"keras.src.models.functional","class_name":"Functional","config":)",
                 R"({"name":"networks","trainable":true,"layers":[)", layers,
                 R"(],"input_layers":)", in, R"(,"output_layers":)", out,
                 R"(},"registered_name":null})");
}

std::string node(const std::string& type, const std::string& name, const std::string& config,
                 const std::string& from) {
  return message(R"({"module":"keras.layers","class_name":")", type, R"(","config":{)", config,
                 R"(},"registered_name":null,"name":")", name, R"(","inbound_nodes":)", from, "}");
}

MappedNetwork gru_of_both() {
  return network_of({.mode = RnnMode::kGru,
                     .num_units = 4,
                     .input_size = 3,
                     .direction = Direction::kBidirectional,
                     .dtype = DType::kFloat64},
                    "b");
}

MappedNetwork lstm_of(std::int64_t layers, const std::string& name = "l") {
  return network_of({.num_layers = layers, .num_units = 5, .input_size = 8, .single_bias = true},
                    name);
}

MappedModel model_of(std::vector<MappedNetwork> networks) {
  MappedModel model;
  model.networks = std::move(networks);
  return model;
}

TEST(KerasWritten, TheConfigurationOfNetworks) {
  const std::string input =
      node("InputLayer", "b_input",
           R"("batch_shape":[null,null,3],"dtype":"float64","name":"b_input")", "[]");
  const std::string options =
      R"("dtype":"float64","return_sequences":true,"return_state":false,"go_backwards":false,)"
      R"("stateful":false,"unroll":false,"units":4,"activation":"tanh","use_bias":true,)"
      R"("dropout":0.0,"recurrent_dropout":0.0,"recurrent_activation":"sigmoid",)"
      R"("reset_after":true)";
  const std::string inner =
      message(R"({"module":"keras.layers","class_name":"GRU","config":{"name":"forward_b",)",
              R"("trainable":true,)", options, R"(},"registered_name":null})");
  EXPECT_EQ(written(model_of({gru_of_both()})),
            functional(input + "," +
                           node("Bidirectional", "b",
                                message(R"("name":"b","trainable":true,"dtype":"float64",)",
                                        R"("merge_mode":"concat","layer":)", inner),
                                R"([[["b_input",0,0,{}]]])"),
                       R"([["b_input",0,0]])", R"([["b",0,0]])"));
  RnnSpec bare{.mode = RnnMode::kRnnTanh, .num_units = 2, .input_size = 1, .use_bias = false};
  const std::string plain =
      R"("dtype":"float32","return_sequences":true,"return_state":false,"go_backwards":false,)"
      R"("stateful":false,"unroll":false,"units":2,"activation":"tanh","use_bias":false,)"
      R"("dropout":0.0,"recurrent_dropout":0.0)";
  EXPECT_NE(written(model_of({network_of(bare, "s")}))
                .find(node("SimpleRNN", "s", R"("name":"s","trainable":true,)" + plain,
                           R"([[["s_input",0,0,{}]]])")),
            std::string::npos);
}

TEST(KerasWritten, WhatTheFilesSayOfThemselves) {
  const MappedModel model = model_of({lstm_of(2)});
  for (const char* where : {"", "model_weights/"}) {
    EXPECT_EQ(written(model, std::string(where) + "keras_version"), "3.0.0");
    EXPECT_EQ(written(model, std::string(where) + "backend"), "tensorflow");
  }
  for (const ModelFormat format :
       {ModelFormat::kKerasH5, ModelFormat::kKerasWeights, ModelFormat::kKeras}) {
    EXPECT_EQ(written(model, "openrnn_networks", format), R"({"l":["l_0","l_1"]})");
    EXPECT_EQ(written(model_of({lstm_of(1)}), "openrnn_networks", format), "none");
  }
  EXPECT_EQ(written(model, "metadata.json", ModelFormat::kKeras),
            R"({"keras_version": "3.0.0", "date_saved": "1980-01-01@00:00:00"})");
  EXPECT_EQ(written(model, "layers/lstm_1/vars/name", ModelFormat::kKerasWeights), "l_1");
  // Names that a layer cannot have.
  EXPECT_EQ(written(model_of({lstm_of(1, "a/b-c d"), lstm_of(1, "a.b-c_d"), lstm_of(1, "_x")}),
                    "openrnn_networks"),
            R"({"a/b-c d":["a.b-c_d"],"a.b-c_d":["a.b-c_d_1"],"_x":["rnn_x"]})");
}

// A chain of every option that a recurrent layer of a file has.
MappedModel chain_of(std::map<std::string, PlainValue> options, std::int64_t layers = 1) {
  MappedModel model = model_of({lstm_of(layers)});
  options["network"] = std::string("l");
  model.layers = {
      {.name = "in/x",
       .kind = "input",
       .options = {{"shape", std::vector<std::int64_t>{-1, 6, 8}}}},
      {.name = "r", .kind = "recurrent", .inputs = {{"in/x", 0}}, .options = std::move(options)}};
  model.outputs = {{"r", 0}};
  return model;
}

TEST(KerasWritten, TheConfigurationOfLayers) {
  const std::string text = written(chain_of({{"return_sequences", false},
                                             {"return_state", true},
                                             {"reverse", true},
                                             {"stateful", true},
                                             {"zero_output_for_mask", true},
                                             {"trainable", false}}));
  const std::string lstm =
      node("LSTM", "r",
           R"("name":"r","trainable":false,"dtype":"float32","return_sequences":false,)"
           R"("return_state":true,"go_backwards":true,"stateful":true,"unroll":false,"units":5,)"
           R"("activation":"tanh","use_bias":true,"dropout":0.0,"recurrent_dropout":0.0,)"
           R"("recurrent_activation":"sigmoid","zero_output_for_mask":true)",
           R"([[["in.x",0,0,{}]]])");
  EXPECT_EQ(text,
            functional(node("InputLayer", "in.x",
                            R"("batch_shape":[null,6,8],"dtype":"float32","name":"in.x")", "[]") +
                           "," + lstm,
                       R"([["in.x",0,0]])", R"([["r",0,0]])"));
  // Of several layers all but the last hand on their steps.
  const std::string two = written(chain_of({{"return_sequences", false}}, 2));
  EXPECT_NE(two.find(R"("name":"r_0","trainable":true,"dtype":"float32","return_sequences":true)"),
            std::string::npos);
  EXPECT_NE(two.find(R"("name":"r_1","trainable":true,"dtype":"float32","return_sequences":false)"),
            std::string::npos);
  EXPECT_NE(two.find(R"([[["r_0",0,0,{}]]])"), std::string::npos);
  EXPECT_NE(two.find(R"("output_layers":[["r_1",0,0]])"), std::string::npos);
  // Both directions have what is merged, and what is trained.
  for (const auto& [merge, written_as] : {std::pair("ave", "\"ave\""), {"none", "null"}}) {
    MappedModel both = model_of({gru_of_both()});
    both.layers = {
        {.name = "x",
         .kind = "input",
         .options = {{"shape", std::vector<std::int64_t>{-1, -1, 3}}, {"dtype", "float64"}}},
        {.name = "r",
         .kind = "recurrent",
         .inputs = {{"x", 0}},
         .options = {{"network", "b"}, {"merge", merge}, {"trainable", false}}}};
    both.outputs = {{"r", 0}};
    const std::string config = written(both);
    EXPECT_NE(config.find(message(R"("config":{"name":"r","trainable":false,"dtype":"float64",)",
                                  R"("merge_mode":)", written_as, R"(,"layer":)")),
              std::string::npos)
        << config;
    EXPECT_NE(config.find(R"("batch_shape":[null,null,3],"dtype":"float64")"), std::string::npos);
  }
}

MappedModel with_layer(MappedLayer layer, DType dtype = DType::kFloat32, Shape shape = {-1, 6, 8}) {
  MappedModel model = model_of({lstm_of(1)});
  layer.name = "e";
  layer.inputs = {{"x", 0}};
  model.layers = {{.name = "x",
                   .kind = "input",
                   .options = {{"shape", shape}, {"dtype", std::string(dtype_name(dtype))}}},
                  std::move(layer)};
  model.outputs = {{"e", 0}};
  return model;
}

TEST(KerasWritten, OtherLayers) {
  const DType real = DType::kFloat64;
  const auto activation = [](const char* name) {
    return MappedLayer{.kind = "activation", .options = {{"activation", name}}};
  };
  const Array kernel = values_of(real, {8, 2}, 1), words = values_of(real, {9, 3}, 2);
  const std::pair<MappedModel, std::string> cases[] = {
      {with_layer(
           {.kind = "dense",
            .options = {{"units", std::int64_t{2}}, {"use_bias", false}, {"trainable", false}},
            .weights = {{"kernel", kernel}}},
           real),
       R"("config":{"name":"e","trainable":false,"dtype":"float64","units":2,)"
       R"("activation":"linear","use_bias":false})"},
      {with_layer({.kind = "embedding",
                   .options = {{"vocabulary", std::int64_t{9}},
                               {"dim", std::int64_t{3}},
                               {"mask_zero", true},
                               {"dtype", "float64"}},
                   .weights = {{"embeddings", words}}},
                  DType::kInt32, {-1, -1}),
       R"("config":{"name":"e","trainable":true,"dtype":"float64","input_dim":9,"output_dim":3,)"
       R"("mask_zero":true})"},
      {with_layer({.kind = "concat", .options = {{"axis", std::int64_t{1}}}}), R"("axis":1)"},
      {with_layer(activation("hard_silu(0.16666666666666666,0.5)")), R"("activation":"hard_silu")"},
      {with_layer(activation("selu")), R"("activation":"selu")"},
      {with_layer(activation("exponential")), R"("activation":"exponential")"},
      {with_layer(activation("elu(1)")), R"("class_name":"Activation")"},
      {with_layer(activation("elu(0.5)")), R"("alpha":0.5)"},
      {with_layer(activation("leaky_relu(0.2)")), R"("activation":"leaky_relu")"},
      {with_layer(activation("leaky_relu(0.25)")), R"("negative_slope":0.25)"},
      {with_layer(activation("clip(0,6)")), R"("activation":"relu6")"},
      {with_layer(activation("clip(0,5)")), R"("max_value":5.0)"},
  };
  for (const auto& [model, expected] : cases) {
    const std::string text = written(model);
    EXPECT_NE(text.find(expected), std::string::npos) << expected << "\n" << text;
  }
}

TEST(KerasWritten, LayersWithoutWeights) {
  struct Written {
    MappedLayer layer;
    std::string type, options;
    Shape shape = {-1, 6, 8};
  };
  const Written cases[] = {
      {{.kind = "masking", .options = {{"mask_value", 0.25}}}, "Masking", R"(,"mask_value":0.25)"},
      {{.kind = "dropout", .options = {{"rate", 0.25}}}, "Dropout", R"(,"rate":0.25)"},
      {{.kind = "reshape", .options = {{"shape", std::vector<std::int64_t>{-1, 4}}}},
       "Reshape",
       R"(,"target_shape":[-1,4])"},
      {{.kind = "repeat", .options = {{"count", std::int64_t{3}}}},
       "RepeatVector",
       R"(,"n":3)",
       {-1, 8}},
      {{.kind = "time_mean"}, "GlobalAveragePooling1D", ""},
      {{.kind = "add"}, "Add", ""},
      {{.kind = "multiply"}, "Multiply", ""},
      {{.kind = "average"}, "Average", ""},
  };
  for (const Written& one : cases) {
    const std::string text = written(with_layer(one.layer, DType::kFloat32, one.shape));
    const std::string expected =
        node(one.type, "e", R"("name":"e","trainable":true,"dtype":"float32")" + one.options,
             R"([[["x",0,0,{}]]])");
    EXPECT_NE(text.find(expected), std::string::npos) << expected << "\n" << text;
  }
}

TEST(KerasWritten, WhatLayersCannotBe) {
  const TempFolder folder;
  const auto refused = [&](const MappedModel& model, const std::string& what,
                           ModelFormat format = ModelFormat::kKerasH5,
                           const char* name = "a Keras .h5 file") {
    expect_error<UnsupportedError>(
        [&] { save_networks(folder / "m", model, format); },
        message("[save_networks] ", what, ", which ", name, " cannot hold"));
    EXPECT_TRUE(folder.names().empty());
  };
  const auto activation = [](const char* kind, const char* name) {
    MappedLayer layer{.kind = kind, .options = {{"activation", name}}};
    if (layer.kind == "dense") {
      layer.options["units"] = std::int64_t{2};
      layer.weights = {{"kernel", array_of({8, 2})}, {"bias", array_of({2})}};
    }
    return with_layer(std::move(layer));
  };
  for (const char* name : {"hard_sigmoid(0.2,0.5)", "hard_sigmoid(0.16666666666666666,0.25)",
                           "clip(-1,6)", "clip(-1,5)", "gelu_tanh"}) {
    refused(activation("activation", name), message("the layer 'e' has the activation ", name));
  }
  for (const char* name : {"elu(0.5)", "leaky_relu(0.25)", "clip(0,5)"}) {
    refused(activation("dense", name), message("the layer 'e' has the activation ", name));
  }
  refused(chain_of({{"uses_mask", false}}), "the layer 'r' has uses_mask false");
  refused(chain_of({{"reverse", true}}, 2), "the layer 'r' has reverse of several layers");
  MappedModel twice = chain_of({});
  twice.networks[0] = network_of({.num_units = 8, .input_size = 8, .single_bias = true}, "l");
  twice.layers.push_back(twice.layers[1]);
  twice.layers[2].name = "again";
  twice.layers[2].inputs = {{"r", 0}};
  twice.outputs = {{"again", 0}};
  refused(twice, "the layer 'again' has the network of another layer");
  RnnSpec spec = lstm_of(1).spec;
  spec.activation = parse_cell_activation("relu");
  const MappedModel relu = model_of({network_of(spec, "n")});
  refused(relu, "the network 'n' has activation relu and output_activation tanh");
  const auto weights = ModelFormat::kKerasWeights;
  const char* const of_weights = "a Keras .weights.h5 file";
  refused(relu, "the network 'n' has activation relu", weights, of_weights);
  refused(model_of({network_of({.mode = RnnMode::kRnnRelu, .num_units = 2, .input_size = 2}, "n")}),
          "the network 'n' has relu", weights, of_weights);
  MappedModel begun = model_of({lstm_of(1)});
  begun.networks[0].initial_c = Array(DType::kFloat32, {1, 5});
  refused(begun, "the network 'l' has initial states", ModelFormat::kKeras, "a .keras file");
  // What weights alone hold: forget_bias is added to a bias, the form of a GRU is in its arrays.
  spec = lstm_of(1).spec;
  spec.forget_bias = 1.0;
  save_networks(folder / "w", model_of({network_of(spec, "n")}), weights);
}

TEST(KerasWritten, TheAttributeOfNetworks) {
  const auto loaded_with = [](const std::string& attribute, const std::string& second = "k") {
    LayerTensors other = cell_of(second == "k" ? 4 : 3, {second == "k" ? 12 : 9});
    return loaded({.version = "2.4.0",
                   .layers = {{"l", cell_of(4, {12})}, {second, other}, {"m", cell_of(4, {12})}},
                   .values = {{"openrnn_networks", attribute}}});
  };
  const MappedModel joined = loaded_with(R"({"n": ["l", "k"]})");
  ASSERT_EQ(joined.networks.size(), 2U);
  EXPECT_EQ(joined.networks[0].name, "n");
  EXPECT_EQ(joined.networks[0].spec.num_layers, 2);
  EXPECT_EQ(joined.networks[0].tensors.size(), 6U);
  EXPECT_EQ(joined.networks[1].name, "m");
  const auto error = [&](const std::string& attribute, const std::string& second = "k") {
    return error_of<FormatError>([&] { loaded_with(attribute, second); });
  };
  for (const char* attribute : {"{", "7", "[]", R"({"n": 7})", R"({"n": [7]})", R"(["l"])"}) {
    const std::string found = error(attribute);
    EXPECT_TRUE(found.ends_with("openrnn_networks is no object of lists, expected one")) << found;
    EXPECT_NE(found.find("m.h5"), std::string::npos);
  }
  for (const char* attribute :
       {R"({"n": []})", R"({"n": ["l", "l"]})", R"({"n": ["nothing"]})", R"({"n": ["l", "g"]})"}) {
    const std::string found = error(attribute, "g");
    EXPECT_TRUE(found.ends_with("openrnn_networks has layers that make no network")) << found;
    EXPECT_NE(found.find("m.h5"), std::string::npos);
  }
}

// The layers around networks that are joined, or none where they are not one behind the other.
TEST(KerasWritten, LayersOfNetworksThatAreJoined) {
  const auto layers_of = [](const std::string& first, const std::string& between,
                            const std::string& last, const char* attribute) {
    const auto lstm = [](const char* name, const std::string& options) {
      return layer_text("LSTM", name, R"("recurrent_activation": "sigmoid")" + options);
    };
    return loaded({.config = sequential(lstm("l", first) + ", " + between + lstm("k", last)),
                   .layers = {{"l", cell_of(4, {12})}, {"k", cell_of(4, {12})}},
                   .values = {{"openrnn_networks", std::string(attribute)}}})
        .layers;
  };
  const std::string steps = R"(, "return_sequences": true)";
  const char* const both = R"({"n": ["l", "k"]})";
  const std::vector<MappedLayer> joined = layers_of(steps, "", "", both);
  ASSERT_EQ(joined.size(), 2U);
  EXPECT_EQ(joined[1].name, "k");
  EXPECT_EQ(joined[1].inputs, (std::vector<LayerOutput>{{"x", 0}}));
  EXPECT_EQ(layer_option_as<std::string>(joined[1], "network"), "n");
  EXPECT_TRUE(layers_of(steps, "", R"(, "go_backwards": true)", both).empty());
  EXPECT_TRUE(layers_of(steps, "", R"(, "return_state": true)", both).empty());
  EXPECT_TRUE(layers_of(steps, layer_text("ReLU", "r") + ", ", "", both).empty());
  EXPECT_TRUE(layers_of(steps, "", "", R"({"n": ["k", "l"]})").empty());
  // One layer may be what several may not.
  const auto alone = layers_of(R"(, "go_backwards": true)" + steps, "", "", R"({"n": ["l"]})");
  ASSERT_EQ(alone.size(), 3U);
  EXPECT_EQ(layer_option_as<std::string>(alone[1], "network"), "n");
}

TEST(KerasWritten, SlotsThatDoNotFit) {
  const auto model_of_slots = [](std::vector<Array> slots) {
    KerasText text{.config = sequential(layer_text("LSTM", "l")),
                   .layers = {{"l", cell_of(4, {12})}}};
    for (const char* counter : {"adam/iteration", "adam/learning_rate"}) {
      text.optimizer.emplace_back(counter, array_of({1}));
    }
    for (std::size_t i = 0; i < slots.size(); ++i) {
      text.optimizer.emplace_back(message("adam/v", i), std::move(slots[i]));
    }
    return loaded(text);
  };
  const auto six = [](DType dtype, const Shape& kernel) {
    std::vector<Array> slots;
    for (const Shape& shape : {kernel, kernel, Shape{3, 12}, Shape{3, 12}, Shape{12}, Shape{12}}) {
      slots.push_back(values_of(dtype, shape, slots.size()));
    }
    return slots;
  };
  const MappedModel whole = model_of_slots(six(DType::kFloat32, {3, 12}));
  EXPECT_EQ(whole.networks.at(0).slots.size(), 2U);
  EXPECT_EQ(whole.not_understood,
            (std::vector<std::string>{"optimizer_weights/adam/iteration",
                                      "optimizer_weights/adam/learning_rate"}));
  std::vector<Array> five = six(DType::kFloat32, {3, 12});
  five.pop_back();
  const std::pair<MappedModel, const char*> cases[] = {
      {model_of_slots(six(DType::kFloat32, {12, 3})), "8"},
      {model_of_slots(six(DType::kFloat64, {3, 12})), "8"},
      {model_of_slots(std::move(five)), "7"}};
  for (const auto& [model, count] : cases) {
    EXPECT_TRUE(model.networks.at(0).slots.empty());
    EXPECT_EQ(
        model.notes.back(),
        message("the ", count, " variables of the optimizer 'adam' are not read: they are not ",
                "those of 3 trainable variables as it is known to have"));
  }
}

TEST(KerasWritten, ErrorsOfTheCanonicalForm) {
  const RnnSpec spec{.num_layers = 2, .num_units = 2, .input_size = 3, .single_bias = true};
  std::vector<Array> arrays;
  for (const Shape& shape : {Shape{3, 8}, {2, 8}, {8}, {2, 8}, {2, 8}, {8}}) {
    arrays.push_back(array_of(shape));
  }
  const auto of = [&](std::size_t count) {
    std::vector<ConstArrayView> views;
    for (std::size_t i = 0; i < count; ++i) views.push_back(arrays[i].view());
    return canonical_from_keras(spec, views);
  };
  EXPECT_EQ(of(6).weights.size(), 16U);
  expect_error<ArgumentError>([&] { of(5); }, "[canonical_from_keras] 5 arrays, expected 6");
  arrays[4] = array_of({8, 2});
  expect_error<ArgumentError>(
      [&] { of(6); }, "[canonical_from_keras] array 4 is float32 [8, 2], expected float32 [2, 8]");
  arrays[4] = values_of(DType::kFloat64, {2, 8}, 1);
  expect_error<ArgumentError>(
      [&] { of(6); }, "[canonical_from_keras] array 4 is float64 [2, 8], expected float32 [2, 8]");
  const RnnSpec two{.num_units = 2, .input_size = 3};
  const RnnSpec one{.mode = RnnMode::kGru, .num_units = 2, .input_size = 3, .single_bias = true};
  RnnSpec peepholes = spec;
  peepholes.use_peepholes = true;
  const std::string lacks = "] the network has use_peepholes true, which Keras cannot hold";
  const auto said = [](const char* call, int has, int expected) {
    return message("[", call, "] the network has ", has,
                   " biases a gate, which Keras cannot hold, expected ", expected);
  };
  expect_error<UnsupportedError>([&] { canonical_from_keras(two, {}); },
                                 said("canonical_from_keras", 2, 1));
  expect_error<UnsupportedError>([&] { keras_from_canonical(one, {}, {}); },
                                 said("keras_from_canonical", 1, 2));
  expect_error<UnsupportedError>([&] { canonical_from_keras(peepholes, {}); },
                                 "[canonical_from_keras" + lacks);
  expect_error<UnsupportedError>([&] { keras_from_canonical(peepholes, {}, {}); },
                                 "[keras_from_canonical" + lacks);
}

}  // namespace
}  // namespace openrnn
