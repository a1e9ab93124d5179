// Files of RTNeural and NeuralAmpModeler word for word, and those that say less than others.
#include <gtest/gtest.h>

#include <map>

#include "formats/temp_folder.h"
#include "mapping/networks.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

using formats::TempFolder;
using Names = std::vector<std::string>;
using Notes = std::vector<std::string>;

// One unit on one input: parameters 1, 2, 3 ..
MappedNetwork counted(RnnSpec spec, const std::string& name = "n") {
  spec.num_units = spec.input_size = 1;
  MappedNetwork network{
      .name = name, .spec = spec, .params = Array(spec.dtype, {params_size(spec)})};
  float next = 0.0F;
  for (float& value : network.params.as<float>()) value = next += 1.0F;
  return network;
}

std::string text_of(const MappedModel& model, ModelFormat format) {
  const TempFolder folder;
  save_networks(folder / "m", model, format);
  return read_file(folder / "m");
}

MappedModel loaded(const std::string& text) {
  const TempFolder folder;
  formats::write_raw(folder / "m", text);
  return load_networks(folder / "m");
}

MappedModel rtneural(const std::string& layers) {
  return loaded(R"({"in_shape": [null, null, 1], "layers": [)" + layers + "]}");
}

MappedLayer dense_of(const char* name, std::vector<float> kernel, std::vector<float> bias) {
  const auto units = static_cast<std::int64_t>(bias.size());
  return {.name = name,
          .kind = "dense",
          .options = {{"units", units}, {"activation", std::string("tanh")}},
          .weights = {{"kernel", Array::of<float>({1, units}, kernel)},
                      {"bias", Array::of<float>({units}, bias)}}};
}

TEST(JsonRest, AFileOfRtneuralWordForWord) {
  MappedModel model;
  model.networks = {counted({.single_bias = true})};
  model.layers = {
      {.name = "x", .kind = "input", .options = {{"shape", std::vector<std::int64_t>{-1, -1, 1}}}},
      {.name = "r", .kind = "recurrent", .options = {{"network", std::string("n")}}},
      dense_of("a \"b\"", {0.5F, -0.25F}, {1.0F, 1.5F}),
      {.name = "end", .kind = "activation", .options = {{"activation", std::string("linear")}}}};
  for (std::size_t i = 1; i < 4; ++i) model.layers[i].inputs = {{model.layers[i - 1].name, 0}};
  model.outputs = {{"end", 0}};
  EXPECT_EQ(text_of(model, ModelFormat::kRtneural),
            R"({"in_shape": [null, null, 1],
 "layers": [
  {"type": "lstm", "name": "n", "activation": "tanh", "shape": [null, null, 1],
   "weights": [[[1, 2, 3, 4]],
    [[5, 6, 7, 8]],
    [9, 10, 11, 12]]},
  {"type": "dense", "name": "a \"b\"", "activation": "tanh", "shape": [null, null, 2],
   "weights": [[[0.5, -0.25]],
    [1, 1.5]]},
  {"type": "activation", "name": "end", "activation": "", "shape": [null, null, 2],
   "weights": []}]}
)");
}

// What is no text in a name is replaced.
TEST(JsonRest, NamesThatAreNoText) {
  MappedModel model;
  model.networks = {counted({.mode = RnnMode::kGru}, "a\xff")};
  EXPECT_NE(
      text_of(model, ModelFormat::kRtneural).find("\"type\": \"gru\", \"name\": \"a\xef\xbf\xbd\""),
      std::string::npos);
}

// The network without a name is one network, however many layers it has.
TEST(JsonRest, ANetworkWithoutAName) {
  const TempFolder folder;
  const MappedNetwork network =
      network_of({.mode = RnnMode::kGru, .num_layers = 2, .num_units = 3, .input_size = 2}, "");
  MappedModel model;
  model.networks = {network};
  save_networks(folder / "m", model, ModelFormat::kRtneural);
  const MappedModel found = load_networks(folder / "m");
  ASSERT_EQ(found.networks.size(), 1U);
  EXPECT_EQ(found.networks[0].name, "");
  EXPECT_EQ(found.networks[0].spec, network.spec);
  EXPECT_TRUE(same_bytes(found.networks[0].params, network.params));
  ASSERT_EQ(found.layers.size(), 2U);
  EXPECT_EQ(found.layers[1].name, "layers.0");
  EXPECT_EQ(layer_option(found.layers[1], "network"), PlainValue(std::string()));
}

