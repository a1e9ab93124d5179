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

TEST(RtneuralNetworks, WhatIsOfNoLayerChangesNothing) {
  const TempFolder folder;
  const auto loaded = [&](const std::string& before, const std::string& behind) {
    formats::write_raw(folder / "m.json", "{" + before + R"("in_shape": [null, null, 1], "layers": [
      {"type": "lstm", "activation": "", "shape": [null, null, 1],
       "weights": [[[1, 2, 3, 4]], [[5, 6, 7, 8]], [9, 10, 11, 12]], "written_by": "gru"}])" +
                                              behind + "}");
    return load_networks(folder / "m.json");
  };
  const std::string more = R"("author": "me", "type": "gru", "table": [[1.5, 2], [3, 4]])";
  const MappedModel plain = loaded("", "");
  ASSERT_EQ(plain.networks.size(), 1U);
  for (const MappedModel& found : {loaded(more + ", ", ""), loaded("", ", " + more)}) {
    ASSERT_EQ(found.networks.size(), 1U) << (found.notes.empty() ? "" : found.notes[0]);
    EXPECT_EQ(found.networks[0].name, plain.networks[0].name);
    EXPECT_TRUE(same_bytes(found.networks[0].params, plain.networks[0].params));
    EXPECT_EQ(found.layers.size(), plain.layers.size());
    EXPECT_TRUE(found.notes.empty());
  }
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

TEST(JsonNetworks, StatesAndSizesThatRtneuralCannotHold) {
  const TempFolder folder;
  const RnnSpec spec = spec_of(RnnMode::kLstm);
  const auto refused = [&](const MappedModel& model, const char* word) {
    const std::string text =
        error_of([&] { save_networks(folder / "m.json", model, ModelFormat::kRtneural); });
    EXPECT_NE(text.find(word), std::string::npos) << text;
  };
  for (const auto state : {&MappedNetwork::initial_h, &MappedNetwork::initial_c}) {
    MappedModel model = model_of({network_of(spec, "a")});
    model.networks[0].*state = values_of(DType::kFloat32, {1, 5}, 2);
    refused(model, "states to begin with");
  }
  refused(model_of({network_of(spec, "a"), network_of(spec, "b")}), "another input size");
}

TEST(NamNetworks, TheListHasTheSizeThatTheConfigurationSays) {
  const TempFolder folder;
  // One unit on one input: 4 * 2 weights, 4 biases, 2 states, 2 of the head.
  const auto file_of = [&](const char* config, int count) {
    std::string list = "0";
    for (int i = 1; i < count; ++i) list += ", " + std::to_string(i);
    formats::write_raw(folder / "m.nam", std::string(R"({"architecture": "LSTM", "config": )") +
                                             config + ", \"weights\": [" + list + "]}");
    return load_networks(folder / "m.nam");
  };
  const char* const one = R"({"num_layers": 1, "hidden_size": 1, "input_size": 1})";
  const MappedModel good = file_of(one, 16);
  ASSERT_EQ(good.networks.size(), 1U);
  EXPECT_EQ(good.networks[0].initial_h->as<float>()[0], 12.0F);
  EXPECT_EQ(good.networks[0].initial_c->as<float>()[0], 13.0F);
  EXPECT_EQ(good.layers.at(2).weights.at(0).values.as<float>()[0], 14.0F);
  EXPECT_EQ(good.layers.at(2).weights.at(1).values.as<float>()[0], 15.0F);
  for (const int count : {15, 17}) {
    const MappedModel bad = file_of(one, count);
    EXPECT_TRUE(bad.networks.empty());
    EXPECT_EQ(bad.notes.at(0), "the configuration of the LSTM asks for 16 weights, there are " +
                                   std::to_string(count));
    EXPECT_EQ(bad.not_understood, std::vector<std::string>{"weights"});
  }
  for (const char* config :
       {R"({"hidden_size": 1, "input_size": 1})", R"({"num_layers": 1, "input_size": 1})",
        R"({"num_layers": 1, "hidden_size": 1})",
        R"({"num_layers": 0, "hidden_size": 1, "input_size": 1})",
        R"({"num_layers": 1.0, "hidden_size": 1, "input_size": 1})"}) {
    EXPECT_TRUE(file_of(config, 16).networks.empty()) << config;
  }
}

TEST(NamNetworks, VersionRateAndMetadataStay) {
  const TempFolder folder;
  MappedModel model = nam_model(1);
  const auto text_of = [&] {
    save_networks(folder / "m.nam", model, ModelFormat::kNam);
    return read_file(folder / "m.nam");
  };
  EXPECT_TRUE(text_of().starts_with(R"({"version":"0.5.0","architecture":"LSTM")"));
  model.values.push_back({"version", std::string("0.5.4")});
  model.values.push_back({"metadata.loudness", {}});
  model.values.push_back({"metadata.gain", 0.5});
  model.values.push_back({"other", std::string("lost")});
  EXPECT_TRUE(text_of().starts_with(
      R"({"version":"0.5.4","metadata":{"loudness":null,"gain":0.5},"architecture":"LSTM")"))
      << text_of().substr(0, 200);
  EXPECT_NE(text_of().find(R"("sample_rate":48000)"), std::string::npos);
  std::erase_if(model.values, [](const NamedValue& one) { return one.name == "sample_rate"; });
  EXPECT_EQ(text_of().find("sample_rate"), std::string::npos);
  // A head of another size than the LSTM, or without its bias, is none.
  for (const char* name : {"head.weight", "head.bias"}) {
    MappedModel bad = nam_model(1);
    for (NamedValue& value : bad.values) {
      if (value.name == name) value.value = std::vector<double>{1.0, 2.0};
    }
    EXPECT_NE(error_of([&] {
                save_networks(folder / "n", bad, ModelFormat::kNam);
              }).find("head.weight of 5 numbers"),
              std::string::npos);
  }
  // A file holds one LSTM.
  MappedModel two = nam_model(1);
  two.networks.push_back(network_of(spec_of(RnnMode::kLstm), "b"));
  EXPECT_NE(error_of([&] {
              save_networks(folder / "n", two, ModelFormat::kNam);
            }).find("there are 2 networks"),
            std::string::npos);
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
