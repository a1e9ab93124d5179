// What is measured before a call is divided among threads.
#include "cpu/plan/rates.h"

#include <gtest/gtest.h>

#include "cpu/isa/isa.h"
#include "cpu/plan/plan.h"
#include "cpu/support/near_cores.h"

namespace openrnn::cpu {
namespace {

template <class T>
void expect_rates(const Kernels<T>& kernels, Arithmetic arithmetic) {
  const Rates near = rates_of(kernels, arithmetic, false);
  // From a thousand times the fastest processor to a thousandth of the slowest.
  for (const double seconds : {near.tile, near.row}) {
    EXPECT_GT(seconds, 1e-15);
    EXPECT_LT(seconds, 1e-4);
  }
  const Rates far = rates_of(kernels, arithmetic, true);
  EXPECT_GT(far.far_row, 1e-15);
  EXPECT_LT(far.far_row, 1e-4);
  EXPECT_EQ(far.tile, near.tile) << "measured once";
  EXPECT_EQ(far.row, near.row);
  EXPECT_EQ(rates_of(kernels, arithmetic, false).far_row, far.far_row);
}

TEST(RatesTest, AreMeasuredOnceOfEveryKindOfKernels) {
  for (const auto isa : available_isas()) {
    SCOPED_TRACE(isa);
    force_isa(isa);
    const KernelTable& table = kernels();
    for (int arithmetic = kExact; arithmetic < kArithmetics; ++arithmetic) {
      const auto kind = static_cast<Arithmetic>(arithmetic);
      if (has_tiles(kind) && !may_use_tiles_of(table)) continue;
      SCOPED_TRACE(arithmetic);
      expect_rates(kernels_for<float>(table, kind), kind);
    }
    expect_rates(kernels_for<double>(table, kExact), kExact);
  }
  force_isa("");
}

TEST(RatesTest, AreOfTheKernelsThatAreAskedFor) {
  const Kernels<float>& narrow = kernels_for<float>(*scalar_kernels(), kExact);
  const Kernels<float>& wide = kernels_for<float>(kernels(), kExact);
  if (&narrow == &wide) GTEST_SKIP() << "this processor has no vectors";
  EXPECT_NE(rates_of(narrow, kExact, false).tile, rates_of(wide, kExact, false).tile);
}

TEST(RatesTest, AreAssumedForTests) {
  const Rates* const before = assume_rates(&kNearRates);
  const Rates rates = rates_of(kernels_for<float>(kernels(), kExact), kExact, true);
  EXPECT_EQ(assume_rates(before), &kNearRates);
  EXPECT_EQ(rates.tile, kNearRates.tile);
  EXPECT_EQ(rates.row, kNearRates.row);
  EXPECT_EQ(rates.far_row, kNearRates.far_row);
}

TEST(RatesTest, WeightsOfAStepHaveTheBytesOfTheirArithmetic) {
  const RnnSpec lstm{.num_units = 64, .input_size = 7};
  EXPECT_EQ(step_bytes(lstm, sizeof(float), kExact), 4 * 64 * 64 * 4U);
  EXPECT_EQ(step_bytes(lstm, sizeof(double), kExact), 4 * 64 * 64 * 8U);
  EXPECT_EQ(step_bytes(lstm, sizeof(float), kStoredBf16), 4 * 64 * 64 * 2U);
  EXPECT_EQ(step_bytes(lstm, sizeof(float), kInt8), 4 * 64 * 64 * 1U);
  EXPECT_EQ(step_bytes(lstm, sizeof(float), kAmx), 4 * 64 * 64 * 2U);
  EXPECT_EQ(step_bytes(lstm, sizeof(float), kBf16x3), 4 * 64 * 64 * 4U);
}

}  // namespace
}  // namespace openrnn::cpu
