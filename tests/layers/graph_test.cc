// Whole models: what is checked, what is computed, what goes through our own files.
#include <gtest/gtest.h>
#include <openrnn/layers_graph.h>

#include "formats/temp_folder.h"

namespace openrnn {
namespace {

using formats::TempFolder;

constexpr std::int64_t kUnits = 4, kInput = 3;

MappedModel small_model() {
  const RnnSpec spec{.mode = RnnMode::kGru, .num_units = kUnits, .input_size = kInput};
  MappedModel model;
  model.networks.push_back(
      {.name = "gru", .spec = spec, .params = initialize_params(ParamsLayout(spec), 7)});
  Array table(DType::kFloat32, {5, kInput}), kernel(DType::kFloat32, {kUnits, 2}),
      bias(DType::kFloat32, {2});
  for (Array* array : {&table, &kernel, &bias}) {
    float next = -0.5F;
    for (float& value : array->as<float>()) value = next += 0.11F;
  }
  using Sizes = std::vector<std::int64_t>;
  model.layers = {
      {.name = "ids",
       .kind = "input",
       .options = {{"shape", Sizes{-1, -1}}, {"dtype", std::string("int32")}}},
      {.name = "words",
       .kind = "embedding",
       .inputs = {{"ids", 0}},
       .options = {{"vocabulary", std::int64_t{5}}, {"dim", kInput}, {"mask_zero", true}},
       .weights = {{"embeddings", table, {{"m", table}}}}},
      {.name = "gru",
       .kind = "recurrent",
       .inputs = {{"words", 0}},
       .options = {{"network", std::string("gru")}, {"return_sequences", false}}},
      {.name = "head",
       .kind = "dense",
       .inputs = {{"gru", 0}},
       .options = {{"units", std::int64_t{2}}, {"activation", std::string("softmax")}},
       .weights = {{"kernel", kernel}, {"bias", bias}}},
  };
  model.outputs = {{"head", 0}};
  return model;
}

Tensor ids_of(std::vector<std::int32_t> ids, std::int64_t batch) {
  const auto steps = static_cast<std::int64_t>(ids.size()) / batch;
  return Tensor(Array::of<std::int32_t>({batch, steps}, ids).view());
}

// The message of an ArgumentError that checking the changed model throws.
template <class Change>
std::string refusal(const Change& change) {
  MappedModel model = small_model();
  change(model);
  try {
    check_layers(model.layers, model.outputs, find_spec_in(model));
  } catch (const ArgumentError& error) {
    return error.what();
  }
  return "nothing was refused";
}

TEST(LayerGraphTest, MaskedStepsChangeNothing) {
  const auto graph = layers::LayerGraph::of(small_model());
  const Array with = graph->predict({ids_of({3, 0, 1, 0, 0}, 1)})[0];
  const Array without = graph->predict({ids_of({3, 1}, 1)})[0];
  ASSERT_EQ(with.shape(), (Shape{1, 2}));
  EXPECT_EQ(with.as<float>()[0], without.as<float>()[0]);
  EXPECT_FLOAT_EQ(with.as<float>()[0] + with.as<float>()[1], 1.0F);
}

TEST(LayerGraphTest, EmptyBatchesAndSequences) {
  const auto graph = layers::LayerGraph::of(small_model());
  EXPECT_EQ(graph->predict({ids_of({}, 1)})[0].shape(), (Shape{1, 2}));
  const Tensor none(Array(DType::kInt32, {0, 3}).view());
  EXPECT_EQ(graph->predict({none})[0].shape(), (Shape{0, 2}));
}

TEST(LayerGraphTest, OurOwnFileHoldsAll) {
  const TempFolder folder;
  const MappedModel model = small_model();
  save_networks(folder / "m", model, ModelFormat::kOpenrnn);
  const MappedModel found = load_networks(folder / "m");
  ASSERT_EQ(found.layers.size(), 4U);
  EXPECT_EQ(found.outputs, model.outputs);
  EXPECT_TRUE(found.not_understood.empty());
  EXPECT_EQ(found.layers[1].options, model.layers[1].options);
  EXPECT_EQ(found.layers[1].weights[0].slots.count("m"), 1U);
  const Tensor ids = ids_of({3, 4, 1, 2, 0, 0}, 2);
  const Array wanted = layers::LayerGraph::of(model)->predict({ids})[0];
  const Array got = layers::LayerGraph::of(found)->predict({ids})[0];
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(wanted.as<float>()[i], got.as<float>()[i]);
}

TEST(LayerGraphTest, WhatIsWrongIsNamed) {
  const auto has = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), text.npos) << text;
  };
  has(refusal([](MappedModel& m) { m.layers[3].kind = "conv"; }), "the kind of layer 'conv'");
  has(refusal([](MappedModel& m) { m.layers[3].options["x"] = true; }), "has the option 'x'");
  has(refusal([](MappedModel& m) { m.layers[3].options["units"] = 2.0; }), "of another type");
  has(refusal([](MappedModel& m) { m.layers[3].options["units"] = std::int64_t{3}; }),
      "has kernel float32 [4, 2], expected float32 [4, 3]");
  has(refusal([](MappedModel& m) { m.layers[3].inputs[0].layer = "later"; }),
      "expected one of a layer before it");
  has(refusal([](MappedModel& m) { m.layers[3].inputs[0].index = 1; }), "has output 1 of 'gru'");
  has(refusal([](MappedModel& m) { m.layers[3].name = "gru"; }), "has no name of its own");
  has(refusal([](MappedModel& m) { m.layers[2].options["network"] = std::string("no"); }),
      "has no network 'no'");
  has(refusal([](MappedModel& m) { m.layers[2].options["merge"] = std::string("sum"); }),
      "has merge 'sum', expected concat of one direction");
  has(refusal([](MappedModel& m) { m.outputs.clear(); }), "no output, expected at least one");
  has(refusal([](MappedModel& m) { m.outputs[0].index = -1; }), "output -1 of 'head'");
  has(refusal([](MappedModel& m) { m.layers[3].options["activation"] = std::string("relu(1)"); }),
      "expected relu with at most 0 numbers");
  has(refusal([](MappedModel& m) { m.layers[0].options["dtype"] = std::string("float32"); }),
      "has an input of float32, expected int32");
}

