// ONNX models that run: shapes, broadcasting, what is refused and when, bits.

#include <gtest/gtest.h>
#include <openrnn/onnx.h>

#include <cmath>
#include <cstring>

#include "formats/temp_folder.h"

namespace openrnn {
namespace {

using Inputs = std::map<std::string, ConstArrayView>;

OnnxNode node(const std::string& op, std::vector<std::string> inputs,
              std::vector<OnnxAttribute> attributes = {},
              std::vector<std::string> outputs = {"y"}) {
  return {.name = "the_node",
          .op_type = op,
          .domain = "",
          .inputs = std::move(inputs),
          .outputs = std::move(outputs),
          .attributes = std::move(attributes)};
}

// Inputs a and b, output y, of any dtype and shape.
OnnxModel model_of(std::vector<OnnxNode> nodes, std::int64_t opset = 14) {
  OnnxModel model;
  model.ir_version = 8;
  model.opsets[""] = opset;
  model.graph.nodes = std::move(nodes);
  model.graph.inputs = {{"a", 0, {}}, {"b", 0, {}}};
  model.graph.outputs = {{"y", 0, {}}};
  return model;
}

Array numbers(Shape shape, double first = 1.0, DType dtype = DType::kFloat32) {
  Array wide(DType::kFloat64, std::move(shape));
  for (double& value : wide.as<double>()) value = first++;
  return cast(wide.view(), dtype);
}
Array integers(Shape shape, std::vector<std::int64_t> values) {
  return Array::of<std::int64_t>(std::move(shape), values);
}

Array run(const OnnxModel& model, const Array& a, const Array& b = numbers({1})) {
  return OnnxProgram(model).run({{"a", a.view()}, {"b", b.view()}}).at("y");
}

std::vector<double> doubles(const Array& array) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < array.size(); ++i) values.push_back(element(array.view(), i));
  return values;
}

TEST(OnnxProgram, ProductsOfEveryRank) {
  const OnnxModel model = model_of({node("MatMul", {"a", "b"})});
  EXPECT_EQ(run(model, numbers({3}), numbers({3})).shape(), Shape());
  EXPECT_EQ(doubles(run(model, numbers({3}), numbers({3}))), std::vector<double>{14.0});
  EXPECT_EQ(doubles(run(model, numbers({2}), numbers({2, 3}))), (std::vector<double>{9, 12, 15}));
  EXPECT_EQ(doubles(run(model, numbers({2, 2}), numbers({2}))), (std::vector<double>{5, 11}));
  EXPECT_EQ(run(model, numbers({5, 1, 7, 3}), numbers({4, 3, 2})).shape(), (Shape{5, 4, 7, 2}));
  EXPECT_EQ(run(model, numbers({5, 7, 3}), numbers({3, 2})).shape(), (Shape{5, 7, 2}));
  EXPECT_EQ(run(model, numbers({0, 3}), numbers({3, 2})).shape(), (Shape{0, 2}));
  // Each matrix of a batch is the product of its own two.
  const Array batched = run(model, numbers({2, 1, 2}), numbers({2, 2, 1}, 5.0));
  EXPECT_EQ(doubles(batched), (std::vector<double>{17, 53}));
  EXPECT_MESSAGE(ArgumentError, run(model, numbers({2, 3}), numbers({2, 3})),
                 "[run] node 'the_node' (MatMul): ");
  EXPECT_MESSAGE(ArgumentError, run(model, numbers({2, 2, 3}), numbers({2, 2, 3})),
                 "expected equal inner sizes");
}

TEST(OnnxProgram, SumsBroadcast) {
  const OnnxModel model = model_of({node("Sub", {"a", "b"})});
  EXPECT_EQ(doubles(run(model, numbers({2, 1}), numbers({3}))),
            (std::vector<double>{0, -1, -2, 1, 0, -1}));
  EXPECT_EQ(run(model, integers({2}, {7, 8}), integers({}, {3})).as<std::int64_t>()[1], 5);
  EXPECT_MESSAGE(ArgumentError, run(model, numbers({2}), numbers({3})),
                 "(Sub): [broadcast] shapes are [2] and [3]");
  EXPECT_MESSAGE(ArgumentError, run(model, numbers({2}), integers({2}, {1, 2})),
                 "the operands are float32 and int64");
}

