// A batch of sequences in cuDNN's packed layout.
#pragma once

#include <memory>
#include <vector>

#include "cudnn/gpu/context.h"
#include "cudnn/kernels/sequence_arguments.h"
#include "openrnn/engine.h"

namespace openrnn::cudnn {

/// The steps [first, last) of a packed batch, in the rows that reach the first of them.
struct Slice {
  std::int64_t rows = 0;
  /// Packed vectors before it, and in it.
  std::int64_t start = 0, count = 0;
  std::vector<int> lengths;  // [rows], falling
  std::int64_t steps() const { return lengths.empty() ? 0 : lengths.front(); }
  bool even() const { return lengths.empty() || lengths.front() == lengths.back(); }
};

/// Rows sorted by length, longest first, without the empty ones and without padding: cuDNN's
/// packed layout. cuDNN never gets an empty row, which it refuses, nor padding, which it might
/// read. Immutable.
class Sequence {
 public:
  /// `moves`: whether kernels will work on packed vectors; else a batch that is already packed
  /// copies no tables to the GPU. For a thread where the context is current.
  Sequence(Context& context, const ForwardArgs& args, bool moves);

  Context& context() const noexcept { return context_; }
  std::int64_t time() const noexcept { return time_; }
  std::int64_t batch() const noexcept { return batch_; }
  bool time_major() const noexcept { return time_major_; }
  /// Rows that are not empty, steps of the longest, steps of all.
  std::int64_t rows() const noexcept { return static_cast<std::int64_t>(lengths_.size()); }
  std::int64_t steps() const noexcept { return lengths_.empty() ? 0 : lengths_.front(); }
  std::int64_t count() const noexcept { return offsets_.back(); }
  /// Whether the caller's sequence arrays are packed as they are; and the states.
  bool is_packed() const noexcept { return full_ && time_major_; }
  bool states_are_packed() const noexcept { return ordered_ && time_major_; }

  Slice slice(std::int64_t first, std::int64_t last) const;
  Slice all() const { return slice(0, steps()); }
  /// For kernels.
  const gpu::PackedRows& tables() const noexcept { return tables_; }

 private:
  void sort_rows(const ForwardArgs& args);
  void upload();

  Context& context_;
  std::int64_t time_, batch_;
  bool time_major_, full_ = true, ordered_ = true;
  std::vector<std::int32_t> row_, lengths_, place_;
  std::vector<std::int64_t> offsets_;
  std::shared_ptr<void> memory_;
  gpu::PackedRows tables_{};
};

/// Arrays between the caller's form and the packed one. For a thread where the context is current.
class SequenceCopier {
 public:
  SequenceCopier(const Sequence& sequence, const RnnSpec& spec);

  /// A packed copy of a sequence array; when `borrow`, the array itself if it is packed as it is.
  std::shared_ptr<void> pack(const void* from, std::int64_t width, bool borrow) const;
  /// Padding becomes 0.
  void unpack(const void* from, std::int64_t width, void* to) const;
  /// A packed copy [L*D, rows, width] of states; null gives null.
  std::shared_ptr<void> pack_states(const void* from, std::int64_t width) const;
  /// Empty rows get those of `other`, zeros if it is null. `to` null: nothing is done.
  void unpack_states(const void* from, std::int64_t width, const void* other, void* to) const;

  /// Memory for packed vectors, and for packed states of `planes` pseudo-layers.
  std::shared_ptr<void> vectors(std::int64_t width) const;
  std::shared_ptr<void> states(std::int64_t width) const;

  std::size_t element_bytes() const noexcept { return bytes_; }
  gpu::Number number() const noexcept { return number_; }
  /// to = from * mask of `layer`'s output; they may be the same memory.
  void mask(DropoutKey key, std::int64_t layer, double rate, std::int64_t width, const void* from,
            void* to) const;
  /// Copies or adds packed vectors.
  struct Move {
    const void* from = nullptr;
    std::int64_t from_stride = 0;
    void* to = nullptr;
    std::int64_t to_stride = 0, width = 0;
    bool reversed = false, adds = false;
  };
  void move(const Move& move) const;

 private:
  gpu::PackArguments pack_arguments(const void* from, std::int64_t width, void* to) const;
  gpu::StateArguments state_arguments(const void* from, std::int64_t width, const void* other,
                                      void* to) const;

  const Sequence& sequence_;
  Context& context_;
  std::int64_t planes_;
  std::size_t bytes_;
  gpu::Number number_;
};

}  // namespace openrnn::cudnn
