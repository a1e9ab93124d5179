// torch.nn.LSTM, GRU and RNN, and their cells: names of a state_dict and networks.
#pragma once

#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// The networks among named tensors of PyTorch; `kind` is that of the file.
/// Throws: as load_networks.
MappedModel map_torch(const ModelFile& file, const MappingHints& hints);

/// Parts of a network's slots that PyTorch's optimizers keep beside each parameter; sets
/// `network.slots` of all networks that were made from these parameters, or says in `model->notes`
/// why not. What an optimizer counts and how its parameters are grouped becomes values
/// (checkpoint.h). Names of taken tensors leave `model->not_understood`.
void add_torch_slots(const ModelFile& file, MappedModel* model);

}  // namespace openrnn::mapping
