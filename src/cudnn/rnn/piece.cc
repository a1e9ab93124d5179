#include "cudnn/rnn/piece.h"

namespace openrnn::cudnn {

Piece::Piece(const PieceCall& call, const Variant& variant)
    : context_(*call.context),
      weights_(*call.weights),
      slice_(call.slice),
      training_(call.training),
      drops_(call.dropout.rate > 0.0),
      variant_(variant),
      x_(data_descriptor(weights_.spec.dtype, variant, slice_.lengths, weights_.spec.input_size)),
      y_(data_descriptor(weights_.spec.dtype, variant, slice_.lengths,
                         weights_.spec.output_size())),
      h_(state_descriptor(weights_.spec.dtype, weights_.spec.num_pseudo_layers(), slice_.rows,
                          weights_.spec.hidden_size())),
      c_(state_descriptor(weights_.spec.dtype, weights_.spec.num_pseudo_layers(), slice_.rows,
                          weights_.spec.num_units)) {
  const BorrowedHandle handle(context_);
  rnn_ =
      std::make_unique<RnnDescriptor>(context_, handle.get(), weights_.spec, variant, call.dropout);
  check(
      libraries().cudnn.temp_space_sizes(
          handle.get(), rnn_->get(), training_ ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE,
          x_.get(), &work_bytes_, &reserve_bytes_),
      "cudnnGetRNNTempSpaceSizes");
  if (!training_) reserve_bytes_ = 0;
}

std::shared_ptr<void> Piece::scratch(std::int64_t elements) const {
  return context_.allocate(static_cast<std::size_t>(elements) * dtype_size(weights_.spec.dtype));
}

void Piece::run_forward(cudnnHandle_t handle, const PieceForward& m, void* reserve) const {
  const std::shared_ptr<void> work = context_.allocate(work_bytes_);
  // The lengths are in the descriptors; a copy on the device is for versions before 8.9.1.
  check(libraries().cudnn.forward(handle, rnn_->get(),
                                  training_ ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE,
                                  nullptr, x_.get(), m.x, y_.get(), m.y, h_.get(), m.hx, m.hy,
                                  c_.get(), m.cx, m.cy, weights_.bytes(), weights_.memory.get(),
                                  work_bytes_, work.get(), reserve_bytes_, reserve),
        "cudnnRNNForward");
}

void Piece::forward(const PieceForward& memory) {
  const BorrowedHandle handle(context_);
  memory_ = memory;
  if (training_) reserve_ = context_.allocate(reserve_bytes_);
  run_forward(handle.get(), memory, reserve_.get());
}

std::shared_ptr<void> Piece::take_reserve(cudnnHandle_t handle) const {
  if (drops_) {
    // The masks of another forward call would be other ones.
    auto copy = context_.allocate(reserve_bytes_);
    context_.copy(copy.get(), reserve_.get(), reserve_bytes_);
    return copy;
  }
  if (reserve_) return std::move(reserve_);
  auto again = context_.allocate(reserve_bytes_);
  const auto y = scratch(slice_.count * weights_.spec.output_size());
  PieceForward memory = memory_;
  memory.y = y.get();
  memory.hy = memory.cy = nullptr;
  run_forward(handle, memory, again.get());
  return again;
}

void Piece::run_backward(cudnnHandle_t handle, const PieceBackward& m, void* reserve) const {
  const CudnnApi& cudnn = libraries().cudnn;
  const std::shared_ptr<void> work = context_.allocate(work_bytes_);
  check(cudnn.backward_data(handle, rnn_->get(), nullptr, y_.get(), memory_.y, m.dy, x_.get(), m.dx,
                            h_.get(), memory_.hx, m.dhy, m.dhx, c_.get(), memory_.cx, m.dcy, m.dcx,
                            weights_.bytes(), weights_.memory.get(), work_bytes_, work.get(),
                            reserve_bytes_, reserve),
        "cudnnRNNBackwardData_v8");
  if (!m.dweights) return;
  check(
      cudnn.backward_weights(handle, rnn_->get(), CUDNN_WGRAD_MODE_ADD, nullptr, x_.get(),
                             memory_.x, h_.get(), memory_.hx, y_.get(), memory_.y, weights_.bytes(),
                             m.dweights, work_bytes_, work.get(), reserve_bytes_, reserve),
      "cudnnRNNBackwardWeights_v8");
}

void Piece::backward(const PieceBackward& memory) const {
  const std::lock_guard lock(mutex_);
  const BorrowedHandle handle(context_);
  const std::shared_ptr<void> reserve = take_reserve(handle.get());
  run_backward(handle.get(), memory, reserve.get());
}

}  // namespace openrnn::cudnn
