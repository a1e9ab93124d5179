#include "cli/bench/bare_tiles.h"

#include <algorithm>

#include "cli/bench/meters.h"
#include "cpu/isa/isa.h"

namespace openrnn::cli {
namespace {

constexpr std::size_t kLine = 64 / sizeof(float);

/// The first float of a cache line.
float* aligned(std::vector<float>& values) {
  const auto at = reinterpret_cast<std::uintptr_t>(values.data()) / sizeof(float) % kLine;
  return values.data() + (at == 0 ? 0 : kLine - at);
}

std::vector<float> filled(std::int64_t size, float value) {
  return std::vector<float>(static_cast<std::size_t>(size) + kLine, value);
}

const cpu::Kernels<float>& tiles() { return cpu::kernels_for<float>(cpu::kernels(), cpu::kExact); }

}  // namespace

BareTiles::BareTiles(const RnnSpec& spec, std::int64_t batch, std::int64_t time, int threads)
    : inner_(spec.num_units),
      batch_(batch),
      steps_(std::clamp<std::int64_t>(cpu::kChunkRows / batch, 1, time)),
      width_(spec.num_gates() * tiles().lanes),
      matrices_(2 * spec.num_layers),
      threads_(threads) {
  const std::int64_t all = (spec.num_units + tiles().lanes - 1) / tiles().lanes;
  panels_ = (all + threads - 1) / threads;
  rows_ = filled(batch_ * steps_ * inner_, 0.5F);
  for (int thread = 0; thread < threads; ++thread) {
    weights_.push_back(filled(matrices_ * panels_ * inner_ * width_, 0.01F));
    sums_.push_back(filled(panels_ * batch_ * steps_ * width_, 0.0F));
  }
}

double BareTiles::run(int thread) {
  const auto i = static_cast<std::size_t>(thread);
  const std::int64_t all_rows = batch_ * steps_, gates = width_ / tiles().lanes;
  std::vector<const float*> rows(static_cast<std::size_t>(all_rows));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    rows[row] = aligned(rows_) + static_cast<std::int64_t>(row) * inner_;
  }
  cpu::ProductCall<float> call{};
  call.w = {.k = inner_,
            .b_step = width_,
            .b_panel = inner_ * width_,
            .width = gates,
            .last = panels_ * gates,
            .inner = inner_};
  call.a_step = 1;
  call.pre = aligned(sums_[i]);
  for (std::int64_t matrix = 0; matrix < matrices_; ++matrix) {
    call.w.b = aligned(weights_[i]) + matrix * panels_ * inner_ * width_;
    // W is multiplied once a chunk, R once a step.
    call.rows = matrix % 2 == 0 ? all_rows : batch_;
    for (std::int64_t first = 0; first < all_rows; first += call.rows) {
      call.a = rows.data() + first;
      tiles().product(call);
    }
  }
  return 2.0 * static_cast<double>(matrices_ * all_rows * inner_) *
         static_cast<double>(panels_ * width_);
}

double BareTiles::rate(double seconds) {
  return rate_of(threads_, seconds, [this](int thread) { return run(thread); }) * 1e-9;
}

}  // namespace openrnn::cli
