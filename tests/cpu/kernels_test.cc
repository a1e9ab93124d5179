// Rounding to 16 bits in the kernels, and what the instruction sets share.
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

struct Format {
  Storage storage;
  float (*widen)(std::uint16_t);
  std::uint16_t (*narrow)(float);
  std::uint32_t infinity;
  float beyond;  // where the next finite number would be
};
constexpr Format kFormats[] = {
    {kStorageHalf, [](std::uint16_t bits) { return to_float(Half{bits}); },
     [](float x) { return to_half(x).bits; }, 0x7C00, 65536.0F},
    {kStorageBf16, [](std::uint16_t bits) { return to_float(Bfloat16{bits}); },
     [](float x) { return to_bfloat16(x).bits; }, 0x7F80, 0.0F}};

TEST(StorageKernels, WidenEveryNumber) {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint16_t>(i);
  std::vector<float> wide(all.size());
  for (const Format& format : kFormats) {
    for (const KernelTable* table : tables()) {
      table->storage[format.storage].widen(all.data(), wide.data(), 65536);
      for (std::size_t i = 0; i < all.size(); ++i) {
        const float want = format.widen(all[i]);
        if (want != want) {
          ASSERT_NE(wide[i], wide[i]) << table->name << " " << i;
        } else {
          ASSERT_EQ(std::bit_cast<std::uint32_t>(wide[i]), std::bit_cast<std::uint32_t>(want))
              << table->name << " " << i;
        }
      }
    }
  }
}

// Every number, the points midway to the next one, and the floats next to them.
std::vector<float> boundaries(const Format& format) {
  std::vector<float> values;
  for (std::uint32_t bits = 0; bits < format.infinity; ++bits) {
    const float low = format.widen(static_cast<std::uint16_t>(bits));
    // Above the largest bfloat16 is no float: its tie is given by its bits.
    const bool last = bits + 1 == format.infinity;
    const float high = last ? format.beyond : format.widen(static_cast<std::uint16_t>(bits + 1));
    const float middle = high == 0.0F ? std::bit_cast<float>(bits << 16 | 0x8000U)
                                      : static_cast<float>((double{low} + double{high}) / 2);
    for (const float v :
         {low, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, HUGE_VALF)}) {
      values.push_back(v);
      values.push_back(-v);
    }
  }
  for (const float v : {65520.0f, 65519.996f, 1e30f, HUGE_VALF, -HUGE_VALF, NAN, -NAN}) {
    values.push_back(v);
  }
  // NaN of which the upper bits say infinity, and a signalling one.
  values.push_back(std::bit_cast<float>(0x7F800001U));
  values.push_back(std::bit_cast<float>(0xFFA00000U));
  return values;
}

void expect_rounded(const KernelTable& table, const Format& format, const std::vector<float>& x) {
  const StorageKernels& storage = table.storage[format.storage];
  const auto size = static_cast<std::int64_t>(x.size());
  std::vector<std::uint16_t> bits(x.size());
  storage.narrow(x.data(), bits.data(), size);
  std::vector<float> rounded = x;
  storage.round(rounded.data(), size);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::uint16_t want = format.narrow(x[i]);
    ASSERT_EQ(bits[i], want) << table.name << " " << std::hexfloat << x[i];
    if (std::isnan(x[i])) continue;
    ASSERT_EQ(rounded[i], format.widen(want)) << table.name << " " << x[i];
  }
}

TEST(StorageKernels, RoundToNearestEven) {
  for (const Format& format : kFormats) {
    const std::vector<float> x = boundaries(format);
    for (const KernelTable* table : tables()) expect_rounded(*table, format, x);
  }
}

// Of every length around the vectors, and nothing beyond it.
TEST(StorageKernels, LeaveTheRestAlone) {
  const std::vector<float> x(40, 1.0F + 0x1p-7F + 0x1p-9F);
  for (const Format& format : kFormats) {
    for (const KernelTable* table : tables()) {
      for (std::int64_t size = 0; size <= 35; ++size) {
        std::vector<std::uint16_t> bits(x.size(), 0xABCD);
        table->storage[format.storage].narrow(x.data(), bits.data(), size);
        std::vector<float> wide(x.size(), 7.0F);
        table->storage[format.storage].widen(bits.data(), wide.data(), size);
        for (std::int64_t i = 0; i < 40; ++i) {
          const std::uint16_t want = i < size ? format.narrow(x[0]) : std::uint16_t{0xABCD};
          ASSERT_EQ(bits[i], want) << table->name << " " << size << " " << i;
          ASSERT_EQ(wide[i], i < size ? format.widen(want) : 7.0F) << table->name << " " << size;
        }
      }
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
