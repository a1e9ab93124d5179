// Calls of whole models one after another: what they carry on, and what a file of them says.
#include <gtest/gtest.h>

#include "layers/graph/gru_model.h"
#include "ops/check_gradient.h"
#include "saveables/support.h"
#include "support/tagged_device.h"

namespace openrnn {
namespace {

using layers::LayerGraph;
using openrnn::testing::same_bits;
using openrnn::testing::values_of;

constexpr std::int64_t kUnits = 3, kWidth = 2;

Array varied(Shape shape, std::uint64_t seed, DType dtype = DType::kFloat32) {
  Array values(dtype, std::move(shape));
  RandomStream random(seed);
  random_uniform_initializer(-1.0, 1.0)(values.view(), random);
  return values;
}

MappedLayer values_layer(std::int64_t width = kWidth) {
  return {.name = "x",
          .kind = "input",
          .options = {{"shape", std::vector<std::int64_t>{-1, -1, width}}}};
}

// A network over the input 'x', whose layer has these options.
MappedModel model_of(RnnSpec spec, std::map<std::string, PlainValue> options) {
  spec.num_units = kUnits;
  spec.input_size = kWidth;
  options["network"] = std::string("net");
  MappedModel model;
  model.networks.push_back({.name = "net",
                            .spec = spec,
                            .params = initialize_params(ParamsLayout(spec), 7, {},
                                                        random_uniform_initializer(-0.5, 0.5))});
  model.layers = {
      values_layer(),
      {.name = "net", .kind = "recurrent", .inputs = {{"x", 0}}, .options = std::move(options)}};
  model.outputs = {{"net", 0}};
  return model;
}

Array run(LayerGraph& graph, const Array& x) { return graph.predict({Tensor(x.view())})[0]; }

/// Outputs, and the last states where one layer has them, of a call that begins with the states of
/// options.
void expect_states_of_options(RnnSpec spec) {
  spec.num_units = kUnits;
  spec.input_size = kWidth;
  const std::int64_t rows = spec.num_pseudo_layers(), batch = 2, steps = 4;
  const Array h = varied({rows, spec.hidden_size()}, 4), c = varied({rows, kUnits}, 5);
  std::map<std::string, PlainValue> options{{"initial_h", values_of(Tensor(h.view()))},
                                            {"return_state", spec.num_layers == 1}};
  if (spec.has_cell()) options["initial_c"] = values_of(Tensor(c.view()));
  MappedModel model = model_of(spec, options);
  const std::int64_t kinds = spec.has_cell() ? 2 : 1;
  const std::int64_t states = spec.num_layers == 1 ? spec.num_dirs() * kinds : 0;
  for (std::int64_t i = 1; i <= states; ++i) model.outputs.push_back({"net", i});
  const Tensor x(varied({batch, steps, kWidth}, 1).view());
  const auto of_rows = [&](const Array& state) {
    const Tensor one(state.view());
    return ops::stack(std::vector<Tensor>(static_cast<std::size_t>(batch), one));
  };
  ops::RnnInputs in{.x = x, .h0 = of_rows(h), .params = Tensor(model.networks[0].params.view())};
  if (spec.has_cell()) in.c0 = of_rows(c);
  in.time_major = false;
  in.training = false;
  const ops::RnnOutputs expected = ops::rnn(spec, in, nullptr);
  const std::vector<Tensor> found = LayerGraph::of(model)->call({x});
  EXPECT_TRUE(same_bits(found[0].to_host(), expected.output.to_host())) << describe(spec);
  for (std::int64_t i = 0; i < states; ++i) {
    const Tensor& state = i % kinds == 0 ? expected.h : expected.c;
    const Tensor row = ops::reshape(ops::slice(state, {.axis = 1, .begin = i / kinds, .size = 1}),
                                    {batch, state.shape()[2]});
    const Tensor& own = found.at(static_cast<std::size_t>(i) + 1);
    EXPECT_TRUE(same_bits(own.to_host(), row.to_host())) << describe(spec) << " state " << i;
  }
}

// Gradients may be asked for outside of training; those of a call end at its inputs.
TEST(LayerGraphCalls, AKeptStateBringsNoGradientToTheCallBefore) {
  const auto graph = LayerGraph::of(model_of({.mode = RnnMode::kGru}, {{"stateful", true}}));
  GradientTape tape;
  const Tensor first = tape.watch(Tensor(varied({2, 3, kWidth}, 1).view()));
  const Tensor second = tape.watch(Tensor(varied({2, 3, kWidth}, 2).view()));
  graph->call({first});
  const Tensor y = ops::reduce_sum(graph->call({second})[0]);
  tape.close();
  const auto gradients = tape.gradient(y, std::vector{first, second});
  EXPECT_TRUE(gradients[0].empty());
  ASSERT_FALSE(gradients[1].empty());
  EXPECT_EQ(gradients[1].shape(), second.shape());
}

// The states of the options, until there are those of a call of as many rows.
TEST(LayerGraphCalls, AStatefulLayerBeginsWithTheStatesOfItsOptions) {
  const std::vector<double> h{0.5, -0.25, 0.75}, c{-0.5, 1.0, 0.25};
  const auto made = [&](bool stateful) {
    return LayerGraph::of(
        model_of({}, {{"stateful", stateful}, {"initial_h", h}, {"initial_c", c}}));
  };
  const auto plain = made(false), stateful = made(true);
  const Array two = varied({2, 3, kWidth}, 1), next = varied({2, 3, kWidth}, 2);
  const Array one = varied({1, 3, kWidth}, 3);
  EXPECT_TRUE(same_bits(run(*stateful, two), run(*plain, two)));
  EXPECT_FALSE(same_bits(run(*stateful, next), run(*plain, next))) << "it goes on";
  EXPECT_TRUE(same_bits(run(*stateful, one), run(*plain, one))) << "of other rows";
  EXPECT_FALSE(same_bits(run(*stateful, one), run(*plain, one)));
  stateful->reset_states();
  EXPECT_TRUE(same_bits(run(*stateful, one), run(*plain, one)));
}

// Of each layer and direction its own, the same for all rows; widths differ with a projection.
TEST(LayerGraphCalls, StatesOfOptionsAreThoseOfACallOfTheNetwork) {
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru, RnnMode::kRnnRelu}) {
    for (const std::int64_t projected : {0, 2}) {
      for (const std::int64_t layers : {1, 2}) {
        for (const Direction direction : {Direction::kUnidirectional, Direction::kBidirectional}) {
          expect_states_of_options(
              {.mode = mode, .num_layers = layers, .direction = direction, .num_proj = projected});
        }
      }
    }
  }
}

