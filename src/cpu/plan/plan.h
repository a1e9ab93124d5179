// How threads divide one call: by rows, directions and panels of units, or by layers.
#pragma once

#include <cstddef>

#include "cpu/kernels/kernels.h"
#include "cpu/plan/rates.h"
#include "openrnn/spec.h"

namespace openrnn::cpu {

/// Which part of the work a thread has.
struct Place {
  int row_group = 0, dir_group = 0, panel = 0;
};

/// row_groups * dir_groups * panel_threads threads. Threads of one row group and direction have a
/// barrier after every step; those of one row group after every layer; row groups never.
/// Or layer_groups of one thread each, shifted in time: while one computes steps of its layers, the
/// next one computes those before them of the layers above. A barrier after every wave_steps steps.
struct Plan {
  int row_groups = 1, dir_groups = 1, panel_threads = 1;
  int layer_groups = 1;
  std::int64_t wave_steps = 0;

  int threads() const { return row_groups * dir_groups * panel_threads * layer_groups; }
  /// Threads that work on the same rows and layers.
  int row_members() const { return dir_groups * panel_threads; }
  Place place(int thread) const {
    if (layer_groups > 1) return {};
    return {thread / row_members(), thread / panel_threads % dir_groups, thread % panel_threads};
  }
  /// The first of the layers of a group; those of the next one begin where these end.
  std::int64_t first_layer(std::int64_t layers, std::int64_t group) const {
    return layers * group / layer_groups;
  }
  int member(const Place& place) const { return place.dir_group * panel_threads + place.panel; }
};

/// What the choice depends on.
struct PlanQuestion {
  const RnnSpec& spec;
  std::int64_t batch, lanes;
  std::size_t element;  // bytes of one value, weights aside
  int threads;          // at most
  Rates rates;
  double barrier_latency;  // ThreadLease::barrier_latency()
  Arithmetic arithmetic = kExact;
  std::int64_t directions = spec.num_dirs();  // that may run at once
  std::int64_t wave_time = 0;                 // steps of a call that layers may be shifted in
};

/// What a forward pass of `time` steps takes one thread, roughly.
double seconds_alone(const PlanQuestion& question, std::int64_t time);

/// The plan with the lowest estimated time. Results do not depend on it.
Plan choose_plan(const PlanQuestion& question);

/// From now on layers that can be shifted in time are, in chunks of so many steps, whatever that
/// costs; 0: where the model says so, below 0: nowhere. Returns what it was. For tests, so that
/// small calls have many chunks.
std::int64_t assume_wave_steps(std::int64_t steps) noexcept;

/// How many of `most` threads should pack `elements` parameters, of which a thread multiplies one
/// in L2 in `row` seconds.
int packing_threads(std::int64_t elements, int most, double row, double barrier_latency);

/// Whether L2 holds the packed weights of a layer's steps, of `element` bytes a value where they
/// are exact.
bool l2_holds_steps(const RnnSpec& spec, std::int64_t lanes, std::size_t element,
                    Arithmetic arithmetic);

/// Bytes of this processor's L2, of which one core may use all.
std::size_t l2_bytes();

}  // namespace openrnn::cpu
