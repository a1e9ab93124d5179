#include "base/message.h"
#include "engine/cudnn_entry.h"
#include "engine/nccl_entry.h"

namespace openrnn {
namespace {

[[noreturn]] void refuse() {
  throw EngineError(message("[nccl] NCCL cannot be used: ", cudnn_missing()));
}

}  // namespace

int nccl_gpus() { refuse(); }

NcclId nccl_id() { refuse(); }

std::unique_ptr<NcclRank> nccl_rank(const NcclPlace&, const NcclId&) { refuse(); }

}  // namespace openrnn
