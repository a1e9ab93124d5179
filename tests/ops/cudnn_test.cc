#include <set>

#include "openrnn/graph_layer.h"
#include "ops/check_gradient.h"
#include "support/setting.h"

namespace openrnn::testing {
namespace {

using Tensors = std::vector<Tensor>;

Tensor uniform(const Shape& shape, std::uint64_t seed) {
  return random_tensor(shape, seed, 0.0, 1.0, DType::kFloat32);
}

RnnSpec options(std::int64_t layers, std::int64_t units, std::int64_t input) {
  return {.num_layers = layers, .num_units = units, .input_size = input};
}

TEST(CudnnOps, PropertiesAndSizes) {
  const ops::CudnnLSTM lstm(
      {.num_layers = 2, .num_units = 7, .input_size = 3, .direction = Direction::kBidirectional});
  EXPECT_EQ(lstm.spec().num_layers, 2);
  EXPECT_EQ(lstm.spec().num_units, 7);
  EXPECT_EQ(lstm.spec().input_size, 3);
  EXPECT_EQ(to_string(lstm.spec().mode), "lstm");
  EXPECT_EQ(to_string(lstm.spec().input_mode), "linear_input");
  EXPECT_EQ(to_string(lstm.spec().direction), "bidirectional");
  EXPECT_EQ(lstm.spec().num_proj, 0);
  const ops::CudnnGRU skip(
      {.num_layers = 2, .num_units = 4, .input_size = 4, .input_mode = InputMode::kSkipInput});
  EXPECT_EQ(to_string(skip.spec().input_mode), "skip_input");
  EXPECT_EQ(skip.params_size(),
            ops::CudnnGRU(options(2, 4, 4)).params_size() - 48);  // 3 W of 4 by 4
  EXPECT_EQ(lstm.params_size(), 1960);
  EXPECT_EQ(ops::CudnnGRU(options(1, 100, 50)).params_size(), 45600);
  EXPECT_EQ(ops::CudnnRNNTanh(options(2, 8, 4)).params_size(), 256);
  EXPECT_EQ(to_string(ops::CudnnRNNRelu(options(2, 8, 4)).spec().mode), "rnn_relu");
  EXPECT_EQ(ops::cudnn_rnn_opaque_params_size(
                {.num_layers = 2, .num_units = 6, .input_size = 5, .num_proj = 4}),
            552);
}

// The second state of a projected gru is an argument that its calls do not have.
TEST(CudnnOps, AModelWithoutACellTakesNoNetworkWithOne) {
  RnnSpec spec = options(1, 6, 4);
  spec.num_proj = 3;
  const auto refusal = [&] {
    try {
      ops::CudnnGRU{spec};
    } catch (const ArgumentError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal(),
            "[CudnnGRU] num_proj is 3, expected 0: with a projection a gru has a second state, "
            "which only layers::CudnnGRU and ops::rnn take");
  ops::CudnnRNNTanh tanh(spec);
  const Tensor params = uniform({tanh.params_size()}, 1);
  const ops::RnnOutputs found = tanh(uniform({5, 2, 4}, 2), uniform({1, 2, 3}, 3), params);
  EXPECT_EQ(found.output.shape(), (Shape{5, 2, 3}));
  spec.num_proj = 6;  // no projection
  EXPECT_NO_THROW(ops::CudnnGRU{spec});
}

// Said when a Model is called, it counts more than what the function was recorded with.
TEST(CudnnOps, TrainingOfARecordedCall) {
  const ops::CudnnGRU gru(options(2, 6, 5));
  const Tensor params = uniform({gru.params_size()}, 1),
               zeros = ops::scale(uniform({2, 3, 6}, 2), 0);
  const Tensor in = Input({4, 3, 5}), x = uniform({4, 3, 5}, 3);
  const auto output = [&](const Tensor& given, bool training) {
    return ops::cudnn_gru(given, zeros, params,
                          {.is_training = training, .network = {.training = {.dropout = 0.5}}})
        .output;
  };
  const std::vector<double> still = values_of(output(x, false));
  for (const bool recorded : {true, false}) {
    Model model({in}, {output(in, recorded)});
    EXPECT_EQ(values_of(model({x}, false)[0]), still) << recorded;
    EXPECT_NE(values_of(model({x}, true)[0]), still) << recorded;
    EXPECT_EQ(values_of(model({x})[0]) == still, !recorded);
  }
}

TEST(CudnnOps, CanonicalRoundTrip) {
  const ops::CudnnGRU gru(options(2, 6, 5));
  const Tensor params = uniform({gru.params_size()}, 1);
  const CanonicalParams canonical = gru.params_to_canonical(params);
  EXPECT_EQ(canonical.weights.size(), 12u);
  EXPECT_EQ(canonical.weights[0].shape(), (Shape{6, 5}));
  std::vector<ConstArrayView> weights, biases;
  for (const Array& weight : canonical.weights) weights.push_back(weight.view());
  for (const Array& bias : canonical.biases) biases.push_back(bias.view());
  EXPECT_EQ(values_of(gru.canonical_to_params(weights, biases)), values_of(params));
  weights.pop_back();
  EXPECT_EQ(message_of<ArgumentError>([&] { gru.canonical_to_params(weights, biases); }),
            "[canonical_to_params] 11 weights, expected 12");
}

// A network of one unit by hand: T 1, B 1.
TEST(CudnnOps, OneUnitByHand) {
  ops::CudnnRNNRelu relu(options(1, 1, 1));
  const auto scalar = [](float value) {
    return Tensor(ConstArrayView{&value, DType::kFloat32, {1, 1, 1}});
  };
  const float buffer[] = {2.0f, 3.0f, 0.25f, 0.5f};  // W, R, bW, bR
  const Tensor params(ConstArrayView{buffer, DType::kFloat32, {4}});
  const ops::RnnOutputs out = relu(scalar(1.5f), scalar(-0.5f), params);
  EXPECT_EQ(out.output.item(), 2.0 * 1.5 - 3.0 * 0.5 + 0.75);
  EXPECT_EQ(out.h.item(), out.output.item());
  EXPECT_TRUE(out.c.empty());
  EXPECT_EQ(relu(scalar(-1.5f), scalar(-0.5f), params).output.item(), 0.0);
}

TEST(CudnnOps, ObjectsAndFunctionsAgree) {
  ops::CudnnLSTM lstm(options(2, 5, 3));
  const Tensor x = uniform({4, 2, 3}, 1), h = uniform({2, 2, 5}, 2), c = uniform({2, 2, 5}, 3);
  const Tensor params = uniform({lstm.params_size()}, 4);
  const ops::RnnOutputs a = lstm(x, h, c, params), b = ops::cudnn_lstm(x, h, c, params);
  EXPECT_EQ(values_of(a.output), values_of(b.output));
  EXPECT_EQ(values_of(a.c), values_of(b.c));
  EXPECT_EQ(a.output.shape(), (Shape{4, 2, 5}));
  EXPECT_EQ(a.h.shape(), h.shape());
  const Tensor gru_params = uniform({ops::CudnnGRU(options(2, 5, 3)).params_size()}, 5);
  EXPECT_EQ(ops::cudnn_gru(x, h, gru_params).output.shape(), (Shape{4, 2, 5}));
  const Tensor small = uniform({ops::CudnnRNNTanh(options(2, 5, 3)).params_size()}, 6);
  EXPECT_EQ(ops::cudnn_rnn_tanh(x, h, small).h.shape(), h.shape());
  EXPECT_EQ(ops::cudnn_rnn_relu(x, h, small).h.shape(), h.shape());
}

TEST(CudnnOps, AnotherInputDepthIfTheBufferIsLongEnough) {
  ops::CudnnGRU gru(options(1, 5, 9));
  const Tensor params = uniform({gru.params_size()}, 1), h = uniform({1, 2, 5}, 2);
  EXPECT_EQ(gru(uniform({3, 2, 4}, 3), h, params).output.shape(), (Shape{3, 2, 5}));
  EXPECT_EQ(message_of<ArgumentError>([&] {
              gru(uniform({3, 2, 10}, 3), h, params);
            }),
            "[CudnnGRU] params has 240 elements, expected at least 255 for gru, 1 layer, 5 units, "
            "input size 10, unidirectional, float32");
}

// The recorded call is of that depth as well, also before it is known whether the buffer is.
TEST(CudnnOps, AnotherInputDepthOfARecordedCall) {
  ops::CudnnGRU gru(options(1, 5, 9));
  const Tensor params = uniform({gru.params_size()}, 1), h = uniform({1, 2, 5}, 2);
  for (const std::int64_t depth : {4, 9}) {
    const Tensor x = uniform({3, 2, depth}, 3), in = Input({3, -1, depth});
    const ops::RnnOutputs made = gru(in, h, params), wanted = gru(x, h, params);
    EXPECT_EQ(made.output.shape(), (Shape{3, -1, 5}));
    const Tensors found = Model({in}, {made.output, made.h})({x});
    EXPECT_EQ(values_of(found[0]), values_of(wanted.output)) << depth;
    EXPECT_EQ(values_of(found[1]), values_of(wanted.h)) << depth;
  }
  EXPECT_EQ(message_of<ArgumentError>([&] {
              gru(Input({3, 2, 10}), h, params);
            }),
            "[CudnnGRU] params is float32 of shape [240], expected float32 of 1 dimension and at "
            "least 255 elements for gru, 1 layer, 5 units, input size 10, unidirectional, float32");
}

RnnSpec masks(std::int64_t seed) { return {.training = {.dropout = 0.5, .seed = seed}}; }

// Lengths, layout, training and the key of dropout reach a call that was recorded.
TEST(CudnnOps, FunctionsReplayAsTheyWereCalled) {
  const std::int64_t size = ops::CudnnLSTM(options(2, 2, 3)).params_size();
  const Tensors values{uniform({2, 2, 3}, 1), uniform({2, 2, 2}, 2), uniform({2, 2, 2}, 3),
                       ops::scale(uniform({size}, 4), 0.5)};
  const auto call = [](const Tensors& in, const ops::CudnnFunctionOptions& how) {
    const ops::RnnOutputs out = ops::cudnn_lstm(in[0], in[1], in[2], in[3], how);
    return Tensors{out.output, out.h, out.c};
  };
  const auto plain = values_of(call(values, {})[0]);
  for (const ops::CudnnFunctionOptions& how : std::vector<ops::CudnnFunctionOptions>{
           {.network = masks(7)},
           {.is_training = false, .network = masks(7)},
           {.sequence_lengths = {{2, 1}}},
           {.lengths = int_tensor({2}, {1, 2})},
           {.network = masks(8), .sequence_lengths = {{1, 2}}, .time_major = false}}) {
    Graph graph;
    const Graph::AsDefault own(graph);
    const Tensors wanted = call(values, how);
    EXPECT_EQ(values_of(wanted[0]) == plain, !how.is_training);
    Tensors inputs;
    for (const Tensor& value : values) inputs.push_back(Input(value.shape(), value.dtype()));
    const Tensors found = Model(inputs, call(inputs, how))(values);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(values_of(found[i]), values_of(wanted[i])) << i;
  }
}

// A state that a call of the other layout returned is transposed, the first one too.
TEST(CudnnOps, FunctionsTakeStatesOfEitherLayout) {
  const Tensor params = uniform({ops::CudnnLSTM(options(2, 5, 3)).params_size()}, 1);
  const Tensor zeros(Array(DType::kFloat32, {3, 2, 5}).view());
  const ops::RnnOutputs first =
      ops::cudnn_lstm(uniform({3, 4, 3}, 2), zeros, zeros, params, {.time_major = false});
  EXPECT_EQ(first.h.shape(), (Shape{3, 2, 5}));
  const Tensor x = uniform({4, 3, 3}, 3);
  const ops::RnnOutputs found = ops::cudnn_lstm(x, first.h, first.c, params);
  const auto plain = [](const Tensor& state) { return Tensor(state.to_host().view()); };
  const ops::RnnOutputs wanted = ops::cudnn_lstm(x, ops::transpose_leading(plain(first.h)),
                                                 ops::transpose_leading(plain(first.c)), params);
  EXPECT_EQ(values_of(found.output), values_of(wanted.output));
  EXPECT_EQ(values_of(found.h), values_of(wanted.h));
  EXPECT_EQ(values_of(found.c), values_of(wanted.c));
}

// One length a row, wherever the rows of the input lie.
TEST(CudnnOps, SymbolicLengthsHaveTheShapeOfTheBatch) {
  ops::CudnnGRU gru(options(1, 5, 3));
  const Tensor params = uniform({gru.params_size()}, 1);
  const auto output_shape = [&](const Shape& x, const Shape& h, bool time_major) {
    return gru(Input(x), Input(h), params, true,
               {.lengths = Input({2}, DType::kInt32), .time_major = time_major})
        .output.shape();
  };
  EXPECT_EQ(output_shape({4, 2, 3}, {1, 2, 5}, true), (Shape{4, 2, 5}));
  EXPECT_EQ(output_shape({2, 4, 3}, {2, 1, 5}, false), (Shape{2, 4, 5}));
  EXPECT_THROW(output_shape({4, 3, 3}, {1, 3, 5}, true), ArgumentError);
  EXPECT_THROW(output_shape({3, 2, 3}, {3, 1, 5}, false), ArgumentError);
}

// What is known of a recorded call's arrays is checked when it is recorded.
TEST(CudnnOps, SymbolicArraysFitTheNetwork) {
  ops::CudnnLSTM lstm(options(2, 5, 3));
  const Tensor x = Input({4, -1, 3}), state = Input({2, -1, 5}), params = Input({440});
  EXPECT_EQ(lstm(x, state, state, params).output.shape(), (Shape{4, -1, 5}));
  const Tensor wrong = Input({2, -1, 6}), wide = Input({2, -1, 5}, DType::kFloat64);
  const std::string rest =
      ", expected float32 of shape [2, -1, 5] for lstm, 2 layers, 5 units, input size 3, "
      "unidirectional, float32";
  EXPECT_EQ(message_of<ArgumentError>([&] { lstm(x, wrong, state, params); }),
            "[CudnnLSTM] input_h is float32 of shape [2, -1, 6]" + rest);
  EXPECT_EQ(message_of<ArgumentError>([&] { lstm(x, state, wrong, params); }),
            "[CudnnLSTM] input_c is float32 of shape [2, -1, 6]" + rest);
  EXPECT_EQ(message_of<ArgumentError>([&] { lstm(x, state, wide, params); }),
            "[CudnnLSTM] input_c is float64 of shape [2, -1, 5]" + rest);
  EXPECT_THROW(lstm(x, state, state, Input({439})), ArgumentError);
  EXPECT_THROW(lstm(x, state, state, Input({1, 440})), ArgumentError);
  EXPECT_NO_THROW(lstm(x, state, state, Input({441})));
  EXPECT_NO_THROW(lstm(x, state, state, Input({-1})));
}

TEST(CudnnOps, AReplayKeepsWhatGradientsOfInferenceNeed) {
  const RnnSpec spec{.mode = RnnMode::kGru, .num_units = 2, .input_size = 3};
  const Tensor params = uniform({params_size(spec)}, 1), x = Input({2, 1, 3}, DType::kFloat32);
  const auto y =
      ops::rnn(spec, {.x = x, .params = params, .training = false, .save = true}, nullptr);
  Model model({x}, {y.output});
  const GradientTape tape;
  const Tensor watched = tape.watch(uniform({2, 1, 3}, 2));
  EXPECT_FALSE(tape.gradient(model({watched})[0], std::vector{watched})[0].empty());
}

// Engines that keep all say so where a call asks for less.
TEST(CudnnOps, AReplayRecomputesAsItWasRecorded) {
  ops::CudnnGRU gru(options(1, 5, 3));
  const Tensor params = uniform({gru.params_size()}, 1), x = Input({4, 2, 3}), h = Input({1, 2, 5});
  const auto made = [&](std::int64_t recompute) {
    return Model({x, h}, {gru(x, h, params, true, {.recompute = recompute}).output});
  };
  Model plain = made(0), again = made(kRecomputeRoot);
  const auto gradient = [&](Model& model) {
    const GradientTape tape;
    const Tensor watched = tape.watch(uniform({4, 2, 3}, 2));
    const Tensor y = model({watched, uniform({1, 2, 5}, 3)})[0];
    return values_of(tape.gradient(ops::reduce_sum(y), Tensors{watched})[0]);
  };
  std::optional<Setting> reference;
  if (!default_device().engine()) {
    EXPECT_EQ(gradient(plain), gradient(again));
    reference.emplace("OPENRNN_ENGINE", "reference");
  }
  EXPECT_NO_THROW(gradient(plain));
  EXPECT_THROW(gradient(again), UnsupportedError);
}

// A list of no lengths is a list, which a batch of rows does not fit.
TEST(CudnnOps, AReplayKeepsLengthsOfNoRow) {
  const Tensor params = uniform({ops::CudnnGRU(options(1, 5, 3)).params_size()}, 1);
  const ops::CudnnFunctionOptions none{.sequence_lengths = std::vector<std::int32_t>{}};
  const Tensor x = Input({4, -1, 3}), h = Input({1, -1, 5});
  Model model({x, h}, {ops::cudnn_gru(x, h, params, none).output});
  const auto call = [&](std::int64_t batch) {
    return model({uniform({4, batch, 3}, 2), uniform({1, batch, 5}, 3)})[0].shape();
  };
  EXPECT_EQ(call(0), (Shape{4, 0, 5}));
  EXPECT_EQ(message_of<ArgumentError>([&] { call(2); }),
            "[cudnn_gru] sequence_lengths has 0 elements, expected 2, one a row of the batch");
  EXPECT_THROW(ops::cudnn_gru(uniform({4, 2, 3}, 2), uniform({1, 2, 5}, 3), params, none),
               ArgumentError);
}

TEST(CudnnOps, DropoutMasksAdvanceAndRepeat) {
  RnnSpec wanted = options(2, 16, 3);
  wanted.training.dropout = 0.5;
  const Tensor x = uniform({4, 2, 3}, 1), h = uniform({2, 2, 16}, 2);
  ops::CudnnRNNTanh first(wanted), second(wanted);
  const Tensor params = ops::scale(uniform({first.params_size()}, 3), 0.1);
  const std::vector<double> call0 = values_of(first(x, h, params).output);
  EXPECT_NE(values_of(first(x, h, params).output), call0);
  EXPECT_EQ(values_of(second(x, h, params).output), call0);
  EXPECT_EQ(first.dropout_state().calls(), 2u);
  const std::vector<double> inference = values_of(first(x, h, params, false).output);
  EXPECT_EQ(values_of(second(x, h, params, false).output), inference);
  EXPECT_EQ(first.dropout_state().calls(), 2u);
}

TEST(CudnnOps, Errors) {
  ops::CudnnLSTM lstm(options(2, 5, 3));
  const Tensor x = uniform({4, 2, 3}, 1), h = uniform({2, 2, 5}, 2), c = uniform({2, 2, 5}, 3);
  const Tensor params = uniform({lstm.params_size()}, 4);
  const auto error = [&](const Tensor& in, const Tensor& in_h, const Tensor& in_c,
                         const Tensor& buffer, const ops::CudnnCallOptions& call = {}) {
    return message_of<ArgumentError>([&] { lstm(in, in_h, in_c, buffer, true, call); });
  };
  EXPECT_EQ(error(uniform({4, 3}, 1), h, c, params),
            "[CudnnLSTM] input_data has shape [4, 3], expected 3 dimensions");
  EXPECT_EQ(error(x, uniform({2, 3, 5}, 2), c, params),
            "[CudnnLSTM] input_h has shape [2, 3, 5], expected [2, 2, 5] for lstm, 2 layers, 5 "
            "units, input size 3, unidirectional, float32, time-major");
  EXPECT_EQ(error(x, h, uniform({1, 2, 5}, 2), params),
            "[CudnnLSTM] input_c has shape [1, 2, 5], expected [2, 2, 5] for lstm, 2 layers, 5 "
            "units, input size 3, unidirectional, float32, time-major");
  EXPECT_EQ(error(x, h, c, uniform({2, 3}, 1)),
            "[CudnnLSTM] params has shape [2, 3], expected 1 dimension of 440");
  EXPECT_EQ(error(x, h, ops::cast(c, DType::kFloat64), params),
            "[CudnnLSTM] input_c is float64, expected float32");
  EXPECT_EQ(error(ops::cast(x, DType::kFloat64), h, c, params),
            "[CudnnLSTM] input_data is float64, expected float32");
  EXPECT_EQ(error(x, h, c, params, {.sequence_lengths = {{1, 5}}}),
            "[CudnnLSTM] sequence_lengths[1] is 5, expected 0 to 4");
  EXPECT_EQ(error(x, h, c, params, {.sequence_lengths = {{1}}}),
            "[CudnnLSTM] sequence_lengths has 1 elements, expected 2, one a row of the batch");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              ops::cudnn_gru(x, uniform({0, 2, 5}, 1), params);
            }),
            "[cudnn_gru] input_h has shape [0, 2, 5], expected a multiple of 1 states");
  EXPECT_THROW(ops::CudnnGRU(options(0, 5, 3)), ArgumentError);
  GradientTape tape;
  const Tensor watched = tape.watch(params);
  const Tensor y = ops::reduce_sum(lstm(x, h, c, watched, false).output);
  EXPECT_EQ(message_of<ArgumentError>([&] { tape.gradient(y, Tensors{watched}); }),
            "[CudnnLSTM] is_training is false, but is_training must be True for the call to be "
            "used in gradients; a layer's call also takes save=True, which keeps what they need "
            "without dropout");
}

