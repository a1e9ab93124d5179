// What saving and loading refuse, word for word: every name, figure and dtype that a message gives.
#include <gtest/gtest.h>
#include <openrnn/mapping_onnx.h>

#include <cmath>

#include "base/message.h"
#include "formats/temp_folder.h"
#include "mapping/networks.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

using formats::TempFolder;
using Sizes = std::vector<std::int64_t>;

const RnnSpec kSpec{.num_units = 5, .input_size = 3, .num_proj = 2};
const RnnSpec kLstm{.num_units = 5, .input_size = 3, .single_bias = true};

MappedModel model_of(std::vector<MappedNetwork> networks) {
  MappedModel model;
  model.networks = std::move(networks);
  return model;
}

template <class Exception>
void expect_refused(const MappedModel& model, ModelFormat format, const std::string& why) {
  const TempFolder folder;
  expect_error<Exception>([&] { save_networks(folder / "m", model, format); },
                          "[save_networks] " + why);
  EXPECT_TRUE(folder.names().empty());
}

// An input of width 3, then these, each behind the one before.
MappedModel chain_of(std::vector<MappedLayer> layers, std::vector<MappedNetwork> networks = {},
                     DType dtype = DType::kFloat32, Sizes shape = {-1, -1, 3}) {
  if (networks.empty()) networks = {network_of(kLstm, "n")};
  MappedModel model = model_of(std::move(networks));
  model.layers = {{.name = "x",
                   .kind = "input",
                   .options = {{"shape", shape}, {"dtype", std::string(dtype_name(dtype))}}}};
  for (MappedLayer& layer : layers) {
    layer.inputs = {{model.layers.back().name, 0}};
    model.layers.push_back(std::move(layer));
  }
  model.outputs = {{model.layers.back().name, 0}};
  return model;
}

MappedLayer rnn(const char* name = "r", std::map<std::string, PlainValue> options = {}) {
  options.emplace("network", std::string("n"));
  return {.name = name, .kind = "recurrent", .options = std::move(options)};
}

MappedLayer dense(std::int64_t width, std::int64_t units, const char* activation = "linear",
                  DType dtype = DType::kFloat32) {
  return {.name = "d",
          .kind = "dense",
          .options = {{"units", units}, {"activation", activation}},
          .weights = {{"kernel", values_of(dtype, {width, units}, 1)},
                      {"bias", values_of(dtype, {units}, 2)}}};
}

TEST(Refused, NetworksThatDoNotFitTheirSpec) {
  const auto changed = [](auto change, const RnnSpec& spec = kSpec) {
    MappedNetwork network = network_of(spec, "n");
    change(network);
    return model_of({std::move(network)});
  };
  const auto f32 = DType::kFloat32;
  const std::pair<MappedModel, std::string> cases[] = {
      {model_of({}), "the model has no network, expected at least one"},
      {model_of({network_of(kSpec, "n"), network_of(kSpec, "n")}),
       "the network 'n' is there twice, expected names that differ"},
      {model_of({network_of(kSpec), network_of(kSpec)}),
       "the network is there twice, expected names that differ"},
      {changed([&](auto& n) { n.slots.emplace("s", values_of(f32, {151}, 1)); }),
       "the slot 's' of the network 'n' has 151 elements, expected 150"},
      {changed([&](auto& n) { n.slots.emplace("s", values_of(f32, {7}, 1)); }),
       "the slot has 7 elements, expected at least 150 for " + describe(kSpec)},
      {changed([&](auto& n) {
         n.initial_h = values_of(f32, {1, 5}, 1);
       }),
       "initial_h of the network 'n' is float32 [1, 5], expected float32 [1, 2]"},
      {changed([&](auto& n) {
         n.initial_h = values_of(DType::kFloat64, {1, 2}, 1);
       }),
       "initial_h of the network 'n' is float64 [1, 2], expected float32 [1, 2]"},
      {changed([&](auto& n) {
         n.initial_c = values_of(f32, {1, 2}, 1);
       }),
       "initial_c of the network 'n' is float32 [1, 2], expected float32 [1, 5]"},
      {changed(
           [&](auto& n) {
             n.initial_c = values_of(f32, {1, 5}, 1);
           },
           {.mode = RnnMode::kRnnRelu, .num_units = 5, .input_size = 3}),
       "the network 'n' has initial_c, expected none of rnn_relu"}};
  for (const auto& [model, why] : cases) {
    for (const ModelFormat format : {ModelFormat::kOpenrnn, ModelFormat::kTorch}) {
      expect_refused<ArgumentError>(model, format, why);
    }
  }
  // What fits is written: a projected h is narrower than c.
  MappedModel fits = changed([&](auto& n) {
    n.initial_h = values_of(f32, {1, 2}, 1);
    n.initial_c = values_of(f32, {1, 5}, 1);
  });
  const TempFolder folder;
  save_networks(folder / "m", fits, ModelFormat::kOpenrnn);
  fits.networks[0].slots.emplace("s", Array(DType::kInt32, {params_size(kSpec)}));
  EXPECT_EQ(
      error_of<ArgumentError>([&] { save_networks(folder / "n", fits, ModelFormat::kOpenrnn); }),
      "[save_networks] the slot is int32, expected float16, bfloat16, float32 or float64");
}

