// The order in which parts of a step are added.
#include "train/optimize/tree_sum.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "openrnn/train.h"
#include "support/expect_error.h"

namespace openrnn::train {
namespace {

const Device& tested() { return default_device(); }

DeviceArray one(float value) {
  return DeviceArray::from_host(tested(), Array::of<float>({1}, {{value}}).view());
}

float value_of(const PartValues& values) { return values.at(0).to_host().as<float>()[0]; }

float sum_of(const std::vector<float>& leaves) {
  TreeSum sum;
  for (const float leaf : leaves) {
    PartValues values;
    values.push_back(one(leaf));
    sum.add(std::move(values));
  }
  return value_of(sum.take());
}

/// Values whose sum depends on the order: each has bits that the larger ones round away.
const std::vector<float> kLeaves{1.0e8F, 3.0F, -1.0e8F, 5.0F, 7.5e7F, 1.25F, -3.0e7F, 9.0F, 2.5F};

TEST(TreeSum, AddsPairsAndPairsOfPairs) {
  const std::vector<float>& x = kLeaves;
  const std::vector<float> by_hand{
      x[0],
      x[0] + x[1],
      (x[0] + x[1]) + x[2],
      (x[0] + x[1]) + (x[2] + x[3]),
      ((x[0] + x[1]) + (x[2] + x[3])) + x[4],
      ((x[0] + x[1]) + (x[2] + x[3])) + (x[4] + x[5]),
      ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + x[6]),
      ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7])),
      (((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]))) + x[8]};
  float chain = x[0];
  bool order_matters = false;
  for (std::size_t n = 1; n <= x.size(); ++n) {
    EXPECT_EQ(sum_of({x.begin(), x.begin() + static_cast<std::ptrdiff_t>(n)}), by_hand[n - 1]) << n;
    if (n > 1) chain += x[n - 1];
    order_matters = order_matters || chain != by_hand[n - 1];
  }
  EXPECT_TRUE(order_matters);
}

TEST(TreeSum, BlocksOfAPowerOfTwoAddToTheSameBits) {
  RandomStream random(5);
  for (std::size_t leaves = 1; leaves <= 24; ++leaves) {
    std::vector<float> x(leaves);
    for (float& each : x) each = static_cast<float>(random.normal() * 1e4 * random.uniform());
    for (std::size_t block = 1; block <= 8; block *= 2) {
      if (leaves % block != 0) continue;
      std::vector<float> sums;
      for (std::size_t first = 0; first < leaves; first += block) {
        const auto begin = x.begin() + static_cast<std::ptrdiff_t>(first);
        sums.push_back(sum_of({begin, begin + static_cast<std::ptrdiff_t>(block)}));
      }
      EXPECT_EQ(sum_of(sums), sum_of(x)) << leaves << " in blocks of " << block;
    }
  }
}

TEST(TreeSum, LeavesOfNothingAddNothing) {
  for (const std::vector<bool>& given :
       {std::vector<bool>{false, true}, {true, false}, {false, false, true}, {false, true, true}}) {
    TreeSum sum;
    float expected = 0.0F, next = 1.5F;
    for (const bool is : given) {
      PartValues values;
      if (is) values.push_back(one(next)), expected += next;
      next *= 2.5F;
      sum.add(std::move(values));
    }
    EXPECT_EQ(value_of(sum.take()), expected);
  }
}

TEST(TreeSum, LeavesThatAreMissingAreLeftOut) {
  // Of leaves 0 to 6, 1, 2, 3 and 5 are missing, and an array of leaf 4.
  TreeSum sum;
  const auto add = [&](std::optional<float> a, std::optional<float> b) {
    PartValues values;
    values.push_back(a ? one(*a) : DeviceArray());
    values.push_back(b ? one(*b) : DeviceArray());
    sum.add(std::move(values));
  };
  add(-0.0F, {});
  sum.add({});
  sum.add({});
  sum.add({});
  add({}, 4.0F);
  sum.add({});
  add(-0.0F, 6.0F);
  const PartValues all = sum.take();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_TRUE(std::signbit(value_of(all))) << "nothing is added to it, not even 0";
  EXPECT_EQ(all[1].to_host().as<float>()[0], 10.0F);
  EXPECT_TRUE(sum.take().empty()) << "it begins anew";
}

TEST(TreeSum, HasWhatALeafHas) {
  TreeSum sum;
  for (int leaf = 0; leaf < 3; ++leaf) {
    PartValues values;
    values.push_back(one(1.0F));
    values.emplace_back();
    sum.add(std::move(values));
    EXPECT_TRUE(sum.has(0));
    EXPECT_FALSE(sum.has(1)) << "no leaf has it";
    EXPECT_FALSE(sum.has(2)) << "beyond them";
  }
  PartValues last(2);
  last[1] = one(1.0F);
  sum.add(std::move(last));
  EXPECT_TRUE(sum.has(0) && sum.has(1));
}

