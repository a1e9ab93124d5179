// Cells, their wrappers and the loops over time on a device of their own.
#include "cells/support.h"
#include "support/tagged_device.h"

namespace openrnn::testing {
namespace {

CompatibleCellOptions units_on(const Device& device, std::int64_t num_units) {
  CompatibleCellOptions options = units(num_units);
  options.seed = 3;
  options.device = &device;
  return options;
}

struct Result {
  Array outputs;
  std::vector<Array> arrays;  // states, then gradients
  const Device* device;
};

std::shared_ptr<RnnCell> make_cell(const std::string& kind, const Device& device) {
  if (kind == "multi") {
    return std::make_shared<MultiRNNCell>(std::vector<std::shared_ptr<RnnCell>>{
        make_compatible_cell(RnnMode::kLstm, units_on(device, 4)),
        make_compatible_cell(RnnMode::kGru, units_on(device, 3))});
  }
  if (kind == "dropout") {
    return std::make_shared<DropoutWrapper>(
        make_compatible_cell(RnnMode::kLstm, units_on(device, 4)),
        DropoutWrapperOptions{
            .input_keep_prob = 0.5, .output_keep_prob = 0.75, .state_keep_prob = 0.5, .seed = 9});
  }
  return make_compatible_cell(parse_rnn_mode(kind), units_on(device, 4));
}

Result run(const std::string& kind, const Device& device, bool lengths, bool bidirectional) {
  const OwnGraph own;
  const Tensor x = varied({3, 5, 2});  // batch-major, host data
  GradientTape tape;
  Tensor outputs;
  CellState state;
  const auto given = lengths ? std::optional(std::vector<std::int32_t>{5, 0, 2}) : std::nullopt;
  if (bidirectional) {
    StackBidirectionalOptions options;
    options.dtype = DType::kFloat32;
    options.sequence_lengths = given;
    const StackBidirectionalResult result = stack_bidirectional_dynamic_rnn(
        {make_cell(kind, device)}, {make_cell(kind, device)}, x, options);
    outputs = result.outputs;
    state = result.states_bw[0];
  } else {
    DynamicRnnOptions options;
    options.dtype = DType::kFloat32;
    options.sequence_lengths = given;
    const auto cell = make_cell(kind, device);
    const DynamicRnnResult result = dynamic_rnn(*cell, x, options);
    outputs = result.outputs;
    state = result.state;
  }
  Result result{outputs.to_host(), {}, &outputs.device()};
  for (const Tensor& each : state) result.arrays.push_back(each.to_host());
  const Tensor loss = ops::reduce_sum(ops::square(outputs));
  const std::vector<Variable> variables = own.graph.trainable_variables();
  for (const DeviceArray& gradient : tape.gradient(loss, variables)) {
    result.arrays.push_back(gradient.to_host());
  }
  return result;
}

TEST(Devices, CellsGiveTheSameBits) {
  for (const std::string kind : {"lstm", "gru", "rnn_tanh", "rnn_relu", "multi", "dropout"}) {
    for (const bool lengths : {false, true}) {
      for (const bool bidirectional : {false, true}) {
        SCOPED_TRACE(::testing::Message() << kind << lengths << bidirectional);
        const Result here = run(kind, cpu_device(), lengths, bidirectional);
        const Result there = run(kind, test_device(), lengths, bidirectional);
        EXPECT_EQ(there.device, &test_device());
        EXPECT_TRUE(same_bits(here.outputs, there.outputs));
        ASSERT_EQ(here.arrays.size(), there.arrays.size());
        for (std::size_t i = 0; i < here.arrays.size(); ++i) {
          EXPECT_TRUE(same_bits(here.arrays[i], there.arrays[i])) << i;
        }
      }
    }
  }
}

TEST(Devices, ACellSaysWhereItIs) {
  const OwnGraph own;
  for (const char* kind : {"lstm", "multi", "dropout"}) {
    const auto cell = make_cell(kind, test_device());
    EXPECT_EQ(&cell->device(), &test_device()) << kind;
    for (const Tensor& state : cell->zero_state(2, DType::kFloat32)) {
      EXPECT_EQ(&state.device(), &test_device()) << kind;
    }
    EXPECT_EQ(&std::dynamic_pointer_cast<RnnCell>(cell->copy())->device(), &test_device()) << kind;
  }
}

TEST(Devices, NoStepsAndNoRows) {
  const OwnGraph own;
  const auto cell = make_cell("lstm", test_device());
  DynamicRnnOptions options;
  options.dtype = DType::kFloat32;
  options.time_major = true;
  EXPECT_EQ(&dynamic_rnn(*cell, varied({0, 3, 2}), options).outputs.device(), &test_device());
  EXPECT_EQ(dynamic_rnn(*cell, varied({4, 0, 2}), options).outputs.shape(), (Shape{4, 0, 4}));
}

TEST(Devices, AModelOfCellsTakesHostData) {
  const OwnGraph own;
  const auto cell = make_cell("gru", test_device());
  DynamicRnnOptions options;
  options.dtype = DType::kFloat32;
  const Tensor input = Input({-1, -1, 2});
  const DynamicRnnResult made = dynamic_rnn(*cell, input, options);
  Model model({input}, {made.outputs});
  const Tensor x = varied({3, 5, 2});
  const Tensor y = model({x})[0];
  EXPECT_EQ(&y.device(), &test_device());
  EXPECT_TRUE(same(y, dynamic_rnn(*cell, x, options).outputs));
}

TEST(Devices, ACellRefusesAStateOfAnother) {
  const OwnGraph own;
  const auto cell = make_cell("gru", test_device());
  const Tensor state(varied({3, 4}).to_host().view(), test_device(1));
  EXPECT_THROW((*cell)(varied({3, 2}), {state}), ArgumentError);
}

}  // namespace
}  // namespace openrnn::testing