TEST(Refused, LayersThatDoNotFit) {
  for (const char* kind : {"dense", "embedding"}) {
    MappedLayer bare{.name = "w", .kind = kind};
    const bool is_dense = bare.kind == "dense";
    bare.options = is_dense ? std::map<std::string, PlainValue>{{"units", std::int64_t{2}}}
                            : std::map<std::string, PlainValue>{{"vocabulary", std::int64_t{2}},
                                                                {"dim", std::int64_t{2}}};
    expect_refused<ArgumentError>(chain_of({bare}, {}, is_dense ? DType::kFloat32 : DType::kInt32),
                                  ModelFormat::kOpenrnn,
                                  "the layer 'w' has no weights, expected them");
  }
  MappedModel model = chain_of({rnn()});
  model.outputs = {{"none", 0}};
  const TempFolder folder;
  expect_error<ArgumentError>([&] { save_networks(folder / "m", model, ModelFormat::kOpenrnn); },
                              "[layers] output 0 of 'none' is none of a layer of the model, "
                              "expected one");
}

// States that a layer begins with are written as those of its network.
TEST(Refused, StatesOfLayersGoWithTheirDtype) {
  const TempFolder folder;
  RnnSpec spec = kLstm;
  spec.dtype = DType::kFloat64;
  spec.num_layers = 2;
  std::vector<double> h, c;
  for (int i = 0; i < 10; ++i) {
    h.push_back(i / 7.0);
    c.push_back(-i / 9.0);
  }
  const MappedModel model = chain_of({rnn("r", {{"initial_h", h}, {"initial_c", c}})},
                                     {network_of(spec, "n")}, DType::kFloat64);
  save_networks(folder / "m", model, ModelFormat::kOnnx);
  const MappedNetwork found = load_networks(folder / "m").networks.at(0);
  EXPECT_TRUE(same_bytes(*found.initial_h, Array::of<double>({2, 5}, h)));
  EXPECT_TRUE(same_bytes(*found.initial_c, Array::of<double>({2, 5}, c)));
  EXPECT_FALSE(model.networks[0].initial_h);
}

TEST(Refused, FormatsAndFilesWithoutNetworks) {
  expect_error<ArgumentError>(
      [] { parse_model_format("caffe"); },
      "[parse_model_format] 'caffe', expected one of openrnn, safetensors, torch, onnx, keras, "
      "keras_weights, keras_h5, tensorflow and 3 more");
  expect_error<ArgumentError>(
      [] { model_format_of("b.doc"); },
      "[model_format_of] the name 'b.doc' says no format, expected one of .openrnn, .safetensors, "
      ".pt, .pth, .bin, .ckpt, .onnx, .keras and 7 more");
  expect_error<ArgumentError>([] { to_string(static_cast<ModelFormat>(99)); },
                              "[save_networks] the format is no ModelFormat");
  const TempFolder folder;
  const Array array = values_of(DType::kFloat32, {3}, 1);
  const NamedView tensors[] = {{"a/b", array.view()}};
  write_hdf5(folder / "m", tensors);
  const std::string what = identify_file(folder / "m").what;
  expect_error<UnsupportedError>(
      [&] { load_networks(folder / "m"); },
      message("[load_networks] ", folder / "m", " is ", what, ", of which no networks are made"));
  save_networks(folder / "n", model_of({network_of(kLstm)}), ModelFormat::kOnnx);
  EXPECT_EQ(load_networks(folder / "n").what, identify_file(folder / "n").what);
}

