// What forward calls keep for backward, held by tensors of PyTorch.
#pragma once

#include "python/torch/network.h"

namespace openrnn::python::torch {

struct SavedCall {
  std::shared_ptr<const Network> network;
  Call call;  // without batch_sizes
  std::vector<std::int64_t> batch_sizes;
  std::unique_ptr<SavedForward> forward;
};

/// A DLPack capsule of one byte, 0. The tensor that PyTorch makes of it owns `saved`: autograd
/// frees that when it frees what it saved, and a tensor that shares the memory finds it.
nb::object token_of(std::shared_ptr<const SavedCall> saved);
/// The saved call whose token lies at `at`; null for any other memory, such as a token's copy.
std::shared_ptr<const SavedCall> find_saved(const void* at);
/// Saved calls that live.
std::int64_t count_saved();

}  // namespace openrnn::python::torch
