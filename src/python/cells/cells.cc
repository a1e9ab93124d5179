// The cells and their wrappers. States are flat lists here; the package gives them TensorFlow's
// structure.
#include "python/cells/cells.h"

#include "base/message.h"

namespace openrnn::python {
namespace {

CellResult as_result(nb::handle given_result, const RnnCell& cell) {
  const auto [output, state] = nb::cast<std::pair<nb::object, nb::object>>(given_result);
  const char* const call = cell.name().c_str();
  return {as_tensor(output, {.call = call, .dtype = cell.dtype()}),
          as_state(state, cell.dtype(), call)};
}

std::pair<Tensor, CellState> step(LayerRef& self, nb::handle inputs, nb::handle state,
                                  const std::string& scope) {
  RnnCell& cell = *self.cell();
  self.keep_graph();
  const DType dtype = cell.dtype();
  const Tensor x = as_tensor(inputs, {.call = cell.name().c_str(), .dtype = dtype});
  const CellState given_state = as_state(state, dtype, cell.name().c_str());
  const auto lock = self.exclusive();
  CellResult result = cell.run_step(x, given_state, scope);
  return {std::move(result.output), std::move(result.state)};
}

// What the cell's class computes, inside or outside a call of a subclass.
std::pair<Tensor, CellState> class_step(LayerRef& self, nb::handle inputs, nb::handle state) {
  RnnCell& cell = *self.cell();
  self.keep_graph();
  const Tensor x = as_tensor(inputs, {.call = cell.name().c_str(), .dtype = cell.dtype()});
  const CellState given_state = as_state(state, cell.dtype(), cell.name().c_str());
  const auto lock = self.exclusive();
  CellResult result = cell.run_class(x, given_state);
  return {std::move(result.output), std::move(result.state)};
}

std::vector<CellStatePart> as_parts(nb::handle sizes) {
  std::vector<CellStatePart> parts;
  for (const nb::handle one : sizes) {
    const auto [size, memory] = nb::cast<std::pair<std::int64_t, bool>>(one);
    parts.push_back({size, memory});
  }
  return parts;
}

// From now on the functions in `names` override those of the object's class.
void override_cell(nb::pointer_and_handle<LayerRef> self, const std::vector<std::string>& names) {
  RnnCell& cell = *self.p->cell();
  const Kept object(nb::borrow(self.h));
  CellOverrides overrides;
  for (const std::string& name : names) {
    if (name == "call") {
      overrides.step = [object, &cell](const Tensor& inputs, const CellState& state) {
        const nb::gil_scoped_acquire lock;
        return as_result(object.get().attr("_own_step")(inputs, state), cell);
      };
    } else if (name == "__call__") {
      overrides.call = [object, &cell](const Tensor& inputs, const CellState& state,
                                       const std::string& scope) {
        const nb::gil_scoped_acquire lock;
        return as_result(object.get().attr("_own_call")(inputs, state, scope), cell);
      };
    } else if (name == "zero_state") {
      overrides.zero_state = [object](std::int64_t batch_size, DType dtype) {
        const nb::gil_scoped_acquire lock;
        return as_state(object.get().attr("_own_zero_state")(batch_size, dtype_str(dtype)), dtype,
                        "zero_state");
      };
    } else if (name == "state_size") {
      overrides.state = [object] {
        const nb::gil_scoped_acquire lock;
        return as_parts(object.get().attr("_own_state")());
      };
    } else if (name == "output_size") {
      overrides.output_size = [object] {
        const nb::gil_scoped_acquire lock;
        return as_int("output_size", object.get().attr("output_size"));
      };
    }
  }
  cell.set_overrides(std::move(overrides));
  self.p->set_calls_back(true);
}

// A cell written in Python: a subclass of RNNCell itself.
class PythonCell : public RnnCell {
 public:
  using Layer::set_reuse;
  PythonCell(const std::string& name, const std::string& default_name, DType dtype,
             const Device* device)
      : RnnCell(default_name, name, default_name, dtype, device) {}
  std::vector<std::int64_t> state_size() const override { missing("state_size"); }
  std::int64_t output_size() const override { missing("output_size"); }
  bool builds_again() const override { return false; }
  std::shared_ptr<Layer> copy() const override {
    auto made = std::make_shared<PythonCell>("", call_name(), dtype(), &device());
    made->copy_layer(*this);
    return made;
  }

