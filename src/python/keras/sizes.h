// Shapes of a call's arrays.
#pragma once

#include "python/keras/cell.h"

namespace openrnn::python::keras {

struct Sizes {
  Sizes(const Cell& cell, std::int64_t batch, std::int64_t time, bool sequences)
      : x{batch, time, cell.spec().input_size},
        y(sequences ? Shape{batch, time, cell.spec().output_size()}
                    : Shape{batch, cell.spec().output_size()}),
        state{batch, cell.spec().num_units},
        kernel{cell.spec().input_size, cell.spec().num_gates() * cell.spec().num_units},
        recurrent{cell.spec().num_units, kernel[1]},
        bias(cell.bias_rows() == 2 ? Shape{2, kernel[1]} : Shape{kernel[1]}),
        mask{batch, time} {}
  Shape x, y, state, kernel, recurrent, bias, mask;
};

}  // namespace openrnn::python::keras
