// Each operator of an ONNX program: values, defaults of its attributes, what it refuses.
#include <cmath>

#include "onnx/operator_call.h"

namespace openrnn {
namespace {

TEST(OnnxOperators, FunctionsOfOneArray) {
  const Array x = floats({4}, {-2.0f, -0.5f, 0.0f, 3.0f});
  expect_shown({"Abs", {x}}, "float32[4]: 2 0.5 0 3");
  expect_shown({"Neg", {x}}, "float32[4]: 2 0.5 -0 -3");
  expect_shown({"Relu", {x}}, "float32[4]: 0 0 0 3");
  expect_shown({"Exp", {x}}, "float32[4]: 0.1353 0.6065 1 20.09");
  expect_shown({"Sigmoid", {x}}, "float32[4]: 0.1192 0.3775 0.5 0.9526");
  expect_shown({"Tanh", {x}}, "float32[4]: -0.964 -0.4621 0 0.9951");
  expect_shown({"Sqrt", {floats({2}, {4.0f, 2.25f})}}, "float32[2]: 2 1.5");
  expect_shown({"Log", {floats({2}, {1.0f, 20.0f})}}, "float32[2]: 0 2.996");
  expect_shown({"LeakyRelu", {x}}, "float32[4]: -0.02 -0.005 0 3");
  expect_shown({"LeakyRelu", {x}, {{"alpha", 0.25f}}}, "float32[4]: -0.5 -0.125 0 3");
  expect_shown({"Elu", {x}}, "float32[4]: -0.8647 -0.3935 0 3");
  expect_shown({"Elu", {x}, {{"alpha", 2.0f}}}, "float32[4]: -1.729 -0.7869 0 3");
  expect_shown({"HardSigmoid", {x}}, "float32[4]: 0.1 0.4 0.5 1");
  expect_shown({"HardSigmoid", {x}, {{"alpha", 0.5f}, {"beta", 0.25f}}}, "float32[4]: 0 0 0.25 1");
  expect_shown({"Softplus", {x}}, "float32[4]: 0.1269 0.4741 0.6931 3.049");
  expect_shown({"Softsign", {x}}, "float32[4]: -0.6667 -0.3333 0 0.75");
  expect_shown({"Clip", {x}}, "float32[4]: -2 -0.5 0 3");
  expect_shown({"Clip", {x, floats({}, {-1.0f})}}, "float32[4]: -1 -0.5 0 3");
  expect_shown({"Clip", {x, std::nullopt, floats({}, {1.0f})}}, "float32[4]: -2 -0.5 0 1");
  expect_shown({"Clip", {x}, {{"min", -1.0f}, {"max", 2.0f}}, 1, 6}, "float32[4]: -1 -0.5 0 2");
  expect_shown({"Clip", {floats({1}, {NAN}), floats({}, {0.0f})}}, "float32[1]: nan");
  for (const char* op : {"Clip", "Elu", "Log", "Softsign"}) {
    expect_refused({op, {integers({1}, {1})}}, "[run] node 'n' (" + std::string(op) +
                                                   "): x is int64, expected a floating dtype");
  }
}

TEST(OnnxOperators, Dropout) {
  const Array x = floats({2}, {1.0f, 2.0f});
  Array flag(DType::kBool, {});
  const std::vector<Array> outputs = Call{"Dropout", {x}, {{"ratio", 0.5f}}, 2}.run();
  EXPECT_EQ(shown(outputs[0]), "float32[2]: 1 2");
  EXPECT_EQ(shown(outputs[1]), "bool[2]: 1 1");
  flag.as<bool>()[0] = false;
  expect_shown({"Dropout", {x, floats({}, {0.5f}), flag}}, "float32[2]: 1 2");
  flag.as<bool>()[0] = true;
  expect_refused({"Dropout", {x, floats({}, {0.5f}), flag}},
                 "training_mode is true, expected a model for inference");
}

TEST(OnnxOperators, Arithmetic) {
  const Array a = floats({2}, {6.0f, 8.0f}), b = floats({2}, {2.0f, 4.0f});
  expect_shown({"Add", {a, b}}, "float32[2]: 8 12");
  expect_shown({"Sub", {a, b}}, "float32[2]: 4 4");
  expect_shown({"Mul", {a, b}}, "float32[2]: 12 32");
  expect_shown({"Div", {a, b}}, "float32[2]: 3 2");
  const Array i = integers({2}, {6, -8}), j = integers({1}, {4});
  expect_shown({"Add", {i, j}}, "int64[2]: 10 -4");
  expect_shown({"Sub", {i, j}}, "int64[2]: 2 -12");
  expect_shown({"Mul", {i, j}}, "int64[2]: 24 -32");
  expect_shown({"Div", {i, j}}, "int64[2]: 1 -2");
  const Array narrow = Array::of<std::int32_t>({2}, std::vector<std::int32_t>{INT32_MAX, 7});
  expect_shown({"Add", {narrow, narrow}}, "int32[2]: -2 14");
  const Array none = floats({2, 0, 3}, {});
  EXPECT_EQ(Call({"MatMul", {none, floats({2, 3, 1}, {1, 2, 3, 4, 5, 6})}}).run()[0].shape(),
            (Shape{2, 0, 1}));
  expect_refused({"MatMul", {none, floats({2, 1, 1}, {1, 2})}}, "expected equal inner sizes");
  expect_refused({"Add", {a}}, "input 1 is left out, expected it");
  expect_refused({"MatMul", {floats({}, {1.0f}), a}}, "expected vectors or matrices");
  expect_refused({"MatMul", {a, floats({}, {1.0f})}}, "expected vectors or matrices");
  expect_refused({"MatMul", {a, integers({2}, {1, 2})}}, "float32 [2] and int64 [2], expected");
}

TEST(OnnxOperators, Gemm) {
  const Array a = floats({2, 3}, {1, 2, 3, 4, 5, 6}), b = floats({3, 2}, {1, 0, 0, 1, 1, 1});
  const Array at = floats({3, 2}, {1, 4, 2, 5, 3, 6}), bt = floats({2, 3}, {1, 0, 1, 0, 1, 1});
  const Array c = floats({2}, {10, 20});
  const std::int64_t one = 1;
  expect_shown({"Gemm", {a, b}}, "float32[2, 2]: 4 5 10 11");
  expect_shown({"Gemm", {a, b, c}}, "float32[2, 2]: 14 25 20 31");
  expect_shown({"Gemm", {at, b}, {{"transA", one}}}, "float32[2, 2]: 4 5 10 11");
  expect_shown({"Gemm", {a, bt}, {{"transB", one}}}, "float32[2, 2]: 4 5 10 11");
  expect_shown({"Gemm", {a, b, c}, {{"alpha", 2.0f}}}, "float32[2, 2]: 18 30 30 42");
  expect_shown({"Gemm", {a, b, c}, {{"beta", 0.5f}}}, "float32[2, 2]: 9 15 15 21");
  expect_shown({"Gemm", {a, b, c}, {{"alpha", 0.0f}}}, "float32[2, 2]: 10 20 10 20");
  expect_shown({"Gemm", {a, b, c}, {{"beta", 0.0f}}}, "float32[2, 2]: 4 5 10 11");
}

TEST(OnnxOperators, SoftmaxOverEachAxis) {
  const Array x = floats({2, 2, 2}, {0, 1, 2, 4, 0, 0, 3, 1});
  const std::int64_t zero = 0, one = 1, last = -1;
  const std::string over_last =
      "float32[2, 2, 2]: 0.2689 0.7311 0.1192 0.8808 0.5 0.5 0.8808 0.1192";
  expect_shown({"Softmax", {x}}, over_last);
  expect_shown({"Softmax", {x}, {{"axis", last}}}, over_last);
  expect_shown({"Softmax", {x}, {{"axis", one}}},
               "float32[2, 2, 2]: 0.1192 0.04743 0.8808 0.9526 0.04743 0.2689 0.9526 0.7311");
  expect_shown({"Softmax", {x}, {{"axis", zero}}},
               "float32[2, 2, 2]: 0.5 0.7311 0.2689 0.9526 0.5 0.2689 0.7311 0.04743");
  // The default of old versions is axis 1, with all that follow.
  expect_shown({"Softmax", {x}, {}, 1, 12},
               "float32[2, 2, 2]: 0.01522 0.04137 0.1125 0.831 0.04032 0.04032 0.8098 0.1096");
  expect_shown({"Softmax", {x}, {{"axis", last}}, 1, 12}, over_last);
  expect_shown({"Softmax", {x}, {}, 1, 13}, over_last);
  expect_shown({"LogSoftmax", {floats({1, 2}, {0, 1})}}, "float32[1, 2]: -1.313 -0.3133");
  EXPECT_EQ(Call({"Softmax", {floats({2, 0}, {})}}).run()[0].shape(), (Shape{2, 0}));
  expect_refused({"Softmax", {x}, {{"axis", std::int64_t{3}}}}, "axis");
}

TEST(OnnxOperators, Shapes) {
  const Array x = floats({2, 1, 3}, {1, 2, 3, 4, 5, 6});
  const std::int64_t zero = 0, one = 1, two = 2;
  expect_shown({"Identity", {x}}, "float32[2, 1, 3]: 1 2 3 4 5 6");
  expect_shown({"Shape", {x}}, "int64[3]: 2 1 3");
  expect_shown({"Shape", {x}, {{"start", one}}}, "int64[2]: 1 3");
  expect_shown({"Shape", {x}, {{"end", two}}}, "int64[2]: 2 1");
  expect_shown({"Shape", {x}, {{"start", std::int64_t{-1}}, {"end", std::int64_t{9}}}},
               "int64[1]: 3");
  expect_shown({"Shape", {x}, {{"start", two}, {"end", one}}}, "int64[0]:");
  expect_shown({"Size", {x}}, "int64[]: 6");
  EXPECT_EQ(Call({"Flatten", {x}}).run()[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(Call({"Flatten", {x}, {{"axis", zero}}}).run()[0].shape(), (Shape{1, 6}));
  EXPECT_EQ(Call({"Flatten", {x}, {{"axis", std::int64_t{3}}}}).run()[0].shape(), (Shape{6, 1}));
  EXPECT_EQ(Call({"Flatten", {x}, {{"axis", std::int64_t{-1}}}}).run()[0].shape(), (Shape{2, 3}));
  expect_refused<Error>({"Flatten", {x}, {{"axis", std::int64_t{4}}}}, "axis");
  expect_refused<Error>({"Flatten", {x}, {{"axis", std::int64_t{-4}}}}, "axis");
  EXPECT_EQ(Call({"Squeeze", {x}}).run()[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(Call({"Squeeze", {x, integers({1}, {-2})}}).run()[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(Call({"Squeeze", {x}, {{"axes", Integers{1}}}, 1, 11}).run()[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(Call({"Unsqueeze", {x, integers({2}, {0, -1})}}).run()[0].shape(),
            (Shape{1, 2, 1, 3, 1}));
  expect_refused<Error>({"Unsqueeze", {x, integers({2}, {0, 0})}}, "an axis is there twice");
  expect_refused<Error>({"Unsqueeze", {x}}, "there are no axes, expected them");
  EXPECT_EQ(Call({"Reshape", {x, integers({2}, {0, -1})}}).run()[0].shape(), (Shape{2, 3}));
  EXPECT_EQ(Call({"Reshape", {x, integers({3}, {3, 0, 2})}}).run()[0].shape(), (Shape{3, 1, 2}));
  const Array none = floats({0, 2}, {});
  EXPECT_EQ(Call({"Reshape", {none, integers({2}, {5, 0})}, {{"allowzero", one}}}).run()[0].shape(),
            (Shape{5, 0}));
  EXPECT_EQ(Call({"Reshape", {none, integers({2}, {0, -1})}}).run()[0].shape(), (Shape{0, 0}));
  expect_refused<Error>({"Reshape", {x, integers({1}, {-2})}}, "expected sizes of at least 0");
  expect_refused<Error>({"Reshape", {x, integers({4}, {1, 1, 6, 0})}},
                        "a size is that of an axis that is not there");
  expect_shown({"Transpose", {x}}, "float32[3, 1, 2]: 1 4 2 5 3 6");
  expect_shown({"Transpose", {x}, {{"perm", Integers{1, 0, 2}}}}, "float32[1, 2, 3]: 1 2 3 4 5 6");
  expect_shown({"Expand", {floats({2, 1}, {1, 2}), integers({2}, {1, 2})}},
               "float32[2, 2]: 1 1 2 2");
  expect_shown({"Cast", {floats({3}, {1.7f, -1.7f, 0.0f})}, {{"to", std::int64_t{7}}}},
               "int64[3]: 1 -1 0");
  for (const std::int64_t to : {0, 3, 99, 100}) {
    expect_refused<Error>({"Cast", {x}, {{"to", to}}}, "the element type is " + std::to_string(to));
  }
}

TEST(OnnxOperators, Parts) {
  const Array x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const std::int64_t one = 1;
  expect_shown({"Concat", {x, x}, {{"axis", one}}}, "float32[2, 6]: 1 2 3 1 2 3 4 5 6 4 5 6");
  expect_shown({"Concat", {x}, {{"axis", one}}}, "float32[2, 3]: 1 2 3 4 5 6");
  expect_shown({"Gather", {x, integers({2}, {1, -2})}}, "float32[2, 3]: 4 5 6 1 2 3");
  expect_shown({"Gather", {x, integers({}, {2})}, {{"axis", one}}}, "float32[2]: 3 6");
  const auto split = [&](Call call) {
    std::string text;
    for (const Array& part : call.run()) text += shown(part) + "; ";
    return text;
  };
  EXPECT_EQ(split({"Split", {x}, {}, 2}), "float32[1, 3]: 1 2 3; float32[1, 3]: 4 5 6; ");
  EXPECT_EQ(split({"Split", {x}, {{"axis", one}}, 2}),
            "float32[2, 2]: 1 2 4 5; float32[2, 1]: 3 6; ");
  EXPECT_EQ(split({"Split", {x, integers({2}, {1, 2})}, {{"axis", one}}, 2}),
            "float32[2, 1]: 1 4; float32[2, 2]: 2 3 5 6; ");
  EXPECT_EQ(split({"Split", {x, integers({2}, {0, 3})}, {{"axis", one}}, 2}),
            "float32[2, 0]:; float32[2, 3]: 1 2 3 4 5 6; ");
  for (const Integers& sizes : {Integers{1, 1}, Integers{2, 2}, Integers{-1, 4}}) {
    expect_refused<Error>({"Split", {x, integers({2}, sizes)}, {{"axis", one}}, 2},
                          "are made of 3, expected a size for each output");
  }
  expect_refused<Error>({"Split", {x, integers({1}, {3})}, {{"axis", one}}, 2},
                        "expected a size for each output");
  const Array begin = integers({1}, {1}), end = integers({1}, {3});
  // Without axes the first ones, without steps all.
  expect_shown({"Slice", {x, begin, end}}, "float32[1, 3]: 4 5 6");
  expect_shown({"Slice", {x, begin, end, begin}}, "float32[2, 2]: 2 3 5 6");
  expect_shown({"Slice", {x, integers({2}, {0, 1}), integers({2}, {1, 2})}}, "float32[1, 1]: 2");
  expect_shown(
      {"Slice", {x}, {{"starts", Integers{1}}, {"ends", Integers{2}}, {"axes", Integers{1}}}, 1, 9},
      "float32[2, 1]: 2 5");
  expect_refused<Error>({"Slice", {x, begin, integers({2}, {1, 2})}}, "differ in number");
  expect_refused<Error>({"Slice", {x, begin, end, integers({2}, {0, 1})}}, "differ in number");
  expect_refused<Error>({"Slice", {x, begin, end, begin, integers({2}, {1, 1})}},
                        "differ in number");
}

TEST(OnnxOperators, Constants) {
  const auto tensor = std::make_shared<const OnnxTensor>(OnnxTensor::of("", integers({2}, {3, 4})));
  expect_shown({"Constant", {}, {{"value", tensor}}}, "int64[2]: 3 4");
  expect_shown({"Constant", {}, {{"value_int", std::int64_t{5}}}}, "int64[]: 5");
  expect_shown({"Constant", {}, {{"value_ints", Integers{5, 6}}}}, "int64[2]: 5 6");
  expect_shown({"Constant", {}, {{"value_float", 0.5f}}}, "float32[]: 0.5");
  expect_shown({"Constant", {}, {{"value_floats", Floats{0.5f, 1.5f}}}}, "float32[2]: 0.5 1.5");
  expect_refused<Error>({"Constant", {}}, "there is no value, expected a tensor or numbers");
  expect_shown({"ConstantOfShape", {integers({2}, {1, 2})}}, "float32[1, 2]: 0 0");
  const auto seven = std::make_shared<const OnnxTensor>(OnnxTensor::of("", integers({1}, {7})));
  expect_shown({"ConstantOfShape", {integers({1}, {3})}, {{"value", seven}}}, "int64[3]: 7 7 7");
}

// ---- Recurrent operators -----------------------------------------------------------------------

// h_t = relu(2 x_t + h_(t-1) + 1): whole numbers, which tell each step and each row.
struct Rnn {
  Array x = floats({3, 2, 1}, {1, 10, 2, 20, 3, 30});
  std::optional<Array> lengths = {}, h0 = {};
  Attributes attributes = {};
  std::int64_t dirs = 1;

  std::vector<Array> run() const {
    const auto times = [&](std::vector<float> one) {
      std::vector<float> all = one;
      // The other direction has twice the input weight.
      if (dirs == 2) all.insert(all.end(), one.begin(), one.end());
      return all;
    };
    std::vector<float> w = times({2});
    if (dirs == 2) w[1] = 4;
    Attributes all = attributes;
    all.push_back(
        {"activations", std::vector<std::string>(static_cast<std::size_t>(dirs), "Relu")});
    return Call{"RNN",
                {x, floats({dirs, 1, 1}, w), floats({dirs, 1, 1}, times({1})),
                 floats({dirs, 2}, times({0.25f, 0.75f})), lengths, h0},
                all,
                2}
        .run();
  }
};

std::string shown(const std::vector<Array>& arrays) {
  return shown(arrays[0]) + "; " + shown(arrays[1]);
}

TEST(OnnxOperators, RecurrentDirectionsAndStates) {
  EXPECT_EQ(shown(Rnn().run()), "float32[3, 1, 2, 1]: 3 21 8 62 15 123; float32[1, 2, 1]: 15 123");
  Rnn reverse;
  reverse.attributes = {{"direction", std::string("reverse")}};
  EXPECT_EQ(shown(reverse.run()),
            "float32[3, 1, 2, 1]: 15 123 12 102 7 61; float32[1, 2, 1]: 15 123");
  Rnn both;
  both.dirs = 2;
  both.attributes = {{"direction", std::string("bidirectional")}};
  EXPECT_EQ(shown(both.run()),
            "float32[3, 2, 2, 1]: 3 21 27 243 8 62 22 202 15 123 13 121; "
            "float32[2, 2, 1]: 15 123 27 243");
  Rnn begun;
  begun.h0 = floats({1, 2, 1}, {100, 1000});
  EXPECT_EQ(shown(begun.run()),
            "float32[3, 1, 2, 1]: 103 1021 108 1062 115 1123; float32[1, 2, 1]: 115 1123");
}

TEST(OnnxOperators, RecurrentLengths) {
  const auto of = [](std::int32_t a, std::int32_t b) {
    return Array::of<std::int32_t>({2}, std::vector<std::int32_t>{a, b});
  };
  Rnn cut;
  cut.lengths = of(2, 0);
  EXPECT_EQ(shown(cut.run()), "float32[3, 1, 2, 1]: 3 0 8 0 0 0; float32[1, 2, 1]: 8 0");
  cut.attributes = {{"direction", std::string("reverse")}};
  EXPECT_EQ(shown(cut.run()), "float32[3, 1, 2, 1]: 8 0 5 0 0 0; float32[1, 2, 1]: 8 0");
  cut.lengths = of(3, 3);
  EXPECT_NO_THROW(cut.run());
  cut.lengths = of(3, 4);
  EXPECT_MESSAGE(ArgumentError, cut.run(), "sequence_lens has 4 at row 1, expected 0 to 3");
  cut.lengths = of(-1, 3);
  EXPECT_MESSAGE(ArgumentError, cut.run(), "sequence_lens has -1 at row 0, expected 0 to 3");
  cut.lengths = Array::of<std::int32_t>({1}, std::vector<std::int32_t>{3});
  EXPECT_MESSAGE(ArgumentError, cut.run(), "sequence_lens is int32 [1], expected int32 [2]");
  cut.lengths = integers({2}, {3, 3});
  EXPECT_MESSAGE(ArgumentError, cut.run(), "sequence_lens is int64 [2], expected int32 [2]");
}

// Nothing comes in: an empty Y, and the state as it was.
TEST(OnnxOperators, RecurrentOfNoRowsAndOfNoSteps) {
  for (const char* direction : {"forward", "reverse"}) {
    Rnn empty;
    empty.attributes = {{"direction", std::string(direction)}};
    empty.x = floats({3, 0, 1}, {});
    EXPECT_EQ(shown(empty.run()), "float32[3, 1, 0, 1]:; float32[1, 0, 1]:") << direction;
    empty.x = floats({0, 2, 1}, {});
    empty.h0 = floats({1, 2, 1}, {100, 1000});
    EXPECT_EQ(shown(empty.run()), "float32[0, 1, 2, 1]:; float32[1, 2, 1]: 100 1000") << direction;
  }
}

TEST(OnnxOperators, RecurrentBatchMajor) {
  Rnn rows;
  rows.x = floats({2, 3, 1}, {1, 2, 3, 10, 20, 30});
  rows.attributes = {{"layout", std::int64_t{1}}};
  rows.h0 = floats({2, 1, 1}, {100, 1000});
  EXPECT_EQ(shown(rows.run()),
            "float32[2, 3, 1, 1]: 103 108 115 1021 1062 1123; float32[2, 1, 1]: 115 1123");
  rows.attributes.push_back({"direction", std::string("bidirectional")});
  rows.dirs = 2;
  rows.h0 = floats({2, 2, 1}, {100, 200, 1000, 2000});
  EXPECT_EQ(shown(rows.run()),
            "float32[2, 3, 2, 1]: 103 227 108 222 115 213 1021 2243 1062 2202 1123 2121; "
            "float32[2, 2, 1]: 115 227 1123 2243");
  rows.h0 = floats({1, 2, 1}, {1, 2});
  EXPECT_MESSAGE(ArgumentError, rows.run(),
                 "initial_h is float32 [1, 2, 1], expected float32 [2, 2, 1]");
}

TEST(OnnxOperators, RecurrentErrors) {
  Rnn bad;
  bad.x = floats({3, 2}, {1, 2, 3, 4, 5, 6});
  EXPECT_MESSAGE(ArgumentError, bad.run(),
                 "X is float32 [3, 2], expected float32 of three dimensions, the last 1");
  bad.x = floats({1, 1, 2}, {1, 2});
  EXPECT_MESSAGE(ArgumentError, bad.run(), "X is float32 [1, 1, 2], expected float32");
  bad.x = Array(DType::kFloat64, {3, 2, 1});
  EXPECT_MESSAGE(ArgumentError, bad.run(), "X is float64 [3, 2, 1], expected float32");
}

// c and the order of the gates i, o, f, c: with weights that open and close them.
TEST(OnnxOperators, LstmHasAThirdOutput) {
  const Array x = floats({1, 1, 1}, {1});
  const Array w = floats({1, 4, 1}, {40, -40, 40, 0.5f}), r = floats({1, 4, 1}, {0, 0, 0, 0});
  const Array h0 = floats({1, 1, 1}, {9}), c0 = floats({1, 1, 1}, {2});
  const std::vector<Array> outputs =
      Call{"LSTM", {x, w, r, std::nullopt, std::nullopt, h0, c0}, {}, 3}.run();
  EXPECT_EQ(shown(outputs[2]), "float32[1, 1, 1]: 2.462");
  EXPECT_NEAR(element(outputs[0].view(), 0), 0.0, 1e-12);
  const Array open = floats({1, 4, 1}, {40, 40, -40, 0.5f});
  const std::vector<Array> others =
      Call{"LSTM", {x, open, r, std::nullopt, std::nullopt, h0, c0}, {}, 3}.run();
  EXPECT_EQ(shown(others[2]), "float32[1, 1, 1]: 0.4621");
  EXPECT_EQ(shown(others[1]), "float32[1, 1, 1]: 0.4318");
  // With peepholes p_i, p_o, p_f on c0: the forget gate is opened by it.
  const Array p = floats({1, 3}, {0, 0, 40});
  const std::vector<Array> peeping =
      Call{"LSTM", {x, open, r, std::nullopt, std::nullopt, h0, c0, p}, {}, 3}.run();
  EXPECT_EQ(shown(peeping[2]), "float32[1, 1, 1]: 2.462");
  expect_refused<UnsupportedError>({"LSTM", {x, w, r, std::nullopt, std::nullopt, h0, x}, {}, 4},
                                   "it has 3 outputs");
}

// ---- Programs ----------------------------------------------------------------------------------

TEST(OnnxPrograms, InputsThatAreGiven) {
  OnnxModel model;
  model.graph.inputs = {
      {.name = "a", .element_type = 1}, {.name = "b"}, {.name = "s", .element_type = 3}};
  model.graph.nodes = {{.op_type = "Add", .inputs = {"a", "b"}, .outputs = {"y"}}};
  model.graph.outputs = {{.name = "y"}, {.name = "a"}};
  const OnnxProgram program(model);
  EXPECT_EQ(program.inputs().size(), 3u);
  EXPECT_EQ(program.outputs().size(), 2u);
  const Array a = floats({1}, {1}), wide(DType::kFloat64, {1}), small(DType::kUInt8, {1});
  EXPECT_MESSAGE(ArgumentError, program.run({{"x", a.view()}}),
                 "[run] 'x' is given, expected inputs");
  EXPECT_MESSAGE(ArgumentError, program.run({{"a", wide.view()}}),
                 "[run] 'a' is float64, expected float32");
  EXPECT_MESSAGE(ArgumentError, program.run({{"s", small.view()}}),
                 "[run] 's' is uint8, expected another type");
  EXPECT_MESSAGE(ArgumentError, program.run({{"a", a.view()}}),
                 "[run] 'b' is not given, expected it");
  model.graph.inputs.pop_back();
  const auto found = OnnxProgram(model).run({{"a", a.view()}, {"b", a.view()}});
  EXPECT_EQ(shown(found.at("y")), "float32[1]: 2");
  EXPECT_EQ(shown(found.at("a")), "float32[1]: 1");
}

// Weights that are inputs, too, are those of the call; values live as long as somebody takes them.
TEST(OnnxPrograms, WeightsOfACallAndValuesThatAreTakenTwice) {
  OnnxModel model;
  model.graph.inputs = {{.name = "x"}, {.name = "W"}};
  model.graph.initializers = {OnnxTensor::of("W", floats({1, 1, 1}, {2})),
                              OnnxTensor::of("R", floats({1, 1, 1}, {1}))};
  model.graph.nodes = {{.op_type = "RNN",
                        .inputs = {"x", "W", "R"},
                        .outputs = {"", "h"},
                        .attributes = {{"activations", std::vector<std::string>{"Relu"}}}},
                       {.op_type = "Neg", .inputs = {"h"}, .outputs = {"n"}},
                       {.op_type = "Add", .inputs = {"h", "n"}, .outputs = {"zero"}},
                       {.op_type = "Sub", .inputs = {"h", "zero"}, .outputs = {"y"}}};
  model.graph.outputs = {{.name = "y"}, {.name = "n"}, {.name = "R"}};
  const OnnxProgram program(model);
  const Array x = floats({2, 1, 1}, {1, 2}), w = floats({1, 1, 1}, {10});
  for (int i = 0; i < 2; ++i) {
    auto found = program.run({{"x", x.view()}});
    EXPECT_EQ(shown(found.at("y")), "float32[1, 1, 1]: 6");
    EXPECT_EQ(shown(found.at("n")), "float32[1, 1, 1]: -6");
    EXPECT_EQ(shown(found.at("R")), "float32[1, 1, 1]: 1");
    found = program.run({{"x", x.view()}, {"W", w.view()}});
    EXPECT_EQ(shown(found.at("y")), "float32[1, 1, 1]: 30");
  }
}

TEST(OnnxPrograms, Operators) {
  const std::vector<std::string> names = onnx_operators();
  EXPECT_EQ(names.size(), 46u);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  for (const char* name : {"Abs", "Cast", "GRU", "Gemm", "LSTM", "RNN", "Tanh", "Unsqueeze"}) {
    EXPECT_EQ(std::count(names.begin(), names.end(), name), 1) << name;
  }
}

// ---- Ends of the ranges ------------------------------------------------------------------------

TEST(OnnxOperators, ValuesAtTheEnds) {
  const Array far = floats({2}, {-2000.0f, 2000.0f});
  expect_shown({"Softplus", {far}}, "float32[2]: 0 2000");
  expect_shown({"LogSoftmax", {floats({1, 2}, {2000, 2001})}}, "float32[1, 2]: -1.313 -0.3133");
  expect_shown({"LogSoftmax", {floats({1, 2}, {-2000, -2001})}}, "float32[1, 2]: -0.3133 -1.313");
  // The larger bound first, then the smaller one.
  expect_shown({"Clip", {far, floats({}, {3.0f}), floats({}, {1.0f})}}, "float32[2]: 1 1");
  const Array least = Array::of<std::int32_t>({2}, std::vector<std::int32_t>{INT32_MIN, 5});
  const Array minus = Array::of<std::int32_t>({1}, std::vector<std::int32_t>{-1});
  expect_shown({"Div", {least, minus}}, "int32[2]: -2.147e+09 -5");
  expect_shown({"Mul", {least, least}}, "int32[2]: 0 25");
  expect_shown({"MatMul", {floats({2}, {1, 2}), floats({1, 2, 1}, {3, 4})}}, "float32[1, 1]: 11");
  EXPECT_EQ(Call({"MatMul", {floats({2}, {1, 2}), floats({3, 2, 4}, std::vector<float>(24, 1))}})
                .run()[0]
                .shape(),
            (Shape{3, 4}));
  EXPECT_EQ(Call({"MatMul", {floats({3, 4, 2}, std::vector<float>(24, 1)), floats({2}, {1, 2})}})
                .run()[0]
                .shape(),
            (Shape{3, 4}));
}

TEST(OnnxOperators, AttributesThatSayNothing) {
  const Array x = floats({2}, {-1, 1});
  expect_shown({"Relu", {x}, {{"consumed_inputs", Integers{0}}}, 1, 1}, "float32[2]: 0 1");
  expect_shown({"Dropout", {x}, {{"is_test", std::int64_t{1}}}, 1, 6}, "float32[2]: -1 1");
}

}  // namespace
}  // namespace openrnn
