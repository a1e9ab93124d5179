// Every operation of a GPU but the product has the bits of the cpu device. Over the stand-ins this
// proves the kernels' source; on a GPU, their compiled code.
#include <cmath>
#include <limits>

#include "device/support.h"

namespace openrnn::testing {
namespace {

constexpr std::int64_t kOddSizes[] = {1, 3, 7, 15, 17, 33, 255, 257, 1037, 4097};

DeviceArray on_cpu(const DeviceArray& array) {
  return DeviceArray::from_host(cpu_device(), array.to_host().view());
}

/// Runs `make` on both devices with the same inputs and compares the bits of what it gives.
void expect_cpu_bits(
    const std::vector<DeviceArray>& inputs,
    const std::function<DeviceArray(const Device&, std::vector<DeviceArray>&)>& run) {
  std::vector<DeviceArray> here, there;
  for (const DeviceArray& input : inputs) {
    there.push_back(DeviceArray::from_host(tested(), input.to_host().view()));
    here.push_back(on_cpu(input));
  }
  expect_same_bits(run(cpu_device(), here), run(tested(), there));
}

/// Numbers of every size and sign; with infinities and signed zeros, without NaN, whose bits an
/// operation may choose, and without subnormal numbers of float64.
DeviceArray numbers(DType dtype, const Shape& shape, std::uint64_t seed) {
  Array values(DType::kFloat64, shape);
  RandomStream random(seed);
  for (double& value : values.as<double>()) {
    const double kind = random.uniform(), sign = random.uniform() < 0.5 ? -1.0 : 1.0;
    if (kind < 0.02) {
      value = sign * 0.0;
    } else if (kind < 0.03) {
      value = sign * std::numeric_limits<double>::infinity();
    } else if (kind < 0.5) {
      value = sign * random.uniform(0.0, 3.0);
    } else {
      value = sign * std::ldexp(random.uniform(1.0, 2.0), static_cast<int>(random.below(60)) - 30);
    }
  }
  return DeviceArray::from_host(cpu_device(), cast(values.view(), dtype).view());
}

// NaNs of the same place are the same here: x86 and GPUs choose other bits for them.
DeviceArray without_nan(const DeviceArray& array) {
  const Array host = array.to_host();
  Array clean(array.dtype(), array.shape());
  std::vector<double> values(static_cast<std::size_t>(host.size()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = element(host.view(), static_cast<std::int64_t>(i));
    values[i] = std::isnan(value) ? 12345.0 : value;
  }
  const Array wide = Array::of<double>(array.shape(), values);
  return DeviceArray::from_host(cpu_device(), cast(wide.view(), array.dtype()).view());
}

TEST(DeviceBits, Unary) {
  for (const DType dtype : kFloating) {
    for (const std::int64_t size : kOddSizes) {
      const DeviceArray x = numbers(dtype, {size}, 1), y = numbers(dtype, {size}, 2),
                        dy = numbers(dtype, {size}, 3);
      for (int op = 0; op <= static_cast<int>(UnaryOp::kSoftplus); ++op) {
        SCOPED_TRACE(::testing::Message() << dtype_name(dtype) << " " << size << " op " << op);
        expect_cpu_bits({x}, [&](const Device& device, std::vector<DeviceArray>& in) {
          DeviceArray to(device, dtype, {size});
          device.unary(UnaryOp(op), dtype, size, in[0].data(), to.mutable_data());
          return without_nan(to);
        });
        expect_cpu_bits({x, y, dy}, [&](const Device& device, std::vector<DeviceArray>& in) {
          DeviceArray to(device, dtype, {size});
          device.unary_gradient(UnaryOp(op), dtype, size, in[0].data(), in[1].data(), in[2].data(),
                                to.mutable_data());
          return without_nan(to);
        });
      }
    }
  }
}

// The functions over their whole range: every 15952nd float32.
TEST(DeviceBits, TranscendentalFunctionsOverTheirRange) {
  std::vector<float> all;
  for (std::uint64_t bits = 0; bits < (std::uint64_t{1} << 32); bits += std::uint64_t{997} * 16) {
    const float value = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (!std::isnan(value)) all.push_back(value);
  }
  const Array host = Array::of<float>({static_cast<std::int64_t>(all.size())}, all);
  for (const DType dtype : kFloating) {
    const DeviceArray x = DeviceArray::from_host(cpu_device(), cast(host.view(), dtype).view());
    for (const UnaryOp op :
         {UnaryOp::kTanh, UnaryOp::kSigmoid, UnaryOp::kExp, UnaryOp::kLog, UnaryOp::kSoftplus}) {
      SCOPED_TRACE(::testing::Message() << dtype_name(dtype) << " op " << static_cast<int>(op));
      expect_cpu_bits({x}, [&](const Device& device, std::vector<DeviceArray>& in) {
        DeviceArray to(device, dtype, x.shape());
        device.unary(op, dtype, x.size(), in[0].data(), to.mutable_data());
        return without_nan(to);
      });
    }
  }
}

TEST(DeviceBits, ComparisonsChoicesAndStrides) {
  for (const DType dtype : kFloating) {
    for (const std::int64_t size : kOddSizes) {
      const DeviceArray a = numbers(dtype, {size}, 1), b = numbers(dtype, {size}, 2);
      for (const CompareOp op : {CompareOp::kEqual, CompareOp::kLess, CompareOp::kLessEqual}) {
        expect_cpu_bits({a, b}, [&](const Device& device, std::vector<DeviceArray>& in) {
          DeviceArray mask(device, DType::kBool, {size}), to(device, dtype, {size});
          auto* const truths = static_cast<std::uint8_t*>(mask.mutable_data());
          device.compare(op, dtype, size, in[0].data(), in[1].data(), truths);
          device.select({.element = dtype_size(dtype),
                         .size = size,
                         .mask = truths,
                         .a = in[0].data(),
                         .b = op == CompareOp::kLess ? nullptr : in[1].data(),
                         .out = to.mutable_data()});
          return without_nan(to);
        });
      }
    }
    // Seven dimensions, more than a launch has, backwards and repeated.
    const Shape shape{2, 3, 2, 3, 2, 3, 2, 3};
    const DeviceArray x = numbers(dtype, {432}, 3);
    expect_cpu_bits({x}, [&](const Device& device, std::vector<DeviceArray>& in) {
      DeviceArray to(device, dtype, shape);
      device.copy_strided(
          {.element = dtype_size(dtype),
           .shape = shape,
           .from = static_cast<const std::byte*>(in[0].data()) + 2 * dtype_size(dtype),
           .from_strides = {36, 1, 18, 72, 3, 6, 0, -1},
           .to = to.mutable_data(),
           .to_strides = {648, 216, 108, 36, 18, 6, 3, 1}});
      return without_nan(to);
    });
  }
}

TEST(DeviceBits, Clip) {
  for (const DType dtype : kFloating) {
    for (const std::int64_t size : kOddSizes) {
      const DeviceArray x = numbers(dtype, {size}, 1), dy = numbers(dtype, {size}, 2);
      for (const bool gradient : {false, true}) {
        SCOPED_TRACE(::testing::Message() << dtype_name(dtype) << " " << size << " " << gradient);
        expect_cpu_bits({x, dy}, [&](const Device& device, std::vector<DeviceArray>& in) {
          DeviceArray to(device, dtype, {size});
          device.clip({.dtype = dtype,
                       .size = size,
                       .low = -0.7,
                       .high = 0.3,
                       .x = in[0].data(),
                       .dy = gradient ? in[1].data() : nullptr,
                       .out = to.mutable_data()});
          return without_nan(to);
        });
      }
    }
  }
}

TEST(DeviceBits, BinaryScaleFillConvert) {
  for (const DType dtype : kFloating) {
    for (const std::int64_t size : kOddSizes) {
      const DeviceArray a = numbers(dtype, {size}, 4), b = numbers(dtype, {size}, 5);
      for (int op = 0; op <= static_cast<int>(BinaryOp::kPower); ++op) {
        SCOPED_TRACE(::testing::Message() << dtype_name(dtype) << " " << size << " op " << op);
        expect_cpu_bits({a, b}, [&](const Device& device, std::vector<DeviceArray>& in) {
          DeviceArray to(device, dtype, {size});
          device.binary(BinaryOp(op), dtype, size, in[0].data(), in[1].data(), to.mutable_data());
          device.scale(dtype, size, 0.3, to.data(), to.mutable_data());
          device.accumulate(dtype, size, in[1].data(), to.mutable_data());
          return without_nan(to);
        });
      }
      for (const DType other : kFloating) {
        expect_cpu_bits({a}, [&](const Device& device, std::vector<DeviceArray>& in) {
          DeviceArray to(device, other, {size});
          device.convert(size, dtype, in[0].data(), other, to.mutable_data());
          return to;
        });
        expect_cpu_bits({random_array(dtype, {1}, 6)},
                        [&](const Device& device, std::vector<DeviceArray>& in) {
                          DeviceArray to(device, other, {size});
                          device.fill(other, size, 1.0 / 3, dtype, in[0].data(), to.mutable_data());
                          return to;
                        });
      }
    }
  }
}

// Every float16, and halves that lie between two of them.
TEST(DeviceBits, ConvertsEveryHalf) {
  std::vector<double> all;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const double value = static_cast<double>(to_float(Half{static_cast<std::uint16_t>(bits)}));
    if (!std::isfinite(value)) continue;
    // Half a unit up is a tie; a little more or less is not.
    const double unit = std::ldexp(1.0, std::max(std::ilogb(value), -14) - 10);
    for (const double part : {0.0, 0.5, 0.5 + 0x1p-30, 0.5 - 0x1p-30}) {
      all.push_back(value + part * unit);
    }
  }
  const auto size = static_cast<std::int64_t>(all.size());
  const Array host = Array::of<double>({size}, all);
  for (const DType from : {DType::kFloat32, DType::kFloat64}) {
    expect_cpu_bits({DeviceArray::from_host(cpu_device(), cast(host.view(), from).view())},
                    [&](const Device& device, std::vector<DeviceArray>& in) {
                      DeviceArray half(device, DType::kFloat16, {size}), back(device, from, {size});
                      device.convert(size, from, in[0].data(), DType::kFloat16,
                                     half.mutable_data());
                      device.convert(size, DType::kFloat16, half.data(), from, back.mutable_data());
                      return back;
                    });
  }
}

TEST(DeviceBits, FlushesSubnormalFloats) {
  const std::vector<float> tiny = {1e-38f, -1e-38f, 3e-39f, 1.5e-38f};
  const Array host = Array::of<float>({4}, tiny);
  expect_cpu_bits({DeviceArray::from_host(cpu_device(), host.view())},
                  [&](const Device& device, std::vector<DeviceArray>& in) {
                    DeviceArray to(device, DType::kFloat32, {4});
                    device.scale(DType::kFloat32, 4, 0.5, in[0].data(), to.mutable_data());
                    EXPECT_EQ(to.to_host().as<float>()[3], 0.0f);
                    return to;
                  });
}

// By name, as another 16-bit type would give other numbers.
TEST(DeviceBits, RefusesBfloat16) {
  const DeviceArray x = random_array(DType::kBfloat16, {4, 4}, 1);
  DeviceArray y(tested(), DType::kBfloat16, {4, 4}), wide(tested(), DType::kFloat32, {4, 4});
  const auto refused = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const TypeError& error) {
      return std::string(error.what()).find("dtype is bfloat16 on a GPU, expected float16") !=
             std::string::npos;
    }
    return false;
  };
  const DType dtype = DType::kBfloat16;
  EXPECT_TRUE(
      refused([&] { tested().unary(UnaryOp::kTanh, dtype, 16, x.data(), y.mutable_data()); }));
  EXPECT_TRUE(refused(
      [&] { tested().binary(BinaryOp::kAdd, dtype, 16, x.data(), x.data(), y.mutable_data()); }));
  EXPECT_TRUE(refused(
      [&] { tested().convert(16, dtype, x.data(), DType::kFloat32, wide.mutable_data()); }));
  EXPECT_TRUE(refused(
      [&] { tested().convert(16, DType::kFloat32, wide.data(), dtype, y.mutable_data()); }));
  EXPECT_TRUE(refused([&] {
    tested().matmul({.dtype = dtype,
                     .m = 4,
                     .n = 4,
                     .k = 4,
                     .a = x.data(),
                     .b = x.data(),
                     .c = y.mutable_data()});
  }));
  EXPECT_TRUE(refused([&] { tested().fill(dtype, 16, 1.0, dtype, nullptr, y.mutable_data()); }));
  EXPECT_TRUE(refused([&] { tested().column_sum(dtype, 4, 4, x.data(), y.mutable_data()); }));
}

