#include "ops/second/second_order.h"

namespace openrnn::testing {
namespace {

TEST(SecondGradients, Products) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      SCOPED_TRACE(::testing::Message() << ta << tb);
      check_second(
          [=](const Tensors& in) {
            return Tensors{ops::matmul(in[0], in[1], {.transpose_a = ta, .transpose_b = tb})};
          },
          {random_tensor(ta ? Shape{3, 2} : Shape{2, 3}, 1),
           random_tensor(tb ? Shape{5, 3} : Shape{3, 5}, 2)});
    }
  }
  check_third([](const Tensors& in) { return Tensors{ops::dense(in[0], in[1], in[2])}; },
              {random_tensor({1, 2, 3}, 1), random_tensor({3, 2}, 2), random_tensor({2}, 3)});
  check_second([](const Tensors& in) { return Tensors{ops::dense(in[0], in[1])}; },
               {random_tensor({3, 1}, 4), random_tensor({1, 1}, 5)});
}

TEST(SecondGradients, TwoOperands) {
  const Tensor a = random_tensor({3, 2}, 1), b = random_tensor({3, 2}, 2, 0.5, 2.0);
  for (Tensor (*op)(const Tensor&, const Tensor&) :
       {ops::add, ops::subtract, ops::multiply, ops::divide, ops::mean_squared_error}) {
    check_third([op](const Tensors& in) { return Tensors{op(in[0], in[1])}; }, {a, b});
  }
  check_second(
      [](const Tensors& in) {
        return Tensors{ops::add_n({in[0], in[1], in[0]})};
      },
      {a, b});
  check_second([](const Tensors& in) { return Tensors{ops::add_row(in[0], in[1])}; },
               {random_tensor({2, 3, 5}, 3), random_tensor({5}, 4)});
}

TEST(SecondGradients, OfOneOfSeveralOperands) {
  const Tensor a = random_tensor({3, 2}, 1), b = random_tensor({3, 2}, 2, 0.5, 2.0);
  for (Tensor (*op)(const Tensor&, const Tensor&) :
       {ops::add, ops::subtract, ops::multiply, ops::divide, ops::mean_squared_error}) {
    check_second_of_each_alone([op](const Tensors& in) { return Tensors{op(in[0], in[1])}; },
                               {a, b});
  }
  check_second_of_each_alone([](const Tensors& in) { return Tensors{ops::add_row(in[0], in[1])}; },
                             {a, random_tensor({2}, 3)});
  check_second_of_each_alone(
      [](const Tensors& in) { return Tensors{ops::dense(in[0], in[1], in[2])}; },
      {a, random_tensor({2, 4}, 4), random_tensor({4}, 5)});
}

TEST(SecondGradients, OneOperand) {
  // Away from 0, where relu and absolute have a kink.
  const Tensor low = random_tensor({1, 5}, 1, -1.5, -0.05),
               high = random_tensor({1, 5}, 2, 0.05, 1);
  const Tensor x = ops::concat({low, high}, 0);
  for (Tensor (*op)(const Tensor&) : {ops::relu, ops::tanh, ops::sigmoid, ops::exp, ops::negate,
                                      ops::square, ops::absolute, ops::softmax}) {
    check_third([op](const Tensors& in) { return Tensors{op(in[0])}; }, {x});
  }
  check_third([](const Tensors& in) { return Tensors{ops::sqrt(in[0])}; },
              {random_tensor({2, 5}, 3, 0.5, 2.0)});
  check_second([](const Tensors& in) { return Tensors{ops::scale(in[0], -1.75)}; }, {x});
  check_third([](const Tensors& in) { return Tensors{ops::square(ops::clip(in[0], -0.7, 0.6))}; },
              {x});
  check_second([](const Tensors& in) { return Tensors{ops::add_scalar(in[0], 3.0)}; }, {x});
  check_second([](const Tensors& in) { return Tensors{ops::cast(in[0], DType::kFloat64)}; }, {x});
  check_second(
      [](const Tensors& in) {
        return Tensors{ops::dropout(ops::tanh(in[0]), 0.4, {.seed = 3, .call = 8}), in[0]};
      },
      {x});
}

