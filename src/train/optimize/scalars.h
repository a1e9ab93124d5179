// The host's counters and scales: variables of one element; and names of what an optimizer makes.
#pragma once

#include "openrnn/train_optimizer.h"

namespace openrnn::train {

/// `name`, or name_1, name_2, ... where a variable has it already: TensorFlow numbers the slots of
/// one variable so, whichever optimizer they belong to.
std::string free_name(const std::string& name);

/// The element. Unlike Variable::to_host this reports nothing.
template <class T>
T scalar(const Variable& variable) {
  return variable.read().to_host().as<T>()[0];
}

template <class T>
void set_scalar(const Variable& variable, T value) {
  variable.assign(Array::of<T>({}, std::span<const T>(&value, 1)).view());
}

/// After a step whose gradients were finite, or not: false when that is an error, because there is
/// no scale (empty variables), or none left to lower.
bool adjust_loss_scale(const Variable& loss_scale, const Variable& good_steps, bool finite);

}  // namespace openrnn::train
