#include "cpu/steps/rows.h"

namespace openrnn::cpu {

Rows::Rows(const ForwardArgs& args, const Plan& plan, std::int32_t* order)
    : lengths_(args.sequence_lengths),
      order_(order),
      max_time_(args.max_time),
      batch_(args.batch),
      groups_(plan.row_groups) {
  for (std::int64_t b = 0; b < batch_; ++b) order_[b] = static_cast<std::int32_t>(b);
  if (!lengths_) return;
  const auto longer = [this](std::int32_t a, std::int32_t b) {
    return lengths_[a] != lengths_[b] ? lengths_[a] > lengths_[b] : a < b;
  };
  std::sort(order_, order_ + batch_, longer);
}

}  // namespace openrnn::cpu
