#include "cpu/plan/rates.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <limits>

#include "cpu/memory/block.h"
#include "cpu/plan/plan.h"

namespace openrnn::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// Values of a column, and rows that are whole tiles of every kind.
constexpr std::int64_t kInner = 128, kRows = 2 * kShareRows;
// Panels of one call: many, as rows are staged once a call; of many rows a few.
constexpr std::int64_t kRowPanels = 16, kTilePanels = 4;
// The least of some rounds counts: any may be interrupted.
constexpr int kRounds = 3;
// Weights in L2, which has other things to hold, and beyond it: kMostFarBytes at most, whose first
// touch takes a third of a millisecond.
constexpr std::size_t kNearPart = 4, kMostFarBytes = std::size_t{4} << 20;
// Slow kernels, or a busy machine, end a measurement after the call that comes to this.
constexpr std::chrono::microseconds kTime{150};

/// Panels of zeros, and what their products need.
template <class T>
class Meter {
 public:
  Meter(const Kernels<T>& kernels, Arithmetic arithmetic, std::size_t bytes)
      : kernels_(kernels), count_(count_elements(arithmetic, kInner)) {
    const std::size_t panel = static_cast<std::size_t>(panel_size()) * sizeof(T);
    panels_ = static_cast<std::int64_t>(std::max<std::size_t>(bytes / panel, 1));
    const auto staging = static_cast<std::size_t>(staging_bytes(arithmetic, kRows, kInner));
    Carver measure;
    carve(measure, staging);
    memory_ = Block(measure.used());
    std::memset(memory_.data(), 0, memory_.size());
    Carver carver(memory_.data());
    carve(carver, staging);
    std::fill_n(rows_, kRows, row_);
  }

  std::int64_t panels() const { return panels_; }

  /// Seconds a weight of panels [first, last), at most kRowPanels, or kTilePanels by kRows.
  double seconds(std::int64_t first, std::int64_t last, std::int64_t rows) const {
    const std::int64_t width = kColumnWidth;
    ProductCall<T> call{};
    call.w = {.b = weights_ + first * panel_size(),
              .k = count_.elements,
              .b_step = width * kernels_.lanes,
              .b_panel = panel_size(),
              .width = width,
              .last = (last - first) * width,
              .inner = kInner,
              .staging = {staging_, kRows}};
    call.a = rows_;
    call.a_step = 1;
    call.rows = rows;
    call.pre = pre_;
    const Clock::time_point start = Clock::now();
    kernels_.product(call);
    const std::chrono::duration<double> taken = Clock::now() - start;
    return taken.count() / static_cast<double>((last - first) * width * kernels_.lanes * kInner);
  }

 private:
  std::int64_t panel_size() const {
    return kColumnWidth * kernels_.lanes * (count_.elements + count_.extra);
  }
  void carve(Carver& carver, std::size_t staging) {
    weights_ = carver.take<T>(panels_ * panel_size());
    row_ = carver.take<T>(kInner);
    rows_ = carver.take<const T*>(kRows);
    staging_ = carver.take<char>(static_cast<std::int64_t>(staging));
    pre_ =
        carver.take<T>(std::max(kRowPanels, kTilePanels * kRows) * kColumnWidth * kernels_.lanes);
  }

  const Kernels<T>& kernels_;
  ElementCount count_;
  std::int64_t panels_ = 0;
  Block memory_;
  const T* weights_ = nullptr;
  const T* row_ = nullptr;
  const T** rows_ = nullptr;
  char* staging_ = nullptr;
  T* pre_ = nullptr;
};

/// The least seconds of some rounds of one call; the first one has the weights come into L2.
template <class T>
double near_seconds(const Meter<T>& meter, std::int64_t panels, std::int64_t rows) {
  const Clock::time_point end = Clock::now() + kTime;
  const std::int64_t last = std::min(panels, meter.panels());
  double least = meter.seconds(0, last, rows);
  for (int round = 0; round < kRounds && Clock::now() < end; ++round) {
    least = std::min(least, meter.seconds(0, last, rows));
  }
  return least;
}

/// The least of calls with the first half of the panels: what was touched last fills L2, and the
/// first ones come from beyond it.
template <class T>
double far_seconds(const Meter<T>& meter) {
  const Clock::time_point end = Clock::now() + kTime;
  double least = std::numeric_limits<double>::infinity();
  std::int64_t first = 0;
  do {
    const std::int64_t last = std::min(first + kRowPanels, meter.panels());
    least = std::min(least, meter.seconds(first, last, 1));
    first = last;
  } while (2 * first < meter.panels() && Clock::now() < end);
  return least;
}

// What is known of some kernels; 0: not measured.
struct Known {
  std::atomic<const void*> kernels{nullptr};
  std::atomic<double> tile{0}, row{0}, far_row{0};
};
// More than there are tables of kernels.
constinit Known all_known[96];
constinit std::atomic<const Rates*> assumed{nullptr};

Known& known_of(const void* kernels) {
  for (Known& one : all_known) {
    const void* owner = nullptr;
    if (one.kernels.compare_exchange_strong(owner, kernels) || owner == kernels) return one;
  }
  return all_known[0];
}

}  // namespace

template <class T>
Rates rates_of(const Kernels<T>& kernels, Arithmetic arithmetic, bool far) {
  if (const Rates* rates = assumed.load(std::memory_order_relaxed)) return *rates;
  Known& known = known_of(&kernels);
  if (known.tile.load(std::memory_order_acquire) == 0) {
    const Meter<T> near(kernels, arithmetic, l2_bytes() / kNearPart);
    known.row.store(near_seconds(near, kRowPanels, 1), std::memory_order_relaxed);
    known.tile.store(near_seconds(near, kTilePanels, kRows) / kRows, std::memory_order_release);
  }
  if (far && known.far_row.load(std::memory_order_relaxed) == 0) {
    const Meter<T> beyond(kernels, arithmetic, std::min(2 * l2_bytes(), kMostFarBytes));
    known.far_row.store(far_seconds(beyond), std::memory_order_relaxed);
  }
  return {known.tile, known.row, known.far_row};
}

const Rates* assume_rates(const Rates* rates) noexcept { return assumed.exchange(rates); }

template Rates rates_of<float>(const Kernels<float>&, Arithmetic, bool);
template Rates rates_of<double>(const Kernels<double>&, Arithmetic, bool);

}  // namespace openrnn::cpu
