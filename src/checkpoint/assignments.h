// What a restore gives to variables: first everything is read and checked, and only then assigned.
#pragma once

#include <string_view>

#include "openrnn/checkpoint.h"

namespace openrnn::checkpoint {

/// Whether a tensor of a file has the shape and dtype of that variable.
bool fits(const TensorInfo& info, const Variable& variable);
/// Reads a tensor for a variable; errors begin with `[call]` and call it `what`.
/// Throws: ArgumentError unless it fits, IoError, FormatError.
Array read_fitting(std::string_view call, const TensorBundleReader& reader, const std::string& key,
                   std::string_view what, const Variable& variable);

/// Values on the devices of the variables that are to get them.
class Assignments {
 public:
  /// Brings the value to the variable's device; the variable keeps what it has.
  void add(const Variable& variable, const Array& value);
  /// Gives every variable its value. Nothing here can fail but memory, and that comes first.
  void assign();

 private:
  struct Assignment {
    Variable variable;
    DeviceArray value;
  };
  std::vector<Assignment> list_;
};

}  // namespace openrnn::checkpoint
