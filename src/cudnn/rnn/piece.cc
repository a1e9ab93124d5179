#include "cudnn/rnn/piece.h"

#include "cudnn/rnn/aligned.h"

namespace openrnn::cudnn {

Piece::Piece(const PieceCall& call, const Variant& variant)
    : context_(*call.context),
      weights_(call.weights),
      slice_(call.slice),
      training_(call.training),
      drops_(call.dropout.rate > 0.0),
      variant_(variant),
      x_(data_descriptor(weights_->spec.dtype, variant, slice_.lengths, weights_->spec.input_size)),
      y_(data_descriptor(weights_->spec.dtype, variant, slice_.lengths,
                         weights_->spec.output_size())),
      h_(state_descriptor(weights_->spec.dtype, weights_->spec.num_pseudo_layers(), slice_.rows,
                          weights_->spec.hidden_size())),
      c_(state_descriptor(weights_->spec.dtype, weights_->spec.num_pseudo_layers(), slice_.rows,
                          weights_->spec.num_units)) {
  const BorrowedHandle handle(context_);
  rnn_ = std::make_unique<RnnDescriptor>(context_, handle.get(), weights_->spec, variant,
                                         call.dropout);
  check(
      libraries().cudnn.temp_space_sizes(
          handle.get(), rnn_->get(), training_ ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE,
          x_.get(), &work_bytes_, &reserve_bytes_),
      "cudnnGetRNNTempSpaceSizes");
  if (!training_) reserve_bytes_ = 0;
}

std::shared_ptr<void> Piece::scratch(std::int64_t elements) const {
  return context_.allocate(static_cast<std::size_t>(elements) * dtype_size(weights_->spec.dtype));
}

Piece::Sizes Piece::sizes() const {
  const RnnSpec& spec = weights_->spec;
  const std::int64_t planes = spec.num_pseudo_layers() * slice_.rows;
  return {slice_.count * spec.input_size, slice_.count * spec.output_size(),
          planes * spec.hidden_size(), planes * spec.num_units, weights_->map->size};
}

void Piece::run_forward(cudnnHandle_t handle, const PieceForward& m, void* reserve) const {
  const std::shared_ptr<void> work = context_.allocate(work_bytes_);
  const Sizes size = sizes();
  Aligned at(context_, dtype_size(weights_->spec.dtype));
  const void* const weights = at.in(weights_->memory.get(), size.weights);
  const void* const x = at.in(m.x, size.x);
  const void* const hx = at.in(m.hx, size.h);
  const void* const cx = at.in(m.cx, size.c);
  void* const y = at.out(m.y, size.y);
  void* const hy = at.out(m.hy, size.h);
  void* const cy = at.out(m.cy, size.c);
  // The lengths are in the descriptors; a copy on the device is for versions before 8.9.1.
  check(libraries().cudnn.forward(
            handle, rnn_->get(), training_ ? CUDNN_FWD_MODE_TRAINING : CUDNN_FWD_MODE_INFERENCE,
            nullptr, x_.get(), x, y_.get(), y, h_.get(), hx, hy, c_.get(), cx, cy,
            weights_->bytes(), weights, work_bytes_, work.get(), reserve_bytes_, reserve),
        "cudnnRNNForward");
  at.give();
}

void Piece::forward(const PieceForward& memory) {
  const BorrowedHandle handle(context_);
  memory_ = memory;
  if (training_) reserve_ = context_.allocate(reserve_bytes_);
  run_forward(handle.get(), memory, reserve_.get());
}

std::shared_ptr<void> Piece::take_reserve(cudnnHandle_t handle) const {
  if (drops_) {
    // Another forward call would have other masks.
    auto copy = context_.allocate(reserve_bytes_);
    context_.copy(copy.get(), reserve_.get(), reserve_bytes_);
    return copy;
  }
  if (reserve_) return std::move(reserve_);
  auto again = context_.allocate(reserve_bytes_);
  const auto y = scratch(slice_.count * weights_->spec.output_size());
  PieceForward memory = memory_;
  memory.y = y.get();
  memory.hy = memory.cy = nullptr;
  run_forward(handle, memory, again.get());
  return again;
}

void Piece::run_backward(cudnnHandle_t handle, const PieceBackward& m, void* reserve) const {
  const CudnnApi& cudnn = libraries().cudnn;
  const std::shared_ptr<void> work = context_.allocate(work_bytes_);
  const Sizes size = sizes();
  Aligned at(context_, dtype_size(weights_->spec.dtype));
  const void* const y = at.in(memory_.y, size.y);
  const void* const hx = at.in(memory_.hx, size.h);
  const void* const cx = at.in(memory_.cx, size.c);
  const void* const dy = at.in(m.dy, size.y);
  const void* const dhy = at.in(m.dhy, size.h);
  const void* const dcy = at.in(m.dcy, size.c);
  void* const dx = at.out(m.dx, size.x);
  void* const dhx = at.out(m.dhx, size.h);
  void* const dcx = at.out(m.dcx, size.c);
  check(cudnn.backward_data(handle, rnn_->get(), nullptr, y_.get(), y, dy, x_.get(), dx, h_.get(),
                            hx, dhy, dhx, c_.get(), cx, dcy, dcx, weights_->bytes(),
                            at.in(weights_->memory.get(), size.weights), work_bytes_, work.get(),
                            reserve_bytes_, reserve),
        "cudnnRNNBackwardData_v8");
  if (m.dweights) {
    check(cudnn.backward_weights(handle, rnn_->get(), CUDNN_WGRAD_MODE_ADD, nullptr, x_.get(),
                                 at.in(memory_.x, size.x), h_.get(), hx, y_.get(), y,
                                 weights_->bytes(), at.in_out(m.dweights, size.weights),
                                 work_bytes_, work.get(), reserve_bytes_, reserve),
          "cudnnRNNBackwardWeights_v8");
  }
  at.give();
}

void Piece::backward(const PieceBackward& memory) const {
  const std::lock_guard lock(mutex_);
  const BorrowedHandle handle(context_);
  const std::shared_ptr<void> reserve = take_reserve(handle.get());
  run_backward(handle.get(), memory, reserve.get());
}

void Piece::renew(const PartWeights& weights, std::shared_ptr<void> reserve) const {
  const std::lock_guard lock(mutex_);
  weights_ = &weights;
  reserve_ = std::move(reserve);
}

}  // namespace openrnn::cudnn
