// RAII owners of cuDNN's handles and descriptors.
#pragma once

#include <memory>
#include <span>
#include <tuple>
#include <utility>

#include "cudnn/device/generators.h"
#include "cudnn/rnn/plan.h"

namespace openrnn::cudnn {

/// Owns one descriptor; `Create` and `Destroy` are members of CudnnApi.
template <class Handle, auto Create, auto Destroy>
class Owned {
 public:
  Owned() { check((libraries().cudnn.*Create)(&handle_), "cudnnCreate...Descriptor"); }
  ~Owned() {
    if (handle_) (libraries().cudnn.*Destroy)(handle_);
  }
  Owned(Owned&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Handle get() const noexcept { return handle_; }

 private:
  Handle handle_ = nullptr;
};

using TensorOwner =
    Owned<cudnnTensorDescriptor_t, &CudnnApi::create_tensor, &CudnnApi::destroy_tensor>;
using DropoutOwner =
    Owned<cudnnDropoutDescriptor_t, &CudnnApi::create_dropout, &CudnnApi::destroy_dropout>;
using DataOwner = Owned<cudnnRNNDataDescriptor_t, &CudnnApi::create_data, &CudnnApi::destroy_data>;
using RnnOwner = Owned<cudnnRNNDescriptor_t, &CudnnApi::create_rnn, &CudnnApi::destroy_rnn>;

/// A handle of cuDNN on the stream of a GPU, borrowed from a list of idle ones: a handle is for one
/// thread at a time, and making one is slow. For a thread where the context is current.
class BorrowedHandle {
 public:
  explicit BorrowedHandle(const Context& context);
  ~BorrowedHandle();
  BorrowedHandle(const BorrowedHandle&) = delete;
  BorrowedHandle& operator=(const BorrowedHandle&) = delete;
  cudnnHandle_t get() const noexcept { return handle_; }

 private:
  int ordinal_;
  CUstream stream_;
  cudnnHandle_t handle_ = nullptr;
};

/// A network as cuDNN's descriptor. Backward must use the same object as its forward call.
class RnnDescriptor {
 public:
  RnnDescriptor(Context& context, cudnnHandle_t handle, const RnnSpec& spec, const Variant& variant,
                const OwnDropout& dropout);
  cudnnRNNDescriptor_t get() const noexcept { return rnn_.get(); }

 private:
  DropoutOwner dropout_;
  std::shared_ptr<void> generator_;
  RnnOwner rnn_;
};

/// Sequences of `width`, for a packed slice of a batch.
DataOwner data_descriptor(DType dtype, const Variant& variant, std::span<const int> lengths,
                          std::int64_t width);
/// [planes, rows, width], dense.
TensorOwner state_descriptor(DType dtype, std::int64_t planes, std::int64_t rows,
                             std::int64_t width);

}  // namespace openrnn::cudnn
