// Attributes of Keras's files among the values.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "openrnn/formats_model_file.h"

namespace openrnn::mapping {

/// Values by name; those it is made of stay.
class ValueIndex {
 public:
  explicit ValueIndex(const std::vector<NamedValue>& values);
  /// Empty if there is no such text.
  std::string text(const std::string& name) const;
  /// A list that Keras may have split into NAME0, NAME1, ...; empty if there is none.
  std::vector<std::string> texts(const std::string& name) const;

 private:
  const PlainValue* find(const std::string& name) const;

  std::unordered_map<std::string_view, const PlainValue*> values_;
};

/// The version that a file says it is of: 2.3 is {2, 3}, of tf.keras that of the standalone Keras
/// it was made from. Keras 1 said none: {1, 0}.
struct KerasVersion {
  int major = 1, minor = 0;
};
KerasVersion keras_version_of(const std::string& text);

}  // namespace openrnn::mapping
