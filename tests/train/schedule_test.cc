// Learning-rate schedules against their formulas in libm's arithmetic.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "openrnn/train_optimizer.h"
#include "support/expect_error.h"

namespace openrnn::train {
namespace {

std::string error_of(const Schedule& schedule) {
  return openrnn::error_of<ArgumentError>([&] { schedule.validate(); });
}

TEST(Schedule, ConstantRisesInALineThenStays) {
  const Schedule schedule{ScheduleKind::kConstant, 0.4, 4, 0, 0.5, 0.0};
  EXPECT_DOUBLE_EQ(schedule.at(0), 0.1);
  EXPECT_DOUBLE_EQ(schedule.at(2), 0.3);
  EXPECT_EQ(schedule.at(3), 0.4);
  EXPECT_EQ(schedule.at(4), 0.4);
  EXPECT_EQ(schedule.at(1000000), 0.4);
}

TEST(Schedule, ExponentialCountsFromTheEndOfTheWarmUp) {
  const Schedule schedule{ScheduleKind::kExponential, 0.02, 7, 50, 0.3, 0.0};
  EXPECT_EQ(schedule.at(7), 0.02);
  for (const int step : {8, 31, 57, 107, 900}) {
    const double expected = 0.02 * std::pow(0.3, (step - 7) / 50.0);
    EXPECT_NEAR(schedule.at(step), expected, 1e-14 * expected) << step;
  }
}

TEST(Schedule, CosineEndsAtItsFraction) {
  const Schedule schedule{ScheduleKind::kCosine, 3.0, 10, 110, 0.5, 0.1};
  for (int step = 10; step <= 110; ++step) {
    const double shape = 0.5 * (1.0 + std::cos(M_PI * (step - 10) / 100.0));
    EXPECT_NEAR(schedule.at(step), 3.0 * (0.1 + 0.9 * shape), 1e-15) << step;
  }
  EXPECT_EQ(schedule.at(10), 3.0);
  EXPECT_DOUBLE_EQ(schedule.at(110), 0.3);
  EXPECT_DOUBLE_EQ(schedule.at(5000), 0.3);
}

TEST(Schedule, RefusesWhatIsNoSchedule) {
  EXPECT_EQ(error_of({ScheduleKind::kConstant, std::nan(""), 0, 0, 0.5, 0.0}),
            "[Schedule] learning_rate nan, expected a finite number of at least 0");
  EXPECT_NE(error_of({ScheduleKind::kConstant, std::numeric_limits<double>::infinity()}), "");
  EXPECT_EQ(error_of({ScheduleKind::kConstant, 0.1, -1}),
            "[Schedule] warmup_steps -1, expected 0 or more");
  EXPECT_EQ(error_of({ScheduleKind::kCosine, 0.1, 0, 0}),
            "[Schedule] decay_steps 0, expected 1 or more for a schedule that decays");
  EXPECT_EQ(error_of({ScheduleKind::kExponential, 0.1, 0, 5, 0.0}),
            "[Schedule] decay_rate 0, expected more than 0 and at most 1");
  EXPECT_EQ(error_of({ScheduleKind::kCosine, 0.1, 0, 5, 0.5, 1.5}),
            "[Schedule] final_fraction 1.5, expected 0 to 1");
  EXPECT_EQ(error_of({ScheduleKind::kConstant, -0.5}),
            "[Schedule] learning_rate -0.5, expected a finite number of at least 0");
  EXPECT_EQ(error_of({ScheduleKind::kExponential, 0.1, 0, -2}),
            "[Schedule] decay_steps -2, expected 1 or more for a schedule that decays");
  EXPECT_EQ(error_of({ScheduleKind::kConstant, 0.0}), "");
}

TEST(Schedule, TakesTheEndsOfItsBounds) {
  for (const double rate : {1e-9, 1.0}) {
    EXPECT_EQ(error_of({ScheduleKind::kExponential, 0.1, 0, 1, rate}), "") << rate;
  }
  for (const double rate : {-0.5, 0.0, 1.001, std::nan("")}) {
    EXPECT_NE(error_of({ScheduleKind::kExponential, 0.1, 0, 1, rate}), "") << rate;
    EXPECT_EQ(error_of({ScheduleKind::kCosine, 0.1, 0, 1, rate, 0.5}), "") << "it has none";
  }
  for (const double fraction : {0.0, 1.0}) {
    EXPECT_EQ(error_of({ScheduleKind::kCosine, 0.1, 0, 1, 0.5, fraction}), "") << fraction;
  }
  for (const double fraction : {-0.001, 1.001, std::nan("")}) {
    EXPECT_NE(error_of({ScheduleKind::kCosine, 0.1, 0, 1, 0.5, fraction}), "") << fraction;
    EXPECT_EQ(error_of({ScheduleKind::kConstant, 0.1, 0, 1, 0.5, fraction}), "") << "it has none";
  }
}

TEST(Schedule, NamesGoThereAndBack) {
  for (const auto kind :
       {ScheduleKind::kConstant, ScheduleKind::kExponential, ScheduleKind::kCosine}) {
    EXPECT_EQ(parse_schedule(to_string(kind)), kind);
  }
  EXPECT_EQ(to_string(ScheduleKind::kCosine), "cosine");
  EXPECT_EQ(openrnn::error_of<ArgumentError>([] { parse_schedule("linear"); }),
            "[parse_schedule] 'linear', expected constant, exponential or cosine");
}

}  // namespace
}  // namespace openrnn::train
