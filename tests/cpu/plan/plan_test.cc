// How threads divide a call.
#include "cpu/plan/plan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "cpu/support/near_cores.h"
#include "cpu/tuning/tuning.h"

namespace openrnn::cpu {
namespace {

PlanQuestion ask(const RnnSpec& spec, std::int64_t batch, int threads,
                 double latency = kNearBarrierLatency) {
  return {spec, batch, 16, sizeof(float), threads, kNearRates, latency};
}

TEST(PlanTest, PlacesAreAllDifferentAndWithinTheThreads) {
  for (const std::int64_t batch : {1, 2, 7, 64}) {
    for (const int threads : {1, 2, 3, 4, 7}) {
      const RnnSpec spec{.num_units = 100, .input_size = 3, .direction = Direction::kBidirectional};
      const Plan plan = choose_plan(ask(spec, batch, threads));
      EXPECT_LE(plan.threads(), threads);
      EXPECT_LE(plan.row_groups, batch);
      std::vector<int> seen(static_cast<std::size_t>(plan.threads()));
      for (int i = 0; i < plan.threads(); ++i) {
        const Place p = plan.place(i);
        const int member = p.row_group * plan.row_members() + plan.member(p);
        ++seen.at(static_cast<std::size_t>(member));
      }
      EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
    }
  }
}

TEST(PlanTest, LayersAreShiftedInTimeWhereRowsAreFew) {
  const auto plan = [](std::int64_t layers, std::int64_t batch, std::int64_t time, int threads) {
    const RnnSpec spec{.num_layers = layers, .num_units = 64, .input_size = 64};
    PlanQuestion question = ask(spec, batch, threads);
    question.wave_time = time;
    return choose_plan(question);
  };
  const Plan two = plan(4, 1, 100, 2);
  EXPECT_EQ(two.layer_groups, 2);
  EXPECT_EQ(two.threads(), 2);
  EXPECT_EQ(two.wave_steps % kTileRows, 0);
  EXPECT_LT(two.wave_steps, 50);
  EXPECT_EQ(plan(4, 1, 100, 4).layer_groups, 4);
  EXPECT_EQ(plan(4, 4, 100, 2).layer_groups, 2) << "rows are too few to be divided";
  EXPECT_EQ(plan(4, 64, 100, 2).row_groups, 2) << "rows need no barrier";
  EXPECT_EQ(plan(4, 1, 0, 2).layer_groups, 1) << "a call whose layers cannot be shifted";
  EXPECT_EQ(plan(4, 1, 1, 2).layer_groups, 1) << "of one step";
  EXPECT_EQ(plan(1, 1, 100, 2).layer_groups, 1);
  for (const std::int64_t layers : {2, 3, 5, 7}) {
    const Plan many = plan(layers, 1, 400, 8);
    std::int64_t next = 0;
    for (std::int64_t group = 0; group < many.layer_groups; ++group) {
      EXPECT_EQ(many.first_layer(layers, group), next);
      next = many.first_layer(layers, group + 1);
      EXPECT_LT(many.first_layer(layers, group), next) << "each has a layer";
    }
    EXPECT_EQ(next, layers);
  }
}

TEST(PlanTest, LayersAreShiftedByNoMoreGroupsThanGain) {
  const auto groups = [](std::int64_t layers, int threads, double latency) {
    const RnnSpec spec{.num_layers = layers, .num_units = 64, .input_size = 64};
    PlanQuestion question = ask(spec, 1, threads, latency);
    question.wave_time = 400;
    return choose_plan(question).layer_groups;
  };
  // Of 5 layers the largest of 3 groups and of 4 has two.
  EXPECT_EQ(groups(5, 4, kNearBarrierLatency), 3);
  EXPECT_EQ(groups(5, 5, kNearBarrierLatency), 5);
  EXPECT_EQ(groups(4, 2, 1e-2), 1) << "barriers cost more than the layers";
}

// Each thread of a wave is in the one place of the rows.
TEST(PlanTest, GroupsOfLayersHaveOnePlace) {
  const Plan plan{.layer_groups = 4, .wave_steps = 6};
  EXPECT_EQ(plan.threads(), 4);
  for (int thread = 0; thread < 4; ++thread) {
    const Place place = plan.place(thread);
    EXPECT_EQ(place.row_group, 0);
    EXPECT_EQ(plan.member(place), 0);
  }
}

TEST(PlanTest, L2IsWhatTheSystemSays) {
  const long found = sysconf(_SC_LEVEL2_CACHE_SIZE);
  EXPECT_EQ(l2_bytes(), found > 0 ? static_cast<std::size_t>(found) : std::size_t{1} << 20);
}

// One step of one row of a small network soon takes less than a barrier between far cores.
TEST(PlanTest, FarThreadsDoNotShareSmallSteps) {
  const auto threads = [](RnnMode mode, std::int64_t units, double latency) {
    const RnnSpec spec{.mode = mode, .num_units = units, .input_size = units};
    return choose_plan(ask(spec, 1, 2, latency)).threads();
  };
  for (const RnnMode mode : {RnnMode::kLstm, RnnMode::kGru}) {
    EXPECT_EQ(threads(mode, 64, kNearBarrierLatency), 2);
    EXPECT_EQ(threads(mode, 64, 4 * kNearBarrierLatency), 1);
    EXPECT_EQ(threads(mode, 128, 4 * kNearBarrierLatency), 2);
    EXPECT_EQ(threads(mode, 128, 100 * kNearBarrierLatency), 1);
    EXPECT_EQ(threads(mode, 1024, 10 * kNearBarrierLatency), 2);
  }
  const RnnSpec small{.num_units = 64, .input_size = 64};
  EXPECT_EQ(choose_plan(ask(small, 2, 2, 1e-3)).row_groups, 2);
  EXPECT_EQ(packing_threads(1 << 14, 2, kNearRates.row, kNearBarrierLatency), 1);
  EXPECT_EQ(packing_threads(1 << 16, 2, kNearRates.row, kNearBarrierLatency), 2);
  EXPECT_EQ(packing_threads(1 << 16, 2, kNearRates.row, 4 * kNearBarrierLatency), 1);
}

TEST(PlanTest, ManyThreadsAreNotAllTaken) {
  const auto plan = [](std::int64_t units, std::int64_t batch) {
    const RnnSpec spec{.num_units = units, .input_size = units};
    return choose_plan(ask(spec, batch, 64));
  };
  EXPECT_LE(plan(64, 1).threads(), 4) << "there are four vectors of units";
  EXPECT_GE(plan(1024, 1).threads(), 8);
  EXPECT_LE(plan(256, 1).threads(), 16);
  EXPECT_EQ(plan(1024, 64).threads(), 64);
}

// The steps, and the products with the input, which take as long.
TEST(PlanTest, OneThreadTakesTwiceWhatTheStepsOfAllLayersTake) {
  constexpr double kTile = 3e-9, kRow = 2e-9, kFar = 7e-9;
  const auto seconds = [](const RnnSpec& spec, std::int64_t batch, const Rates& rates,
                          std::int64_t time) {
    PlanQuestion question = ask(spec, batch, 8, 1.0);
    question.rates = rates;
    return seconds_alone(question, time);
  };
  RnnSpec spec{.num_layers = 3, .num_units = 20, .input_size = 5, .num_proj = 11};
  const double weights = 4 * 32 * 11;  // in whole vectors of 16 units
  EXPECT_DOUBLE_EQ(seconds(spec, 1, {kTile, kRow, kFar}, 10),
                   2 * 30 * weights * (kTile + kNotHidden * kRow));
  EXPECT_DOUBLE_EQ(seconds(spec, 5, {kTile, kRow, kFar}, 7),
                   2 * 21 * weights * (5 * kTile + kNotHidden * kRow));
  EXPECT_DOUBLE_EQ(seconds(spec, 1, {kRow / 4, kRow, kFar}, 10),
                   2 * 30 * weights * (kRow + kNotHidden * kRow / 4));
  spec.direction = Direction::kBidirectional;
  EXPECT_DOUBLE_EQ(seconds(spec, 1, {0.0, kRow, kFar}, 10), 2 * 2 * 30 * weights * kRow);
  // Beyond the L2 of any processor.
  const RnnSpec large{.mode = RnnMode::kGru, .num_units = 16384, .input_size = 5};
  EXPECT_DOUBLE_EQ(seconds(large, 1, {0.0, kRow, kFar}, 10), 2 * 10 * 3.0 * 16384 * 16384 * kFar);
}

TEST(PlanTest, OfEqualPlansThatOfMoreThreadsIsTaken) {
  const RnnSpec spec{.num_units = 64, .input_size = 64};
  PlanQuestion question = ask(spec, 4, 4, 0.0);
  question.rates = {};
  const Plan plan = choose_plan(question);
  EXPECT_EQ(plan.threads(), 4);
  EXPECT_EQ(plan.panel_threads, 4) << "the first of them";
}

TEST(PlanTest, DirectionsRunAtOnceWhereTheyMay) {
  const RnnSpec spec{.num_units = 64, .input_size = 64, .direction = Direction::kBidirectional};
  PlanQuestion question = ask(spec, 1, 2, 1e-3);
  EXPECT_EQ(choose_plan(question).dir_groups, 2) << "no barrier after a step";
  question.directions = 1;
  EXPECT_EQ(choose_plan(question).threads(), 1);
}

TEST(PlanTest, WavesAreAsLongAsTheRootOfTheStepsOfAGroup) {
  const RnnSpec spec{.num_layers = 4, .num_units = 64, .input_size = 64};
  for (const std::int64_t time : {100, 900, 4900}) {
    for (const int threads : {2, 4}) {
      PlanQuestion question = ask(spec, 1, threads);
      question.wave_time = time;
      const Plan plan = choose_plan(question);
      ASSERT_EQ(plan.layer_groups, threads);
      const double best = std::sqrt(static_cast<double>(time) / (threads - 1));
      EXPECT_EQ(plan.wave_steps, kTileRows * std::max(std::lround(best / kTileRows), 1L));
    }
  }
}

TEST(PlanTest, WavesAreAssumedForTests) {
  const RnnSpec spec{.num_layers = 4, .num_units = 64, .input_size = 64};
  const auto plan = [&](std::int64_t time, int threads) {
    PlanQuestion question = ask(spec, 1, threads);
    question.wave_time = time;
    return choose_plan(question);
  };
  EXPECT_EQ(plan(100, 2).layer_groups, 2);
  EXPECT_EQ(assume_wave_steps(-1), 0);
  EXPECT_EQ(plan(100, 2).layer_groups, 1) << "nowhere";
  EXPECT_EQ(assume_wave_steps(7), -1);
  for (const int threads : {2, 4, 8}) {
    const Plan assumed = plan(1, threads);
    EXPECT_EQ(assumed.layer_groups, std::min(threads, 4));
    EXPECT_EQ(assumed.wave_steps, 7);
    EXPECT_EQ(assumed.threads(), assumed.layer_groups);
  }
  EXPECT_EQ(plan(1, 1).layer_groups, 1) << "one thread";
  EXPECT_EQ(plan(0, 2).layer_groups, 1) << "a call whose layers cannot be shifted";
  EXPECT_EQ(assume_wave_steps(0), 7);
}

}  // namespace
}  // namespace openrnn::cpu