TEST(Refused, OptionsThatAFormatCannotHold) {
  RnnSpec two = kSpec;
  two.use_peepholes = true;
  two.cell_clip = {{-1.0, 2.0}};
  const TempFolder folder;
  const std::string held = error_of<UnsupportedError>(
      [&] { save_networks(folder / "m", model_of({network_of(two, "n")}), ModelFormat::kTorch); });
  EXPECT_TRUE(held.find("use_peepholes true") != std::string::npos &&
              held.find("cell_clip") != std::string::npos && held.find(", ") != std::string::npos)
      << held;
  RnnSpec peepholes = kSpec;
  peepholes.use_peepholes = true;
  for (const auto& [format, name] :
       {std::pair(ModelFormat::kSafetensors, "a safetensors file of PyTorch's names"),
        {ModelFormat::kNpz, "an npz archive of PyTorch's names"},
        {ModelFormat::kTorch, "a state_dict of PyTorch"}}) {
    expect_refused<UnsupportedError>(
        model_of({network_of(peepholes, "n")}), format,
        message("the network 'n' has use_peepholes true, which ", name, " cannot hold"));
  }
  MappedModel begun = model_of({network_of(kLstm, "n")});
  begun.networks[0].initial_c = values_of(DType::kFloat32, {1, 5}, 1);
  expect_refused<UnsupportedError>(
      begun, ModelFormat::kTensorflow,
      "the network 'n' has states to begin with, which a TensorFlow checkpoint cannot hold");
  begun.networks[0].initial_c.reset();
  begun.networks[0].initial_h = values_of(DType::kFloat32, {1, 5}, 1);
  expect_refused<UnsupportedError>(
      begun, ModelFormat::kTensorflow,
      "the network 'n' has states to begin with, which a TensorFlow checkpoint cannot hold");
  RnnSpec gru{.mode = RnnMode::kGru, .num_units = 5, .input_size = 3, .num_proj = 2};
  const std::string projects =
      "] the network has num_proj 2 for gru, which PyTorch cannot hold: it projects an lstm only";
  expect_error<UnsupportedError>([&] { torch_parameters(gru); }, "[torch_parameters" + projects);
  RnnSpec clip = kLstm;
  for (const std::array<double, 2> range : {std::array{-1.0, 2.0}, std::array{-2.0, 1.0}}) {
    clip.gate_clip = range;
    expect_refused<UnsupportedError>(
        model_of({network_of(clip, "n")}), ModelFormat::kOnnx,
        message("the network 'n' has gate_clip (", range[0], ", ", range[1],
                "), which an ONNX model cannot hold: its clip is of both sides"));
  }
  expect_refused<ArgumentError>(
      model_of({network_of(kLstm, "a\nb")}), ModelFormat::kOnnx,
      "the names of the networks make 'a\\012b/x' twice or not printable, expected other names");
}

