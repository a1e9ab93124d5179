// Numbers at the ends of the other arithmetics: not finite, subnormal, zero, and too large to
// store.
#include <gtest/gtest.h>

#include <limits>

#include "conformance/support/case.h"
#include "conformance/support/machine.h"
#include "conformance/support/run.h"

namespace openrnn::conformance {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
// The smallest normal float is 2^-126.
constexpr float kSubnormal = 0x1p-130F, kSmall = 0x1p-125F;

struct Subject {
  std::string text;
  float value;  // in one place of x, then of h0
  const char* reason;
};

void PrintTo(const Subject& s, std::ostream* out) { *out << s.text << " " << s.value; }

std::vector<Subject> subjects() {
  std::vector<Subject> list;
  for (const std::string mode : {"lstm", "gru", "rnn_tanh"}) {
    for (const std::string arithmetic : {"bf16", "bf16x3", "stored_int8", "stored_bfloat16"}) {
      const std::string text = mode + " L1 U17 I19 B5 T3 f32 " + arithmetic;
      list.push_back({text, kNan, "nan"});
      list.push_back({text, kInf, "infinity"});
      list.push_back({text, -kSubnormal, "subnormal"});
      list.push_back({text, 0.0F, "zero"});
      list.push_back({text, 3e38F, "near_the_largest"});
    }
  }
  return list;
}

class SpecialValues : public testing::TestWithParam<Subject> {};

// Sums of a few dozen terms around 1, where nothing is special.
void expect_same(const Array& found, const Array& expected, const std::string& where) {
  for (std::int64_t i = 0; i < expected.size(); ++i) {
    const double a = element(found.view(), i), e = element(expected.view(), i);
    ASSERT_EQ(std::isnan(a), std::isnan(e)) << where << i << ": " << a << " and " << e;
    if (std::isnan(e) || a == e) continue;
    ASSERT_NEAR(a, e, 1e-4 * std::max(1.0, std::abs(e))) << where << i;
  }
}

TEST_P(SpecialValues, AreThoseOfTheReferenceInXAndH) {
  const Case c = parse_case(GetParam().text, GetParam().reason);
  for (const bool in_x : {true, false}) {
    Data d = make_data(c);
    (in_x ? d.x : d.h0).as<float>()[23] = GetParam().value;  // in row 1
    const Result expected = run_inference(engine("reference"), c, d);
    for (const std::string_view isa : tested_isas(c.spec)) {
      const ForcedIsa forced(isa);
      expect_same(run_inference(cpu(), c, d).parts[0].second, expected.parts[0].second,
                  std::string(isa) + (in_x ? " x: y" : " h: y"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, SpecialValues, testing::ValuesIn(subjects()), [](const auto& at) {
  return "n" + std::to_string(at.index) + "_" + at.param.reason;
});

TEST(SpecialRows, OfOneValueAlone) {
  for (const std::string arithmetic : {"bf16", "bf16x3", "stored_int8"}) {
    for (const float value : {0.0F, kSubnormal, -kSmall, 0x1p-60F, 1.0F, -2e38F}) {
      const Case c = parse_case("gru L1 U17 I19 B5 T3 f32 " + arithmetic, "one_value");
      Data d = make_data(c);
      for (std::size_t k = 0; k < 19; ++k) d.x.as<float>()[19 + k] = value;
      for (std::size_t u = 0; u < 17; ++u) d.h0.as<float>()[17 + u] = value > -1.0F ? value : 0.0F;
      const Result expected = run_inference(engine("reference"), c, d);
      for (const std::string_view isa : tested_isas(c.spec)) {
        const ForcedIsa forced(isa);
        expect_same(run_inference(cpu(), c, d).parts[0].second, expected.parts[0].second,
                    arithmetic + " " + std::string(isa) + " " + std::to_string(value) + " y");
      }
    }
  }
}

TEST(SpecialWeights, ChannelsOfZerosOfTinyAndOfLargeNumbers) {
  for (const std::string arithmetic :
       {"bf16", "bf16x3", "stored_int8", "stored_bfloat16", "stored_float16"}) {
    const Case c = parse_case("lstm L1 U17 I19 B5 T3 f32 " + arithmetic, "weights");
    Data d = make_data(c);
    const auto weights = d.params.as<float>();
    for (std::size_t k = 0; k < 19; ++k) {
      weights[k] = 0.0F;
      weights[19 + k] = kSubnormal;
      weights[38 + k] *= 0x1p-30F;
      weights[57 + k] *= 2000.0F;
    }
    const Result expected = run_inference(engine("reference"), c, d);
    for (const std::string_view isa : tested_isas(c.spec)) {
      const ForcedIsa forced(isa);
      expect_same(run_inference(cpu(), c, d).parts[0].second, expected.parts[0].second,
                  arithmetic + " " + std::string(isa) + " y");
    }
  }
}

TEST(SpecialWeights, OfFloat16BecomeInfiniteBeyondItsRange) {
  const Case c = parse_case("rnn_relu L1 U3 I2 B1 T1 f32 null_states stored_float16", "too_large");
  Data d = make_data(c);
  d.params.as<float>()[0] = 7e4F;
  d.x.as<float>()[0] = d.x.as<float>()[1] = 1.0F;
  for (const char* name : {"cpu", "reference"}) {
    EXPECT_EQ(run_inference(engine(name), c, d).parts[0].second.as<float>()[0], kInf) << name;
  }
}

// Where each engine runs: the reference, then cpu on every instruction set.
template <class Check>
void on_every_engine(const Check& check) {
  check(engine("reference"), "reference");
  for (const std::string_view isa : available_cpu_isas()) {
    const ForcedIsa forced(isa);
    check(cpu(), std::string(isa));
  }
}

// A bad value must not vanish.
TEST(SpecialInputs, NanGoesThroughRelu) {
  for (const char* dtype : {"f16", "b16", "f32", "f64"}) {
    const Case c =
        parse_case(std::string("rnn_relu L2 U17 I3 B4 T2 null_states ") + dtype, "relu_of_nan");
    Data d = make_data(c);
    Array x = cast(d.x.view(), DType::kFloat64);
    x.as<double>()[4] = kNan;  // step 0 of row 1
    d.x = cast(x.view(), c.spec.dtype);
    on_every_engine([&](const Engine& engine, const std::string& where) {
      const Array y = run_inference(engine, c, d).parts[0].second;
      for (std::int64_t i = 0; i < y.size(); ++i) {
        const bool row_1 = i / 17 % 4 == 1;
        ASSERT_EQ(std::isnan(element(y.view(), i)), row_1) << where << " " << dtype << " y " << i;
      }
    });
  }
}

// With weights of 0 the gates are 1/2 and the cell is half of the old one, exactly.
TEST(SpecialCells, OnTheVeryEndsOfTheClampHaveAGradient) {
  for (const char* dtype : {"f32", "f64"}) {
    Case c = parse_case(std::string("lstm L1 U19 I2 B3 T1 clip ") + dtype, "ends");
    c.spec.cell_clip = {{-0.25, 0.5}};
    Data d = make_data(c);
    std::memset(d.params.data(), 0, d.params.size_bytes());
    Array c0(DType::kFloat64, {c.c_size()});
    const double starts[] = {-0.5, 1.0, -0.5625, 1.0625, 0.25};  // both ends, beyond, inside
    for (std::int64_t i = 0; i < c0.size(); ++i) c0.as<double>()[i] = starts[i % 5];
    d.c0 = cast(c0.view(), c.spec.dtype);
    on_every_engine([&](const Engine& engine, const std::string& where) {
      const Array dc0 = run_training(engine, c, d)["dc0"];
      for (std::int64_t i = 0; i < dc0.size(); ++i) {
        const bool held = i % 5 == 2 || i % 5 == 3;
        ASSERT_EQ(element(dc0.view(), i) == 0.0, held) << where << " " << dtype << " dc0 " << i;
      }
    });
  }
}

TEST(SpecialWeights, ThatAreNotFinite) {
  for (const std::string arithmetic :
       {"", "bf16", "stored_int8", "stored_bfloat16", "stored_float16"}) {
    for (const float value : {kInf, -kInf, kNan}) {
      const Case c = parse_case("lstm L1 U17 I19 B5 T3 f32 " + arithmetic, "weights");
      Data d = make_data(c);
      d.params.as<float>()[19 * 3 + 7] = value;
      const Result expected = run_inference(engine("reference"), c, d);
      const Array& y = expected.parts[0].second;
      if (arithmetic == "stored_int8") {
        EXPECT_TRUE(std::isnan(element(y.view(), 3)));
      }
      EXPECT_FALSE(std::isnan(element(y.view(), 4)));
      for (const std::string_view isa : available_cpu_isas()) {
        const ForcedIsa forced(isa);
        expect_same(run_inference(cpu(), c, d).parts[0].second, y,
                    arithmetic + " " + std::string(isa) + " " + std::to_string(value) + " y");
      }
    }
  }
}

}  // namespace
}  // namespace openrnn::conformance
