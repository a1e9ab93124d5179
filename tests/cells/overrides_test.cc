// What a subclass in another language does in place of a cell, seen by loops and wrappers.
#include "cells/support.h"

namespace openrnn {
namespace {

using namespace testing;

struct Overridden {
  std::shared_ptr<CudnnCompatibleGRUCell> cell = std::make_shared<CudnnCompatibleGRUCell>(units(3));
  Overridden() {
    cell->set_overrides({.step =
                             [this](const Tensor& x, const CellState& state) {
                               CellResult result = cell->run_class(x, state);
                               result.output = ops::concat({result.output, result.output}, 1);
                               return result;
                             },
                         .output_size = [] { return std::int64_t{6}; }});
  }
};

TEST(CellOverrides, AStepIsWhatLoopsAndStacksRun) {
  const OwnGraph own;
  const Overridden own_cell;
  const Tensor x = varied({4, 2, 5});
  const DynamicRnnOptions options{.dtype = DType::kFloat32, .time_major = true};
  const DynamicRnnResult got = dynamic_rnn(*own_cell.cell, x, options);
  EXPECT_EQ(got.outputs.shape(), (Shape{4, 2, 6}));
  const std::vector<Tensor> halves = ops::split(got.outputs, 2, {3, 3});
  EXPECT_TRUE(same(halves[0], halves[1]));
  MultiRNNCell stack({own_cell.cell, std::make_shared<CudnnCompatibleGRUCell>(units(2))});
  EXPECT_EQ(stack.step_output_size(), 2);
  const DynamicRnnResult stacked = dynamic_rnn(stack, x, options);
  EXPECT_EQ(stacked.outputs.shape(), (Shape{4, 2, 2}));
  EXPECT_EQ(stack.weights()[6].shape(), (Shape{8, 4}));
}

TEST(CellOverrides, AWholeCallItsStateAndItsStart) {
  const OwnGraph own;
  CudnnCompatibleGRUCell cell(units(3));
  int calls = 0;
  cell.set_overrides(
      {.call =
           [&](const Tensor& x, const CellState& state, const std::string&) {
             ++calls;
             const Variable by = get_variable("by", {2, 5}, {});
             return CellResult{ops::multiply(x, by.read()), state};
           },
       .zero_state = [&](std::int64_t batch,
                         DType dtype) { return CellState{cell.class_zero_state(batch, dtype)[0]}; },
       .state =
           [] {
             return std::vector<CellStatePart>{{4, true}};
           },
       .output_size = [] { return std::int64_t{5}; }});
  const DynamicRnnOptions options{.dtype = DType::kFloat32, .time_major = true};
  const DynamicRnnResult got = dynamic_rnn(cell, varied({4, 2, 5}), options);
  EXPECT_EQ(calls, 4);
  EXPECT_EQ(got.outputs.shape(), (Shape{4, 2, 5}));
  EXPECT_EQ(got.state[0].shape(), (Shape{2, 4}));
  EXPECT_EQ(names_of(own.graph), (std::vector<std::string>{"rnn/by"}));
  EXPECT_EQ(cell.weights().size(), 1u);
}

// Of a stack, too, whose cells alone would be one network.
TEST(CellOverrides, AStepOfAStackIsRunInPlaceOfItsCells) {
  const OwnGraph own;
  MultiRNNCell stack({std::make_shared<LSTMCell>(LSTMCellOptions{.num_units = 3, .seed = 1}),
                      std::make_shared<GRUCell>(GRUCellOptions{.num_units = 2, .seed = 2})});
  const Tensor x = varied({4, 2, 5});
  const DynamicRnnOptions options{.dtype = DType::kFloat32, .time_major = true};
  const DynamicRnnResult plain = dynamic_rnn(stack, x, options);
  int steps = 0;
  stack.set_overrides({.step = [&](const Tensor& inputs, const CellState& state) {
    ++steps;
    CellResult result = stack.run_class(inputs, state);
    result.output = ops::negate(result.output);
    return result;
  }});
  const DynamicRnnResult found = dynamic_rnn(stack, x, options);
  EXPECT_GE(steps, 4);
  const Array negated = ops::negate(plain.outputs).to_host(), outputs = found.outputs.to_host();
  for (std::int64_t i = 0; i < outputs.size(); ++i) {
    EXPECT_NEAR(element(outputs.view(), i), element(negated.view(), i), 1e-5) << i;
  }
}

// The calls of one cell make its variables at the first step alone, whatever the cells beside it.
TEST(CellOverrides, ACallAmongTheCellsOfAStack) {
  const OwnGraph own;
  const auto scaled = std::make_shared<CudnnCompatibleGRUCell>(units(3));
  scaled->set_overrides({.call = [&](const Tensor& x, const CellState& state, const std::string&) {
    return CellResult{ops::multiply(x, get_variable("by", {2, 3}, {}).read()), state};
  }});
  MultiRNNCell stack({std::make_shared<CudnnCompatibleGRUCell>(units(3)), scaled});
  const DynamicRnnOptions options{.dtype = DType::kFloat32, .time_major = true};
  EXPECT_EQ(dynamic_rnn(stack, varied({4, 2, 5}), options).outputs.shape(), (Shape{4, 2, 3}));
  const std::vector<std::string> names = names_of(own.graph);
  EXPECT_EQ(std::count_if(names.begin(), names.end(),
                          [](const std::string& name) { return name.ends_with("/by"); }),
            1);
}

TEST(CellOverrides, ACallWithinADropoutWrapper) {
  const OwnGraph own;
  const auto scaled = std::make_shared<CudnnCompatibleGRUCell>(units(3));
  scaled->set_overrides({.call = [&](const Tensor& x, const CellState& state, const std::string&) {
    return CellResult{ops::multiply(x, get_variable("by", {2, 3}, {}).read()), state};
  }});
  DropoutWrapper wrapper(scaled, {});
  const DynamicRnnOptions options{.dtype = DType::kFloat32, .time_major = true};
  const Tensor x = varied({4, 2, 3});
  const Tensor outputs = dynamic_rnn(wrapper, x, options).outputs;
  ASSERT_EQ(own.graph.variables().size(), 1U);
  const Tensor by = own.graph.variables()[0].read();
  EXPECT_TRUE(same(ops::unstack(outputs)[3], ops::multiply(ops::unstack(x)[3], by)));
}

// What a step made is the copy's too: its first step makes nothing.
TEST(CellOverrides, ACopyStepsWithTheVariablesOfItsOriginal) {
  const OwnGraph own;
  const auto step_of = [](CudnnCompatibleGRUCell& cell) {
    return CellOverrides{.step = [&cell](const Tensor& x, const CellState& state) {
      const Variable scale = get_variable("scale", {2, 3}, {});
      CellResult result = cell.run_class(x, state);
      result.output = ops::multiply(result.output, scale.read());
      return result;
    }};
  };
  CudnnCompatibleGRUCell cell(units(3));
  cell.set_overrides(step_of(cell));
  const Tensor x = varied({2, 5});
  const CellState state{varied({2, 3}, 7)};
  const CellResult first = cell(x, state);
  const auto copied = cell.copy();
  auto& copy = dynamic_cast<CudnnCompatibleGRUCell&>(*copied);
  copy.set_overrides(step_of(copy));
  const std::size_t variables = own.graph.variables().size();
  for (int call = 0; call < 2; ++call) {
    EXPECT_TRUE(same(copy(x, state).output, first.output));
    EXPECT_TRUE(same(cell(x, state).output, first.output));
  }
  EXPECT_EQ(own.graph.variables().size(), variables);
  EXPECT_EQ(copy.weights().size(), cell.weights().size());
}

}  // namespace
}  // namespace openrnn
