// A refused call leaves the seeds of the graph, and a model's dropout, where they were: the next
// call has the masks that it would have had.
#include "openrnn/graph_layer.h"
#include "ops/check_gradient.h"

namespace openrnn::testing {
namespace {

using Tensors = std::vector<Tensor>;

constexpr std::int64_t kLayers = 2, kUnits = 7, kDepth = 3, kTime = 4, kBatch = 2;

Tensor uniform(const Shape& shape, std::uint64_t seed) {
  return random_tensor(shape, seed, -0.5, 0.5, DType::kFloat32);
}

// No seed of its own: that of a call is the graph's next.
RnnSpec network() {
  return {.num_layers = kLayers,
          .num_units = kUnits,
          .input_size = kDepth,
          .training = {.dropout = 0.5}};
}

// x, h, c, params.
Tensors good_inputs() {
  return {uniform({kTime, kBatch, kDepth}, 1), uniform({kLayers, kBatch, kUnits}, 2),
          uniform({kLayers, kBatch, kUnits}, 3), uniform({params_size(network())}, 4)};
}

Tensors with(std::size_t index, Tensor tensor) {
  Tensors inputs = good_inputs();
  inputs[index] = std::move(tensor);
  return inputs;
}

// Calls that an operation on these sizes refuses, each with another reason.
struct Refused {
  const char* why;
  Tensors inputs = good_inputs();
  std::optional<std::vector<std::int32_t>> sequence_lengths = {};
  Tensor lengths = {};
};

std::vector<Refused> refused_calls() {
  return {{"rank of x", with(0, uniform({kTime, kDepth}, 1))},
          {"rank of h", with(1, uniform({kBatch, kUnits}, 1))},
          {"batch of h", with(1, uniform({kLayers, kBatch + 1, kUnits}, 1))},
          {"batch of c", with(2, uniform({kLayers, kBatch + 1, kUnits}, 1))},
          {"dtype of c", with(2, ops::cast(good_inputs()[2], DType::kFloat64))},
          {"short params", with(3, uniform({5}, 1))},
          {"depth of x", with(0, uniform({kTime, kBatch, kDepth + 1}, 1))},
          {"a length beyond T", good_inputs(), {{1, kTime + 1}}},
          {"a length too few", good_inputs(), {{1}}},
          {"lengths of two dimensions", good_inputs(), {}, int_tensor({1, 2}, {1, 2})}};
}

template <class Call>
void expect_refused(const char* why, const Call& call) {
  EXPECT_THROW(call(), ArgumentError) << why;
}

// The graph of one test, with a seed, so that each operation's differs from the last one's.
struct SeededGraph {
  Graph graph;
  Graph::AsDefault own{graph};
  SeededGraph() { graph.set_seed(5); }
};

ops::RnnOutputs call_function(const Tensors& in,
                              const ops::CudnnFunctionOptions& options = {.network = network()}) {
  return ops::cudnn_lstm(in[0], in[1], in[2], in[3], options);
}

Tensors inputs_like(const Tensors& values) {
  Tensors made;
  for (const Tensor& value : values) made.push_back(Input(value.shape(), value.dtype()));
  return made;
}

TEST(RefusedCalls, OfAFunctionUseUpNoSeed) {
  std::vector<double> first, second;
  {
    const SeededGraph seeded;
    first = values_of(call_function(good_inputs()).output);
    second = values_of(call_function(good_inputs()).output);
  }
  ASSERT_NE(first, second);
  const SeededGraph seeded;
  const auto all = [&](const auto& as_given) {
    for (const Refused& call : refused_calls()) {
      expect_refused(call.why, [&] {
        call_function(as_given(call.inputs), {.network = network(),
                                              .sequence_lengths = call.sequence_lengths,
                                              .lengths = call.lengths});
      });
    }
  };
  all([](const Tensors& inputs) { return inputs; });
  for (const double rate : {1.5, -0.1}) {
    RnnSpec wrong = network();
    wrong.training.dropout = rate;
    expect_refused("network", [&] { call_function(good_inputs(), {.network = wrong}); });
    expect_refused("network of a symbolic call",
                   [&] { call_function(inputs_like(good_inputs()), {.network = wrong}); });
  }
  expect_refused("states", [&] { call_function(with(1, uniform({0, kBatch, kUnits}, 1))); });
  expect_refused("params of a symbolic call",
                 [&] { call_function(inputs_like(with(3, uniform({5}, 1)))); });
  EXPECT_EQ(values_of(call_function(good_inputs()).output), first);
  // A recorded call takes its seed when it is recorded, and keeps it.
  const Tensors in = inputs_like(good_inputs());
  Model model(in, {call_function(in).output});
  EXPECT_EQ(values_of(model(good_inputs())[0]), second);
  EXPECT_EQ(values_of(model(good_inputs())[0]), second);
}

// What an engine or a tape refuses, and not the shapes; whether masks are drawn inside the engine
// or around it.
TEST(RefusedCalls, OfUntrainableWeightsUseUpNothing) {
  for (double TrainingOptions::*rate :
       {&TrainingOptions::dropout, &TrainingOptions::input_dropout,
        &TrainingOptions::output_dropout, &TrainingOptions::drop_connect}) {
    const SeededGraph seeded;
    RnnSpec stored = network();
    stored.training = {};
    stored.training.*rate = 0.5;
    stored.compute.weights_dtype = WeightsDType::kBfloat16;
    ops::CudnnLSTM model(stored);
    const auto next = Graph::current().op_seeds({});
    const GradientTape tape;
    Tensors in = good_inputs();
    in[3] = tape.watch(in[3]);
    EXPECT_ANY_THROW(model(in[0], in[1], in[2], in[3]));
    EXPECT_EQ(model.dropout_state().calls(), 0u);
    EXPECT_ANY_THROW(call_function(in, {.network = stored}));
    EXPECT_EQ(Graph::current().op_seeds({}).second, next.second + 1);
  }
}

TEST(RefusedCalls, OfAModelUseUpNoMask) {
  const SeededGraph seeded;
  ops::CudnnLSTM model(network());
  const auto run = [&](const Tensors& in, const ops::CudnnCallOptions& options = {}) {
    return values_of(model(in[0], in[1], in[2], in[3], true, options).output);
  };
  const std::vector<double> first = run(good_inputs()), second = run(good_inputs());
  ASSERT_NE(first, second);
  model.dropout_state().set_calls(1);
  for (const Refused& call : refused_calls()) {
    expect_refused(call.why, [&] {
      run(call.inputs, {.sequence_lengths = call.sequence_lengths, .lengths = call.lengths});
    });
  }
  EXPECT_EQ(run(good_inputs()), second);
  EXPECT_EQ(model.dropout_state().calls(), 2u);
}

// Lengths and batch sizes that only the values of a recorded call show.
TEST(RefusedCalls, ReplayedUseUpNoMask) {
  const SeededGraph seeded;
  ops::CudnnLSTM model(network());
  const Tensors values = good_inputs();
  const Tensor x = Input({-1, -1, kDepth}), h = Input({kLayers, -1, kUnits}),
               lengths = Input({-1}, DType::kInt32);
  Model recorded({x, h, lengths},
                 {model(x, h, values[2], values[3], true, {.lengths = lengths}).output});
  const auto run = [&](const Tensor& input, const std::vector<std::int32_t>& steps) {
    return values_of(recorded({input, values[1], int_tensor({kBatch}, steps)})[0]);
  };
  const std::vector<double> first = run(values[0], {4, 3}), second = run(values[0], {4, 3});
  ASSERT_NE(first, second);
  model.dropout_state().set_calls(1);
  expect_refused("length", [&] { run(values[0], {4, 5}); });
  expect_refused("batch", [&] { run(uniform({kTime, kBatch + 1, kDepth}, 1), {4, 3}); });
  EXPECT_EQ(run(values[0], {4, 3}), second);
}

TEST(RefusedCalls, OfDropoutAskForNoKey) {
  int asked = 0;
  const auto next = [&asked] { return DropoutKey{.seed = 3, .call = ++asked * 1ULL}; };
  const Tensor x = uniform({3, 5}, 1);
  expect_refused("rate", [&] { ops::next_dropout(x, 1.5, next); });
  expect_refused("dtype", [&] { ops::next_dropout(int_tensor({2}, {1, 2}), 0.5, next); });
  expect_refused("symbolic", [&] { ops::next_dropout(Input({2}, DType::kInt32), 0.5, next); });
  EXPECT_EQ(asked, 0);
  EXPECT_EQ(values_of(ops::next_dropout(x, 0.5, next)),
            values_of(ops::dropout(x, 0.5, {.seed = 3, .call = 1})));
  EXPECT_EQ(asked, 1);
}

}  // namespace
}  // namespace openrnn::testing
