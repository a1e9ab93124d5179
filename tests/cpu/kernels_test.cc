// Rounding to float16 in the kernels, and what the instruction sets share.
#include "cpu/kernels/kernels.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "cpu/isa/isa.h"
#include "openrnn/base.h"

namespace openrnn::cpu {
namespace {

std::vector<const KernelTable*> tables() {
  std::vector<const KernelTable*> list;
  const std::string_view old = isa_name();
  for (const std::string_view isa : available_isas()) {
    force_isa(isa);
    list.push_back(&kernels());
  }
  force_isa(old);
  return list;
}

TEST(HalfKernels, WidenEveryHalf) {
  std::vector<std::uint16_t> halves(65536);
  for (std::size_t i = 0; i < halves.size(); ++i) halves[i] = static_cast<std::uint16_t>(i);
  std::vector<float> wide(halves.size());
  for (const KernelTable* table : tables()) {
    table->widen(halves.data(), wide.data(), 65536);
    for (std::size_t i = 0; i < halves.size(); ++i) {
      const float want = to_float(Half{halves[i]});
      if (want != want) {
        ASSERT_NE(wide[i], wide[i]) << table->name << " " << i;
      } else {
        ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]), std::bit_cast<std::uint32_t>(want))
            << table->name << " " << i;
      }
    }
  }
}

// Every half, the points midway to the next one, and the floats next to them.
std::vector<float> boundaries() {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < 0x7C00; ++bits) {
    const float low = to_float(Half{static_cast<std::uint16_t>(bits)});
    const float high =
        bits == 0x7BFF ? 65536.0f : to_float(Half{static_cast<std::uint16_t>(bits + 1)});
    const float middle = (low + high) / 2;
    for (const float v :
         {low, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)}) {
      values.push_back(v);
      values.push_back(-v);
    }
  }
  for (const float v : {65520.0f, 65519.996f, 1e30f, HUGE_VALF, NAN}) values.push_back(v);
  return values;
}

TEST(HalfKernels, RoundToNearestEven) {
  const std::vector<float> x = boundaries();
  std::vector<std::uint16_t> halves(x.size());
  for (const KernelTable* table : tables()) {
    table->narrow(x.data(), halves.data(), static_cast<std::int64_t>(x.size()));
    std::vector<float> rounded = x;
    table->round_half(rounded.data(), static_cast<std::int64_t>(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Half want = to_half(x[i]);
      ASSERT_EQ(halves[i], want.bits) << table->name << " " << std::hexfloat << x[i];
      if (std::isnan(x[i])) continue;
      ASSERT_EQ(rounded[i], to_float(want)) << table->name << " " << x[i];
    }
  }
}

TEST(Isa, TablesBearTheirNames) {
  for (const KernelTable* table : tables()) {
    const std::string_view old = isa_name();
    force_isa(table->name);
    EXPECT_EQ(isa_name(), table->name);
    force_isa(old);
  }
}

TEST(Isa, AnUnknownOneIsRefused) {
  try {
    force_isa("mmx");
    FAIL() << "mmx was taken";
  } catch (const EngineError& error) {
    EXPECT_EQ(std::string(error.what()).find("[force_isa] instruction set is 'mmx', expected one"),
              0u);
  }
}

}  // namespace
}  // namespace openrnn::cpu
