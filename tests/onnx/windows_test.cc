// Operators along axes, Conv, Pad and ReduceMean, and Pow: values, defaults
// of their attributes, what they refuse.
#include <openrnn/base.h>

#include <cmath>

#include "onnx/operator_call.h"

namespace openrnn {
namespace {

const std::int64_t kOne = 1, kTwo = 2;

TEST(OnnxConv, OneDimension) {
  const Array x = floats({1, 1, 5}, {1, 2, 3, 4, 5}), w = floats({1, 1, 3}, {100, 10, 1});
  expect_shown({"Conv", {x, w}}, "float32[1, 1, 3]: 123 234 345");
  expect_shown({"Conv", {x, w, floats({1}, {0.5f})}}, "float32[1, 1, 3]: 123.5 234.5 345.5");
  expect_shown({"Conv", {x, w}, {{"pads", Integers{1, 2}}}},
               "float32[1, 1, 6]: 12 123 234 345 450 500");
  expect_shown({"Conv", {x, w}, {{"strides", Integers{2}}}}, "float32[1, 1, 2]: 123 345");
  expect_shown({"Conv", {x, w}, {{"dilations", Integers{2}}}}, "float32[1, 1, 1]: 135");
  expect_shown({"Conv", {x, w}, {{"kernel_shape", Integers{3}}}}, "float32[1, 1, 3]: 123 234 345");
  expect_shown({"Conv", {x, w}, {{"auto_pad", std::string("VALID")}}},
               "float32[1, 1, 3]: 123 234 345");
  // Padding alone: no input is read.
  expect_shown(
      {"Conv", {x, floats({1, 1, 1}, {1})}, {{"pads", Integers{2, 3}}, {"strides", Integers{9}}}},
      "float32[1, 1, 2]: 0 0");
}

// Behind the last row there is padding, not the next channel.
TEST(OnnxConv, PaddingOfOuterAxes) {
  const Array x = floats({1, 2, 2, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3}),
              w = floats({1, 2, 2, 1}, {1000, 100, 10, 1});
  expect_shown({"Conv", {x, w}, {{"pads", Integers{0, 0, 1, 0}}}},
               "float32[1, 1, 2, 3]: 1471 2582 3693 4010 5020 6030");
  expect_shown({"Conv", {x, w}, {{"pads", Integers{1, 0, 0, 0}}}},
               "float32[1, 1, 2, 3]: 107 208 309 1471 2582 3693");
  expect_shown({"Conv", {x, w}, {{"pads", Integers{2, 0, 2, 0}}, {"dilations", Integers{2, 1}}}},
               "float32[1, 1, 4, 3]: 107 208 309 401 502 603 1070 2080 3090 4010 5020 6030");
}

// The last element is the odd one: of an even kernel it is padded behind, or before.
TEST(OnnxConv, AutoPad) {
  const Array x = floats({1, 1, 4}, {1, 2, 3, 4}), w = floats({1, 1, 2}, {10, 1});
  const std::string upper = "SAME_UPPER", lower = "SAME_LOWER";
  expect_shown({"Conv", {x, w}, {{"auto_pad", upper}}}, "float32[1, 1, 4]: 12 23 34 40");
  expect_shown({"Conv", {x, w}, {{"auto_pad", lower}}}, "float32[1, 1, 4]: 1 12 23 34");
  const Array wide = floats({1, 1, 3}, {100, 10, 1});
  expect_shown({"Conv", {x, wide}, {{"auto_pad", upper}, {"strides", Integers{2}}}},
               "float32[1, 1, 2]: 123 340");
  expect_shown({"Conv", {x, wide}, {{"auto_pad", lower}, {"strides", Integers{2}}}},
               "float32[1, 1, 2]: 12 234");
  expect_shown({"Conv", {x, wide}, {{"auto_pad", upper}, {"dilations", Integers{2}}}},
               "float32[1, 1, 4]: 13 24 130 240");
  const std::string none = "NOTSET";
  expect_shown({"Conv", {x, w}, {{"auto_pad", none}, {"pads", Integers{1, 0}}}},
               "float32[1, 1, 4]: 1 12 23 34");
}

// Of a stride over the kernel some inputs lie under no output: nothing is padded, nothing left out
// before the first.
TEST(OnnxConv, AutoPadOfStridesOverTheKernel) {
  const Array x = floats({1, 1, 8}, {1, 2, 3, 4, 5, 6, 7, 8});
  for (const std::string kind : {"SAME_UPPER", "SAME_LOWER"}) {
    const auto with = [&](std::int64_t stride) {
      return Attributes{{"auto_pad", kind}, {"strides", Integers{stride}}};
    };
    expect_shown({"Conv", {x, floats({1, 1, 1}, {10})}, with(3)}, "float32[1, 1, 3]: 10 40 70");
    expect_shown({"Conv", {x, floats({1, 1, 1}, {10})}, with(5)}, "float32[1, 1, 2]: 10 60");
    expect_shown({"Conv", {x, floats({1, 1, 2}, {10, 1})}, with(4)}, "float32[1, 1, 2]: 12 56");
    expect_refused({"Conv", {floats({1, 1, 0}, {}), floats({1, 1, 2}, {1, 1})}, with(1)},
                   "spans 2 of 0 inputs");
  }
}

// A product takes 128 positions at once of so many channels: such a range may begin and end inside
// a line of outputs, and in another sample.
TEST(OnnxConv, RangesOfPositionsEndAnywhere) {
  const auto whole = [](Shape shape, int factor) {
    Array values(DType::kFloat32, std::move(shape));
    int i = 0;
    for (float& value : values.as<float>()) value = static_cast<float>(i++ * factor % 11 % 5 - 2);
    return values;
  };
  constexpr std::int64_t kChannels = 2048;
  for (const Shape& size : {Shape{6, 50}, Shape{2, 9, 18}}) {
    Shape in{size[0], kChannels}, kernel{2, kChannels};
    in.insert(in.end(), size.begin() + 1, size.end());
    kernel.insert(kernel.end(), size.size() - 1, 1);
    kernel.back() = 2;
    const Array x = whole(in, 7), w = whole(kernel, 3);
    const Array found = Call{"Conv", {x, w}}.run()[0];
    const std::int64_t width = size.back(), lines = x.size() / (size[0] * kChannels * width);
    std::int64_t at = 0;
    for (std::int64_t i = 0; i < size[0] * 2 * lines * (width - 1); ++i, ++at) {
      const std::int64_t sample = i / (2 * lines * (width - 1)), rest = i % (lines * (width - 1));
      const std::int64_t filter = i / (lines * (width - 1)) % 2, line = rest / (width - 1);
      double sum = 0.0;
      for (std::int64_t c = 0; c < kChannels; ++c) {
        for (std::int64_t tap = 0; tap < 2; ++tap) {
          sum += number_at(x, ((sample * kChannels + c) * lines + line) * width +
                                  rest % (width - 1) + tap) *
                 number_at(w, (filter * kChannels + c) * 2 + tap);
        }
      }
      ASSERT_EQ(number_at(found, at), sum) << to_string(in) << " at " << at;
    }
    EXPECT_EQ(at, found.size());
  }
}

TEST(OnnxConv, ChannelsAndGroups) {
  const Array x = floats({2, 2, 2}, {1, 2, 10, 20, 3, 4, 30, 40});
  const Array w = floats({2, 2, 1}, {1, 1, 0, 2});
  expect_shown({"Conv", {x, w}}, "float32[2, 2, 2]: 11 22 20 40 33 44 60 80");
  const Array apart = floats({4, 1, 1}, {1, 2, 3, 4});
  expect_shown({"Conv", {x, apart, floats({4}, {0.1f, 0.2f, 0.3f, 0.4f})}, {{"group", kTwo}}},
               "float32[2, 4, 2]: 1.1 2.1 2.2 4.2 30.3 60.3 40.4 80.4 "
               "3.1 4.1 6.2 8.2 90.3 120.3 120.4 160.4");
}

TEST(OnnxConv, TwoDimensions) {
  const Array x = floats({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const Array w = floats({1, 1, 2, 2}, {1000, 100, 10, 1});
  expect_shown({"Conv", {x, w}}, "float32[1, 1, 2, 2]: 1245 2356 4578 5689");
  // Of each dimension its own: pads are all before, then all after.
  expect_shown({"Conv", {x, w}, {{"pads", Integers{1, 0, 0, 1}}}},
               "float32[1, 1, 3, 3]: 12 23 30 1245 2356 3060 4578 5689 6090");
  expect_shown({"Conv", {x, w}, {{"strides", Integers{2, 1}}}}, "float32[1, 1, 1, 2]: 1245 2356");
  expect_shown({"Conv", {x, w}, {{"dilations", Integers{2, 1}}}}, "float32[1, 1, 1, 2]: 1278 2389");
}

TEST(OnnxConv, EmptyOperands) {
  const Array w = floats({2, 1, 1}, {1, 2});
  EXPECT_EQ(Call({"Conv", {floats({0, 1, 3}, {}), w}}).run()[0].shape(), (Shape{0, 2, 3}));
  EXPECT_EQ(Call({"Conv", {floats({1, 1, 3}, {1, 2, 3}), floats({0, 1, 1}, {})}}).run()[0].shape(),
            (Shape{1, 0, 3}));
  // Of no channels only the bias is left.
  expect_shown({"Conv", {floats({1, 0, 2}, {}), floats({1, 0, 1}, {}), floats({1}, {3})}},
               "float32[1, 1, 2]: 3 3");
  expect_shown(
      {"Conv", {floats({1, 1, 0}, {}), floats({1, 1, 1}, {5})}, {{"pads", Integers{1, 1}}}},
      "float32[1, 1, 2]: 0 0");
  expect_shown({"Conv",
                {floats({1, 1, 0, 2}, {}), floats({1, 1, 1, 1}, {5})},
                {{"pads", Integers{1, 0, 0, 0}}}},
               "float32[1, 1, 1, 2]: 0 0");
}

TEST(OnnxConv, RefusedOperands) {
  const Array x = floats({1, 2, 3}, {1, 2, 3, 4, 5, 6}), w = floats({1, 2, 2}, {1, 1, 1, 1});
  const std::string at = "[run] node 'n' (Conv): ";
  expect_refused({"Conv", {floats({2, 3}, {1, 2, 3, 4, 5, 6}), w}},
                 at + "X is float32 [2, 3], expected a floating dtype and [N, C, ..]");
  expect_refused({"Conv", {integers({1, 1, 1}, {1}), w}}, "X is int64 [1, 1, 1], expected");
  for (const Array& wrong : {floats({1, 1, 2}, {1, 1}), floats({1, 2}, {1, 1}),
                             floats({1, 2, 1, 1}, {1, 1}), Array(DType::kFloat64, {1, 2, 2})}) {
    expect_refused({"Conv", {x, wrong}},
                   at + "W is " + std::string(dtype_name(wrong.dtype())) + " " +
                       to_string(wrong.shape()) +
                       " and group 1, expected float32 [M, C / group, ..] of 3 dimensions for X of "
                       "[1, 2, 3], group a divisor of M and C");
  }
  for (const std::int64_t group : {-1, 0, 2, 3}) {
    expect_refused({"Conv", {x, w}, {{"group", group}}}, "and group " + std::to_string(group));
  }
  // As many channels as two groups have, and one more.
  expect_refused({"Conv",
                  {floats({1, 5, 1}, {1, 2, 3, 4, 5}), floats({2, 2, 1}, {1, 1, 1, 1})},
                  {{"group", kTwo}}},
                 "and group 2, expected");
  // Two groups of one filter together.
  expect_refused({"Conv", {x, floats({1, 1, 1}, {1})}, {{"group", kTwo}}}, "and group 2, expected");
  for (const Array& wrong : {floats({2}, {1, 2}), floats({1, 1}, {1}), integers({1}, {1})}) {
    expect_refused({"Conv", {x, w, wrong}}, at + "B is " + std::string(dtype_name(wrong.dtype())) +
                                                " " + to_string(wrong.shape()) +
                                                ", expected float32 [1]");
  }
  expect_refused({"Conv", {x}}, "input 1 is left out, expected it");
  expect_refused({"Conv", {x, floats({1, 2, 4}, {1, 1, 1, 1, 1, 1, 1, 1})}},
                 at +
                     "W is [1, 2, 4] and spans 4 of 3 inputs of X [1, 2, 3], expected no more than "
                     "there are");
  expect_refused({"Conv", {x, w}, {{"dilations", Integers{3}}}}, "spans 4 of 3 inputs");
  expect_refused({"Conv", {x, floats({1, 2, 0}, {})}}, "W has 0, expected 1 to 2147483647");
}

TEST(OnnxConv, RefusedAttributes) {
  const Array x = floats({1, 2, 3}, {1, 2, 3, 4, 5, 6}), w = floats({1, 2, 2}, {1, 1, 1, 1});
  const std::string at = "[run] node 'n' (Conv): ";
  expect_refused({"Conv", {x, w}, {{"kernel_shape", Integers{3}}}},
                 at + "kernel_shape is [3], expected [2] for W of [1, 2, 2]");
  const std::int64_t huge = std::int64_t{1} << 31;
  for (const char* name : {"strides", "dilations"}) {
    expect_refused({"Conv", {x, w}, {{name, Integers{1, 1}}}},
                   at + name + " is [1, 1], expected 1 numbers");
    for (const std::int64_t wrong :
         {std::int64_t{0}, std::int64_t{-1}, huge, INT64_MAX, INT64_MIN}) {
      expect_refused({"Conv", {x, w}, {{name, Integers{wrong}}}},
                     at + name + " has " + std::to_string(wrong) +
                         ", expected 1 to 2147483647 for each dimension");
    }
  }
  expect_refused({"Conv", {x, w}, {{"dilations", Integers{huge - 1}}}},
                 "spans 2147483648 of 3 inputs");
  expect_refused({"Conv", {x, w}, {{"pads", Integers{1}}}}, at + "pads is [1], expected 2 numbers");
  expect_refused({"Conv", {x, w}, {{"pads", Integers{0, -1}}}}, "pads has -1, expected 0 to");
  expect_refused<UnsupportedError>({"Conv", {x, w}, {{"auto_pad", std::string("SAME")}}},
                                   "[onnx] node 'n' (Conv): auto_pad is 'SAME', expected NOTSET, "
                                   "SAME_UPPER, SAME_LOWER or VALID");
  for (const char* kind : {"VALID", "SAME_UPPER", "SAME_LOWER"}) {
    expect_refused<UnsupportedError>(
        {"Conv", {x, w}, {{"auto_pad", std::string(kind)}, {"pads", Integers{0, 1}}}},
        "there are pads and auto_pad " + std::string(kind) + ", expected one");
  }
  expect_refused<UnsupportedError>({"Conv", {x, w}, {{"transposed", kOne}}},
                                   "the attribute transposed is not known");
}

TEST(OnnxPad, Modes) {
  const Array x = floats({3}, {1, 2, 3}), pads = integers({2}, {2, 1});
  const auto mode = [](const char* name) { return OnnxAttribute{"mode", std::string(name)}; };
  expect_shown({"Pad", {x, pads}}, "float32[6]: 0 0 1 2 3 0");
  expect_shown({"Pad", {x, pads, floats({}, {9})}}, "float32[6]: 9 9 1 2 3 9");
  expect_shown({"Pad", {x, pads}, {mode("constant")}}, "float32[6]: 0 0 1 2 3 0");
  expect_shown({"Pad", {x, pads}, {mode("edge")}}, "float32[6]: 1 1 1 2 3 3");
  expect_shown({"Pad", {x, pads}, {mode("reflect")}}, "float32[6]: 3 2 1 2 3 2");
  expect_shown({"Pad", {x, pads}, {mode("wrap")}}, "float32[6]: 2 3 1 2 3 1");
  // Further than the elements reach: there and back again.
  expect_shown({"Pad", {x, integers({2}, {5, 4})}, {mode("reflect")}},
               "float32[12]: 2 1 2 3 2 1 2 3 2 1 2 3");
  expect_shown({"Pad", {floats({1}, {7}), pads}, {mode("reflect")}}, "float32[4]: 7 7 7 7");
  expect_shown({"Pad", {integers({2}, {1, 2}), pads}, {mode("edge")}}, "int64[5]: 1 1 1 2 2");
  expect_shown({"Pad", {x}, {{"pads", Integers{1, 0}}, {"value", 4.0f}}, 1, 10},
               "float32[4]: 4 1 2 3");
}

TEST(OnnxPad, LessAndSomeAxes) {
  const Array x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  expect_shown({"Pad", {x, integers({4}, {0, -1, 1, 1})}}, "float32[3, 3]: 2 3 0 5 6 0 0 0 0");
  expect_shown({"Pad", {x, integers({2}, {1, -2}), std::nullopt, integers({1}, {-1})}},
               "float32[2, 2]: 0 1 0 4");
  // More is taken away on one side than there is.
  expect_shown({"Pad", {floats({2}, {1, 2}), integers({2}, {-3, 2})}}, "float32[1]: 0");
  expect_shown({"Pad", {floats({2}, {1, 2}), integers({2}, {3, -4})}}, "float32[1]: 0");
  expect_shown({"Pad", {floats({2}, {1, 2}), integers({2}, {-1, -1})}}, "float32[0]:");
  expect_shown({"Pad",
                {x, integers({2}, {-1, 1}), std::nullopt, integers({1}, {1})},
                {{"mode", std::string("edge")}}},
               "float32[2, 3]: 2 3 3 5 6 6");
}

TEST(OnnxPad, Refused) {
  const Array x = floats({3}, {1, 2, 3}), pads = integers({2}, {2, 1});
  const std::string at = "[run] node 'n' (Pad): ";
  expect_refused({"Pad", {x}}, at + "input 1 is left out");
  expect_refused({"Pad", {x, integers({1}, {1})}},
                 at + "pads is [1], expected 2 numbers, two for each axis");
  expect_refused({"Pad", {x, integers({2}, {-2, -2})}},
                 at + "pads takes 2 and 2 away from axis 0 of [3], expected no more than there is");
  expect_refused({"Pad", {x, integers({2}, {INT64_MAX, 1})}}, "pads has 9223372036854775807, expe");
  expect_refused({"Pad", {x, integers({2}, {INT64_MIN, 1})}}, "expected -2147483647 to 2147483647");
  expect_refused({"Pad", {x, pads, integers({}, {1})}},
                 at + "constant_value is int64 [], expected one float32");
  expect_refused({"Pad", {x, pads, floats({2}, {1, 2})}},
                 "constant_value is float32 [2], expected");
  expect_refused({"Pad", {x, pads, std::nullopt, integers({1}, {1})}},
                 "the axis is 1, expected one of 1");
  expect_refused({"Pad", {floats({0}, {}), pads}, {{"mode", std::string("edge")}}},
                 at + "x is [0], expected elements to copy");
  expect_refused<UnsupportedError>(
      {"Pad", {x, pads}, {{"mode", std::string("mirror")}}},
      "the mode is 'mirror', expected constant, reflect, edge or wrap");
}

TEST(OnnxReduceMean, Axes) {
  const Array x = floats({2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 9});
  const std::int64_t zero = 0;
  expect_shown({"ReduceMean", {x}}, "float32[1, 1, 1]: 4.625");
  expect_shown({"ReduceMean", {x}, {{"keepdims", zero}}}, "float32[]: 4.625");
  expect_shown({"ReduceMean", {x}, {{"axes", Integers{-1}}}}, "float32[2, 2, 1]: 1.5 3.5 5.5 8");
  expect_shown({"ReduceMean", {x, integers({2}, {0, 2})}, {{"keepdims", zero}}, 1, 18},
               "float32[2]: 3.5 5.75");
  expect_shown({"ReduceMean", {x, integers({1}, {1})}, {}, 1, 18}, "float32[2, 1, 2]: 2 3 6 7.5");
  expect_shown({"ReduceMean", {x, integers({0}, {})}, {{"noop_with_empty_axes", kOne}}, 1, 18},
               "float32[2, 2, 2]: 1 2 3 4 5 6 7 9");
  expect_shown({"ReduceMean", {floats({2, 0}, {})}, {{"axes", Integers{1}}}},
               "float32[2, 1]: nan nan");
  expect_shown({"ReduceMean", {floats({0, 2}, {})}, {{"axes", Integers{1}}}}, "float32[0, 1]:");
  expect_refused({"ReduceMean", {x}, {{"axes", Integers{3}}}}, "the axis is 3, expected one of 3");
  expect_refused({"ReduceMean", {integers({1}, {1})}},
                 "[run] node 'n' (ReduceMean): x is int64, expected a floating dtype");
}

TEST(OnnxPow, AsInC) {
  const std::vector<float> bases{0.0f, -0.0f, 1.0f,  -1.0f,    0.7f,      -0.7f,
                                 3.0f, -3.0f, 41.0f, INFINITY, -INFINITY, NAN};
  const std::vector<float> exponents{0.0f,  1.0f,   -1.0f, 2.0f,     -2.0f,     3.0f,   -3.0f,
                                     0.5f,  -0.5f,  1.7f,  -1.7f,    21.0f,     -20.0f, 65.0f,
                                     66.0f, -65.0f, 1e9f,  INFINITY, -INFINITY, NAN};
  const auto rows = static_cast<std::int64_t>(bases.size());
  const auto columns = static_cast<std::int64_t>(exponents.size());
  const Array found =
      Call{"Pow", {floats({rows, 1}, bases), floats({columns}, exponents)}}.run()[0];
  ASSERT_EQ(found.shape(), (Shape{rows, columns}));
  const float* next = found.as<float>().data();
  for (const float x : bases) {
    for (const float y : exponents) {
      const auto expected = static_cast<float>(std::pow(double{x}, double{y}));
      const float ours = *next++;
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(ours)) << x << " to " << y << " is " << ours;
      } else if (std::isinf(expected) || expected == 0.0f) {
        EXPECT_EQ(ours, expected) << x << " to " << y;
        EXPECT_EQ(std::signbit(ours), std::signbit(expected)) << x << " to " << y;
      } else {
        // Rounding once to float32; what comes before errs by some 1e-14.
        EXPECT_NEAR(ours / expected, 1.0, 6e-8) << x << " to " << y;
      }
    }
  }
}

// The error of many products would grow with their number.
TEST(OnnxPow, LargeWholeExponentsAreAsExactAsOthers) {
  for (const double x : {1.0001, 0.9997, -1.0003, 1.5, -0.999}) {
    for (const double y : {65.0, -301.0, 1001.0, 40000.0, 99999.0}) {
      const auto scalar = [](double value) {
        return Array::of<double>({1}, std::vector<double>{value});
      };
      const Array found = Call{"Pow", {scalar(x), scalar(y)}}.run()[0];
      const double expected = std::pow(x, y);
      if (expected == 0.0 || std::isinf(expected)) continue;
      EXPECT_NEAR(found.as<double>()[0] / expected, 1.0, 3e-14) << x << " to " << y;
    }
  }
}

TEST(OnnxPow, Operands) {
  const Array x = floats({2}, {2, 3});
  expect_shown({"Pow", {x, integers({}, {3})}}, "float32[2]: 8 27");
  // 1 to any power is 1, that of -1 to no number is none.
  expect_shown({"Pow", {floats({2}, {1.0f, -1.0f}), floats({}, {NAN})}}, "float32[2]: 1 nan");
  expect_shown({"Pow", {Array::of<double>({1}, std::vector<double>{1.5}), floats({2}, {2, 3})}},
               "float64[2]: 2.25 3.375");
  const std::string expected = ", expected a floating dtype and numbers";
  expect_refused({"Pow", {integers({1}, {2}), x}}, "the operands are int64 and float32" + expected);
  expect_refused({"Pow", {x, Array(DType::kBool, {2})}},
                 "the operands are float32 and bool" + expected);
}

}  // namespace
}  // namespace openrnn
