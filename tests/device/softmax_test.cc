#include <cmath>

#include "device/support.h"

namespace openrnn::testing {
namespace {

struct Result {
  DeviceArray losses, probabilities, gradient;
};

Result run(const DeviceArray& logits, const DeviceArray& labels, double row_gradient) {
  const DType dtype = logits.dtype();
  const DType wide = dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
  const std::int64_t rows = logits.shape()[0], classes = logits.shape()[1];
  Result result{DeviceArray(tested(), wide, {rows}), DeviceArray(tested(), wide, logits.shape()),
                DeviceArray(tested(), dtype, logits.shape())};
  tested().softmax_cross_entropy({.dtype = dtype,
                                  .rows = rows,
                                  .classes = classes,
                                  .logits = logits.data(),
                                  .labels = places_of(labels),
                                  .losses = result.losses.mutable_data(),
                                  .probabilities = result.probabilities.mutable_data()});
  DeviceArray upstream(tested(), wide, {rows});
  tested().fill(wide, rows, row_gradient, wide, nullptr, upstream.mutable_data());
  tested().softmax_cross_entropy_gradient({.dtype = dtype,
                                           .rows = rows,
                                           .classes = classes,
                                           .probabilities = result.probabilities.data(),
                                           .labels = places_of(labels),
                                           .row_gradients = upstream.data(),
                                           .logits_gradient = result.gradient.mutable_data()});
  return result;
}

TEST(SoftmaxCrossEntropy, AgainstDoubles) {
  const std::vector<std::int32_t> classes = {2, 0, -1, 32, 7, -100, INT32_MIN};
  const DeviceArray labels = int_array(classes);
  for (const DType dtype : floating()) {
    const DeviceArray logits = random_array(dtype, {7, 33}, 1, -30, 30);
    const Result result = run(logits, labels, 0.25);
    const double tolerance = dtype == DType::kFloat64 ? 1e-13 : 2e-6;
    const double stored = dtype == DType::kBfloat16  ? 8e-3
                          : dtype == DType::kFloat16 ? 1e-3
                                                     : tolerance;
    for (std::int64_t r = 0; r < 7; ++r) {
      double top = -INFINITY, total = 0;
      for (std::int64_t c = 0; c < 33; ++c) top = std::max(top, at(logits, r * 33 + c));
      for (std::int64_t c = 0; c < 33; ++c) total += std::exp(at(logits, r * 33 + c) - top);
      const std::int32_t label = classes[static_cast<std::size_t>(r)];
      const double loss = label < 0 ? 0.0 : std::log(total) + top - at(logits, r * 33 + label);
      ASSERT_NEAR(at(result.losses, r), loss, tolerance * (1 + loss));
      for (std::int64_t c = 0; c < 33; ++c) {
        const double p = std::exp(at(logits, r * 33 + c) - top) / total;
        ASSERT_NEAR(at(result.probabilities, r * 33 + c), p, tolerance);
        const double gradient = label < 0 ? 0.0 : (p - (c == label)) * 0.25;
        ASSERT_NEAR(at(result.gradient, r * 33 + c), gradient, stored);
      }
    }
    for (const std::int64_t r : {2, 5, 6}) EXPECT_EQ(at(result.losses, r), 0.0);
  }
}

TEST(SoftmaxCrossEntropy, LargeLogitsDoNotOverflow) {
  const float logits[] = {1e30f, -1e30f, 0.0f};
  const DeviceArray x =
      DeviceArray::from_host(tested(), ConstArrayView{logits, DType::kFloat32, {1, 3}});
  const Result right = run(x, int_array({0}), 1.0), wrong = run(x, int_array({2}), 1.0);
  EXPECT_EQ(at(right.losses, 0), 0.0);
  EXPECT_EQ(at(right.probabilities, 0), 1.0);
  EXPECT_FLOAT_EQ(static_cast<float>(at(wrong.losses, 0)), 1e30f);
}

// In rows of fewer classes than a vector has lanes, of as many, and of more.
TEST(SoftmaxCrossEntropy, TheLargestLogitMayStandAnywhere) {
  for (const std::int64_t classes : {3, 16, 37}) {
    for (std::int64_t place = 0; place < classes; ++place) {
      std::vector<float> logits(static_cast<std::size_t>(classes));
      logits[static_cast<std::size_t>(place)] = 200.0f;
      const DeviceArray x = DeviceArray::from_host(
          tested(), ConstArrayView{logits.data(), DType::kFloat32, {1, classes}});
      const Result result = run(x, int_array({0}), 1.0);
      ASSERT_EQ(at(result.losses, 0), place == 0 ? 0.0 : 200.0) << place << " of " << classes;
      ASSERT_EQ(at(result.probabilities, place), 1.0) << place << " of " << classes;
    }
  }
}

TEST(SoftmaxCrossEntropy, NanShows) {
  const float logits[] = {0.0f, NAN, 1.0f};
  const DeviceArray x =
      DeviceArray::from_host(tested(), ConstArrayView{logits, DType::kFloat32, {1, 3}});
  EXPECT_TRUE(std::isnan(at(run(x, int_array({0}), 1.0).losses, 0)));
}

TEST(SoftmaxCrossEntropy, GivesWhatIsWantedAlone) {
  const DeviceArray labels = int_array({2, 0, -1, 4, 1});
  for (const DType dtype : floating()) {
    const DeviceArray logits = random_array(dtype, {5, 7}, 4, -3, 3);
    const Result both = run(logits, labels, 0.5);
    DeviceArray losses(tested(), both.losses.dtype(), {5}),
        probabilities(tested(), both.losses.dtype(), {5, 7});
    CrossEntropyArgs args{.dtype = dtype, .rows = 5, .classes = 7, .logits = logits.data()};
    args.labels = places_of(labels);
    args.losses = losses.mutable_data();
    tested().softmax_cross_entropy(args);
    expect_same_bits(losses, both.losses);
    args.losses = nullptr;
    args.labels = nullptr;
    args.probabilities = probabilities.mutable_data();
    tested().softmax_cross_entropy(args);
    expect_same_bits(probabilities, both.probabilities);
  }
}

TEST(SoftmaxGradient, IsThatOfEachRow) {
  constexpr std::int64_t kRows = 5, kCols = 9;
  for (const DType dtype : floating()) {
    const DeviceArray y = random_array(dtype, {kRows, kCols}, 5, 0, 0.3),
                      dy = random_array(dtype, {kRows, kCols}, 6);
    DeviceArray dx(tested(), dtype, {kRows, kCols});
    tested().softmax_gradient(dtype, kRows, kCols, y.data(), dy.data(), dx.mutable_data());
    const double relative = dtype == DType::kBfloat16  ? 8e-3
                            : dtype == DType::kFloat16 ? 1e-3
                            : dtype == DType::kFloat32 ? 2e-6
                                                       : 1e-14;
    for (std::int64_t r = 0; r < kRows; ++r) {
      double dot = 0;
      for (std::int64_t c = 0; c < kCols; ++c) dot += at(y, r * kCols + c) * at(dy, r * kCols + c);
      for (std::int64_t c = 0; c < kCols; ++c) {
        const std::int64_t i = r * kCols + c;
        ASSERT_NEAR(at(dx, i), at(y, i) * (at(dy, i) - dot), relative) << r << ", " << c;
      }
    }
  }
}

TEST(SoftmaxCrossEntropy, SameBitsForAnyThreads) {
  std::vector<std::int32_t> values(400);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::int32_t>(i % 257);
  const DeviceArray labels = int_array(values);
  for (const DType dtype : floating()) {
    const DeviceArray logits = random_array(dtype, {400, 257}, 2, -5, 5);
    expect_same_for_threads([&] { return run(logits, labels, 0.01).losses; });
    expect_same_for_threads([&] { return run(logits, labels, 0.01).gradient; });
  }
}

}  // namespace
}  // namespace openrnn::testing