TEST(Refused, CanonicalTensorsOfPyTorchAndOnnx) {
  RnnSpec plain{.num_units = 2, .input_size = 3};
  const Array wrong = values_of(DType::kFloat64, {8, 3}, 1),
              right = values_of(DType::kFloat32, {8, 3}, 1);
  const std::vector<ConstArrayView> four(4, wrong.view());
  expect_error<ArgumentError>(
      [&] { canonical_from_torch(plain, four); },
      "[canonical_from_torch] weight_ih_l0 is float64 [8, 3], expected float32 [8, 3]");
  const std::vector<ConstArrayView> second{right.view(), right.view(), right.view(), right.view()};
  expect_error<ArgumentError>(
      [&] { canonical_from_torch(plain, second); },
      "[canonical_from_torch] weight_hh_l0 is float32 [8, 3], expected float32 [8, 2]");
  expect_error<ArgumentError>(
      [&] { canonical_from_torch(plain, std::span(four).first(3)); },
      "[canonical_from_torch] 3 tensors, expected 4, from weight_ih_l0 to bias_hh_l0");
  expect_error<ArgumentError>(
      [&] { canonical_from_onnx(plain, four); },
      "[canonical_from_onnx] tensor 0 of 4 does not fit, expected float32 [1, 8, 3]");
  const Array w = values_of(DType::kFloat32, {1, 8, 3}, 1),
              r = values_of(DType::kFloat32, {1, 8, 2}, 2),
              b = values_of(DType::kFloat32, {1, 16}, 3);
  const std::vector<ConstArrayView> all{w.view(), r.view(), b.view(), b.view()};
  EXPECT_EQ(canonical_from_onnx(plain, std::span(all).first(3)).weights.size(), 8U);
  expect_error<ArgumentError>([&] { canonical_from_onnx(plain, all); },
                              "[canonical_from_onnx] there are 4 tensors, expected 3");
  expect_error<ArgumentError>(
      [&] { canonical_from_onnx(plain, std::span(all).first(2)); },
      "[canonical_from_onnx] tensor 2 of 2 does not fit, expected float32 [1, 16]");
  const Array wide = values_of(DType::kFloat64, {1, 8, 3}, 1);
  for (const Array* first : {&wide, &r}) {
    const std::vector<ConstArrayView> given{first->view(), r.view(), b.view()};
    expect_error<ArgumentError>(
        [&] { canonical_from_onnx(plain, given); },
        "[canonical_from_onnx] tensor 0 of 3 does not fit, expected float32 [1, 8, 3]");
  }
  plain.num_proj = 1;
  const std::string lacks =
      "] the network has num_proj 1, which the tensors of an ONNX operator cannot hold";
  expect_error<UnsupportedError>([&] { canonical_from_onnx(plain, all); },
                                 "[canonical_from_onnx" + lacks);
  expect_error<UnsupportedError>([&] { onnx_from_canonical(plain, {}, {}); },
                                 "[onnx_from_canonical" + lacks);
}

TEST(Refused, WhatRtneuralCannotHold) {
  const auto refused = [](const MappedModel& model, const std::string& what) {
    expect_refused<UnsupportedError>(model, ModelFormat::kRtneural,
                                     what + ", which a file of RTNeural cannot hold");
  };
  RnnSpec spec = kLstm;
  spec.direction = Direction::kBidirectional;
  refused(model_of({network_of(spec, "n")}), "the network 'n' is bidirectional");
  spec = kLstm;
  spec.dtype = DType::kFloat16;
  refused(model_of({network_of(spec, "n")}), "the network 'n' is float16");
  spec = kLstm;
  spec.mode = RnnMode::kRnnRelu;
  refused(model_of({network_of(spec, "n")}), "the network 'n' is rnn_relu");
  refused(model_of({network_of(kLstm, "m"), network_of(kLstm, "n")}),
          "the network 'n' has another input size than what is in front of it gives");
  MappedModel begun = model_of({network_of(kLstm, "n")});
  begun.networks[0].initial_c = values_of(DType::kFloat32, {1, 5}, 1);
  refused(begun, "the network 'n' has states to begin with");
  for (const float value : {INFINITY, -INFINITY}) {
    MappedModel infinite = model_of({network_of(kLstm, "n")});
    infinite.networks[0].params.as<float>()[3] = value;
    refused(infinite, message("a weight is ", value));
  }
  refused(chain_of({rnn("r", {{"return_sequences", false}})}),
          "the layer 'r' has return_sequences false");
  refused(chain_of({rnn("r", {{"return_state", true}})}), "the layer 'r' has return_state true");
  refused(chain_of({rnn("r", {{"reverse", true}})}), "the layer 'r' has reverse true");
  refused(chain_of({{.name = "o", .kind = "dropout"}}), "the layer 'o' has the kind dropout");
  refused(chain_of({rnn(), dense(5, 2, "selu")}), "the layer 'd' has the activation selu");
  refused(chain_of({rnn(), dense(5, 2, "elu(0.5)")}), "the layer 'd' has the activation elu(0.5)");
  refused(chain_of({dense(3, 2, "linear", DType::kFloat64)}, {}, DType::kFloat64),
          "the layer 'd' has the dtype float64");
  refused(chain_of({dense(3, 2)}, {}, DType::kFloat32, {-1, 3}),
          "the layer 'd' has an output of shape [-1, 2]");
  refused(chain_of({{.name = "a", .kind = "activation"}}, {}, DType::kFloat32, {-1, -1, -1}),
          "the layer 'a' has an output of shape [-1, -1, -1]");
  refused(chain_of({dense(3, 2)}), "the network 'n' is of no layer of the model");
  RnnSpec square = kLstm;
  square.num_units = 3;
  refused(chain_of({rnn("r"), rnn("s")}, {network_of(square, "n")}),
          "the layer 's' has the network of another layer");
  MappedModel two = chain_of({rnn("r"), dense(5, 2)});
  two.outputs = {{"r", 0}};
  refused(two, "the model has outputs other than its last layer's");
  two.outputs = {{"d", 0}, {"d", 0}};
  refused(two, "the model has outputs other than its last layer's");
  two.outputs = {{"d", 0}};
  two.layers[2].inputs = {{"x", 0}};
  two.layers[2].weights[0].values = values_of(DType::kFloat32, {3, 2}, 1);
  const std::string inputs = "the layer 'd' has inputs other than the layer before it";
  refused(two, inputs);
  // The state of the layer before it, of which only the outputs go on.
  MappedModel state = chain_of({rnn("r", {{"return_state", true}}), dense(5, 2)});
  state.layers[2].inputs = {{"r", 1}};
  refused(state, inputs);
}