// Both states of an LSTM go on: two calls are one.
TEST(LayerGraphCalls, TwoCallsOfAStatefulLayerAreOneOfAllSteps) {
  const MappedModel model = model_of({.num_layers = 2}, {{"stateful", true}});
  const auto graph = LayerGraph::of(model), whole = LayerGraph::of(model);
  const Tensor x(varied({2, 5, kWidth}, 1).view());
  const auto steps = [&](std::int64_t begin, std::int64_t size) {
    return ops::slice(x, {.axis = 1, .begin = begin, .size = size});
  };
  graph->call({steps(0, 2)});
  const Tensor rest = graph->call({steps(2, 3)})[0];
  const Tensor all = ops::slice(whole->call({x})[0], {.axis = 1, .begin = 2, .size = 3});
  EXPECT_TRUE(same_bits(rest.to_host(), all.to_host()));
}

TEST(LayerGraphCalls, ACallThatFailsChangesNoState) {
  MappedModel model = model_of({.mode = RnnMode::kGru}, {{"stateful", true}});
  model.layers.push_back(ids_layer());
  model.layers.push_back({.name = "words",
                          .kind = "embedding",
                          .inputs = {{"ids", 0}},
                          .options = {{"vocabulary", std::int64_t{4}}, {"dim", kWidth}},
                          .weights = {{"embeddings", varied({4, kWidth}, 5)}}});
  model.outputs.push_back({"words", 0});
  const auto graph = LayerGraph::of(model), other = LayerGraph::of(model);
  const Tensor x(varied({1, 2, kWidth}, 1).view());
  const auto ids = [](std::vector<std::int32_t> values) {
    return Tensor(Array::of<std::int32_t>({1, 2}, values).view());
  };
  EXPECT_THROW(graph->call({x, ids({1, 4})}), ArgumentError);
  const Array found = graph->predict({x, ids({1, 3})})[0];
  EXPECT_TRUE(same_bits(found, other->predict({x, ids({1, 3})})[0]));
  EXPECT_FALSE(same_bits(found, graph->predict({x, ids({1, 3})})[0])) << "this one went on";
}

TEST(LayerGraphCalls, ALayerThatUsesNoMaskReadsAllSteps) {
  const auto made = [](bool masks, bool uses) {
    MappedModel model = gru_model(kUnits, kWidth);
    model.layers = {
        ids_layer(),
        {.name = "words",
         .kind = "embedding",
         .inputs = {{"ids", 0}},
         .options = {{"vocabulary", std::int64_t{4}}, {"dim", kWidth}, {"mask_zero", masks}},
         .weights = {{"embeddings", varied({4, kWidth}, 5)}}},
        {.name = "gru",
         .kind = "recurrent",
         .inputs = {{"words", 0}},
         .options = {{"network", std::string("gru")}, {"uses_mask", uses}}}};
    model.outputs = {{"gru", 0}};
    return LayerGraph::of(model);
  };
  const Tensor ids(Array::of<std::int32_t>({1, 4}, {{3, 0, 1, 0}}).view());
  const Array all = made(false, true)->predict({ids})[0];
  EXPECT_TRUE(same_bits(made(true, false)->predict({ids})[0], all));
  EXPECT_FALSE(same_bits(made(true, true)->predict({ids})[0], all));
}

