// Operations whose inputs lie on different devices.
#include "ops/check_gradient.h"
#include "ops/small_spec.h"
#include "ops/support/support.h"
#include "support/tagged_device.h"

namespace openrnn::testing {
namespace {

using Tensors = std::vector<Tensor>;

Tensor on(const Device& device, const Shape& shape, std::uint64_t seed) {
  return Tensor(random_tensor(shape, seed).to_host().view(), device);
}

/// The operations of two tensors of the same shape, and some of matrices.
std::vector<std::pair<const char*, std::function<Tensor(const Tensor&, const Tensor&)>>> binary() {
  return {{"add", ops::add},
          {"subtract", ops::subtract},
          {"multiply", ops::multiply},
          {"divide", ops::divide},
          {"mean_squared_error", ops::mean_squared_error},
          {"maximum", ops::maximum},
          {"concat",
           [](const Tensor& a, const Tensor& b) {
             return ops::concat({a, b}, 1);
           }},
          {"stack",
           [](const Tensor& a, const Tensor& b) {
             return ops::stack({a, b});
           }},
          {"matmul", [](const Tensor& a,
                        const Tensor& b) { return ops::matmul(a, b, {.transpose_b = true}); }},
          {"select_rows",
           [](const Tensor& a, const Tensor& b) {
             return ops::select_rows({true, false, true}, a, b);
           }},
          {"dense", [](const Tensor& a, const Tensor& b) {
             return ops::dense(ops::reshape(a, {5, 3}), b);
           }}};
}

TEST(Devices, HostDataGoesToTheOther) {
  for (const auto& [name, op] : binary()) {
    SCOPED_TRACE(name);
    const Tensor a = random_tensor({3, 5}, 1), b = random_tensor({3, 5}, 2);
    const Tensor here =
        op(Tensor(a.to_host().view(), cpu_device()), Tensor(b.to_host().view(), cpu_device()));
    for (const bool first : {true, false}) {
      const Tensor there =
          op(first ? on(test_device(), {3, 5}, 1) : a, first ? b : on(test_device(), {3, 5}, 2));
      EXPECT_EQ(&there.device(), &test_device());
      EXPECT_TRUE(there.placed());
      EXPECT_EQ(values_of(there), values_of(here));
    }
  }
}

TEST(Devices, WhatWasPlacedStaysApart) {
  for (const auto& [name, op] : binary()) {
    SCOPED_TRACE(name);
    const Tensor a = on(test_device(0), {3, 5}, 1), b = on(test_device(1), {3, 5}, 2);
    const std::string what = message_of<ArgumentError>([&, &op = op] { op(a, b); });
    const std::string call = std::string(name) == "stack" ? "concat" : name;
    EXPECT_EQ(what, "[" + call + "] one input lies on test:0 and one on test:1, expected one " +
                        "device: to() copies a tensor to another");
    EXPECT_NE(message_of<ArgumentError>([&, &op = op] {
                op(Tensor(a.to_host().view(), cpu_device()), b);
              }).find("cpu"),
              std::string::npos);
  }
}

// What every operation asks of its operands once they are together.
TEST(Devices, TheCheckOfOperandsNamesBothDevices) {
  const Tensor a = on(test_device(0), {3, 5}, 1), b = on(test_device(1), {3, 5}, 2);
  EXPECT_EQ(message_of<ArgumentError>([&] { ops::require_same_kind("dense", "bias", a, b); }),
            "[dense] bias lies on test:1, expected test:0");
  EXPECT_EQ(message_of<ArgumentError>([&] { ops::require_same("add", b, a); }),
            "[add] b lies on test:0, expected test:1");
  EXPECT_EQ(message_of<ArgumentError>(
                [&] { ops::require_same_kind("add", "b", a, ops::cast(b, DType::kFloat32)); }),
            "[add] b is float32, expected float64");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              ops::require_same("add", a, on(test_device(0), {5, 3}, 1));
            }),
            "[add] b has shape [5, 3], expected [3, 5] as a");
  EXPECT_EQ(message_of<ArgumentError>([&] { ops::require_same("add", Tensor(), a); }),
            "[add] a is empty, expected a floating tensor");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              ops::require_same("add", a, int_tensor({2}, {1, 2}));
            }),
            "[add] b is int32 of shape [2], expected a floating tensor");
}

