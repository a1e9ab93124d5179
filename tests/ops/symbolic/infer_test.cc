// What is known of the results of symbolic operations, and what is refused before there are values.
#include "openrnn/graph_symbolic.h"
#include "ops/check_gradient.h"

namespace openrnn::testing {
namespace {

using Tensors = std::vector<Tensor>;

Tensor in(const Shape& shape, DType dtype = DType::kFloat32) { return Input(shape, dtype); }
Tensor wide(const Shape& shape) { return Input(shape, DType::kFloat64); }
Tensor whole(const Shape& shape) { return Input(shape, DType::kInt32); }

struct Refusal {
  std::string said;
  std::function<void()> call;
};

void expect_refused(const std::vector<Refusal>& cases) {
  for (const Refusal& one : cases) EXPECT_EQ(message_of<ArgumentError>(one.call), one.said);
}

Refusal second(const std::string& call, const std::string& name, const Shape& shape,
               const std::function<void()>& run) {
  return {
      "[" + call + "] " + name + " is float64 of shape " + to_string(shape) + ", expected float32",
      run};
}

Refusal unfit(const std::string& call, const std::string& name, const Shape& shape,
              const std::string& expected, const std::function<void()>& run) {
  return {"[" + call + "] " + name + " is float32 of shape " + to_string(shape) + ", expected " +
              expected,
          run};
}

TEST(Infer, OperandsOfAnotherDtype) {
  const Tensor a = in({3, 4});
  expect_refused({
      second("add", "b", {3, 4},
             [=] {
               ops::add(a, wide({3, 4}));
             }),
      second("subtract", "b", {3, 4},
             [=] {
               ops::subtract(a, wide({3, 4}));
             }),
      second("multiply", "b", {3, 4},
             [=] {
               ops::multiply(a, wide({3, 4}));
             }),
      second("divide", "b", {3, 4},
             [=] {
               ops::divide(a, wide({3, 4}));
             }),
      second("maximum", "b", {3, 4},
             [=] {
               ops::maximum(a, wide({3, 4}));
             }),
      second("minimum", "b", {3, 4},
             [=] {
               ops::minimum(a, wide({3, 4}));
             }),
      second("power", "b", {3, 4},
             [=] {
               ops::power(a, wide({3, 4}));
             }),
      second("where", "b", {3, 4},
             [=] {
               ops::where(a, a, wide({3, 4}));
             }),
      second("select_rows", "b", {3, 4},
             [=] {
               ops::select_rows({true, false, true}, a, wide({3, 4}));
             }),
  });
}

TEST(Infer, OtherOperandsOfAnotherDtype) {
  const Tensor a = in({3, 4});
  expect_refused({
      second("sigmoid_cross_entropy", "b", {3, 4},
             [=] {
               ops::sigmoid_cross_entropy(a, wide({3, 4}));
             }),
      second("binary_cross_entropy", "b", {3, 4},
             [=] {
               ops::binary_cross_entropy_rows(a, wide({3, 4}));
             }),
      second("add_row", "row", {4}, [=] { ops::add_row(a, wide({4})); }),
      second("matmul", "b", {4, 2},
             [=] {
               ops::matmul(a, wide({4, 2}));
             }),
      second("dense", "kernel", {4, 2},
             [=] {
               ops::dense(a, wide({4, 2}));
             }),
      second("concat", "parts[1]", {3, 4},
             [=] {
               ops::concat({a, wide({3, 4})}, 0);
             }),
      second("stack", "b", {3, 4},
             [=] {
               ops::stack({a, wide({3, 4})});
             }),
      {"[softmax_cross_entropy] labels is float32 of shape [3], expected int32",
       [=] { ops::softmax_cross_entropy(a, in({3})); }},
      {"[softmax_cross_entropy_rows] labels is float32 of shape [3], expected int32",
       [=] { ops::softmax_cross_entropy_rows(a, in({3})); }},
      {"[embedding_lookup] indices is float32 of shape [3], expected int32",
       [=] { ops::embedding_lookup(a, in({3})); }},
      {"[one_hot] indices is float32 of shape [3], expected int32",
       [] { ops::one_hot(in({3}), 4, DType::kFloat32); }},
  });
}

TEST(Infer, WhatIsNoFloatingTensor) {
  const Tensor i = whole({3, 4});
  const auto of = [](const std::string& call, const std::string& name,
                     const std::function<void()>& run) {
    return Refusal{
        "[" + call + "] " + name + " is int32 of shape [3, 4], expected a floating tensor", run};
  };
  expect_refused({
      of("relu", "x", [=] { ops::relu(i); }),
      of("add_scalar", "x", [=] { ops::add_scalar(i, 1.0); }),
      of("scale", "x", [=] { ops::scale(i, 2.0); }),
      of("clip", "x", [=] { ops::clip(i, 0.0, 1.0); }),
      of("softmax", "logits", [=] { ops::softmax_along(i, 0); }),
      of("softmax", "x", [=] { ops::softmax(i); }),
      of("log_softmax", "logits", [=] { ops::log_softmax(i, 0); }),
      of("dropout", "x", [=] { ops::dropout(i, 0.5, {}); }),
      of("full_like", "x", [=] { ops::full_like(i, 0.5); }),
      of("reduce_sum", "x", [=] { ops::reduce_sum(i); }),
      of("reduce_mean", "x", [=] { ops::reduce_mean(i); }),
      of("reduce_max", "x", [=] { ops::reduce_max(i, {}); }),
      of("l1_regularization", "x", [=] { ops::l1_regularization(i, 1.0); }),
      of("l2_regularization", "x", [=] { ops::l2_regularization(i, 1.0); }),
      of("add", "a", [=] { ops::add(i, i); }),
      of("select_rows", "a",
         [=] {
           ops::select_rows({true, true, true}, i, i);
         }),
      of("add_row", "x", [=] { ops::add_row(i, in({4})); }),
      of("matmul", "a",
         [=] {
           ops::matmul(i, in({4, 2}));
         }),
      of("dense", "x",
         [=] {
           ops::dense(i, in({4, 2}));
         }),
      of("concat", "parts[0]",
         [=] {
           ops::concat({i, i}, 0);
         }),
      of("stack", "x", [=] { ops::stack({i}); }),
      of("split", "x",
         [=] {
           ops::split(i, 0, {1, 2});
         }),
      of("slice", "x", [=] { ops::slice(i, {.axis = 0, .begin = 0, .size = 1}); }),
      of("unstack", "x", [=] { ops::unstack(i); }),
      of("transpose_leading", "x", [=] { ops::transpose_leading(i); }),
      of("reverse_sequence", "x", [=] { ops::reverse_sequence(i, {}); }),
      of("reverse_sequence", "x", [=] { ops::reverse_sequence_by(i, whole({4})); }),
      of("softmax_cross_entropy", "logits", [=] { ops::softmax_cross_entropy(i, whole({3})); }),
      of("embedding_lookup", "table", [=] { ops::embedding_lookup(i, whole({3})); }),
  });
}

TEST(Infer, ShapesThatDoNotFit) {
  const Tensor a = in({3, 4});
  const std::string row = "one dimension, the last of [3, 4]";
  expect_refused({
      unfit("add_row", "row", {3}, row, [=] { ops::add_row(a, in({3})); }),
      unfit("add_row", "row", {1, 4}, row,
            [=] {
              ops::add_row(a, in({1, 4}));
            }),
      unfit("add_row", "row", {4}, "one dimension, the last of []",
            [] { ops::add_row(in({}), in({4})); }),
      unfit("matmul", "a", {4}, "2 dimensions",
            [] {
              ops::matmul(in({4}), in({4, 2}));
            }),
      unfit("matmul", "b", {4}, "2 dimensions", [=] { ops::matmul(a, in({4})); }),
      unfit("matmul", "b", {3, 2}, "4 at dimension 0",
            [=] {
              ops::matmul(a, in({3, 2}));
            }),
      unfit("matmul", "b", {2, 3}, "4 at dimension 1",
            [=] {
              ops::matmul(a, in({2, 3}), {.transpose_b = true});
            }),
      unfit("matmul", "b", {4, 2}, "3 at dimension 0",
            [=] {
              ops::matmul(a, in({4, 2}), {.transpose_a = true});
            }),
      unfit("dense", "kernel", {3, 2}, "[I, N] for x [.., I] of shape [3, 4]",
            [=] {
              ops::dense(a, in({3, 2}));
            }),
      unfit("dense", "kernel", {4}, "[I, N] for x [.., I] of shape [3, 4]",
            [=] { ops::dense(a, in({4})); }),
      unfit("dense", "kernel", {4, 2}, "[I, N] for x [.., I] of shape []",
            [] {
              ops::dense(in({}), in({4, 2}));
            }),
  });
}

TEST(Infer, PartsThatDoNotFit) {
  const Tensor a = in({3, 4}), open = in({-1, 4}), deep = in({2, 3, 4});
  expect_refused({
      unfit("select_rows", "b", {3, 5}, "the shape [3, 4] of a",
            [=] {
              ops::select_rows({true, true, true}, a, in({3, 5}));
            }),
      unfit("concat", "b", {2, 5}, "the shape [3, 4] of a",
            [=] {
              ops::concat({a, in({2, 5})}, 0);
            }),
      unfit("concat", "b", {2, 3, 4}, "the shape [-1, 4] of a",
            [=] {
              ops::concat({open, deep}, 0);
            }),
      unfit("stack", "b", {3, 5}, "the shape [3, 4] of a",
            [=] {
              ops::stack({a, a, in({3, 5})});
            }),
      unfit("reshape", "x", {3, 4}, "as many elements as [5, 2]",
            [=] {
              ops::reshape(a, {5, 2});
            }),
      unfit("reshape", "x", {3, 4}, "as many elements as [-1, 5]",
            [=] {
              ops::reshape(a, {-1, 5});
            }),
      {"[reshape] shape is [-1, 2, -1], expected at most one dimension of -1",
       [=] {
         ops::reshape(open, {-1, 2, -1});
       }},
      {"[softmax_cross_entropy] labels is int32 of shape [4], expected the shape of the rows of "
       "[3, 4]",
       [=] { ops::softmax_cross_entropy(a, whole({4})); }},
      {"[softmax_cross_entropy_rows] labels is int32 of shape [3, 4], expected the shape of the "
       "rows of [3, 4]",
       [=] {
         ops::softmax_cross_entropy_rows(a, whole({3, 4}));
       }},
      {"[softmax_cross_entropy_rows] labels is int32 of shape [2, 4], expected the shape of the "
       "rows of [2, 3, 4]",
       [=] {
         ops::softmax_cross_entropy_rows(deep, whole({2, 4}));
       }},
  });
}

TEST(Infer, AxesAndRanges) {
  const Tensor a = in({3, 4}), open = in({-1, 4});
  const std::string axes = ", expected -2 to 1";
  expect_refused({
      {"[concat] axis is 2" + axes,
       [=] {
         ops::concat({a, a}, 2);
       }},
      {"[split] axis is -3" + axes,
       [=] {
         ops::split(a, -3, {1, 2});
       }},
      {"[slice] axis is 2" + axes, [=] { ops::slice(a, {.axis = 2, .begin = 0, .size = 1}); }},
      {"[split] sizes are [1, 1], expected a sum of 3",
       [=] {
         ops::split(a, 0, {1, 1});
       }},
      {"[split] sizes are [4, -1], expected a sum of 3",
       [=] {
         ops::split(a, 0, {4, -1});
       }},
      {"[split] sizes are [-1], expected a sum of -1", [=] { ops::split(open, 0, {-1}); }},
      {"[slice] begin is -1 and size 1, expected a range within 0 to 3",
       [=] { ops::slice(a, {.axis = 0, .begin = -1, .size = 1}); }},
      {"[slice] begin is 1 and size -1, expected a range within 0 to -1",
       [=] { ops::slice(open, {.axis = 0, .begin = 1, .size = -1}); }},
      {"[slice] begin is 1 and size 3, expected a range within 0 to 3",
       [=] { ops::slice(a, {.axis = 0, .begin = 1, .size = 3}); }},
  });
  EXPECT_EQ(ops::slice(open, {.axis = 0, .begin = 7, .size = 5}).shape(), (Shape{5, 4}));
  EXPECT_EQ(ops::slice(a, {.axis = 0, .begin = 1, .size = 2}).shape(), (Shape{2, 4}));
  EXPECT_EQ(ops::slice(a, {.axis = -1, .begin = 4, .size = 0}).shape(), (Shape{3, 0}));
}

TEST(Infer, ShapesAndDtypesOfResults) {
  const Tensor half = in({-1, 4}, DType::kFloat16), deep = in({2, -1, 4}), square = in({-1, -1});
  const auto expect = [](const Tensor& found, DType dtype, const Shape& shape) {
    EXPECT_EQ(found.dtype(), dtype) << found.symbol()->call->op;
    EXPECT_EQ(found.shape(), shape) << found.symbol()->call->op;
  };
  expect(ops::reduce_sum(half), DType::kFloat32, {});
  expect(ops::reduce_mean(wide({2})), DType::kFloat64, {});
  expect(ops::l1_regularization(half, 1.0), DType::kFloat32, {});
  expect(ops::l2_regularization(half, 1.0), DType::kFloat32, {});
  expect(ops::softmax(half), DType::kFloat16, {-1, 4});
  expect(ops::softmax_cross_entropy(half, whole({-1})), DType::kFloat32, {});
  expect(ops::softmax_cross_entropy_rows(half, whole({6})), DType::kFloat32, {6});
  expect(ops::add_row(half, in({4}, DType::kFloat16)), DType::kFloat16, {-1, 4});
  expect(ops::matmul(in({3, -1}), in({5, 2})), DType::kFloat32, {3, 2});
  expect(ops::matmul(in({5, 3}), in({2, 5}), {.transpose_a = true, .transpose_b = true}),
         DType::kFloat32, {3, 2});
  expect(ops::dense(deep, in({4, -1})), DType::kFloat32, {2, -1, -1});
  expect(ops::dense(deep, in({4, 6}), in({-1})), DType::kFloat32, {2, -1, 6});
  expect(ops::reshape(deep, {-1, 8}), DType::kFloat32, {-1, 8});
  expect(ops::reshape(in({2, 3, 4}), {-1, 8}), DType::kFloat32, {3, 8});
  expect(ops::reshape(in({2, 3, 4}), {6, 4}), DType::kFloat32, {6, 4});
  expect(ops::transpose_leading(deep), DType::kFloat32, {-1, 2, 4});
  expect(ops::embedding_lookup(in({7, 5}, DType::kFloat16), whole({-1, 3})), DType::kFloat16,
         {-1, 3, 5});
  expect(ops::embedding_lookup(in({7}), whole({3})), DType::kFloat32, {3, -1});
  expect(ops::one_hot(whole({-1, 3}), 4, DType::kFloat64), DType::kFloat64, {-1, 3, 4});
  expect(ops::ctc_loss(in({-1, 3, 4}), whole({-1, 2})), DType::kFloat32, {3});
  expect(ops::ctc_loss(wide({3, -1, 4}), whole({3, 2}), {.time_major = false}), DType::kFloat64,
         {3});
  expect(ops::matmul(in({2, 1, 3, 4}), in({5, 4, 6})), DType::kFloat32, {2, 5, 3, 6});
  expect(ops::einsum("ij,jk->ki", {in({2, 3}), in({3, -1})}), DType::kFloat32, {-1, 2});
  expect(ops::gather(deep, whole({6, 5}), 1), DType::kFloat32, {2, 6, 5, 4});
  expect(ops::strided_slice(deep, {.axis = 1, .step = -1}), DType::kFloat32, {2, -1, 4});
  expect(ops::strided_slice(in({7}), {.begin = 1, .end = -1, .step = 2}), DType::kFloat32, {3});
  expect(ops::tile(deep, {3, 2, 1}), DType::kFloat32, {6, -1, 4});
  expect(ops::squeeze(in({1, -1, 1}), {0}), DType::kFloat32, {-1, 1});
  expect(ops::expand_dims(deep, -1), DType::kFloat32, {2, -1, 4, 1});
  expect(ops::reduce_max(half, {.axes = {{1}}}), DType::kFloat16, {-1});
  expect(ops::reduce_sum(half, {.axes = {{0}}, .keepdims = true}), DType::kFloat32, {1, 4});
  expect(ops::argmax(deep, 0), DType::kInt32, {-1, 4});
  expect(ops::less(square, in({3})), DType::kBool, {-1, 3});
  expect(ops::logical_not(square), DType::kBool, {-1, -1});
}

}  // namespace
}  // namespace openrnn::testing
