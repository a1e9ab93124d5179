// Networks in JSON of RTNeural and of NeuralAmpModeler: there and back, what is refused.
#include <gtest/gtest.h>

#include <limits>

#include "formats/temp_folder.h"
#include "mapping/networks.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

using formats::TempFolder;

MappedModel model_of(std::vector<MappedNetwork> networks) {
  MappedModel model;
  model.networks = std::move(networks);
  return model;
}

RnnSpec spec_of(RnnMode mode, std::int64_t layers = 1) {
  return {.mode = mode,
          .num_layers = layers,
          .num_units = 5,
          .input_size = 3,
          .single_bias = mode == RnnMode::kLstm};
}

MappedModel nam_model(std::int64_t layers) {
  MappedNetwork network = network_of(spec_of(RnnMode::kLstm, layers));
  network.initial_h = values_of(DType::kFloat32, {layers, 5}, 2);
  network.initial_c = values_of(DType::kFloat32, {layers, 5}, 3);
  MappedModel model = model_of({std::move(network)});
  model.values = {{"head.weight", std::vector<double>{0.5, -0.25, 1.0, 2.0, -3.0}},
                  {"head.bias", 0.125},
                  {"sample_rate", std::int64_t{48000}}};
  return model;
}

TEST(RtneuralNetworks, SeveralThereAndBack) {
  const TempFolder folder;
  for (const std::int64_t layers : {1, 3}) {
    const MappedNetwork lstm = network_of(spec_of(RnnMode::kLstm, layers), "encoder \"1\"", 1);
    RnnSpec behind = spec_of(RnnMode::kGru, layers);
    behind.input_size = 5;
    const MappedNetwork gru = network_of(behind, "decoder", 2);
    save_networks(folder / "m.json", model_of({lstm, gru}), ModelFormat::kRtneural);
    const MappedModel found = load_networks(folder / "m.json");
    EXPECT_EQ(found.kind, FileKind::kRtneural);
    EXPECT_TRUE(found.notes.empty() && found.not_understood.empty());
    ASSERT_EQ(found.networks.size(), 2U);
    for (const auto& [given, read] :
         {std::pair<const MappedNetwork*, const MappedNetwork*>(&lstm, &found.networks[0]),
          {&gru, &found.networks[1]}}) {
      EXPECT_EQ(read->name, given->name);
      EXPECT_EQ(read->spec, given->spec);
      EXPECT_TRUE(same_bytes(read->params, given->params));
      EXPECT_EQ(read->tensors.size(), static_cast<std::size_t>(3 * layers));
    }
  }
}

TEST(RtneuralNetworks, LayersOfOthersAreNetworksOfTheirOwn) {
  const TempFolder folder;
  formats::write_raw(folder / "m.json",
                     R"({"in_shape": [null, null, 1], "layers": [
      {"type": "lstm", "activation": "", "shape": [null, null, 1],
       "weights": [[[1, 2, 3, 4]], [[5, 6, 7, 8]], [9, 10, 11, 12]]},
      {"type": "lstm", "activation": "", "shape": [null, null, 1],
       "weights": [[[1, 2, 3, 4]], [[5, 6, 7, 8]], [9, 10, 11, 12]]},
      {"type": "gru", "weights": [[[1, 2, 3]], [[1, 2, 3, 4]], [[1, 2, 3], [4, 5, 6]]]},
      {"type": "dense", "weights": [[[0.5]], [1]]}]})");
  const MappedModel found = load_networks(folder / "m.json");
  ASSERT_EQ(found.networks.size(), 2U);
  EXPECT_EQ(found.networks[0].name, "layers.0");
  EXPECT_EQ(found.networks[1].name, "layers.1");
  ASSERT_EQ(found.notes.size(), 1U);
  EXPECT_NE(found.notes[0].find("layers.2"), std::string::npos);
  EXPECT_EQ(found.not_understood.size(), 5U);
  // Keras's i f c o in the opaque buffer's i f c o: W, R, then the bias.
  const std::span<const float> params = found.networks[0].params.view().as<float>();
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(params[i], static_cast<float>(i + 1));
}

TEST(NamNetworks, ThereAndBackWithStatesAndHead) {
  const TempFolder folder;
  for (const std::int64_t layers : {1, 3}) {
    const MappedModel model = nam_model(layers);
    save_networks(folder / "m.nam", model, ModelFormat::kNam);
    const MappedModel found = load_networks(folder / "m.nam");
    EXPECT_EQ(found.kind, FileKind::kNam);
    ASSERT_EQ(found.networks.size(), 1U);
    EXPECT_EQ(found.networks[0].spec, model.networks[0].spec);
    EXPECT_TRUE(same_bytes(found.networks[0].params, model.networks[0].params));
    EXPECT_TRUE(same_bytes(*found.networks[0].initial_h, *model.networks[0].initial_h));
    EXPECT_TRUE(same_bytes(*found.networks[0].initial_c, *model.networks[0].initial_c));
    save_networks(folder / "again.nam", found, ModelFormat::kNam);
    EXPECT_EQ(read_file(folder / "m.nam"), read_file(folder / "again.nam"));
  }
}

