// What ONNX programs say of what they do not run or compute: every message, word for word.
#include <openrnn/base.h>

#include <cmath>

#include "onnx/operator_call.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

using Texts = std::vector<std::string>;

// Of the one node 'n'.
template <class E = ArgumentError>
void expect_said(const Call& call, const std::string& what) {
  expect_error<E>([&] { call.run(); }, "[run] node 'n' (" + call.op + "): " + what);
}
void expect_refusal(const Call& call, const std::string& what) {
  expect_error<UnsupportedError>([&] { call.run(); }, "[onnx] node 'n' (" + call.op + "): " + what);
}

const std::int64_t kOne = 1, kTwo = 2;

TEST(OnnxMessages, OfArithmetic) {
  const Array a = floats({2}, {6, 8}), i = integers({2}, {6, 8});
  const Array narrow = Array::of<std::int32_t>({1}, std::vector<std::int32_t>{0});
  for (const char* op : {"Add", "Sub", "Mul", "Div"}) {
    expect_said({op, {a}}, "input 1 is left out, expected it");
    expect_said({op, {std::nullopt, a}}, "input 0 is left out, expected it");
    expect_said({op, {a, i}}, "the operands are float32 and int64, expected equal dtypes");
    expect_said({op, {i, narrow}}, "the operands are int64 and int32, expected equal dtypes");
    expect_said({op, {a, floats({3}, {1, 2, 3})}},
                "[broadcast] shapes are [2] and [3], expected ones that fit");
    expect_said({op, {i, integers({4, 3}, Integers(12, 1))}},
                "[broadcast] shapes are [2] and [4, 3], expected ones that fit");
  }
  expect_said({"Div", {i, integers({}, {0})}}, "an integer is divided by 0");
  expect_said({"Div", {narrow, narrow}}, "an integer is divided by 0");
  expect_said({"Pow", {i, a}},
              "the operands are int64 and float32, expected a floating dtype and numbers");
  expect_said({"Pow", {a, Array(DType::kBool, {1})}},
              "the operands are float32 and bool, expected a floating dtype and numbers");
  expect_said({"MatMul", {a, floats({}, {1})}},
              "the operands are float32 [2] and float32 [], expected vectors or matrices");
  expect_said({"MatMul", {floats({2, 1, 3}, Floats(6, 1)), floats({2, 2, 1}, Floats(4, 1))}},
              "the operands are [2, 1, 3] and [2, 2, 1], expected equal inner sizes");
  expect_said({"Gemm", {a}}, "input 1 is left out, expected it");
}

TEST(OnnxMessages, OfFunctions) {
  const Array i = integers({1}, {1}), x = floats({2}, {1, 2});
  for (const char* op :
       {"LeakyRelu", "Elu", "HardSigmoid", "Softplus", "Softsign", "Log", "Clip"}) {
    expect_said({op, {i}}, "x is int64, expected a floating dtype");
  }
  expect_said({"ReduceMean", {i}}, "x is int64, expected a floating dtype");
  Array yes(DType::kBool, {});
  yes.as<bool>()[0] = true;
  expect_said({"Dropout", {x, std::nullopt, yes}},
              "training_mode is true, expected a model for inference");
  expect_said({"Softmax", {x}, {{"axis", kOne}}}, "[onnx] the axis is 1, expected one of 1");
  expect_said({"LogSoftmax", {x}, {{"axis", std::int64_t{-2}}}},
              "[onnx] the axis is -2, expected one of 1");
  expect_refusal({"Relu", {x}, {}, 2}, "it has 1 outputs here, expected no more");
  expect_refusal({"Dropout", {x}, {}, 3}, "it has 2 outputs here, expected no more");
}

