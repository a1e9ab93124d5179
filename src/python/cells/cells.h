// What the bindings of cells and of loops share.
#pragma once

#include "python/layers/layer_ref.h"

namespace openrnn::python {

/// The value of an option, or None.
nb::object option_or_none(const nb::dict& options, const char* name);
/// The cell behind an object. Throws: TypeError naming the call for anything else.
RnnCell& cell_of(nb::handle object, const char* call);
std::shared_ptr<RnnCell> shared_cell(nb::handle object, const char* call);
std::vector<std::shared_ptr<RnnCell>> shared_cells(nb::handle objects, const char* call);
/// A state as a flat list of tensors.
CellState as_state(nb::handle state, DType dtype, const char* call);
/// A cell with variables of its own, by its kind.
std::shared_ptr<RnnCell> make_variable_cell(const std::string& kind, const nb::dict& options);

}  // namespace openrnn::python
