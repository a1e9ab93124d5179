// Opaque to cell format and back: weights exact, bias sums exact; what is refused.
#include <cmath>

#include "saveables/support.h"

namespace openrnn {
namespace {

using testing::all_specs;
using testing::numbered;
using testing::rnn_spec;
using testing::same_bits;
using testing::thrown;
using testing::views;

void expect_weights_and_sums(const RnnSpec& spec, const Array& before, const Array& after) {
  const ParamsLayout layout(spec);
  for (const ParamRegion& region : layout.weights()) {
    for (std::int64_t i = 0; i < region.size(); ++i) {
      EXPECT_EQ(element(before.view(), region.offset + i),
                element(after.view(), region.offset + i));
    }
  }
  for (const ParamRegion& region : layout.biases()) {
    if (region.role != ParamRole::kInputBias) continue;
    const ParamRegion& other =
        layout.bias(region.layer, region.direction, ParamRole::kRecurrentBias, region.gate);
    const bool apart = spec.mode == RnnMode::kGru && region.gate == 2;
    for (std::int64_t i = 0; i < region.rows; ++i) {
      const double w0 = element(before.view(), region.offset + i);
      const double r0 = element(before.view(), other.offset + i);
      const double w1 = element(after.view(), region.offset + i);
      const double r1 = element(after.view(), other.offset + i);
      EXPECT_EQ(w0 + r0, w1 + r1) << region.name;
      EXPECT_EQ(w1, apart ? w0 : (w0 + r0) / 2) << region.name;
    }
  }
}

TEST(RoundTrip, WeightsAndBiasSumsAreExact) {
  for (const RnnSpec& spec : all_specs()) {
    SCOPED_TRACE(describe(spec));
    const TfCanonicalFormat format(spec);
    const Array params = numbered(spec);
    const std::vector<Array> tensors = format.from_opaque("test", params.view());
    const Array back = format.to_opaque("test", "", views(tensors));
    expect_weights_and_sums(spec, params, back);
    // Once halved, halves stay: the second trip changes nothing.
    const std::vector<Array> again = format.from_opaque("test", back.view());
    for (std::size_t i = 0; i < tensors.size(); ++i) EXPECT_TRUE(same_bits(tensors[i], again[i]));
    EXPECT_TRUE(same_bits(back, format.to_opaque("test", "", views(again))));
  }
}

// Half of the smallest subnormal is nothing, so the halves differ there and the sum stays.
TEST(RoundTrip, SubnormalAndSpecialSums) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    const RnnSpec spec = rnn_spec(RnnMode::kRnnTanh, 1, 4, 1, dtype);
    const TfCanonicalFormat format(spec);
    const double tiny = dtype == DType::kFloat16    ? std::ldexp(1.0, -24)
                        : dtype == DType::kBfloat16 ? std::ldexp(1.0, -133)
                        : dtype == DType::kFloat32  ? std::ldexp(1.0, -149)
                                                    : std::ldexp(1.0, -1074);
    const std::vector<double> sums{tiny, -3 * tiny, HUGE_VAL, std::nan("")};
    const Array bias = Array::of<double>({4}, sums);
    std::vector<Array> tensors{Array(dtype, {5, 4}),
                               dtype == DType::kFloat64 ? bias : cast(bias.view(), dtype)};
    const Array params = format.to_opaque("test", "", views(tensors));
    const std::vector<Array> back = format.from_opaque("test", params.view());
    for (std::int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(element(back[1].view(), i), sums[static_cast<std::size_t>(i)]) << dtype_name(dtype);
    }
    EXPECT_TRUE(std::isnan(element(back[1].view(), 3)));
  }
}

TEST(RoundTrip, ALongerBufferIsTakenAShorterRefused) {
  const RnnSpec spec = rnn_spec(RnnMode::kGru, 1, 3, 2);
  const TfCanonicalFormat format(spec);
  const Array params = numbered(spec);
  Array longer(DType::kFloat32, {params.size() + 5});
  std::copy_n(params.as<float>().data(), params.size(), longer.as<float>().data());
  const auto expected = format.from_opaque("test", params.view());
  const auto given = format.from_opaque("test", longer.view());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_TRUE(same_bits(expected[i], given[i]));
  const Array shorter(DType::kFloat32, {params.size() - 1});
  EXPECT_EQ(thrown<ArgumentError>([&] { format.from_opaque("test", shorter.view()); }),
            "[test] params has 62 elements, expected at least 63 for gru, 1 layer, 3 units, input "
            "size 2, unidirectional, float32");
  const Array other(DType::kFloat64, {63});
  EXPECT_EQ(thrown<ArgumentError>([&] { format.from_opaque("test", other.view()); }),
            "[test] params is float64, expected float32");
}

TEST(RoundTrip, WrongTensorsAreNamed) {
  const RnnSpec spec = rnn_spec(RnnMode::kLstm, 1, 3, 2);
  const TfCanonicalFormat format(spec);
  const auto refused = [&](const std::vector<Array>& tensors) {
    return thrown<ArgumentError>([&] { format.to_opaque("call", "m/", views(tensors)); });
  };
  const Array kernel(DType::kFloat32, {5, 12}), bias(DType::kFloat32, {12});
  EXPECT_EQ(refused({kernel}),
            "[call] 1 tensors, expected 2 for lstm, 1 layer, 3 units, input size 2, "
            "unidirectional, float32");
  EXPECT_EQ(refused({Array(DType::kFloat32, {12, 5}), bias}),
            "[call] tensor m/rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/kernel has shape "
            "[12, 5], expected [5, 12]");
  EXPECT_EQ(refused({kernel, Array(DType::kFloat16, {12})}),
            "[call] tensor m/rnn/multi_rnn_cell/cell_0/cudnn_compatible_lstm_cell/bias is float16, "
            "expected float32");
}

}  // namespace
}  // namespace openrnn
