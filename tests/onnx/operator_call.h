// Calls of one operator of an ONNX program, and their results as text.
#pragma once

#include <gtest/gtest.h>
#include <openrnn/onnx.h>

#include "formats/temp_folder.h"

namespace openrnn {

using Attributes = std::vector<OnnxAttribute>;
using Integers = std::vector<std::int64_t>;
using Floats = std::vector<float>;

inline Array floats(Shape shape, std::vector<float> values) {
  return Array::of<float>(std::move(shape), values);
}
inline Array integers(Shape shape, Integers values) {
  return Array::of<std::int64_t>(std::move(shape), values);
}

// Inputs a, b, .., of which those without a shape of their own are left out; outputs y0, y1, ..
struct Call {
  std::string op;
  std::vector<std::optional<Array>> inputs;
  Attributes attributes = {};
  std::size_t outputs = 1;
  std::int64_t opset = 14;

  std::vector<Array> run() const {
    OnnxModel model;
    model.opsets[""] = opset;
    OnnxNode node{.name = "n", .op_type = op, .attributes = attributes};
    std::map<std::string, ConstArrayView> given;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      std::string name;
      if (inputs[i]) name = std::string(1, static_cast<char>('a' + i));
      node.inputs.push_back(name);
      if (!inputs[i]) continue;
      model.graph.inputs.push_back({.name = name});
      given.emplace(name, inputs[i]->view());
    }
    for (std::size_t i = 0; i < outputs; ++i) {
      node.outputs.push_back("y" + std::to_string(i));
      model.graph.outputs.push_back({.name = node.outputs[i]});
    }
    model.graph.nodes = {node};
    const std::map<std::string, Array> found = OnnxProgram(model).run(given);
    std::vector<Array> arrays;
    for (const std::string& name : node.outputs) arrays.push_back(found.at(name));
    return arrays;
  }
};

inline double number_at(const Array& array, std::int64_t i) {
  const auto at = static_cast<std::size_t>(i);
  if (array.dtype() == DType::kInt64) return static_cast<double>(array.as<std::int64_t>()[at]);
  if (array.dtype() == DType::kInt32) return array.as<std::int32_t>()[at];
  if (array.dtype() == DType::kBool) return array.as<bool>()[at];
  return element(array.view(), i);
}

inline std::string shown(const Array& array) {
  std::string text = std::string(dtype_name(array.dtype())) + to_string(array.shape()) + ":";
  for (std::int64_t i = 0; i < array.size(); ++i) {
    char number[32];
    std::snprintf(number, sizeof number, " %.4g", number_at(array, i));
    text += number;
  }
  return text;
}

inline void expect_shown(const Call& call, const std::string& expected) {
  EXPECT_EQ(shown(call.run()[0]), expected) << call.op;
}

template <class E = ArgumentError>
void expect_refused(const Call& call, const std::string& part) {
  EXPECT_MESSAGE(E, call.run(), part);
}

}  // namespace openrnn
