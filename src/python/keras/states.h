// States of two directions: an array of each in Keras, one array in the engine.
#pragma once

#include "python/keras/cell.h"

namespace openrnn::python::keras {

/// Memory of a shape in the cell's dtype.
DeviceArray scratch(const Cell& cell, Shape shape);

/// States [B, U] of each direction, null for zeros, as the engine reads them: [B, D, U], null for
/// zeros in all. Where there is one direction, that is where they lie, else in `own`.
const void* join_states(const Cell& cell, std::int64_t batch, const Both<const void*>& states,
                        DeviceArray* own);
/// Where the engine writes states of which some are wanted, those not null; null if none is.
void* room_for_states(const Cell& cell, std::int64_t batch, const Both<void*>& states,
                      DeviceArray* own);
/// What it wrote into `own`, where that was needed, to those that are wanted.
void split_states(const Cell& cell, std::int64_t batch, const DeviceArray& own,
                  const Both<void*>& states);

}  // namespace openrnn::python::keras
