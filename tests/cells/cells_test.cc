// Variables, one step by hand, errors and wrappers of the cells.
#include <cmath>

#include "cells/support.h"

namespace openrnn {
namespace {

using namespace testing;
using Names = std::vector<std::string>;

TEST(CompatibleCell, NamesShapesAndInitialValues) {
  const OwnGraph own;
  CudnnCompatibleLSTMCell lstm(units(3));
  CudnnCompatibleGRUCell gru(units(3));
  BasicRNNCell basic(units(3));
  for (VariableCell* cell : {static_cast<VariableCell*>(&lstm), static_cast<VariableCell*>(&gru),
                             static_cast<VariableCell*>(&basic)}) {
    (*cell)(varied({2, 4}), cell->zero_state(2, DType::kFloat32));
  }
  EXPECT_EQ(names_of(own.graph),
            (Names{"cudnn_compatible_lstm_cell/kernel", "cudnn_compatible_lstm_cell/bias",
                   "cudnn_compatible_gru_cell/gates/kernel", "cudnn_compatible_gru_cell/gates/bias",
                   "cudnn_compatible_gru_cell/candidate/input_projection/kernel",
                   "cudnn_compatible_gru_cell/candidate/input_projection/bias",
                   "cudnn_compatible_gru_cell/candidate/hidden_projection/kernel",
                   "cudnn_compatible_gru_cell/candidate/hidden_projection/bias",
                   "basic_rnn_cell/kernel", "basic_rnn_cell/bias"}));
  const std::vector<Shape> shapes{{7, 12}, {12},   {7, 6}, {6},    {4, 3},
                                  {3},     {3, 3}, {3},    {7, 3}, {3}};
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const Variable variable = own.graph.variables()[i];
    EXPECT_EQ(variable.shape(), shapes[i]) << variable.name();
    if (!variable.name().ends_with("bias")) continue;
    const float expected = variable.name().ends_with("gates/bias") ? 1.0f : 0.0f;
    const Array value = variable.to_host();
    for (const float b : value.as<float>()) EXPECT_EQ(b, expected) << variable.name();
  }
  EXPECT_EQ(lstm.state_size(), (std::vector<std::int64_t>{3, 3}));
  EXPECT_EQ(gru.state_size(), (std::vector<std::int64_t>{3}));
  EXPECT_EQ(lstm.variables().size(), 2u);
  EXPECT_TRUE(lstm.is_memory(0));
  EXPECT_FALSE(lstm.is_memory(1));
}

std::vector<std::shared_ptr<VariableCell>> cells_of(const CompatibleCellOptions& options) {
  return {std::make_shared<CudnnCompatibleLSTMCell>(options),
          std::make_shared<CudnnCompatibleGRUCell>(options),
          std::make_shared<BasicRNNCell>(options)};
}

// A scope whose variables a cell reuses is taken, whoever made them.
TEST(CompatibleCell, ANameThatIsReusedIsTaken) {
  const OwnGraph own;
  const Variable kernel("c/kernel", varied({7, 3}).to_host()),
      bias("c/bias", varied({3}).to_host());
  CompatibleCellOptions options = units(3);
  options.name = "c";
  BasicRNNCell other(options);
  options.reuse = true;
  BasicRNNCell reusing(options);
  const CellState zero = reusing.zero_state(2, DType::kFloat32);
  reusing(varied({2, 4}), zero);
  EXPECT_TRUE(reusing.weights()[0].same_as(kernel));
  other(varied({2, 4}), zero);
  EXPECT_EQ(reusing.scope_name(), "c");
  EXPECT_EQ(other.scope_name(), "c_1");
}

void expect_reuse_shares(const std::string& name, std::size_t kind) {
  const OwnGraph own;
  CompatibleCellOptions options = units(3);
  options.name = name;
  CompatibleCellOptions reusing = options;
  reusing.reuse = true;
  const auto first = cells_of(options)[kind], second = cells_of(reusing)[kind];
  const CellState zero = first->zero_state(2, DType::kFloat32);
  const Tensor x = varied({2, 4});
  EXPECT_THROW((*second)(x, zero), ArgumentError);
  const Tensor output = (*first)(x, zero).output;
  const std::size_t variables = own.graph.variables().size();
  EXPECT_TRUE(same((*second)(x, zero).output, output));
  EXPECT_EQ(own.graph.variables().size(), variables);
  EXPECT_EQ(second->name(), first->name());
  EXPECT_TRUE(second->get_config().reuse);
  // What does not reuse gets a name of its own still.
  const auto other = cells_of(options)[kind];
  EXPECT_FALSE(same((*other)(x, zero).output, output));
  EXPECT_EQ(own.graph.variables().size(), 2 * variables);
}

TEST(CompatibleCell, ReuseTakesTheNameAsItIsAndShares) {
  for (std::size_t kind = 0; kind < 3; ++kind) {
    expect_reuse_shares("", kind);
    expect_reuse_shares("mine", kind);
  }
}

TEST(CompatibleCell, ReuseWorksInsideLoops) {
  const OwnGraph own;
  CompatibleCellOptions reusing = units(3);
  reusing.reuse = true;
  const auto first = cells_of(units(3)), second = cells_of(reusing);
  const Tensor x = varied({5, 2, 4});
  const DynamicRnnOptions options{.dtype = DType::kFloat32, .time_major = true};
  for (std::size_t i = 0; i < first.size(); ++i) {
    const Tensor output = dynamic_rnn(*first[i], x, options).outputs;
    const std::size_t variables = own.graph.variables().size();
    EXPECT_TRUE(same(dynamic_rnn(*second[i], x, options).outputs, output));
    EXPECT_EQ(own.graph.variables().size(), variables);
  }
}

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// One unit, one input, by hand: columns i c f o, state (c, h) in and out.
TEST(CompatibleCell, OneLstmStep) {
  const OwnGraph own;
  CudnnCompatibleLSTMCell cell(units(1, DType::kFloat64));
  const auto scalar = [](double v) { return Tensor(Array::of<double>({1, 1}, {{v}}).view()); };
  const double x = 0.5, c = -0.3, h = 0.7;
  cell(scalar(x), {scalar(c), scalar(h)});
  const std::vector<double> kernel{0.1, 0.2, 0.3, 0.4, -0.5, 0.6, -0.7, 0.8};
  const std::vector<double> bias{0.05, -0.15, 0.25, -0.35};
  cell.weights()[0].assign(Array::of<double>({2, 4}, kernel).view());
  cell.weights()[1].assign(Array::of<double>({4}, bias).view());
  double a[4];
  for (std::size_t g = 0; g < 4; ++g) a[g] = kernel[g] * x + kernel[4 + g] * h + bias[g];
  const double c1 = sigmoid(a[2]) * c + sigmoid(a[0]) * std::tanh(a[1]);
  const double h1 = sigmoid(a[3]) * std::tanh(c1);
  const CellResult result = cell(scalar(x), {scalar(c), scalar(h)});
  EXPECT_NEAR(result.state[0].item(), c1, 1e-15);
  EXPECT_NEAR(result.state[1].item(), h1, 1e-15);
  EXPECT_NEAR(result.output.item(), h1, 1e-15);
}

TEST(CompatibleCell, ABuiltOneTakesAnInputOfUnknownDepth) {
  const OwnGraph own;
  CudnnCompatibleGRUCell cell(units(3));
  const Tensor x = varied({2, 4}), state = varied({2, 3});
  const Tensor wanted = cell(x, {state}).output;
  const Tensor input = Input({-1, -1});
  Model model({input}, {cell(input, {state}).output});
  EXPECT_TRUE(same(model({x})[0], wanted));
}

TEST(CompatibleCell, AProjectionMayHaveAsManyColumnsAsUnits) {
  CompatibleCellOptions options = units(2);
  options.num_proj = 2;
  EXPECT_EQ(CudnnCompatibleLSTMCell(options).output_size(), 2);
}

TEST(CompatibleCell, ProjectionShrinksTheOutput) {
  const OwnGraph own;
  CompatibleCellOptions options = units(5);
  options.num_proj = 2;
  CudnnCompatibleLSTMCell cell(options);
  EXPECT_EQ(cell.output_size(), 2);
  EXPECT_EQ(cell.state_size(), (std::vector<std::int64_t>{5, 2}));
  const CellResult result = cell(varied({3, 4}), cell.zero_state(3, DType::kFloat32));
  EXPECT_EQ(result.output.shape(), (Shape{3, 2}));
  EXPECT_EQ(result.state[0].shape(), (Shape{3, 5}));
  EXPECT_EQ(own.graph.variable("cudnn_compatible_lstm_cell/kernel").shape(), (Shape{6, 20}));
  EXPECT_EQ(own.graph.variable("cudnn_compatible_lstm_cell/projection/kernel").shape(),
            (Shape{5, 2}));
}

TEST(CompatibleCell, AStateHasTheDtypeOfTheCell) {
  const OwnGraph own;
  CudnnCompatibleLSTMCell cell(units(2));
  const Tensor x = varied({3, 4});
  EXPECT_EQ(thrown<ArgumentError>([&] { cell(x, cell.zero_state(3, DType::kFloat64)); }),
            "[CudnnCompatibleLSTMCell] a state is float64, expected float32");
  EXPECT_FALSE(cell.built());
}

TEST(CompatibleCell, Errors) {
  const OwnGraph own;
  EXPECT_EQ(thrown<ArgumentError>([] { CudnnCompatibleGRUCell cell(units(0)); }),
            "[CudnnCompatibleGRUCell] num_units 0, expected 1 or more");
  EXPECT_EQ(thrown<ArgumentError>([] { BasicRNNCell cell(units(2, DType::kInt32)); }),
            "[BasicRNNCell] dtype int32, expected float16, bfloat16, float32 or float64");
  CompatibleCellOptions wide = units(2);
  wide.num_proj = 3;
  EXPECT_EQ(thrown<ArgumentError>([&] { CudnnCompatibleLSTMCell cell(wide); }),
            "[CudnnCompatibleLSTMCell] num_proj 3, expected 0 to num_units 2");
  wide.num_proj = -1;
  EXPECT_EQ(thrown<ArgumentError>([&] { CudnnCompatibleLSTMCell cell(wide); }),
            "[CudnnCompatibleLSTMCell] num_proj -1, expected 0 to num_units 2");
  CudnnCompatibleLSTMCell cell(units(3));
  const CellState zero = cell.zero_state(2, DType::kFloat32);
  const auto refused = [&](const Tensor& x, const CellState& state) {
    return thrown<ArgumentError>([&] { cell(x, state); });
  };
  EXPECT_EQ(refused(varied({2, 2, 4}), zero),
            "[CudnnCompatibleLSTMCell] inputs have shape [2, 2, 4], expected 2 dimensions [batch, "
            "depth]");
  EXPECT_EQ(refused(varied({2, 0}), zero),
            "[CudnnCompatibleLSTMCell] an input shape of [2, 0], expected its last dimension to be "
            "defined");
  cell(varied({2, 4}), zero);
  EXPECT_EQ(refused(varied({2, 5}), zero),
            "[CudnnCompatibleLSTMCell] inputs have depth 5, expected 4 as the cell was built for");
  EXPECT_EQ(refused(varied({2, 4}, 1, DType::kFloat64), zero),
            "[CudnnCompatibleLSTMCell] inputs are float64, expected float32");
  EXPECT_EQ(refused(varied({2, 4}), {zero[0]}),
            "[CudnnCompatibleLSTMCell] a state of 1 tensors, expected 2");
  EXPECT_EQ(refused(varied({3, 4}), zero),
            "[CudnnCompatibleLSTMCell] state[0] has shape [2, 3], expected [3, 3]");
  EXPECT_EQ(thrown<ArgumentError>([&] { cell.zero_state(-1, DType::kFloat32); }),
            "[zero_state] batch_size -1, expected 0 or more");
}

TEST(MultiRnnCell, StacksStatesAndScopes) {
  const OwnGraph own;
  const auto lstm = make_compatible_cell(RnnMode::kLstm, units(3));
  const auto gru = make_compatible_cell(RnnMode::kGru, units(2));
  MultiRNNCell stack({lstm, gru});
  EXPECT_EQ(stack.state_size(), (std::vector<std::int64_t>{3, 3, 2}));
  EXPECT_EQ(stack.output_size(), 2);
  EXPECT_TRUE(stack.is_memory(0));
  EXPECT_FALSE(stack.is_memory(2));
  const CellState zero = stack.zero_state(2, DType::kFloat32);
  const Tensor x = varied({2, 4});
  const CellResult result = stack(x, zero);
  EXPECT_EQ(names_of(own.graph)[0], "multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/kernel");
  EXPECT_EQ(names_of(own.graph)[2], "multi_rnn_cell/cell_1/cudnn_compatible_gru_cell/gates/kernel");
  EXPECT_EQ(stack.variables().size(), 8u);
  const CellResult first = (*lstm)(x, {zero[0], zero[1]});
  const CellResult second = (*gru)(first.output, {zero[2]});
  EXPECT_TRUE(same(result.output, second.output));
  EXPECT_TRUE(same(result.state[0], first.state[0]));
  EXPECT_TRUE(same(result.state[2], second.state[0]));
  EXPECT_EQ(thrown<ArgumentError>([&] { stack(x, {zero[0]}); }),
            "[MultiRNNCell] a state of 1 tensors, expected 3");
  EXPECT_EQ(thrown<ArgumentError>([] { MultiRNNCell({}); }),
            "[MultiRNNCell] no cells, expected at least 1");
  EXPECT_EQ(thrown<ArgumentError>([&] {
              MultiRNNCell({lstm, nullptr});
            }),
            "[MultiRNNCell] cells[1] is null");
}

TEST(Wrappers, HaveTheDtypeOfTheirFirstCell) {
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    const OwnGraph own;
    const auto cell = std::make_shared<BasicRNNCell>(units(3, dtype));
    const auto dropped = std::make_shared<DropoutWrapper>(cell, DropoutWrapperOptions{});
    MultiRNNCell stack({dropped, std::make_shared<BasicRNNCell>(units(2, dtype))});
    EXPECT_EQ(dropped->dtype(), dtype);
    EXPECT_EQ(stack.dtype(), dtype);
    EXPECT_EQ(std::dynamic_pointer_cast<RnnCell>(stack.copy())->dtype(), dtype);
  }
}

