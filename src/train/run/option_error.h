// Makes the errors of options.
#pragma once

#include "base/message.h"
#include "openrnn/train_run.h"

namespace openrnn::train {

/// The name of an option among the parts of a message.
struct Option {
  std::string_view name;
};

inline OptionError::Piece piece_of(const Option& option) {
  return {std::string(option.name), true};
}
template <class Part>
OptionError::Piece piece_of(const Part& part) {
  return {openrnn::message(part), false};
}

template <class... Parts>
[[noreturn]] void refuse_option(const Parts&... parts) {
  throw OptionError("Run", {piece_of(parts)...});
}

}  // namespace openrnn::train
