// Operators of ONNX programs in every floating dtype: each has its own way through a kernel, and
// none goes by float32.
#include <openrnn/base.h>

#include "onnx/operator_call.h"

namespace openrnn {
namespace {

using Inputs = std::vector<std::optional<Array>>;

Inputs in_dtype(const Inputs& inputs, DType dtype) {
  Inputs all;
  for (const std::optional<Array>& input : inputs) {
    const bool floating = input && is_floating(input->dtype());
    all.push_back(floating ? std::optional(cast(input->view(), dtype)) : input);
  }
  return all;
}

// Numbers that every dtype holds, and so do all sums and products of them here.
TEST(OnnxDtypes, EachComputesTheSame) {
  const Array x = floats({1, 1, 5}, {1, 2, 3, 4, 5}), w = floats({1, 1, 3}, {1, 2, 3});
  const Array square = floats({2, 2}, {1, 2, 3, 5});
  const Array lengths = Array::of<std::int32_t>({2}, std::vector<std::int32_t>{2, 3});
  const Array steps = floats({3, 2, 1}, {1, 10, 2, 20, 3, 30});
  const Inputs rnn{
      steps,   floats({1, 1, 1}, {2}),   floats({1, 1, 1}, {1}), floats({1, 2}, {0.25f, 0.75f}),
      lengths, floats({1, 2, 1}, {4, 8})};
  const OnnxAttribute relu{"activations", std::vector<std::string>{"Relu"}};
  const Call calls[] = {
      {"Conv", {x, w, floats({1}, {0.5f})}, {{"pads", Integers{1, 1}}}},
      {"Conv", {floats({2, 1, 2}, {1, 2, 3, 4}), floats({2, 1, 1}, {1, 3})}},
      {"MatMul", {floats({2, 1, 2}, {1, 2, 3, 4}), floats({2, 2, 1}, {5, 6, 7, 8})}},
      {"MatMul", {square, square}},
      {"Gemm", {square, square, floats({2}, {8, 4})}, {{"alpha", 2.0f}, {"beta", 0.5f}}},
      {"ReduceMean", {square}, {{"axes", Integers{1}}}},
      {"Pad", {square, integers({4}, {0, 1, 1, 0})}},
      {"Pad", {square, integers({4}, {0, 1, 1, 0})}, {{"mode", std::string("edge")}}},
      {"Pad", {square}, {{"pads", Integers{0, 0, 1, 0}}, {"value", 3.0f}}, 1, 10},
      {"Pow", {square, floats({}, {2})}},
      {"Add", {square, floats({2}, {1, -1})}},
      {"Sub", {square, floats({2}, {1, -1})}},
      {"Mul", {square, floats({2}, {2, 4})}},
      {"Div", {square, floats({2}, {2, 4})}},
      {"Clip", {square, floats({}, {2}), floats({}, {3})}},
      {"LeakyRelu", {floats({2}, {-8, 8})}, {{"alpha", 0.25f}}},
      {"Elu", {floats({2}, {0, 8})}},
      {"HardSigmoid", {floats({2}, {0, 1})}, {{"alpha", 0.25f}, {"beta", 0.25f}}},
      {"Softsign", {floats({3}, {-1, 0, 3})}},
      {"Softmax", {floats({2, 1}, {3, 3})}, {{"axis", std::int64_t{0}}}},
      {"Softmax", {floats({2, 2}, {3, 3, 4, 4})}, {{"axis", std::int64_t{1}}}, 1, 12},
      {"Dropout", {square}},
      {"RNN", rnn, {relu}},
      {"RNN", rnn, {relu, {"direction", std::string("reverse")}}},
  };
  for (const Call& call : calls) {
    const std::string expected = shown(call.run()[0]);
    ASSERT_TRUE(expected.starts_with("float32["));
    for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat64}) {
      Call other = call;
      other.inputs = in_dtype(call.inputs, dtype);
      expect_shown(other, std::string(dtype_name(dtype)) + expected.substr(7));
    }
  }
}