TEST(OnnxMessages, OfConv) {
  const Array x = floats({1, 2, 3}, {1, 2, 3, 4, 5, 6}), w = floats({1, 2, 2}, {1, 1, 1, 1});
  // What is padded is there to be spanned, too.
  expect_said({"Conv", {x, floats({1, 2, 9}, Floats(18, 1))}, {{"pads", Integers{1, 4}}}},
              "W is [1, 2, 9] and spans 9 of 8 inputs of X [1, 2, 3], expected no more than there "
              "are");
  expect_said({"Conv", {x, w}, {{"dilations", Integers{5}}, {"pads", Integers{0, 2}}}},
              "W is [1, 2, 2] and spans 6 of 5 inputs of X [1, 2, 3], expected no more than there "
              "are");
  expect_said({"Conv",
               {floats({1, 1, 2, 3}, Floats(6, 1)), floats({1, 1, 1, 7}, Floats(7, 1))},
               {{"pads", Integers{5, 1, 5, 2}}}},
              "W is [1, 1, 1, 7] and spans 7 of 6 inputs of X [1, 1, 2, 3], expected no more than "
              "there are");
  expect_said({"Conv", {x, floats({1, 2, 0}, {})}},
              "W has 0, expected 1 to 2147483647 for each dimension");
  expect_said({"Conv", {x, w}, {{"group", kTwo}}},
              "W is float32 [1, 2, 2] and group 2, expected float32 [M, C / group, ..] of 3 "
              "dimensions for X of [1, 2, 3], group a divisor of M and C");
  expect_said({"Conv", {x, w}, {{"pads", Integers{0, -1}}}},
              "pads has -1, expected 0 to 2147483647 for each dimension");
  expect_said({"Conv", {x, w}, {{"pads", Integers{0, 0, 0}}}},
              "pads is [0, 0, 0], expected 2 numbers");
  expect_said({"Conv", {x, w}, {{"kernel_shape", Integers{2, 1}}}},
              "kernel_shape is [2, 1], expected [2] for W of [1, 2, 2]");
  expect_said({"Conv", {x, w, floats({2}, {1, 2})}}, "B is float32 [2], expected float32 [1]");
  expect_said({"Conv", {floats({2, 3}, Floats(6, 1)), w}},
              "X is float32 [2, 3], expected a floating dtype and [N, C, ..]");
  expect_refusal({"Conv", {x, w}, {{"auto_pad", std::string("VALID")}, {"pads", Integers{1, 0}}}},
                 "there are pads and auto_pad VALID, expected one");
}

TEST(OnnxMessages, OfPad) {
  const Array x = floats({3}, {1, 2, 3}), pads = integers({2}, {2, 1});
  expect_said({"Pad", {x, integers({2}, {-4, 0})}},
              "pads takes 4 and 0 away from axis 0 of [3], expected no more than there is");
  expect_said({"Pad", {floats({2, 3}, Floats(6, 1)), integers({4}, {0, -1, 0, -3})}},
              "pads takes 1 and 3 away from axis 1 of [2, 3], expected no more than there is");
  expect_said({"Pad", {x, integers({2}, {INT64_MIN, 1})}},
              "pads has -9223372036854775808, expected -2147483647 to 2147483647");
  expect_said({"Pad", {x, integers({2}, {0, 2147483648})}},
              "pads has 2147483648, expected -2147483647 to 2147483647");
  expect_said({"Pad", {x, integers({3}, {1, 2, 3})}},
              "pads is [1, 2, 3], expected 2 numbers, two for each axis");
  expect_said({"Pad", {x, pads, floats({2}, {1, 2})}},
              "constant_value is float32 [2], expected one float32");
  expect_said({"Pad", {x, pads, integers({}, {1})}},
              "constant_value is int64 [], expected one float32");
  expect_said({"Pad", {x, x}}, "[onnx] indices or sizes are float32, expected int64 or int32");
  for (const char* mode : {"edge", "reflect", "wrap"}) {
    expect_said(
        {"Pad", {floats({2, 0}, {}), integers({4}, {0, 1, 0, 0})}, {{"mode", std::string(mode)}}},
        "x is [2, 0], expected elements to copy");
  }
}

// A tensor of the node 'n' takes its name from the operator, whatever the dimension.
TEST(OnnxMessages, OfRecurrentOperators) {
  const Array x = floats({3, 2, 1}, {1, 2, 3, 4, 5, 6}), state = floats({1, 2, 1}, {1, 2});
  for (const char* op : {"RNN", "GRU", "LSTM"}) {
    const std::int64_t gates = std::string(op) == "RNN" ? 1 : std::string(op) == "GRU" ? 3 : 4;
    const Array w = floats({1, gates, 1}, Floats(static_cast<std::size_t>(gates), 1));
    const auto with = [&](std::size_t index, const Array& array) {
      std::vector<std::optional<Array>> inputs{x, w, w, std::nullopt, std::nullopt, state};
      inputs[index] = array;
      return Call{op, inputs};
    };
    expect_said(with(0, floats({3, 2, 2}, Floats(12, 1))),
                "X is float32 [3, 2, 2], expected float32 of three dimensions, the last 1");
    expect_said(with(5, floats({2, 1, 1}, {1, 2})),
                "initial_h is float32 [2, 1, 1], expected float32 [1, 2, 1]");
    const auto lengths = [](std::vector<std::int32_t> values) {
      return Array::of<std::int32_t>({static_cast<std::int64_t>(values.size())}, values);
    };
    expect_said(with(4, lengths({3, 4})), "sequence_lens has 4 at row 1, expected 0 to 3");
    expect_said(with(4, lengths({-1, 4})), "sequence_lens has -1 at row 0, expected 0 to 3");
    expect_said(with(4, lengths({1, 2, 3})), "sequence_lens is int32 [3], expected int32 [2]");
    expect_said({op, {x}}, "input 1 is left out, expected it");
    expect_said({op, {x, w}}, "input 2 is left out, expected it");
  }
}

