// What a listener is told of gradients that are complete before their pass is.
#include <map>

#include "graph/tape/listen.h"
#include "openrnn/params.h"
#include "ops/rnn_call.h"

namespace openrnn::testing {
namespace {

/// Copies what it is told of, when it is told.
class Heard final : public graph::GradientListener {
 public:
  void ready(std::uint64_t leaf, DeviceArray& gradient, std::int64_t begin,
             std::int64_t end) noexcept override {
    const std::vector<double> now = values_of(gradient);
    parts.push_back({leaf, begin, end, {now.begin() + begin, now.begin() + end}});
  }
  struct Part {
    std::uint64_t leaf;
    std::int64_t begin, end;
    std::vector<double> values;
  };
  std::vector<Part> parts;
};

struct Told {
  std::vector<DeviceArray> gradients;
  std::vector<Heard::Part> parts;
};

Told gradients_of(const GradientTape& tape, const Tensor& loss,
                  const std::vector<Variable>& variables) {
  Heard heard;
  const graph::Listening listening(&heard);
  Told told;
  told.gradients = tape.gradient(loss, variables);
  told.parts = heard.parts;
  return told;
}

/// Whatever is told is in the end.
void expect_final(const Told& told, const std::vector<Variable>& variables) {
  for (const Heard::Part& part : told.parts) {
    for (std::size_t i = 0; i < variables.size(); ++i) {
      if (variables[i].leaf_id() != part.leaf) continue;
      const std::vector<double> all = values_of(told.gradients[i]);
      EXPECT_EQ(part.values, std::vector<double>(all.begin() + part.begin, all.begin() + part.end));
    }
  }
}

std::vector<std::uint64_t> leaves_of(const Told& told) {
  std::vector<std::uint64_t> leaves;
  for (const Heard::Part& part : told.parts) leaves.push_back(part.leaf);
  return leaves;
}

TEST(EarlyGradients, AreToldFromTheLastOperationToTheFirst) {
  const Variable a("early_a/a", random_tensor({3, 4}, 1).to_host());
  const Variable b("early_a/b", random_tensor({4, 5}, 2).to_host());
  GradientTape tape;
  const Tensor loss = weighted_sum({ops::tanh(
      ops::matmul(ops::tanh(ops::matmul(random_tensor({2, 3}, 3), a.read())), b.read()))});
  tape.close();
  const Told told = gradients_of(tape, loss, {a, b});
  EXPECT_EQ(leaves_of(told), (std::vector{b.leaf_id(), a.leaf_id()}));
  expect_final(told, {a, b});
}

// The first use, in time, delivers last.
TEST(EarlyGradients, OfAVariableReadTwiceAreToldWithTheSecondOne) {
  const Variable a("early_b/a", random_tensor({4}, 1).to_host());
  const Variable b("early_b/b", random_tensor({4}, 2).to_host());
  GradientTape tape;
  const Tensor first = ops::sigmoid(a.read());
  const Tensor loss = weighted_sum({ops::multiply(ops::multiply(first, b.read()), a.read())});
  tape.close();
  const Told told = gradients_of(tape, loss, {a, b});
  EXPECT_EQ(leaves_of(told), (std::vector{b.leaf_id(), a.leaf_id()}));
  expect_final(told, {a, b});
}

// A listener writes what it is told of; the sum of a and b hands one array on to both.
TEST(EarlyGradients, ThatShareElementsAreNotTold) {
  const Variable a("early_c/a", random_tensor({4}, 1).to_host());
  const Variable b("early_c/b", random_tensor({4}, 2).to_host());
  GradientTape tape;
  const Tensor loss = weighted_sum({ops::add(a.read(), b.read())});
  tape.close();
  const Told told = gradients_of(tape, loss, {a, b});
  EXPECT_EQ(told.gradients[0].data() == told.gradients[1].data(), told.parts.empty());
  EXPECT_LE(told.parts.size(), 1U);
}

// The gradient of an operation may be one of a tape of its own, of the same variable: a part.
TEST(EarlyGradients, OfPassesInsideOfAnOperationAreNotTold) {
  const Variable a("early_g/a", random_tensor({4}, 1).to_host());
  const DeviceArray squared = ops::square(a.read()).value();
  GradientTape tape;
  const Tensor first = ops::tanh(a.read());
  const Tensor squares =
      record("squares", {a.read()}, {squared}, [a](const std::vector<DeviceArray>& dy) {
        GradientTape inner;
        const Tensor y = ops::square(a.read());
        inner.close();
        return inner.gradient(y, std::vector{a}, dy[0]);
      })[0];
  const Tensor loss = weighted_sum({first, squares});
  tape.close();
  const Told told = gradients_of(tape, loss, {a});
  EXPECT_EQ(leaves_of(told), std::vector{a.leaf_id()});
  expect_final(told, {a});
}

TEST(EarlyGradients, NobodyIsToldAfterTheListening) {
  const Variable a("early_d/a", random_tensor({4}, 1).to_host());
  GradientTape tape;
  const Tensor loss = weighted_sum({ops::tanh(a.read())});
  tape.close();
  Heard outer;
  const graph::Listening listening(&outer);
  {
    const graph::Listening nobody(nullptr);
    tape.gradient(loss, std::vector{a});
  }
  EXPECT_TRUE(outer.parts.empty());
  tape.gradient(loss, std::vector{a});
  EXPECT_EQ(outer.parts.size(), 1U);
}

/// Of the whole gradient and of its parts.
void expect_layers(const RnnSpec& spec, const Told& told) {
  const ParamsLayout layout(spec);
  std::vector<int> times(static_cast<std::size_t>(layout.size()), 0);
  std::vector<std::int64_t> layer_of(times.size());
  for (const auto& regions : {layout.weights(), layout.biases()}) {
    for (const ParamRegion& region : regions) {
      std::fill_n(layer_of.begin() + region.offset, region.size(), region.layer);
    }
  }
  std::int64_t layer = spec.num_layers - 1;
  ASSERT_FALSE(told.parts.empty());
  for (std::size_t i = 0; i + 1 < told.parts.size(); ++i) {
    for (std::int64_t e = told.parts[i].begin; e < told.parts[i].end; ++e) {
      const std::int64_t its = layer_of[static_cast<std::size_t>(e)];
      EXPECT_LE(its, layer);
      layer = its;
      ++times[static_cast<std::size_t>(e)];
    }
  }
  EXPECT_EQ(times, std::vector<int>(times.size(), 1)) << "by layers";
  EXPECT_EQ(told.parts.back().end - told.parts.back().begin, layout.size()) << "as a whole";
}

TEST(EarlyGradients, OfARecurrentNetworkAreToldLayerByLayer) {
  if (default_device().engine()) GTEST_SKIP() << "the engine of that device tells of no layer";
  for (const RnnMode mode : kModes) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (const std::int64_t batch : {1, 9}) {
        RnnSpec spec = small_spec(mode);
        spec.num_layers = 3;
        spec.dtype = dtype;
        spec.direction = batch == 1 ? Direction::kBidirectional : Direction::kUnidirectional;
        spec.use_peepholes = mode == RnnMode::kLstm && batch == 9;
        SCOPED_TRACE(describe(spec));
        const Variable params("early_e/params",
                              random_tensor({params_size(spec)}, 1, -0.5, 0.5, dtype).to_host());
        GradientTape tape;
        const ops::RnnOutputs out =
            ops::rnn(spec,
                     {.x = random_tensor({6, batch, spec.input_size}, 2, -1, 1, dtype),
                      .params = params.read()},
                     nullptr);
        const Tensor loss = ops::reduce_sum(ops::square(out.output));
        tape.close();
        const Told told = gradients_of(tape, loss, {params});
        expect_final(told, {params});
        expect_layers(spec, told);
        EXPECT_EQ(values_of(told.gradients[0]),
                  values_of(tape.gradient(loss, std::vector{params})[0]));
      }
    }
  }
}

// Its gradient is the sum of two calls', so neither is complete layer by layer.
TEST(EarlyGradients, OfTwoCallsWithTheSameParametersAreToldOnce) {
  const RnnSpec spec = small_spec(RnnMode::kGru);
  const Variable params("early_f/params", random_tensor({params_size(spec)}, 1).to_host());
  GradientTape tape;
  std::vector<Tensor> outputs;
  for (const std::uint64_t seed : {2, 3}) {
    outputs.push_back(
        ops::rnn(spec, {.x = random_tensor({4, 2, spec.input_size}, seed), .params = params.read()},
                 nullptr)
            .output);
  }
  const Tensor loss = weighted_sum(outputs);
  tape.close();
  const Told told = gradients_of(tape, loss, {params});
  ASSERT_EQ(told.parts.size(), 1U);
  expect_final(told, {params});
}

}  // namespace
}  // namespace openrnn::testing
