// What is measured before a call is divided among threads.
#include "cpu/plan/rates.h"

#include <gtest/gtest.h>

#include <vector>

#include "cpu/isa/isa.h"
#include "cpu/plan/plan.h"
#include "cpu/support/near_cores.h"

namespace openrnn::cpu {
namespace {

/// 17 panels of zeros, whose columns have `inner` values.
template <class T>
struct Zeros {
  static constexpr std::int64_t kPanels = 17;
  Zeros(const Kernels<T>& kernels, Arithmetic arithmetic, std::int64_t inner) {
    const ElementCount count = count_elements(arithmetic, inner);
    const std::int64_t step = kColumnWidth * kernels.lanes;
    const std::int64_t panel = step * (count.elements + count.extra);
    values.resize(static_cast<std::size_t>(kPanels * panel + inner));
    given = {{.b = values.data(),
              .k = count.elements,
              .b_step = step,
              .b_panel = panel,
              .width = kColumnWidth,
              .last = kPanels * kColumnWidth,
              .inner = inner},
             values.data() + kPanels * panel};
  }
  std::vector<T> values;
  RowAndPanels<T> given{};
};

template <class T>
void expect_rates(const Kernels<T>& kernels, Arithmetic arithmetic) {
  const Rates near = rates_of<T>(kernels, arithmetic, nullptr);
  // Seconds, and not zero; how many depends on who else uses the machine.
  for (const double seconds : {near.tile, near.row}) {
    EXPECT_GT(seconds, 1e-15);
    EXPECT_LT(seconds, 1.0);
  }
  const Zeros<T> weights(kernels, arithmetic, 33);
  const Rates far = rates_of(kernels, arithmetic, &weights.given);
  EXPECT_GT(far.far_row, 1e-15);
  EXPECT_LT(far.far_row, 1.0);
  EXPECT_EQ(far.tile, near.tile) << "measured once";
  EXPECT_EQ(far.row, near.row);
  EXPECT_EQ(rates_of<T>(kernels, arithmetic, nullptr).far_row, far.far_row);
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
  EXPECT_NE(rates_of<float>(narrow, kExact, nullptr).tile,
            rates_of<float>(wide, kExact, nullptr).tile);
}

TEST(RatesTest, AreAssumedForTests) {
  const Rates* const before = assume_rates(&kNearRates);
  const Rates rates = rates_of<float>(kernels_for<float>(kernels(), kExact), kExact, nullptr);
  EXPECT_EQ(assume_rates(before), &kNearRates);
  EXPECT_EQ(rates.tile, kNearRates.tile);
  EXPECT_EQ(rates.row, kNearRates.row);
  EXPECT_EQ(rates.far_row, kNearRates.far_row);
}

TEST(RatesTest, StepsAreMeasuredAsThePlanReadsThem) {
  const auto bytes = static_cast<std::int64_t>(l2_bytes());
  // Weights of 4 values a unit, one vector too many for L2, by what a weight takes.
  const auto held = [&](std::size_t element, Arithmetic arithmetic, double packed) {
    const auto values = static_cast<double>(bytes) / packed / 4 / 16;
    const RnnSpec most{.num_units = static_cast<std::int64_t>(values) - 16, .num_proj = 16};
    RnnSpec more = most;
    more.num_units = static_cast<std::int64_t>(values) + 16;
    return l2_holds_steps(most, 16, element, arithmetic) &&
           !l2_holds_steps(more, 16, element, arithmetic);
  };
  EXPECT_TRUE(held(sizeof(float), kExact, 4));
  EXPECT_TRUE(held(sizeof(double), kExact, 8));
  EXPECT_TRUE(held(sizeof(float), kStoredBf16, 2));
  EXPECT_TRUE(held(sizeof(float), kInt8, 1));
  EXPECT_TRUE(held(sizeof(float), kAmx, 2));
  EXPECT_TRUE(held(sizeof(float), kBf16x3, 4));
  // The last vector counts whole.
  const auto units = bytes / 4 / 4 / 16 / 16 * 16;
  const RnnSpec whole{.num_units = units, .num_proj = 16};
  RnnSpec part = whole;
  part.num_units = units - 15;
  EXPECT_EQ(l2_holds_steps(whole, 16, sizeof(float), kExact),
            l2_holds_steps(part, 16, sizeof(float), kExact));
}

}  // namespace
}  // namespace openrnn::cpu
