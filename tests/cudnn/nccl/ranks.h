// Ranks of NCCL in a test: threads, each with a GPU of its own.
#pragma once

#include "engine/nccl_entry.h"
#include "train/group/ranks.h"

namespace openrnn {

/// Calls `work` in `size` threads, rank r with GPU r. What each has thrown, "" nothing.
inline std::vector<std::string> on_nccl_ranks(int size,
                                              const std::function<void(train::Communicator&)>& work,
                                              double timeout_seconds = 600.0) {
  return on_ranks(size, [&](train::Communicator& threads) {
    const auto mine = train::nccl_communicator(
        threads, {.device = threads.rank(), .timeout_seconds = timeout_seconds});
    work(*mine);
  });
}

/// Why NCCL cannot be used here; empty: it can.
inline std::string nccl_missing() {
  try {
    nccl_gpus();
    return {};
  } catch (const EngineError& error) {
    return error.what();
  }
}

}  // namespace openrnn