TEST(OnnxProgram, IntegersAreDividedTowardsZero) {
  const OnnxModel model = model_of({node("Div", {"a", "b"})});
  const Array found = run(model, integers({3}, {-7, 7, INT64_MIN}), integers({3}, {2, -2, -1}));
  const auto values = found.as<std::int64_t>();
  EXPECT_EQ(values[0], -3);
  EXPECT_EQ(values[1], -3);
  EXPECT_EQ(values[2], INT64_MIN);
  EXPECT_MESSAGE(ArgumentError, run(model, integers({1}, {1}), integers({1}, {0})),
                 "(Div): an integer is divided by 0");
}

TEST(OnnxProgram, SoftmaxOfOldVersionsIsOverAllAxesFromThere) {
  const Array x = numbers({2, 3, 5}, -4.0, DType::kFloat64);
  const Array old = run(model_of({node("LogSoftmax", {"a"})}, 11), x);
  const Array now = run(model_of({node("LogSoftmax", {"a"}, {{"axis", std::int64_t{1}}})}), x);
  double all = 0.0, column = 0.0;
  for (int i = 0; i < 15; ++i) all += std::exp(element(old.view(), i));
  for (int i = 0; i < 15; i += 5) column += std::exp(element(now.view(), i));
  EXPECT_NEAR(all, 1.0, 1e-12);
  EXPECT_NEAR(column, 1.0, 1e-12);
}

TEST(OnnxProgram, MovesThatDoNotFit) {
  const auto refused = [](const OnnxNode& one, const Array& a, const Array& b,
                          const std::string& part) {
    EXPECT_MESSAGE(Error, run(model_of({one}), a, b), part);
  };
  refused(node("Gather", {"a", "b"}), numbers({3}), integers({1}, {3}),
          "an index is 3, expected one of 3 elements");
  refused(node("Gather", {"a", "b"}), numbers({3}), integers({1}, {-4}), "an index is -4");
  refused(node("Gather", {"a", "b"}), numbers({}), integers({1}, {0}), "the axis is 0");
  refused(node("Reshape", {"a", "b"}), numbers({6}), integers({2}, {4, -1}), "(Reshape)");
  refused(node("Reshape", {"a", "b"}), numbers({6}), integers({2}, {-1, -1}), "two sizes are -1");
  refused(node("Reshape", {"a", "b"}), numbers({6}), integers({2}, {6, 0}), "(Reshape)");
  refused(node("Transpose", {"a"}, {{"perm", std::vector<std::int64_t>{0, 0}}}), numbers({2, 3}),
          numbers({1}), "perm is [0, 0]");
  refused(node("Squeeze", {"a", "b"}), numbers({2, 3}), integers({1}, {1}), "axis 1 has size 3");
  refused(node("Expand", {"a", "b"}), numbers({2}), integers({1}, {3}), "[broadcast]");
  refused(node("ConstantOfShape", {"a"}), integers({1}, {-1}), numbers({1}), "(ConstantOfShape)");
  refused(node("ConstantOfShape", {"a"}), integers({2}, {INT64_MAX, 1}), numbers({1}),
          "expected a smaller one");
  refused(node("Slice", {"a", "b", "b", "", "c"}), numbers({2}), integers({1}, {0}), "'c'");
}

TEST(OnnxProgram, SlicesAreClampedAndMayWalkBack) {
  const auto slice = [](std::int64_t start, std::int64_t end, std::int64_t step) {
    OnnxModel model = model_of({node("Slice", {"a", "b", "end", "axis", "step"})});
    model.graph.initializers = {OnnxTensor::of("end", integers({1}, {end})),
                                OnnxTensor::of("axis", integers({1}, {-1})),
                                OnnxTensor::of("step", integers({1}, {step}))};
    return doubles(run(model, numbers({4}), integers({1}, {start})));
  };
  EXPECT_EQ(slice(1, 100, 2), (std::vector<double>{2, 4}));
  EXPECT_EQ(slice(-1, INT64_MIN, -1), (std::vector<double>{4, 3, 2, 1}));
  EXPECT_EQ(slice(100, -5, -3), (std::vector<double>{4, 1}));
  // The first element and what is before it.
  EXPECT_EQ(slice(-4, INT64_MIN, -1), (std::vector<double>{1}));
  EXPECT_EQ(slice(-5, INT64_MIN, -1), std::vector<double>());
  EXPECT_EQ(slice(-1, -4, -1), (std::vector<double>{4, 3, 2}));
  EXPECT_EQ(slice(-1, -5, -1), (std::vector<double>{4, 3, 2, 1}));
  EXPECT_EQ(slice(-4, -3, 1), (std::vector<double>{1}));
  EXPECT_EQ(slice(-5, 1, 1), (std::vector<double>{1}));
  EXPECT_EQ(slice(3, 4, 1), (std::vector<double>{4}));
  EXPECT_EQ(slice(4, 5, 1), std::vector<double>());
  EXPECT_EQ(slice(INT64_MAX, 0, INT64_MIN), (std::vector<double>{4}));
  EXPECT_EQ(slice(3, 1, 1), std::vector<double>());
  EXPECT_EQ(slice(0, 4, INT64_MAX), (std::vector<double>{1}));
  EXPECT_MESSAGE(ArgumentError, slice(0, 4, 0), "a step is 0");
}

