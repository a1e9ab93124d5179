// Gradients of what broadcasts, reduces and views, by differences; and those of gradients.
#include "ops/second/second_order.h"

namespace openrnn::testing {
namespace {

using Binary = Tensor (*)(const Tensor&, const Tensor&);

struct Pair {
  Shape a, b;
};
const std::vector<Pair> kPairs{{{3, 2}, {3, 2}}, {{3, 1}, {2}},       {{2}, {3, 2}},
                               {{}, {2, 3}},     {{2, 1, 3}, {5, 1}}, {{1}, {1, 1}},
                               {{4, 1}, {1, 3}}, {{2, 3}, {2, 1}},    {{1, 7}, {3, 7}}};

Tensor of(const std::vector<double>& values) {
  return Tensor(Array::of<double>({static_cast<std::int64_t>(values.size())}, values).view());
}

TEST(TensorGradients, OfTwoOperandsThatBroadcast) {
  for (const Pair& shapes : kPairs) {
    SCOPED_TRACE(to_string(shapes.a) + " " + to_string(shapes.b));
    const Tensor a = random_tensor(shapes.a, 1, 0.4, 2.0), b = random_tensor(shapes.b, 2, 0.5, 1.9);
    for (const Binary op : {Binary(ops::add), Binary(ops::subtract), Binary(ops::multiply),
                            Binary(ops::divide), Binary(ops::power)}) {
      const Function function = [op](const Tensors& in) { return Tensors{op(in[0], in[1])}; };
      check_gradient(function, {a, b});
      check_each_alone(function, {a, b});
      check_second(function, {a, b});
    }
    for (const Binary op :
         {Binary(ops::maximum), Binary(ops::minimum), Binary(ops::sigmoid_cross_entropy)}) {
      check_second([op](const Tensors& in) { return Tensors{op(in[0], in[1])}; }, {a, b});
    }
  }
}

TEST(TensorGradients, OfEmptyOperands) {
  GradientTape tape;
  const Tensor row = tape.watch(random_tensor({3}, 1)), none = tape.watch(random_tensor({0, 3}, 2));
  const Tensor product = ops::multiply(row, none);
  EXPECT_EQ(product.shape(), (Shape{0, 3}));
  const auto found = tape.gradient(ops::reduce_sum(product), std::vector{row, none});
  EXPECT_EQ(values_of(found[0]), (std::vector<double>{0, 0, 0}));
  EXPECT_EQ(found[1].shape(), (Shape{0, 3}));
}

TEST(TensorGradients, OfOneOperand) {
  const Tensor x = random_tensor({3, 5}, 1, 0.2, 2.0);
  check_third([](const Tensors& in) { return Tensors{ops::log(in[0])}; }, {x});
  check_third([](const Tensors& in) { return Tensors{ops::softplus(in[0])}; },
              {random_tensor({7}, 2, -3, 3)});
  check_second(
      [](const Tensors& in) {
        return Tensors{ops::binary_cross_entropy_rows(ops::sigmoid(in[0]), ops::sigmoid(in[1]))};
      },
      {random_tensor({3, 2}, 4), random_tensor({3, 2}, 5)});
}

TEST(TensorGradients, OfWhereAndClip) {
  Array mask(DType::kBool, {3, 1});
  mask.as<bool>()[1] = true;
  const Tensor chosen(mask.view());
  check_second([&](const Tensors& in) { return Tensors{ops::where(chosen, in[0], in[1])}; },
               {random_tensor({3, 2}, 1), random_tensor({2}, 2)});
  check_second([](const Tensors& in) { return Tensors{ops::clip_between(in[0], in[1], in[2])}; },
               {random_tensor({3, 4}, 1), random_tensor({4}, 2, -0.6, -0.5),
                random_tensor({3, 1}, 3, 0.5, 0.6)});
}

// The power of 0, and of what has no logarithm.
TEST(TensorGradients, OfPowersAtTheirEdges) {
  GradientTape tape;
  const Tensor a = tape.watch(of({0, -2, 0, 3})), b = tape.watch(of({2, 3, 0, 0}));
  const auto found = tape.gradient(ops::reduce_sum(ops::power(a, b)), std::vector{a, b});
  EXPECT_EQ(values_of(found[0]), (std::vector<double>{0, 12, 0, 0}));
  EXPECT_EQ(values_of(found[1]), (std::vector<double>{0, 0, 0, portable_log(3.0)}));
}

// b a^(b - 1), and 0 for an exponent of 0 alone: a base of 0 has a slope, too.
TEST(TensorGradients, OfPowersOfEveryBaseAndExponent) {
  std::vector<double> bases, exponents, by_base, by_exponent;
  for (const double a : {-2.0, -0.5, 0.0, 0.25, 1.0, 3.0}) {
    for (const double b : {-2.0, -1.0, 0.0, 0.5, 1.0, 2.0, 3.0}) {
      if (a < 0.0 && b == 0.5) continue;
      bases.push_back(a);
      exponents.push_back(b);
      by_base.push_back(b == 0.0 ? 0.0 : b * std::pow(a, b - 1.0));
      by_exponent.push_back(a > 0.0 ? std::pow(a, b) * std::log(a) : 0.0);
    }
  }
  GradientTape tape;
  const Tensor a = tape.watch(of(bases)), b = tape.watch(of(exponents));
  const auto found = tape.gradient(ops::reduce_sum(ops::power(a, b)), std::vector{a, b});
  const std::vector<double> da = values_of(found[0]), db = values_of(found[1]);
  for (std::size_t i = 0; i < bases.size(); ++i) {
    EXPECT_DOUBLE_EQ(da[i], by_base[i]) << bases[i] << "^" << exponents[i];
    EXPECT_DOUBLE_EQ(db[i], by_exponent[i]) << bases[i] << "^" << exponents[i];
  }
}

// Where both are equal the first has it all.
TEST(TensorGradients, OfTheLargerAndTheSmallerOfEqualNumbers) {
  for (const bool larger : {true, false}) {
    GradientTape tape;
    const Tensor a = tape.watch(of({1, 2, 3})), b = tape.watch(of({2, 2, 2}));
    const Tensor c = larger ? ops::maximum(a, b) : ops::minimum(a, b);
    const auto found = tape.gradient(ops::multiply(c, of({3, 5, 7})), std::vector{a, b});
    EXPECT_EQ(values_of(found[0]),
              (larger ? std::vector<double>{0, 5, 7} : std::vector<double>{3, 5, 0}));
    EXPECT_EQ(values_of(found[1]),
              (larger ? std::vector<double>{3, 0, 0} : std::vector<double>{0, 0, 7}));
  }
}

// A logarithm that is left out of the first derivative stays out of the second.
TEST(TensorGradients, SecondOfPowersWithoutALogarithm) {
  const GradientTape outer;
  const Tensor a = outer.watch(of({0, -2, 1, 3})), b = outer.watch(of({2, 3, 0, 1}));
  const GradientTape inner;
  const Tensor by_b = inner.gradients({ops::power(a, b)}, Tensors{b})[0];
  const auto found = outer.gradient(ops::reduce_sum(by_b), std::vector{a, b});
  const double log3 = portable_log(3.0);
  EXPECT_EQ(values_of(found[0]), (std::vector<double>{0, 0, 1, log3 + 1}));
  EXPECT_EQ(values_of(found[1]), (std::vector<double>{0, 0, 0, 3 * log3 * log3}));
}

TEST(TensorGradients, OfReductions) {
  using Reduce = Tensor (*)(const Tensor&, const ops::ReduceOptions&);
  const Tensor x = random_tensor({3, 2, 5}, 1, 0.2, 2.0);
  const std::vector<std::optional<std::vector<std::int64_t>>> all{
      std::nullopt, {{0}}, {{1}}, {{-1}}, {{0, 2}}, {{2, 1, 0}}, {std::vector<std::int64_t>{}}};
  for (const auto& axes : all) {
    for (const bool keepdims : {false, true}) {
      for (const Reduce op :
           {Reduce(ops::reduce_sum), Reduce(ops::reduce_mean), Reduce(ops::reduce_max),
            Reduce(ops::reduce_min), Reduce(ops::reduce_variance), Reduce(ops::reduce_logsumexp)}) {
        check_second(
            [&](const Tensors& in) {
              return Tensors{op(in[0], {.axes = axes, .keepdims = keepdims})};
            },
            {x});
      }
    }
  }
  check_second([](const Tensors& in) { return Tensors{ops::reduce_std(in[0], {.axes = {{1}}})}; },
               {random_tensor({2, 7}, 3)});
  for (const std::int64_t axis : {0, 1, -1}) {
    check_second([=](const Tensors& in) { return Tensors{ops::log_softmax(in[0], axis)}; }, {x});
    check_second([=](const Tensors& in) { return Tensors{ops::softmax_along(in[0], axis)}; }, {x});
  }
}

// Equal maxima share.
TEST(TensorGradients, OfTies) {
  GradientTape tape;
  const Tensor x =
      tape.watch(Tensor(Array::of<double>({5}, std::vector<double>{1, 3, 3, 2, 3}).view()));
  EXPECT_EQ(values_of(tape.gradient(ops::reduce_max(x), std::vector{x})[0]),
            (std::vector<double>{0, 1.0 / 3, 1.0 / 3, 0, 1.0 / 3}));
}

TEST(TensorGradients, OfViews) {
  const Tensor x = random_tensor({3, 2, 4}, 1);
  for (const std::vector<std::int64_t>& perm :
       std::vector<std::vector<std::int64_t>>{{}, {0, 1, 2}, {1, 0, 2}, {2, 0, 1}, {-1, 1, 0}}) {
    check_second([&](const Tensors& in) { return Tensors{ops::transpose(in[0], perm)}; }, {x});
  }
  check_second([](const Tensors& in) { return Tensors{ops::tile(in[0], {2, 1, 3})}; }, {x});
  check_second(
      [](const Tensors& in) {
        return Tensors{ops::broadcast_to(in[0], {2, 3, 2, 4})};
      },
      {x});
  check_second([](const Tensors& in) { return Tensors{ops::sum_to(in[0], {2, 1})}; }, {x});
  for (const std::int64_t step : {-3, -1, 2}) {
    check_second(
        [=](const Tensors& in) {
          return Tensors{ops::strided_slice(in[0], {.axis = 2, .step = step})};
        },
        {x});
  }
  check_second(
      [](const Tensors& in) {
        return Tensors{ops::gather(in[0], int_tensor({2, 2}, {3, 0, 3, 1}), -1)};
      },
      {x});
  check_second([](const Tensors& in) { return Tensors{ops::squeeze(ops::expand_dims(in[0], 1))}; },
               {x});
}

TEST(TensorGradients, OfProducts) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      check_second(
          [=](const Tensors& in) {
            return Tensors{ops::matmul(in[0], in[1], {.transpose_a = ta, .transpose_b = tb})};
          },
          {random_tensor(ta ? Shape{2, 1, 3, 2} : Shape{2, 1, 2, 3}, 1),
           random_tensor(tb ? Shape{3, 5, 3} : Shape{3, 3, 5}, 2)});
    }
  }
  for (const char* equation :
       {"bij,bjk->bik", "ij,jk", "abc,cd->dab", "ij,ij->", "i,j->ij", "bi,bij->j", "ij,k->k"}) {
    SCOPED_TRACE(equation);
    const std::string text = equation;
    const std::map<char, std::int64_t> sizes{{'a', 2}, {'b', 3}, {'c', 2}, {'d', 3},
                                             {'i', 2}, {'j', 3}, {'k', 2}};
    Tensors in(1);
    Shape shape;
    for (const char c : text.substr(0, text.find("->")) + ",") {
      if (c != ',') {
        shape.push_back(sizes.at(c));
      } else {
        in.back() = random_tensor(std::exchange(shape, {}), in.size());
        in.emplace_back();
      }
    }
    in.pop_back();
    check_second([&](const Tensors& given) { return Tensors{ops::einsum(text, given)}; }, in);
  }
}

