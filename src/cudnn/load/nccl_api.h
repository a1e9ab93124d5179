// The functions of NCCL that are used. Its header is not part of CUDA's toolkit, so its few types
// are written here, as all versions 2 from 2.14 on have them.
#pragma once

#include <cuda.h>

#include <cstddef>
#include <string>

#include "engine/nccl_entry.h"

namespace openrnn::cudnn {

/// ncclResult_t.
enum class NcclResult : int { kSuccess = 0, kInvalidUsage = 5, kRemoteError = 6, kInProgress = 7 };
/// ncclDataType_t, ncclRedOp_t.
enum class NcclType : int { kUint8 = 1, kFloat32 = 7, kFloat64 = 8 };
enum class NcclOp : int { kSum = 0 };
/// ncclComm_t, ncclUniqueId.
using NcclComm = void*;
struct NcclUniqueId {
  NcclId bytes;
};
/// ncclConfig_t as it was in the version that it names; NCCL has its defaults for what came later.
struct NcclConfig {
  std::size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef, version = 21400;
  int blocking = 1;
};

struct NcclApi {
  NcclResult (*version)(int*) = nullptr;
  NcclResult (*unique_id)(NcclUniqueId*) = nullptr;
  NcclResult (*init_rank)(NcclComm*, int ranks, NcclUniqueId, int rank, NcclConfig*) = nullptr;
  NcclResult (*finalize)(NcclComm) = nullptr;
  NcclResult (*destroy)(NcclComm) = nullptr;
  NcclResult (*abort)(NcclComm) = nullptr;
  NcclResult (*async_error)(NcclComm, NcclResult*) = nullptr;
  const char* (*error_string)(NcclResult) = nullptr;
  const char* (*last_error)(NcclComm) = nullptr;

  NcclResult (*group_start)() = nullptr;
  NcclResult (*group_end)() = nullptr;
  NcclResult (*send)(const void*, std::size_t, NcclType, int peer, NcclComm, CUstream) = nullptr;
  NcclResult (*receive)(void*, std::size_t, NcclType, int peer, NcclComm, CUstream) = nullptr;
  NcclResult (*all_gather)(const void*, void*, std::size_t, NcclType, NcclComm, CUstream) = nullptr;
  NcclResult (*all_reduce)(const void*, void*, std::size_t, NcclType, NcclOp, NcclComm,
                           CUstream) = nullptr;
  NcclResult (*broadcast)(const void*, void*, std::size_t, NcclType, int root, NcclComm,
                          CUstream) = nullptr;
};

struct Nccl {
  NcclApi api;
  /// Why it cannot be used, and the remedy; empty when it can.
  std::string missing;
};

/// Opened by the first call, and never closed. Thread-safe.
const Nccl& nccl();

}  // namespace openrnn::cudnn