TEST(JsonRest, ValuesOfRtneuralStay) {
  const MappedModel found = rtneural(
      R"({"units": 1, "name": "a", "type": "gru", "weights": [[[1, 2, 3]], [[1, 2, 3]]]})");
  ASSERT_EQ(found.networks.size(), 1U);
  std::map<std::string, PlainValue> values;
  for (const NamedValue& one : found.values) values[one.name] = one.value;
  const std::map<std::string, PlainValue> expected{{"layers.0.name", std::string("a")},
                                                   {"layers.0.type", std::string("gru")},
                                                   {"layers.0.units", std::int64_t{1}}};
  EXPECT_EQ(values, expected);
}

TEST(JsonRest, TypesAndNamesThatAreNoTexts) {
  const MappedModel number = rtneural(R"({"type": 3, "weights": [[[1, 2, 3]]]})");
  EXPECT_EQ(number.notes,
            Notes{"the model is read as its networks alone: 'layers.0' is of the type "
                  "'', which is not computed here"});
  EXPECT_EQ(number.not_understood, Names{"layers.0.weights.0"});
  const MappedModel unnamed =
      rtneural(R"({"type": "gru", "name": 3, "weights": [[[1, 2, 3]], [[1, 2, 3]]]})");
  ASSERT_EQ(unnamed.networks.size(), 1U);
  EXPECT_EQ(unnamed.networks[0].name, "layers.0");
}

// What is no list of numbers ends a layer's weights.
TEST(JsonRest, WeightsEndAtWhatIsNone) {
  const MappedModel found =
      rtneural(R"({"type": "gru", "weights": [[[1, 2, 3]], 5, [[1, 2, 3]]]})");
  EXPECT_TRUE(found.networks.empty());
  EXPECT_EQ(found.notes, Notes{"no network was made from 'layers.0': its 1 arrays have not the "
                               "shapes of a gru"});
  EXPECT_EQ(found.not_understood, (Names{"layers.0.weights.0", "layers.0.weights.2"}));
}

TEST(JsonRest, ADenseLayerHasOneOrTwoArrays) {
  const char* const gru = R"({"type": "gru", "weights": [[[1, 2, 3]], [[1, 2, 3]]]}, )";
  for (const auto& [weights, count] : {std::pair<const char*, const char*>{"[]", "0"},
                                       {"[[1]]", "1"},
                                       {"[[[1]], [1], [1]]", "3"}}) {
    const MappedModel found =
        rtneural(std::string(gru) + R"({"type": "dense", "weights": )" + weights + "}");
    EXPECT_EQ(found.networks.size(), 1U);
    EXPECT_EQ(found.notes,
              Notes{std::string("the model is read as its networks alone: the ") + count +
                    " arrays of 'layers.1' have not the shapes of a dense "
                    "layer"});
  }
}

// ---- NeuralAmpModeler --------------------------------------------------------------------------

std::string nam_of(const MappedNetwork& network) {
  MappedModel model;
  model.networks = {network};
  model.values = {{"head.weight", std::vector<double>{0.5}}, {"head.bias", 0.25}};
  return text_of(model, ModelFormat::kNam);
}

const std::string kNamHead =
    R"({"version":"0.5.0","architecture":"LSTM","config":{"input_size":1,"hidden_size":1,)"
    "\"num_layers\":1},\n \"weights\": ";

