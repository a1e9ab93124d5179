#include "cpu/plan/plan.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>

#include "cpu/threading/share.h"
#include "cpu/tuning/tuning.h"

namespace openrnn::cpu {
namespace {

/// Bytes of a packed value.
double bytes_of(Arithmetic arithmetic, std::size_t element) {
  const auto elements = static_cast<double>(count_elements(arithmetic, kAmxBlock).elements);
  return elements / static_cast<double>(kAmxBlock) * static_cast<double>(element);
}

/// Values of the weights that `units` units multiply the state by.
double weights_of(const RnnSpec& spec, std::int64_t units) {
  return static_cast<double>(units * spec.num_gates()) * static_cast<double>(spec.hidden_size());
}

/// Units that a thread has at most, in whole vectors.
std::int64_t own_units(const RnnSpec& spec, std::int64_t lanes, int threads) {
  const auto blocks = (spec.num_units + lanes - 1) / lanes;
  return (blocks + threads - 1) / threads * lanes;
}

bool l2_holds(double weights, std::size_t element, Arithmetic arithmetic) {
  return weights * bytes_of(arithmetic, element) < static_cast<double>(l2_bytes());
}

double step_seconds(const PlanQuestion& question, const Plan& plan) {
  const RnnSpec& spec = question.spec;
  const auto rows = (question.batch + plan.row_groups - 1) / plan.row_groups;
  const auto own = own_units(spec, question.lanes, plan.panel_threads);
  const double weights = weights_of(spec, own);
  const bool fits = l2_holds(weights, question.element, question.arithmetic);
  const double reading = weights * (fits ? question.rates.row : question.rates.far_row);
  const double computing = weights * static_cast<double>(rows) * question.rates.tile;
  const auto others = std::max(spec.num_units - own, std::int64_t{0});
  const double foreign = static_cast<double>(rows * others) * static_cast<double>(question.element);
  // Members arrive at a barrier one after another.
  const double barrier = question.barrier_latency * plan.panel_threads / 2;
  const double exchange = foreign / kForeignBytesPerLatency * question.barrier_latency;
  const double waiting = plan.panel_threads > 1 ? barrier + exchange : 0.0;
  const double directions = static_cast<double>(spec.num_dirs()) / plan.dir_groups;
  // Part of the reading hides behind the computing.
  return directions *
         (std::max(computing, reading) + kNotHidden * std::min(computing, reading) + waiting);
}

// Of all steps and layers: the steps, and the products with the input, which take one thread as
// long.
double seconds_of(const PlanQuestion& question, const Plan& plan, double step, double alone) {
  const auto steps = static_cast<double>(question.wave_time * question.spec.num_layers);
  const double late = plan.threads() > 1 ? kLateAtStep * question.barrier_latency : 0.0;
  return steps * (step + late + alone / plan.threads());
}

constinit std::atomic<std::int64_t> assumed_steps{0};

// The least steps of a wave: a tile of rows for the products with the input.
constexpr std::int64_t kWaveSteps = kTileRows;

Plan wave_plan(const PlanQuestion& question, int groups) {
  Plan plan{.layer_groups = groups};
  // A wave reads the weights of the input once, a step those of the state; the waves in which not
  // all groups have work cost the more the longer they are.
  const double best =
      std::sqrt(static_cast<double>(question.wave_time) / static_cast<double>(groups - 1));
  const std::int64_t tiles = std::lround(best / static_cast<double>(kWaveSteps));
  plan.wave_steps = kWaveSteps * std::max<std::int64_t>(tiles, 1);
  return plan;
}

double wave_seconds(const PlanQuestion& question, const Plan& plan, double alone) {
  const std::int64_t layers = question.spec.num_layers, groups = plan.layer_groups;
  const std::int64_t waves =
      (question.wave_time + plan.wave_steps - 1) / plan.wave_steps + groups - 1;
  const std::int64_t steps = (layers + groups - 1) / groups * plan.wave_steps;
  const double work = static_cast<double>(steps) * 2 * alone;
  return static_cast<double>(waves) * (work + question.barrier_latency * plan.layer_groups / 2);
}

}  // namespace

std::size_t l2_bytes() {
  // Not a static local: after a fork while another thread initializes one, the child would wait for
  // ever.
  static constinit std::atomic<std::size_t> known{0};
  std::size_t bytes = known.load(std::memory_order_relaxed);
  if (bytes == 0) {
    const long found = sysconf(_SC_LEVEL2_CACHE_SIZE);
    bytes = found > 0 ? static_cast<std::size_t>(found) : std::size_t{1} << 20;
    known.store(bytes, std::memory_order_relaxed);
  }
  return bytes;
}

Plan choose_plan(const PlanQuestion& question) {
  Plan best;
  double least = step_seconds(question, best);
  for (int rows = 1; rows <= question.threads && rows <= question.batch; ++rows) {
    for (int dirs = 1; dirs <= question.directions && rows * dirs <= question.threads; ++dirs) {
      // Fewer threads than there are may be better: more wait longer for each other.
      for (int panels = question.threads / (rows * dirs); panels > 0; panels /= 2) {
        const Plan plan{rows, dirs, panels};
        const double seconds = step_seconds(question, plan);
        // Between equals, more threads: what is done outside the steps gains by them.
        if (seconds > least || (seconds == least && plan.threads() <= best.threads())) continue;
        best = plan;
        least = seconds;
      }
    }
  }
  const std::int64_t assumed = assumed_steps.load(std::memory_order_relaxed);
  const auto layers = static_cast<int>(question.spec.num_layers);
  if (question.wave_time == 0 || question.threads == 1 || assumed < 0) return best;
  if (assumed > 0) {
    return {.layer_groups = std::min(question.threads, layers), .wave_steps = assumed};
  }
  const double alone = step_seconds(question, Plan{});
  double whole = seconds_of(question, best, least, alone);
  for (int groups = 2; groups <= question.threads && groups <= layers; ++groups) {
    const Plan plan = wave_plan(question, groups);
    const double seconds = wave_seconds(question, plan, alone);
    if (seconds >= whole) continue;
    best = plan;
    whole = seconds;
  }
  return best;
}

std::int64_t assume_wave_steps(std::int64_t steps) noexcept {
  return assumed_steps.exchange(steps);
}

double seconds_alone(const PlanQuestion& question, std::int64_t time) {
  // The products with the input take about as long as the steps.
  const auto steps = static_cast<double>(time * question.spec.num_layers);
  return 2 * steps * step_seconds(question, Plan{});
}

int packing_threads(std::int64_t elements, int most, double row, double barrier_latency) {
  return threads_for(static_cast<double>(elements),
                     kPackingBarriers * barrier_latency / (kRowsPerPacking * row), most);
}

bool l2_holds_steps(const RnnSpec& spec, std::int64_t lanes, std::size_t element,
                    Arithmetic arithmetic) {
  return l2_holds(weights_of(spec, own_units(spec, lanes, 1)), element, arithmetic);
}

}  // namespace openrnn::cpu
