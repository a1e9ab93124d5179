// Entry points of NCCL. A build has one of two rooms, as for the GPU engine: `cudnn` opens NCCL's
// library, `cudnn_absent` says what is missing.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <string>

#include "openrnn/base.h"

namespace openrnn {

/// What all ranks of a group are given before they can meet.
using NcclId = std::array<char, 128>;

/// Which rank of a group this is.
struct NcclPlace {
  int rank = 0, size = 1;
  int gpu = 0;  // by its number among those that the driver shows
  double timeout_seconds = 0.0;
  /// Why another rank has given up, as far as it is known without NCCL; empty: none has.
  std::function<std::string()> failure;
};

/// One rank. Buffers are on the host; calls wait until this rank has all that it receives.
/// Throws, all calls: EngineError naming what failed; after that every call does.
class NcclRank {
 public:
  virtual ~NcclRank() = default;
  virtual void all_to_all(const void* send, void* receive, std::size_t bytes) = 0;
  virtual void all_gather(const void* send, void* receive, std::size_t bytes) = 0;
  virtual void all_reduce(bool is_double, std::size_t count, void* values) = 0;
  virtual void broadcast(void* data, std::size_t bytes, int root) = 0;
  /// Frees what NCCL holds, without the others.
  virtual void abort() noexcept = 0;
};

/// GPUs that NCCL can use. Throws: EngineError naming what is missing: the driver, a GPU,
/// libnccl.so.2, or a version of one.
int nccl_gpus();
/// The id of a group. Throws: as nccl_gpus().
NcclId nccl_id();
/// A rank of the group; all must ask for theirs. Throws: as nccl_gpus(); EngineError.
std::unique_ptr<NcclRank> nccl_rank(const NcclPlace& place, const NcclId& id);

}  // namespace openrnn
