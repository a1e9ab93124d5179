#include "openrnn/device.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace openrnn {
namespace {

/// Of a device that has downloaded at once.
class DoneReading final : public Reading {
 public:
  DoneReading(const Device& device, const void* from, std::size_t bytes) : bytes_(bytes) {
    device.download(bytes_.data(), from, bytes);
  }
  const void* bytes() override { return bytes_.data(); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace

StepDecision decide(double squares, double loss, const DecisionArgs& args) {
  StepDecision found;
  found.norm = std::sqrt(squares);
  found.loss = loss;
  if (args.clip_norm > 0.0 && found.norm > args.clip_norm) {
    found.factor = args.clip_norm * std::min(1.0 / found.norm, 1.0 / args.clip_norm);
  }
  const bool finite = std::isfinite(found.norm) && (!args.loss_decides || std::isfinite(loss));
  found.taken = finite ? 1.0 : 0.0;
  return found;
}

std::shared_ptr<void> Device::bring(const void* host, std::size_t bytes) const {
  std::shared_ptr<void> memory = allocate(bytes);
  upload(memory.get(), host, bytes);
  return memory;
}

// ---- For devices whose calls return when their work is done ----

double Device::total_of_squares(std::span<const ConstArrayView> arrays) const {
  double total = 0.0;
  for (const ConstArrayView& array : arrays) {
    total += sum_of_squares(array.dtype, array.size(), array.data);
  }
  return total;
}

void Device::sum_to(const SumArgs& args) const {
  const double total = args.squares ? sum_of_squares(args.dtype, args.size, args.x)
                                    : sum(args.dtype, args.size, args.x);
  fill(args.out_dtype, 1, args.factor * total, args.out_dtype, nullptr, args.out);
}

void Device::decide_step(const DecisionArgs& args) const {
  const double loss = args.loss ? sum(args.loss_dtype, 1, args.loss) : 0.0;
  const StepDecision found = decide(total_of_squares(args.gradients), loss, args);
  upload(args.decision, &found, sizeof(found));
}

void Device::copy_if(const StepDecision* decision, std::size_t bytes, const void* from,
                     void* to) const {
  StepDecision found;
  download(&found, decision, sizeof(found));
  if (found.taken == 0.0) return;
  copy({.count = 1, .bytes = bytes, .from = from, .from_stride = 0, .to = to, .to_stride = 0});
}

std::unique_ptr<Reading> Device::read_later(const void* from, std::size_t bytes) const {
  return std::make_unique<DoneReading>(*this, from, bytes);
}

}  // namespace openrnn
