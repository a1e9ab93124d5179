#include <set>
#include <thread>

#include "ops/rnn_call.h"
#include "support/setting.h"

namespace openrnn::testing {
namespace {

using Tensors = std::vector<Tensor>;

RnnCall make_call(const RnnSpec& spec, bool time_major) {
  return rnn_call(spec, time_major, {.time = 4, .batch = 3});
}

TEST(Rnn, GradientsOfEveryInput) {
  for (const RnnMode mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    RnnCall call = make_call(small_spec(mode), true);
    call.inputs.dropout = {.seed = 5, .call = 2};
    check_gradient(call, call.sources(), 5e-6);
  }
}

TEST(Rnn, GradientsWithLengthsBatchMajorAndWithoutTraining) {
  for (const RnnMode mode : kModes) {
    SCOPED_TRACE(to_string(mode));
    RnnCall call = make_call(small_spec(mode), false);
    call.inputs.sequence_lengths = {{4, 0, 2}};
    call.inputs.training = false;
    call.inputs.save = true;
    check_gradient(call, call.sources(), 5e-6);
  }
}

TEST(Rnn, GradientsWithoutStates) {
  RnnSpec spec = small_spec(RnnMode::kLstm);
  spec.direction = Direction::kUnidirectional;
  RnnCall call = make_call(spec, true);
  call.inputs.h0 = Tensor();
  call.inputs.c0 = Tensor();
  check_gradient(call, call.sources(), 5e-6);
}

TEST(Rnn, AProjectionHasAGradientToo) {
  RnnSpec spec = small_spec(RnnMode::kLstm);
  spec.num_proj = 2;
  const RnnCall call = make_call(spec, true);
  check_gradient(call, call.sources(), 5e-6);
}

TEST(Rnn, AGradientOfOneSourceHasTheBitsThatItHasBesideOthers) {
  for (const RnnMode mode : kModes) {
    RnnCall call = make_call(small_spec(mode), true);
    const GradientTape tape;
    ops::RnnInputs& in = call.inputs;
    for (Tensor* each : {&in.x, &in.params, &in.h0}) *each = tape.watch(*each);
    const Tensor sum = ops::reduce_sum(ops::square(call().output));
    const Tensors sources{in.x, in.params, in.h0};
    const auto all = tape.gradient(sum, sources);
    for (std::size_t i = 0; i < sources.size(); ++i) {
      EXPECT_EQ(values_of(tape.gradient(sum, Tensors{sources[i]})[0]), values_of(all[i])) << i;
    }
  }
}

TEST(Rnn, GradientOfAnInferenceCallIsAnError) {
  const RnnCall call = make_call(small_spec(RnnMode::kGru), true);
  GradientTape tape;
  ops::RnnInputs in = call.inputs;
  in.params = tape.watch(in.params);
  in.training = false;
  const Tensor y = ops::reduce_sum(ops::rnn(call.spec, in, nullptr).output);
  EXPECT_EQ(message_of<ArgumentError>([&] { tape.gradient(y, Tensors{in.params}); }),
            "[rnn] is_training is false, but is_training must be True for the call to be used in "
            "gradients; a layer's call also takes save=True, which keeps what they need without "
            "dropout");
  in.save = true;
  const Tensor saved = ops::reduce_sum(ops::rnn(call.spec, in, nullptr).output);
  EXPECT_FALSE(tape.gradient(saved, Tensors{in.params})[0].empty());
}

TEST(Rnn, StatesOfACallMayAllBeGivenToOneOfTheOtherLayout) {
  const RnnCall call = make_call(small_spec(RnnMode::kGru), true);
  ops::RnnInputs in = call.inputs;
  const ops::RnnOutputs first = ops::rnn(call.spec, in, nullptr);
  in.h0 = first.h;
  in.c0 = first.c;  // a gru has none
  const std::vector<double> wanted = values_of(ops::rnn(call.spec, in, nullptr).output);
  in.x = ops::transpose_leading(in.x);
  in.time_major = false;
  const Tensor other = ops::transpose_leading(ops::rnn(call.spec, in, nullptr).output);
  EXPECT_EQ(values_of(other), wanted);
}

TEST(Rnn, TheTailOfALongerBufferHasNoGradient) {
  const RnnCall call = make_call(small_spec(RnnMode::kRnnTanh), true);
  GradientTape tape;
  ops::RnnInputs in = call.inputs;
  in.params = tape.watch(in.params);
  const Tensor y = ops::reduce_sum(ops::rnn(call.spec, in, nullptr).output);
  const std::vector<double> gradient = values_of(tape.gradient(y, Tensors{in.params})[0]);
  ASSERT_EQ(gradient.size(), static_cast<std::size_t>(params_size(call.spec)) + 5);
  for (std::size_t i = gradient.size() - 5; i < gradient.size(); ++i) EXPECT_EQ(gradient[i], 0.0);
}

TEST(Rnn, LaterWritesDoNotReachWhatWasSaved) {
  const RnnCall call = make_call(small_spec(RnnMode::kLstm), true);
  Graph graph;
  const Graph::AsDefault scope(graph);
  const Variable params("params", call.inputs.params.to_host());
  const Variable x("x", call.inputs.x.to_host());
  ops::PackedCache cache;
  GradientTape tape;
  ops::RnnInputs in = call.inputs;
  in.params = params.read();
  in.x = x.read();
  const Tensor y = ops::reduce_sum(ops::rnn(call.spec, in, &cache).output);
  in = {};
  const auto before = tape.gradient(y, std::vector{params, x});
  for (const Variable& variable : {params, x}) {
    variable.update([&](void* elements) {
      variable.device().fill(DType::kFloat64, shape_size(variable.shape()), 1e30, DType::kFloat64,
                             nullptr, elements);
    });
  }
  const auto after = tape.gradient(y, std::vector{params, x});
  EXPECT_EQ(values_of(before[0]), values_of(after[0]));
  EXPECT_EQ(values_of(before[1]), values_of(after[1]));
}

TEST(PackedCache, PacksOnceAVersion) {
  const RnnCall call = make_call(small_spec(RnnMode::kGru), true);
  Graph graph;
  const Graph::AsDefault scope(graph);
  const Variable params("params", call.inputs.params.to_host());
  ops::PackedCache cache;
  const auto run = [&](const Tensor& buffer) {
    ops::RnnInputs in = call.inputs;
    in.params = buffer;
    return values_of(ops::rnn(call.spec, in, &cache).output);
  };
  const std::vector<double> first = run(params.read());
  EXPECT_EQ(run(params.read()), first);
  EXPECT_EQ(cache.packings(), 1u);
  params.update([&](void* elements) {
    params.device().fill(DType::kFloat64, 1, 0.875, DType::kFloat64, nullptr, elements);
  });
  EXPECT_NE(run(params.read()), first);
  EXPECT_EQ(cache.packings(), 2u);
  {
    const GradientTape tape;
    run(params.read());
    EXPECT_EQ(cache.packings(), 3u) << "backward reads another form";
    run(params.read());
  }
  run(params.read());
  EXPECT_EQ(cache.packings(), 3u) << "which serves forward as well";
  run(call.inputs.params);
  run(call.inputs.params);
  EXPECT_EQ(cache.packings(), 5u) << "a bare array is packed each time";
}

// What is packed is of one network and one engine: another of either packs again.
TEST(PackedCache, ServesNoOtherNetworkAndNoOtherEngine) {
  const RnnCall tanh = make_call(small_spec(RnnMode::kRnnTanh), true);
  RnnCall relu = tanh, gru = make_call(small_spec(RnnMode::kGru), true);
  relu.spec.mode = RnnMode::kRnnRelu;
  Graph graph;
  const Graph::AsDefault scope(graph);
  const Variable params("params", gru.inputs.params.to_host());
  ops::PackedCache cache;
  const auto run = [&](const RnnCall& call, ops::PackedCache* used) {
    ops::RnnInputs in = call.inputs;
    in.params = params.read();
    return values_of(ops::rnn(call.spec, in, used).output);
  };
  std::uint64_t packings = 0;
  for (const RnnCall& call : {tanh, relu, gru, tanh}) {
    EXPECT_EQ(run(call, &cache), run(call, nullptr)) << to_string(call.spec.mode);
    EXPECT_EQ(cache.packings(), ++packings);
  }
  const std::vector<double> cpu = run(gru, &cache);
  if (default_device().engine()) return;  // which has no other
  const Setting reference("OPENRNN_ENGINE", "reference");
  const std::vector<double> found = run(gru, &cache);
  EXPECT_EQ(found, run(gru, nullptr));
  EXPECT_EQ(cache.packings(), packings + 2);
  for (std::size_t i = 0; i < cpu.size(); ++i) EXPECT_NEAR(found[i], cpu[i], 1e-12);
}

TEST(Rnn, EachStateIsBroughtToTheLayoutOfTheCall) {
  for (const bool time_major : {true, false}) {
    RnnCall call = make_call(small_spec(RnnMode::kLstm), time_major);
    call.inputs.training = false;
    const std::vector<double> expected =
        values_of(ops::rnn(call.spec, call.inputs, nullptr).output);
    const StateLayout other = time_major ? StateLayout::kBatchMajor : StateLayout::kTimeMajor;
    const auto other_way = [&](const Tensor& state) {
      return ops::transpose_leading(state).with_state_layout(other);
    };
    for (const auto& [h, c] :
         {std::pair(true, false), std::pair(false, true), std::pair(true, true)}) {
      ops::RnnInputs in = call.inputs;
      if (h) in.h0 = other_way(in.h0);
      if (c) in.c0 = other_way(in.c0);
      EXPECT_EQ(values_of(ops::rnn(call.spec, in, nullptr).output), expected) << h << c;
    }
  }
}

TEST(DropoutState, AdvancesAndResets) {
  ops::DropoutState state({3, 7});
  EXPECT_EQ(state.seed(), (std::uint64_t{3} << 32) | 7);
  EXPECT_EQ(state.next().call, 0u);
  EXPECT_EQ(state.next().call, 1u);
  EXPECT_EQ(state.calls(), 2u);
  state.set_calls(9);
  EXPECT_EQ(state.next().call, 9u);
  ops::DropoutState reset = [] {
    const Setting always("TF_CUDNN_RESET_RND_GEN_STATE", "true");
    return ops::DropoutState({3, 7});
  }();
  EXPECT_EQ(reset.next().call, 0u);
  EXPECT_EQ(reset.next().call, 0u);
  for (const auto& [value, resets] : std::map<std::string, bool>{{"1", true},
                                                                 {"True", true},
                                                                 {"TRUE", true},
                                                                 {"true", true},
                                                                 {"0", false},
                                                                 {"False", false},
                                                                 {"", false}}) {
    const Setting given("TF_CUDNN_RESET_RND_GEN_STATE", value);
    ops::DropoutState one({3, 7});
    one.next();
    EXPECT_EQ(one.next().call, resets ? 0u : 1u) << value;
    EXPECT_EQ(one.calls(), 2u) << "calls are counted all the same";
  }
}

TEST(Rnn, EveryCallGetsAKeyOfItsOwnOnAnyThread) {
  constexpr std::uint64_t kCalls = 50000;
  ops::DropoutState state({3, 4});
  std::vector<std::vector<std::uint64_t>> found(3);
  std::vector<std::thread> threads;
  for (auto& calls : found) {
    threads.emplace_back([&state, &calls] {
      for (std::uint64_t i = 0; i < kCalls; ++i) calls.push_back(state.next().call);
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::uint64_t> all;
  for (const auto& calls : found) all.insert(calls.begin(), calls.end());
  EXPECT_EQ(all.size(), found.size() * kCalls);
  EXPECT_EQ(state.calls(), found.size() * kCalls);
}

/// The message for a call whose inputs `change` has changed.
template <class Change>
std::string refusal(RnnCall call, const Change& change) {
  change(call.inputs);
  return message_of<ArgumentError>([&] { call(); });
}

// Word for word, in both layouts; U is 3, O is 2, L*D is 4.
TEST(Rnn, RefusalsSayWhatWasExpected) {
  RnnSpec spec = small_spec(RnnMode::kLstm);
  spec.num_proj = 2;
  for (const bool time_major : {true, false}) {
    SCOPED_TRACE(time_major);
    const RnnCall call = make_call(spec, time_major);
    const auto states = [&](std::int64_t batch, std::int64_t width) {
      return random_tensor(time_major ? Shape{4, batch, width} : Shape{batch, 4, width}, 1);
    };
    const auto shape = [&](std::int64_t batch, std::int64_t width) {
      return to_string(time_major ? Shape{4, batch, width} : Shape{batch, 4, width});
    };
    const std::string rest =
        " for " + describe(spec) + (time_major ? ", time-major" : ", batch-major");
    EXPECT_EQ(refusal(call, [&](ops::RnnInputs& in) { in.h0 = states(3, 3); }),
              "[rnn] input_h has shape " + shape(3, 3) + ", expected " + shape(3, 2) + rest);
    EXPECT_EQ(refusal(call, [&](ops::RnnInputs& in) { in.c0 = states(3, 2); }),
              "[rnn] input_c has shape " + shape(3, 2) + ", expected " + shape(3, 3) + rest);
    EXPECT_EQ(refusal(call, [&](ops::RnnInputs& in) { in.c0 = states(2, 3); }),
              "[rnn] input_c has shape " + shape(2, 3) + ", expected " + shape(3, 3) + rest);
    EXPECT_EQ(refusal(call, [&](ops::RnnInputs& in) { in.h0 = ops::cast(in.h0, DType::kFloat32); }),
              "[rnn] input_h is float32, expected float64");
    EXPECT_EQ(refusal(call, [&](ops::RnnInputs& in) { in.c0 = ops::cast(in.c0, DType::kFloat16); }),
              "[rnn] input_c is float16, expected float64");
    EXPECT_EQ(refusal(call,
                      [](ops::RnnInputs& in) {
                        in.x = random_tensor({4, 4}, 1);
                      }),
              std::string("[rnn] input_data has rank 2 (shape [4, 4]), expected rank 3: ") +
                  (time_major ? "[time, batch, 4]" : "[batch, time, 4]"));
    EXPECT_EQ(refusal(call,
                      [](ops::RnnInputs& in) {
                        in.x = random_tensor({4, 3, 5}, 1);
                      }),
              "[rnn] input_data has shape [4, 3, 5], expected a last dimension of 4");
    EXPECT_EQ(refusal(call, [](ops::RnnInputs& in) { in.x = ops::cast(in.x, DType::kFloat32); }),
              "[rnn] input_data is float32, expected float64");
  }
}

TEST(Rnn, RefusalsOfLengthsFlagsAndParams) {
  const RnnSpec spec = small_spec(RnnMode::kLstm);
  for (const bool time_major : {true, false}) {
    const RnnCall call = make_call(spec, time_major);
    EXPECT_EQ(refusal(call,
                      [](ops::RnnInputs& in) {
                        in.sequence_lengths = {{4, 5, 0}};
                      }),
              "[rnn] sequence_lengths[1] is 5, expected 0 to 4");
    EXPECT_EQ(refusal(call,
                      [](ops::RnnInputs& in) {
                        in.sequence_lengths = {{4, 4, -1}};
                      }),
              "[rnn] sequence_lengths[2] is -1, expected 0 to 4");
    EXPECT_EQ(refusal(call,
                      [](ops::RnnInputs& in) {
                        in.sequence_lengths = {{1, 2, 3, 4}};
                      }),
              "[rnn] sequence_lengths has 4 elements, expected 3, one a row of the batch");
    EXPECT_EQ(refusal(call,
                      [](ops::RnnInputs& in) {
                        in.flags.mask = {true, false};
                      }),
              "[rnn] mask has 2 elements, expected one a step: 4 times 3");
    EXPECT_EQ(refusal(call, [](ops::RnnInputs& in) { in.flags.reset.assign(13, true); }),
              "[rnn] reset has 13 elements, expected one a step: 4 times 3");
    EXPECT_EQ(refusal(call, [](ops::RnnInputs& in) { in.params = Tensor(); }),
              "[rnn] params is empty, expected " + std::to_string(params_size(spec)) + " elements");
    EXPECT_EQ(
        refusal(call,
                [](ops::RnnInputs& in) { in.params = ops::cast(in.params, DType::kFloat32); }),
        "[rnn] params is float32, expected float64");
    EXPECT_NO_THROW(call());
  }
}

TEST(Rnn, RefusalsOfWhatANetworkHasNot) {
  RnnCall gru = make_call(small_spec(RnnMode::kGru), true);
  EXPECT_EQ(refusal(gru, [](ops::RnnInputs& in) { in.c0 = in.h0; }),
            "[rnn] input_c is given, expected none for gru");
  EXPECT_EQ(refusal(gru,
                    [](ops::RnnInputs& in) {
                      in.x = int_tensor({1, 1, 1}, {1});
                    }),
            "[rnn] input_data is int32 of shape [1, 1, 1], expected a floating tensor");
  EXPECT_EQ(refusal(gru,
                    [](ops::RnnInputs& in) {
                      in.call = "mine";
                      in.lengths = random_tensor({3}, 1);
                    }),
            "[mine] sequence_lengths is float64 of shape [3], expected int32 of 1 dimension: one a "
            "row of the batch");
}

// A layout is that of the call, for what it returns and for what it is asked to return besides.
TEST(Rnn, ResultsHaveTheShapesOfTheirLayout) {
  for (const RnnMode mode : kModes) {
    for (const bool time_major : {true, false}) {
      RnnSpec spec = small_spec(mode);
      spec.num_proj = mode == RnnMode::kLstm ? 2 : 0;
      RnnCall call = rnn_call(spec, time_major, {.time = 5, .batch = 3});
      call.inputs.every = true;
      const ops::RnnOutputs out = call();
      const std::int64_t o = spec.hidden_size();
      const auto sequence = [&](std::int64_t width) {
        return time_major ? Shape{5, 3, width} : Shape{3, 5, width};
      };
      const auto state = [&](std::int64_t width) {
        return time_major ? Shape{4, 3, width} : Shape{3, 4, width};
      };
      EXPECT_EQ(out.output.shape(), sequence(2 * o));
      EXPECT_EQ(out.h.shape(), state(o));
      EXPECT_EQ(out.c.empty(), mode != RnnMode::kLstm);
      ASSERT_EQ(out.layer_outputs.size(), 2U);
      for (const Tensor& each : out.layer_outputs) EXPECT_EQ(each.shape(), sequence(2 * o));
      EXPECT_EQ(out.layer_cells.size(), mode == RnnMode::kLstm ? 2U : 0U);
      for (const Tensor& each : out.layer_cells) EXPECT_EQ(each.shape(), sequence(6));
      const StateLayout layout = time_major ? StateLayout::kTimeMajor : StateLayout::kBatchMajor;
      EXPECT_EQ(out.h.state_layout(), layout);
      EXPECT_EQ(out.output.state_layout(), StateLayout::kUnknown);
      if (mode != RnnMode::kLstm) continue;
      EXPECT_EQ(out.c.shape(), state(3));
      EXPECT_EQ(out.c.state_layout(), layout);
    }
  }
}

}  // namespace
}  // namespace openrnn::testing
