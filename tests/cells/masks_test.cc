// Which states are memories, and when a mask of a DropoutWrapper is used up.
#include "cells/support.h"

namespace openrnn {
namespace {

using namespace testing;

std::shared_ptr<MultiRNNCell> stack_of(const std::vector<RnnMode>& modes, std::int64_t width) {
  std::vector<std::shared_ptr<RnnCell>> cells;
  for (const RnnMode mode : modes) cells.push_back(make_compatible_cell(mode, units(width)));
  return std::make_shared<MultiRNNCell>(cells);
}

TEST(Memories, OfStacksAreThoseOfTheirCells) {
  const OwnGraph own;
  constexpr RnnMode kL = RnnMode::kLstm, kG = RnnMode::kGru;
  const std::vector<std::pair<std::vector<RnnMode>, std::vector<bool>>> cases{
      {{kL, kL}, {true, false, true, false}},
      {{kG, kL, kL}, {false, true, false, true, false}},
      {{kL, kG, kL}, {true, false, false, true, false}},
      {{kG, kG}, {false, false}}};
  for (const auto& [modes, memories] : cases) {
    const auto stack = stack_of(modes, 3);
    const MultiRNNCell nested({stack_of({kG}, 3), stack});
    const DropoutWrapper wrapped(stack, {});
    ASSERT_EQ(stack->state_size().size(), memories.size());
    for (std::size_t i = 0; i < memories.size(); ++i) {
      EXPECT_EQ(stack->is_memory(i), memories[i]) << i;
      EXPECT_EQ(wrapped.is_memory(i), memories[i]) << i;
      EXPECT_EQ(nested.is_memory(i + 1), memories[i]) << i;
    }
    EXPECT_FALSE(stack->is_memory(memories.size()));
  }
}

TEST(Memories, StateDropoutLeavesThatOfEveryLstmAlone) {
  const OwnGraph own;
  const auto stack = stack_of({RnnMode::kLstm, RnnMode::kLstm, RnnMode::kGru}, 40);
  const Tensor x = varied({5, 4});
  const CellState zero = stack->zero_state(5, DType::kFloat32);
  const CellResult plain = (*stack)(x, zero);
  DropoutWrapper wrapped(stack, {.state_keep_prob = 0.5, .seed = 1});
  const CellResult dropped = wrapped(x, zero);
  for (std::size_t i = 0; i < zero.size(); ++i) {
    EXPECT_EQ(same(dropped.state[i], plain.state[i]), i == 0 || i == 2) << i;
  }
  EXPECT_TRUE(same(dropped.output, plain.output));
}

TEST(Masks, AreUsedUpByRowsAlone) {
  const OwnGraph own;
  const auto cell = make_compatible_cell(RnnMode::kLstm, units(3));
  DropoutWrapper wrapped(
      cell, {.input_keep_prob = 0.5, .output_keep_prob = 0.5, .state_keep_prob = 0.5, .seed = 1});
  wrapped(varied({0, 4}), wrapped.zero_state(0, DType::kFloat32));
  EXPECT_EQ(wrapped.dropout_state().calls(), 0u);
  wrapped(Input({-1, 4}), {Input({-1, 3}), Input({-1, 3})});
  EXPECT_EQ(wrapped.dropout_state().calls(), 0u);
  wrapped(varied({2, 4}), wrapped.zero_state(2, DType::kFloat32));
  EXPECT_EQ(wrapped.dropout_state().calls(), 3u);  // input, h, output; c is a memory
  DropoutWrapper output(cell, {.output_keep_prob = 0.5, .seed = 1});
  output(varied({2, 4}), wrapped.zero_state(2, DType::kFloat32));
  EXPECT_EQ(output.dropout_state().calls(), 1u);
}

TEST(Masks, OfARefusedWrapperUseUpNoSeed) {
  const OwnGraph own;
  Graph& graph = Graph::current();
  graph.set_seed(5);
  const auto cell = make_compatible_cell(RnnMode::kLstm, units(3));
  const auto next = graph.op_seeds({});
  EXPECT_THROW(DropoutWrapper(cell, {.input_keep_prob = 0.0}), ArgumentError);
  EXPECT_EQ(graph.op_seeds({}).second, next.second + 1);
}

}  // namespace
}  // namespace openrnn
