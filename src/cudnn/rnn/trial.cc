#include "cudnn/rnn/trial.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include "cudnn/gpu/event.h"

namespace openrnn::cudnn {
namespace {

// Tolerance between two algorithms of one arithmetic, relative to the norm of the result: many
// times their rounding, and far below the difference of a wrong result.
double most_difference(const RnnSpec& spec) {
  if (spec.dtype == DType::kFloat64) return 1e-9;
  const bool exact = spec.dtype == DType::kFloat32 && spec.compute.math == Math::kFloat32;
  return exact ? 1e-3 : 5e-2;
}

double norm_of(std::span<const double> values) {
  double sum = 0.0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

double number_at(const char* at, DType dtype) {
  double wide = 0.0;
  float single = 0.0f;
  Half half{};
  if (dtype == DType::kFloat64) return std::memcpy(&wide, at, sizeof(wide)), wide;
  if (dtype == DType::kFloat32) return std::memcpy(&single, at, sizeof(single)), single;
  std::memcpy(&half, at, sizeof(half));
  return to_float(half);
}

}  // namespace

Trial::Trial(const PieceCall& call, const PieceForward& memory)
    : weights_(*call.weights), call_(call) {
  const RnnSpec& spec = weights_.spec;
  const std::int64_t h = spec.num_pseudo_layers() * call.slice.rows * spec.hidden_size();
  const std::int64_t c = spec.num_pseudo_layers() * call.slice.rows * spec.num_units;
  const std::int64_t x = call.slice.count * spec.input_size;
  const std::shared_ptr<void> weights = call.context->allocate(weights_.bytes());
  call.context->copy(weights.get(), call.weights->memory.get(), weights_.bytes());
  weights_.memory = weights;
  call_.weights = &weights_;
  // Every run has the same masks, and the network's own generator does not move on.
  call_.dropout.alone = true;
  memory_.x = copy_of(memory.x, x);
  memory_.hx = copy_of(memory.hx, h);
  memory_.y = result(call.slice.count * spec.output_size());
  memory_.hy = result(h);
  if (spec.is_lstm()) memory_.cx = copy_of(memory.cx, c);
  if (spec.is_lstm()) memory_.cy = result(c);
  if (!call.training) return;
  gradient_.dy = memory_.y;
  gradient_.dhy = memory_.hy;
  gradient_.dcy = memory_.cy;
  gradient_.dx = result(x);
  gradient_.dhx = result(h);
  if (spec.is_lstm()) gradient_.dcx = result(c);
  gradient_.dweights = result(weights_.map->size);
}

void* Trial::block(std::int64_t elements) {
  const std::size_t bytes = static_cast<std::size_t>(elements) * dtype_size(weights_.spec.dtype);
  blocks_.push_back(call_.context->allocate(bytes));
  return blocks_.back().get();
}

void* Trial::result(std::int64_t elements) {
  void* const memory = block(elements);
  results_.emplace_back(memory, elements);
  return memory;
}

const void* Trial::copy_of(const void* from, std::int64_t elements) {
  if (!from) return nullptr;
  void* const to = block(elements);
  call_.context->copy(to, from,
                      static_cast<std::size_t>(elements) * dtype_size(weights_.spec.dtype));
  return to;
}

// All of them, or a sample of very many: reading all would take seconds.
std::vector<double> Trial::numbers(const void* memory, std::int64_t elements) const {
  constexpr std::int64_t kPieces = 64, kPiece = 1 << 14;
  const DType dtype = weights_.spec.dtype;
  const auto element = static_cast<std::int64_t>(dtype_size(dtype));
  const bool all = elements <= kPieces * kPiece;
  const std::int64_t pieces = all ? 1 : kPieces, each = all ? elements : kPiece;
  std::vector<char> bytes(static_cast<std::size_t>(pieces * each * element));
  for (std::int64_t n = 0; n < pieces; ++n) {
    const std::int64_t first = n * (elements - each) / std::max<std::int64_t>(pieces - 1, 1);
    call_.context->copy_out(bytes.data() + n * each * element,
                            static_cast<const char*>(memory) + first * element,
                            static_cast<std::size_t>(each * element));
  }
  std::vector<double> values(static_cast<std::size_t>(pieces * each));
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = number_at(bytes.data() + i * dtype_size(dtype), dtype);
  }
  return values;
}

std::vector<std::vector<double>> Trial::results(const Variant& variant) {
  if (gradient_.dweights) call_.context->zero(gradient_.dweights, weights_.bytes());
  run(variant);
  std::vector<std::vector<double>> found;
  for (const auto& [memory, elements] : results_) found.push_back(numbers(memory, elements));
  return found;
}

bool Trial::agrees(const Variant& variant, const std::vector<std::vector<double>>& expected) {
  const auto found = results(variant);
  for (std::size_t n = 0; n < found.size(); ++n) {
    std::vector<double> difference = found[n];
    for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= expected[n][i];
    const double most = most_difference(weights_.spec) * norm_of(expected[n]);
    // In this form NaN counts as a difference.
    if (!(norm_of(difference) <= most)) return false;
  }
  return true;
}

double Trial::time(const Variant& variant) {
  constexpr int kRuns = 3;
  constexpr double kLong = 200.0;  // milliseconds: then one run is enough
  // The first run is ignored unless it is the only one: it loads the kernels.
  double best = run(variant);
  if (best > kLong) return best;
  best = run(variant);
  for (int n = 1; n < kRuns; ++n) best = std::min(best, run(variant));
  return best;
}

double Trial::run(const Variant& variant) {
  Piece piece(call_, variant);
  Event start(Event::Time::kMeasured), end(Event::Time::kMeasured);
  start.record(*call_.context);
  piece.forward(memory_);
  if (call_.training) piece.backward(gradient_);
  end.record(*call_.context);
  end.wait();
  return Event::between(start, end);
}

}  // namespace openrnn::cudnn
