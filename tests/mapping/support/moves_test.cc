// ONNX's operators that move elements: what they make at their edges, and what they refuse.
#include "mapping/onnx/values/moves.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/message.h"
#include "mapping/networks.h"
#include "mapping/onnx/values/attributes.h"
#include "support/expect_error.h"

namespace openrnn::mapping {
namespace {

using Integers = std::vector<std::int64_t>;
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min(),
                       kMost = std::numeric_limits<std::int64_t>::max();

Array list(const Integers& values) {
  return Array::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
}

// 0, 1, 2, ... of the shape.
Array count_of(Shape shape, DType dtype = DType::kInt32) {
  Array wide(DType::kFloat64, std::move(shape));
  double next = 0.0;
  for (double& value : wide.as<double>()) value = next++;
  MemoryBudget free;
  return converted(wide, dtype, &free);
}

struct Call {
  std::string op;
  std::vector<OnnxAttribute> attributes = {};
  std::vector<Array> inputs = {};
  std::size_t outputs = 1;
  /// Which of the inputs is left out.
  std::size_t missing = 99;
};

std::vector<Array> outputs_of(const Call& call, MemoryBudget budget = {}) {
  OnnxNode node{.name = "n", .op_type = call.op, .attributes = call.attributes};
  for (std::size_t i = 0; i < call.outputs; ++i) node.outputs.push_back(message("y", i));
  std::vector<const Array*> inputs;
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    inputs.push_back(i == call.missing ? nullptr : &call.inputs[i]);
  }
  return compute_move(node, inputs, &budget);
}

// 'int32 [2, 1]: 3 4' of each output.
std::string shown(const Call& call) {
  std::string text;
  for (const Array& array : outputs_of(call)) {
    text += message(text.empty() ? "" : "; ", dtype_name(array.dtype()), " ",
                    to_string(array.shape()), ":");
    MemoryBudget free;
    const Array wide = converted(array, DType::kFloat64, &free);
    for (const double value : wide.as<double>()) text += message(" ", value);
  }
  return text;
}

TEST(OnnxMoves, WhatTheyMake) {
  const Array x = count_of({2, 3});
  const std::pair<Call, const char*> cases[] = {
      {{"Flatten", {}, {count_of({1, 2, 3})}}, "int32 [1, 6]: 0 1 2 3 4 5"},
      {{"Flatten", {}, {x}}, "int32 [2, 3]: 0 1 2 3 4 5"},
      {{"Gather", {{"axis", std::int64_t{-2}}}, {x, list({1})}}, "int32 [1, 3]: 3 4 5"},
      {{"Flatten", {{"axis", std::int64_t{0}}}, {count_of({1, 2})}}, "int32 [1, 2]: 0 1"},
      {{"Flatten", {{"axis", std::int64_t{-1}}}, {count_of({1, 2, 3})}},
       "int32 [2, 3]: 0 1 2 3 4 5"},
      {{"Flatten", {{"axis", std::int64_t{3}}}, {count_of({1, 2, 1})}}, "int32 [2, 1]: 0 1"},
      {{"Reshape", {}, {x, list({0, -1})}}, "int32 [2, 3]: 0 1 2 3 4 5"},
      {{"Reshape", {}, {x, list({-1, 2, 1})}}, "int32 [3, 2, 1]: 0 1 2 3 4 5"},
      {{"Reshape", {{"shape", Integers{6}}}, {x}}, "int32 [6]: 0 1 2 3 4 5"},
      {{"Reshape", {}, {count_of({0, 3}), list({0, -1})}}, "int32 [0, 0]:"},
      {{"Reshape", {{"allowzero", std::int64_t{1}}}, {count_of({2, 0}), list({0, 7})}},
       "int32 [0, 7]:"},
      {{"Shape", {}, {x}}, "int64 [2]: 2 3"},
      {{"Shape", {{"start", std::int64_t{1}}}, {x}}, "int64 [1]: 3"},
      {{"Shape", {{"start", std::int64_t{-2}}, {"end", std::int64_t{-1}}}, {x}}, "int64 [1]: 2"},
      {{"Shape", {{"start", std::int64_t{1}}, {"end", std::int64_t{0}}}, {x}}, "int64 [0]:"},
      {{"Shape", {{"start", std::int64_t{-9}}, {"end", std::int64_t{9}}}, {x}}, "int64 [2]: 2 3"},
      {{"Size", {}, {x}}, "int64 []: 6"},
      {{"Split", {}, {count_of({5})}, 2}, "int32 [3]: 0 1 2; int32 [2]: 3 4"},
      {{"Split", {{"axis", std::int64_t{1}}}, {x, list({1, 2})}, 2},
       "int32 [2, 1]: 0 3; int32 [2, 2]: 1 2 4 5"},
      {{"Split", {}, {x, list({0, 2})}, 2}, "int32 [0, 3]:; int32 [2, 3]: 0 1 2 3 4 5"},
      {{"Squeeze", {}, {count_of({1, 2, 1})}}, "int32 [2]: 0 1"},
      {{"Squeeze", {{"axes", Integers{-1}}}, {count_of({1, 2, 1})}}, "int32 [1, 2]: 0 1"},
      {{"Squeeze", {}, {count_of({1, 2, 1}), list({0})}}, "int32 [2, 1]: 0 1"},
      {{"Unsqueeze", {}, {count_of({2}), list({0, -1})}}, "int32 [1, 2, 1]: 0 1"},
      {{"Transpose", {}, {x}}, "int32 [3, 2]: 0 3 1 4 2 5"},
      {{"Transpose", {{"perm", Integers{1, 0, 2}}}, {count_of({1, 2, 2})}},
       "int32 [2, 1, 2]: 0 1 2 3"},
      {{"Concat", {{"axis", std::int64_t{-1}}}, {x, count_of({2, 1})}},
       "int32 [2, 4]: 0 1 2 0 3 4 5 1"},
      {{"Gather", {}, {x, list({1, -2})}}, "int32 [2, 3]: 3 4 5 0 1 2"},
      {{"Gather", {{"axis", std::int64_t{1}}}, {x, count_of({}, DType::kInt64)}}, "int32 [2]: 0 3"},
      {{"Gather", {{"axis", std::int64_t{1}}}, {x, list({-3, 2})}}, "int32 [2, 2]: 0 2 3 5"},
      {{"Expand", {}, {count_of({2, 1}), list({3})}}, "int32 [2, 3]: 0 0 0 1 1 1"},
      {{"Expand", {}, {count_of({3}), list({2, 1})}}, "int32 [2, 3]: 0 1 2 0 1 2"},
      {{"ConstantOfShape", {}, {list({2})}}, "float32 [2]: 0 0"},
      {{"Constant", {{"value_int", std::int64_t{7}}}}, "int64 []: 7"},
      {{"Constant", {{"value_ints", Integers{7, 8}}}}, "int64 [2]: 7 8"},
      {{"Constant", {{"value_float", 0.5F}}}, "float32 []: 0.5"},
      {{"Constant", {{"value_floats", std::vector<float>{0.5F, 2.0F}}}}, "float32 [2]: 0.5 2"},
      {{"Identity", {}, {x}}, "int32 [2, 3]: 0 1 2 3 4 5"},
      {{"Cast", {{"to", std::int64_t{1}}}, {x}}, "float32 [2, 3]: 0 1 2 3 4 5"}};
  for (const auto& [call, expected] : cases) EXPECT_EQ(shown(call), expected) << call.op;
}

TEST(OnnxMoves, Slices) {
  const auto slice = [](std::int64_t start, std::int64_t end, std::int64_t step) {
    return shown(
        {"Slice", {}, {count_of({4}), list({start}), list({end}), list({0}), list({step})}});
  };
  EXPECT_EQ(slice(1, 3, 1), "int32 [2]: 1 2");
  EXPECT_EQ(slice(-3, -1, 1), "int32 [2]: 1 2");
  EXPECT_EQ(slice(0, kMost, 3), "int32 [2]: 0 3");
  EXPECT_EQ(slice(kLeast, kMost, kMost), "int32 [1]: 0");
  EXPECT_EQ(slice(3, kLeast, -1), "int32 [4]: 3 2 1 0");
  EXPECT_EQ(slice(kMost, kLeast, -2), "int32 [2]: 3 1");
  EXPECT_EQ(slice(-1, 0, -1), "int32 [3]: 3 2 1");
  EXPECT_EQ(slice(2, 2, 1), "int32 [0]:");
  EXPECT_EQ(slice(4, 9, 1), "int32 [0]:");
  EXPECT_EQ(slice(0, kLeast, kLeast), "int32 [1]: 0");
  EXPECT_EQ(shown({"Slice", {}, {count_of({2, 3}), list({0, 1}), list({1, 3})}}),
            "int32 [1, 2]: 1 2");
  EXPECT_EQ(shown({"Slice",
                   {{"starts", Integers{1}}, {"ends", Integers{2}}, {"axes", Integers{-1}}},
                   {count_of({2, 3})}}),
            "int32 [2, 1]: 1 4");
}

TEST(OnnxMoves, Conversions) {
  const std::vector<double> given{-3.7, 2.5, NAN, 1e30, -1e30, 0.25, -INFINITY};
  const Array x = Array::of<double>({7}, given);
  const auto converted_to = [&](DType dtype) {
    MemoryBudget free;
    const Array found = converted(x, dtype, &free);
    const Array whole = converted(found, DType::kInt64, &free);
    const auto values = whole.as<std::int64_t>();
    return Integers(values.begin(), values.end());
  };
  const std::int64_t least = std::numeric_limits<std::int32_t>::min(),
                     most = std::numeric_limits<std::int32_t>::max();
  EXPECT_EQ(converted_to(DType::kInt32), (Integers{-3, 2, 0, most, least, 0, least}));
  EXPECT_EQ(converted_to(DType::kInt64), (Integers{-3, 2, 0, kMost, kLeast, 0, kLeast}));
  EXPECT_EQ(converted_to(DType::kUInt8), (Integers{0, 2, 0, 255, 0, 0, 0}));
  EXPECT_EQ(converted_to(DType::kBool), (Integers{1, 1, 1, 1, 1, 1, 1}));
  MemoryBudget free;
  const Array zeros =
      converted(Array::of<double>({2}, std::vector<double>{-0.0, 1e-300}), DType::kBool, &free);
  EXPECT_FALSE(zeros.as<bool>()[0]);
  EXPECT_TRUE(zeros.as<bool>()[1]);
}

void expect_refused(const std::vector<std::pair<Call, const char*>>& cases) {
  for (const auto& [call, why] : cases) {
    expect_error<UnsupportedError>([&] { outputs_of(call); },
                                   message("[onnx] node 'n' (", call.op, "): ", why));
  }
}

TEST(OnnxMoves, WhatTheyRefuseOfANode) {
  const Array x = count_of({2, 3});
  expect_refused(
      {{{"Identity"}, "input 0 is left out, expected it"},
       {{"Gather", {}, {x}}, "input 1 is left out, expected it"},
       {{"Concat", {}, {x, x, x}, 1, 1}, "input 1 is left out, expected it"},
       {{"Concat"}, "input 0 is left out, expected it"},
       {{"Unsqueeze", {}, {x}}, "there are no axes, expected them"},
       {{"Slice", {}, {x}}, "there are no starts, expected them"},
       {{"Slice", {}, {x, list({0})}}, "there are no ends, expected them"},
       {{"Reshape", {}, {x}}, "there are no shape, expected them"},
       {{"Cast", {}, {x}}, "the element type is 0, expected that of a DType"},
       {{"Cast", {{"to", std::int64_t{14}}}, {x}},
        "the element type is 14, expected that of a DType"},
       {{"Cast", {{"to", (std::int64_t{1} << 32) + 1}}, {x}},
        "the element type is 4294967297, expected that of a DType"},
       {{"Constant"}, "there is no value, expected a tensor or numbers"},
       {{"Reshape", {}, {x, list({1, 2, 0})}}, "a size is that of an axis that is not there"},
       {{"Reshape", {}, {x, list({-1, -1})}}, "two sizes are -1, expected one at most"},
       {{"Reshape", {}, {x, list({-2, 3})}}, "the shape is [-2, 3], expected sizes of at least 0"},
       {{"Reshape", {}, {x, list({kMost, 3})}},
        "the shape is [9223372036854775807, 3], expected sizes of at least 0"},
       {{"Slice", {}, {x, list({0}), list({1, 2})}},
        "starts, ends, axes and steps differ in number"},
       {{"Slice", {}, {x, list({0}), list({1}), list({0, 1})}},
        "starts, ends, axes and steps differ in number"},
       {{"Slice", {}, {x, list({0}), list({1}), list({0}), list({1, 1})}},
        "starts, ends, axes and steps differ in number"},
       {{"Slice", {}, {x, list({0, 0, 0}), list({1, 1, 1}), list({0, 0, 0})}},
        "starts, ends, axes and steps differ in number"}});
}

TEST(OnnxMoves, AxesAndAttributesThatTheyRefuse) {
  const Array x = count_of({2, 3});
  expect_refused(
      {{{"Split", {}, {x}, 0}, "there are no outputs"},
       {{"Split", {}, {x, list({1, 2})}, 2},
        "parts of [1, 2] are made of 2, expected a size for each output"},
       {{"Split", {}, {x, list({3, -1})}, 2},
        "parts of [3, -1] are made of 2, expected a size for each output"},
       {{"Split", {}, {x, list({1})}, 1},
        "parts of [1] are made of 2, expected a size for each output"},
       {{"Split", {}, {x, list({1, 1})}, 1},
        "parts of [1, 1] are made of 2, expected a size for each output"},
       {{"Squeeze", {}, {x, list({1})}}, "axis 1 has size 3"},
       {{"Unsqueeze", {}, {x, list({0, 0})}}, "an axis is there twice, expected unequal ones"},
       {{"Softmax", {}, {x}}, "it is none of the operators that move elements"},
       {{"Flatten", {{"axis", 1.0F}}, {x}},
        "the attribute axis is of another kind, expected an integer"},
       {{"Transpose", {{"perm", std::int64_t{1}}}, {x}},
        "the attribute perm is of another kind, expected a list of integers"},
       {{"Constant", {{"value", std::int64_t{1}}}},
        "the attribute value is of another kind, expected a tensor"},
       {{"Constant", {{"value_float", std::int64_t{1}}}},
        "the attribute value_float is of another kind, expected a number"},
       {{"Constant", {{"value_floats", std::int64_t{1}}}},
        "the attribute value_floats is of another kind, expected a list of numbers"}});
  OnnxNode other{.name = "n", .op_type = "Identity", .domain = "d", .outputs = {"y"}};
  MemoryBudget free;
  EXPECT_FALSE(is_move(other));
  expect_error<UnsupportedError>(
      [&] { compute_move(other, {&x}, &free); },
      "[onnx] node 'n' (Identity): it is none of the operators that move "
      "elements");
  const OnnxNode node{.name = "n", .op_type = "LSTM", .attributes = {{"a", std::int64_t{1}}}};
  const std::string kind = "[onnx] node 'n' (LSTM): the attribute a is of another kind, expected ";
  expect_error<UnsupportedError>([&] { find_text(node, "a"); }, kind + "a text");
  expect_error<UnsupportedError>([&] { find_texts(node, "a"); }, kind + "a list of texts");
  const std::string_view known[] = {"b"};
  expect_error<UnsupportedError>([&] { require_known_attributes(node, known); },
                                 "[onnx] node 'n' (LSTM): the attribute a is not known, expected "
                                 "those of ONNX's operator");
}

TEST(OnnxMoves, WhatTheyRefuseOfShapes) {
  const Array x = count_of({2, 3});
  const std::pair<Call, const char*> cases[] = {
      {{"Flatten", {{"axis", std::int64_t{3}}}, {x}}, "[onnx] the axis is 3, expected one of 2"},
      {{"Flatten", {{"axis", std::int64_t{-3}}}, {x}}, "[onnx] the axis is -3, expected one of 2"},
      {{"Gather", {{"axis", std::int64_t{2}}}, {x, list({0})}},
       "[onnx] the axis is 2, expected one of 2"},
      {{"Gather", {}, {x, list({2})}}, "[Gather] an index is 2, expected one of 2 elements"},
      {{"Gather", {}, {x, list({0, -3})}}, "[Gather] an index is -3, expected one of 2 elements"},
      {{"Gather", {}, {x, count_of({1}, DType::kFloat32)}},
       "[onnx] indices or sizes are float32, expected int64 or int32"},
      {{"Transpose", {{"perm", Integers{0, 0}}}, {x}},
       "[Transpose] perm is [0, 0], expected a permutation of 2 axes"},
      {{"Transpose", {{"perm", Integers{0, 1, 2}}}, {x}},
       "[Transpose] perm is [0, 1, 2], expected a permutation of 2 axes"},
      {{"Slice", {}, {x, list({0}), list({1}), list({0}), list({0})}},
       "[Slice] a step is 0, expected another one"},
      {{"Concat", {}, {x, count_of({2, 4})}},
       "[Concat] shapes are [2, 3] and [2, 4], expected ones that fit"},
      {{"Concat", {}, {x, count_of({3})}},
       "[Concat] shapes are [2, 3] and [3], expected ones that fit"},
      {{"Concat", {}, {x, count_of({2, 3}, DType::kFloat32)}},
       "[Concat] shapes are [2, 3] and [2, 3], expected ones that fit"},
      {{"Expand", {}, {x, list({4})}},
       "[broadcast] shapes are [2, 3] and [4], expected ones that fit"},
      {{"Expand", {}, {count_of({3, 1}), list({2, 5})}},
       "[broadcast] shapes are [3, 1] and [2, 5], expected ones that fit"},
      {{"ConstantOfShape",
        {{"value", std::make_shared<const OnnxTensor>(OnnxTensor::of("v", count_of({2})))}},
        {list({2})}},
       "[ConstantOfShape] value is [2], expected one element"},
      {{"ConstantOfShape", {}, {list({kMost})}},
       "[onnx] a shape is [9223372036854775807], expected a smaller one"}};
  for (const auto& [call, why] : cases) {
    expect_error<ArgumentError>([&] { outputs_of(call); }, why);
  }
}

TEST(OnnxMoves, EachStepCostsItsElementsAndSomeBytes) {
  const auto fits = [](const Call& call, std::uint64_t left) {
    return error_of<UnsupportedError>([&] { outputs_of(call, {.left = left}); }).empty();
  };
  const Array x = count_of({10});
  for (const auto& [call, bytes] : {std::pair<Call, std::uint64_t>({"Identity", {}, {x}}, 40),
                                    {{"Cast", {{"to", std::int64_t{11}}}, {x}}, 80},
                                    {{"Cast", {{"to", std::int64_t{6}}}, {x}}, 40},
                                    {{"Size", {}, {x}}, 8},
                                    {{"Shape", {}, {x}}, 8},
                                    {{"Concat", {}, {x, x}}, 80}}) {
    EXPECT_TRUE(fits(call, bytes + 256)) << call.op;
    EXPECT_FALSE(fits(call, bytes + 255)) << call.op;
  }
  expect_error<UnsupportedError>(
      [&] {
        outputs_of({"Identity", {}, {x}}, {.left = 39});
      },
      "[onnx] expressions of constants make more elements than the file can account for");
  MemoryBudget two{.left = 700};
  two.take(10);
  EXPECT_EQ(two.left, 434U);
}

}  // namespace
}  // namespace openrnn::mapping
