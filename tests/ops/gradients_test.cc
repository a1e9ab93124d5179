#include "ops/check_gradient.h"

namespace openrnn::testing {
namespace {

using Tensors = std::vector<Tensor>;

TEST(Gradients, MatmulWithEveryTranspose) {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      SCOPED_TRACE(::testing::Message() << ta << tb);
      const Tensor a = random_tensor(ta ? Shape{5, 3} : Shape{3, 5}, 1);
      const Tensor b = random_tensor(tb ? Shape{7, 5} : Shape{5, 7}, 2);
      check_gradient(
          [=](const Tensors& in) {
            return Tensors{ops::matmul(in[0], in[1], {.transpose_a = ta, .transpose_b = tb})};
          },
          {a, b});
    }
  }
}

TEST(Gradients, Dense) {
  const Tensor x = random_tensor({3, 2, 5}, 1), kernel = random_tensor({5, 7}, 2);
  check_gradient([](const Tensors& in) { return Tensors{ops::dense(in[0], in[1], in[2])}; },
                 {x, kernel, random_tensor({7}, 3)});
  check_gradient([](const Tensors& in) { return Tensors{ops::dense(in[0], in[1])}; }, {x, kernel});
  check_gradient([](const Tensors& in) { return Tensors{ops::dense(in[0], in[1])}; },
                 {random_tensor({1, 1}, 4), random_tensor({1, 1}, 5)});
}

TEST(Gradients, TwoOperands) {
  const Tensor a = random_tensor({3, 5}, 1), b = random_tensor({3, 5}, 2, 0.5, 2.0);
  check_gradient([](const Tensors& in) { return Tensors{ops::add(in[0], in[1])}; }, {a, b});
  check_gradient([](const Tensors& in) { return Tensors{ops::subtract(in[0], in[1])}; }, {a, b});
  check_gradient([](const Tensors& in) { return Tensors{ops::multiply(in[0], in[1])}; }, {a, b});
  check_gradient([](const Tensors& in) { return Tensors{ops::divide(in[0], in[1])}; }, {a, b});
  check_gradient(
      [](const Tensors& in) {
        return Tensors{ops::add_n({in[0], in[1], in[0]})};
      },
      {a, b});
  check_gradient([](const Tensors& in) { return Tensors{ops::add_row(in[0], in[1])}; },
                 {random_tensor({2, 3, 5}, 3), random_tensor({5}, 4)});
}

// Where one operand is a constant, the other's gradient is computed all the same.
TEST(Gradients, OfOneOperandWhereTheOtherIsConstant) {
  const Tensor a = random_tensor({3, 5}, 1), b = random_tensor({3, 5}, 2, 0.5, 2.0);
  for (Tensor (*op)(const Tensor&, const Tensor&) :
       {ops::add, ops::subtract, ops::multiply, ops::divide}) {
    check_each_alone([op](const Tensors& in) { return Tensors{op(in[0], in[1])}; }, {a, b});
  }
  check_each_alone([](const Tensors& in) { return Tensors{ops::add_row(in[0], in[1])}; },
                   {random_tensor({2, 3, 5}, 3), random_tensor({5}, 4)});
  check_each_alone([](const Tensors& in) { return Tensors{ops::matmul(in[0], in[1])}; },
                   {a, random_tensor({5, 7}, 5)});
  check_each_alone([](const Tensors& in) { return Tensors{ops::dense(in[0], in[1], in[2])}; },
                   {a, random_tensor({5, 7}, 5), random_tensor({7}, 6)});
  check_each_alone(
      [](const Tensors& in) {
        return Tensors{ops::concat({in[0], in[1]}, 1)};
      },
      {a, b});
}