// Directions with functions of their own have a half of each tensor, which has to have two.
TEST(OnnxMessages, OfTwoDirections) {
  const Array x = floats({1, 1, 1}, {1});
  const Texts functions{"Sigmoid", "Tanh", "Tanh", "Sigmoid", "Tanh", "Softsign"};
  const std::vector<std::optional<Array>> inputs{x,
                                                 floats({2, 4, 1}, Floats(8, 1)),
                                                 floats({2, 4, 1}, Floats(8, 1)),
                                                 floats({2, 8}, Floats(16, 1)),
                                                 std::nullopt,
                                                 std::nullopt,
                                                 std::nullopt,
                                                 floats({2, 3}, Floats(6, 1))};
  const auto lstm = [&](std::size_t index, const Array& array) {
    Call call{
        "LSTM", inputs, {{"activations", functions}, {"direction", std::string("bidirectional")}}};
    call.inputs[index] = array;
    return call;
  };
  EXPECT_NO_THROW(lstm(0, x).run());
  const std::string expected = ", expected 2 directions";
  expect_refusal(lstm(1, floats({1, 4, 1}, Floats(4, 1))), "W is [1, 4, 1]" + expected);
  expect_refusal(lstm(1, floats({3, 4, 1}, Floats(12, 1))), "W is [3, 4, 1]" + expected);
  expect_refusal(lstm(2, floats({1, 4, 1}, Floats(4, 1))), "R is [1, 4, 1]" + expected);
  expect_refusal(lstm(3, floats({1, 8}, Floats(8, 1))), "B is [1, 8]" + expected);
  expect_refusal(lstm(7, floats({}, {1})), "P is []" + expected);
}

TEST(OnnxMessages, OfFunctionsWithParameters) {
  const Array x = floats({1, 1, 1}, {1});
  const auto rnn = [&](const char* function, const Floats& alphas, const Floats& betas) {
    Attributes attributes{{"activations", Texts{function}}};
    if (!alphas.empty()) attributes.push_back({"activation_alpha", alphas});
    if (!betas.empty()) attributes.push_back({"activation_beta", betas});
    return Call{"RNN", {x, x, x}, attributes};
  };
  for (const auto& [value, name] :
       {std::pair(INFINITY, "inf"), std::pair(-INFINITY, "-inf"), std::pair(NAN, "nan")}) {
    expect_refusal(rnn("LeakyRelu", {value}, {}),
                   "activation_alpha is " + std::string(name) + ", expected finite numbers");
    expect_refusal(rnn("HardSigmoid", {0.5f}, {value}),
                   "activation_beta is " + std::string(name) + ", expected finite numbers");
  }
  for (const char* function : {"Affine", "ScaledTanh"}) {
    const auto lacks = [&](const char* attribute) {
      return "the activation " + std::string(function) + " has no " + attribute +
             ", expected it: ONNX has no operator of this name that says its value";
    };
    expect_refusal(rnn(function, {}, {0.5f}), lacks("activation_alpha"));
    expect_refusal(rnn(function, {0.5f}, {}), lacks("activation_beta"));
    EXPECT_NO_THROW(rnn(function, {0.5f}, {0.5f}).run());
  }
}

