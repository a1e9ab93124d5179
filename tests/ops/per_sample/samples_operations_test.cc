// Gradients of samples through the operations besides the recurrent one.
#include "ops/per_sample/per_sample.h"

namespace openrnn::testing {
namespace {

using Tensors = std::vector<Tensor>;

class PerSample : public ::testing::Test {
 protected:
  void SetUp() override {
    if (on_other_device()) GTEST_SKIP() << "on the cpu only";
  }
};
using PerSampleRefusals = PerSample;

TEST_F(PerSample, OfElementwiseOperations) {
  const Tensor x = random_tensor({5, 3}, 1, 0.2, 0.9), w = random_tensor({5, 3}, 2, 0.3, 1.1);
  expect_samples([](const Tensors& in) { return ops::add(in[0], in[1]); }, {x, w});
  expect_samples([](const Tensors& in) { return ops::subtract(in[0], in[1]); }, {x, w});
  expect_samples([](const Tensors& in) { return ops::multiply(in[0], in[1]); }, {x, w});
  expect_samples([](const Tensors& in) { return ops::divide(in[0], in[1]); }, {x, w});
  for (const auto op : {ops::relu, ops::tanh, ops::sigmoid, ops::exp, ops::negate, ops::square,
                        ops::sqrt, ops::absolute}) {
    expect_samples([op](const Tensors& in) { return op(in[0]); }, {x});
    expect_samples([op](const Tensors& in) { return op(in[0]); }, {x}, 1);
  }
  expect_samples([](const Tensors& in) { return ops::add_scalar(ops::scale(in[0], 3.5), 1.0); },
                 {x});
  expect_samples([](const Tensors& in) { return ops::clip(in[0], 0.4, 0.7); }, {x});
  expect_samples([](const Tensors& in) { return ops::dropout(in[0], 0.4, {7, 1}); }, {x});
  expect_samples([](const Tensors& in) { return ops::cast(in[0], DType::kFloat32); }, {x});
  expect_samples(
      [](const Tensors& in) {
        return ops::select_rows({true, false, false, true, true}, in[0], in[1]);
      },
      {x, w});
}

TEST_F(PerSample, OfProducts) {
  const Tensor x = random_tensor({6, 4}, 1), w = random_tensor({4, 3}, 2);
  const Tensor transposed = random_tensor({3, 4}, 3), bias = random_tensor({3}, 4);
  expect_samples([](const Tensors& in) { return ops::matmul(in[0], in[1]); }, {x, w});
  expect_samples([](const Tensors& in) { return ops::matmul(in[0], in[1], {.transpose_b = true}); },
                 {x, transposed});
  expect_samples([](const Tensors& in) { return ops::dense(in[0], in[1], in[2]); }, {x, w, bias});
  expect_samples([](const Tensors& in) { return ops::add_row(in[0], in[1]); },
                 {random_tensor({6, 3}, 5), bias});
  const auto sequence = [](const Tensors& in) {
    return ops::tanh(ops::dense(in[0], in[1], in[2]));
  };
  for (const std::size_t axis : {0, 1}) {
    expect_samples(sequence, {random_tensor({5, 6, 4}, 6), w, bias}, axis);
    expect_samples([](const Tensors& in) { return ops::add_row(in[0], in[1]); },
                   {random_tensor({2, 5, 3}, 5), bias}, axis);
    // Parameters alone: nothing is asked of x.
    expect_samples(
        [&](const Tensors& in) {
          return ops::dense(random_tensor({5, 6, 4}, 6), in[0], in[1]);
        },
        {w, bias}, axis);
  }
}

TEST_F(PerSample, OfBatchesOfOneAndOfNone) {
  const Tensor w = random_tensor({4, 3}, 2), bias = random_tensor({3}, 4);
  const auto layer = [](const Tensors& in) { return ops::dense(in[0], in[1], in[2]); };
  expect_samples(layer, {random_tensor({1, 4}, 1), w, bias});
  expect_samples(layer, {random_tensor({5, 1, 4}, 1), w, bias}, 1);
  // One row has all that there is, also where operations mix places.
  expect_samples(
      [&](const Tensors& in) {
        return ops::reshape(ops::softmax(ops::reshape(layer(in), {1, 6})), {1, 2, 3});
      },
      {random_tensor({2, 4}, 1), w, bias});
  GradientTape tape;
  const Tensor shared = tape.watch(w);
  const Tensor target = ops::matmul(random_tensor({0, 4}, 1), shared);
  EXPECT_TRUE(tape.per_sample_norms(target, std::vector{shared}).empty());
  const auto gradients = tape.per_sample_gradients(target, std::vector{shared});
  EXPECT_EQ(gradients[0].shape(), (Shape{0, 4, 3}));
}

TEST_F(PerSample, OfShapes) {
  const Tensor x = random_tensor({4, 6, 5}, 1), w = random_tensor({5, 3}, 2);
  // The rows along each of three dimensions, through dimensions of other names.
  for (const std::size_t axis : {0, 1, 2}) {
    expect_samples(
        [](const Tensors& in) {
          return ops::reshape(ops::square(ops::reshape(in[0], {2, 12, 5, 1})), {4, 6, 5});
        },
        {x}, axis);
    expect_samples([](const Tensors& in) { return ops::square(ops::transpose_leading(in[0])); },
                   {x}, axis);
  }
  for (const std::size_t axis : {0, 1}) {
    for (const std::int64_t along : {0, 1, 2}) {
      if (static_cast<std::int64_t>(axis) == along) continue;
      expect_samples(
          [=](const Tensors& in) {
            return ops::square(ops::concat({in[0], ops::tanh(in[0]), in[1]}, along));
          },
          {x, random_tensor({4, 6, 5}, 7)}, axis);
      expect_samples(
          [=](const Tensors& in) {
            return ops::square(ops::slice(in[0], {.axis = along, .begin = 1, .size = 2}));
          },
          {x}, axis);
      expect_samples(
          [=](const Tensors& in) {
            const Tensors parts = ops::split(
                in[0], along, {1, 2, in[0].shape()[static_cast<std::size_t>(along)] - 3});
            return ops::multiply(ops::scale(parts[1], 2.0), parts[1]);
          },
          {x}, axis);
    }
  }
  expect_samples(
      [](const Tensors& in) {
        const Tensors steps = ops::unstack(in[0]);
        Tensor sum = ops::matmul(steps[0], in[1]);
        for (std::size_t t = 1; t < steps.size(); ++t) {
          sum = ops::add(ops::tanh(sum), ops::matmul(steps[t], in[1]));
        }
        return ops::concat(ops::unstack(ops::stack({sum, ops::square(sum)})), 1);
      },
      {x, w});
  expect_samples(
      [](const Tensors& in) {
        return ops::dense(ops::reverse_sequence(in[0], {3, 0, 4, 1, 2, 4}, true), in[1], {});
      },
      {x, w}, 1);
  expect_samples(
      [](const Tensors& in) {
        return ops::dense(ops::reverse_sequence(in[0], {3, 0, 6, 1}, false), in[1], {});
      },
      {x, w}, 0);
}

// One row has all that there is, whichever dimension is cut.
TEST_F(PerSample, OfPartsOfABatchOfOne) {
  const Tensor x = random_tensor({1, 6, 5}, 1);
  for (const std::int64_t along : {1, 2}) {
    expect_samples(
        [=](const Tensors& in) {
          return ops::square(ops::concat({in[0], ops::tanh(in[0]), in[1]}, along));
        },
        {x, random_tensor({1, 6, 5}, 7)});
    expect_samples(
        [=](const Tensors& in) {
          return ops::square(ops::slice(in[0], {.axis = along, .begin = 1, .size = 2}));
        },
        {x});
    expect_samples(
        [=](const Tensors& in) {
          const Tensors parts =
              ops::split(in[0], along, {1, 2, in[0].shape()[static_cast<std::size_t>(along)] - 3});
          return ops::concat({parts[2], ops::scale(parts[1], 2.0), ops::square(parts[1])}, along);
        },
        {x});
  }
}

TEST_F(PerSample, OfEmbeddingsAndLosses) {
  const Tensor table = random_tensor({7, 4}, 1), w = random_tensor({4, 6}, 2);
  // One word several times in a row, another one in two rows.
  const Tensor words = int_tensor({3, 4}, {1, 1, 6, 1, 0, 2, 2, 6, 5, 5, 5, 5});
  const Tensor labels = int_tensor({3, 4}, {0, 5, -1, 2, 1, 1, 3, 4, -1, -1, -1, -1});
  const auto model = [&](const Tensors& in) {
    const Tensor logits = ops::dense(ops::embedding_lookup(in[0], words), in[1], {});
    return ops::softmax_cross_entropy_rows(logits, labels);
  };
  for (const std::size_t axis : {0, 1}) expect_samples(model, {table, w}, axis);
  expect_samples(
      [&](const Tensors& in) { return ops::softmax(ops::embedding_lookup(in[0], words)); }, {table},
      1);
  // Tied weights: the table's gradient comes from two operations.
  const auto tied = [&](const Tensors& in) {
    const Tensor looked_up = ops::reshape(ops::embedding_lookup(in[0], words), {12, 4});
    const Tensor logits = ops::matmul(looked_up, in[0], {.transpose_b = true});
    return ops::softmax_cross_entropy_rows(ops::reshape(logits, {3, 4, 7}), labels);
  };
  for (const std::size_t axis : {0, 1}) expect_samples(tied, {table}, axis);
}

// Below what rows share, gradients go on row by row.
TEST_F(PerSample, OfParametersThatAreComputed) {
  const Tensor x = random_tensor({5, 4}, 1), w = random_tensor({4, 3}, 2);
  const auto computed = [&](const Tensors& in) {
    const Tensor kernel = ops::multiply(ops::tanh(in[0]), ops::exp(in[1]));
    return ops::square(ops::matmul(x, ops::matmul(kernel, in[2])));
  };
  expect_samples(computed, {w, random_tensor({4, 3}, 3), random_tensor({3, 3}, 4)});
  // Once as it is and once computed, and a sum over the parameters themselves.
  const auto both = [&](const Tensors& in) {
    const Tensor scaled = ops::scale(in[0], 0.5);
    return ops::add(ops::matmul(x, in[0]), ops::square(ops::matmul(x, scaled)));
  };
  expect_samples(both, {w});
  // A sum over rows that is shared by them all: x itself is then no row's own.
  expect_samples(
      [](const Tensors& in) {
        return ops::matmul(in[0], ops::matmul(in[0], in[0], {.transpose_a = true}));
      },
      {x});
}

// A source on the way to another: what comes to it goes on.
TEST_F(PerSample, OfWhatIsComputedOfAnotherSource) {
  for (const std::int64_t rows : {1, 4}) {
    GradientTape tape;
    const Tensor x = random_tensor({rows, 3}, 1), v = tape.watch(random_tensor({3, 2}, 2));
    const Tensor w = tape.watch(ops::tanh(v));
    const Tensor bias = tape.watch(random_tensor({2}, 3)), b = tape.watch(ops::scale(bias, 0.5));
    const Tensor losses = ops::square(ops::dense(x, w, b));
    tape.close();
    expect_samples(tape, losses, {w, v});
    expect_samples(tape, losses, {v, b, w, bias});
    expect_samples(tape, losses, {w});
    expect_samples(tape, losses, {bias});
  }
}

// Gradients too large to be made at once are made for some rows at a time, whether a source's are
// shared by the rows, apart or both.
TEST_F(PerSample, OfLargeParameters) {
  const Tensor wide = random_tensor({7, 700}, 1), small = random_tensor({7, 3}, 2);
  GradientTape tape;
  const Tensor w = tape.watch(random_tensor({700, 1200}, 3, -0.05, 0.05)), x = tape.watch(small);
  const Tensor twice = ops::add(ops::matmul(wide, w), ops::matmul(wide, ops::square(w)));
  const Tensor own = ops::matmul(x, ops::matmul(small, x, {.transpose_a = true}));
  const Tensor losses = ops::add(ops::matmul(twice, random_tensor({1200, 3}, 4)), own);
  tape.close();
  const std::vector<double> norms = tape.per_sample_norms(losses, std::vector{w, x});
  ASSERT_EQ(norms.size(), 7U);
  for (std::int64_t b = 0; b < 7; ++b) {
    double squares = 0.0;
    for (const DeviceArray& one :
         tape.gradient(losses, std::vector{w, x}, losses_of_row(losses, 0, b))) {
      squares += one.device().sum_of_squares(one.dtype(), one.size(), one.data());
    }
    EXPECT_NEAR(norms[static_cast<std::size_t>(b)], std::sqrt(squares), 1e-12 * std::sqrt(squares));
  }
}

TEST_F(PerSample, InOtherTypes) {
  for (const auto& [dtype, tolerance] :
       {std::pair{DType::kFloat32, 1e-6}, std::pair{DType::kFloat16, 2e-3}}) {
    const Tensor x = random_tensor({3, 5, 4}, 1, -1, 1, dtype);
    const Tensor w = random_tensor({4, 3}, 2, -1, 1, dtype);
    const Tensor bias = random_tensor({3}, 3, -1, 1, dtype);
    for (const std::size_t axis : {0, 1}) {
      expect_samples([](const Tensors& in) { return ops::square(ops::dense(in[0], in[1], in[2])); },
                     {x, w, bias}, axis, tolerance);
    }
  }
}

TEST_F(PerSample, OfSourcesThatTheLossesDoNotDependOn) {
  GradientTape tape;
  const Tensor x = tape.watch(random_tensor({3, 2}, 1)), other = tape.watch(random_tensor({4}, 2));
  const Tensor target = ops::square(x);
  EXPECT_TRUE(tape.per_sample_gradients(target, std::vector{x, other})[1].empty());
  EXPECT_EQ(tape.per_sample_norms(target, std::vector{other}), std::vector<double>(3, 0.0));
  expect_samples(tape, x, {x, other});  // the losses themselves
}

TEST_F(PerSample, OfVariables) {
  const Variable w("per_sample/w", random_tensor({4, 3}, 2).to_host());
  const Variable fixed("per_sample/fixed", random_tensor({3}, 3).to_host(), false);
  GradientTape tape;
  const Tensor target = ops::dense(random_tensor({5, 4}, 1), w.read(), fixed.read());
  const auto gradients = tape.per_sample_gradients(target, std::vector{w, fixed});
  EXPECT_TRUE(gradients[1].empty());
  const auto norms = tape.per_sample_norms(target, std::vector{w, fixed});
  expect_samples(tape, target, {w.read()});
  EXPECT_EQ(norms, tape.per_sample_norms(target, std::vector{w.read()}));
}

std::string meets(const char* op) {
  return std::string("[per_sample] rows of the batch meet in '") + op +
         "', expected operations on each row apart";
}

TEST_F(PerSampleRefusals, OfRowsThatMeet) {
  const Tensor x = random_tensor({6, 4}, 1), w = random_tensor({4, 4}, 2);
  // Rows of a batch of 12 are halves of those of the product.
  const auto halves = [](const Tensor& y) { return ops::reshape(y, {12, 2}); };
  EXPECT_EQ(
      refusal_of([&](const Tensors& in) { return halves(ops::matmul(in[0], in[1])); }, {x, w}),
      meets("matmul"));
  EXPECT_EQ(
      refusal_of([&](const Tensors& in) { return halves(ops::dense(in[0], in[1], {})); }, {x, w}),
      meets("dense"));
  EXPECT_EQ(refusal_of([&](const Tensors& in) { return halves(ops::add_row(in[0], in[1])); },
                       {x, random_tensor({4}, 3)}),
            meets("add_row"));
  EXPECT_EQ(refusal_of([&](const Tensors& in) { return halves(ops::softmax(in[0])); }, {x}),
            meets("softmax"));
  EXPECT_EQ(refusal_of([](const Tensors& in) { return ops::softmax(in[0]); }, {x}, 1),
            meets("softmax"));
}

TEST_F(PerSampleRefusals, OfShapesThatPutRowsTogether) {
  const Tensor x = random_tensor({6, 4}, 1);
  EXPECT_EQ(refusal_of(
                [](const Tensors& in) {
                  return ops::concat({in[0], in[0]}, 0);
                },
                {x}),
            meets("concat"));
  EXPECT_EQ(
      refusal_of([](const Tensors& in) { return ops::slice(in[0], {.begin = 1, .size = 3}); }, {x}),
      meets("slice"));
  EXPECT_EQ(refusal_of(
                [](const Tensors& in) {
                  return ops::split(in[0], 0, {2, 4})[0];
                },
                {x}),
            meets("split"));
  EXPECT_EQ(refusal_of(
                [](const Tensors& in) {
                  const Tensors parts = ops::split(ops::reshape(in[0], {2, 2, 6}), 2, {3, 3});
                  return ops::add(parts[0], ops::transpose_leading(parts[1]));
                },
                {x}),
            meets("split"))
      << "each part has rows of its own";
  EXPECT_EQ(refusal_of(
                [](const Tensors& in) {
                  return ops::reverse_sequence(ops::reshape(in[0], {3, 2, 4}), {}, true);
                },
                {x}),
            meets("reverse_sequence"));
  EXPECT_EQ(refusal_of(
                [&](const Tensors& in) {
                  const Tensor y = ops::transpose_leading(ops::reshape(in[0], {3, 4, 2}));
                  return ops::reshape(y, {2, 12});
                },
                {x}),
            meets("transpose_leading"));
  EXPECT_EQ(refusal_of(
                [&](const Tensors& in) {
                  return ops::embedding_lookup(in[0], int_tensor({3}, {1, 2, 2}));
                },
                {x}, 1),
            meets("embedding_lookup"));
  EXPECT_EQ(refusal_of(
                [](const Tensors& in) {
                  const Tensor square = ops::reshape(in[0], {2, 2, 6});
                  return ops::add(square, ops::transpose_leading(square));
                },
                {x}),
            "[per_sample_norms] rows of the batch meet in an input of 'transpose_leading', "
            "expected rows that are apart from the losses down");
}

TEST_F(PerSampleRefusals, OfOperationsThatDoNotKnow) {
  const Tensor x = random_tensor({6}, 1), w = random_tensor({4, 4}, 2);
  const auto unknown = [](const char* op) {
    return std::string("[per_sample_norms] '") + op +
           "' does not say which row of a batch its gradient is of, expected operations that do, "
           "and losses of rows";
  };
  EXPECT_EQ(
      refusal_of([](const Tensors& in) { return ops::reshape(ops::reduce_sum(in[0]), {1}); }, {x}),
      unknown("reduce_sum"));
  EXPECT_EQ(refusal_of(
                [](const Tensors& in) {
                  return record("own", {in[0]}, {in[0].value()},
                                [](const auto& dy) { return dy; })[0];
                },
                {x}),
            unknown("own"));
  EXPECT_EQ(
      refusal_of([](const Tensors& in) { return ops::matmul(in[0], in[0], {.transpose_a = true}); },
                 {w}),
      "[per_sample] 'matmul' with transpose_a, expected it without");
}

TEST_F(PerSampleRefusals, OfTargetsAndSources) {
  GradientTape tape;
  const Tensor x = tape.watch(random_tensor({6, 2}, 1));
  const std::vector<Tensor> sources{x};
  const auto norms = [&](const Tensor& target, std::int64_t axis) {
    return error_of<ArgumentError>(
        [&] { static_cast<void>(tape.per_sample_norms(target, sources, axis)); });
  };
  EXPECT_EQ(norms(ops::reduce_sum(x), 0),
            "[per_sample_norms] target has shape [] and axis is 0, expected losses of each row, "
            "and the axis along which the rows lie");
  EXPECT_NE(norms(ops::square(x), 2), "");
  EXPECT_NE(norms(ops::square(x), -3), "");
  const Tensor target = ops::square(x);
  EXPECT_EQ(tape.per_sample_norms(target, sources, -1), tape.per_sample_norms(target, sources, 1));
  EXPECT_NE(error_of<ArgumentError>([&] {
              static_cast<void>(tape.per_sample_norms(target, std::vector{random_tensor({2}, 1)}));
            }),
            "");
  EXPECT_NE(error_of<StateError>(
                [&] { static_cast<void>(tape.per_sample_norms(random_tensor({2}, 1), sources)); }),
            "");
}

TEST(PerSampleDevices, OtherThanTheCpuAreRefused) {
  if (!on_other_device()) GTEST_SKIP() << "on other devices only";
  GradientTape tape;
  const Tensor x = tape.watch(random_tensor({6, 2}, 1));
  const Tensor target = ops::square(x);
  expect_error<UnsupportedError>(
      [&] { static_cast<void>(tape.per_sample_norms(target, std::vector{x})); },
      "[per_sample_norms] target lies on " + std::string(target.device().name()) +
          ", expected a model on the cpu");
}

TEST_F(PerSample, OfPlacesThatAreNone) {
  for (const Shape& shape : {Shape{3, 0, 2}, {0, 3, 2}, {3, 2, 0}}) {
    for (const std::int64_t axis : {0, 1}) {
      GradientTape tape;
      const Tensor x = tape.watch(random_tensor(shape, 1));
      const Tensor target = ops::transpose_leading(x);
      const std::int64_t rows = target.shape()[static_cast<std::size_t>(axis)];
      EXPECT_EQ(tape.per_sample_norms(target, std::vector{x}, axis),
                std::vector<double>(static_cast<std::size_t>(rows), 0.0));
    }
  }
}

}  // namespace
}  // namespace openrnn::testing