// The halves of both directions, whole sequences and last outputs, and h and c of each direction.
TEST(LayerGraphCalls, TwoDirectionsAreMergedAsTheOptionSays) {
  const RnnSpec both{.direction = Direction::kBidirectional};
  const Tensor x(varied({2, 3, kWidth}, 1).view());
  for (const bool sequences : {true, false}) {
    const auto outputs = [&](const char* merge) {
      MappedModel model = model_of(
          both,
          {{"merge", std::string(merge)}, {"return_sequences", sequences}, {"return_state", true}});
      const std::int64_t count = merge == std::string("none") ? 6 : 5;
      for (std::int64_t i = 1; i < count; ++i) model.outputs.push_back({"net", i});
      return LayerGraph::of(model)->call({x});
    };
    const std::vector<Tensor> joined = outputs("concat");
    const std::int64_t axis = sequences ? 2 : 1;
    const std::vector<Tensor> halves = ops::split(joined[0], axis, {kUnits, kUnits});
    const auto expect = [&](const char* merge, const Tensor& expected) {
      EXPECT_TRUE(same_bits(outputs(merge)[0].to_host(), expected.to_host())) << merge;
    };
    const Tensor sum = ops::add(halves[0], halves[1]);
    expect("sum", sum);
    expect("ave", ops::scale(sum, 0.5));
    expect("mul", ops::multiply(halves[0], halves[1]));
    const std::vector<Tensor> apart = outputs("none");
    ASSERT_EQ(apart.size(), 6U);
    EXPECT_TRUE(same_bits(apart[0].to_host(), halves[0].to_host()));
    EXPECT_TRUE(same_bits(apart[1].to_host(), halves[1].to_host()));
    if (sequences) continue;
    EXPECT_TRUE(same_bits(apart[2].to_host(), halves[0].to_host())) << "h of the first direction";
    EXPECT_TRUE(same_bits(apart[4].to_host(), halves[1].to_host())) << "h of the second one";
    EXPECT_FALSE(same_bits(apart[3].to_host(), apart[2].to_host())) << "c";
    EXPECT_FALSE(same_bits(apart[5].to_host(), apart[4].to_host())) << "c";
  }
}

TEST(LayerGraphCalls, ADescriptionHasNoWeightsAndAFileNoDevice) {
  MappedModel model = gru_model(kUnits, kWidth);
  model.layers = {values_layer(),
                  {.name = "gru",
                   .kind = "recurrent",
                   .inputs = {{"x", 0}},
                   .options = {{"network", std::string("gru")}}},
                  {.name = "head",
                   .kind = "dense",
                   .inputs = {{"gru", 0}},
                   .options = {{"units", std::int64_t{2}}, {"use_bias", false}},
                   .weights = {{"kernel", varied({kUnits, 2}, 3)}}}};
  model.outputs = {{"head", 0}};
  const auto graph = LayerGraph::of(model, &openrnn::testing::test_device());
  const MappedModel written = graph->to_model();
  ASSERT_EQ(written.networks.size(), 1U);
  EXPECT_EQ(written.networks[0].spec.compute.device, nullptr);
  EXPECT_EQ(written.networks[0].name, "gru");
  EXPECT_EQ(written.outputs, model.outputs);
  ASSERT_EQ(written.layers[2].weights.size(), 1U);
  EXPECT_EQ(written.layers[2].weights[0].name, "kernel");
  EXPECT_TRUE(same_bits(written.layers[2].weights[0].values, model.layers[2].weights[0].values));
  // Of layers that were given weights besides, which are not kept twice.
  LayerGraph again(model.layers, model.outputs, graph->layers(), "mine");
  EXPECT_EQ(again.name(), "mine");
  EXPECT_TRUE(again.description()[2].weights.empty());
  EXPECT_EQ(again.to_model().layers[2].weights.size(), 1U);
}

TEST(LayerGraphCalls, AModelHasTheDtypeOfItsWeights) {
  const auto dtype_of = [](DType dtype) {
    return LayerGraph::of(model_of({.mode = RnnMode::kGru, .dtype = dtype}, {}))->dtype();
  };
  MappedModel wide = model_of({.mode = RnnMode::kGru, .dtype = DType::kFloat64}, {});
  wide.layers[0].options["dtype"] = std::string("float64");
  EXPECT_EQ(LayerGraph::of(wide)->dtype(), DType::kFloat64);
  EXPECT_EQ(dtype_of(DType::kFloat32), DType::kFloat32);
  MappedModel none;
  none.layers = {
      values_layer(),
      {.name = "drop", .kind = "dropout", .inputs = {{"x", 0}}, .options = {{"rate", 0.5}}}};
  none.outputs = {{"drop", 0}};
  EXPECT_EQ(LayerGraph::of(none)->dtype(), DType::kFloat32);
}

}  // namespace
}  // namespace openrnn