// More bits than a float32 has.
TEST(OnnxDtypes, DoublesStayDoubles) {
  const double one = 1.0 + 0x1p-40;
  const auto of = [](Shape shape, double value) {
    Array array(DType::kFloat64, std::move(shape));
    for (double& x : array.as<double>()) x = value;
    return array;
  };
  const Array x = of({1}, one), zero = of({1}, 0.0), unit = of({1}, 1.0), row = of({1, 1}, one);
  const Call calls[] = {
      {"Add", {x, zero}},
      {"Sub", {x, zero}},
      {"Mul", {x, unit}},
      {"Div", {x, unit}},
      {"Pow", {x, unit}},
      {"Abs", {x}},
      {"Relu", {x}},
      {"Elu", {x}},
      {"LeakyRelu", {x}},
      {"Clip", {x}},
      {"Clip", {unit, x}},
      {"Clip", {of({1}, 2.0), std::nullopt, x}},
      {"Dropout", {x}},
      {"MatMul", {row, of({1, 1}, 1.0)}},
      {"MatMul", {of({1, 1, 1}, one), of({1, 1, 1}, 1.0)}},
      {"Gemm", {row, of({1, 1}, 1.0), zero}},
      {"Gemm", {of({1, 1}, 0.0), row, x}},
      {"Conv", {of({1, 1, 1}, one), of({1, 1, 1}, 1.0), zero}},
      {"Conv", {of({1, 1, 1}, 1.0), of({1, 1, 1}, one)}},
      {"Conv", {of({1, 1, 1}, 0.0), of({1, 1, 1}, 1.0), x}},
      {"ReduceMean", {x}},
      {"Pad", {x, integers({2}, {0, 0})}},
      {"Pad", {of({0}, 0.0), integers({2}, {1, 0}), of({}, one)}},
      {"RNN",
       {of({1, 1, 1}, one), of({1, 1, 1}, 1.0), of({1, 1, 1}, 0.0)},
       {{"activations", std::vector<std::string>{"Relu"}}}},
  };
  for (const Call& call : calls) {
    const Array found = call.run()[0];
    ASSERT_EQ(found.dtype(), DType::kFloat64) << call.op;
    EXPECT_EQ(found.as<double>()[0], one) << call.op;
  }
}

// Attributes are float32 numbers, those that are left out too.
TEST(OnnxDtypes, DefaultsAreThoseOfFloat32) {
  const auto of_one = [](const char* op, double x, Attributes attributes = {}) {
    return Call{op, {Array::of<double>({1}, std::span(&x, 1))}, std::move(attributes)}
        .run()[0]
        .as<double>()[0];
  };
  EXPECT_EQ(of_one("LeakyRelu", -1.0), -static_cast<double>(0.01f));
  EXPECT_EQ(of_one("LeakyRelu", -1.0, {{"alpha", 0.1f}}), -static_cast<double>(0.1f));
  EXPECT_EQ(of_one("HardSigmoid", 1.0), static_cast<double>(0.2f) + 0.5);
  EXPECT_EQ(of_one("HardSigmoid", -1.0, {{"alpha", 0.1f}, {"beta", 0.3f}}),
            static_cast<double>(0.3f) - static_cast<double>(0.1f));
  EXPECT_EQ(of_one("HardSigmoid", 100.0), 1.0);
  EXPECT_EQ(of_one("HardSigmoid", -100.0), 0.0);
}

TEST(OnnxDtypes, ErrorsNameThem) {
  const Array x = floats({3, 2, 1}, {1, 2, 3, 4, 5, 6}), w = floats({1, 4, 1}, {1, 1, 1, 1});
  const Array state = floats({1, 2, 1}, {1, 2}), wide(DType::kFloat64, {1, 2, 1});
  const std::string at = "[run] node 'n' (LSTM): ";
  const auto lstm = [&](const Array& h, const Array& c) {
    return Call{"LSTM", {x, w, w, std::nullopt, std::nullopt, h, c}};
  };
  expect_refused(lstm(wide, state), at + "initial_h is float64 [1, 2, 1], expected float32 ");
  expect_refused(lstm(state, wide),
                 at + "initial_c is float64 [1, 2, 1], expected float32 [1, 2, 1]");
  expect_refused(lstm(state, floats({2, 1, 1}, {1, 2})),
                 at + "initial_c is float32 [2, 1, 1], expected float32 [1, 2, 1]");
  const Array left = floats({2, 1, 3}, {1, 2, 3, 4, 5, 6}), right = floats({2, 2}, {1, 2, 3, 4});
  expect_refused({"MatMul", {left, floats({1, 2, 1}, {1, 2})}},
                 "(MatMul): the operands are [2, 1, 3] and [2, 2, 1], expected equal inner sizes");
  expect_refused({"MatMul", {left, cast(right.view(), DType::kFloat64)}},
                 "(MatMul): the operands are float32 [2, 1, 3] and float64 [2, 2], expected");
  expect_refused({"Sub", {cast(right.view(), DType::kFloat16), integers({1}, {1})}},
                 "(Sub): the operands are float16 and int64, expected equal dtypes");
}

}  // namespace
}  // namespace openrnn
