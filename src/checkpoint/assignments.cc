#include "checkpoint/assignments.h"

#include "base/message.h"

namespace openrnn::checkpoint {

bool fits(const TensorInfo& info, const Variable& variable) {
  return info.shape == variable.shape() && info.dtype == dtype_name(variable.dtype());
}

Array read_fitting(std::string_view call, const TensorBundleReader& reader, const std::string& key,
                   std::string_view what, const Variable& variable) {
  const TensorInfo& info = reader.info(key);
  if (!fits(info, variable)) {
    throw ArgumentError(message("[", call, "] ", reader.prefix(), ": ", what, " is ", info.dtype,
                                " ", to_string(info.shape), ", expected ",
                                dtype_name(variable.dtype()), " ", to_string(variable.shape())));
  }
  return reader.read(key);
}

void Assignments::add(const Variable& variable, const Array& value) {
  const Tensor now = variable.read();
  list_.push_back({variable, DeviceArray::from_host(now.value().device(), value.view())});
}

void Assignments::assign() {
  for (Assignment& one : list_) one.variable.assign(std::move(one.value));
}

}  // namespace openrnn::checkpoint
