// Functions of NVIDIA's libraries that a test listens to, or answers in place of.
#pragma once

#include <atomic>
#include <functional>
#include <utility>

#include "cudnn/load/libraries.h"
#include "cudnn/load/nccl_api.h"

namespace openrnn::testing {

inline cudnn::DriverApi& api_of(const cudnn::DriverApi*) {
  return const_cast<cudnn::DriverApi&>(cudnn::libraries().driver);
}
inline cudnn::CudnnApi& api_of(const cudnn::CudnnApi*) {
  return const_cast<cudnn::CudnnApi&>(cudnn::libraries().cudnn);
}
inline cudnn::CublasApi& api_of(const cudnn::CublasApi*) {
  return const_cast<cudnn::CublasApi&>(cudnn::libraries().cublas);
}
inline cudnn::NcclApi& api_of(const cudnn::NcclApi*) {
  return const_cast<cudnn::NcclApi&>(cudnn::nccl().api);
}

template <auto Which, class Type = decltype(Which)>
class Instead;

/// While it lives, the library calls `work(own, arguments..)` where it would call `own`, the
/// function that the member `Which` of an api points to. One at a time for each function.
template <auto Which, class Api, class Answer, class... Arguments>
class Instead<Which, Answer (*Api::*)(Arguments...)> {
 public:
  using Function = Answer (*)(Arguments...);

  explicit Instead(std::function<Answer(Function, Arguments...)> work) {
    work_ = std::move(work);
    own_ = std::exchange(slot(), &call);
  }
  ~Instead() { slot() = own_; }
  Instead(const Instead&) = delete;
  Instead& operator=(const Instead&) = delete;

 private:
  static Function& slot() { return api_of(static_cast<const Api*>(nullptr)).*Which; }
  static Answer call(Arguments... arguments) { return work_(own_, arguments...); }

  static inline std::function<Answer(Function, Arguments...)> work_;
  static inline Function own_ = nullptr;
};

/// What was made of one kind, by any thread, and not yet given back.
template <auto Make, auto Give>
struct Balance {
  std::atomic<int> made = 0, alive = 0;
  Instead<Make> makes{[this](auto own, auto... arguments) {
    ++made;
    ++alive;
    return own(arguments...);
  }};
  Instead<Give> gives{[this](auto own, auto... arguments) {
    --alive;
    return own(arguments...);
  }};
};

}  // namespace openrnn::testing
