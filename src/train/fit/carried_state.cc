#include "train/fit/carried_state.h"

#include <algorithm>

#include "openrnn/ops.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

constexpr std::int64_t kBatchAxis = 1;

}  // namespace

void CarriedState::begin(std::int64_t first) {
  if (left_.empty() || first >= left_.back().first + left_.back().count) return;
  before_ = std::exchange(left_, {});
}

CarriedState::Tensors CarriedState::before(std::int64_t first, std::int64_t count) const {
  const std::int64_t known = covered(before_, first, count);
  if (before_.empty() || known == count) return rows(before_, first, count);
  throw StateError(message("TextTask", "a state of ", known, " of rows ", first, " to ",
                           first + count,
                           ", expected one of all: an earlier step was not finished"));
}

void CarriedState::leave(std::int64_t first, std::int64_t count, Tensors state) {
  left_.push_back({first, count, std::move(state)});
}

CarriedState::Tensors CarriedState::latest(std::int64_t batch) const {
  const bool finished = covered(left_, 0, batch) == batch;
  return finished ? rows(left_, 0, batch) : before(0, batch);
}

void CarriedState::gather(Communicator& communicator, const ops::BatchPart& own) {
  // Nothing is left before the first step, and all of it after a restore.
  if (left_.empty() || covered(left_, 0, own.whole_batch) == own.whole_batch) return;
  const auto ranks = static_cast<std::size_t>(communicator.size());
  Parts all(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    all[rank].first = static_cast<std::int64_t>(rank) * own.rows;
    all[rank].count = own.rows;
  }
  for (const Tensor& each : rows(left_, own.first_row, own.rows)) {
    const Array mine = each.to_host();
    std::vector<std::byte> received(mine.size_bytes() * ranks);
    communicator.all_gather(mine.data(), received.data(), mine.size_bytes());
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      const ConstArrayView theirs{received.data() + rank * mine.size_bytes(), mine.dtype(),
                                  mine.shape()};
      all[rank].state.emplace_back(DeviceArray::from_host(each.device(), theirs));
    }
  }
  left_ = std::move(all);
}

void CarriedState::load(std::int64_t batch, Tensors state) {
  before_.clear();
  left_.clear();
  if (!state.empty()) leave(0, batch, std::move(state));
}

std::int64_t CarriedState::covered(const Parts& parts, std::int64_t first, std::int64_t count) {
  std::int64_t sum = 0;
  for (const Part& part : parts) {
    const std::int64_t low = std::max(first, part.first);
    const std::int64_t high = std::min(first + count, part.first + part.count);
    sum += std::max<std::int64_t>(high - low, 0);
  }
  return sum;
}

CarriedState::Tensors CarriedState::rows(const Parts& parts, std::int64_t first,
                                         std::int64_t count) {
  std::vector<Tensors> found;
  for (const Part& part : parts) {
    const std::int64_t low = std::max(first, part.first);
    const std::int64_t high = std::min(first + count, part.first + part.count);
    if (low >= high) continue;
    found.push_back(part.state);
    if (high - low == part.count) continue;
    for (Tensor& each : found.back()) {
      each = ops::slice(each, {kBatchAxis, low - part.first, high - low});
    }
  }
  if (found.size() <= 1) return found.empty() ? Tensors{} : found[0];
  Tensors joined;
  for (std::size_t i = 0; i < found[0].size(); ++i) {
    std::vector<Tensor> pieces;
    for (const Tensors& each : found) pieces.push_back(each[i]);
    joined.push_back(ops::concat(pieces, kBatchAxis));
  }
  return joined;
}

}  // namespace openrnn::train