TEST(DeviceBits, SumsAndColumnSums) {
  for (const DType dtype : kFloating) {
    for (const std::int64_t rows : {1, 3, 127, 129, 300}) {
      for (const std::int64_t cols : {1, 7, 31, 33, 131}) {
        SCOPED_TRACE(::testing::Message() << dtype_name(dtype) << " " << rows << " x " << cols);
        const DeviceArray x = random_array(dtype, {rows, cols}, 7),
                          row = random_array(dtype, {cols}, 8);
        expect_cpu_bits({x, row}, [&](const Device& device, std::vector<DeviceArray>& in) {
          DeviceArray y(device, dtype, {rows, cols}), sums(device, dtype, {cols});
          device.add_row(dtype, rows, cols, in[0].data(), in[1].data(), y.mutable_data());
          device.column_sum(dtype, rows, cols, y.data(), sums.mutable_data());
          return sums;
        });
        const DeviceArray here = on_cpu(x);
        EXPECT_EQ(tested().sum(dtype, x.size(), x.data()),
                  cpu_device().sum(dtype, x.size(), here.data()));
      }
    }
  }
}

TEST(DeviceBits, TotalOfSquares) {
  std::vector<DeviceArray> here, there;
  std::vector<ConstArrayView> here_views, there_views;
  for (const std::int64_t size : {5000, 0, 1, 4096, 33}) {
    for (const DType dtype : kFloating) {
      there.push_back(random_array(dtype, {size}, static_cast<std::uint64_t>(size)));
      here.push_back(on_cpu(there.back()));
    }
  }
  for (std::size_t i = 0; i < here.size(); ++i) {
    here_views.push_back({here[i].data(), here[i].dtype(), here[i].shape()});
    there_views.push_back({there[i].data(), there[i].dtype(), there[i].shape()});
  }
  EXPECT_EQ(tested().total_of_squares(there_views), cpu_device().total_of_squares(here_views));
  EXPECT_GT(tested().total_of_squares(there_views), 1000.0);
  EXPECT_EQ(tested().total_of_squares({}), 0.0);
}