// A wrapper with a layer of its own beside the cells.
template <class Wrapper>
struct WithPart : Wrapper {
  template <class... Given>
  explicit WithPart(Given&&... given) : Wrapper(std::forward<Given>(given)...) {
    this->track("part", part);
  }
  std::shared_ptr<RnnCell> part = std::make_shared<BasicRNNCell>(units(2));
};

TEST(Wrappers, HaveTheWeightsOfTheirOwnParts) {
  const OwnGraph own;
  const auto cell = std::make_shared<BasicRNNCell>(units(3));
  WithPart<MultiRNNCell> stack(std::vector<std::shared_ptr<RnnCell>>{cell});
  WithPart<DropoutWrapper> dropout(cell, DropoutWrapperOptions{});
  for (RnnCell* wrapper : {static_cast<RnnCell*>(&stack), static_cast<RnnCell*>(&dropout)}) {
    (*wrapper)(varied({2, 4}), wrapper->zero_state(2, DType::kFloat32));
  }
  for (const auto& part : {stack.part, dropout.part}) {
    (*part)(varied({2, 4}), part->zero_state(2, DType::kFloat32));
  }
  EXPECT_EQ(stack.weights().size(), 4u);
  EXPECT_EQ(dropout.weights().size(), 4u);
}

TEST(DropoutWrapper, DropsWhatItIsToldTo) {
  const OwnGraph own;
  const auto cell = make_compatible_cell(RnnMode::kLstm, units(40));
  const Tensor x = varied({5, 4});
  const CellState zero = cell->zero_state(5, DType::kFloat32);
  const CellResult plain = (*cell)(x, zero);
  const auto zeros_in = [](const Tensor& tensor) {
    const Array values = tensor.to_host();
    return std::count(values.as<float>().begin(), values.as<float>().end(), 0.0f);
  };
  DropoutWrapper output(cell, {.output_keep_prob = 0.5, .seed = 1});
  const CellResult dropped = output(x, zero);
  EXPECT_GT(zeros_in(dropped.output), 60);
  EXPECT_LT(zeros_in(dropped.output), 140);  // six standard deviations of 200 draws
  EXPECT_TRUE(same(dropped.state[1], plain.state[1]));
  EXPECT_FALSE(same(output(x, zero).output, dropped.output));
  output.dropout_state().set_calls(0);
  EXPECT_TRUE(same(output(x, zero).output, dropped.output));
  DropoutWrapper state(cell, {.state_keep_prob = 0.5, .seed = 1});
  const CellResult forgot = state(x, zero);
  EXPECT_TRUE(same(forgot.state[0], plain.state[0]));  // a memory
  EXPECT_GT(zeros_in(forgot.state[1]), 60);
  DropoutWrapper none(cell, {});
  EXPECT_TRUE(same(none(x, zero).output, plain.output));
  EXPECT_EQ(names_of(own.graph).size(), 2u);
  EXPECT_EQ(thrown<ArgumentError>([&] { DropoutWrapper(cell, {.input_keep_prob = 0.0}); }),
            "[DropoutWrapper] input_keep_prob 0, expected above 0 and at most 1");
  for (const auto& [text, value] :
       {std::pair("0", 0.0), {"-0.5", -0.5}, {"1.5", 1.5}, {"nan", double(NAN)}}) {
    const std::string rest = std::string(" ") + text + ", expected above 0 and at most 1";
    EXPECT_EQ(thrown<ArgumentError>([&] { DropoutWrapper(cell, {.output_keep_prob = value}); }),
              "[DropoutWrapper] output_keep_prob" + rest);
    EXPECT_EQ(thrown<ArgumentError>([&] { DropoutWrapper(cell, {.state_keep_prob = value}); }),
              "[DropoutWrapper] state_keep_prob" + rest);
  }
  EXPECT_EQ(thrown<ArgumentError>([&] { DropoutWrapper(nullptr, {}); }),
            "[DropoutWrapper] cell is null, expected a cell");
}

}  // namespace
}  // namespace openrnn
