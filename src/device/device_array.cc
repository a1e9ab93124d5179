#include <cstring>

#include "base/message.h"
#include "openrnn/device.h"

namespace openrnn {

DeviceArray::DeviceArray(const Device& device, DType dtype, Shape shape)
    : device_(&device),
      dtype_(dtype),
      shape_(std::move(shape)),
      memory_(device.allocate(size_bytes())) {}

DeviceArray DeviceArray::zeros(const Device& device, DType dtype, Shape shape) {
  DeviceArray result(device, dtype, std::move(shape));
  device.zero(result.mutable_data(), result.size_bytes());
  return result;
}

DeviceArray DeviceArray::full(const Device& device, DType dtype, Shape shape, double value) {
  DeviceArray result(device, dtype, std::move(shape));
  device.fill(dtype, result.size(), value, dtype, nullptr, result.mutable_data());
  return result;
}

DeviceArray DeviceArray::from_host(const Device& device, const ConstArrayView& host) {
  DeviceArray result;
  result.device_ = &device;
  result.dtype_ = host.dtype;
  result.shape_ = host.shape;
  result.memory_ = device.bring(host.data, result.size_bytes());
  return result;
}

void DeviceArray::make_unique_owner() {
  if (empty() || (!borrowed_ && memory_.use_count() == 1)) return;
  DeviceArray copy(*device_, dtype_, shape_);
  device_->copy({.count = 1,
                 .bytes = size_bytes(),
                 .from = data(),
                 .from_stride = 0,
                 .to = copy.mutable_data(),
                 .to_stride = 0});
  *this = std::move(copy);
}

DeviceArray DeviceArray::reshaped(Shape shape) const {
  if (shape_size(shape) != size()) {
    throw ArgumentError(message("[reshaped] shape is ", to_string(shape), ", expected ", size(),
                                " elements as in ", to_string(shape_)));
  }
  DeviceArray result = *this;
  result.shape_ = std::move(shape);
  return result;
}

Array DeviceArray::to_host() const {
  Array result(dtype_, empty() ? Shape{0} : shape_);
  if (!empty()) device_->download(result.data(), data(), size_bytes());
  return result;
}

ConstArrayView DeviceArray::host_view() const {
  if (empty()) return {nullptr, dtype_, {0}};
  if (device_->name() != "cpu") {
    throw StateError(message("[host_view] the array lies on ", device_->name(), ", expected cpu"));
  }
  return {data(), dtype_, shape_};
}

}  // namespace openrnn
