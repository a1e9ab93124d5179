#include "cpu/plan/rates.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>

#include "cpu/memory/block.h"
#include "cpu/plan/plan.h"

namespace openrnn::cpu {
namespace {

using Clock = std::chrono::steady_clock;

// Of weights in L2: values of a column, and rows that are whole tiles of every kind.
constexpr std::int64_t kInner = 128, kRows = 2 * kShareRows;
// Panels of one call: many, as rows are staged once a call; of many rows a few.
constexpr std::int64_t kRowPanels = 16, kTilePanels = 4;
// The least of some rounds counts: any may be interrupted.
constexpr int kRounds = 3;
// The part of L2 that they take: more than L1, and few pages to touch for the first time.
constexpr std::size_t kNearPart = 8;
// Slow kernels, or a busy machine, end a measurement after the call that comes to this.
constexpr std::chrono::microseconds kTime{150};

// What is known of some kernels; 0: not measured.
struct Known {
  std::atomic<const void*> kernels{nullptr};
  std::atomic<double> tile{0}, row{0}, far_row{0};
};

/// Times products of packed weights.
template <class T>
class Meter {
 public:
  Meter(const Kernels<T>& kernels, Arithmetic arithmetic, const RowAndPanels<T>& given)
      : kernels_(kernels), panels_(given.panels) {
    const std::int64_t staging = staging_bytes(arithmetic, kRows, panels_.inner);
    Carver measure;
    carve(measure, staging);
    memory_ = Block(measure.used());
    Carver carver(memory_.data());
    carve(carver, staging);
    std::fill_n(rows_, kRows, given.row);
  }

  std::int64_t panels() const { return (panels_.last - panels_.first) / panels_.width; }

  /// Seconds a weight of panels [first, last), at most kRowPanels, or kTilePanels by kRows.
  double seconds(std::int64_t first, std::int64_t last, std::int64_t rows) const {
    ProductCall<T> call{};
    call.w = panels_;
    call.w.first = panels_.first + first * panels_.width;
    call.w.last = panels_.first + last * panels_.width;
    call.w.staging = {staging_, kRows};
    call.a = rows_;
    call.a_step = 1;
    call.rows = rows;
    call.pre = pre_;
    const Clock::time_point start = Clock::now();
    kernels_.product(call);
    const std::chrono::duration<double> taken = Clock::now() - start;
    return taken.count() /
           static_cast<double>((call.w.last - call.w.first) * kernels_.lanes * panels_.inner);
  }

 private:
  void carve(Carver& carver, std::int64_t staging) {
    rows_ = carver.take<const T*>(kRows);
    staging_ = carver.take<char>(staging);
    pre_ =
        carver.take<T>(std::max(kRowPanels, kTilePanels * kRows) * panels_.width * kernels_.lanes);
  }

  const Kernels<T>& kernels_;
  Panels<T> panels_;
  Block memory_;
  const T** rows_ = nullptr;
  char* staging_ = nullptr;
  T* pre_ = nullptr;
};

/// Of some rounds of one call the least; the first one has the weights come into L2.
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

template <class T>
void measure_near(const Kernels<T>& kernels, Arithmetic arithmetic, Known& known) {
  const ElementCount count = count_elements(arithmetic, kInner);
  const std::int64_t panel = kColumnWidth * kernels.lanes * (count.elements + count.extra);
  const std::size_t bytes = static_cast<std::size_t>(panel) * sizeof(T);
  const auto panels = static_cast<std::int64_t>(l2_bytes() / kNearPart / bytes) + 1;
  const Block memory(static_cast<std::size_t>(panels + 1) * bytes);
  std::memset(memory.data(), 0, memory.size());
  const T* const weights = static_cast<const T*>(memory.data());
  // The row lies behind them: a panel has more values than a column.
  const Meter<T> meter(kernels, arithmetic,
                       {.panels = {.b = weights,
                                   .k = count.elements,
                                   .b_step = kColumnWidth * kernels.lanes,
                                   .b_panel = panel,
                                   .width = kColumnWidth,
                                   .last = panels * kColumnWidth,
                                   .inner = kInner},
                        .row = weights + panels * panel});
  known.row.store(near_seconds(meter, kRowPanels, 1), std::memory_order_relaxed);
  known.tile.store(near_seconds(meter, kTilePanels, kRows) / kRows, std::memory_order_release);
}

/// Of the panels one after another, as a step reads them.
template <class T>
double far_seconds(const Meter<T>& meter) {
  const Clock::time_point end = Clock::now() + kTime;
  double sum = 0;
  std::int64_t first = 0;
  do {
    const std::int64_t last = std::min(first + kRowPanels, meter.panels());
    sum += meter.seconds(first, last, 1) * static_cast<double>(last - first);
    first = last;
  } while (first < meter.panels() && Clock::now() < end);
  return sum / static_cast<double>(first);
}

// More than there are tables of kernels.
constinit Known all_known[96];
constinit std::atomic<const Rates*> assumed{nullptr};

Known& known_of(const void* kernels) {
  for (Known& one : all_known) {
    const void* owner = one.kernels.load(std::memory_order_relaxed);
    if (owner == nullptr) one.kernels.compare_exchange_strong(owner, kernels);
    if (owner == nullptr || owner == kernels) return one;
  }
  return all_known[0];
}

}  // namespace

template <class T>
Rates rates_of(const Kernels<T>& kernels, Arithmetic arithmetic, const RowAndPanels<T>* far) {
  if (const Rates* rates = assumed.load(std::memory_order_relaxed)) return *rates;
  Known& known = known_of(&kernels);
  if (known.tile.load(std::memory_order_acquire) == 0) measure_near(kernels, arithmetic, known);
  if (far && known.far_row.load(std::memory_order_relaxed) == 0) {
    known.far_row.store(far_seconds(Meter<T>(kernels, arithmetic, *far)),
                        std::memory_order_relaxed);
  }
  return {known.tile, known.row, known.far_row};
}

const Rates* assume_rates(const Rates* rates) noexcept { return assumed.exchange(rates); }

template Rates rates_of<float>(const Kernels<float>&, Arithmetic, const RowAndPanels<float>*);
template Rates rates_of<double>(const Kernels<double>&, Arithmetic, const RowAndPanels<double>*);

}  // namespace openrnn::cpu
