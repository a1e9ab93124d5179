// The processes of mpirun that train together.
#pragma once

#include <memory>

#include "cli/flags.h"

namespace openrnn::cli {

/// This process among them; it is alone, and all functions do nothing, unless the flags or mpirun
/// say otherwise.
class Processes {
 public:
  /// Throws: EngineError where MPI is asked for and missing.
  explicit Processes(const TrainFlags& flags);
  train::Communicator* communicator() const { return communicator_.get(); }
  bool first() const { return !communicator_ || communicator_->rank() == 0; }
  int size() const { return communicator_ ? communicator_->size() : 1; }
  /// Has their gradients pass between GPUs where the flags say so. All call it. Throws: as
  /// nccl_communicator().
  void connect();
  /// Without a flag, the processes of a machine share its processors.
  void share_threads(int threads_flag) const;
  /// All is done, or all have been told that it is not: waits for the others and ends MPI.
  void finish();
  /// Not all know that this one has failed: ends them.
  void abort(const std::string& why);

 private:
  bool nccl_ = false;
  std::unique_ptr<train::Communicator> mpi_, communicator_;
};

}  // namespace openrnn::cli