TEST(Devices, WhatComesOfHostDataAloneIsHostData) {
  const Tensor x = ops::scale(random_tensor({3, 5}, 1), 2.0);
  EXPECT_FALSE(x.placed());
  const Tensor y = ops::add(x, on(test_device(), {3, 5}, 2));
  EXPECT_EQ(&y.device(), &test_device());
  EXPECT_TRUE(ops::negate(y).placed());
}

// What the host computes of integers and booleans lies where its operands were placed.
TEST(Devices, ResultsOfTheHostGoToThePlacedOperand) {
  const Tensor here = int_tensor({3}, {1, 0, 3}), row = int_tensor({3}, {1, 2, 0});
  using Operation = Tensor (*)(const Tensor&, const Tensor&);
  const Operation operations[] = {ops::equal,     ops::less,        ops::less_equal, ops::greater,
                                  ops::not_equal, ops::logical_and, ops::logical_or};
  const auto truths = [](const Tensor& x) {
    const Array host = x.to_host();
    const auto values = host.as<bool>();
    return std::vector<bool>(values.begin(), values.end());
  };
  for (const Operation operation : operations) {
    const Tensor wanted = operation(here, row);
    EXPECT_FALSE(wanted.placed());
    for (const bool first : {true, false}) {
      const Tensor found =
          operation(first ? here.to(test_device()) : here, first ? row : row.to(test_device()));
      EXPECT_EQ(&found.device(), &test_device()) << first;
      EXPECT_TRUE(found.placed());
      EXPECT_EQ(truths(found), truths(wanted));
    }
  }
  for (const Tensor& of_one : {ops::logical_not(here.to(test_device())),
                               ops::cast(here.to(test_device()), DType::kFloat32),
                               ops::cast(on(test_device(), {3}, 1), DType::kBool)}) {
    EXPECT_EQ(&of_one.device(), &test_device());
  }
}

TEST(Devices, GradientsComeBackToWhereHostDataLay) {
  const Tensor there = on(test_device(), {3, 5}, 2);
  GradientTape tape;
  const Tensor x = tape.watch(random_tensor({3, 5}, 1));
  const Tensor loss = ops::reduce_sum(ops::multiply(x, there));
  const DeviceArray gradient = tape.gradient(loss, Tensors{x})[0];
  EXPECT_EQ(&gradient.device(), &x.device());
  EXPECT_EQ(values_of(gradient), values_of(there));
}

TEST(Devices, IndicesAndLabelsGoWhereTheyAreUsed) {
  const Tensor table = on(test_device(), {5, 3}, 1), logits = on(test_device(), {4, 5}, 2);
  const Tensor free = int_tensor({4}, {4, 0, -1, 2});
  const Tensor indices = int_tensor({4}, {4, 0, 1, 2});
  const std::vector<double> rows =
      values_of(ops::embedding_lookup(random_tensor({5, 3}, 1), indices));
  const double loss = ops::softmax_cross_entropy(random_tensor({4, 5}, 2), free).item();
  for (const Device* device : {&cpu_device(), &test_device(0), &test_device(1)}) {
    EXPECT_EQ(values_of(ops::embedding_lookup(table, indices.to(*device))), rows);
    EXPECT_EQ(ops::softmax_cross_entropy(logits, free.to(*device)).item(), loss);
  }
  EXPECT_NE(message_of<ArgumentError>([&] {
              ops::embedding_lookup(table, free);
            }).find("indices[2] is -1"),
            std::string::npos);
}

TEST(Devices, OneHotRowsOfHostDataAreHostData) {
  const Tensor free = int_tensor({2}, {1, 0});
  EXPECT_FALSE(ops::one_hot(free, 3, DType::kFloat32).placed());
  const Tensor there = ops::one_hot(free.to(test_device()), 3, DType::kFloat32);
  EXPECT_EQ(&there.device(), &test_device());
  EXPECT_EQ(values_of(there), (std::vector<double>{0, 1, 0, 1, 0, 0}));
}

struct Network {
  RnnSpec spec = small_spec(RnnMode::kLstm);
  ops::RnnInputs inputs;