 protected:
  CellResult step(const Tensor&, const CellState&) override { missing("call()"); }

 private:
  [[noreturn]] void missing(const char* what) const {
    throw UnsupportedError(
        message("[", name(), "] its class has no ", what, ", expected a subclass that has one"));
  }
};

void remake(nb::pointer_and_handle<LayerRef> self, const std::string& kind,
            const nb::dict& options) {
  std::shared_ptr<RnnCell> made = make_cell(kind, options);
  forget({self.p->share().get(), 0}, self.h);
  self.p->forget_overrides();
  self.p->replace(std::move(made));
  remember({self.p->share().get(), 0}, self.h);
}

}  // namespace

std::shared_ptr<RnnCell> make_cell(const std::string& kind, const nb::dict& options) {
  if (kind == "multi_cell") {
    return std::make_shared<MultiRNNCell>(
        shared_cells(option_or_none(options, "cells"), "MultiRNNCell"));
  }
  if (kind == "dropout_cell") {
    return std::make_shared<DropoutWrapper>(
        shared_cell(option_or_none(options, "cell"), "DropoutWrapper"),
        DropoutWrapperOptions{.input_keep_prob = as_value<double>(
                                  "input_keep_prob", option_or_none(options, "input_keep_prob")),
                              .output_keep_prob = as_value<double>(
                                  "output_keep_prob", option_or_none(options, "output_keep_prob")),
                              .state_keep_prob = as_value<double>(
                                  "state_keep_prob", option_or_none(options, "state_keep_prob")),
                              .seed = as_optional_int(option_or_none(options, "seed"))});
  }
  if (kind == "python_cell") {
    auto cell = std::make_shared<PythonCell>(
        nb::cast<std::string>(options["name"]), nb::cast<std::string>(options["default_name"]),
        as_dtype(options["dtype"]), as_device(options["device"]));
    cell->set_reuse(nb::cast<bool>(options["reuse"]));
    cell->set_trainable(as_value<bool>("trainable", nb::object(options["trainable"])));
    return cell;
  }
  return make_variable_cell(kind, options);
}

void bind_cells(nb::module_& m) {
  m.def("cell_step", &step, "cell"_a, "inputs"_any, "state"_any, "scope"_a);
  m.def("cell_class_step", &class_step, "cell"_a, "inputs"_any, "state"_any);
  m.def("cell_override", &override_cell, "cell"_a, "names"_a,
        nb::sig("def cell_override(cell: LayerBase, names: list[str]) -> None"));
  m.def(
      "cell_state_size", [](const LayerRef& self) { return self.cell()->state_size(); }, "cell"_a);
  m.def(
      "cell_output_size", [](const LayerRef& self) { return self.cell()->output_size(); },
      "cell"_a);
  m.def(
      "cell_zero_state",
      [](const LayerRef& self, std::int64_t batch_size, nb::handle dtype) {
        return self.cell()->class_zero_state(batch_size, as_dtype(dtype));
      },
      "cell"_a, "batch_size"_a, "dtype"_any);
  m.def("cell_remake", &remake, "cell"_a, "kind"_a, "options"_a,
        nb::sig("def cell_remake(cell: LayerBase, kind: str, options: dict[str, typing.Any]) -> "
                "None"),
        "Another core for a cell that was not used yet.");
  m.def(
      "cell_num_units",
      [](const LayerRef& self) { return self.as<VariableCell>("num_units").num_units(); },
      "cell"_a);
}

}  // namespace openrnn::python