// Of sums that are not yet one, any may have it.
TEST(TreeSum, HasWhatOneOfItsSumsHas) {
  const auto leaf = [](bool first) {
    PartValues values(2);
    values[first ? 0 : 1] = one(first ? 3.0F : 5.0F);
    return values;
  };
  for (const bool newest : {false, true}) {
    TreeSum sum;
    sum.add(leaf(!newest));
    sum.add(leaf(!newest));
    sum.add(leaf(newest));
    ASSERT_EQ(sum.kept(), 2U);
    EXPECT_TRUE(sum.has(0) && sum.has(1)) << newest;
    std::vector<float> last{1.0F, 1.0F, 1.0F};
    // Where the newest sum has nothing, those before it are added all the same.
    if (!default_device().engine()) {
      sum.add_to_last(0, 0, 1, &last[0], Adding::kAlone);
      sum.add_to_last(1, 0, 1, &last[1], Adding::kAlone);
      sum.add_to_last(2, 0, 1, &last[2], Adding::kAlone);
      EXPECT_EQ(last, (newest ? std::vector{4.0F, 11.0F, 1.0F} : std::vector{7.0F, 6.0F, 1.0F}));
    }
  }
}

TEST(TreeSum, KeepsAsManySumsAsTheLogarithm) {
  TreeSum sum;
  for (unsigned leaf = 1; leaf <= 64; ++leaf) {
    PartValues values;
    values.push_back(one(1.0F));
    sum.add(std::move(values));
    EXPECT_EQ(sum.kept(), static_cast<std::size_t>(std::popcount(leaf)));
  }
  EXPECT_EQ(value_of(sum.take()), 64.0F);
}

TEST(TreeSum, AddsIntoMemoryOfItsOwn) {
  const DeviceArray a = one(1.0F), b = one(2.0F);
  TreeSum sum;
  sum.add({a});
  sum.add({b});
  EXPECT_EQ(value_of(sum.take()), 3.0F);
  EXPECT_EQ(value_of({a}), 1.0F);
  EXPECT_EQ(value_of({b}), 2.0F);
}

TEST(TreeSum, RefusesPartsThatDiffer) {
  const auto add = [](const PartValues& right) {
    return [&right] {
      TreeSum sum;
      sum.add({one(1.0F)});
      sum.add(right);
    };
  };
  const PartValues two{one(1.0F), one(2.0F)};
  expect_error<ArgumentError>(add(two), "[TreeSum] 2 arrays, expected 1");
  const PartValues longer{DeviceArray(tested(), DType::kFloat32, {2})};
  expect_error<ArgumentError>(add(longer),
                              "[TreeSum] float32 of 2 elements, expected float32 of 1");
  const PartValues wide{DeviceArray(tested(), DType::kFloat64, {1})};
  expect_error<ArgumentError>(add(wide), "[TreeSum] float64 of 1 elements, expected float32 of 1");
}

TEST(RowsOfPart, AreEqualOrOneMoreAtFirst) {
  const auto sizes = [](std::int64_t rows, std::int64_t parts) {
    std::vector<std::int64_t> all;
    for (std::int64_t i = 0; i < parts; ++i) all.push_back(rows_of_part(rows, parts, i));
    return all;
  };
  using Sizes = std::vector<std::int64_t>;
  EXPECT_EQ(sizes(8, 4), (Sizes{2, 2, 2, 2}));
  EXPECT_EQ(sizes(7, 4), (Sizes{2, 2, 2, 1}));
  EXPECT_EQ(sizes(9, 4), (Sizes{3, 2, 2, 2}));
  EXPECT_EQ(sizes(3, 4), (Sizes{1, 1, 1, 0}));
  EXPECT_EQ(sizes(5, 1), (Sizes{5}));
}

/// var -= 1 * gradient of mean((x w)^2) over rows, whole or in parts.
struct Gradients {
  std::vector<DeviceArray> all;
  double loss;
};

Gradients gradients_of(Optimizer& optimizer, const Variable& w, const Tensor& x,
                       const std::vector<std::int64_t>& rows) {
  GradientSum sum;
  std::int64_t first = 0;
  const std::int64_t batch = x.shape()[0];
  for (const std::int64_t count : rows) {
    if (count == 0) {
      sum.skip();
      continue;
    }
    GradientTape tape;
    const Tensor y = ops::matmul(ops::slice(x, {0, first, count}), w.read());
    const Tensor loss = ops::reduce_mean(ops::square(y));
    tape.close();
    sum.add(optimizer, tape, loss, {w}, static_cast<double>(count) / static_cast<double>(batch));
    first += count;
  }
  GradientSum::Step step = sum.take();
  return {std::move(step.gradients), step.loss.item()};
}

