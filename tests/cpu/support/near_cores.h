// Two cores of one cache, as tests assume them, so that calls are divided alike wherever they run.
#pragma once

#include "cpu/plan/rates.h"

namespace openrnn::cpu {

/// Seconds of ThreadLease::barrier_latency().
inline constexpr double kNearBarrierLatency = 0.1e-6;
inline constexpr Rates kNearRates{.tile = 17e-12, .row = 40e-12, .far_row = 90e-12};

}  // namespace openrnn::cpu
