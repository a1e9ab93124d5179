#include "train/fit/carried_state.h"

#include <algorithm>

#include "openrnn/ops.h"
#include "train/message.h"

namespace openrnn::train {
namespace {

constexpr std::int64_t kBatchAxis = 1;

}  // namespace

CarriedState::Tensors CarriedState::rows(std::int64_t first, std::int64_t count) const {
  const std::int64_t last = first + count;
  std::vector<Tensors> found;
  std::int64_t covered = 0;
  for (const auto& [begin, piece] : pieces_) {
    const std::int64_t low = std::max(first, begin), high = std::min(last, begin + piece.count);
    if (low >= high) continue;
    covered += high - low;
    found.push_back(piece.state);
    if (high - low == piece.count) continue;
    for (Tensor& each : found.back()) {
      each = ops::slice(each, {kBatchAxis, low - begin, high - low});
    }
  }
  if (covered != 0 && covered != count) {
    throw StateError(
        message("TextTask", "a state of ", covered, " of rows ", first, " to ", last,
                ", expected one of all, or of none: an earlier step was not finished"));
  }
  if (found.size() <= 1) return found.empty() ? Tensors{} : found[0];
  Tensors joined;
  for (std::size_t i = 0; i < found[0].size(); ++i) {
    std::vector<Tensor> parts;
    for (const Tensors& each : found) parts.push_back(each[i]);
    joined.push_back(ops::concat(parts, kBatchAxis));
  }
  return joined;
}

void CarriedState::set(std::int64_t first, std::int64_t count, Tensors state) {
  const std::int64_t last = first + count;
  std::map<std::int64_t, Piece> pieces;
  // What lies around these rows stays.
  const auto keep = [&](std::int64_t low, std::int64_t high) {
    if (low < high) pieces[low] = {high - low, rows(low, high - low)};
  };
  for (const auto& [begin, piece] : pieces_) {
    const std::int64_t end = begin + piece.count;
    keep(begin, std::min(end, first));
    keep(std::max(begin, last), end);
  }
  if (!state.empty()) pieces[first] = {count, std::move(state)};
  pieces_ = std::move(pieces);
}

}  // namespace openrnn::train