TEST(JsonNetworks, WhatAFileCannotHoldIsRefusedByName) {
  const TempFolder folder;
  RnnSpec both = spec_of(RnnMode::kLstm), peepholes = both, half = both;
  both.direction = Direction::kBidirectional;
  peepholes.use_peepholes = true;
  half.dtype = DType::kBfloat16;
  RnnSpec before = spec_of(RnnMode::kGru);
  before.reset_after = false;
  const std::pair<RnnSpec, const char*> cases[] = {{both, "bidirectional"},
                                                   {peepholes, "use_peepholes"},
                                                   {half, "bfloat16"},
                                                   {before, "reset_after"},
                                                   {spec_of(RnnMode::kRnnTanh), "rnn_tanh"}};
  for (const auto& [spec, word] : cases) {
    const MappedModel model = model_of({network_of(spec, "a")});
    const std::string text =
        error_of([&] { save_networks(folder / "m.json", model, ModelFormat::kRtneural); });
    EXPECT_NE(text.find(word), std::string::npos) << text;
    EXPECT_NE(text.find("RTNeural"), std::string::npos) << text;
  }
  MappedModel headless = nam_model(1);
  headless.values.clear();
  EXPECT_NE(error_of([&] {
              save_networks(folder / "m.nam", headless, ModelFormat::kNam);
            }).find("head.weight"),
            std::string::npos);
  MappedModel infinite = nam_model(1);
  infinite.networks[0].params.as<float>()[3] = std::numeric_limits<float>::infinity();
  EXPECT_NE(
      error_of([&] { save_networks(folder / "m.nam", infinite, ModelFormat::kNam); }).find("inf"),
      std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "m.json"));
  EXPECT_FALSE(std::filesystem::exists(folder / "m.nam"));
}

TEST(JsonNetworks, DamagedFiles) {
  const TempFolder folder;
  const std::string path = folder / "m.json";
  const std::pair<std::string, const char*> cases[] = {
      {R"({"in_shape": 1, "layers": 2})", "list"},
      {R"({"in_shape": 1, "layers": [3]})", "object"},
      {R"({"in_shape": 1, "layers": [], "layers": []})", "twice"},
      {R"({"in_shape": 1, "layers": [{"weights": [[[1, 2], [3]]]}]})", "unequal length"},
      {R"({"in_shape": 1, "layers": [{"weights": [[1, "2"]]}]})", "no number"},
      {R"({"in_shape": 1, "layers": )" + std::string(70, '['), "deep"},
      {R"({"in_shape": 1, "layers": [1e999999]})", "JSON"},
      {R"({"architecture": "LSTM", "weights": {}})", "list"},
      {R"({"architecture": "LSTM", "config": {"num_layers": 9223372036854775807,
        "hidden_size": 9223372036854775807, "input_size": 1}, "weights": [1]})",
       ""},
      {R"({"architecture": "WaveNet", "config": {}, "weights": [1]})", ""}};
  for (const auto& [text, word] : cases) {
    formats::write_raw(path, text);
    const std::string found = error_of([&] {
      const MappedModel model = load_networks(path);
      EXPECT_TRUE(model.networks.empty());
      EXPECT_EQ(model.notes.size(), 1U);
    });
    const bool as_expected = *word ? found.find(word) != std::string::npos : found.empty();
    EXPECT_TRUE(as_expected) << text << ": " << found;
  }
}

TEST(JsonNetworks, NumbersBeyondSixtyThreeBitsKeepTheirSign) {
  const TempFolder folder;
  formats::write_raw(folder / "m.nam",
                     R"({"architecture": "x", "weights": [1],
                         "config": {"big": 18446744073709551615, "small": -9223372036854775808}})");
  const ModelFile file(folder / "m.nam");
  std::map<std::string, PlainValue> values;
  for (const NamedValue& value : file.values()) values.emplace(value.name, value.value);
  EXPECT_EQ(values.at("config.big"), PlainValue(18446744073709551615.0));
  EXPECT_EQ(values.at("config.small"), PlainValue(std::int64_t{INT64_MIN}));
}

TEST(JsonNetworks, TruncatedAnywhere) {
  const TempFolder folder;
  save_networks(folder / "m.nam", nam_model(1), ModelFormat::kNam);
  const std::string whole = read_file(folder / "m.nam");
  for (std::size_t size = 0; size + 2 < whole.size(); size += 7) {
    formats::write_raw(folder / "cut", whole.substr(0, size));
    EXPECT_THROW(load_networks(folder / "cut"), Error) << size;
  }
}

}  // namespace
}  // namespace openrnn