// Almost everywhere, as PyTorch and TensorFlow have it: an array of zeros, not an empty one.
TEST(SecondGradients, OfKinksAreZero) {
  const auto clip = [](const Tensor& x) { return ops::clip(x, -0.5, 0.5); };
  for (Tensor (*op)(const Tensor&) : {ops::relu, ops::absolute, +clip}) {
    const GradientTape outer;
    const Tensor x = outer.watch(random_tensor({7}, 3));
    const GradientTape inner;
    const Tensor gradient = inner.gradients({ops::reduce_sum(op(x))}, Tensors{x})[0];
    EXPECT_EQ(values_of(outer.gradient(gradient, Tensors{x})[0]), std::vector<double>(7, 0.0));
  }
}

TEST(SecondGradients, Reductions) {
  const Tensor x = random_tensor({3, 2}, 1, 0.1, 1.0);
  check_third([](const Tensors& in) { return Tensors{ops::reduce_sum(in[0])}; }, {x});
  check_third([](const Tensors& in) { return Tensors{ops::reduce_mean(in[0])}; }, {x});
  check_third([](const Tensors& in) { return Tensors{ops::l1_regularization(in[0], 0.3)}; }, {x});
  check_third([](const Tensors& in) { return Tensors{ops::l2_regularization(in[0], 0.3)}; }, {x});
}

TEST(SecondGradients, Shapes) {
  const Tensor x = random_tensor({3, 4, 2}, 1), y = random_tensor({3, 2, 2}, 2);
  check_second([](const Tensors& in) { return Tensors{ops::reshape(in[0], {2, -1})}; }, {x});
  check_third(
      [](const Tensors& in) {
        return Tensors{ops::concat({in[0], in[1], in[0]}, 1)};
      },
      {random_tensor({1, 3}, 1), random_tensor({1, 2}, 2)});
  check_second([](const Tensors& in) { return ops::split(in[0], -2, {1, 0, 3}); }, {x});
  check_second(
      [](const Tensors& in) {
        return Tensors{ops::split(in[0], 1, {3, 1})[1], ops::tanh(in[0])};
      },
      {x});
  check_second(
      [](const Tensors& in) {
        return Tensors{ops::slice(in[0], {.axis = -2, .begin = 1, .size = 2}), in[0]};
      },
      {x});
  check_second([](const Tensors& in) { return Tensors{ops::stack({in[0], in[1]})}; }, {y, y});
  check_second([](const Tensors& in) { return ops::unstack(in[0]); }, {x});
}

TEST(SecondGradients, Rows) {
  const Tensor x = random_tensor({4, 3, 2}, 1), y = random_tensor({4, 3, 2}, 2);
  check_second([](const Tensors& in) { return Tensors{ops::transpose_leading(in[0])}; }, {x});
  for (const bool time_major : {false, true}) {
    const std::vector<std::int32_t> lengths =
        time_major ? std::vector<std::int32_t>{4, 0, 3} : std::vector<std::int32_t>{3, 0, 1, 2};
    check_second(
        [=](const Tensors& in) {
          return Tensors{ops::multiply(ops::reverse_sequence(in[0], lengths, time_major), in[0])};
        },
        {x});
  }
  check_second(
      [](const Tensors& in) {
        return Tensors{ops::multiply(ops::select_rows({true, false, false, true}, in[0], in[1]),
                                     ops::add(in[0], in[1]))};
      },
      {x, y});
  const Tensor indices = int_tensor({2, 3}, {4, 0, 4, 1, 1, 4});
  check_third(
      [=](const Tensors& in) {
        return Tensors{ops::tanh(ops::embedding_lookup(in[0], indices)), in[0]};
      },
      {random_tensor({5, 2}, 3)});
}

TEST(SecondGradients, CrossEntropy) {
  const Tensor logits = random_tensor({2, 2, 3}, 1, -2, 2);
  const Tensor labels = int_tensor({2, 2}, {2, -1, 0, 1});
  check_third(
      [=](const Tensors& in) {
        return Tensors{ops::softmax_cross_entropy_rows(in[0], labels), ops::scale(in[0], 0.1)};
      },
      {logits});
  check_third([=](const Tensors& in) { return Tensors{ops::softmax_cross_entropy(in[0], labels)}; },
              {random_tensor({2, 2, 3}, 1, -2, 2)});
}

