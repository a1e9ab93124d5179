#include "ops/check_gradient.h"

namespace openrnn::testing {
namespace {

Tensor zeros(const Shape& shape, DType dtype = DType::kFloat32) {
  return Tensor(Array(dtype, shape).view());
}

template <class Call>
std::string argument_error(const Call& call) {
  return message_of<ArgumentError>(call);
}

TEST(Errors, Products) {
  EXPECT_EQ(argument_error([] {
              ops::matmul(zeros({2, 3}), zeros({4, 5}));
            }),
            "[matmul] b has shape [4, 5], expected 3 at dimension 0 for a of shape [2, 3]");
  EXPECT_EQ(argument_error([] {
              ops::matmul(zeros({2, 3}), zeros({5, 4}), {.transpose_b = true});
            }),
            "[matmul] b has shape [5, 4], expected 3 at dimension 1 for a of shape [2, 3]");
  EXPECT_EQ(argument_error([] {
              ops::matmul(zeros({2}), zeros({2, 2}));
            }),
            "[matmul] a has shape [2], expected 2 dimensions");
  EXPECT_EQ(argument_error([] {
              ops::dense(zeros({4, 3}), zeros({2, 5}));
            }),
            "[dense] kernel has shape [2, 5], expected [3, N] for x of shape [4, 3]");
  EXPECT_EQ(argument_error([] {
              ops::dense(zeros({4, 3}), zeros({3, 5}), zeros({3}));
            }),
            "[dense] bias has shape [3], expected [5]");
  EXPECT_EQ(argument_error([] {
              ops::dense(zeros({}), zeros({3, 5}));
            }),
            "[dense] x is a scalar, expected at least one dimension");
}

TEST(Errors, TwoThatBroadcastOfOneDtype) {
  using Operation = Tensor (*)(const Tensor&, const Tensor&);
  const std::pair<std::string, Operation> operations[] = {{"add", ops::add},
                                                          {"subtract", ops::subtract},
                                                          {"multiply", ops::multiply},
                                                          {"divide", ops::divide}};
  for (const auto& one : operations) {
    const auto& name = one.first;
    const Operation operation = one.second;
    EXPECT_EQ(argument_error([&] { operation(zeros({2}), zeros({3})); }),
              "[" + name + "] b has shape [3], expected one that broadcasts with [2] of a");
    EXPECT_EQ(argument_error([&] { operation(zeros({2}), zeros({2}, DType::kFloat64)); }),
              "[" + name + "] b is float64, expected float32");
    EXPECT_EQ(argument_error([&] { operation(int_tensor({1}, {1}), int_tensor({1}, {1})); }),
              "[" + name + "] a is int32 of shape [1], expected a floating tensor");
  }
  EXPECT_EQ(argument_error([] {
              ops::select_rows({true}, zeros({1, 2}), zeros({1, 3}));
            }),
            "[select_rows] b has shape [1, 3], expected [1, 2] as a");
}

TEST(Errors, Elementwise) {
  EXPECT_EQ(argument_error([] { ops::tanh(Tensor()); }),
            "[tanh] x is empty, expected a floating tensor");
  EXPECT_EQ(argument_error([] {
              ops::relu(int_tensor({2}, {1, 2}));
            }),
            "[relu] x is int32 of shape [2], expected a floating tensor");
  EXPECT_EQ(argument_error([] {
              ops::clip(int_tensor({2}, {1, 2}), 0, 1);
            }),
            "[clip] x is int32 of shape [2], expected a floating tensor");
  EXPECT_EQ(argument_error([] { ops::cast(ops::add_scalar(zeros({1}), 3e9), DType::kInt32); }),
            "[cast] element 0 is 3e+09, expected one that int32 holds");
  EXPECT_EQ(argument_error([] { ops::dropout(zeros({1}), 1.5, {}); }),
            "[dropout] rate is 1.5, expected 0 to 1");
  EXPECT_EQ(argument_error([] { ops::dropout(zeros({1}), NAN, {}); }),
            "[dropout] rate is nan, expected 0 to 1");
  EXPECT_EQ(argument_error([] {
              ops::add_row(zeros({2, 3}), zeros({2}));
            }),
            "[add_row] row has shape [2], expected [3]");
  EXPECT_EQ(argument_error([] { ops::add_n({}); }), "[add_n] no terms, expected at least one");
}

TEST(Errors, Shapes) {
  EXPECT_EQ(argument_error([] {
              ops::reshape(zeros({2, 3}), {4});
            }),
            "[reshape] shape is [4], expected 6 elements as in [2, 3]");
  EXPECT_EQ(argument_error([] {
              ops::reshape(zeros({2, 3}), {-1, -1});
            }),
            "[reshape] shape is [-1, -1], expected 6 elements as in [2, 3]");
  EXPECT_EQ(argument_error([] {
              ops::reshape(zeros({2, 3}), {4, -1});
            }),
            "[reshape] shape is [4, -1], expected 6 elements as in [2, 3]");
  EXPECT_EQ(argument_error([] {
              ops::concat({zeros({2, 3}), zeros({2, 4})}, 0);
            }),
            "[concat] parts[1] has shape [2, 4], expected [2, 3] but for dimension 0");
  EXPECT_EQ(argument_error([] {
              ops::concat({zeros({2, 3}), zeros({2})}, 1);
            }),
            "[concat] parts[1] has shape [2], expected [2, 3] but for dimension 1");
  EXPECT_EQ(argument_error([] {
              ops::concat({zeros({2, 3})}, 2);
            }),
            "[concat] axis is 2, expected -2 to 1");
  EXPECT_EQ(argument_error([] {
              ops::split(zeros({2, 3}), 1, {2, 2});
            }),
            "[split] sizes are [2, 2], expected a sum of 3");
  EXPECT_EQ(argument_error([] {
              ops::slice(zeros({2, 3}), {.axis = 1, .begin = 2, .size = 2});
            }),
            "[slice] begin is 2 and size 2, expected a range within 0 to 3");
}

// A negative size is none, also where it makes a sum or an end right.
TEST(Errors, NegativeSizes) {
  const std::vector<std::int64_t> sums_to_3[] = {{-1, 4}, {4, -1}, {2, 2, -1}};
  for (const Tensor& x : {zeros({2, 3}), Input({2, 3})}) {
    EXPECT_EQ(argument_error([&] { ops::slice(x, {.axis = 1, .begin = 2, .size = -1}); }),
              "[slice] begin is 2 and size -1, expected a range within 0 to 3");
    EXPECT_EQ(argument_error([&] { ops::slice(x, {.axis = 1, .begin = -1, .size = 1}); }),
              "[slice] begin is -1 and size 1, expected a range within 0 to 3");
    for (const std::vector<std::int64_t>& sizes : sums_to_3) {
      EXPECT_EQ(argument_error([&] { ops::split(x, 1, sizes); }),
                "[split] sizes are " + to_string(sizes) + ", expected a sum of 3");
    }
  }
  const Tensor open = Input({2, -1});
  EXPECT_THROW(ops::slice(open, {.axis = 1, .begin = 2, .size = -1}), ArgumentError);
  for (const std::vector<std::int64_t>& sizes : sums_to_3) {
    EXPECT_THROW(ops::split(open, 1, sizes), ArgumentError);
  }
}

TEST(Errors, PartsOfIntegers) {
  for (const Tensor& x : {zeros({2, 3}, DType::kInt32), Input({2, 3}, DType::kInt32)}) {
    const std::string given = " x is int32 of shape [2, 3], expected a floating tensor";
    EXPECT_EQ(argument_error([&] { ops::split(x, 1, {1, 2}); }), "[split]" + given);
    EXPECT_EQ(argument_error([&] { ops::slice(x, {.axis = 1, .begin = 0, .size = 1}); }),
              "[slice]" + given);
  }
}

TEST(Errors, BoundsThatAreInNoOrder) {
  for (const Tensor& x : {zeros({2}), Input({2})}) {
    for (const auto& [low, high] :
         {std::pair(1.0, 0.5), std::pair(1.0, double(NAN)), std::pair(double(NAN), 1.0)}) {
      EXPECT_THROW(ops::clip(x, low, high), ArgumentError) << low << " " << high;
    }
    EXPECT_EQ(argument_error([&] { ops::clip(x, 1.0, 0.5); }),
              "[clip] low is 1 and high 0.5, expected low at most high");
    EXPECT_NO_THROW(ops::clip(x, 0.5, 0.5));
  }
}

// Indices of rows are 32 bits.
TEST(Errors, MoreRowsThanIndicesReach) {
  constexpr std::int64_t kTime = std::int64_t{1} << 40, kBatch = std::int64_t{1} << 20;
  EXPECT_EQ(argument_error([] {
              ops::reverse_sequence(zeros({kTime, kBatch, 0}), {});
            }),
            "[reverse_sequence] x has 1099511627776 times 1048576 rows, expected at most "
            "2147483647");
  EXPECT_EQ(argument_error([] {
              ops::reverse_sequence(zeros({kBatch, kTime, 0}), {}, false);
            }),
            "[reverse_sequence] x has 1099511627776 times 1048576 rows, expected at most "
            "2147483647");
  EXPECT_EQ(ops::reverse_sequence(zeros({0, kBatch, 0}), {}).shape(), (Shape{0, kBatch, 0}));
}

// What a recorded call would only say when it runs is said at once.
TEST(Errors, OfSymbolicTensors) {
  const Tensor x = Input({3, 4}), wide = Input({3, 4}, DType::kFloat64);
  EXPECT_EQ(argument_error([&] { ops::slice(x, {.axis = 0, .begin = 2, .size = 2}); }),
            "[slice] begin is 2 and size 2, expected a range within 0 to 3");
  EXPECT_EQ(argument_error([&] {
              ops::dense(x, Input({4, 5}), Input({4}));
            }),
            "[dense] bias is float32 of shape [4], expected [5]");
  EXPECT_EQ(argument_error([&] {
              ops::dense(x, Input({4, 5}), Input({5}, DType::kFloat64));
            }),
            "[dense] bias is float64 of shape [5], expected [5]");
  EXPECT_EQ(argument_error([&] {
              ops::dense(x, Input({4, 5}), Input({1, 5}));
            }),
            "[dense] bias is float32 of shape [1, 5], expected [5]");
  for (const Shape& shape : {Shape{0, -1}, Shape{-1, 0}}) {
    EXPECT_EQ(
        argument_error([&] {
          ops::reshape(Input({0, 3}), shape);
        }),
        "[reshape] x is float32 of shape [0, 3], expected as many elements as " + to_string(shape));
    EXPECT_THROW(ops::reshape(zeros({0, 3}), shape), ArgumentError);
  }
  using Compare = Tensor (*)(const Tensor&, const Tensor&);
  for (const Compare compare : {Compare(ops::equal), Compare(ops::less), Compare(ops::less_equal),
                                Compare(ops::not_equal)}) {
    EXPECT_NE(argument_error([&] { compare(x, wide); }).find("b is float64, expected float32"),
              std::string::npos);
  }
}

TEST(Errors, RowsAndLookups) {
  EXPECT_EQ(argument_error([] { ops::transpose_leading(zeros({2})); }),
            "[transpose_leading] x has shape [2], expected at least 2 dimensions");
  EXPECT_EQ(argument_error([] {
              ops::reverse_sequence(zeros({3, 2}), {1, 4});
            }),
            "[reverse_sequence] lengths[1] is 4, expected 0 to 3");
  EXPECT_EQ(argument_error([] {
              ops::reverse_sequence(zeros({3, 2}), {1});
            }),
            "[reverse_sequence] 1 lengths, expected 2, one a row");
  EXPECT_EQ(argument_error([] { ops::select_rows({true}, zeros({2}), zeros({2})); }),
            "[select_rows] a has shape [2], expected 1 rows, one a choice");
  EXPECT_EQ(argument_error([] {
              ops::embedding_lookup(zeros({3, 2}), int_tensor({3}, {0, 3, 1}));
            }),
            "[embedding_lookup] indices[1] is 3, expected at least 0 and below 3");
  EXPECT_EQ(argument_error([] {
              ops::embedding_lookup(zeros({3, 2}), int_tensor({1}, {-1}));
            }),
            "[embedding_lookup] indices[0] is -1, expected at least 0 and below 3");
  EXPECT_EQ(argument_error([] {
              ops::embedding_lookup(zeros({3, 2}), zeros({1}));
            }),
            "[embedding_lookup] indices is float32 of shape [1], expected an int32 tensor");
  EXPECT_EQ(argument_error([] { ops::one_hot(int_tensor({1}, {5}), 5, DType::kFloat32); }),
            "[one_hot] indices[0] is 5, expected below 5");
}

TEST(Errors, Losses) {
  EXPECT_EQ(argument_error([] {
              ops::softmax_cross_entropy(zeros({2, 3}), int_tensor({2}, {1, 3}));
            }),
            "[softmax_cross_entropy] labels[1] is 3, expected below 3");
  EXPECT_EQ(
      argument_error([] {
        ops::softmax_cross_entropy(zeros({2, 3}), int_tensor({3}, {1, 1, 1}));
      }),
      "[softmax_cross_entropy] labels has shape [3], expected [2] for logits of shape [2, 3]");
  EXPECT_EQ(argument_error([] {
              ops::softmax(zeros({2, 0}));
            }),
            "[softmax] logits has shape [2, 0], expected at least one class");
  EXPECT_EQ(argument_error([] {
              ops::mean_squared_error(zeros({2}), zeros({1, 2}));
            }),
            "[mean_squared_error] b has shape [1, 2], expected [2] as a");
}

}  // namespace
}  // namespace openrnn::testing
