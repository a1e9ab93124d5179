#include "cudnn/device/launch.h"
#include "cudnn/rnn/sequence.h"

namespace openrnn::cudnn {
namespace {

// The widest word that divides vectors of that many bytes at these addresses.
std::int32_t word_bytes(std::size_t vector_bytes, std::initializer_list<const void*> addresses) {
  std::size_t bits = vector_bytes | 16;
  for (const void* address : addresses) bits |= reinterpret_cast<std::uintptr_t>(address);
  return static_cast<std::int32_t>(bits & (~bits + 1));
}

}  // namespace

SequenceCopier::SequenceCopier(const Sequence& sequence, const RnnSpec& spec)
    : sequence_(sequence),
      context_(sequence.context()),
      planes_(spec.num_pseudo_layers()),
      bytes_(dtype_size(spec.dtype)),
      number_(number_of("cudnn", spec.dtype)) {}

std::shared_ptr<void> SequenceCopier::vectors(std::int64_t width) const {
  return context_.allocate(static_cast<std::size_t>(sequence_.count() * width) * bytes_);
}

std::shared_ptr<void> SequenceCopier::states(std::int64_t width) const {
  return context_.allocate(static_cast<std::size_t>(planes_ * sequence_.rows() * width) * bytes_);
}

gpu::PackArguments SequenceCopier::pack_arguments(const void* from, std::int64_t width,
                                                  void* to) const {
  gpu::PackArguments a{};
  a.packed = sequence_.tables();
  a.time = sequence_.time();
  a.batch = sequence_.batch();
  a.word_bytes = word_bytes(static_cast<std::size_t>(width) * bytes_, {from, to});
  a.words = width * static_cast<std::int64_t>(bytes_) / a.word_bytes;
  a.from = from;
  a.to = to;
  a.step_stride = a.words * (sequence_.time_major() ? a.batch : 1);
  a.row_stride = a.words * (sequence_.time_major() ? 1 : a.time);
  return a;
}

std::shared_ptr<void> SequenceCopier::pack(const void* from, std::int64_t width,
                                           bool borrow) const {
  if (borrow && sequence_.is_packed()) {
    return {std::shared_ptr<void>(), const_cast<void*>(from)};
  }
  std::shared_ptr<void> to = vectors(width);
  const std::int64_t count = sequence_.count();
  if (sequence_.is_packed()) {
    context_.copy(to.get(), from, static_cast<std::size_t>(count * width) * bytes_);
  } else if (count > 0) {
    const gpu::PackArguments a = pack_arguments(from, width, to.get());
    launch(context_, "openrnn_pack", for_cells(a.packed.steps * a.packed.rows, a.words), a);
  }
  return to;
}

void SequenceCopier::unpack(const void* from, std::int64_t width, void* to) const {
  if (sequence_.time() * sequence_.batch() == 0 || from == to) return;
  if (sequence_.is_packed()) {
    context_.copy(to, from, static_cast<std::size_t>(sequence_.count() * width) * bytes_);
    return;
  }
  const gpu::PackArguments a = pack_arguments(from, width, to);
  launch(context_, "openrnn_unpack", for_cells(a.time * a.batch, a.words), a);
}

gpu::StateArguments SequenceCopier::state_arguments(const void* from, std::int64_t width,
                                                    const void* other, void* to) const {
  gpu::StateArguments a{};
  a.packed = sequence_.tables();
  a.planes = planes_;
  a.batch = sequence_.batch();
  a.word_bytes = word_bytes(static_cast<std::size_t>(width) * bytes_, {from, other, to});
  a.words = width * static_cast<std::int64_t>(bytes_) / a.word_bytes;
  a.from = from;
  a.other = other;
  a.to = to;
  a.plane_stride = a.words * (sequence_.time_major() ? a.batch : 1);
  a.row_stride = a.words * (sequence_.time_major() ? 1 : planes_);
  return a;
}

std::shared_ptr<void> SequenceCopier::pack_states(const void* from, std::int64_t width) const {
  if (!from) return nullptr;
  std::shared_ptr<void> to = states(width);
  const std::int64_t vectors = planes_ * sequence_.rows();
  if (sequence_.states_are_packed()) {
    context_.copy(to.get(), from, static_cast<std::size_t>(vectors * width) * bytes_);
  } else if (vectors > 0) {
    const gpu::StateArguments a = state_arguments(from, width, nullptr, to.get());
    launch(context_, "openrnn_pack_states", for_cells(vectors, a.words), a);
  }
  return to;
}

void SequenceCopier::unpack_states(const void* from, std::int64_t width, const void* other,
                                   void* to) const {
  const std::int64_t vectors = planes_ * sequence_.batch();
  if (!to || vectors == 0) return;
  if (sequence_.states_are_packed()) {
    context_.copy(to, from, static_cast<std::size_t>(vectors * width) * bytes_);
    return;
  }
  const gpu::StateArguments a = state_arguments(from, width, other, to);
  launch(context_, "openrnn_unpack_states", for_cells(vectors, a.words), a);
}

void SequenceCopier::mask(DropoutKey key, std::int64_t layer, double rate, std::int64_t width,
                          const void* from, void* to) const {
  gpu::MaskArguments a{};
  a.packed = sequence_.tables();
  a.number = number_;
  a.width = width;
  a.seed = key.seed;
  a.call = key.call;
  a.layer = static_cast<std::uint32_t>(layer);
  a.first_row = static_cast<std::uint32_t>(key.first_row);
  a.rate = rate;
  a.from = from;
  a.to = to;
  launch(context_, "openrnn_mask", for_cells(a.packed.steps * a.packed.rows, (width + 3) / 4), a);
}

void SequenceCopier::move(const Move& m) const {
  gpu::MoveArguments a{};
  a.packed = sequence_.tables();
  a.number = number_;
  a.reversed = m.reversed;
  a.adds = m.adds;
  a.width = m.width;
  a.from = m.from;
  a.to = m.to;
  a.from_stride = m.from_stride;
  a.to_stride = m.to_stride;
  launch(context_, "openrnn_move", for_cells(a.packed.steps * a.packed.rows, m.width), a);
}

}  // namespace openrnn::cudnn
