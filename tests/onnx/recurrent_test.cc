// Recurrent operators of ONNX programs: each direction of two, weights that are packed beforehand.
#include <openrnn/base.h>

#include <cstring>

#include "onnx/operator_call.h"

namespace openrnn {
namespace {

Array drawn(Shape shape, std::uint64_t seed) {
  Array values(DType::kFloat32, std::move(shape));
  RandomStream random(seed);
  for (float& value : values.as<float>()) value = static_cast<float>(random.uniform(-0.9, 0.9));
  return values;
}

// Index `at` of an axis, which stays as one of size 1.
Array part_of(const Array& x, std::size_t axis, std::int64_t at) {
  Shape shape = x.shape();
  std::int64_t inner = 1;
  for (std::size_t i = axis + 1; i < shape.size(); ++i) inner *= shape[i];
  const std::int64_t size = shape[axis];
  shape[axis] = 1;
  Array part(DType::kFloat32, shape);
  for (std::int64_t i = 0; i < part.size(); ++i) {
    const std::int64_t from = (i / inner * size + at) * inner + i % inner;
    part.as<float>()[static_cast<std::size_t>(i)] = x.as<float>()[static_cast<std::size_t>(from)];
  }
  return part;
}

void expect_same_bits(const Array& found, const Array& expected, const std::string& what) {
  ASSERT_EQ(found.shape(), expected.shape()) << what;
  EXPECT_EQ(std::memcmp(found.data(), expected.data(), found.size_bytes()), 0) << what;
}

constexpr std::int64_t kSteps = 4, kBatch = 3, kInputs = 2, kUnits = 5;

struct Cell {
  std::string op;
  std::int64_t gates;
  std::vector<std::string> forward, backward;  // activations
};
const Cell kCells[] = {{"RNN", 1, {"Tanh"}, {"Relu"}},
                       {"GRU", 3, {"Sigmoid", "Tanh"}, {"Sigmoid", "Relu"}},
                       {"LSTM", 4, {"Sigmoid", "Tanh", "Tanh"}, {"Sigmoid", "Tanh", "Relu"}}};

// Two directions with functions of their own are two networks: each has its rows of the weights and
// of the states that are given, and its place in what comes out.
TEST(OnnxRecurrent, EachDirectionIsThatOfACallOfItsOwn) {
  for (const Cell& cell : kCells) {
    for (const bool same : {true, false}) {
      for (const std::int64_t layout : {0, 1}) {
        const std::string what = cell.op + (same ? " same " : " other ") + std::to_string(layout);
        const auto states = [&](std::uint64_t seed) {
          return drawn(layout ? Shape{kBatch, 2, kUnits} : Shape{2, kBatch, kUnits}, seed);
        };
        const bool lstm = cell.op == "LSTM";
        std::vector<std::optional<Array>> whole{
            drawn(layout ? Shape{kBatch, kSteps, kInputs} : Shape{kSteps, kBatch, kInputs}, 1),
            drawn({2, cell.gates * kUnits, kInputs}, 2),
            drawn({2, cell.gates * kUnits, kUnits}, 3),
            drawn({2, 2 * cell.gates * kUnits}, 4),
            Array::of<std::int32_t>({kBatch}, std::vector<std::int32_t>{4, 2, 3}),
            states(5)};
        if (lstm) whole.insert(whole.end(), {states(6), drawn({2, 3 * kUnits}, 7)});
        std::vector<std::string> functions = cell.forward;
        const std::vector<std::string>& second = same ? cell.forward : cell.backward;
        functions.insert(functions.end(), second.begin(), second.end());
        const auto run = [&](const std::vector<std::optional<Array>>& inputs,
                             const std::vector<std::string>& names, const std::string& direction) {
          return Call{cell.op,
                      inputs,
                      {{"activations", names}, {"direction", direction}, {"layout", layout}},
                      lstm ? std::size_t{3} : std::size_t{2}}
              .run();
        };
        const std::vector<Array> both = run(whole, functions, "bidirectional");
        for (std::int64_t dir : {0, 1}) {
          std::vector<std::optional<Array>> inputs = whole;
          for (const std::size_t of_weights : {1, 2, 3, 7}) {
            if (of_weights < inputs.size())
              inputs[of_weights] = part_of(*inputs[of_weights], 0, dir);
          }
          const std::size_t axis = layout ? 1 : 0;
          inputs[5] = part_of(*inputs[5], axis, dir);
          if (lstm) inputs[6] = part_of(*inputs[6], axis, dir);
          const std::vector<Array> one =
              run(inputs, dir == 0 ? cell.forward : second, dir == 0 ? "forward" : "reverse");
          for (std::size_t i = 0; i < both.size(); ++i) {
            expect_same_bits(part_of(both[i], i == 0 ? axis + 1 : axis, dir), one[i],
                             what + " output " + std::to_string(i));
          }
        }
      }
    }
  }
}

// Weights that are initializers are packed when the model is loaded; none of them is forgotten.
TEST(OnnxRecurrent, InitializersComputeWhatInputsDo) {
  for (const Cell& cell : kCells) {
    const bool lstm = cell.op == "LSTM";
    const std::vector<std::string> names{"x", "W", "R", "B", "", "", "", "P"};
    OnnxModel model;
    model.opsets[""] = 14;
    OnnxNode node{.name = "n", .op_type = cell.op};
    std::map<std::string, Array> arrays{{"x", drawn({kSteps, kBatch, kInputs}, 1)},
                                        {"W", drawn({1, cell.gates * kUnits, kInputs}, 2)},
                                        {"R", drawn({1, cell.gates * kUnits, kUnits}, 3)},
                                        {"B", drawn({1, 2 * cell.gates * kUnits}, 4)}};
    if (lstm) arrays.emplace("P", drawn({1, 3 * kUnits}, 5));
    node.inputs.assign(names.begin(), names.begin() + (lstm ? 8 : 4));
    node.attributes = {{"hidden_size", kUnits}};
    node.outputs = {"y"};
    model.graph.nodes = {node};
    model.graph.outputs = {{.name = "y"}};
    model.graph.inputs = {{.name = "x"}};
    OnnxModel open = model;
    std::map<std::string, ConstArrayView> given;
    for (const auto& [name, array] : arrays) {
      given.emplace(name, array.view());
      if (name == "x") continue;
      model.graph.initializers.push_back(OnnxTensor::of(name, array));
      open.graph.inputs.push_back({.name = name});
    }
    const Array of_inputs = OnnxProgram(open).run(given).at("y");
    const OnnxProgram packed(model);
    const Array of_initializers = packed.run({{"x", arrays.at("x").view()}}).at("y");
    expect_same_bits(of_initializers, of_inputs, cell.op);
    // Each of them tells in the result.
    for (OnnxTensor& tensor : model.graph.initializers) {
      const OnnxTensor kept = tensor;
      Array other = tensor.array();
      other.as<float>()[1] += 0.25f;
      tensor = OnnxTensor::of(kept.name, other);
      const Array changed = OnnxProgram(model).run({{"x", arrays.at("x").view()}}).at("y");
      EXPECT_NE(std::memcmp(changed.data(), of_inputs.data(), changed.size_bytes()), 0)
          << cell.op << " " << kept.name;
      tensor = kept;
    }
  }
}

}  // namespace
}  // namespace openrnn
