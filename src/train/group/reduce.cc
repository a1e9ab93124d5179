// Exact: each rank adds its slice of every piece. Arrays travel as one flat array, cut into pieces.
#include "train/group/reduce.h"

#include <algorithm>
#include <cstring>

#include "openrnn/runtime.h"

namespace openrnn::train {
namespace {

// Bounds the memory of the messages; but slices of 64 KiB take as long as the latency of a message
// at 100 Gbit/s, and smaller ones would be all latency.
constexpr std::size_t kPieceBytes = std::size_t{16} << 20, kSliceBytes = std::size_t{64} << 10;

/// x + -0.0 is x for every x, of either sign: what an array that is left out adds.
void fill_nothing(DType dtype, std::size_t count, std::byte* to) {
  if (dtype == DType::kFloat32) {
    std::fill_n(reinterpret_cast<float*>(to), count, -0.0F);
  } else {
    std::fill_n(reinterpret_cast<double*>(to), count, -0.0);
  }
}

/// Calls visit(part, offset, bytes, place) for each part's bytes of [begin, end) of all parts one
/// after another; `place` counts from begin.
template <class Visit>
void each_part(const std::vector<SharedPart>& parts, std::size_t begin, std::size_t end,
               Visit&& visit) {
  std::size_t start = 0;
  for (const SharedPart& each : parts) {
    const std::size_t stop = start + each.bytes;
    const std::size_t low = std::max(begin, start), high = std::min(end, stop);
    if (low < high) visit(each, low - start, high - low, low - begin);
    start = stop;
  }
}

/// Leaves 0, 1, .. of `bytes` each: the sum by the tree takes the place of the first.
void add_leaves(Adding adding, DType dtype, std::size_t leaves, std::size_t bytes,
                std::byte* data) {
  const Device& cpu = device("cpu");
  const auto count = static_cast<std::int64_t>(bytes / dtype_size(dtype));
  for (std::size_t step = 1; step < leaves; step *= 2) {
    for (std::size_t i = 0; i + step < leaves; i += 2 * step) {
      accumulate(cpu, adding, dtype, count, data + (i + step) * bytes, data + i * bytes);
    }
  }
}

class Piece {
 public:
  Piece(Communicator& communicator, DType dtype, Adding adding)
      : communicator_(communicator),
        dtype_(dtype),
        adding_(adding),
        ranks_(static_cast<std::size_t>(communicator.size())) {}

  /// Of `bytes` bytes, rounded up to slices of equal size.
  void resize(std::size_t bytes) {
    const std::size_t unit = dtype_size(dtype_);
    slice_ = (bytes / unit + ranks_ - 1) / ranks_ * unit;
    // From the device's pool, which has them again at the next step.
    values_ = device("cpu").allocate(slice_ * ranks_);
    received_ = device("cpu").allocate(slice_ * ranks_);
    fill_nothing(dtype_, slice_ * ranks_ / unit, data());
  }
  std::byte* data() { return static_cast<std::byte*>(values_.get()); }

  std::int64_t exact() {
    auto* const leaves = static_cast<std::byte*>(received_.get());
    communicator_.all_to_all(data(), leaves, slice_);
    add_leaves(adding_, dtype_, ranks_, slice_, leaves);
    communicator_.all_gather(leaves, data(), slice_);
    return sent();
  }
  std::int64_t fast() {
    const std::size_t count = slice_ * ranks_ / dtype_size(dtype_);
    communicator_.all_reduce(dtype_, static_cast<std::int64_t>(count), data());
    return sent();
  }

 private:
  /// Both ways, all slices but the own one.
  std::int64_t sent() const { return static_cast<std::int64_t>(2 * (ranks_ - 1) * slice_); }

  Communicator& communicator_;
  DType dtype_;
  Adding adding_;
  std::size_t ranks_, slice_ = 0;
  std::shared_ptr<void> values_, received_;
};

}  // namespace

std::int64_t reduce(Communicator& communicator, Reduction reduction, DType dtype,
                    const std::vector<SharedPart>& parts, Adding adding) {
  std::size_t all = 0;
  for (const SharedPart& each : parts) all += each.bytes;
  const std::size_t most =
      std::max(kPieceBytes, kSliceBytes * static_cast<std::size_t>(communicator.size()));
  Piece piece(communicator, dtype, adding);
  std::int64_t sent = 0;
  for (std::size_t begin = 0; begin < all; begin += most) {
    const std::size_t end = std::min(all, begin + most);
    if (begin == 0 || end - begin != most) piece.resize(end - begin);
    each_part(parts, begin, end,
              [&](const SharedPart& each, std::size_t from, std::size_t bytes, std::size_t place) {
                std::byte* const to = piece.data() + place;
                if (!each.present) return fill_nothing(dtype, bytes / dtype_size(dtype), to);
                each.device->download(to, static_cast<const std::byte*>(each.data) + from, bytes);
              });
    sent += reduction == Reduction::kExact ? piece.exact() : piece.fast();
    each_part(parts, begin, end,
              [&](const SharedPart& each, std::size_t to, std::size_t bytes, std::size_t place) {
                each.device->upload(static_cast<std::byte*>(each.data) + to, piece.data() + place,
                                    bytes);
              });
  }
  return sent;
}

double tree_sum(std::vector<std::optional<double>> numbers) {
  for (std::size_t step = 1; step < numbers.size(); step *= 2) {
    for (std::size_t i = 0; i + step < numbers.size(); i += 2 * step) {
      const std::optional<double> right = numbers[i + step];
      if (right) numbers[i] = numbers[i] ? *numbers[i] + *right : *right;
    }
  }
  return numbers[0].value_or(0.0);
}

}  // namespace openrnn::train
