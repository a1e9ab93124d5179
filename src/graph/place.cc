// Devices of values, and copies between devices.
#include <atomic>
#include <cstdlib>

#include "cpu/device/cpu_device.h"
#include "openrnn/graph_symbolic.h"
#include "openrnn/runtime.h"

namespace openrnn {
namespace {

// Null until it is read or set.
std::atomic<const Device*> chosen_default{nullptr};

const Device& initial_default() {
  const char* const name = std::getenv("OPENRNN_DEVICE");
  return name && *name ? device(name) : cpu_device();
}

bool in_host_memory(const DeviceArray& array) { return array.device().engine() == nullptr; }

}  // namespace

const Device& default_device() {
  if (const Device* const chosen = chosen_default.load()) return *chosen;
  const Device* none = nullptr;
  const Device& initial = initial_default();
  return chosen_default.compare_exchange_strong(none, &initial) ? initial : *none;
}

void set_default_device(const Device& device) { chosen_default.store(&device); }

void set_default_device(std::string_view name) { set_default_device(device(name)); }

DeviceArray on_device(DeviceArray array, const Device& device) {
  if (array.empty() || &array.device() == &device) return array;
  if (in_host_memory(array)) {
    return DeviceArray::from_host(device, {array.data(), array.dtype(), array.shape()});
  }
  return DeviceArray::from_host(device, array.to_host().view());
}

Tensor::Tensor(const ConstArrayView& host)
    : value_(
          DeviceArray::from_host(is_floating(host.dtype) ? default_device() : cpu_device(), host)),
      placed_(false) {}

Tensor Tensor::of_host(DeviceArray memory, const Device& device) {
  const bool stays = !is_floating(memory.dtype());
  Tensor tensor(stays ? std::move(memory) : on_device(std::move(memory), device));
  tensor.placed_ = false;
  return tensor;
}

Tensor Tensor::detached() const {
  if (symbol_) return Tensor(symbol_);
  Tensor tensor(value_);
  tensor.placed_ = placed_;
  return tensor;
}

const Device& Tensor::device() const {
  if (empty()) throw ArgumentError("[device] the tensor is empty, expected one with a value");
  return value().device();
}

Tensor Tensor::to(const Device& device) const {
  if (empty()) throw ArgumentError("[to] the tensor is empty, expected one with a value");
  if (symbol_) {
    return defer(
        "to", {*this}, {{dtype(), shape()}},
        [&device](const std::vector<Tensor>& in, const Replay&) {
          return std::vector{in[0].to(device)};
        },
        Attributes{std::string(device.name())})[0];
  }
  if (&value_.device() == &device) {
    Tensor same = *this;
    same.placed_ = true;
    return same;
  }
  const BackwardFunction back = [&from = value_.device()](const auto& gradients) {
    return std::vector{on_device(gradients[0], from)};
  };
  const GradientFunction gradient = [&from = value_.device()](const GradientCall& call) {
    return std::vector{call.output_gradients[0].to(from)};
  };
  Tensor there = record("to", {*this}, {on_device(value_, device)}, back, gradient)[0];
  there.placed_ = true;
  return there;
}

}  // namespace openrnn
