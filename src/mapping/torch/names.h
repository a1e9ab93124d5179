// The names of parameters in a state_dict.
#pragma once

#include <optional>
#include <string_view>

namespace openrnn::mapping {

struct TorchName {
  /// 'encoder.rnn.', with the point; empty for none.
  std::string_view prefix;
  /// 'weight_ih_l0_reverse', or 'weight_ih' of a cell.
  std::string_view parameter;
  bool is_cell = false;
};

/// Nothing for a tensor that is none of a recurrent module.
std::optional<TorchName> parse_torch_name(std::string_view name);

}  // namespace openrnn::mapping
