// The functions of cells with options on every instruction set: the same bits, within their errors
// of the functions of the C library in long double, in place after infinities and NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "conformance/support/machine.h"
#include "openrnn/runtime.h"

namespace openrnn {
namespace {

// A plain network without weights computes f(x) of its skipped input.
template <class T>
std::vector<T> computed(const std::string& function, const std::vector<T>& x) {
  const auto size = static_cast<std::int64_t>(x.size());
  const DType dtype = std::is_same_v<T, float> ? DType::kFloat32 : DType::kFloat64;
  const RnnSpec spec{.mode = RnnMode::kRnnTanh,
                     .num_units = 16,
                     .input_size = 16,
                     .input_mode = InputMode::kSkipInput,
                     .dtype = dtype,
                     .activation = parse_cell_activation(function),
                     .use_bias = false};
  const Array params(dtype, {params_size(spec)});
  std::vector<T> y(x.size());
  ForwardArgs args;
  args.params = engine("cpu").pack(spec, params.view(), PackFor::kInference);
  args.max_time = 1;
  args.batch = size / 16;
  args.x = x.data();
  args.y = y.data();
  engine("cpu").forward(args);
  return y;
}

long double exact(const std::string& function, long double a) {
  if (function == "softsign") return a / (1.0L + std::fabs(a));
  if (function == "softplus") {
    return std::max(a, 0.0L) + std::log1p(std::exp(-std::fabs(a)));
  }
  return a > 0.0L ? a : std::expm1(a);  // elu
}

// From tiny to huge on both sides, in steps of a fixed ratio.
template <class T>
std::vector<T> arguments() {
  std::vector<T> x;
  for (double magnitude = 1e-6; magnitude < 120.0; magnitude *= 1.0007) {
    x.push_back(static_cast<T>(magnitude));
    x.push_back(static_cast<T>(-magnitude));
  }
  while (x.size() % 16 != 0) x.push_back(0);
  return x;
}

template <class T>
double worst_ulps(const std::string& function) {
  const std::vector<T> x = arguments<T>(), y = computed(function, x);
  double worst = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const long double wanted = exact(function, static_cast<long double>(x[i]));
    const T rounded = static_cast<T>(wanted);
    if (std::fabs(rounded) < std::numeric_limits<T>::min()) continue;
    const T ulp =
        std::nextafter(std::fabs(rounded), std::numeric_limits<T>::infinity()) - std::fabs(rounded);
    const long double off = std::fabs(static_cast<long double>(y[i]) - wanted);
    worst = std::max(worst, static_cast<double>(off / static_cast<long double>(ulp)));
  }
  return worst;
}

TEST(CellFunctions, AreWithinTheirErrors) {
  for (const std::string_view isa : available_cpu_isas()) {
    const conformance::ForcedIsa forced(isa);
    EXPECT_LE(worst_ulps<float>("softsign"), 2.0) << isa;
    EXPECT_LE(worst_ulps<float>("softplus"), 2.0) << isa;
    EXPECT_LE(worst_ulps<float>("elu"), 3.0) << isa;
    EXPECT_LE(worst_ulps<double>("softsign"), 2.0) << isa;
    EXPECT_LE(worst_ulps<double>("softplus"), 2.0) << isa;
    EXPECT_LE(worst_ulps<double>("elu"), 3.0) << isa;
  }
}

TEST(CellFunctions, HaveTheSameBitsOnEveryInstructionSet) {
  const std::vector<float> x = arguments<float>();
  for (const char* function :
       {"sigmoid", "affine(0.7, 0.2)", "leaky_relu(0.3)", "thresholded_relu(0.5)",
        "scaled_tanh(1.7, 0.6)", "hard_sigmoid", "elu(0.9)", "softsign", "softplus"}) {
    const std::vector<float> wanted = [&] {
      const conformance::ForcedIsa forced("scalar");
      return computed(function, x);
    }();
    for (const std::string_view isa : available_cpu_isas()) {
      const conformance::ForcedIsa forced(isa);
      const std::vector<float> y = computed(function, x);
      EXPECT_EQ(std::memcmp(y.data(), wanted.data(), y.size() * sizeof(float)), 0)
          << function << " on " << isa;
    }
  }
}

// The gradient of the sum of all outputs.
std::vector<float> slopes(const std::string& function, const std::vector<float>& x) {
  const RnnSpec spec{.mode = RnnMode::kRnnTanh,
                     .num_units = static_cast<std::int64_t>(x.size()),
                     .input_size = static_cast<std::int64_t>(x.size()),
                     .input_mode = InputMode::kSkipInput,
                     .activation = parse_cell_activation(function),
                     .use_bias = false};
  const Array params(DType::kFloat32, {params_size(spec)});
  const std::vector<float> ones(x.size(), 1.0F);
  std::vector<float> y(x.size()), dx(x.size());
  ForwardArgs args;
  args.params = engine("cpu").pack(spec, params.view(), PackFor::kTraining);
  args.max_time = args.batch = 1;
  args.x = x.data();
  args.y = y.data();
  const auto saved = engine("cpu").forward_saving(args);
  engine("cpu").backward({.saved = saved.get(), .dy = ones.data(), .dx = dx.data()});
  return dx;
}

TEST(CellFunctions, HaveTheSlopesOfTheirKinks) {
  using Slopes = std::vector<float>;
  for (const std::string_view isa : available_cpu_isas()) {
    const conformance::ForcedIsa forced(isa);
    EXPECT_EQ(slopes("thresholded_relu(0)", {-1, 0, 1}), (Slopes{0, 0, 1})) << isa;
    EXPECT_EQ(slopes("thresholded_relu(0.5)", {0, 0.5F, 1}), (Slopes{0, 0, 1})) << isa;
    EXPECT_EQ(slopes("thresholded_relu(-0.5)", {-1, -0.5F, 0}), (Slopes{0, 0, 1})) << isa;
    EXPECT_EQ(slopes("leaky_relu(0.25)", {-1, 0, 1}), (Slopes{0.25F, 0.25F, 1})) << isa;
    EXPECT_EQ(slopes("elu(0.5)", {0, 1}), (Slopes{0.5F, 1})) << isa;
    EXPECT_EQ(slopes("hard_sigmoid(0.25, 0.5)", {-2, 0, 2}), (Slopes{0, 0.25F, 0})) << isa;
  }
}

TEST(CellFunctions, OfExtremesAndNaN) {
  constexpr float kInf = std::numeric_limits<float>::infinity(), kNaN = std::nanf("");
  const std::vector<float> x = {kInf, -kInf, kNaN, 0.0F,  1e30F, -1e30F, 0.5F,  -0.5F,
                                2.5F, -2.5F, 3.0F, -3.0F, 1.0F,  -1.0F,  88.5F, -88.5F};
  const auto values = [&](const char* function) { return computed(function, x); };
  for (const char* function : {"leaky_relu", "thresholded_relu", "scaled_tanh", "hard_sigmoid",
                               "elu", "softsign", "softplus", "affine"}) {
    EXPECT_TRUE(std::isnan(values(function)[2])) << function;
  }
  EXPECT_EQ(values("hard_sigmoid")[0], 1.0F);
  EXPECT_EQ(values("hard_sigmoid")[1], 0.0F);
  EXPECT_EQ(values("hard_sigmoid")[8], 1.0F);
  EXPECT_EQ(values("hard_sigmoid")[9], 0.0F);
  EXPECT_EQ(values("elu")[0], kInf);
  EXPECT_EQ(values("elu")[1], -1.0F);
  EXPECT_EQ(values("elu")[5], -1.0F);
  EXPECT_EQ(values("softplus")[0], kInf);
  EXPECT_EQ(values("softplus")[1], 0.0F);
  EXPECT_EQ(values("softplus")[4], 1e30F);
  EXPECT_EQ(values("thresholded_relu(2.5)")[8], 0.0F);
  EXPECT_EQ(values("thresholded_relu(2.5)")[10], 3.0F);
  EXPECT_EQ(values("leaky_relu(0.5)")[9], -1.25F);
}

}  // namespace
}  // namespace openrnn
