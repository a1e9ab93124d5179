#include "ops/check_gradient.h"

namespace openrnn::testing {
namespace {

Tensor counting(const Shape& shape) {
  Array values(DType::kFloat64, shape);
  double next = 0;
  for (double& value : values.as<double>()) value = next++;
  return Tensor(values.view());
}

using Values = std::vector<double>;

TEST(Values, ConcatSplitSliceStack) {
  const Tensor a = counting({2, 2}), b = counting({2, 1});
  EXPECT_EQ(values_of(ops::concat({a, b}, 1)), (Values{0, 1, 0, 2, 3, 1}));
  EXPECT_EQ(values_of(ops::concat({a, a}, -2)), (Values{0, 1, 2, 3, 0, 1, 2, 3}));
  const auto parts = ops::split(counting({2, 3}), 1, {2, 1});
  EXPECT_EQ(values_of(parts[0]), (Values{0, 1, 3, 4}));
  EXPECT_EQ(values_of(parts[1]), (Values{2, 5}));
  EXPECT_EQ(values_of(ops::slice(counting({3, 2}), {.axis = 0, .begin = 1, .size = 2})),
            (Values{2, 3, 4, 5}));
  EXPECT_EQ(ops::slice(a, {.axis = 1, .begin = 2, .size = 0}).shape(), (Shape{2, 0}));
  EXPECT_EQ(ops::stack({b, b, b}).shape(), (Shape{3, 2, 1}));
  EXPECT_EQ(ops::unstack(counting({3, 2}))[2].shape(), (Shape{2}));
  EXPECT_EQ(values_of(ops::unstack(counting({3, 2}))[2]), (Values{4, 5}));
  EXPECT_TRUE(ops::unstack(counting({0, 3})).empty());
}

TEST(Values, ReshapeAndTranspose) {
  EXPECT_EQ(ops::reshape(counting({2, 3}), {-1}).shape(), (Shape{6}));
  EXPECT_EQ(ops::reshape(counting({2, 3}), {3, -1, 1}).shape(), (Shape{3, 2, 1}));
  EXPECT_EQ(ops::reshape(counting({0, 3}), {0}).shape(), (Shape{0}));
  EXPECT_EQ(values_of(ops::transpose_leading(counting({2, 3}))), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(ops::transpose_leading(counting({2, 0, 4})).shape(), (Shape{0, 2, 4}));
}

TEST(Values, ReverseSequence) {
  EXPECT_EQ(values_of(ops::reverse_sequence(counting({3, 2}), {2, 0})), (Values{2, 1, 0, 3, 4, 5}));
  EXPECT_EQ(values_of(ops::reverse_sequence(counting({2, 3}), {2, 3}, false)),
            (Values{1, 0, 2, 5, 4, 3}));
  EXPECT_EQ(values_of(ops::reverse_sequence(counting({3, 1}), {})), (Values{2, 1, 0}));
}

TEST(Values, SelectRowsDoesNotReadTheOther) {
  const Tensor nan = ops::scale(counting({2, 2}), NAN);
  EXPECT_EQ(values_of(ops::select_rows({true, true}, counting({2, 2}), nan)), (Values{0, 1, 2, 3}));
  EXPECT_EQ(values_of(ops::select_rows({false, true}, counting({2, 2}), counting({2, 2}))),
            (Values{0, 1, 2, 3}));
}

TEST(Values, ReluHandsNanOn) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    Array values(DType::kFloat64, {37});
    for (std::size_t i = 0; i < 37; ++i) values.as<double>()[i] = i % 3 == 0 ? NAN : i % 2 ? 2 : -2;
    const Values y = values_of(ops::relu(Tensor(cast(values.view(), dtype).view())));
    for (std::size_t i = 0; i < 37; ++i) {
      EXPECT_EQ(std::isnan(y[i]), i % 3 == 0) << i;
      if (i % 3 != 0) {
        EXPECT_EQ(y[i], i % 2 ? 2.0 : 0.0) << i;
      }
    }
  }
}

// A row's time is its number divided by 2^20, so that no mask comes twice.
TEST(Values, DropoutOfMoreThanAMillionRows) {
  constexpr std::int64_t kRows = (std::int64_t{1} << 20) + 4, kCols = 8;
  const Tensor ones(DeviceArray::zeros(default_device(), DType::kFloat32, {kRows, kCols}));
  const DropoutKey key{3, 5};
  const Array y = ops::dropout(ops::add_scalar(ones, 1.0), 0.5, key).to_host();
  const auto row = [&](std::int64_t r) {
    const auto from = y.as<float>().begin() + r * kCols;
    return std::vector<float>(from, from + kCols);
  };
  int repeated = 0;
  for (const std::int64_t r : {0, 1, 2, 3}) {
    for (const std::int64_t at : {r, 0x10000 + r, (1 << 20) - 4 + r, kRows - 4 + r}) {
      std::vector<float> mask(kCols);
      dropout_mask<float>(key,
                          {.layer = 0xFFFFFFFFu,
                           .time = static_cast<std::uint32_t>(at >> 20),
                           .row = static_cast<std::uint32_t>(at & ((1 << 20) - 1))},
                          0.5, mask);
      EXPECT_EQ(row(at), mask) << at;
    }
    repeated += row(r) == row(kRows - 4 + r);
  }
  EXPECT_LT(repeated, 4);
}

TEST(Values, LookupAndOneHot) {
  const Tensor indices = int_tensor({2, 2}, {1, 0, 2, 1});
  const Tensor rows = ops::embedding_lookup(counting({3, 2}), indices);
  EXPECT_EQ(rows.shape(), (Shape{2, 2, 2}));
  EXPECT_EQ(values_of(rows), (Values{2, 3, 0, 1, 4, 5, 2, 3}));
  EXPECT_EQ(values_of(ops::one_hot(int_tensor({3}, {1, -4, 0}), 2, DType::kFloat16)),
            (Values{0, 1, 0, 0, 1, 0}));
}

void expect_sums_in_float32(DType dtype) {
  const Tensor x = random_tensor({1000}, 1, 50, 100, dtype);
  double sum = 0;
  for (const double value : values_of(x)) sum += value;
  const Tensor total = ops::reduce_sum(x);
  EXPECT_EQ(total.dtype(), DType::kFloat32);
  EXPECT_EQ(total.item(), static_cast<float>(sum));
  EXPECT_EQ(ops::reduce_mean(x).item(), static_cast<float>(sum * (1.0 / 1000)));
  EXPECT_EQ(ops::reduce_mean(counting({0})).item(), 0.0);
  // 300 squared is above the largest float16, and no bfloat16.
  const Tensor far = ops::add_scalar(ops::scale(x, 0.0), 300.0);
  EXPECT_EQ(ops::mean_squared_error(far, ops::scale(x, 0.0)).item(), 90000.0);
}

TEST(Values, SumsOf16BitsAreFloat32) {
  expect_sums_in_float32(DType::kFloat16);
  expect_sums_in_float32(DType::kBfloat16);
}

TEST(Values, Regularization) {
  const Tensor x = ops::add_scalar(counting({4}), -1.0);
  EXPECT_DOUBLE_EQ(ops::l1_regularization(x, 0.5).item(), 2.0);
  EXPECT_DOUBLE_EQ(ops::l2_regularization(x, 0.5).item(), 1.5);
}

TEST(Values, CrossEntropyOfCountedRows) {
  const Tensor logits = random_tensor({4, 3}, 1);
  const Tensor labels = int_tensor({4}, {2, -1, 0, 1});
  const Values rows = values_of(ops::softmax_cross_entropy_rows(logits, labels));
  EXPECT_EQ(rows[1], 0.0);
  EXPECT_NEAR(ops::softmax_cross_entropy(logits, labels).item(), (rows[0] + rows[2] + rows[3]) / 3,
              1e-15);
  EXPECT_EQ(ops::softmax_cross_entropy(logits, int_tensor({4}, {-1, -1, -1, -1})).item(), 0.0);
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16}) {
    const Tensor narrow = ops::cast(logits, dtype);
    EXPECT_EQ(ops::softmax_cross_entropy(narrow, labels).dtype(), DType::kFloat32);
    EXPECT_EQ(ops::softmax(narrow).dtype(), dtype);
  }
}

