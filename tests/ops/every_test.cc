// The recurrent operation when it is asked for every layer and every step.
#include "ops/check_gradient.h"
#include "ops/small_spec.h"

namespace openrnn::testing {
namespace {

struct Call {
  RnnSpec spec;
  ops::RnnInputs inputs;
};

// L 2, D 2, T 4, B 3, I 4, U 3.
Call make_call(RnnMode mode, bool time_major) {
  Call call{small_spec(mode), {}};
  call.inputs.x = random_tensor(time_major ? Shape{4, 3, 4} : Shape{3, 4, 4}, 1, -0.9, 0.9);
  call.inputs.params = random_tensor({params_size(call.spec)}, 4, -0.9, 0.9);
  call.inputs.sequence_lengths = {{4, 0, 2}};
  call.inputs.time_major = time_major;
  call.inputs.dropout = {.seed = 5, .call = 2};
  call.inputs.every = true;
  return call;
}

/// Element (time, row, column) of a sequence of that width.
double at(const Tensor& sequence, bool time_major, std::int64_t t, std::int64_t b, std::int64_t k) {
  const Shape& shape = sequence.shape();
  const std::int64_t place = time_major ? t * shape[1] + b : b * shape[1] + t;
  return values_of(sequence)[static_cast<std::size_t>(place * shape[2] + k)];
}

class Every : public ::testing::TestWithParam<std::tuple<RnnMode, bool>> {
 protected:
  RnnMode mode() const { return std::get<0>(GetParam()); }
  bool time_major() const { return std::get<1>(GetParam()); }
};

TEST_P(Every, GivesEveryLayerAndStep) {
  for (const bool training : {true, false}) {
    Call call = make_call(mode(), time_major());
    call.inputs.training = training;
    const ops::RnnOutputs out = ops::rnn(call.spec, call.inputs, nullptr);
    ASSERT_EQ(out.layer_outputs.size(), 2u);
    for (const Tensor& layer : out.layer_outputs) EXPECT_EQ(layer.shape(), out.output.shape());
    EXPECT_EQ(values_of(out.layer_outputs[1]), values_of(out.output));
    EXPECT_NE(values_of(out.layer_outputs[0]), values_of(out.output));
    // The forward direction of layer 0 ends in row 2 at step 1; state (0, 2) of [L*D, B, U].
    const std::vector<double> h = values_of(out.h);
    const std::size_t state = time_major() ? 2 * 3 : 2 * 4 * 3;
    EXPECT_EQ(at(out.layer_outputs[0], time_major(), 1, 2, 1), h[state + 1]);
    EXPECT_EQ(at(out.layer_outputs[0], time_major(), 2, 2, 1), 0.0);
    if (mode() != RnnMode::kLstm) {
      EXPECT_TRUE(out.layer_cells.empty());
      continue;
    }
    ASSERT_EQ(out.layer_cells.size(), 2u);
    EXPECT_EQ(at(out.layer_cells[0], time_major(), 1, 2, 1), values_of(out.c)[state + 1]);
    EXPECT_EQ(at(out.layer_cells[0], time_major(), 2, 2, 1), 0.0);
  }
}

TEST_P(Every, ChangesNothingElseAndHasNoHistory) {
  Call call = make_call(mode(), time_major());
  GradientTape tape;
  call.inputs.params = tape.watch(call.inputs.params);
  const auto run = [&](bool every) {
    call.inputs.every = every;
    return ops::rnn(call.spec, call.inputs, nullptr);
  };
  const ops::RnnOutputs with = run(true), without = run(false);
  EXPECT_TRUE(without.layer_outputs.empty());
  EXPECT_TRUE(without.layer_cells.empty());
  EXPECT_EQ(values_of(with.output), values_of(without.output));
  EXPECT_EQ(values_of(with.h), values_of(without.h));
  for (const Tensor& layer : with.layer_outputs) EXPECT_FALSE(layer.tracked());
  for (const Tensor& layer : with.layer_cells) EXPECT_FALSE(layer.tracked());
  const std::vector<Tensor> source{call.inputs.params};
  const auto gradient = [&](const ops::RnnOutputs& out) {
    return values_of(tape.gradient(ops::reduce_sum(out.output), source)[0]);
  };
  EXPECT_EQ(gradient(with), gradient(without));
}

TEST_P(Every, IsForValuesAlone) {
  Graph graph;
  const Graph::AsDefault current(graph);
  Call call = make_call(mode(), time_major());
  call.inputs.call = "CudnnLSTM";
  call.inputs.x = Input(call.inputs.x.shape(), call.inputs.x.dtype());
  EXPECT_EQ(message_of<UnsupportedError>([&] { ops::rnn(call.spec, call.inputs, nullptr); }),
            "[CudnnLSTM] every layer's outputs of a symbolic call, expected values: ask when there "
            "are some");
}

INSTANTIATE_TEST_SUITE_P(Modes, Every,
                         ::testing::Combine(::testing::Values(RnnMode::kLstm, RnnMode::kGru,
                                                              RnnMode::kRnnTanh, RnnMode::kRnnRelu),
                                            ::testing::Bool()),
                         [](const auto& at) {
                           return std::string(to_string(std::get<0>(at.param))) +
                                  (std::get<1>(at.param) ? "_time_major" : "_batch_major");
                         });

}  // namespace
}  // namespace openrnn::testing
