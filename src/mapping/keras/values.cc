#include "mapping/keras/values.h"

#include <cstdio>

#include "base/message.h"

namespace openrnn::mapping {

ValueIndex::ValueIndex(const std::vector<NamedValue>& values) {
  for (const NamedValue& value : values) values_.emplace(value.name, &value.value);
}

const PlainValue* ValueIndex::find(const std::string& name) const {
  const auto found = values_.find(name);
  return found == values_.end() ? nullptr : found->second;
}

std::string ValueIndex::text(const std::string& name) const {
  const PlainValue* const value = find(name);
  const auto* const text = value ? std::get_if<std::string>(value) : nullptr;
  return text ? *text : std::string();
}

std::vector<std::string> ValueIndex::texts(const std::string& name) const {
  using Texts = std::vector<std::string>;
  if (const PlainValue* const whole = find(name)) {
    const auto* const texts = std::get_if<Texts>(whole);
    return texts ? *texts : Texts();
  }
  Texts all;
  for (int part = 0;; ++part) {
    const PlainValue* const value = find(message(name, part));
    const auto* const texts = value ? std::get_if<Texts>(value) : nullptr;
    if (!texts) return all;
    all.insert(all.end(), texts->begin(), texts->end());
  }
}

KerasVersion keras_version_of(const std::string& text) {
  KerasVersion version;
  // Three digits are more than any version has.
  if (std::sscanf(text.c_str(), "%3d.%3d", &version.major, &version.minor) < 1) return {};
  return version;
}

}  // namespace openrnn::mapping
