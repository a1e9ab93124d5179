// Rows shorter than the call, for every engine.
#include <gtest/gtest.h>

#include <limits>

#include "conformance/support/grid.h"
#include "conformance/support/machine.h"
#include "conformance/support/parts.h"

namespace openrnn::conformance {
namespace {

std::vector<Subject> subjects() {
  std::vector<Subject> list;
  for (const std::string& engine : tested_engines()) {
    for (const char* mode : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
      for (const char* rest :
           {"f32", "bi f64 batch_major", "f16 batch_major", "b16 bi", "bi f32 D0.5"}) {
        if (engine == "cudnn" && std::string(rest) == "b16 bi") continue;
        const std::string text = std::string(mode) + " L2 U17 I3 B7 T5 lengths " + rest;
        list.push_back({engine, parse_case(text, "shorter_rows")});
      }
    }
    list.push_back({engine, parse_case("lstm L2 U17 I3 B7 T5 P5 lengths bi f32", "projection")});
    list.push_back({engine, parse_case("gru L2 U7 I7 B7 T5 skip lengths bi f32", "skips")});
    if (tests_gpu()) continue;
    for (const std::string arithmetic : {"bf16", "bf16x3", "stored_int8", "stored_bfloat16"}) {
      const std::string text = "lstm L2 U17 I3 B7 T5 P5 lengths bi f32 " + arithmetic;
      list.push_back({engine, parse_case(text, "arithmetic")});
    }
  }
  return list;
}

class Padding : public testing::TestWithParam<Subject> {
 protected:
  const Case& c() const { return GetParam().c; }
  const Engine& subject() const { return engine(GetParam().engine); }

  /// `visit(first element, padded)` for every step and row of a sequence array.
  template <class Visit>
  void for_steps(std::int64_t width, Visit visit) const {
    for (std::int64_t t = 0; t < c().time; ++t) {
      for (std::int64_t b = 0; b < c().batch; ++b) {
        const std::int64_t at = c().time_major ? t * c().batch + b : b * c().time + t;
        visit(at * width, t >= c().lengths[static_cast<std::size_t>(b)]);
      }
    }
  }

  void fill_padding(Array& values, std::int64_t width) const {
    const Array nan =
        cast(Array::of<double>({1}, std::vector{std::numeric_limits<double>::quiet_NaN()}).view(),
             values.dtype());
    const std::size_t size = dtype_size(values.dtype());
    for_steps(width, [&](std::int64_t first, bool padded) {
      for (std::int64_t k = 0; padded && k < width; ++k) {
        std::memcpy(static_cast<char*>(values.data()) + static_cast<std::size_t>(first + k) * size,
                    nan.data(), size);
      }
    });
  }

  void expect_zero_padding(const Array& values, std::int64_t width, const char* name) const {
    for_steps(width, [&](std::int64_t first, bool padded) {
      for (std::int64_t k = 0; padded && k < width; ++k) {
        ASSERT_EQ(element(values.view(), first + k), 0.0) << name << "[" << first + k << "]";
      }
    });
  }
};

TEST_P(Padding, IsNeverRead) {
  const Data d = make_data(c());
  Data poisoned = d;
  fill_padding(poisoned.x, c().spec.input_size);
  fill_padding(poisoned.dy, c().spec.output_size());
  EXPECT_EQ(first_difference(run_all(subject(), c(), d), run_all(subject(), c(), poisoned)), "");
}

TEST_P(Padding, IsZeroInOutputsAndInputGradients) {
  const Data d = make_data(c());
  const Result result = run_all(subject(), c(), d);
  expect_zero_padding(result["inference y"], c().spec.output_size(), "inference y");
  if (!c().trains()) return;
  expect_zero_padding(result["y"], c().spec.output_size(), "y");
  expect_zero_padding(result["dx"], c().spec.input_size, "dx");
}

TEST_P(Padding, OfAWholeRowPassesStatesThrough) {
  const Data d = make_data(c());
  const Result result = run_all(subject(), c(), d);
  ASSERT_EQ(c().lengths[0], 0);
  const Data row = row_data(c(), d, 0);
  Result expected;
  for (const char* prefix : {"inference ", ""}) {
    if (!c().trains() && *prefix == '\0') continue;
    expected.parts.emplace_back(std::string(prefix) + "hn", row.h0);
    if (c().spec.has_cell()) expected.parts.emplace_back(std::string(prefix) + "cn", row.c0);
  }
  if (c().trains()) expected.parts.emplace_back("dh0", row.dhn);
  if (c().trains() && c().spec.has_cell()) expected.parts.emplace_back("dc0", row.dcn);
  Result found = row_result(c(), result, 0);
  std::erase_if(found.parts, [](const auto& part) { return part.first.ends_with("y"); });
  std::erase_if(found.parts, [](const auto& part) { return part.first == "dx"; });
  EXPECT_EQ(first_difference(expected, found), "");
}

INSTANTIATE_TEST_SUITE_P(Engines, Padding, testing::ValuesIn(subjects()), subject_name);

}  // namespace
}  // namespace openrnn::conformance