TEST(CudnnOps, Gradient) {
  ops::CudnnLSTM lstm({.num_layers = 2, .num_units = 3, .input_size = 4, .dtype = DType::kFloat64});
  const Tensors sources{random_tensor({4, 3, 4}, 1, 0, 1), random_tensor({2, 3, 3}, 2, 0, 1),
                        random_tensor({2, 3, 3}, 3, 0, 1),
                        random_tensor({lstm.params_size()}, 4, 0, 1)};
  check_gradient(
      [&](const Tensors& in) {
        const ops::RnnOutputs out = lstm(in[0], in[1], in[2], in[3]);
        return Tensors{out.output, out.h, out.c};
      },
      sources, 5e-6);
}

// As an operation of the graph: of its seed and the graph's, of the number of calls before.
TEST(CudnnOps, TheSeedOfAModelIsThatOfItsMasks) {
  using Seed = std::optional<std::int64_t>;
  const auto seed_of = [](Seed of_graph, Seed of_network, auto make) {
    Graph graph;
    const Graph::AsDefault current(graph);
    graph.set_seed(of_graph);
    graph.op_seeds({});
    RnnSpec spec = options(1, 3, 2);
    spec.training.seed = of_network;
    return make(spec).dropout_state().seed();
  };
  const auto expected = [](Seed of_graph, Seed of_network) {
    Graph graph;
    graph.set_seed(of_graph);
    graph.op_seeds({});
    return ops::DropoutState(graph.op_seeds(of_network)).seed();
  };
  std::set<std::uint64_t> all;
  for (const Seed of_graph : {Seed(), Seed(5), Seed(6)}) {
    for (const Seed of_network : {Seed(), Seed(7), Seed(8)}) {
      const std::uint64_t wanted = expected(of_graph, of_network);
      all.insert(wanted);
      const auto seed = [&](auto make) { return seed_of(of_graph, of_network, make); };
      EXPECT_EQ(seed([](const RnnSpec& spec) { return ops::CudnnLSTM(spec); }), wanted);
      EXPECT_EQ(seed([](const RnnSpec& spec) { return ops::CudnnGRU(spec); }), wanted);
      EXPECT_EQ(seed([](const RnnSpec& spec) { return ops::CudnnRNNTanh(spec); }), wanted);
      EXPECT_EQ(seed([](const RnnSpec& spec) { return ops::CudnnRNNRelu(spec); }), wanted);
    }
  }
  EXPECT_EQ(all.size(), 9U);
}

// A function draws the first mask of a model with its seed.
TEST(CudnnOps, TheSeedOfAFunctionIsThatOfItsMask) {
  RnnSpec spec = options(2, 16, 3);
  spec.training.dropout = 0.5;
  const Tensor x = uniform({4, 2, 3}, 1), h = uniform({2, 2, 16}, 2);
  const Tensor params = ops::scale(uniform({ops::CudnnGRU(spec).params_size()}, 3), 0.1);
  std::set<std::vector<double>> all;
  for (const std::int64_t seed : {5, 6}) {
    Graph graph;
    const Graph::AsDefault current(graph);
    spec.training.seed = seed;
    const std::vector<double> by_model = values_of(ops::CudnnGRU(spec)(x, h, params).output);
    EXPECT_EQ(values_of(ops::cudnn_gru(x, h, params, {.network = spec}).output), by_model);
    all.insert(by_model);
  }
  EXPECT_EQ(all.size(), 2U);
}

}  // namespace
}  // namespace openrnn::testing