TEST(OnnxMessages, OfMoves) {
  const Array x = floats({2, 3}, {1, 2, 3, 4, 5, 6}), one = integers({1}, {1});
  expect_refusal({"Gather", {x}}, "input 1 is left out, expected it");
  expect_refusal({"Concat", {}, {{"axis", kOne}}}, "input 0 is left out, expected it");
  expect_refusal({"Concat", {x, std::nullopt}, {{"axis", kOne}}},
                 "input 1 is left out, expected it");
  expect_refusal({"Cast", {x}, {{"to", std::int64_t{8}}}},
                 "the element type is 8, expected that of a DType");
  expect_refusal({"Slice", {x, one}}, "there are no ends, expected them");
  expect_refusal({"Slice", {x}}, "there are no starts, expected them");
  expect_refusal({"Reshape", {x}}, "there are no shape, expected them");
  expect_refusal({"Slice", {x, one, integers({2}, {1, 2})}},
                 "starts, ends, axes and steps differ in number");
  expect_refusal({"Slice", {floats({}, {1}), one, one}},
                 "starts, ends, axes and steps differ in number");
  expect_refusal({"Reshape", {x, integers({2}, {-2, 3})}},
                 "the shape is [-2, 3], expected sizes of at least 0");
  expect_refusal({"Reshape", {x, integers({2}, {INT64_MAX, 3})}},
                 "the shape is [9223372036854775807, 3], expected sizes of at least 0");
  expect_refusal({"Reshape", {x, integers({2}, {-1, -1})}},
                 "two sizes are -1, expected one at most");
  expect_refusal({"Reshape", {x, integers({3}, {6, 1, 0})}},
                 "a size is that of an axis that is not there");
  expect_said({"Reshape", {x, integers({1}, {7})}},
              "[reshaped] shape is [7], expected 6 elements as in [2, 3]");
  expect_refusal({"Split", {x, integers({2}, {1, 3})}, {}, 2},
                 "parts of [1, 3] are made of 2, expected a size for each output");
  expect_refusal({"Squeeze", {x, integers({1}, {-1})}}, "axis 1 has size 3");
  expect_refusal({"Unsqueeze", {x, integers({2}, {0, -4})}},
                 "an axis is there twice, expected unequal ones");
  expect_said({"Transpose", {x}, {{"perm", Integers{0, 2}}}},
              "[Transpose] perm is [0, 2], expected a permutation of 2 axes");
  expect_said({"Slice", {x, one, one, one, integers({1}, {0})}},
              "[Slice] a step is 0, expected another one");
  expect_said({"Gather", {x, integers({1}, {2})}},
              "[Gather] an index is 2, expected one of 2 elements");
  expect_said({"Gather", {x, integers({1}, {-4})}, {{"axis", kOne}}},
              "[Gather] an index is -4, expected one of 3 elements");
  for (const Array& other : {floats({3, 3}, Floats(9, 1)), floats({6}, Floats(6, 1))}) {
    expect_said(
        {"Concat", {x, other}, {{"axis", kOne}}},
        "[Concat] shapes are [2, 3] and " + to_string(other.shape()) + ", expected ones that fit");
  }
  expect_said({"Concat", {x, integers({2, 1}, {1, 2})}, {{"axis", kOne}}},
              "[Concat] shapes are [2, 3] and [2, 1], expected ones that fit");
  expect_said({"Flatten", {x}, {{"axis", std::int64_t{3}}}},
              "[onnx] the axis is 3, expected one of 2");
  const auto two = std::make_shared<const OnnxTensor>(OnnxTensor::of("", integers({2}, {3, 4})));
  expect_said({"ConstantOfShape", {one}, {{"value", two}}},
              "[ConstantOfShape] value is [2], expected one element");
  expect_said({"ConstantOfShape", {integers({1}, {INT64_MAX / 2})}},
              "[onnx] a shape is [4611686018427387903], expected a smaller one");
  expect_said({"ConstantOfShape", {integers({1}, {-1})}},
              "[shape_size] shape is [-1], expected dimensions of 0 or more");
}