// Only differences of logits count, however large they are.
TEST(TensorGradients, OfCtcOfVeryDifferentLogits) {
  const auto run = [](const std::vector<double>& values) {
    GradientTape tape;
    const Tensor x = tape.watch(Tensor(Array::of<double>({2, 1, 3}, values).view()));
    const Tensor loss = ops::ctc_loss(x, int_tensor({1, 1}, {1}));
    return std::pair(loss.item(), values_of(tape.gradient(loss, std::vector{x})[0]));
  };
  const auto [small, slopes] = run({1, 3, -2, 0, 2, 1});
  for (const double shift : {2000.0, -2000.0}) {
    const auto [moved, there] = run({1 + shift, 3 + shift, -2 + shift, 0, 2, 1});
    EXPECT_NEAR(moved, small, 1e-9);
    for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(there[i], slopes[i], 1e-9) << shift << " " << i;
  }
  const auto [far, steep] = run({-2000, -2000, 3000, 0, 1500, -1500});
  EXPECT_NEAR(far, 5000.0, 1.0);
  for (const double slope : steep) EXPECT_TRUE(std::isfinite(slope));
}

TEST(TensorGradients, OfCtc) {
  const Tensor labels = int_tensor({3, 3}, {1, 1, 2, 3, -1, -1, -1, -1, -1});
  for (const bool time_major : {true, false}) {
    for (const std::int64_t blank : {0, -1}) {
      check_gradient(
          [=](const Tensors& in) {
            const Tensor shifted = blank == 0 ? labels : int_tensor({3, 2}, {1, 1, 2, 0, 2, -1});
            return Tensors{ops::ctc_loss(
                in[0], shifted,
                {.logit_lengths = {5, 4, 2}, .blank = blank, .time_major = time_major})};
          },
          {random_tensor(time_major ? Shape{5, 3, 4} : Shape{3, 5, 4}, 1, -2, 2)});
    }
  }
}