TEST(Refused, WhatNamCannotHold) {
  const std::string lacks = ", which a file of NeuralAmpModeler cannot hold";
  const auto refused = [&](const MappedModel& model, const std::string& what) {
    expect_refused<UnsupportedError>(model, ModelFormat::kNam, what + lacks);
  };
  RnnSpec gru = kLstm;
  gru.mode = RnnMode::kGru;
  MappedLayer behind = dense(1, 1);
  behind.name = "b";
  refused(chain_of({rnn(), dense(5, 1), behind}), "the layer 'b' has a place behind the head");
  refused(chain_of({dense(3, 5), rnn()}, {network_of({.num_units = 5, .input_size = 5}, "n")}),
          "the layer 'd' has the kind dense in the place of the LSTM");
  refused(chain_of({rnn(), {.name = "a", .kind = "activation"}}),
          "the layer 'a' has the kind activation in the place of the head");
  refused(chain_of({rnn(), dense(5, 1)}, {network_of(gru, "n")}), "the layer 'r' has a gru");
  refused(chain_of({rnn(), dense(5, 2)}), "the layer 'd' has 2 units");
  refused(chain_of({rnn(), dense(5, 1, "tanh")}), "the layer 'd' has the activation tanh");
  const std::string expects =
      "a file of NeuralAmpModeler has a head behind its LSTM, expected a "
      "dense layer of 1 unit";
  expect_refused<ArgumentError>(chain_of({rnn()}), ModelFormat::kNam,
                                expects + " behind the recurrent one");
  const std::string values = ", or the value head.weight of 5 numbers and the value head.bias";
  MappedModel bare = model_of({network_of(kLstm, "n")});
  expect_refused<ArgumentError>(bare, ModelFormat::kNam, expects + values);
  bare.values = {{"head.weight", std::vector<double>(5)}};
  expect_refused<ArgumentError>(bare, ModelFormat::kNam, expects + values);
  bare.values = {{"head.weight", std::vector<double>(4)}, {"head.bias", 1.0}};
  expect_refused<ArgumentError>(bare, ModelFormat::kNam, expects + values);
  const auto count = [](int networks) {
    return message("there are ", networks, " networks or one that is no LSTM, of which ",
                   "a file of NeuralAmpModeler holds one");
  };
  expect_refused<UnsupportedError>(model_of({network_of(kLstm, "n"), network_of(kLstm, "m")}),
                                   ModelFormat::kNam, count(2));
  expect_refused<UnsupportedError>(model_of({network_of(gru, "n")}), ModelFormat::kNam, count(1));
}