TEST(LayerGraphTest, CallsThatDoNotFit) {
  const auto graph = layers::LayerGraph::of(small_model());
  EXPECT_THROW((*graph)({}), ArgumentError);
  EXPECT_THROW((*graph)({ids_of({9}, 1)}), ArgumentError);
  EXPECT_THROW((*graph)({Tensor(Array(DType::kFloat32, {1, 2}).view())}), ArgumentError);
  EXPECT_THROW(graph->layer("nothing"), ArgumentError);
  MappedModel bare = small_model();
  bare.layers.clear();
  EXPECT_THROW(layers::LayerGraph::of(bare), UnsupportedError);
}

// An LSTM of two layers that begins with states of its own.
MappedModel model_with_states() {
  const RnnSpec spec{
      .num_layers = 2, .num_units = kUnits, .input_size = kInput, .single_bias = true};
  MappedModel model;
  model.networks.push_back(
      {.name = "lstm", .spec = spec, .params = initialize_params(ParamsLayout(spec), 7)});
  std::vector<double> h, c;
  for (int i = 0; i < 2 * kUnits; ++i) h.push_back(0.125 * i), c.push_back(1.0 - 0.25 * i);
  model.layers = {{.name = "x",
                   .kind = "input",
                   .options = {{"shape", std::vector<std::int64_t>{-1, -1, kInput}}}},
                  {.name = "lstm",
                   .kind = "recurrent",
                   .inputs = {{"x", 0}},
                   .options = {{"network", std::string("lstm")},
                               {"initial_h", std::move(h)},
                               {"initial_c", std::move(c)}}}};
  model.outputs = {{"lstm", 0}};
  return model;
}