TEST(JsonRest, AFileOfNamWordForWord) {
  MappedNetwork network = counted({.single_bias = true});
  const std::string rows = "[1, 5, 2, 6, 3, 7, 4, 8, ";
  EXPECT_EQ(nam_of(network), kNamHead + rows + "9, 10, 11, 12, 0, 0, 0.5, 0.25]}\n");
  network.initial_c = Array::of<float>({1, 1}, std::vector<float>{-2.0F});
  EXPECT_EQ(nam_of(network), kNamHead + rows + "9, 10, 11, 12, 0, -2, 0.5, 0.25]}\n");
  network.initial_c.reset();
  network.initial_h = Array::of<float>({1, 1}, std::vector<float>{-3.0F});
  EXPECT_EQ(nam_of(network), kNamHead + rows + "9, 10, 11, 12, -3, 0, 0.5, 0.25]}\n");
  // Two biases become one, which a forget bias joins; none are zeros.
  EXPECT_EQ(nam_of(counted({})), kNamHead + rows + "22, 24, 26, 28, 0, 0, 0.5, 0.25]}\n");
  EXPECT_EQ(nam_of(counted({.forget_bias = 1.0})),
            kNamHead + rows + "22, 25, 26, 28, 0, 0, 0.5, 0.25]}\n");
  EXPECT_EQ(nam_of(counted({.use_bias = false})),
            kNamHead + rows + "0, 0, 0, 0, 0, 0, 0.5, 0.25]}\n");
  EXPECT_EQ(nam_of(counted({.forget_bias = 1.0, .use_bias = false})),
            kNamHead + rows + "0, 1, 0, 0, 0, 0, 0.5, 0.25]}\n");
}

// Options that say what the default says are none.
TEST(JsonRest, OptionsAtTheirDefaults) {
  const MappedNetwork plain = counted({.single_bias = true});
  const MappedNetwork said = counted({.num_proj = 1,
                                      .activation = parse_cell_activation("tanh"),
                                      .recurrent_activation = parse_cell_activation("sigmoid"),
                                      .output_activation = parse_cell_activation("tanh"),
                                      .single_bias = true});
  EXPECT_EQ(nam_of(said), nam_of(plain));
  MappedModel model;
  model.networks = {said};
  EXPECT_NE(text_of(model, ModelFormat::kRtneural).find("[9, 10, 11, 12]"), std::string::npos);
  model.networks = {counted(
      {.recurrent_activation = parse_cell_activation("hard_sigmoid"), .single_bias = true})};
  const TempFolder folder;
  const std::string error = error_of<UnsupportedError>(
      [&] { save_networks(folder / "m", model, ModelFormat::kRtneural); });
  EXPECT_NE(error.find("recurrent_activation hard_sigmoid"), std::string::npos) << error;
}

TEST(JsonRest, WhatANamFileIsMadeFrom) {
  const std::string text = nam_of(counted({.single_bias = true}));
  const MappedModel found = loaded(text);
  EXPECT_EQ(found.networks.at(0).name, "lstm");
  EXPECT_EQ(found.networks.at(0).tensors, Names{"weights"});
  EXPECT_EQ(found.layers.at(2).tensors, Names{"weights"});
  EXPECT_TRUE(found.not_understood.empty());
  EXPECT_EQ(found.layers.at(1).options.at("initial_h"), PlainValue(std::vector<double>{0.0}));
}

TEST(JsonRest, ListsOfNamThatAreNone) {
  const std::string config = R"("config": {"num_layers": 1, "hidden_size": 1, "input_size": 1}, )";
  std::string nested = "[[0]";
  for (int i = 1; i < 16; ++i) nested += ", [" + std::to_string(i) + "]";
  const MappedModel deep =
      loaded(R"({"architecture": "LSTM", )" + config + "\"weights\": " + nested + "]}");
  const Notes none{"the configuration of the LSTM asks for 16 weights, there are 0"};
  EXPECT_EQ(deep.notes, none);
  EXPECT_EQ(deep.not_understood, Names{"weights"});
  const MappedModel elsewhere =
      loaded(R"({"architecture": "LSTM", )" + config + R"("metadata": {"weights": 1}})");
  EXPECT_EQ(elsewhere.notes, none);
  EXPECT_TRUE(elsewhere.networks.empty() && elsewhere.not_understood.empty());
  const MappedModel number = loaded(R"({"architecture": 3, )" + config + R"("weights": [1]})");
  EXPECT_EQ(number.notes, Notes{"the architecture is '', no recurrent one"});
  EXPECT_EQ(number.not_understood, Names{"weights"});
}

}  // namespace
}  // namespace openrnn