TEST(GradientSum, IsThatOfTheWholeBatch) {
  for (const DType dtype : {DType::kFloat64, DType::kFloat32, DType::kFloat16}) {
    Graph graph;
    const Graph::AsDefault current(graph);
    RandomStream random(7);
    const auto draw = [&](const Shape& shape) {
      Array values(DType::kFloat64, shape);
      for (double& v : values.as<double>()) v = random.uniform(-1.0, 1.0);
      return cast(values.view(), dtype);
    };
    const Variable w("w", draw({4, 2}));
    const Tensor x(draw({6, 4}).view());
    GradientDescentOptimizer optimizer(1.0);
    const Gradients whole = gradients_of(optimizer, w, x, {6});
    const double tolerance = dtype == DType::kFloat64   ? 1e-15
                             : dtype == DType::kFloat32 ? 1e-6
                                                        : 4e-3;
    for (const std::vector<std::int64_t>& rows :
         std::vector<std::vector<std::int64_t>>{{3, 3}, {2, 2, 2}, {1, 1, 1, 1, 1, 1, 0, 0}}) {
      const Gradients parts = gradients_of(optimizer, w, x, rows);
      EXPECT_NEAR(parts.loss, whole.loss, tolerance * whole.loss);
      ASSERT_EQ(parts.all.at(0).dtype(), compute_dtype(dtype));
      const Array a = parts.all[0].to_host(), b = whole.all[0].to_host();
      for (std::int64_t i = 0; i < a.size(); ++i) {
        EXPECT_NEAR(element(a.view(), i), element(b.view(), i), tolerance);
      }
    }
  }
}

TEST(GradientSum, PartsHaveTheRangeOfTheWholeBatch) {
  // d loss / dy of a part of one row is 6 times that of the batch: with the loss scale 2^15 it is
  // 65536, beyond float16, before the part's share.
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable w("w", cast(Array::of<float>({1, 1}, {{4.0F}}).view(), DType::kFloat16));
  Array values(DType::kFloat32, {6, 1});
  for (float& v : values.as<float>()) v = 0.25F;
  const Tensor x(cast(values.view(), DType::kFloat16).view());
  GradientDescentOptimizer optimizer(1.0);
  for (const std::vector<std::int64_t>& rows : {{6}, {3, 3}, std::vector<std::int64_t>(6, 1)}) {
    const Gradients found = gradients_of(optimizer, w, x, rows);
    EXPECT_EQ(optimizer.loss_scale(), 32768.0);
    EXPECT_NEAR(found.all.at(0).to_host().as<float>()[0], 0.5F, 1e-3F) << rows.size() << " parts";
  }
}

// A float16 rounds the loss scale times such a share: what was given is taken off again.
TEST(GradientSum, ASharesRoundingIsInNoGradient) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable w("w", cast(Array::of<float>({}, {{2.0F}}).view(), DType::kFloat16));
  GradientDescentOptimizer optimizer(1.0);
  for (const double share : {1.0 / 3.0, 1.0 / 7.0, 0.3, 5.0 / 11.0}) {
    GradientTape tape;
    const Tensor loss = ops::scale(w.read(), 1.0);
    tape.close();
    ASSERT_EQ(loss.dtype(), DType::kFloat16);
    GradientSum sum;
    sum.add(optimizer, tape, loss, {w}, share);
    const GradientSum::Step step = sum.take();
    EXPECT_NEAR(step.gradients.at(0).to_host().as<float>()[0] / share, 1.0, 2e-7) << share;
    EXPECT_NEAR(step.loss.item() / share, 2.0, 1e-12) << share;
  }
}

TEST(GradientSum, RefusesWhatIsNoLossAndNoPart) {
  Graph graph;
  const Graph::AsDefault current(graph);
  const Variable w("w", Array(DType::kFloat32, {2}));
  GradientDescentOptimizer optimizer(1.0);
  GradientSum sum;
  GradientTape tape;
  const Tensor loss = ops::square(w.read());
  tape.close();
  expect_error<ArgumentError>([&] { sum.add(optimizer, tape, loss, {w}, 1.0); },
                              "[GradientSum] a loss of shape [2], expected one number, the mean "
                              "over the part's rows");
  sum.skip();
  expect_error<ArgumentError>([&] { sum.take(); }, "[GradientSum] no part, expected one");
}

}  // namespace
}  // namespace openrnn::train
