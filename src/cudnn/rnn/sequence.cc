#include "cudnn/rnn/sequence.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace openrnn::cudnn {

Sequence::Sequence(Context& context, const ForwardArgs& args, bool moves)
    : context_(context), time_(args.max_time), batch_(args.batch), time_major_(args.time_major) {
  sort_rows(args);
  offsets_.assign(static_cast<std::size_t>(steps()) + 1, 0);
  std::int64_t left = rows();
  for (std::int64_t t = 0; t < steps(); ++t) {
    while (lengths_[static_cast<std::size_t>(left - 1)] <= t) --left;
    offsets_[static_cast<std::size_t>(t) + 1] = offsets_[static_cast<std::size_t>(t)] + left;
  }
  if (moves || !is_packed() || !states_are_packed()) upload();
}

void Sequence::sort_rows(const ForwardArgs& args) {
  const auto length = [&](std::int32_t b) {
    return args.sequence_lengths ? args.sequence_lengths[b] : static_cast<std::int32_t>(time_);
  };
  for (std::int32_t b = 0; b < batch_; ++b) {
    full_ = full_ && length(b) == time_;
    if (length(b) > 0) row_.push_back(b);
  }
  if (args.sequence_lengths) {
    std::stable_sort(row_.begin(), row_.end(),
                     [&](std::int32_t a, std::int32_t b) { return length(a) > length(b); });
  }
  ordered_ = static_cast<std::int64_t>(row_.size()) == batch_;
  place_.assign(static_cast<std::size_t>(batch_), -1);
  for (std::size_t i = 0; i < row_.size(); ++i) {
    lengths_.push_back(length(row_[i]));
    place_[static_cast<std::size_t>(row_[i])] = static_cast<std::int32_t>(i);
    ordered_ = ordered_ && row_[i] == static_cast<std::int32_t>(i);
  }
}

// One block and one copy: offsets first, for their alignment. It is copied while the GPU still
// works on the call before.
void Sequence::upload() {
  const std::size_t offsets = offsets_.size() * sizeof(std::int64_t);
  const std::size_t rows = row_.size() * sizeof(std::int32_t);
  const std::size_t places = place_.size() * sizeof(std::int32_t);
  std::vector<char> bytes(offsets + 2 * rows + places);
  std::memcpy(bytes.data(), offsets_.data(), offsets);
  if (rows) std::memcpy(bytes.data() + offsets, row_.data(), rows);
  if (rows) std::memcpy(bytes.data() + offsets + rows, lengths_.data(), rows);
  if (places) std::memcpy(bytes.data() + offsets + 2 * rows, place_.data(), places);
  memory_ = context_.bring(bytes.data(), bytes.size());
  const char* at = static_cast<const char*>(memory_.get());
  tables_ = {steps(),
             this->rows(),
             reinterpret_cast<const std::int64_t*>(at),
             reinterpret_cast<const std::int32_t*>(at + offsets),
             reinterpret_cast<const std::int32_t*>(at + offsets + rows),
             reinterpret_cast<const std::int32_t*>(at + offsets + 2 * rows)};
}

Slice Sequence::slice(std::int64_t first, std::int64_t last) const {
  Slice slice;
  slice.start = offsets_[static_cast<std::size_t>(first)];
  slice.count = offsets_[static_cast<std::size_t>(last)] - slice.start;
  for (const std::int32_t length : lengths_) {
    if (length <= first) break;
    slice.lengths.push_back(static_cast<int>(std::min<std::int64_t>(length, last) - first));
  }
  slice.rows = static_cast<std::int64_t>(slice.lengths.size());
  return slice;
}

}  // namespace openrnn::cudnn