  explicit Network(const Device& device) {
    inputs.x = random_tensor({5, 3, 4}, 1);
    inputs.h0 = random_tensor({4, 3, 3}, 2);
    inputs.c0 = random_tensor({4, 3, 3}, 3);
    inputs.params = on(device, {params_size(spec)}, 4);
    inputs.lengths = int_tensor({3}, {5, 0, 2});
    inputs.dropout = {.seed = 5, .call = 2};
    inputs.every = true;
  }
};

TEST(Devices, ARecurrentCallRunsWhereItsParametersLie) {
  const Network here(cpu_device());
  const ops::RnnOutputs expected = ops::rnn(here.spec, here.inputs, nullptr);
  Network there(test_device());
  for (const Device* lengths : {&cpu_device(), &test_device()}) {
    there.inputs.lengths = there.inputs.lengths.to(*lengths);
    ops::PackedCache cache;
    const ops::RnnOutputs out = ops::rnn(there.spec, there.inputs, &cache);
    EXPECT_EQ(&out.output.device(), &test_device());
    EXPECT_EQ(values_of(out.output), values_of(expected.output));
    EXPECT_EQ(values_of(out.h), values_of(expected.h));
    EXPECT_EQ(values_of(out.c), values_of(expected.c));
    EXPECT_EQ(values_of(out.layer_outputs[0]), values_of(expected.layer_outputs[0]));
    EXPECT_EQ(values_of(out.layer_cells[1]), values_of(expected.layer_cells[1]));
  }
}

TEST(Devices, ARecurrentCallRefusesAStateOfAnother) {
  Network network(test_device(0));
  network.inputs.c0 = network.inputs.c0.to(test_device(1));
  EXPECT_EQ(message_of<ArgumentError>([&] {
              ops::rnn(network.spec, network.inputs, nullptr);
            }).find("[rnn] one input lies on "),
            0u);
}

ops::CudnnLSTM placed_model() {
  return ops::CudnnLSTM({.num_layers = 1,
                         .num_units = 3,
                         .input_size = 4,
                         .dtype = DType::kFloat64,
                         .compute = {.device = &test_device()}});
}

TEST(Devices, AModelTakesHostDataToItsDevice) {
  ops::CudnnLSTM model = placed_model();
  const Tensor params = random_tensor({model.params_size()}, 4);
  const Tensor x = random_tensor({5, 2, 4}, 1), h = random_tensor({1, 2, 3}, 2);
  const ops::RnnOutputs out = model(x, h, h, params);
  EXPECT_EQ(&out.output.device(), &test_device());
  const CanonicalParams canonical = model.params_to_canonical(params.to(test_device()));
  std::vector<ConstArrayView> weights, biases;
  for (const Array& each : canonical.weights) weights.push_back(each.view());
  for (const Array& each : canonical.biases) biases.push_back(each.view());
  const Tensor again = model.canonical_to_params(weights, biases);
  EXPECT_EQ(&again.device(), &test_device());
  EXPECT_EQ(values_of(again), values_of(params));
}

TEST(Devices, AModelRefusesWhatWasPlacedElsewhere) {
  ops::CudnnLSTM model = placed_model();
  const Tensor params = random_tensor({model.params_size()}, 4);
  const Tensor x = random_tensor({5, 2, 4}, 1), h = random_tensor({1, 2, 3}, 2);
  for (const Device* other : {&cpu_device(), &test_device(1)}) {
    const std::string text = std::string("[CudnnLSTM] one input lies on ") +
                             std::string(other->name()) +
                             ", expected test:0, the device of the model: to() copies a tensor to "
                             "another";
    const auto refused = [&](const Tensor& a, const Tensor& b, const Tensor& c, const Tensor& d) {
      return message_of<ArgumentError>([&] { model(a, b, c, d); });
    };
    const auto there = [other](const Tensor& tensor) { return tensor.to(*other); };
    EXPECT_EQ(refused(there(x), there(h), there(h), there(params)), text);
    EXPECT_EQ(refused(x, h, there(h), params), text);
    EXPECT_EQ(refused(x, h, h, there(params)), text);
  }
}

}  // namespace
}  // namespace openrnn::testing
