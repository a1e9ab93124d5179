#include <algorithm>

#include "base/message.h"
#include "graph/graph_state.h"
#include "graph/scope_stack.h"
#include "openrnn/cells.h"

namespace openrnn {
namespace {

std::shared_ptr<RnnCell> copy_of(const RnnCell& cell) {
  return std::dynamic_pointer_cast<RnnCell>(cell.copy());
}

// A wrapper takes what its first cell takes.
DType dtype_of(const std::shared_ptr<RnnCell>& cell) {
  return cell ? cell->dtype() : DType::kFloat32;
}

}  // namespace

MultiRNNCell::MultiRNNCell(std::vector<std::shared_ptr<RnnCell>> cells)
    : RnnCell("MultiRNNCell", "", "multi_rnn_cell",
              cells.empty() ? DType::kFloat32 : dtype_of(cells.front())),
      cells_(std::move(cells)) {
  if (cells_.empty()) throw ArgumentError("[MultiRNNCell] no cells, expected at least 1");
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (!cells_[i]) throw ArgumentError(message("[MultiRNNCell] cells[", i, "] is null"));
  }
}

std::shared_ptr<MultiRNNCell> MultiRNNCell::from_config(
    std::vector<std::shared_ptr<RnnCell>> config) {
  return std::make_shared<MultiRNNCell>(std::move(config));
}

std::shared_ptr<Layer> MultiRNNCell::copy() const {
  std::vector<std::shared_ptr<RnnCell>> cells;
  for (const auto& cell : cells_) cells.push_back(copy_of(*cell));
  auto made = std::make_shared<MultiRNNCell>(std::move(cells));
  made->copy_layer(*this);
  return made;
}

std::vector<std::int64_t> MultiRNNCell::state_size() const {
  std::vector<std::int64_t> sizes;
  for (const auto& cell : cells_) {
    for (const CellStatePart& part : cell->step_state()) sizes.push_back(part.size);
  }
  return sizes;
}

CellState MultiRNNCell::zeros_of_class(std::int64_t batch_size, DType dtype) const {
  CellState all;
  for (const auto& cell : cells_) {
    for (Tensor& tensor : cell->zero_state(batch_size, dtype)) all.push_back(std::move(tensor));
  }
  return all;
}

bool MultiRNNCell::is_memory(std::size_t index) const {
  for (const auto& cell : cells_) {
    const std::vector<CellStatePart> parts = cell->step_state();
    if (index < parts.size()) return parts[index].memory;
    index -= parts.size();
  }
  return false;
}

std::vector<Layer*> MultiRNNCell::sublayers() const {
  std::vector<Layer*> all;
  for (const auto& cell : cells_) all.push_back(cell.get());
  for (Layer* layer : Layer::sublayers()) all.push_back(layer);
  return all;
}

std::vector<CellState> MultiRNNCell::split_state(const CellState& state) const {
  const std::size_t expected = state_size().size();
  if (state.size() != expected) {
    throw ArgumentError(message("[MultiRNNCell] a state of ", state.size(), " tensors, expected ",
                                expected, " for ", cells_.size(), " cells"));
  }
  std::vector<CellState> parts;
  auto from = state.begin();
  for (const auto& cell : cells_) {
    const auto to = from + static_cast<std::ptrdiff_t>(cell->step_state().size());
    parts.emplace_back(from, to);
    from = to;
  }
  return parts;
}

bool MultiRNNCell::needs_reuse() const {
  return RnnCell::needs_reuse() || std::any_of(cells_.begin(), cells_.end(), [](const auto& cell) {
           return cell->needs_reuse();
         });
}

void MultiRNNCell::check_call(const Tensor&, const CellState& state) const { split_state(state); }

CellResult MultiRNNCell::step(const Tensor& inputs, const CellState& state) {
  const std::vector<CellState> states = split_state(state);
  const graph::ReopenedScope scope(scope_name(), VariableScope::current_reuse());
  CellResult result{inputs, {}};
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    const VariableScope layer(message("cell_", i), VariableScope::current_reuse());
    CellResult stepped = (*cells_[i])(result.output, states[i]);
    result.output = std::move(stepped.output);
    for (Tensor& tensor : stepped.state) result.state.push_back(std::move(tensor));
  }
  return result;
}

DropoutWrapper::DropoutWrapper(std::shared_ptr<RnnCell> cell, DropoutWrapperOptions options)
    : RnnCell("DropoutWrapper", "", "dropout_wrapper", dtype_of(cell)),
      cell_(std::move(cell)),
      options_(options) {
  if (!cell_) throw ArgumentError("[DropoutWrapper] cell is null, expected a cell");
  const auto check = [](const char* name, double value) {
    if (!(value > 0.0 && value <= 1.0)) {
      throw ArgumentError(
          message("[DropoutWrapper] ", name, " ", value, ", expected above 0 and at most 1"));
    }
  };
  check("input_keep_prob", options_.input_keep_prob);
  check("output_keep_prob", options_.output_keep_prob);
  check("state_keep_prob", options_.state_keep_prob);
  dropout_ = ops::DropoutState(Graph::current().op_seeds(options_.seed));
}

std::shared_ptr<DropoutWrapper> DropoutWrapper::from_config(std::shared_ptr<RnnCell> cell,
                                                            DropoutWrapperOptions config) {
  return std::make_shared<DropoutWrapper>(std::move(cell), config);
}

std::vector<std::int64_t> DropoutWrapper::state_size() const {
  std::vector<std::int64_t> sizes;
  for (const CellStatePart& part : cell_->step_state()) sizes.push_back(part.size);
  return sizes;
}

CellState DropoutWrapper::zeros_of_class(std::int64_t batch_size, DType dtype) const {
  return cell_->zero_state(batch_size, dtype);
}

std::shared_ptr<Layer> DropoutWrapper::copy() const {
  // A new one would take a seed of its own.
  const graph::Rollback seeds(Graph::current());
  auto made = std::make_shared<DropoutWrapper>(copy_of(*cell_), options_);
  made->copy_layer(*this);
  made->dropout_ = dropout_;
  return made;
}

std::vector<Layer*> DropoutWrapper::sublayers() const {
  std::vector<Layer*> all{cell_.get()};
  for (Layer* layer : Layer::sublayers()) all.push_back(layer);
  return all;
}

Tensor DropoutWrapper::drop(const Tensor& x, double keep_prob) {
  // Where only shapes are asked for, no mask is used up.
  if (x.is_symbolic() || x.shape()[0] == 0) return x;
  if (keep_prob == 1.0) return x;
  return ops::next_dropout(x, 1.0 - keep_prob, dropout_);
}

CellResult DropoutWrapper::step(const Tensor& inputs, const CellState& state) {
  CellResult result = (*cell_)(drop(inputs, options_.input_keep_prob), state);
  const std::vector<CellStatePart> parts = cell_->step_state();
  for (std::size_t i = 0; i < result.state.size(); ++i) {
    if (parts[i].memory) continue;
    result.state[i] = drop(result.state[i], options_.state_keep_prob);
  }
  result.output = drop(result.output, options_.output_keep_prob);
  return result;
}

}  // namespace openrnn
