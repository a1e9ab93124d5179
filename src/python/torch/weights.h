// Parameters in tensors of PyTorch, and what an engine packed from them.
#pragma once

#include "openrnn/device.h"
#include "python/torch/network.h"

namespace openrnn::python::torch {

/// Whether a tensor can be read as a piece where it lies.
enum class Readable : std::uint8_t { kYes, kNotContiguous, kOther };

/// Addresses of the pieces, and a hash of all that is in them.
struct Contents {
  std::vector<const void*> at = {};
  std::uint64_t hash = 0;
};

/// The addresses of `tensors`, which must be of the network's dtype and shapes, in host memory and
/// row-major; else says which kind is not. Whatever else Python raises goes through.
Readable read_addresses(const Network& network, nb::handle tensors,
                        std::vector<const void*>& addresses);
std::uint64_t hash_of(const Network& network, const std::vector<const void*>& addresses);
/// The opaque buffer with the pieces.
DeviceArray gathered(const Network& network, const std::vector<const void*>& addresses);

/// Scratch memory for one call at a time over some packed parameters.
struct KeptWorkspace {
  std::unique_ptr<Workspace> workspace;
  std::int64_t batch = 0, time = 0;
  int threads = 0;
};

/// What was packed last, for one module or one list of parameters. Its contents decide whether it
/// still holds, whatever wrote to them. Thread-safe.
class PackedWeights {
 public:
  struct Packed {
    std::shared_ptr<const PackedParams> params;
    std::mutex one_call = {};
    KeptWorkspace kept = {};
  };

  /// Packed from `contents` for `purpose` or more.
  std::shared_ptr<Packed> get(const Network& network, const Contents& contents, PackFor purpose,
                              int threads);
  /// What get() returned last, if it will do; else null.
  std::shared_ptr<Packed> last(PackFor purpose) const;
  std::uint64_t packings() const;
  void drop();

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<Packed> packed_;
  std::uint64_t hash_ = 0, packings_ = 0;
};

}  // namespace openrnn::python::torch
