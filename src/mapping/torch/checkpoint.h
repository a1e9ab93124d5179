// What a file of PyTorch's names holds: tensors of modules, an optimizer's slots, values.
#pragma once

#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// The tensors of a state_dict for the networks: `views` point into `networks`.
struct TorchTensors {
  std::vector<MappedNetwork> networks;
  std::vector<NamedView> views;
};
/// Throws: UnsupportedError naming what `format` cannot hold.
TorchTensors torch_tensors_of(const MappedModel& model, std::string_view format);

/// A slot of one parameter.
struct TorchSlotView {
  /// Of the parameter, among the views.
  std::size_t number = 0;
  std::string slot;
  ConstArrayView values;
};

struct TorchOptimizerState {
  /// Where the file has it: 'optimizer.', 'optimizer_states.0.'.
  std::string prefix;
  std::vector<TorchSlotView> slots;
  /// Steps that were made: every parameter has them.
  std::optional<Array> step;
  /// Numbers of the parameters of each group, and what its options are.
  struct Group {
    std::vector<std::int64_t> parameters;
    std::vector<NamedValue> options;
  };
  std::vector<Group> groups;
};

/// A model as a checkpoint: slots lie in `tensors`, too.
struct TorchCheckpoint {
  TorchTensors tensors;
  /// Nothing where there are no slots, and where they would be of no use: every optimizer of
  /// PyTorch but SGD counts its steps, and needs the count.
  std::optional<TorchOptimizerState> optimizer;
  /// All but the optimizer's.
  std::vector<NamedValue> values;
};
/// Throws: as torch_tensors_of.
TorchCheckpoint torch_checkpoint_of(const MappedModel& model, std::string_view format);

/// The same for a file of named tensors and values: 'optimizer.state.3.exp_avg', with the names of
/// parameters beside their numbers, as such files keep no order. Views point into the checkpoint.
struct FlatCheckpoint {
  std::vector<NamedView> views;
  std::vector<NamedValue> values;
};
FlatCheckpoint flat_checkpoint(const TorchCheckpoint& checkpoint);

/// What values say of an optimizer, by the names that add_torch_slots gives: the steps, and the
/// group of each parameter where there are several.
inline constexpr std::string_view kTorchStep = "step", kTorchGroups = "groups";
/// The value of a checkpoint of ours that names the dictionary in front of the networks' names.
inline constexpr std::string_view kTorchModelKey = "openrnn.model";

/// A state_dict where there are tensors alone; else a dictionary with one of them, the optimizer's
/// state as Optimizer.load_state_dict takes it, and the values.
void save_torch(const std::string& path, const MappedModel& model);

}  // namespace openrnn::mapping
