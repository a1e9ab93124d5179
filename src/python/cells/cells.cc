// The compatible cells, their wrappers, and the loops over time. States are flat lists here; the
// package gives them TensorFlow's structure.
#include "base/message.h"
#include "graph/scope_stack.h"
#include "python/layers/layer_ref.h"

namespace openrnn::python {
namespace {

nb::object given(const nb::dict& options, const char* name) {
  return options.contains(name) ? nb::object(options[name]) : nb::none();
}

RnnCell& cell_of(nb::handle object, const char* call) {
  const LayerRef* ref = nullptr;
  if (!nb::try_cast<const LayerRef*>(object, ref) || !ref) {
    throw TypeError(
        message("[", call, "] ", quoted_type(object), " is given, expected an RNN cell"));
  }
  return *ref->cell();
}

std::shared_ptr<RnnCell> shared_cell(nb::handle object, const char* call) {
  (void)cell_of(object, call);
  return nb::cast<const LayerRef&>(object).cell();
}

std::vector<std::shared_ptr<RnnCell>> shared_cells(nb::handle objects, const char* call) {
  std::vector<std::shared_ptr<RnnCell>> cells;
  for (const nb::handle object : objects) cells.push_back(shared_cell(object, call));
  return cells;
}

CompatibleCellOptions cell_options(const nb::dict& options) {
  CompatibleCellOptions result;
  result.num_units = as_value<std::int64_t>("num_units", given(options, "num_units"));
  const nb::object dtype = given(options, "dtype");
  if (!dtype.is_none()) result.dtype = as_dtype(dtype);
  result.kernel_initializer = as_initializer(given(options, "kernel_initializer"));
  result.seed = as_optional_int(given(options, "seed"));
  const nb::object name = given(options, "name");
  if (!name.is_none()) result.name = as_value<std::string>("name", name);
  const nb::object num_proj = given(options, "num_proj");
  if (!num_proj.is_none()) result.num_proj = as_value<std::int64_t>("num_proj", num_proj);
  result.device = as_device(given(options, "device"));
  return result;
}

CellState as_state(nb::handle state, DType dtype, const char* call) {
  CellState tensors;
  for (const nb::handle one : state) {
    tensors.push_back(as_tensor(one, {.call = call, .dtype = dtype}));
  }
  return tensors;
}

std::pair<Tensor, CellState> step(LayerRef& self, nb::handle inputs, nb::handle state,
                                  const std::string& scope, bool reuse) {
  RnnCell& cell = *self.cell();
  self.keep_graph();
  const DType dtype = cell.dtype();
  const Tensor x = as_tensor(inputs, {.call = cell.name().c_str(), .dtype = dtype});
  const CellState given_state = as_state(state, dtype, cell.name().c_str());
  const auto lock = self.exclusive();
  std::optional<graph::ReopenedScope> reused;
  if (reuse && !cell.built()) reused.emplace(VariableScope::current_name(), true);
  CellResult result = cell(x, given_state, scope);
  return {std::move(result.output), std::move(result.state)};
}

std::optional<CellState> optional_state(nb::handle state, DType dtype) {
  if (state.is_none()) return std::nullopt;
  return as_state(state, dtype, "initial_state");
}

std::pair<Tensor, CellState> run_dynamic(nb::handle cell, nb::handle inputs, nb::handle lengths,
                                         nb::handle state, nb::handle dtype, bool time_major,
                                         const std::string& scope) {
  RnnCell& core = cell_of(cell, "dynamic_rnn");
  auto& ref = nb::cast<LayerRef&>(cell);
  ref.keep_graph();
  const DType wanted = dtype.is_none() ? core.dtype() : as_dtype(dtype);
  const Tensor x = as_tensor(inputs, {.call = "dynamic_rnn", .dtype = wanted});
  DynamicRnnOptions options;
  set_lengths(options, "dynamic_rnn", lengths);
  options.initial_state = optional_state(state, wanted);
  options.dtype = as_optional_dtype(dtype);
  options.time_major = time_major;
  options.scope = scope;
  const auto lock = ref.exclusive();
  DynamicRnnResult result = dynamic_rnn(core, x, options);
  return {std::move(result.outputs), std::move(result.state)};
}

std::optional<std::vector<CellState>> optional_states(nb::handle states, DType dtype) {
  if (states.is_none()) return std::nullopt;
  std::vector<CellState> result;
  for (const nb::handle one : states) result.push_back(as_state(one, dtype, "initial_states"));
  return result;
}

std::tuple<Tensor, std::vector<CellState>, std::vector<CellState>> run_stack(
    nb::handle cells_fw, nb::handle cells_bw, nb::handle inputs, nb::handle states_fw,
    nb::handle states_bw, nb::handle dtype, nb::handle lengths, bool time_major,
    const std::string& scope) {
  constexpr const char* kCall = "stack_bidirectional_dynamic_rnn";
  const auto forward = shared_cells(cells_fw, kCall), backward = shared_cells(cells_bw, kCall);
  for (const nb::handle cell : cells_fw) nb::cast<LayerRef&>(cell).keep_graph();
  for (const nb::handle cell : cells_bw) nb::cast<LayerRef&>(cell).keep_graph();
  const DType wanted = !dtype.is_none()  ? as_dtype(dtype)
                       : forward.empty() ? DType::kFloat32
                                         : forward[0]->dtype();
  StackBidirectionalOptions options;
  options.initial_states_fw = optional_states(states_fw, wanted);
  options.initial_states_bw = optional_states(states_bw, wanted);
  options.dtype = as_optional_dtype(dtype);
  set_lengths(options, kCall, lengths);
  options.time_major = time_major;
  options.scope = scope;
  const Tensor x = as_tensor(inputs, {.call = kCall, .dtype = wanted});
  StackBidirectionalResult result = stack_bidirectional_dynamic_rnn(forward, backward, x, options);
  return {std::move(result.outputs), std::move(result.states_fw), std::move(result.states_bw)};
}

}  // namespace

std::shared_ptr<RnnCell> make_cell(const std::string& kind, const nb::dict& options) {
  if (kind == "multi_cell") {
    return std::make_shared<MultiRNNCell>(shared_cells(given(options, "cells"), "MultiRNNCell"));
  }
  if (kind == "dropout_cell") {
    return std::make_shared<DropoutWrapper>(
        shared_cell(given(options, "cell"), "DropoutWrapper"),
        DropoutWrapperOptions{.input_keep_prob = as_value<double>(
                                  "input_keep_prob", given(options, "input_keep_prob")),
                              .output_keep_prob = as_value<double>(
                                  "output_keep_prob", given(options, "output_keep_prob")),
                              .state_keep_prob = as_value<double>(
                                  "state_keep_prob", given(options, "state_keep_prob")),
                              .seed = as_optional_int(given(options, "seed"))});
  }
  CompatibleCellOptions cell = cell_options(options);
  if (kind == "lstm_cell") return std::make_shared<CudnnCompatibleLSTMCell>(std::move(cell));
  if (kind == "gru_cell") return std::make_shared<CudnnCompatibleGRUCell>(std::move(cell));
  return std::make_shared<BasicRNNCell>(
      std::move(cell), as_tensor_function(given(options, "activation"), "BasicRNNCell"));
}

void bind_cell_members(nb::class_<LayerRef>& layer) {
  layer.def("cell_step", &step, "inputs"_any, "state"_any, "scope"_a, "reuse"_a)
      .def("cell_state_size", [](const LayerRef& self) { return self.cell()->state_size(); })
      .def("cell_output_size", [](const LayerRef& self) { return self.cell()->output_size(); })
      .def(
          "cell_zero_state",
          [](const LayerRef& self, std::int64_t batch_size, nb::handle dtype) {
            return self.cell()->zero_state(batch_size, as_dtype(dtype));
          },
          "batch_size"_a, "dtype"_any)
      .def(
          "cell_remake",
          [](nb::pointer_and_handle<LayerRef> self, const std::string& kind,
             const nb::dict& options) {
            std::shared_ptr<RnnCell> made = make_cell(kind, options);
            forget({self.p->share().get(), 0}, self.h);
            self.p->replace(std::move(made));
            remember({self.p->share().get(), 0}, self.h);
          },
          "kind"_a, "options"_a,
          nb::sig("def cell_remake(self, kind: str, options: dict[str, typing.Any]) -> None"),
          "Another core for a cell that was not used yet.")
      .def("cell_num_units",
           [](const LayerRef& self) { return self.as<VariableCell>("num_units").num_units(); });
}

void bind_cells(nb::module_& m) {
  m.def("dynamic_rnn", &run_dynamic, "cell"_any, "inputs"_any, "sequence_length"_any,
        "initial_state"_any, "dtype"_any, "time_major"_a, "scope"_a);
  m.def("stack_bidirectional_dynamic_rnn", &run_stack, "cells_fw"_any, "cells_bw"_any, "inputs"_any,
        "initial_states_fw"_any, "initial_states_bw"_any, "dtype"_any, "sequence_length"_any,
        "time_major"_a, "scope"_a);
}

}  // namespace openrnn::python
