// Cells by number, which is what an attribute of an XLA call can hold.
#pragma once

#include <string_view>

#include "python/keras/cell.h"

namespace openrnn::python::keras {

/// A number by which the cell is found as long as it lives.
std::int64_t number_of(Cell& cell);
/// The cell with that number, if it is of the network with that text. Else, as in what another
/// process compiled, a new one, which has packed nothing yet. Throws: ArgumentError, which names
/// `call`, for a text that is of no network.
std::shared_ptr<Cell> find_cell(std::string_view call, std::int64_t number, std::string_view text);

}  // namespace openrnn::python::keras
