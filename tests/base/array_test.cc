#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "openrnn/base.h"
#include "support/expect_error.h"

namespace openrnn {
namespace {

TEST(Shape, CountsElements) {
  EXPECT_EQ(shape_size({}), 1);
  EXPECT_EQ(shape_size({3, 5, 7}), 105);
  EXPECT_EQ(shape_size({3, 0}), 0);
  EXPECT_EQ(shape_size({INT64_MAX, 2, 0}), 0);
  expect_error<ArgumentError>(
      [] {
        shape_size({2, -1});
      },
      "[shape_size] shape is [2, -1], expected dimensions of 0 or more");
  expect_error<ArgumentError>(
      [] {
        shape_size({INT64_MAX, 2});
      },
      "[shape_size] shape is [9223372036854775807, 2], expected fewer than 2^63 elements");
  EXPECT_EQ(to_string(Shape{}), "[]");
  EXPECT_EQ(to_string(Shape{2, 3}), "[2, 3]");
}

TEST(DType, HasSizesAndNames) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64,
                            DType::kInt32, DType::kInt64, DType::kUInt8, DType::kBool}) {
    EXPECT_EQ(parse_dtype(dtype_name(dtype)), dtype);
    EXPECT_EQ(is_floating(dtype), dtype_name(dtype).find("float") != std::string::npos);
    EXPECT_EQ(is_16_bit_float(dtype), dtype_name(dtype).ends_with("float16"));
    EXPECT_EQ(compute_dtype(dtype), is_16_bit_float(dtype) ? DType::kFloat32 : dtype);
  }
  const std::tuple<DType, std::size_t, std::string_view> rows[] = {
      {DType::kFloat16, 2, "float16"}, {DType::kBfloat16, 2, "bfloat16"},
      {DType::kFloat32, 4, "float32"}, {DType::kFloat64, 8, "float64"},
      {DType::kInt32, 4, "int32"},     {DType::kInt64, 8, "int64"},
      {DType::kUInt8, 1, "uint8"},     {DType::kBool, 1, "bool"}};
  for (const auto& [dtype, size, name] : rows) {
    EXPECT_EQ(dtype_size(dtype), size) << name;
    EXPECT_EQ(dtype_name(dtype), name);
  }
  expect_error<ArgumentError>([] { parse_dtype("float8"); },
                              "[parse_dtype] dtype is 'float8', expected one of float16, bfloat16, "
                              "float32, float64, int32, int64, uint8, bool");
}

TEST(AlignedBuffer, IsAlignedZeroAndAValue) {
  for (const std::size_t bytes : {1, 63, 64, 65, 1000}) {
    AlignedBuffer buffer(bytes);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % 64, 0u);
    auto* first = static_cast<unsigned char*>(buffer.data());
    for (std::size_t i = 0; i < bytes; ++i) ASSERT_EQ(first[i], 0);
    first[bytes - 1] = 7;
    AlignedBuffer copy = buffer;
    first[bytes - 1] = 8;
    EXPECT_EQ(static_cast<unsigned char*>(copy.data())[bytes - 1], 7);
    const AlignedBuffer moved = std::move(copy);
    EXPECT_EQ(static_cast<const unsigned char*>(moved.data())[bytes - 1], 7);
    EXPECT_EQ(copy.size(), 0u);  // NOLINT: a moved-from buffer is empty, by contract
    buffer = moved;
    EXPECT_EQ(static_cast<unsigned char*>(buffer.data())[bytes - 1], 7);
  }
  EXPECT_EQ(AlignedBuffer(0).data(), nullptr);
  EXPECT_THROW(AlignedBuffer(SIZE_MAX), std::bad_alloc);
}

TEST(AlignedBuffer, SaysHowMuchWasAskedFor) {
  // More than any machine has addresses for.
  for (const std::size_t bytes : {SIZE_MAX, std::size_t{1} << 62, (std::size_t{1} << 60) + 1}) {
    try {
      const AlignedBuffer buffer(bytes);
      FAIL() << bytes;
    } catch (const std::bad_alloc& error) {
      EXPECT_EQ(std::string(error.what()), "[allocate] " + std::to_string(bytes) +
                                               " bytes are asked for, expected no more than the "
                                               "machine has free");
    }
  }
}

TEST(Array, ViewsAndReshapes) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  Array array = Array::of<float>({2, 3}, values);
  array.as<float>()[4] = 50;
  const Array copy(array.view());
  array.as<float>()[4] = 60;
  EXPECT_EQ(copy.as<float>()[4], 50);
  EXPECT_EQ(element(array.view(), 4), 60.0);
  const Array tall = std::move(array).reshaped({3, 2});
  EXPECT_EQ(tall.shape(), (Shape{3, 2}));
  expect_error<ArgumentError>(
      [&] {
        Array(tall).reshaped({4, 2});
      },
      "[reshaped] shape is [4, 2], expected 6 elements as in [3, 2]");
  expect_error<TypeError>([&] { tall.as<double>(); },
                          "[as] the array holds float32, asked for float64");
}