TEST(DeviceBits, RowsOfTables) {
  for (const DType dtype : kFloating) {
    for (const std::int64_t count : {1, 5, 127, 128, 300}) {
      for (const std::int64_t cols : {1, 17, 130}) {
        SCOPED_TRACE(::testing::Message() << dtype_name(dtype) << " " << count << " x " << cols);
        std::vector<std::int32_t> places(static_cast<std::size_t>(count));
        RandomStream random(9);
        // Some rows of the table often, some once, some never.
        for (auto& place : places)
          place = static_cast<std::int32_t>(random.below(1 + random.below(23)));
        const DeviceArray table = random_array(dtype, {23, cols}, 10),
                          rows = random_array(dtype, {count, cols}, 11);
        expect_cpu_bits({table, rows, int_array(places)},
                        [&](const Device& device, std::vector<DeviceArray>& in) {
                          device.scatter_add_rows(dtype, count, cols, in[1].data(),
                                                  places_of(in[2]), in[0].mutable_data());
                          return in[0];
                        });
        expect_cpu_bits({table, int_array(places)},
                        [&](const Device& device, std::vector<DeviceArray>& in) {
                          DeviceArray out(device, dtype, {count, cols});
                          device.gather_rows(dtype, count, cols, in[0].data(), places_of(in[1]),
                                             out.mutable_data());
                          return out;
                        });
      }
    }
  }
}

TEST(DeviceBits, Dropout) {
  for (const DType dtype : kFloating) {
    for (const std::int64_t cols : {1, 3, 4, 21, 1030}) {
      for (const double rate : {0.0, 0.3, 0.5, 1.0}) {
        SCOPED_TRACE(::testing::Message() << dtype_name(dtype) << " " << cols << " " << rate);
        for (const DropoutKey& key : {DropoutKey{1234567890123u, 42}, {1234567890123u, 42, 4, 9}}) {
          expect_cpu_bits({numbers(dtype, {9, cols}, 12)},
                          [&](const Device& device, std::vector<DeviceArray>& in) {
                            device.dropout({.dtype = dtype,
                                            .rows = 9,
                                            .cols = cols,
                                            .before = 3,
                                            .key = key,
                                            .rate = rate,
                                            .x = in[0].data(),
                                            .out = in[0].mutable_data()});
                            return in[0];
                          });
        }
      }
    }
  }
}

}  // namespace
}  // namespace openrnn::testing
