#include "checkpoint/extras.h"

#include <algorithm>

#include "base/excerpt.h"
#include "base/message.h"

namespace openrnn {
namespace {

// Whether a shape has the expected sizes, where -1 is any.
bool fits(const Shape& shape, const Shape& wanted) {
  return std::equal(shape.begin(), shape.end(), wanted.begin(), wanted.end(),
                    [](std::int64_t size, std::int64_t want) { return want < 0 || size == want; });
}

std::string listed_names(const std::map<std::string, TensorValue>& values) {
  std::vector<std::string> names;
  for (const auto& entry : values) names.push_back(entry.first);
  return names.empty() ? "nothing" : listed_excerpts(names);
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
  throw ArgumentError(
      message("[Extras] there is no ", excerpt(name), ", only ", listed_names(values_)));
}

const Array& Extras::get_array(const std::string& name) const {
  const Array* array = std::get_if<Array>(&get(name));
  if (!array)
    throw TypeError(message("[Extras] ", excerpt(name), " holds strings, expected numbers"));
  return *array;
}

const Array& Extras::get_array(const std::string& name, DType dtype, const Shape& shape) const {
  const Array& array = get_array(name);
  if (array.dtype() == dtype && fits(array.shape(), shape)) return array;
  throw TypeError(message("[Extras] ", excerpt(name), " is ", dtype_name(array.dtype()), " ",
                          to_string(array.shape()), ", expected ", dtype_name(dtype), " ",
                          to_string(shape)));
}

const std::string& Extras::get_string(const std::string& name) const {
  const StringTensor* strings = std::get_if<StringTensor>(&get(name));
  if (!strings)
    throw TypeError(message("[Extras] ", excerpt(name), " holds numbers, expected a string"));
  if (!strings->shape.empty()) {
    throw TypeError(message("[Extras] ", excerpt(name), " holds strings of shape ",
                            to_string(strings->shape), ", expected one string"));
  }
  return strings->values.at(0);
}

std::int64_t Extras::get_int(const std::string& name) const {
  return get_array(name, DType::kInt64, {}).as<std::int64_t>()[0];
}

double Extras::get_float(const std::string& name) const {
  return get_array(name, DType::kFloat64, {}).as<double>()[0];
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

Extras read_extras(const std::string& prefix) { return read_extras(TensorBundleReader(prefix)); }

Extras read_extras(const TensorBundleReader& reader) { return checkpoint::extras_of(reader); }

}  // namespace openrnn
