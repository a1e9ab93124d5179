#include "cudnn/load/nccl_api.h"

#include <atomic>
#include <memory>

#include "base/message.h"
#include "cudnn/load/libraries.h"
#include "cudnn/load/library.h"

namespace openrnn::cudnn {
namespace {

// The first in which no call has to wait for the other ranks, and the first of another interface.
constexpr int kOldest = 21400, kFirstOfNext = 30000;
constexpr const char* kRemedy =
    "; install NCCL 2 for CUDA 13 (Debian: libnccl2, pip: nvidia-nccl-cu13) and name its folder in "
    "OPENRNN_CUDA_LIBRARIES";

std::string open_nccl(NcclApi& api) {
  Library lib("libnccl.so.2", {"NCCL_HOME", "CUDA_HOME", "CUDA_PATH"});
  lib.find("ncclGetVersion", api.version);
  int version = 0;
  if (api.version && (api.version(&version) != NcclResult::kSuccess || version < kOldest ||
                      version >= kFirstOfNext)) {
    return message("NCCL is of version ", version / 10000, ".", version % 10000 / 100, ".",
                   version % 100, ", expected 2.14.0 or newer of version 2", kRemedy);
  }
  lib.find("ncclGetUniqueId", api.unique_id);
  lib.find("ncclCommInitRankConfig", api.init_rank);
  lib.find("ncclCommFinalize", api.finalize);
  lib.find("ncclCommDestroy", api.destroy);
  lib.find("ncclCommAbort", api.abort);
  lib.find("ncclCommGetAsyncError", api.async_error);
  lib.find("ncclGetErrorString", api.error_string);
  lib.find("ncclGetLastError", api.last_error);
  lib.find("ncclGroupStart", api.group_start);
  lib.find("ncclGroupEnd", api.group_end);
  lib.find("ncclSend", api.send);
  lib.find("ncclRecv", api.receive);
  lib.find("ncclAllGather", api.all_gather);
  lib.find("ncclAllReduce", api.all_reduce);
  lib.find("ncclBroadcast", api.broadcast);
  if (lib.problem().empty()) return {};
  return message("NCCL is missing: ", lib.problem(), kRemedy);
}

}  // namespace

// As libraries(): after a fork nobody waits for another thread's static local.
const Nccl& nccl() {
  static constinit std::atomic<const Nccl*> known{nullptr};
  const Nccl* all = known.load(std::memory_order_acquire);
  if (all) return *all;
  auto mine = std::make_unique<Nccl>();
  mine->missing = libraries().driver_missing;
  if (mine->missing.empty()) mine->missing = open_nccl(mine->api);
  if (known.compare_exchange_strong(all, mine.get(), std::memory_order_acq_rel)) {
    all = mine.release();
  }
  return *all;
}

}  // namespace openrnn::cudnn
