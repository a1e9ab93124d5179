#include <numeric>
#include <vector>

#include "cudnn/device/decision.h"
#include "cudnn/device/gpu.h"
#include "cudnn/device/launch.h"

namespace openrnn::cudnn {
namespace {

constexpr auto kTileBytes = gpu::kThreads * static_cast<unsigned>(sizeof(double));

std::int64_t blocks_of(std::int64_t size) { return (size + gpu::kSumBlock - 1) / gpu::kSumBlock; }

// The sum of each block of an array.
void enqueue_sums(Context& context, gpu::Number number, bool squares, std::int64_t size,
                  const void* x, double* partial) {
  constexpr std::int64_t kBlocksOfOne = gpu::kThreads / gpu::kSumLanes;
  const std::int64_t blocks = (blocks_of(size) - 1) / kBlocksOfOne + 1;
  launch(context, "openrnn_sums",
         {.grid_x = grid_blocks("sum", blocks), .shared_bytes = kTileBytes},
         gpu::SumArguments{number, squares, size, x, partial});
}

void enqueue_total(Context& context, const gpu::TotalArguments& arguments) {
  launch(context, "openrnn_total", {.shared_bytes = kTileBytes}, arguments);
}

// The sums of all blocks of some arrays, one array after the other.
struct Partials {
  std::shared_ptr<void> memory;
  std::vector<std::int64_t> counts;  // of an array's blocks; no empty array
  std::int64_t blocks = 0;
  double* data() const { return static_cast<double*>(memory.get()); }
};

Partials partial_sums(const GpuDevice& device, const char* call, bool squares,
                      std::span<const ConstArrayView> arrays) {
  Partials found;
  for (const ConstArrayView& array : arrays) {
    number_of(call, array.dtype);
    if (array.size() == 0) continue;
    found.counts.push_back(blocks_of(array.size()));
    found.blocks += found.counts.back();
  }
  if (found.blocks == 0) return found;
  found.memory = device.allocate(static_cast<std::size_t>(found.blocks) * sizeof(double));
  const Context::Current current(device.context());
  double* to = found.data();
  for (const ConstArrayView& array : arrays) {
    if (array.size() == 0) continue;
    enqueue_sums(device.context(), number_of(call, array.dtype), squares, array.size(), array.data,
                 to);
    to += blocks_of(array.size());
  }
  return found;
}

// The sums of the arrays, each from its first block to its last: one wait for all of them.
double sum_terms(const GpuDevice& device, const char* call, bool squares,
                 std::span<const ConstArrayView> arrays) {
  const Partials partials = partial_sums(device, call, squares, arrays);
  if (partials.blocks == 0) return 0.0;
  std::vector<double> sums(static_cast<std::size_t>(partials.blocks));
  device.download(sums.data(), partials.data(), sums.size() * sizeof(double));
  double total = 0.0;
  const double* at = sums.data();
  for (const std::int64_t count : partials.counts) {
    total += std::accumulate(at + 1, at + count, *at);
    at += count;
  }
  return total;
}

}  // namespace

double GpuDevice::sum(DType dtype, std::int64_t size, const void* x) const {
  const ConstArrayView array{x, dtype, {size}};
  return sum_terms(*this, "sum", false, {&array, 1});
}

double GpuDevice::sum_of_squares(DType dtype, std::int64_t size, const void* x) const {
  const ConstArrayView array{x, dtype, {size}};
  return total_of_squares({&array, 1});
}

double GpuDevice::total_of_squares(std::span<const ConstArrayView> arrays) const {
  return sum_terms(*this, "sum_of_squares", true, arrays);
}

void GpuDevice::sum_to(const SumArgs& args) const {
  const ConstArrayView array{args.x, args.dtype, {args.size}};
  const Partials partials = partial_sums(*this, "sum", args.squares, {&array, 1});
  const Context::Current current(context_);
  enqueue_total(context_, {.count = partials.blocks,
                           .terms = partials.data(),
                           .sum = nullptr,
                           .factor = args.factor,
                           .number = number_of("sum", args.out_dtype),
                           .out = args.out});
}

void GpuDevice::decide_step(const DecisionArgs& args) const {
  const Partials partials = partial_sums(*this, "decide_step", true, args.gradients);
  const auto memory = allocate(sizeof(double));
  auto* const squares = static_cast<double*>(memory.get());
  zero(squares, sizeof(double));
  const Context::Current current(context_);
  const double* terms = partials.data();
  for (const std::int64_t count : partials.counts) {
    enqueue_total(context_, {.count = count,
                             .terms = terms,
                             .sum = squares,
                             .factor = 1.0,
                             .number = gpu::Number::kDouble,
                             .out = nullptr});
    terms += count;
  }
  launch(context_, "openrnn_decide", {.block_x = 1},
         gpu::DecideArguments{.squares = squares,
                              .clip_norm = args.clip_norm,
                              .loss_number = number_of("decide_step", args.loss_dtype),
                              .loss_decides = args.loss_decides,
                              .loss = args.loss,
                              .decision = reinterpret_cast<gpu::StepDecision*>(args.decision)});
}

}  // namespace openrnn::cudnn