TEST(Gradients, OneOperand) {
  // Away from 0, where relu and absolute have a kink: every |x| is above 0.01 or so.
  const Tensor low = random_tensor({2, 9}, 1, -2.0, -0.01),
               high = random_tensor({2, 9}, 2, 0.01, 2);
  const Tensor x = ops::concat({low, high}, 0);
  for (Tensor (*op)(const Tensor&) : {ops::relu, ops::tanh, ops::sigmoid, ops::exp, ops::negate,
                                      ops::square, ops::absolute, ops::softmax}) {
    check_gradient([op](const Tensors& in) { return Tensors{op(in[0])}; }, {x});
  }
  check_gradient([](const Tensors& in) { return Tensors{ops::sqrt(in[0])}; },
                 {random_tensor({3, 7}, 3, 0.5, 2.0)});
  check_gradient([](const Tensors& in) { return Tensors{ops::scale(in[0], -1.75)}; }, {x});
  check_gradient([](const Tensors& in) { return Tensors{ops::add_scalar(in[0], 3.0)}; }, {x});
  check_gradient([](const Tensors& in) { return Tensors{ops::clip(in[0], -0.71, 1.1)}; }, {x});
  check_gradient([](const Tensors& in) { return Tensors{ops::cast(in[0], DType::kFloat64)}; }, {x});
  check_gradient(
      [](const Tensors& in) { return Tensors{ops::dropout(in[0], 0.4, {.seed = 3, .call = 8})}; },
      {x});
}

TEST(Gradients, Reductions) {
  const Tensor x = random_tensor({3, 7}, 1, 0.1, 1.0);
  check_gradient([](const Tensors& in) { return Tensors{ops::reduce_sum(in[0])}; }, {x});
  check_gradient([](const Tensors& in) { return Tensors{ops::reduce_mean(in[0])}; }, {x});
  check_gradient([](const Tensors& in) { return Tensors{ops::l1_regularization(in[0], 0.3)}; },
                 {x});
  check_gradient([](const Tensors& in) { return Tensors{ops::l2_regularization(in[0], 0.3)}; },
                 {x});
}

TEST(Gradients, Shapes) {
  const Tensor x = random_tensor({3, 4, 5}, 1), y = random_tensor({3, 2, 5}, 2);
  check_gradient([](const Tensors& in) { return Tensors{ops::reshape(in[0], {5, -1})}; }, {x});
  check_gradient(
      [](const Tensors& in) {
        return Tensors{ops::concat({in[0], in[1], in[0]}, 1)};
      },
      {x, y});
  check_gradient([](const Tensors& in) { return ops::split(in[0], -2, {1, 0, 3}); }, {x});
  check_gradient([](const Tensors& in) { return Tensors{ops::split(in[0], 2, {2, 3})[1]}; }, {x});
  check_gradient(
      [](const Tensors& in) {
        return Tensors{ops::slice(in[0], {.axis = 1, .begin = 1, .size = 2}), in[0]};
      },
      {x});
  check_gradient([](const Tensors& in) { return Tensors{ops::stack({in[0], in[1]})}; }, {y, y});
  check_gradient([](const Tensors& in) { return ops::unstack(in[0]); }, {x});
}

TEST(Gradients, Rows) {
  const Tensor x = random_tensor({4, 3, 2}, 1), y = random_tensor({4, 3, 2}, 2);
  check_gradient([](const Tensors& in) { return Tensors{ops::transpose_leading(in[0])}; }, {x});
  check_gradient(
      [](const Tensors& in) {
        return Tensors{ops::reverse_sequence(in[0], {4, 0, 3})};
      },
      {x});
  check_gradient(
      [](const Tensors& in) {
        return Tensors{ops::reverse_sequence(in[0], {1, 3, 0, 2}, false)};
      },
      {x});
  check_gradient(
      [](const Tensors& in) {
        return Tensors{ops::select_rows({true, false, false, true}, in[0], in[1])};
      },
      {x, y});
  const Tensor indices = int_tensor({2, 3}, {4, 0, 4, 4, 2, 0});
  check_gradient([=](const Tensors& in) { return Tensors{ops::embedding_lookup(in[0], indices)}; },
                 {random_tensor({5, 3}, 3)});
}

TEST(Gradients, Losses) {
  const Tensor logits = random_tensor({3, 2, 5}, 1, -3.0, 3.0);
  const Tensor labels = int_tensor({3, 2}, {4, 0, -1, 2, 2, -7});
  check_gradient(
      [=](const Tensors& in) { return Tensors{ops::softmax_cross_entropy(in[0], labels)}; },
      {logits});
  check_gradient(
      [=](const Tensors& in) { return Tensors{ops::softmax_cross_entropy_rows(in[0], labels)}; },
      {logits});
  check_gradient([](const Tensors& in) { return Tensors{ops::mean_squared_error(in[0], in[1])}; },
                 {logits, random_tensor({3, 2, 5}, 2)});
}

}  // namespace
}  // namespace openrnn::testing
