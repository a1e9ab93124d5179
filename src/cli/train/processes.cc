#include "cli/train/processes.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "openrnn/base.h"

namespace openrnn::cli {
namespace {

/// Processes of mpirun on this machine; 1 where it does not say.
int processes_here() {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}) {
    if (const char* value = std::getenv(name)) return std::max(1, std::atoi(value));
  }
  return 1;
}

/// mpirun gives each process processors of its own, unless there are too few.
bool bound() {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof(mine), &mine) != 0) return false;
  return CPU_COUNT(&mine) < sysconf(_SC_NPROCESSORS_ONLN);
}

}  // namespace

Processes::Processes(const TrainFlags& flags) {
  const std::string name = flags.communicator.value_or(train::started_by_mpi() ? "mpi" : "none");
  if (name != "none") communicator_ = train::mpi_communicator();
  nccl_ = name == "nccl";
}

void Processes::connect() {
  if (!nccl_) return;
  auto between_gpus = train::nccl_communicator(*communicator_);
  mpi_ = std::move(communicator_);
  communicator_ = std::move(between_gpus);
}

void Processes::share_threads(int threads_flag) const {
  if (!communicator_ || threads_flag > 0 || std::getenv("OPENRNN_NUM_THREADS") || bound()) return;
  set_num_threads(std::max(1, num_threads() / processes_here()));
}

void Processes::finish() {
  if (!communicator_) return;
  (mpi_ ? mpi_ : communicator_)->barrier();
  communicator_.reset();
  mpi_.reset();
  train::finish_mpi();
}

void Processes::abort(const std::string& why) {
  if (communicator_) communicator_->abort(why);
}

}  // namespace openrnn::cli