TEST(OnnxMessages, OfAttributesOfAnotherKind) {
  const Array x = floats({1, 1, 2}, {1, 2}), w = floats({1, 1, 1}, {1});
  const std::string text = "text";
  const std::tuple<const char*, OnnxAttribute, const char*> cases[] = {
      {"Conv", {"group", 1.0f}, "an integer"},
      {"Conv", {"strides", kOne}, "a list of integers"},
      {"Conv", {"kernel_shape", Floats{1}}, "a list of integers"},
      {"Conv", {"auto_pad", kOne}, "a text"},
      {"Pad", {"mode", kOne}, "a text"},
      {"Pad", {"pads", kOne}, "a list of integers"},
      {"LeakyRelu", {"alpha", kOne}, "a number"},
      {"HardSigmoid", {"beta", text}, "a number"},
      {"Clip", {"max", kOne}, "a number"},
      {"Gemm", {"transA", 1.0f}, "an integer"},
      {"ReduceMean", {"axes", kOne}, "a list of integers"},
      {"ReduceMean", {"keepdims", text}, "an integer"},
      {"Softmax", {"axis", 1.0f}, "an integer"},
      {"Constant", {"value", kOne}, "a tensor"},
      {"Constant", {"value_int", 1.0f}, "an integer"},
      {"Constant", {"value_ints", kOne}, "a list of integers"},
      {"Constant", {"value_float", kOne}, "a number"},
      {"Constant", {"value_floats", 1.0f}, "a list of numbers"},
      {"ConstantOfShape", {"value", kOne}, "a tensor"},
      {"Transpose", {"perm", kOne}, "a list of integers"},
      {"Cast", {"to", 1.0f}, "an integer"},
      {"RNN", {"activations", text}, "a list of texts"},
      {"RNN", {"activations", Floats{1}}, "a list of texts"},
      {"LSTM", {"clip", kOne}, "a number"},
      {"LSTM", {"direction", kOne}, "a text"},
      {"LSTM", {"input_forget", 1.0f}, "an integer"},
      {"GRU", {"linear_before_reset", text}, "an integer"},
      {"GRU", {"layout", text}, "an integer"},
  };
  for (const auto& [op, attribute, expected] : cases) {
    std::vector<std::optional<Array>> inputs{x, w};
    if (std::string_view(op) == "ReduceMean") inputs.pop_back();  // w would be its axes
    expect_refusal({op, inputs, {attribute}},
                   "the attribute " + attribute.name + " is of another kind, expected " + expected);
  }
  const Texts activation{"HardSigmoid"};
  expect_refusal(
      {"RNN", {x, w, w}, {{"activations", activation}, {"activation_beta", Integers{1}}}},
      "the attribute activation_beta is of another kind, expected a list of numbers");
}

OnnxModel program_of(OnnxNode node) {
  OnnxModel model;
  model.opsets[""] = 14;
  node.name = "n";
  if (node.outputs.empty()) node.outputs = {"y"};
  model.graph.inputs = {{.name = "a", .element_type = 1}, {.name = "b", .element_type = 8}};
  model.graph.outputs = {{.name = "y"}};
  model.graph.nodes = {std::move(node)};
  return model;
}

TEST(OnnxMessages, OfPrograms) {
  const auto loaded = [](const OnnxNode& node) { OnnxProgram program(program_of(node)); };
  const std::string known =
      ", expected one of Abs, Add, Cast, Clip, Concat, Constant, "
      "ConstantOfShape, Conv and 38 more";
  expect_error<UnsupportedError>([&] { loaded({.op_type = "Erf", .inputs = {"a"}}); },
                                 "[onnx] node 'n' (Erf): no program runs this operator" + known);
  for (const char* op : {"Relu", "LSTM", "Cast"}) {
    expect_error<UnsupportedError>(
        [&] { loaded({.op_type = op, .domain = "other", .inputs = {"a"}}); },
        "[onnx] node 'n' (" + std::string(op) +
            "): no program runs this operator of another domain" + known);
  }
  expect_error<ArgumentError>(
      [&] {
        loaded({.op_type = "Add", .inputs = {"a", "c"}});
      },
      "[OnnxProgram] node 'n' takes 'c', which no input, initializer or node before it makes");
  expect_error<ArgumentError>(
      [&] { loaded({.op_type = "Abs", .inputs = {"a"}, .outputs = {"z"}}); },
      "[OnnxProgram] the output 'y' is made by no node, expected one that makes it");
  const OnnxProgram program(program_of({.op_type = "Abs", .inputs = {"a"}}));
  const Array a = floats({1}, {-1}), wide(DType::kFloat64, {1});
  using Given = std::map<std::string, ConstArrayView>;
  const auto said = [&](const Given& given, const std::string& what) {
    expect_error<ArgumentError>([&] { program.run(given); }, "[run] " + what);
  };
  said({{"y", a.view()}}, "'y' is given, expected inputs of the graph");
  said({{"a", wide.view()}}, "'a' is float64, expected float32");
  said({{"a", a.view()}, {"b", a.view()}}, "'b' is float32, expected another type");
  said({{"a", a.view()}}, "'b' is not given, expected it");
}

}  // namespace
}  // namespace openrnn
