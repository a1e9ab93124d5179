#include "checkpoint/extras.h"

#include "base/message.h"

namespace openrnn {
namespace {

template <class T>
T scalar(const std::string& name, const Array& array) {
  if (array.size() != 1 || array.dtype() != kDTypeOf<T>) {
    throw TypeError(message("[Extras] ", name, " is ", dtype_name(array.dtype()), " ",
                            to_string(array.shape()), ", expected one ", dtype_name(kDTypeOf<T>)));
  }
  return array.as<T>()[0];
}

}  // namespace

void Extras::set(const std::string& name, TensorValue value) {
  if (name.empty()) throw ArgumentError("[Extras::set] an empty name, expected one");
  values_.insert_or_assign(name, std::move(value));
}

void Extras::set_string(const std::string& name, std::string value) {
  set(name, StringTensor{{}, {std::move(value)}});
}

void Extras::set_int(const std::string& name, std::int64_t value) {
  set(name, Array::of<std::int64_t>({}, {&value, 1}));
}

void Extras::set_float(const std::string& name, double value) {
  set(name, Array::of<double>({}, {&value, 1}));
}

const TensorValue& Extras::get(const std::string& name) const {
  const auto found = values_.find(name);
  if (found != values_.end()) return found->second;
  std::string there;
  for (const auto& entry : values_) there += (there.empty() ? "" : ", ") + entry.first;
  throw ArgumentError(
      message("[Extras] there is no ", name, ", only ", there.empty() ? "nothing" : there));
}

const Array& Extras::get_array(const std::string& name) const {
  const Array* array = std::get_if<Array>(&get(name));
  if (!array) throw TypeError(message("[Extras] ", name, " holds strings, expected numbers"));
  return *array;
}

const std::string& Extras::get_string(const std::string& name) const {
  const StringTensor* strings = std::get_if<StringTensor>(&get(name));
  if (!strings) throw TypeError(message("[Extras] ", name, " holds numbers, expected a string"));
  if (strings->values.size() != 1) {
    throw TypeError(
        message("[Extras] ", name, " holds ", strings->values.size(), " strings, expected one"));
  }
  return strings->values[0];
}

std::int64_t Extras::get_int(const std::string& name) const {
  return scalar<std::int64_t>(name, get_array(name));
}

double Extras::get_float(const std::string& name) const {
  return scalar<double>(name, get_array(name));
}

namespace checkpoint {

Extras extras_of(const TensorBundleReader& reader) {
  Extras extras;
  for (const TensorInfo& info : reader.tensors()) {
    if (!info.name.starts_with(kExtrasPrefix) || info.name == kExtrasPrefix) continue;
    extras.set(info.name.substr(kExtrasPrefix.size()), reader.read_value(info.name));
  }
  return extras;
}

}  // namespace checkpoint

Extras read_extras(const std::string& prefix) {
  return checkpoint::extras_of(TensorBundleReader(prefix));
}

}  // namespace openrnn
