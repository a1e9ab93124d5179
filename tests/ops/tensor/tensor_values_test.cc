#include <limits>

#include "ops/check_gradient.h"

namespace openrnn::testing {
namespace {

using Values = std::vector<double>;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Tensor of(const Shape& shape, const Values& values, DType dtype = DType::kFloat64) {
  return Tensor(openrnn::cast(Array::of<double>(shape, values).view(), dtype).view());
}

std::vector<bool> truths(const Tensor& tensor) {
  EXPECT_EQ(tensor.dtype(), DType::kBool);
  const Array host = tensor.to_host();
  return {host.as<bool>().begin(), host.as<bool>().end()};
}

TEST(TensorValues, Broadcasting) {
  EXPECT_EQ(values_of(ops::add(of({2, 1}, {10, 20}), of({3}, {1, 2, 3}))),
            (Values{11, 12, 13, 21, 22, 23}));
  EXPECT_EQ(ops::multiply(of({2, 1, 1}, {1, 2}), of({3, 1}, {1, 2, 3})).shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(ops::divide(of({0, 3}, {}), of({}, {2})).shape(), (Shape{0, 3}));
  EXPECT_EQ(values_of(ops::sum_to(of({2, 3}, {1, 2, 3, 4, 5, 6}), {3})), (Values{5, 7, 9}));
  EXPECT_EQ(values_of(ops::sum_to(of({2, 3}, {1, 2, 3, 4, 5, 6}), {2, 1})), (Values{6, 15}));
  EXPECT_EQ(message_of<ArgumentError>([] {
              ops::add(of({2}, {1, 2}), of({3}, {1, 2, 3}));
            }),
            "[add] b has shape [3], expected one that broadcasts with [2] of a");
  EXPECT_EQ(message_of<ArgumentError>([] {
              ops::broadcast_to(of({2}, {1, 2}), {2, 3});
            }),
            "[broadcast_to] x has shape [2], expected one that broadcasts to [2, 3]");
}

// The bits of a sum do not depend on which of the two ways a bias is added.
TEST(TensorValues, ARowHasTheGradientOfAddRow) {
  const Tensor x = random_tensor({1031, 17}, 1, -1, 1, DType::kFloat32),
               row = random_tensor({17}, 2, -1, 1, DType::kFloat32);
  const auto gradient = [&](Tensor (*op)(const Tensor&, const Tensor&)) {
    GradientTape tape;
    const Tensor watched = tape.watch(row);
    const Tensor y = op(x, watched);
    return values_of(tape.gradient(ops::reduce_sum(ops::square(y)), std::vector{watched})[0]);
  };
  EXPECT_EQ(gradient(ops::add), gradient(ops::add_row));
}

TEST(TensorValues, MaximaPowersAndComparisons) {
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    const Tensor a = of({4}, {1, kNan, 3, -2}, dtype), b = of({4}, {2, 5, kNan, -2}, dtype);
    const Values larger = values_of(ops::maximum(a, b)), smaller = values_of(ops::minimum(a, b));
    EXPECT_EQ(larger[0], 2);
    EXPECT_EQ(smaller[0], 1);
    EXPECT_TRUE(std::isnan(larger[1]) && std::isnan(larger[2]));
    EXPECT_TRUE(std::isnan(smaller[1]) && std::isnan(smaller[2]));
    EXPECT_EQ(truths(ops::less(a, b)), (std::vector<bool>{true, false, false, false}));
    EXPECT_EQ(truths(ops::greater_equal(a, b)), (std::vector<bool>{false, false, false, true}));
    EXPECT_EQ(truths(ops::not_equal(a, b)), (std::vector<bool>{true, true, true, false}));
    EXPECT_EQ(values_of(ops::power(of({3}, {-2, 4, 0}, dtype), of({3}, {3, 0.5, -1}, dtype))),
              (Values{-8, 2, HUGE_VAL}));
    EXPECT_EQ(values_of(ops::where(ops::less(a, b), a, of({}, {9}, dtype)))[1], 9);
  }
  EXPECT_EQ(truths(ops::equal(int_tensor({2, 1}, {1, 2}), int_tensor({2}, {2, 1}))),
            (std::vector<bool>{false, true, true, false}));
  EXPECT_EQ(
      truths(ops::logical_or(ops::logical_not(int_tensor({2}, {0, 7})), int_tensor({2}, {0, 0}))),
      (std::vector<bool>{true, false}));
}

template <class T>
void expect_near_in_ulp(double given, long double wanted, double ulp) {
  const auto size = static_cast<T>(std::abs(wanted));
  const T step = std::nextafter(size, std::numeric_limits<T>::max()) - size;
  ASSERT_LE(std::abs(static_cast<long double>(given) - wanted),
            ulp * static_cast<long double>(step))
      << given << " " << static_cast<double>(wanted);
}

// The errors that the header states, over samples of all magnitudes.
TEST(TensorValues, LogSoftplusAndPowerWithinTwoUlp) {
  RandomStream random(5);
  Values x, y, z;
  for (int i = 0; i < 20000; ++i) {
    x.push_back(
        std::ldexp(random.uniform(1.0, 2.0), static_cast<int>(random.uniform(-1000, 1000))));
    if (i % 2) x.back() = random.uniform(0.5, 2.0);
    const double most = 700 / std::abs(std::log(x.back()));
    y.push_back(random.uniform(-most, most));
    z.push_back(random.uniform(-40, 40));
  }
  const Shape shape{20000};
  const Values logs = values_of(ops::log(of(shape, x))),
               plus = values_of(ops::softplus(of(shape, z))),
               powers = values_of(ops::power(of(shape, x), of(shape, y)));
  for (std::size_t i = 0; i < x.size(); ++i) {
    expect_near_in_ulp<double>(logs[i], std::log(static_cast<long double>(x[i])), 2.0);
    expect_near_in_ulp<double>(plus[i], std::log1p(std::exp(static_cast<long double>(z[i]))), 2.0);
    expect_near_in_ulp<double>(powers[i], std::pow(static_cast<long double>(x[i]), y[i]), 2.0);
  }
  const Tensor narrow = of({3}, {0.3, 1.0, 1e30}, DType::kFloat32);
  const Values single = values_of(ops::log(narrow)), given = values_of(narrow);
  for (std::size_t i = 0; i < 3; ++i) expect_near_in_ulp<float>(single[i], std::log(given[i]), 1.0);
  const Values edges = values_of(ops::log(of({4}, {0, -1, HUGE_VAL, kNan})));
  EXPECT_EQ(edges[0], -HUGE_VAL);
  EXPECT_TRUE(std::isnan(edges[1]) && std::isnan(edges[3]));
  EXPECT_EQ(edges[2], HUGE_VAL);
}

// pow of IEEE 754, whatever its arguments.
TEST(TensorValues, PowersOfSpecialNumbers) {
  const Values all{0.0, -0.0, 1.0,   -1.0,   2.0,      -2.0,      0.5,  -0.5,
                   3.0, -3.0, 1e300, -1e300, HUGE_VAL, -HUGE_VAL, kNan, 2.5};
  for (const double a : all) {
    for (const double b : all) {
      const double given = ops::power(of({}, {a}), of({}, {b})).item(), wanted = std::pow(a, b);
      if (std::isnan(wanted)) {
        EXPECT_TRUE(std::isnan(given)) << a << " " << b << " " << given;
      } else {
        EXPECT_EQ(std::signbit(given), std::signbit(wanted)) << a << " " << b;
        EXPECT_DOUBLE_EQ(given, wanted) << a << " " << b;
      }
    }
  }
}

TEST(TensorValues, Reductions) {
  const Tensor x = of({2, 3}, {1, 5, 2, 7, 0, 4});
  EXPECT_EQ(values_of(ops::reduce_sum(x, {.axes = {{0}}})), (Values{8, 5, 6}));
  EXPECT_EQ(values_of(ops::reduce_mean(x, {.axes = {{-1}}})),
            (Values{8 * (1.0 / 3), 11 * (1.0 / 3)}));
  EXPECT_EQ(values_of(ops::reduce_max(x, {.axes = {{1}}})), (Values{5, 7}));
  EXPECT_EQ(values_of(ops::reduce_min(x)), (Values{0}));
  EXPECT_EQ(ops::reduce_min(x, {.keepdims = true}).shape(), (Shape{1, 1}));
  EXPECT_EQ(values_of(ops::reduce_variance(of({4}, {1, 2, 3, 4}))), (Values{1.25}));
  const Array places = ops::argmax(x, 1).to_host();
  EXPECT_EQ(places.as<std::int32_t>()[0], 1);
  EXPECT_EQ(places.as<std::int32_t>()[1], 0);
  EXPECT_TRUE(std::isnan(values_of(ops::reduce_max(of({3}, {1, kNan, 3})))[0]));
  EXPECT_EQ(values_of(ops::reduce_sum(of({0, 2}, {}), {.axes = {{0}}})), (Values{0, 0}));
  EXPECT_EQ(ops::reduce_max(of({0, 2}, {}), {.axes = {{1}}}).shape(), (Shape{0}));
  EXPECT_EQ(message_of<ArgumentError>([] {
              ops::reduce_max(of({0, 2}, {}), {.axes = {{0}}});
            }),
            "[reduce_max] x has shape [0, 2], expected at least one element for each result");
  EXPECT_EQ(message_of<ArgumentError>([&] {
              ops::reduce_sum(x, {.axes = {{0, -2}}});
            }),
            "[reduce_sum] axis is [0, -2], expected each axis once");
  EXPECT_EQ(values_of(ops::reduce_logsumexp(of({2}, {-HUGE_VAL, -HUGE_VAL})))[0], -HUGE_VAL);
  EXPECT_EQ(values_of(ops::reduce_logsumexp(of({2}, {1000, -HUGE_VAL})))[0], 1000);
  EXPECT_EQ(ops::reduce_sum(of({2, 2}, {1, 2, 3, 4}, DType::kFloat16), {.axes = {{0}}}).dtype(),
            DType::kFloat32);
}

// Of no element: a sum of 0, and no maximum, unless there is no result either.
TEST(TensorValues, ReductionsOfNothing) {
  const Tensor rows = of({0, 2}, {}), columns = of({2, 0}, {});
  EXPECT_EQ(values_of(ops::reduce_mean(rows, {.axes = {{0}}})), (Values{0, 0}));
  EXPECT_EQ(values_of(ops::reduce_mean(columns, {.axes = {{1}}})), (Values{0, 0}));
  EXPECT_EQ(ops::reduce_mean(rows).item(), 0);
  EXPECT_EQ(values_of(ops::reduce_variance(rows, {.axes = {{0}}})), (Values{0, 0}));
  EXPECT_EQ(values_of(ops::reduce_logsumexp(columns, {.axes = {{1}}})),
            (Values{-HUGE_VAL, -HUGE_VAL}));
  EXPECT_EQ(ops::reduce_logsumexp(rows).item(), -HUGE_VAL);
  EXPECT_EQ(ops::log_softmax(columns, 1).shape(), (Shape{2, 0}));
  EXPECT_EQ(ops::log_softmax(columns, 0).shape(), (Shape{2, 0}));
  for (const auto reduce : {ops::reduce_max, ops::reduce_min}) {
    EXPECT_EQ(reduce(of({0, 0}, {}), {.axes = {{0}}}).shape(), (Shape{0}));
    EXPECT_EQ(reduce(of({0, 0}, {}), {.axes = {{1}}, .keepdims = true}).shape(), (Shape{0, 1}));
    EXPECT_THROW(reduce(of({0, 0}, {}), {}), ArgumentError);
    EXPECT_THROW(reduce(columns, {.axes = {{1}}}), ArgumentError);
  }
  // And the gradients of such results have the shapes of what they are of.
  GradientTape tape;
  const Tensor x = tape.watch(rows), y = tape.watch(of({3, 2}, {1, 2, 3, 4, 5, 6}));
  const Tensor sum = ops::add(ops::reduce_sum(ops::reduce_mean(x, {.axes = {{0}}})),
                              ops::reduce_sum(ops::strided_slice(y, {.axis = 0, .begin = 3})));
  const auto gradients = tape.gradient(sum, std::vector{x, y});
  EXPECT_EQ(gradients[0].shape(), (Shape{0, 2}));
  EXPECT_EQ(values_of(gradients[1]), Values(6, 0.0));
}

TEST(TensorValues, LogsumexpOfInfinities) {
  const auto sum = [](const Values& values) {
    return ops::reduce_logsumexp(of({static_cast<std::int64_t>(values.size())}, values)).item();
  };
  EXPECT_EQ(sum({HUGE_VAL, 1}), HUGE_VAL);
  EXPECT_EQ(sum({HUGE_VAL, HUGE_VAL}), HUGE_VAL);
  EXPECT_TRUE(std::isnan(sum({kNan, 1})));
  EXPECT_DOUBLE_EQ(sum({-HUGE_VAL, 2, 2}), 2 + std::log(2.0));
}

// The first of the best; a NaN is better than all.
TEST(TensorValues, PlacesOfTheBest) {
  const auto places = [](const Tensor& found) {
    const Array host = found.to_host();
    const auto values = host.as<std::int32_t>();
    return std::vector<std::int32_t>(values.begin(), values.end());
  };
  using Places = std::vector<std::int32_t>;
  for (const DType dtype : {DType::kFloat16, DType::kBfloat16, DType::kFloat32, DType::kFloat64}) {
    const Tensor x =
        of({4, 4}, {1, 7, 7, 1, 3, kNan, kNan, 9, 5, 2, kNan, 2, -1, -1, -2, -2}, dtype);
    EXPECT_EQ(places(ops::argmax(x, 1)), (Places{1, 1, 2, 0}));
    EXPECT_EQ(places(ops::argmin(x, 1)), (Places{0, 1, 2, 2}));
    EXPECT_EQ(places(ops::argmax(x, 0)), (Places{2, 1, 1, 1}));
    EXPECT_EQ(places(ops::argmin(x, -2)), (Places{3, 1, 1, 3}));
  }
  EXPECT_EQ(places(ops::argmax(int_tensor({5}, {2, 6, 6, -9, -9}), 0)), (Places{1}));
  EXPECT_EQ(places(ops::argmin(int_tensor({5}, {2, 6, 6, -9, -9}), 0)), (Places{3}));
}

template <class T>
std::vector<T> whole_numbers(const Tensor& tensor) {
  const Array host = tensor.to_host();
  const auto values = host.as<T>();
  return {values.begin(), values.end()};
}

// A fraction is cut off; what the dtype does not hold is refused.
TEST(TensorValues, CastsAtTheBoundsOfIntegers) {
  EXPECT_EQ(whole_numbers<std::int32_t>(
                ops::cast(of({3}, {2147483647.5, -2147483648.5, -0.5}), DType::kInt32)),
            (std::vector<std::int32_t>{2147483647, -2147483647 - 1, 0}));
  EXPECT_EQ(whole_numbers<std::uint8_t>(ops::cast(of({3}, {255.5, -0.5, 0}), DType::kUInt8)),
            (std::vector<std::uint8_t>{255, 0, 0}));
  EXPECT_EQ(
      whole_numbers<std::int64_t>(
          ops::cast(of({2}, {-0x1p63, 0x1.fffffffffffffp62}), DType::kInt64)),
      (std::vector<std::int64_t>{std::numeric_limits<std::int64_t>::min(), 9223372036854774784}));
  const std::pair<DType, Values> refused[] = {
      {DType::kInt32, {0x1p31, -0x1p31 - 1, kNan, HUGE_VAL}},
      {DType::kUInt8, {256, -1, kNan, -HUGE_VAL}},
      {DType::kInt64, {0x1p63, -0x1.0000000000001p63, kNan, HUGE_VAL}}};
  for (const auto& [dtype, values] : refused) {
    for (const double value : values) {
      EXPECT_THROW(ops::cast(of({1}, {value}), dtype), ArgumentError) << value;
    }
  }
  EXPECT_EQ(truths(ops::cast(of({4}, {0, -0.0, 0.25, kNan}), DType::kBool)),
            (std::vector<bool>{false, false, true, true}));
}

// Of an integer nothing is lost on the way, of which a double would hold the first 53 bits.
TEST(TensorValues, CastsBetweenIntegers) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const std::vector<std::int64_t> far{kMost, kMost - 1, -kMost - 1, (std::int64_t{1} << 53) + 1};
  const Tensor x(Array::of<std::int64_t>({4}, far).view());
  EXPECT_EQ(whole_numbers<std::int64_t>(ops::cast(x, DType::kInt64)), far);
  const auto one = [](std::int64_t value) {
    const std::vector<std::int64_t> values{0, value};
    return Tensor(Array::of<std::int64_t>({2}, values).view());
  };
  EXPECT_EQ(whole_numbers<std::int32_t>(ops::cast(one(-2147483648LL), DType::kInt32))[1],
            std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(message_of<ArgumentError>([&] { ops::cast(one(2147483648), DType::kInt32); }),
            "[cast] element 1 is 2147483648, expected one that int32 holds");
  EXPECT_THROW(ops::cast(one(-2147483649LL), DType::kInt32), ArgumentError);
  EXPECT_THROW(ops::cast(one(256), DType::kUInt8), ArgumentError);
  EXPECT_THROW(ops::cast(one(-1), DType::kUInt8), ArgumentError);
  EXPECT_EQ(whole_numbers<std::int64_t>(
                ops::cast(ops::cast(int_tensor({2}, {-7, 255}), DType::kInt64), DType::kInt64)),
            (std::vector<std::int64_t>{-7, 255}));
  EXPECT_EQ(whole_numbers<std::int32_t>(ops::cast(
                ops::equal(int_tensor({2}, {3, 4}), int_tensor({2}, {3, 5})), DType::kInt32)),
            (std::vector<std::int32_t>{1, 0}));
}

// Halfway between two numbers of the narrow dtype but for a last bit, which a double drops.
TEST(TensorValues, CastsWideIntegersWithOneRounding) {
  struct Case {
    DType dtype;
    int bits;
  };
  for (const auto& [dtype, bits] : {Case{DType::kFloat32, 24}, Case{DType::kBfloat16, 8}}) {
    const std::int64_t one = std::int64_t{1} << 62, half = one >> bits;
    const std::vector<std::int64_t> given{
        one + half + 1, one + half,         one + half - 1, -one - half - 1,
        -one - half,    one + 3 * half - 1, one + 3 * half, (one >> 8) + (half >> 8) + 1};
    const double base = 0x1p62, step = std::ldexp(1.0, 63 - bits);
    const Values expected{
        base + step,        base, base, -base - step, -base, base + step, base + 2 * step,
        (base + step) / 256};
    const Tensor x(Array::of<std::int64_t>({8}, given).view());
    EXPECT_EQ(values_of(ops::cast(x, dtype)), expected) << dtype_name(dtype);
  }
  const std::vector<std::int64_t> odd{(std::int64_t{1} << 53) + 1, -(std::int64_t{1} << 53) - 3};
  EXPECT_EQ(values_of(ops::cast(Tensor(Array::of<std::int64_t>({2}, odd).view()), DType::kFloat64)),
            (Values{0x1p53, -0x1p53 - 4}));
}

TEST(TensorValues, Shapes) {
  const Tensor x = of({2, 3}, {0, 1, 2, 3, 4, 5});
  EXPECT_EQ(values_of(ops::transpose(x)), (Values{0, 3, 1, 4, 2, 5}));
  EXPECT_EQ(values_of(ops::strided_slice(x, {.axis = 1, .step = -2})), (Values{2, 0, 5, 3}));
  EXPECT_EQ(values_of(ops::strided_slice(x, {.axis = 1, .begin = -2, .end = 100})),
            (Values{1, 2, 4, 5}));
  EXPECT_EQ(ops::strided_slice(x, {.axis = 0, .begin = 5, .end = 7}).shape(), (Shape{0, 3}));
  EXPECT_EQ(values_of(ops::gather(x, int_tensor({3}, {2, 0, 2}), 1)), (Values{2, 0, 2, 5, 3, 5}));
  EXPECT_EQ(values_of(ops::tile(of({2}, {1, 2}), {3})), (Values{1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(ops::squeeze(of({1, 2, 1}, {1, 2})).shape(), (Shape{2}));
  EXPECT_EQ(ops::expand_dims(x, -1).shape(), (Shape{2, 3, 1}));
  EXPECT_EQ(message_of<ArgumentError>([&] {
              ops::transpose(x, {0, 0});
            }),
            "[transpose] perm is [0, 0], expected each of the 2 axes once");
  EXPECT_EQ(message_of<ArgumentError>([&] { ops::gather(x, int_tensor({1}, {3}), 1); }),
            "[gather] indices[0] is 3, expected at least 0 and below 3");
  EXPECT_EQ(values_of(ops::einsum("ij->j", {x})), (Values{3, 5, 7}));
  EXPECT_EQ(message_of<UnsupportedError>([&] {
              ops::einsum("ii->i", {of({2, 2}, {1, 2, 3, 4})});
            }),
            "[einsum] equation is 'ii->i', expected 'i' once in an operand");
}

// One alignment, and two: by hand.
TEST(TensorValues, CtcOfFewSteps) {
  const Tensor logits = of({2, 1, 2}, {0, 0, 0, 0});
  EXPECT_DOUBLE_EQ(ops::ctc_loss(logits, int_tensor({1, 1}, {1})).item(), -std::log(0.75));
  EXPECT_DOUBLE_EQ(ops::ctc_loss(logits, int_tensor({1, 0}, {})).item(), -std::log(0.25));
  EXPECT_EQ(ops::ctc_loss(logits, int_tensor({1, 2}, {1, 1})).item(), HUGE_VAL);
  EXPECT_EQ(message_of<ArgumentError>([&] {
              ops::ctc_loss(logits, int_tensor({1, 1}, {2}));
            }),
            "[ctc_loss] labels[0, 0] is 2, expected 0 to 1 but the blank, 0");
  const Tensor far = of({3, 1, 2}, {0, 0, 0, 0, kNan, kNan});
  EXPECT_DOUBLE_EQ(ops::ctc_loss(far, int_tensor({1, 1}, {1}), {.logit_lengths = {2}}).item(),
                   -std::log(0.75));
}

// With fewer steps than its labels need a row has no alignment, and no slope.
TEST(TensorValues, CtcOfRowsWithoutAnAlignment) {
  const auto run = [](const ops::CtcOptions& options, const Tensor& labels) {
    GradientTape tape;
    const Tensor logits = tape.watch(random_tensor({3, 2, 4}, 3));
    const Tensor losses = ops::ctc_loss(logits, labels, options);
    tape.close();
    return std::pair(values_of(losses), values_of(tape.gradient(losses, std::vector{logits})[0]));
  };
  const ops::CtcOptions of_two{.logit_lengths = {0, 2}};
  const auto [empty, none] = run(of_two, int_tensor({2, 2}, {-1, -1, 1, 1}));
  EXPECT_EQ(empty, (Values{0, HUGE_VAL}));
  EXPECT_EQ(none, Values(24, 0.0));
  const auto [short_losses, slopes] = run(of_two, int_tensor({2, 2}, {2, -1, 1, 3}));
  EXPECT_EQ(short_losses[0], HUGE_VAL);
  EXPECT_TRUE(std::isfinite(short_losses[1]) && short_losses[1] > 0);
  for (std::size_t i = 0; i < slopes.size(); ++i) {
    const bool counts = i / 4 % 2 == 1 && i < 16;
    EXPECT_EQ(slopes[i] != 0.0, counts) << i;
  }
}

TEST(TensorValues, CtcBlanksCountFromEitherEnd) {
  const Tensor logits = random_tensor({4, 1, 5}, 6);
  for (std::int64_t blank = 0; blank < 5; ++blank) {
    const auto label = static_cast<std::int32_t>((blank + 2) % 5);
    const Tensor labels = int_tensor({1, 1}, {label});
    const double loss = ops::ctc_loss(logits, labels, {.blank = blank}).item();
    EXPECT_EQ(ops::ctc_loss(logits, labels, {.blank = blank - 5}).item(), loss) << blank;
    // The class of the blank is what counts, not its number.
    std::vector<std::int32_t> order{static_cast<std::int32_t>(blank), label};
    for (std::int32_t c = 0; c < 5; ++c) {
      if (c != blank && c != label) order.push_back(c);
    }
    const Tensor moved = ops::gather(logits, int_tensor({5}, order), 2);
    EXPECT_NEAR(ops::ctc_loss(moved, int_tensor({1, 1}, {1})).item(), loss, 1e-12) << blank;
  }
  for (const std::int64_t blank : {-6, 5}) {
    EXPECT_EQ(message_of<ArgumentError>([&] {
                ops::ctc_loss(logits, int_tensor({1, 1}, {1}), {.blank = blank});
              }),
              "[ctc_loss] blank is " + std::to_string(blank) + ", expected -5 to 4");
  }
}

TEST(TensorValues, OfTruth) {
  const auto truths = [](const std::vector<bool>& values) {
    Array all(DType::kBool, {static_cast<std::int64_t>(values.size())});
    for (std::size_t i = 0; i < values.size(); ++i) all.as<bool>()[i] = values[i];
    return Tensor(all.view());
  };
  const auto found = [](const Tensor& x) {
    const Array host = x.to_host();
    return std::vector<bool>(host.as<bool>().begin(), host.as<bool>().end());
  };
  const Tensor a = truths({false, false, true, true}), b = truths({false, true, false, true});
  EXPECT_EQ(found(ops::logical_and(a, b)), (std::vector<bool>{false, false, false, true}));
  EXPECT_EQ(found(ops::logical_or(a, b)), (std::vector<bool>{false, true, true, true}));
  EXPECT_EQ(found(ops::logical_not(b)), (std::vector<bool>{true, false, true, false}));
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    EXPECT_EQ(values_of(ops::cast(b, dtype)), (std::vector<double>{0.0, 1.0, 0.0, 1.0}));
    EXPECT_EQ(values_of(ops::cast(int_tensor({3}, {-7, 0, 12}), dtype)),
              (std::vector<double>{-7.0, 0.0, 12.0}));
  }
  EXPECT_EQ(found(ops::cast(int_tensor({3}, {-7, 0, 12}), DType::kBool)),
            (std::vector<bool>{true, false, true}));
}

TEST(TensorValues, OfComparisons) {
  using Compare = Tensor (*)(const Tensor&, const Tensor&);
  const std::tuple<const char*, Compare, std::vector<bool>> cases[] = {
      {"equal", ops::equal, {false, true, false}},
      {"not_equal", ops::not_equal, {true, false, true}},
      {"less", ops::less, {true, false, false}},
      {"less_equal", ops::less_equal, {true, true, false}},
      {"greater", ops::greater, {false, false, true}},
      {"greater_equal", ops::greater_equal, {false, true, true}}};
  const Tensor a = int_tensor({3}, {-4, 5, 7}), b = int_tensor({3}, {3, 5, -9});
  for (const auto& [name, compare, expected] : cases) {
    for (const DType dtype : {DType::kInt32, DType::kInt64, DType::kFloat32, DType::kFloat64}) {
      const Array host = compare(ops::cast(a, dtype), ops::cast(b, dtype)).to_host();
      EXPECT_EQ(std::vector<bool>(host.as<bool>().begin(), host.as<bool>().end()), expected)
          << name << " of " << dtype_name(dtype);
    }
  }
}

// Of integers that a double does not tell apart, and of truths.
TEST(TensorValues, OfComparisonsAndPlacesOfLargeIntegers) {
  constexpr std::int64_t kFar = std::int64_t{1} << 60U;
  const auto wide = [](const std::vector<std::int64_t>& values) {
    return Tensor(
        Array::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values).view());
  };
  const Tensor a = wide({kFar, kFar + 1, -kFar, kFar}), b = wide({kFar + 1, kFar, -kFar, kFar + 2});
  EXPECT_EQ(truths(ops::equal(a, b)), (std::vector<bool>{false, false, true, false}));
  EXPECT_EQ(truths(ops::less(a, b)), (std::vector<bool>{true, false, false, true}));
  EXPECT_EQ(truths(ops::less_equal(a, b)), (std::vector<bool>{true, false, true, true}));
  EXPECT_EQ(truths(ops::greater(a, b)), (std::vector<bool>{false, true, false, false}));
  EXPECT_EQ(whole_numbers<std::int32_t>(ops::argmax(wide({kFar, kFar + 2, kFar + 1}), 0))[0], 1);
  EXPECT_EQ(whole_numbers<std::int32_t>(ops::argmin(wide({kFar + 1, kFar, kFar + 2}), 0))[0], 1);
  for (const DType dtype : {DType::kUInt8, DType::kBool}) {
    const Tensor v = ops::cast(int_tensor({3}, {0, 1, 1}), dtype),
                 w = ops::cast(int_tensor({3}, {1, 1, 0}), dtype);
    EXPECT_EQ(truths(ops::equal(v, w)), (std::vector<bool>{false, true, false}));
    EXPECT_EQ(truths(ops::less(v, w)), (std::vector<bool>{true, false, false}));
    EXPECT_EQ(truths(ops::less_equal(v, w)), (std::vector<bool>{true, true, false}));
    EXPECT_EQ(whole_numbers<std::int32_t>(ops::argmax(v, 0))[0], 1);
    EXPECT_EQ(whole_numbers<std::int32_t>(ops::argmin(w, 0))[0], 2);
  }
  const Tensor bytes = ops::cast(int_tensor({2}, {255, 128}), DType::kUInt8);
  EXPECT_EQ(truths(ops::less(bytes, ops::cast(int_tensor({2}, {1, 129}), DType::kUInt8))),
            (std::vector<bool>{false, true}));
}

// A sum on the way is wider, the result is not; a condition may have more dimensions than both.
TEST(TensorValues, DtypesAndShapesOfTheirOperands) {
  const Tensor half = of({2, 3}, {0, 1, 2, 3, 4, 5}, DType::kFloat16);
  const Tensor sum = ops::einsum("ij->j", {half});
  EXPECT_EQ(sum.dtype(), DType::kFloat16);
  EXPECT_EQ(values_of(sum), (Values{3, 5, 7}));
  const Tensor rows = ops::less(of({2, 1}, {0, 2}), of({}, {1}));
  const Tensor found = ops::where(rows, of({3}, {1, 2, 3}), of({}, {9}));
  EXPECT_EQ(found.shape(), (Shape{2, 3}));
  EXPECT_EQ(values_of(found), (Values{1, 2, 3, 9, 9, 9}));
  for (const DType dtype : {DType::kFloat16, DType::kFloat32, DType::kFloat64}) {
    const GradientTape tape;
    const Tensor logits = tape.watch(random_tensor({3, 1, 4}, 1, -1, 1, dtype));
    const Tensor loss = ops::ctc_loss(logits, int_tensor({1, 1}, {1}));
    EXPECT_EQ(tape.gradient(loss, std::vector{logits})[0].dtype(), dtype);
  }
}

}  // namespace
}  // namespace openrnn::testing
