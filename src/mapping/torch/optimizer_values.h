// What an optimizer of PyTorch counts, and its groups of parameters, as values.
#pragma once

#include <unordered_map>

#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// Of the optimizer at `prefix`: PREFIXstep, where the networks with slots have made equal steps
/// (else a note says so), and PREFIXgroups, the group of each parameter of all networks in their
/// order or -1, unless all are in the first. `numbers` are the optimizer's, by tensor. Tensors of
/// steps are appended to `taken`.
void add_optimizer_values(const ModelFile& file, const std::string& prefix,
                          const std::unordered_map<std::string_view, std::int64_t>& numbers,
                          MappedModel* model, std::vector<std::string>* taken);

}  // namespace openrnn::mapping