// What is no floating number has no slope: the way through it counts as a constant.
TEST(TensorGradients, StopAtIntegersAndTruthValues) {
  const auto wide = [](const Tensor& x) { return ops::cast(x, DType::kFloat64); };
  const auto truths = [](const Tensor& x) { return ops::cast(x, DType::kBool); };
  const auto whole = [](const Tensor& x) { return ops::cast(x, DType::kInt64); };
  const std::function<Tensor(const Tensor&)> ways[] = {
      [=](const Tensor& x) { return wide(ops::cast(x, DType::kInt32)); },
      [=](const Tensor& x) { return wide(whole(x)); },
      [=](const Tensor& x) { return wide(truths(x)); },
      [=](const Tensor& x) { return wide(ops::logical_not(truths(x))); },
      [=](const Tensor& x) { return wide(ops::logical_or(truths(x), ops::less(x, wide(x)))); },
      [=](const Tensor& x) { return wide(ops::less(whole(x), whole(ops::square(x)))); },
      [=](const Tensor& x) { return wide(ops::argmax(x, 0)); }};
  for (const auto& way : ways) {
    GradientTape tape;
    const Tensor x = tape.watch(of({2.0, -1.5, 3.25}));
    const Tensor loss =
        ops::add(ops::reduce_sum(ops::square(x)), ops::reduce_sum(ops::square(way(x))));
    EXPECT_EQ(values_of(tape.gradient(loss, std::vector{x})[0]), (std::vector{4.0, -3.0, 6.5}));
  }
}

}  // namespace
}  // namespace openrnn::testing