TEST(OnnxProgram, WhatIsRefusedWhenTheModelIsLoaded) {
  EXPECT_MESSAGE(
      UnsupportedError, OnnxProgram(model_of({node("Erf", {"a"})})),
      "[onnx] node 'the_node' (Erf): no program runs this operator, expected one of Abs");
  OnnxNode other = node("Relu", {"a"});
  other.domain = "com.example";
  EXPECT_MESSAGE(UnsupportedError, OnnxProgram(model_of({other})), "operator of another domain");
  EXPECT_MESSAGE(UnsupportedError, OnnxProgram(model_of({node("Relu", {"a"}, {{"slope", 1.0f}})})),
                 "the attribute slope is not known");
  EXPECT_MESSAGE(ArgumentError, OnnxProgram(model_of({node("Relu", {"nobody"})})),
                 "node 'the_node' takes 'nobody', which no input, initializer or node before it");
  EXPECT_MESSAGE(ArgumentError, OnnxProgram(model_of({node("Relu", {"a"}, {}, {"z"})})),
                 "the output 'y' is made by no node");
  // A cycle is a value that comes too late.
  EXPECT_MESSAGE(ArgumentError, OnnxProgram(model_of({node("Relu", {"y"})})),
                 "takes 'y', which no");
}

TEST(OnnxProgram, AnInputWithAnInitializerMayBeGiven) {
  OnnxModel model = model_of({node("Add", {"a", "b"})});
  model.graph.initializers = {OnnxTensor::of("b", numbers({1}, 10.0))};
  const OnnxProgram program(model);
  ASSERT_EQ(program.inputs().size(), 1u);
  const Array a = numbers({2}), b = numbers({1}, 100.0);
  EXPECT_EQ(doubles(program.run({{"a", a.view()}}).at("y")), (std::vector<double>{11, 12}));
  EXPECT_EQ(doubles(program.run({{"a", a.view()}, {"b", b.view()}}).at("y")),
            (std::vector<double>{101, 102}));
}

OnnxModel gru_model() {
  OnnxModel model =
      model_of({node("GRU", {"a", "W", "R"}, {{"direction", std::string("reverse")}})});
  const auto weights = [](Shape shape) {
    Array values(DType::kFloat32, std::move(shape));
    RandomStream random(7);
    for (float& value : values.as<float>()) value = static_cast<float>(random.uniform(-0.5, 0.5));
    return values;
  };
  model.graph.initializers = {OnnxTensor::of("W", weights({1, 99, 17})),
                              OnnxTensor::of("R", weights({1, 99, 33}))};
  return model;
}

TEST(OnnxProgram, TheSameBitsForAnyNumberOfThreads) {
  const OnnxProgram program(gru_model());
  const Array x = numbers({15, 7, 17}, -800.0);
  const Array b = numbers({1});
  const Inputs inputs{{"a", x.view()}, {"b", b.view()}};
  const int before = num_threads();
  set_num_threads(1);
  const Array one = program.run(inputs).at("y");
  set_num_threads(3);
  const Array three = program.run(inputs).at("y");
  set_num_threads(before);
  ASSERT_EQ(one.shape(), (Shape{15, 1, 7, 33}));
  EXPECT_EQ(std::memcmp(one.data(), three.data(), one.size_bytes()), 0);
}

TEST(OnnxProgram, NoStepsAndNoRows) {
  const OnnxModel model = gru_model();
  EXPECT_EQ(run(model, numbers({0, 3, 17})).shape(), (Shape{0, 1, 3, 33}));
  EXPECT_EQ(run(model, numbers({4, 0, 17})).shape(), (Shape{4, 1, 0, 33}));
}

}  // namespace
}  // namespace openrnn
