// What training computes besides the recurrent layers has the same bits on every instruction set.
#include "device/support.h"
#include "openrnn/runtime.h"

namespace openrnn::testing {
namespace {

// A dense layer, its activations, a loss and all gradients, one after another.
std::vector<DeviceArray> results(DType dtype) {
  const Device& device = cpu_device();
  const DType wide = dtype == DType::kFloat64 ? dtype : DType::kFloat32;
  constexpr std::int64_t kRows = 37, kIn = 53, kOut = 29;
  const DeviceArray x = random_array(dtype, {kRows, kIn}, 1),
                    w = random_array(dtype, {kIn, kOut}, 2), bias = random_array(dtype, {kOut}, 3);
  std::vector<std::int32_t> classes;
  for (std::int64_t row = 0; row < kRows; ++row) {
    classes.push_back(static_cast<std::int32_t>(row == 5 ? -99 : row * row % kOut));
  }
  const DeviceArray labels = int_array(classes);
  const auto* places = static_cast<const std::int32_t*>(labels.data());
  DeviceArray y(device, dtype, {kRows, kOut}),
      h = y, p(device, wide, {kRows, kOut}), losses(device, wide, {kRows}),
      dy(device, dtype, {kRows, kOut}), dw(device, dtype, {kIn, kOut}),
      dx(device, dtype, {kRows, kIn});
  h = DeviceArray(device, dtype, {kRows, kOut});
  device.matmul({.dtype = dtype,
                 .m = kRows,
                 .n = kOut,
                 .k = kIn,
                 .a = x.data(),
                 .b = w.data(),
                 .bias = bias.data(),
                 .c = y.mutable_data()});
  device.unary(UnaryOp::kTanh, dtype, y.size(), y.data(), h.mutable_data());
  device.unary(UnaryOp::kSigmoid, dtype, y.size(), y.data(), y.mutable_data());
  device.binary(BinaryOp::kDivide, dtype, y.size(), h.data(), y.data(), y.mutable_data());
  device.softmax_cross_entropy({.dtype = dtype,
                                .rows = kRows,
                                .classes = kOut,
                                .logits = y.data(),
                                .labels = places,
                                .losses = losses.mutable_data(),
                                .probabilities = p.mutable_data()});
  device.softmax_cross_entropy_gradient({.dtype = dtype,
                                         .rows = kRows,
                                         .classes = kOut,
                                         .probabilities = p.data(),
                                         .labels = places,
                                         .row_gradients = losses.data(),
                                         .logits_gradient = dy.mutable_data()});
  device.matmul({.dtype = dtype,
                 .m = kIn,
                 .n = kOut,
                 .k = kRows,
                 .a = x.data(),
                 .b = dy.data(),
                 .c = dw.mutable_data(),
                 .transpose_a = true});
  device.matmul({.dtype = dtype,
                 .m = kRows,
                 .n = kIn,
                 .k = kOut,
                 .a = dy.data(),
                 .b = w.data(),
                 .c = dx.mutable_data(),
                 .transpose_b = true});
  return {y, h, p, losses, dy, dw, dx};
}

// Every function of one number, from where nothing is left of it to where nothing fits.
std::vector<DeviceArray> curves(DType dtype) {
  std::vector<DeviceArray> all;
  for (const double range : {1e-3, 1.2, 20.0, 120.0, 900.0}) {
    const DeviceArray x = random_array(dtype, {203}, 7, -range, range);
    for (const UnaryOp op : {UnaryOp::kTanh, UnaryOp::kSigmoid, UnaryOp::kExp, UnaryOp::kSquare,
                             UnaryOp::kLog, UnaryOp::kSoftplus, UnaryOp::kSqrt}) {
      DeviceArray y(cpu_device(), dtype, {203});
      cpu_device().unary(op, dtype, 203, x.data(), y.mutable_data());
      all.push_back(std::move(y));
    }
  }
  return all;
}

TEST(InstructionSets, SameBits) {
  const std::string before(cpu_isa());
  for (const DType dtype : floating()) {
    force_cpu_isa("scalar");
    const std::vector<DeviceArray> plain = results(dtype), plain_curves = curves(dtype);
    for (const std::string_view isa : available_cpu_isas()) {
      SCOPED_TRACE(::testing::Message() << isa << ", " << dtype_name(dtype));
      force_cpu_isa(isa);
      ASSERT_EQ(cpu_isa(), isa);
      const std::vector<DeviceArray> here = results(dtype), here_curves = curves(dtype);
      for (std::size_t i = 0; i < plain.size(); ++i) expect_same_bits(plain[i], here[i]);
      for (std::size_t i = 0; i < plain_curves.size(); ++i) {
        expect_same_bits(plain_curves[i], here_curves[i]);
      }
    }
  }
  force_cpu_isa(before);
}

}  // namespace
}  // namespace openrnn::testing