TEST(Values, SoftmaxAddsUpToOne) {
  const Values p = values_of(ops::softmax(random_tensor({5, 7}, 1, -9, 9)));
  for (std::size_t r = 0; r < 5; ++r) {
    double sum = 0;
    for (std::size_t c = 0; c < 7; ++c) sum += p[r * 7 + c];
    EXPECT_NEAR(sum, 1.0, 1e-15);
  }
}

TEST(Values, EmptyBatch) {
  const Tensor x = counting({0, 3});
  EXPECT_EQ(ops::dense(x, counting({3, 2}), counting({2})).shape(), (Shape{0, 2}));
  GradientTape tape;
  const Tensor kernel = tape.watch(counting({3, 2}));
  const auto gradient = tape.gradient(ops::reduce_sum(ops::dense(x, kernel)), std::vector{kernel});
  EXPECT_EQ(values_of(gradient[0]), Values(6, 0.0));
}

// Gradients in 16 bits are of 16 bits, close to those of float64.
void expect_narrow_gradients(DType narrow, double half_unit) {
  const Tensor x64 = ops::cast(random_tensor({6, 5}, 1, -1, 1, narrow), DType::kFloat64);
  const Tensor k64 = ops::cast(random_tensor({5, 4}, 2, -1, 1, narrow), DType::kFloat64);
  const Tensor labels = int_tensor({6}, {0, 3, 1, -1, 2, 2});
  const auto gradients = [&](DType dtype) {
    GradientTape tape;
    const Tensor x = tape.watch(ops::cast(x64, dtype)), k = tape.watch(ops::cast(k64, dtype));
    const Tensor hidden = ops::tanh(ops::dense(x, k));
    const Tensor loss = ops::softmax_cross_entropy(hidden, labels);
    return tape.gradient(loss, std::vector{x, k});
  };
  const auto half = gradients(narrow), wide = gradients(DType::kFloat64);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(half[i].dtype(), narrow);
    const Values a = values_of(half[i]), b = values_of(wide[i]);
    // Six roundings on the way, of values below 1.
    for (std::size_t k = 0; k < a.size(); ++k) EXPECT_NEAR(a[k], b[k], 6 * half_unit);
  }
}

TEST(Values, GradientsOf16Bits) {
  expect_narrow_gradients(DType::kFloat16, 0x1p-11);
  expect_narrow_gradients(DType::kBfloat16, 0x1p-8);
}

}  // namespace
}  // namespace openrnn::testing
