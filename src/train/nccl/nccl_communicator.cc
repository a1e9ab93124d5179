// NCCL as a communicator: its ranks find each other by another one.
#include <cstdlib>

#include "engine/nccl_entry.h"
#include "openrnn/train_communicator.h"
#include "train/group/group.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

/// The number of this process among those of its machine; -1 where nothing says it.
int local_rank() {
  // Of Open MPI, MPICH and its kin, Slurm, torchrun.
  for (const char* name :
       {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", "LOCAL_RANK"}) {
    if (const char* const value = std::getenv(name)) return std::atoi(value);
  }
  return -1;
}

int gpu_of(int rank, const NcclOptions& options) {
  const int gpus = nccl_gpus();
  if (options.device < -1 || options.device >= gpus) {
    throw ArgumentError(message("nccl_communicator", "device ", options.device, ", expected 0 to ",
                                gpus - 1, ", or -1 for that of the rank on its machine"));
  }
  if (options.device >= 0) return options.device;
  const int local = local_rank();
  return (local >= 0 ? local : rank) % gpus;
}

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(Communicator& bootstrap, const NcclOptions& options) : bootstrap_(bootstrap) {
    NcclPlace place{.rank = bootstrap.rank(),
                    .size = bootstrap.size(),
                    .timeout_seconds = options.timeout_seconds,
                    .failure = [&bootstrap] { return bootstrap.failure(); }};
    NcclId id{};
    Group group(bootstrap, Reduction::kExact);
    // Before any waits for the others in NCCL, all know that none lacks anything.
    group.together([&] {
      if (!(options.timeout_seconds > 0.0)) {
        throw ArgumentError(message("nccl_communicator", "a timeout of ", options.timeout_seconds,
                                    " s, expected more than 0"));
      }
      place.gpu = gpu_of(place.rank, options);
      if (group.first()) id = nccl_id();
    });
    const std::string shared = group.text_of_first({id.data(), id.size()});
    shared.copy(id.data(), id.size());
    try {
      nccl_ = nccl_rank(place, id);
    } catch (const std::exception& error) {
      // The others wait in NCCL, and nobody has a communicator yet to end that.
      if (failure().empty()) bootstrap.abort(error.what());
      throw;
    }
  }

  int rank() const override { return bootstrap_.rank(); }
  int size() const override { return bootstrap_.size(); }
  void all_to_all(const void* send, void* receive, std::size_t bytes) override {
    nccl_->all_to_all(send, receive, bytes);
  }
  void all_gather(const void* send, void* receive, std::size_t bytes) override {
    nccl_->all_gather(send, receive, bytes);
  }
  void all_reduce(DType dtype, std::int64_t count, void* values) override {
    if (dtype != DType::kFloat32 && dtype != DType::kFloat64) {
      throw ArgumentError(message("Communicator", "all_reduce of ", dtype_name(dtype),
                                  ", expected float32 or float64"));
    }
    nccl_->all_reduce(dtype == DType::kFloat64, static_cast<std::size_t>(count), values);
  }
  void broadcast(void* data, std::size_t bytes, int root) override {
    nccl_->broadcast(data, bytes, root);
  }
  void barrier() override {
    float nothing = 0.0f;
    all_reduce(DType::kFloat32, 1, &nothing);
  }
  void abort(const std::string& why) override {
    nccl_->abort();
    bootstrap_.abort(why);
  }
  // Each call makes the GPU's context that of its thread.
  bool takes_any_thread() const override { return true; }
  std::string failure() const override { return bootstrap_.failure(); }

 private:
  Communicator& bootstrap_;
  std::unique_ptr<NcclRank> nccl_;
};

}  // namespace

std::unique_ptr<Communicator> nccl_communicator(Communicator& bootstrap,
                                                const NcclOptions& options) {
  return std::make_unique<NcclCommunicator>(bootstrap, options);
}

}  // namespace openrnn::train
