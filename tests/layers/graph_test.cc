// Whole models: what is checked, what is computed, what goes through our own files.
#include <gtest/gtest.h>

#include "formats/temp_folder.h"
#include "layers/graph/gru_model.h"
#include "saveables/support.h"
#include "support/tagged_device.h"

namespace openrnn {
namespace {

using formats::TempFolder;

constexpr std::int64_t kUnits = 4, kInput = 3;

MappedModel small_model() {
  MappedModel model = gru_model(kUnits, kInput);
  Array table(DType::kFloat32, {5, kInput}), kernel(DType::kFloat32, {kUnits, 2}),
      bias(DType::kFloat32, {2});
  for (Array* array : {&table, &kernel, &bias}) {
    float next = -0.5F;
    for (float& value : array->as<float>()) value = next += 0.11F;
  }
  model.layers = {
      ids_layer(),
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

// A layer on inputs of these sizes and dtype: the shape that it gives, or why it gives none.
struct Given {
  std::vector<Shape> inputs;
  MappedLayer layer;
  std::string expected;
  std::string dtype = "float32";
};

std::string shape_or_refusal(const Given& given) {
  std::vector<MappedLayer> layers;
  MappedLayer last = given.layer;
  last.name = "last";
  for (const Shape& shape : given.inputs) {
    std::string name = "in";
    name += std::to_string(layers.size());
    last.inputs.push_back({name, 0});
    const std::vector<std::int64_t> sizes(shape.begin(), shape.end());
    layers.push_back(
        {.name = name, .kind = "input", .options = {{"shape", sizes}, {"dtype", given.dtype}}});
  }
  layers.push_back(std::move(last));
  const LayerOutput output{"last", 0};
  try {
    const auto values = check_layers(layers, {&output, 1}, [](const std::string&) {
      static const RnnSpec spec{.num_units = 2, .input_size = 3};
      return &spec;
    });
    return to_string(values.at("last").at(0).shape);
  } catch (const ArgumentError& error) {
    return error.what();
  }
}

MappedLayer layer_of(const char* kind, std::map<std::string, PlainValue> options = {}) {
  MappedLayer made{.kind = kind};
  for (auto& [name, value] : options) made.options[name] = std::move(value);
  return made;
}

void expect_shapes_or_refusals(const std::vector<Given>& cases) {
  for (const Given& given : cases) {
    const std::string found = shape_or_refusal(given);
    const bool as_expected = given.expected.starts_with('[')
                                 ? found == given.expected
                                 : found.find(given.expected) != std::string::npos;
    EXPECT_TRUE(as_expected) << given.layer.kind << ": " << given.expected << "\n" << found;
  }
}

TEST(LayerGraphTest, ShapesThatEachKindGivesAndRefuses) {
  using Sizes = std::vector<std::int64_t>;
  const auto dropout = [&](double rate) { return layer_of("dropout", {{"rate", rate}}); };
  const auto reshape = [&](Sizes shape) { return layer_of("reshape", {{"shape", shape}}); };
  const auto concat = [&](std::int64_t axis) { return layer_of("concat", {{"axis", axis}}); };
  const auto repeat = [&](std::int64_t count) { return layer_of("repeat", {{"count", count}}); };
  expect_shapes_or_refusals({
      {{{-1, 3}}, dropout(0.0), "[-1, 3]"},
      {{{-1, 3}}, dropout(1.0), "[-1, 3]"},
      {{{-1, 3}}, dropout(-0.1), "has rate -0.1, expected 0 to 1"},
      {{{-1, 3}}, dropout(1.1), "has rate 1.1, expected 0 to 1"},
      {{{-1, 3}}, dropout(0.5), "has an input of int32", "int32"},
      {{{-1, 4, 6}}, reshape({-1}), "[-1, 24]"},
      {{{-1, 4, 6}}, reshape({8, -1}), "[-1, 8, 3]"},
      {{{-1, 4, 6}}, reshape({3, 8}), "[-1, 3, 8]"},
      {{{-1, 4, 6}}, reshape({3, 7}), "does not fit [3, 7]"},
      {{{-1, 4, 6}}, reshape({5, -1}), "does not fit [5, -1]"},
      {{{-1, 4, 6}}, reshape({-1, -1}), "one of them -1"},
      {{{-1, 4, 6}}, reshape({-2, 12}), "one of them -1"},
      {{{-1, 4, 6}}, reshape({0, -1}), "does not fit [0, -1]"},
      {{{-1, 4, 0}}, reshape({0, 5}), "[-1, 0, 5]"},
      {{{-1, -1, 6}}, reshape({3, -1}), "[-1, 3, -1]"},
      {{{-1, 3}}, repeat(1), "[-1, 1, 3]"},
      {{{-1, 3}}, repeat(std::int64_t{1} << 20), "[-1, 1048576, 3]"},
      {{{-1, 3}}, repeat((std::int64_t{1} << 20) + 1), "expected at most 1048576"},
      {{{-1, 3}}, repeat(0), "has count 0, expected 1 or more"},
      {{{-1, 2, 3}}, repeat(2), "expected 2 dimensions"},
      {{{-1, 2, 3}}, layer_of("time_mean"), "[-1, 3]"},
      {{{-1, 3}}, layer_of("time_mean"), "expected 3 dimensions"},
      {{{-1, 2, 3}}, layer_of("masking"), "[-1, 2, 3]"},
      {{{-1, 3}}, layer_of("masking"), "expected 3 dimensions"},
      {{{-1, -1}}, layer_of("dense", {{"units", std::int64_t{2}}}), "expected its last size"},
      {{{3}}, layer_of("dense", {{"units", std::int64_t{2}}}), "expected 2 or more dimensions"},
      {{{-1, 3}}, layer_of("dense", {{"units", std::int64_t{0}}}), "has units 0"},
      {{{-1, 3}, {-1, 4}}, concat(1), "[-1, 7]"},
      {{{-1, 3}, {-1, 4}}, concat(-1), "[-1, 7]"},
      {{{-1, 3}, {-1, -1}}, concat(1), "[-1, -1]"},
      {{{-1, 3}, {-1, 3}}, concat(0), "has axis 0, expected one behind the first of 2"},
      {{{-1, 3}, {-1, 3}}, concat(-2), "has axis -2, expected one behind the first of 2"},
      {{{-1, 3}, {-1, 3}}, concat(2), "has axis 2, expected one behind the first of 2"},
      {{{-1, 3}, {-1, 3}}, concat(-3), "has axis -3"},
      {{{-1, 2, 3}, {-1, 4, 3}}, concat(2), "has input 1 float32 [-1, 4, 3]"},
      {{{-1, 3}, {-1, 3}}, layer_of("add"), "[-1, 3]"},
      {{{-1, 3}, {-1, -1}}, layer_of("add"), "[-1, 3]"},
      {{{-1, -1}, {-1, 3}}, layer_of("multiply"), "[-1, 3]"},
      {{{-1, 3}, {-1, 4}}, layer_of("average"), "has input 1 float32 [-1, 4]"},
      {{{-1, 3}, {-1, 2, 3}}, layer_of("subtract"), "has input 1 float32 [-1, 2, 3]"},
      {{{-1, 3}, {-1, 3}}, layer_of("add"), "expected floating point", "int32"},
  });
}

TEST(LayerGraphTest, ShapesOfActivationsAndNetworks) {
  const auto activation = [&](const char* text) {
    return layer_of("activation", {{"activation", std::string(text)}});
  };
  const auto recurrent = [&](std::map<std::string, PlainValue> options) {
    options["network"] = std::string("n");
    return layer_of("recurrent", std::move(options));
  };
  expect_shapes_or_refusals({
      {{{-2, 3}}, layer_of("time_mean"), "has a size of -2"},
      {{{-1, 3}}, activation("clip(0,6)"), "[-1, 3]"},
      {{{-1, 3}}, activation("clip(6,6)"), "[-1, 3]"},
      {{{-1, 3}}, activation("clip(7,6)"), "expected clip with at most 2 numbers"},
      {{{-1, 3}}, activation("elu(1,2)"), "expected elu with at most 1 numbers"},
      {{{-1, 3}}, activation("elu(x)"), "expected elu with"},
      {{{-1, 3}}, activation("elu(inf)"), "expected elu with"},
      {{{-1, 3}}, activation("elu(0.5,)"), "expected elu with"},
      {{{-1, 3}}, activation("elu(0.5"), "expected one of"},
      {{{-1, 3}}, activation("Relu"), "expected one of"},
      {{{-1, -1, 3}}, recurrent({{"return_sequences", true}}), "[-1, -1, 2]"},
      {{{-1, -1, 3}}, recurrent({{"return_sequences", false}}), "[-1, 2]"},
      {{{-1, -1, -1}}, recurrent({{"return_sequences", false}}), "[-1, 2]"},
      {{{-1, -1, 4}}, recurrent({}), "expected float32 [B, T, 3]"},
      {{{-1, 3}}, recurrent({}), "expected float32 [B, T, 3]"},
      {{{-1, 2, 3}, {-1, 2}, {-1, 2}}, recurrent({{"return_sequences", false}}), "[-1, 2]"},
      {{{-1, 2, 3}, {-1, 2}}, recurrent({}), "has 1 initial states and 1 layers, expected 2"},
      {{{-1, 2, 3}, {-1, 2}, {-1, 3}}, recurrent({}), "has input 2 float32 [-1, 3]"},
      {{{-1, 2, 3}, {-1, 2, 1}, {-1, 2}}, recurrent({}), "has input 1 float32 [-1, 2, 1]"},
      {{{-1, 2, 3}, {-1, 2}, {-1, 2}},
       recurrent({{"initial_h", std::vector<double>{1.0, 2.0}}}),
       "has initial_h and states as inputs"},
  });
}

// A masked value goes through an activation and a dropout with its mask: the steps of padding
// change nothing.
TEST(LayerGraphTest, MasksGoThroughLayersOfEachStep) {
  const auto activation = [](const char* name) {
    return MappedLayer{
        .name = "between", .kind = "activation", .options = {{"activation", std::string(name)}}};
  };
  Array kernel(DType::kFloat32, {kInput, kInput});
  for (std::int64_t i = 0; i < kInput; ++i) {
    kernel.as<float>()[static_cast<std::size_t>(i * kInput + i)] = 1.0F;
  }
  const MappedLayer between[] = {activation("tanh"),
                                 activation("linear"),
                                 {.name = "between", .kind = "dropout", .options = {{"rate", 0.5}}},
                                 {.name = "between",
                                  .kind = "dense",
                                  .options = {{"units", kInput}, {"use_bias", false}},
                                  .weights = {{"kernel", kernel}}}};
  for (const MappedLayer& one : between) {
    MappedModel model = small_model();
    MappedLayer added = one;
    added.inputs = {{"words", 0}};
    model.layers[2].inputs = {{"between", 0}};
    model.layers.insert(model.layers.begin() + 2, added);
    const auto graph = layers::LayerGraph::of(model);
    const Array padded = graph->predict({ids_of({3, 4, 0, 0}, 1)})[0];
    const Array alone = graph->predict({ids_of({3, 4}, 1)})[0];
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(padded.as<float>()[i], alone.as<float>()[i]) << one.kind;
    }
  }
}

// As it was recorded, or as the call of the model around it says.
TEST(LayerGraphTest, TrainingOfARecordedCallIsThatOfTheModelsCall) {
  MappedModel given;
  given.layers = {
      {.name = "x", .kind = "input", .options = {{"shape", std::vector<std::int64_t>{-1, 40}}}},
      {.name = "drop", .kind = "dropout", .inputs = {{"x", 0}}, .options = {{"rate", 0.5}}}};
  given.outputs = {{"drop", 0}};
  const auto graph = layers::LayerGraph::of(given);
  Array ones(DType::kFloat32, {2, 40});
  std::fill_n(ones.as<float>().data(), ones.size(), 1.0F);
  // Without a word a call is inference.
  const std::vector<Tensor> values = {Tensor(ones.view())};
  EXPECT_TRUE(openrnn::testing::same_bits((*graph)(values)[0].to_host(), ones));
  EXPECT_TRUE(openrnn::testing::same_bits(graph->call(values)[0].to_host(), ones));
  for (const bool recorded : {false, true}) {
    const Tensor x = Input({-1, 40}, DType::kFloat32);
    Model model({x}, (*graph)({x}, recorded));
    const auto drops = [&](std::optional<bool> training) {
      const Array found = model({Tensor(ones.view())}, training)[0].to_host();
      return !openrnn::testing::same_bits(found, ones);
    };
    EXPECT_EQ(drops({}), recorded);
    EXPECT_TRUE(drops(true));
    EXPECT_FALSE(drops(false));
  }
}

TEST(LayerGraphTest, CallsThatDoNotFit) {
  const auto graph = layers::LayerGraph::of(small_model());
  EXPECT_THROW((*graph)({}), ArgumentError);
  EXPECT_THROW((*graph)({ids_of({9}, 1)}), ArgumentError);
  EXPECT_EQ(testing::thrown<ArgumentError>([&] {
              (*graph)({Tensor(Array(DType::kFloat32, {1, 2}).view())});
            }),
            "[" + graph->name() + "] inputs[0] is float32 [1, 2], expected int32 [-1, -1]");
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

// A stateful layer goes on from the batch before, of as many rows, and so does a copy.
TEST(LayerGraphTest, StatefulLayersGoOnFromTheBatchBefore) {
  MappedModel model = small_model();
  model.layers[2].options["stateful"] = true;
  const auto fresh = [&] { return layers::LayerGraph::of(model); };
  const Tensor first = ids_of({1, 2, 3, 4, 1, 2}, 2), second = ids_of({4, 3, 2, 2, 4, 1}, 2);
  const auto same = [](const Array& a, const Array& b) { return testing::same_bits(a, b); };
  const auto alone = fresh()->predict({second})[0];
  const auto graph = fresh();
  const auto begun = graph->predict({first})[0];
  const auto copy = std::dynamic_pointer_cast<layers::LayerGraph>(graph->copy());
  const auto next = graph->predict({second})[0];
  EXPECT_FALSE(same(next, alone));
  EXPECT_TRUE(same(copy->predict({second})[0], next));
  // One call of both batches, a row's steps in a row.
  const Tensor whole = ids_of({1, 2, 3, 4, 3, 2, 4, 1, 2, 2, 4, 1}, 2);
  const Array all = fresh()->predict({whole})[0];
  for (std::int64_t i = 0; i < all.size(); ++i) {
    EXPECT_NEAR(element(all.view(), i), element(next.view(), i), 1e-6);
  }
  // A batch of other rows has no state, and leaves one of its own.
  const Tensor three = ids_of({1, 2, 3, 4, 1, 2}, 3);
  EXPECT_TRUE(same(graph->predict({three})[0], fresh()->predict({three})[0]));
  EXPECT_TRUE(same(graph->predict({first})[0], begun));
}

TEST(LayerGraphTest, LayersAreFrozenAsTheFileSays) {
  MappedModel model = small_model();
  for (const std::size_t i : {1U, 2U, 3U}) model.layers[i].options["trainable"] = i == 2;
  const auto graph = layers::LayerGraph::of(model);
  EXPECT_EQ(graph->trainable_weights().size(), 1U);
  EXPECT_TRUE(graph->layer("gru")->trainable());
  EXPECT_FALSE(graph->layer("words")->trainable() || graph->layer("head")->trainable());
}

TEST(LayerGraphTest, EachLayerLiesOnTheDeviceThatIsAskedFor) {
  const MappedModel model = small_model();
  const Device& device = testing::test_device();
  const auto there = layers::LayerGraph::of(model, &device), here = layers::LayerGraph::of(model);
  for (const char* const name : {"words", "gru", "head"}) {
    for (const Variable& weight : there->layer(name)->own_weights()) {
      EXPECT_EQ(&weight.device(), &device) << name;
    }
  }
  const Tensor ids = ids_of({1, 2, 3, 4, 1, 2}, 2);
  EXPECT_TRUE(testing::same_bits(there->predict({ids})[0], here->predict({ids})[0]));
}

// The other one is zeros.
TEST(LayerGraphTest, BeginsWithTheOneStateOfItsOptions) {
  for (const char* const left_out : {"initial_h", "initial_c"}) {
    const MappedModel whole = model_with_states();
    MappedModel one = whole, zeros = whole;
    one.layers[1].options.erase(left_out);
    zeros.layers[1].options[left_out] = std::vector<double>(2 * kUnits, 0.0);
    Array x(DType::kFloat32, {3, 2, kInput});
    for (int i = 0; i < x.size(); ++i) x.as<float>()[static_cast<std::size_t>(i)] = 0.1F * i;
    const auto run = [&](const MappedModel& model) {
      return layers::LayerGraph::of(model)->predict({Tensor(x.view())})[0];
    };
    EXPECT_TRUE(openrnn::testing::same_bits(run(one), run(zeros))) << left_out;
    EXPECT_FALSE(openrnn::testing::same_bits(run(one), run(whole))) << left_out;
  }
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
