#include "cudnn/rnn/descriptors.h"

#include <array>
#include <mutex>
#include <vector>

#include "cudnn/gpu/process_wide.h"

namespace openrnn::cudnn {
namespace {

struct IdleHandles {
  std::mutex mutex;
  std::vector<std::pair<cudnnHandle_t, CUstream>> handles;
};

// Idle handles of every GPU; they are never destroyed.
using AllIdleHandles = std::array<IdleHandles, kMostGpus>;
constinit std::atomic<AllIdleHandles*> all_idle_handles{nullptr};

IdleHandles& idle_handles(int ordinal) {
  return process_wide(all_idle_handles)[static_cast<std::size_t>(ordinal)];
}

// bfloat16 never comes here: unsupported_by_cudnn refuses it.
cudnnDataType_t data_type(DType dtype) {
  if (dtype == DType::kFloat16) return CUDNN_DATA_HALF;
  return dtype == DType::kFloat32 ? CUDNN_DATA_FLOAT : CUDNN_DATA_DOUBLE;
}

// float32 is exact only by FMA: cuDNN's default rounds the operands of products to TF32.
cudnnMathType_t math_type(const RnnSpec& spec) {
  if (spec.dtype == DType::kFloat64) return CUDNN_DEFAULT_MATH;
  if (spec.dtype == DType::kFloat16) return CUDNN_TENSOR_OP_MATH;
  if (spec.compute.math == Math::kTf32) return CUDNN_DEFAULT_MATH;
  return spec.compute.math == Math::kFp16 ? CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION : CUDNN_FMA_MATH;
}

// The activation of a plain network says which of the two it is, whatever its mode.
cudnnRNNMode_t cell_mode(const RnnSpec& spec) {
  if (spec.is_lstm()) return CUDNN_LSTM;
  if (spec.mode == RnnMode::kGru) return CUDNN_GRU;
  const bool is_relu = spec.candidate_activation().kind == CellActivationKind::kRelu;
  return is_relu ? CUDNN_RNN_RELU : CUDNN_RNN_TANH;
}

}  // namespace

// The last used handle has loaded what the next call is likely to need: a recording uses it on its
// own stream, since a new handle may allocate.
BorrowedHandle::BorrowedHandle(const Context& context)
    : ordinal_(context.ordinal()), stream_(context.stream()) {
  const CudnnApi& cudnn = libraries().cudnn;
  IdleHandles& idle = idle_handles(ordinal_);
  CUstream set = nullptr;
  {
    const std::lock_guard lock(idle.mutex);
    if (!idle.handles.empty()) {
      std::tie(handle_, set) = idle.handles.back();
      idle.handles.pop_back();
    }
  }
  if (!handle_) check(cudnn.create(&handle_), "cudnnCreate");
  if (set == stream_) return;
  const cudnnStatus_t answer = cudnn.set_stream(handle_, stream_);
  if (answer != CUDNN_STATUS_SUCCESS) cudnn.destroy(handle_);
  check(answer, "cudnnSetStream");
}

BorrowedHandle::~BorrowedHandle() {
  IdleHandles& idle = idle_handles(ordinal_);
  const std::lock_guard lock(idle.mutex);
  idle.handles.emplace_back(handle_, stream_);
}

RnnDescriptor::RnnDescriptor(Context& context, cudnnHandle_t handle, const RnnSpec& spec,
                             const Variant& variant, const OwnDropout& dropout) {
  const CudnnApi& cudnn = libraries().cudnn;
  generator_ = set_dropout(context, handle, dropout_.get(), dropout);
  const cudnnDataType_t type = data_type(spec.dtype);
  check(cudnn.set_rnn(rnn_.get(), variant.algorithm, cell_mode(spec), CUDNN_RNN_DOUBLE_BIAS,
                      spec.num_dirs() == 2 ? CUDNN_BIDIRECTIONAL : CUDNN_UNIDIRECTIONAL,
                      spec.skips_input() ? CUDNN_SKIP_INPUT : CUDNN_LINEAR_INPUT, type,
                      type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT,
                      math_type(spec), static_cast<std::int32_t>(spec.input_size),
                      static_cast<std::int32_t>(spec.num_units),
                      static_cast<std::int32_t>(spec.hidden_size()),
                      static_cast<std::int32_t>(spec.num_layers), dropout_.get(),
                      variant.padded ? CUDNN_RNN_PADDED_IO_ENABLED : CUDNN_RNN_PADDED_IO_DISABLED),
        "cudnnSetRNNDescriptor_v8");
}

DataOwner data_descriptor(DType dtype, const Variant& variant, std::span<const int> lengths,
                          std::int64_t width) {
  DataOwner data;
  double zero = 0.0;  // all bits 0 in each of the types
  check(libraries().cudnn.set_data(data.get(), data_type(dtype),
                                   variant.padded ? CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED
                                                  : CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED,
                                   lengths.front(), static_cast<int>(lengths.size()),
                                   static_cast<int>(width), lengths.data(), &zero),
        "cudnnSetRNNDataDescriptor");
  return data;
}

TensorOwner state_descriptor(DType dtype, std::int64_t planes, std::int64_t rows,
                             std::int64_t width) {
  TensorOwner tensor;
  const std::array dims = {static_cast<int>(planes), static_cast<int>(rows),
                           static_cast<int>(width)};
  const std::array strides = {dims[1] * dims[2], dims[2], 1};
  check(
      libraries().cudnn.set_tensor(tensor.get(), data_type(dtype), 3, dims.data(), strides.data()),
      "cudnnSetTensorNdDescriptor");
  return tensor;
}

}  // namespace openrnn::cudnn