// Files of others, and what the notes say of them.
TEST(Refused, NotesOfFilesInJson) {
  const TempFolder folder;
  const auto notes_of = [&](const std::string& name, const std::string& text) {
    formats::write_raw(folder / name, text);
    const MappedModel model = load_networks(folder / name);
    EXPECT_TRUE(model.networks.empty() && model.layers.empty());
    EXPECT_EQ(model.not_understood.empty(), text.find("weights") == std::string::npos);
    return model.notes;
  };
  using Notes = std::vector<std::string>;
  const auto nam = [](const char* architecture, int layers) {
    return message(R"({"version": "0.5.0", "architecture": ")", architecture,
                   R"(", "config": {"input_size": 1, "hidden_size": 2, "num_layers": )", layers,
                   R"(}, "weights": [1.0, 2.0, 3.0], "sample_rate": 48000})");
  };
  EXPECT_EQ(notes_of("a.nam", nam("WaveNet", 1)),
            Notes{"the architecture is 'WaveNet', no recurrent one"});
  // [W R] and biases of 4 gates of 2 units on 1 input, the states, and a head of 2 and 1.
  EXPECT_EQ(notes_of("b.nam", nam("LSTM", 1)),
            Notes{"the configuration of the LSTM asks for 39 weights, there are 3"});
  EXPECT_EQ(notes_of("c.nam", nam("LSTM", 0)),
            Notes{"the configuration of the LSTM asks for 0 weights, there are 3"});
  const auto rtneural = [](const std::string& layers) {
    return R"({"in_shape": [null, null, 1], "layers": [)" + layers + "]}";
  };
  const std::string alone = "the model is read as its networks alone: ";
  const std::string shape = R"("shape": [null, null, 1])";
  EXPECT_EQ(
      notes_of("d.json",
               rtneural(R"({"type": "lstm", "name": "mine", )" + shape +
                        R"(, "weights": [[[1, 2, 3, 4]], [[1, 2, 3, 4], [1, 2, 3, 4]]]})")),
      Notes{"no network was made from 'layers.0': its 2 arrays have not the shapes of a lstm"});
  EXPECT_EQ(
      notes_of("e.json", rtneural(R"({"type": "gru", )" + shape + R"(, "weights": [[1, 2]]})")),
      Notes{"no network was made from 'layers.0': its 1 arrays have not the shapes of a gru"});
  EXPECT_EQ(notes_of("f.json", rtneural(R"({"type": "dense", "name": "mine", )" + shape +
                                        R"(, "activation": "", "weights": [[[1], [2]], [1, 2]]})")),
            Notes{alone + "the 2 arrays of 'mine' have not the shapes of a dense layer"});
  EXPECT_EQ(notes_of("g.json", rtneural(R"({"type": "conv1d", "name": "mine", )" + shape +
                                        R"(, "activation": "", "weights": [[[1], [2]], [1, 2]]})")),
            Notes{alone + "'mine' is of the type 'conv1d', which is not computed here"});
  EXPECT_EQ(
      notes_of("h.json", rtneural(R"({"type": "dense", "name": "mine", )" + shape +
                                  R"(, "activation": 7, "weights": [[[1]], [1]]})")),
      Notes{alone + "'mine' has the activation 'what is no text', which is not computed here"});
  EXPECT_EQ(notes_of("j.json", rtneural(R"({"type": "dense", "name": "mine", )" + shape +
                                        R"(, "activation": "", "weights": [[[1]], [1], [1]]})")),
            Notes{alone + "the 3 arrays of 'mine' have not the shapes of a dense layer"});
  EXPECT_EQ(notes_of("k.json", rtneural(R"({"type": "dense", "name": "mine", )" + shape +
                                        R"(, "activation": "", "weights": [[1]]})")),
            Notes{alone + "the 1 arrays of 'mine' have not the shapes of a dense layer"});
  EXPECT_EQ(
      notes_of("l.json", rtneural(R"({"type": "lstm", )" + shape +
                                  R"(, "weights": [[[1, 2, 3, 4]], [1, 2, 3, 4]]})")),
      Notes{"no network was made from 'layers.0': its 2 arrays have not the shapes of a lstm"});
  EXPECT_EQ(notes_of("i.json",
                     rtneural(R"({"type": "activation", "activation": "tanh", )" + shape + "}")),
            Notes{alone + "no layer has weights"});
}

TEST(Refused, AHeadWithoutABiasHasZero) {
  MappedLayer head = dense(5, 1);
  head.options["use_bias"] = false;
  head.weights.pop_back();
  const TempFolder folder;
  save_networks(folder / "m.nam", chain_of({rnn(), head}), ModelFormat::kNam);
  const MappedModel found = load_networks(folder / "m.nam");
  const MappedLayer& last = found.layers.back();
  EXPECT_TRUE(same_bytes(last.weights.at(0).values, head.weights[0].values));
  EXPECT_TRUE(same_bytes(last.weights.at(1).values, Array(DType::kFloat32, {1})));
  EXPECT_EQ(last.tensors, std::vector<std::string>{"weights"});
}

}  // namespace
}  // namespace openrnn