TEST(Array, CastsRoundOnce) {
  const std::vector<double> values{1.0 + 0x1p-11 + 0x1p-40, -1e-30, 1e9, 0.1};
  const Array wide = Array::of<double>({4}, values);
  const Array half = cast(wide.view(), DType::kFloat16);
  EXPECT_EQ(half.as<Half>()[0].bits, 0x3C01);
  EXPECT_EQ(half.as<Half>()[2].bits, 0x7C00);
  EXPECT_EQ(element(half.view(), 0), 1.0 + 0x1p-10);
  const Array brain = cast(wide.view(), DType::kBfloat16);
  EXPECT_EQ(brain.as<Bfloat16>()[0].bits, 0x3F80);
  EXPECT_EQ(brain.as<Bfloat16>()[2].bits, 0x4E6E);
  EXPECT_EQ(element(brain.view(), 3), 0x1.9ap-4);
  EXPECT_EQ(element(cast(half.view(), DType::kBfloat16).view(), 0), 1.0);
  EXPECT_EQ(element(cast(brain.view(), DType::kFloat16).view(), 3), 0x1.9ap-4);
  const Array single = cast(wide.view(), DType::kFloat32);
  EXPECT_EQ(single.as<float>()[3], 0.1f);
  EXPECT_EQ(cast(single.view(), DType::kFloat64).as<double>()[3], static_cast<double>(0.1f));
  EXPECT_EQ(cast(single.view(), DType::kFloat16).as<Half>()[3], to_half(0.1f));
  EXPECT_EQ(cast(half.view(), DType::kFloat16).as<Half>()[0].bits, 0x3C01);
  expect_error<TypeError>([] { cast(Array(DType::kInt32, {1}).view(), DType::kFloat32); },
                          "[cast] from int32 to float32, expected floating dtypes");
  expect_error<TypeError>([] { cast(Array(DType::kFloat32, {1}).view(), DType::kInt64); },
                          "[cast] from float32 to int64, expected floating dtypes");
}

// From each floating dtype to each: numbers that all have stay, in their places.
TEST(Array, CastsBetweenAllFloatingDtypes) {
  constexpr DType kAll[] = {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64};
  const std::vector<double> values{-2.5, 0.0, 0.125, 3.0, 96.0, -0x1p-14};
  for (const DType from : kAll) {
    const Array given = cast(Array::of<double>({2, 3}, values).view(), from);
    for (const DType to : kAll) {
      const Array found = cast(given.view(), to);
      EXPECT_EQ(found.dtype(), to);
      EXPECT_EQ(found.shape(), (Shape{2, 3}));
      for (std::int64_t i = 0; i < 6; ++i) {
        EXPECT_EQ(element(found.view(), i), values[static_cast<std::size_t>(i)])
            << dtype_name(from) << " to " << dtype_name(to);
      }
    }
  }
  expect_error<TypeError>([] { cast(Array(DType::kBool, {1}).view(), DType::kUInt8); },
                          "[cast] from bool to uint8, expected floating dtypes");
}

// From 4 MiB on memory comes from elsewhere: on both sides of that size, and at it, an array begins
// with zeros and can be copied, moved and freed.
TEST(Array, SizesAroundThatOfLargeBlocks) {
  constexpr std::int64_t kLarge = std::int64_t{1} << 22;
  for (int round = 0; round < 3; ++round) {
    for (const std::int64_t bytes : {kLarge - 1, kLarge, kLarge + 1}) {
      Array array(DType::kUInt8, {bytes});
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array.data()) % AlignedBuffer::kAlignment, 0U);
      const auto values = array.as<std::uint8_t>();
      EXPECT_TRUE(std::all_of(values.begin(), values.end(), [](auto v) { return v == 0; }));
      std::fill(values.begin(), values.end(), std::uint8_t{7});
      Array copy = array;
      array = Array(DType::kUInt8, {1});
      const Array moved = std::move(copy);
      EXPECT_EQ(moved.as<std::uint8_t>().back(), 7);
    }
  }
}

TEST(FormatError, KeepsPathAndOffset) {
  const FormatError error("run.index", 17, "a bad byte");
  EXPECT_EQ(error.path(), "run.index");
  EXPECT_EQ(error.offset(), 17u);
  EXPECT_STREQ(error.what(), "[run.index @ 17] a bad byte");
}

}  // namespace
}  // namespace openrnn
