// Activations with their first and second derivatives.
#pragma once

#include <optional>

#include "cpu/tangent/dual.h"
#include "openrnn/spec.h"

namespace openrnn::cpu {

/// f(a) and f'(a) of `size` dual numbers, of a clamped first if there are bounds: then both
/// derivatives are 0 outside of them. `scratch` has `size` elements. No result is libm's.
template <class T>
void evaluate(const CellActivation& f, const std::optional<std::array<double, 2>>& clip,
              std::int64_t size, DualPtr<T> a, DualPtr<T> value, DualPtr<T> slope, T* scratch);

}  // namespace openrnn::cpu
