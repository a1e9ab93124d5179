// The forward calls of the engine for one element type.
#pragma once

#include <memory>

#include "cpu/forward/scratch.h"
#include "cpu/steps/saved.h"
#include "cpu/threading/barrier.h"

namespace openrnn::cpu {

/// Scratch memory for calls up to a size on up to a number of threads.
template <class T>
class CpuWorkspace final : public Workspace {
 public:
  CpuWorkspace(std::shared_ptr<const PackedParams> params, const Room& room);

  const PackedParams* params() const noexcept { return params_.get(); }
  const Room& room() const noexcept { return room_; }
  /// The memory for a call of this size. Throws: ArgumentError when it is larger than the room.
  Scratch<T> carve(const CpuPacked<T>& packed, const Room& call) const;
  Barrier* barriers() const noexcept { return barriers_.get(); }

 private:
  std::shared_ptr<const PackedParams> params_;
  Room room_;
  Block memory_;
  std::unique_ptr<Barrier[]> barriers_;
};

/// One for calls that allocate nothing, the first one included.
template <class T>
std::unique_ptr<Workspace> prepared_workspace(std::shared_ptr<const PackedParams> params,
                                              const Room& room);

template <class T>
void forward_call(const ForwardArgs& args, Workspace* workspace);

template <class T>
std::unique_ptr<SavedForward> forward_saving_call(const ForwardArgs& args);

/// What that left in args.reserve.
template <class T>
std::unique_ptr<SavedForward> saved_in_reserve(const ForwardArgs& args);

/// The same for a backward pass that computes the call again, by args.recompute.
template <class T>
std::unique_ptr<SavedForward> forward_recomputed_call(const ForwardArgs& args);

extern template std::unique_ptr<Workspace> prepared_workspace<float>(
    std::shared_ptr<const PackedParams>, const Room&);
extern template std::unique_ptr<Workspace> prepared_workspace<double>(
    std::shared_ptr<const PackedParams>, const Room&);
extern template void forward_call<float>(const ForwardArgs&, Workspace*);
extern template void forward_call<double>(const ForwardArgs&, Workspace*);
extern template std::unique_ptr<SavedForward> forward_saving_call<float>(const ForwardArgs&);
extern template std::unique_ptr<SavedForward> forward_saving_call<double>(const ForwardArgs&);
extern template std::unique_ptr<SavedForward> saved_in_reserve<float>(const ForwardArgs&);
extern template std::unique_ptr<SavedForward> saved_in_reserve<double>(const ForwardArgs&);
extern template std::unique_ptr<SavedForward> forward_recomputed_call<float>(const ForwardArgs&);
extern template std::unique_ptr<SavedForward> forward_recomputed_call<double>(const ForwardArgs&);

}  // namespace openrnn::cpu