// In float16 and float32 as in float64, within their rounding.
TEST(SecondGradients, NarrowTypes) {
  const auto second = [](DType dtype) {
    const GradientTape outer;
    const Tensor x = outer.watch(random_tensor({2, 5}, 1, -1, 1, dtype));
    const Tensor w = outer.watch(random_tensor({5, 3}, 2, -1, 1, dtype));
    const GradientTape inner;
    const Tensor logits = ops::dense(ops::tanh(x), w);
    const Tensor loss =
        ops::add_n({ops::softmax_cross_entropy(logits, int_tensor({2}, {2, 0})),
                    ops::reduce_mean(ops::softmax(logits)), ops::l2_regularization(w, 0.5)});
    const Tensors gradients = inner.gradients({loss}, Tensors{x, w});
    const Tensor penalty =
        ops::add(ops::reduce_sum(ops::square(gradients[0])), ops::reduce_sum(gradients[1]));
    const auto found = outer.gradient(penalty, Tensors{x, w});
    EXPECT_EQ(found[0].dtype(), dtype);
    std::vector<double> all = values_of(found[0]);
    for (const double each : values_of(found[1])) all.push_back(each);
    return all;
  };
  const std::vector<double> exact = second(DType::kFloat64);
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBfloat16}) {
    if (dtype == DType::kBfloat16 && default_device().engine()) continue;  // of processors
    const std::vector<double> found = second(dtype);
    const double eps = dtype == DType::kFloat32 ? 1e-5 : dtype == DType::kFloat16 ? 4e-2 : 0.3;
    for (std::size_t i = 0; i < exact.size(); ++i) EXPECT_NEAR(found[i], exact[i], eps);
  }
}

// Wherever a part lies, with as much before it as behind it or not.
TEST(SecondGradients, SlicesOfEveryPlace) {
  const Tensor x = random_tensor({2, 4, 3}, 1);
  for (const std::int64_t axis : {0, 1, 2, -3, -2, -1}) {
    const std::int64_t steps = x.shape()[static_cast<std::size_t>(axis < 0 ? axis + 3 : axis)];
    for (std::int64_t begin = 0; begin < steps; ++begin) {
      for (std::int64_t size = 1; begin + size <= steps; ++size) {
        SCOPED_TRACE(::testing::Message() << axis << " " << begin << " " << size);
        check_second(
            [=](const Tensors& in) {
              return Tensors{ops::slice(in[0], {.axis = axis, .begin = begin, .size = size})};
            },
            {x});
      }
    }
  }
}

TEST(SecondGradients, PartsOfEveryAxis) {
  const Tensor x = random_tensor({5, 6, 4}, 1);
  for (const auto& [axis, sizes] : std::vector<std::pair<std::int64_t, std::vector<std::int64_t>>>{
           {0, {1, 4}}, {1, {3, 1, 2}}, {2, {1, 3}}, {-3, {4, 1}}, {-2, {1, 5}}, {-1, {3, 0, 1}}}) {
    SCOPED_TRACE(::testing::Message() << axis);
    check_second(
        [axis = axis, sizes = sizes](const Tensors& in) { return ops::split(in[0], axis, sizes); },
        {x});
    // Each part alone: the others have no gradient.
    for (std::size_t part = 0; part < sizes.size(); ++part) {
      if (sizes[part] == 0) continue;
      check_second([=, axis = axis, sizes = sizes](
                       const Tensors& in) { return Tensors{ops::split(in[0], axis, sizes)[part]}; },
                   {x});
    }
    Tensors parts;
    for (const Tensor& each : ops::split(x, axis, sizes)) {
      if (each.value().size() > 0) parts.push_back(each);
    }
    check_second([axis = axis](const Tensors& in) { return Tensors{ops::concat(in, axis)}; },
                 parts);
    check_second_of_each_alone(
        [axis = axis](const Tensors& in) { return Tensors{ops::concat(in, axis)}; }, parts);
  }
}

TEST(SecondGradients, ChoicesOfRows) {
  const Tensor a = random_tensor({3, 2}, 1), b = random_tensor({3, 2}, 2);
  for (const std::vector<bool>& choose : {std::vector<bool>{true, true, false},
                                          {false, true, true},
                                          {true, false, false},
                                          {false, true, false}}) {
    const Function function = [=](const Tensors& in) {
      return Tensors{ops::select_rows(choose, in[0], in[1])};
    };
    check_second(function, {a, b});
    check_second_of_each_alone(function, {a, b});
  }
}

}  // namespace
}  // namespace openrnn::testing