TEST(LayerGraphTest, BeginsWithTheStatesOfItsOptions) {
  const TempFolder folder;
  const MappedModel given = model_with_states();
  save_model(folder / "m.openrnn", *layers::LayerGraph::of(given), ModelFormat::kOpenrnn);
  const auto graph = load_model(folder / "m.openrnn");
  Array x(DType::kFloat32, {3, 2, kInput}), h(DType::kFloat32, {3, 2, kUnits}),
      c(DType::kFloat32, {3, 2, kUnits});
  for (int i = 0; i < x.size(); ++i) x.as<float>()[static_cast<std::size_t>(i)] = 0.1F * i;
  for (int i = 0; i < h.size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    h.as<float>()[at] = 0.125F * (i % (2 * kUnits));
    c.as<float>()[at] = 1.0F - 0.25F * (i % (2 * kUnits));
  }
  layers::RnnCallOptions call;
  call.time_major = false;
  auto& rnn = dynamic_cast<layers::CudnnRnn&>(*graph->layer("lstm"));
  const Tensor wanted = rnn(Tensor(x.view()), {Tensor(h.view()), Tensor(c.view())}, call).output;
  const Array found = graph->predict({Tensor(x.view())})[0], expected = wanted.to_host();
  for (std::size_t i = 0; i < found.as<float>().size(); ++i) {
    EXPECT_EQ(found.as<float>()[i], expected.as<float>()[i]) << i;
  }
  // The network of the file has them, too; Keras's files have no place for them.
  EXPECT_EQ(load_networks(folder / "m.openrnn").networks[0].initial_h->view().as<float>()[3],
            0.375F);
  EXPECT_THROW(save_networks(folder / "m.keras", given, ModelFormat::kKeras), UnsupportedError);
}

TEST(LayerGraphTest, AnAmplifierIsReadAsItWasWritten) {
  const TempFolder folder;
  MappedModel given = model_with_states();
  const std::vector<float> kernel{0.5F, -0.25F, 1.5F, 0.125F}, bias{0.75F};
  given.layers.push_back({.name = "mix",
                          .kind = "dense",
                          .inputs = {{"lstm", 0}},
                          .options = {{"units", std::int64_t{1}}},
                          .weights = {{"kernel", Array::of<float>({kUnits, 1}, kernel)},
                                      {"bias", Array::of<float>({1}, bias)}}});
  given.outputs = {{"mix", 0}};
  Array x(DType::kFloat32, {2, 7, kInput});
  for (int i = 0; i < x.size(); ++i) x.as<float>()[static_cast<std::size_t>(i)] = 0.07F * i - 1.0F;
  const auto graph = layers::LayerGraph::of(given);
  const Array wanted = graph->predict({Tensor(x.view())})[0];
  save_model(folder / "m.nam", *graph, ModelFormat::kNam);
  const Array found = load_model(folder / "m.nam")->predict({Tensor(x.view())})[0];
  ASSERT_EQ(found.shape(), (Shape{2, 7, 1}));
  for (std::size_t i = 0; i < 14; ++i) EXPECT_EQ(found.as<float>()[i], wanted.as<float>()[i]) << i;
}

TEST(LayerGraphTest, StatesOfOptionsThatDoNotFit) {
  const auto refused = [](const char* option, std::size_t count, const char* text) {
    MappedModel model = model_with_states();
    model.layers[1].options[option] = std::vector<double>(count, 0.5);
    try {
      check_layers(model.layers, model.outputs, find_spec_in(model));
      ADD_FAILURE() << "nothing was refused: " << text;
    } catch (const ArgumentError& error) {
      EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
    }
  };
  refused("initial_h", 7, "has 7 values of initial_h, expected 8 or none");
  refused("initial_c", 1, "has 1 values of initial_c, expected 8 or none");
}

TEST(LayerGraphTest, IsOneNodeOfASymbolicModel) {
  const auto graph = layers::LayerGraph::of(small_model());
  const Tensor input = Input({-1, -1}, DType::kInt32);
  Model model({input}, (*graph)({input}));
  const Tensor ids = ids_of({3, 4, 0}, 1);
  EXPECT_EQ(model.predict({ids})[0].as<float>()[1], graph->predict({ids})[0].as<float>()[1]);
  EXPECT_EQ(model.trainable_weights().size(), 4U);
}

}  // namespace
}  // namespace openrnn
