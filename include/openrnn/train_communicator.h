// Several processes that train one model: what is asked of a message-passing library.
#pragma once

#include <memory>
#include <vector>

#include "openrnn/base.h"

namespace openrnn::train {

/// One of `size` processes, or threads, that call the same functions in the same order. MPI,
/// PyTorch's process groups and others are behind it. Buffers are on the host; each call waits
/// until this process has all that it receives. Not for use by two threads at once.
/// Throws, all of them: EngineError naming what failed; the others may then wait until abort().
class OPENRNN_API Communicator {
 public:
  virtual ~Communicator();
  /// 0 to size() - 1.
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// `send` and `receive` are size() pieces of `bytes` each: piece i goes to and comes from rank i.
  virtual void all_to_all(const void* send, void* receive, std::size_t bytes) = 0;
  /// The `bytes` of each rank as the pieces of `receive`.
  virtual void all_gather(const void* send, void* receive, std::size_t bytes) = 0;
  /// The sum over the ranks takes the place of `values`, of kFloat32 or kFloat64; in any order.
  virtual void all_reduce(DType dtype, std::int64_t count, void* values) = 0;
  /// The bytes of rank `root` take the place of those of the others.
  virtual void broadcast(void* data, std::size_t bytes, int root) = 0;
  /// Returns when all ranks have called it.
  virtual void barrier() = 0;
  /// Ends the calls of the other ranks, now and later, where nothing else would: by an error that
  /// says why where that can be, else (MPI) by ending all processes.
  virtual void abort(const std::string& why) = 0;
  /// Whether another thread may make calls, while no other call runs: what FitOptions::overlap
  /// needs.
  virtual bool takes_any_thread() const { return false; }
  /// Why another rank has called abort(), where that is known without a message; else empty.
  virtual std::string failure() const { return {}; }
};

/// `size` communicators of threads of this process, by rank; each is for one thread.
/// Throws: ArgumentError for a size below 1.
OPENRNN_API std::vector<std::unique_ptr<Communicator>> thread_communicators(int size);

/// Whether mpirun has started this process as one of several: Open MPI's, MPICH's or its kin's.
OPENRNN_API bool started_by_mpi();
/// The processes that mpirun has started; the first call opens libopenrnn_mpi.so and starts MPI.
/// abort() ends all processes. Throws: EngineError naming what is missing where the library was
/// built without MPI, or MPI is not installed.
OPENRNN_API std::unique_ptr<Communicator> mpi_communicator();
/// Ends MPI, for programs that have a communicator of it, when all processes have called it. One
/// that has failed exits without: mpirun then ends the others.
OPENRNN_API void finish_mpi();

/// Options of nccl_communicator().
struct NcclOptions {
  /// The GPU of this rank, by its number among those that the driver shows; -1: the rank among the
  /// processes of its machine, where mpirun, srun or torchrun says it, else the rank, modulo the
  /// number of GPUs. No two ranks can have the same.
  int device = -1;
  /// The longest wait for the other ranks in one call; those that save or validate meanwhile too.
  double timeout_seconds = 1800.0;
};
/// NVIDIA's NCCL between the GPUs of the ranks of `bootstrap`, by which they find each other; all
/// of them call it. It must outlive the result. Buffers are on the host, as of every Communicator,
/// and pass through 32 MiB of each GPU's memory. Opens libnccl.so.2 (2.14 or newer) and the driver.
///
/// abort() is the bootstrap's too: MPI ends all processes, and threads have its text at once.
/// Where nothing says that a rank has ended, the calls of the others fail when NCCL notices it, at
/// the latest after `timeout_seconds`. After an error every call of that rank fails.
///
/// Throws: EngineError naming what is missing (the driver, a GPU, the library, a newer version), or
/// what NCCL said; PeerError in the ranks that miss nothing; ArgumentError for options out of
/// range.
OPENRNN_API std::unique_ptr<Communicator> nccl_communicator(Communicator& bootstrap,
                                                            const NcclOptions& options = {});

/// How the gradients of several processes are added.
enum class Reduction : std::uint8_t {
  /// In the order of GradientSum: each rank gets its slice of all sums, adds it, and the slices are
  /// gathered. The bits do not depend on the number of processes.
  kExact,
  /// By Communicator::all_reduce, in its order.
  kFast,
};
/// 'exact', 'fast'.
OPENRNN_API std::string_view to_string(Reduction reduction);
/// The inverse. Throws: ArgumentError listing the names.
OPENRNN_API Reduction parse_reduction(std::string_view name);

/// What the sums of gradients have cost this process.
struct ReductionCost {
  std::int64_t steps = 0;
  /// Sent to other processes; with kFast what a ring would send.
  std::int64_t bytes = 0;
  /// In messages and their sums, without what the process waited for slower ones to begin.
  double seconds = 0.0;
  /// Of these, those while the backward pass went on.
  double seconds_overlapped = 0.0;
  double seconds_waited = 0.0;
};

/// Another process of the run has failed; it has the error itself.
class OPENRNN_API PeerError : public EngineError {
 public:
  PeerError(int rank, const std::string& text) : EngineError(text), rank_(rank) {}
  int rank() const noexcept { return rank_; }

 private:
  int rank_;
};

}  // namespace openrnn::train
