// The gradients of rows of a batch, and their norms: those of calls of each row alone.
#include "conformance/samples/samples.h"

#include <gtest/gtest.h>

#include <map>

#include "cpu/backward/backward_scratch.h"
#include "support/expect_error.h"

namespace openrnn::conformance {
namespace {

class CpuSamples : public testing::TestWithParam<Case> {};
class CpuSampleBits : public testing::TestWithParam<Case> {};
class SamplesOfMasks : public testing::TestWithParam<Case> {};

TEST_P(CpuSamples, AreGradientsOfTheRowAlone) {
  const Case& c = GetParam();
  const Data d = make_data(c);
  const auto saved = save_call(cpu(), c, d);
  const Samples found = run_samples(cpu(), c, d, *saved);
  const std::int64_t stride = c.batch > 20 ? 13 : 1;
  for (std::int64_t b = 0; b < c.batch; b += stride) {
    const Case row = row_case(c, b);
    const Result alone = run_training(cpu(), row, row_data(c, d, b));
    Result expected, own;
    expected.parts.emplace_back("dparams", alone["dparams"]);
    own.parts.emplace_back("dparams", row_of(found.rows, b));
    ASSERT_EQ(first_difference(expected, own), "") << "row " << b;
  }
}

TEST_P(CpuSamples, NormsAreThoseOfTheGradients) {
  const Case& c = GetParam();
  const Data d = make_data(c);
  const auto saved = save_call(cpu(), c, d);
  const Samples found = run_samples(cpu(), c, d, *saved);
  // The norm may be that of the sums before they are rounded: at most once a place, by eps / 2 of
  // what was added so far, whose terms are below 4; gradients of 16 bits are rounded once
  // more, by 2^-11 of themselves (bfloat16: 2^-8), or by half of the smallest number.
  const bool half = is_16_bit_float(c.spec.dtype);
  const double relative = c.spec.dtype == DType::kBfloat16 ? 0x1p-6 : 0x1p-9;
  const double eps = c.spec.dtype == DType::kFloat64 ? 0x1p-52 : 0x1p-23;
  const double rounding = 2.0 * static_cast<double>(c.time * c.time) * eps;
  for (std::int64_t b = 0; b < c.batch; ++b) {
    const Array row = row_of(found.rows, b);
    double squares = 0.0, lost = 0.0;
    for (std::int64_t i = 0; i < row.size(); ++i) {
      const double value = element(row.view(), i);
      squares += value * value;
      lost += rounding * (2.0 * std::abs(value) + rounding);
      if (half) lost += std::abs(value) * (std::abs(value) * relative + 0x1p-23) + 0x1p-48;
    }
    EXPECT_NEAR(found.norms[static_cast<std::size_t>(b)], squares, lost + 1e-13 * squares)
        << "row " << b;
  }
}

TEST_P(CpuSamples, AddUpToTheGradient) {
  const Case& c = GetParam();
  if (is_16_bit_float(c.spec.dtype)) return;  // whose gradients are rounded
  const Data d = make_data(c);
  const auto saved = save_call(cpu(), c, d);
  const Samples found = run_samples(cpu(), c, d, *saved);
  const Array whole = run_backward(cpu(), c, d, *saved)["dparams"];
  // A term is a gradient of a gate times a value, both below 2 here: each side rounds at most once
  // a place, by eps / 2 of what it has added so far.
  const double eps = c.spec.dtype == DType::kFloat64 ? 0x1p-52 : 0x1p-23;
  const auto places = static_cast<double>(c.time * c.batch);
  for (std::int64_t i = 0; i < whole.size(); ++i) {
    double sum = 0.0;
    for (std::int64_t b = 0; b < c.batch; ++b) {
      sum += element(found.rows.view(), b * whole.size() + i);
    }
    ASSERT_NEAR(element(whole.view(), i), sum, 2.0 * places * eps * std::max(places, 2.0)) << i;
  }
}

TEST_P(CpuSampleBits, DependOnNeitherInstructionSetNorThreads) {
  const Case& c = GetParam();
  const Data d = make_data(c);
  const auto run = [&](std::string_view isa, int threads) {
    const ForcedIsa forced(isa);
    const ForcedThreads on(threads);
    return run_samples(cpu(), c, d, *save_call(cpu(), c, d));
  };
  std::map<std::string, Samples> expected;
  for (const std::string_view isa : tested_isas(c.spec)) {
    const std::string kind = kind_on(isa, c.spec);
    expected.try_emplace(kind, run(isa, 1));
    for (const int threads : {1, 2, 3}) {
      const Samples found = run(isa, threads);
      EXPECT_EQ(first_difference(expected.at(kind).result(), found.result()), "")
          << isa << " on " << threads << " threads";
    }
  }
}

TEST_P(SamplesOfMasks, AreGradientsWithoutTheOtherRowsLosses) {
  const Case& c = GetParam();
  const Data d = make_data(c);
  for (const std::string& name : tested_engines()) {
    if (tests_gpu()) GTEST_SKIP() << "cudnn has no gradients of rows";
    const Engine& tested = engine(name);
    const auto saved = save_call(tested, c, d);
    const Samples found = run_samples(tested, c, d, *saved);
    for (std::int64_t b = 0; b < c.batch; ++b) {
      Bounds bounds = bounds_of(c, loss_of_row(c, d, b));
      std::erase_if(bounds.parts, [](const auto& part) { return part.first != "dparams"; });
      Result own;
      own.parts.emplace_back("dparams", row_of(found.rows, b));
      ASSERT_EQ(compare(bounds, own).failure, "") << name << ", row " << b;
    }
  }
}

TEST(Samples, OfTheReferenceAreItsGradientsWithoutTheOtherRowsLosses) {
  const Engine& reference = engine("reference");
  for (const Case& c : difference_cases()) {
    const Data d = make_data(c);
    const auto saved = save_call(reference, c, d);
    const Samples found = run_samples(reference, c, d, *saved);
    for (std::int64_t b = 0; b < c.batch; ++b) {
      const Array expected = run_backward(reference, c, loss_of_row(c, d, b), *saved)["dparams"];
      const Array own = row_of(found.rows, b);
      double squares = 0.0;
      for (std::int64_t i = 0; i < own.size(); ++i) {
        ASSERT_EQ(element(own.view(), i), element(expected.view(), i)) << c.text << ", row " << b;
        squares += element(own.view(), i) * element(own.view(), i);
      }
      ASSERT_NEAR(found.norms[static_cast<std::size_t>(b)], squares, 1e-13 * squares);
    }
  }
}

TEST(Samples, OfSomeRowsAreThoseOfAll) {
  for (const char* text : {"lstm L2 U17 I3 B7 T9 f32 bi lengths", "gru L1 U5 I4 B6 T3 f16",
                           "rnn_tanh L1 U3 I2 B1 T1 f64"}) {
    const Case c = parse_case(text, "rows");
    const Data d = make_data(c);
    const auto saved = save_call(cpu(), c, d);
    const Samples all = run_samples(cpu(), c, d, *saved);
    for (std::int64_t first = 0; first <= c.batch; ++first) {
      for (std::int64_t last = first; last <= c.batch; ++last) {
        const Array some = run_rows(cpu(), c, d, *saved, {first, last});
        for (std::int64_t b = first; b < last; ++b) {
          Result expected, own;
          expected.parts.emplace_back("dparams", row_of(all.rows, b));
          own.parts.emplace_back("dparams", row_of(some, b - first));
          ASSERT_EQ(first_difference(expected, own), "") << text << ", row " << b;
        }
      }
    }
  }
}

TEST(Samples, OfCallsThatRecomputeHaveTheSameBits) {
  for (const char* text :
       {"lstm L2 U9 I3 B3 T70 f32 bi lengths", "gru L2 U5 I4 B2 T100 f16 lengths",
        "lstm L1 U4 I4 B3 T40 f64 peepholes norm=gates"}) {
    const Case c = parse_case(text, "chunks");
    const Data d = make_data(c);
    const Samples kept = run_samples(cpu(), c, d, *save_call(cpu(), c, d));
    const auto saved = save_call(cpu(), c, d, 32);
    Result expected, own;
    expected.parts.emplace_back("rows", kept.rows);
    own.parts.emplace_back("rows", run_rows(cpu(), c, d, *saved, {0, c.batch}));
    EXPECT_EQ(first_difference(expected, own), "") << text;
    for (std::int64_t b = 0; b < c.batch; ++b) {
      Result row, alone;
      row.parts.emplace_back("row", row_of(kept.rows, b));
      alone.parts.emplace_back("row", run_rows(cpu(), c, d, *saved, {b, b + 1}));
      EXPECT_EQ(first_difference(row, alone), "") << text << ", row " << b;
    }
    std::vector<double> norms(static_cast<std::size_t>(c.batch));
    BackwardArgs args = upstream(c, d, *saved);
    args.row_norms = norms.data();
    expect_error<UnsupportedError>([&] { cpu().backward(args); },
                                   "[backward] row_norms of a call with recompute, expected "
                                   "row_dparams, or recompute 0");
  }
}

TEST(Samples, RowsOutsideOfTheBatchAreRefused) {
  for (const char* text : {"lstm L1 U3 I2 B4 T3 f32", "lstm L1 U3 I2 B4 T3 f64"}) {
    const Case c = parse_case(text, "rows");
    const Data d = make_data(c);
    for (const auto& [name, recompute] :
         {std::pair("cpu", 0), std::pair("cpu", 32), std::pair("reference", 0)}) {
      const Engine& tested = engine(name);
      const auto saved = save_call(tested, c, d, recompute);
      Array rows(c.spec.dtype, {4 * params_size(c.spec)});
      BackwardArgs args = upstream(c, d, *saved);
      args.row_dparams = rows.data();
      for (const auto& [first, last] :
           {std::pair(1, 5), std::pair(-1, 2), std::pair(3, 2), std::pair(-2, -1)}) {
        args.first_row = first;
        args.last_row = last;
        expect_error<ArgumentError>([&] { tested.backward(args); },
                                    "[backward] row_dparams is of rows " + std::to_string(first) +
                                        " to " + std::to_string(last) +
                                        ", expected rows within 0 to 4");
      }
    }
  }
}

// One gradient a thread, however many rows.
TEST(Samples, MemoryForNormsDoesNotGrowWithTheBatch) {
  for (const std::int64_t batch : {1, 8, 64}) {
    Case c = parse_case("lstm L2 U16 I8 B1 T2 f32", "memory");
    c.batch = batch;
    const cpu::CpuPacked<float> packed(c.spec, make_data(c).params.view(), PackFor::kTraining);
    const ForwardArgs call = args_without_arrays(c, nullptr, true);
    const auto bytes = [&](bool norms) {
      cpu::Carver measure;
      cpu::BackwardScratch<float>::carve(
          measure, {.packed = packed, .call = call, .threads = 3, .row_norms = norms});
      return measure.used();
    };
    const std::size_t one = (static_cast<std::size_t>(params_size(c.spec)) * 4 + 63) / 64 * 64;
    EXPECT_EQ(bytes(true) - bytes(false), 3 * one) << "batch " << batch;
  }
}

std::string name_of(const testing::TestParamInfo<Case>& at) {
  return "n" + std::to_string(at.index) + "_" + test_name(at.param);
}

std::vector<Case> that_train(bool masks) {
  std::vector<Case> cases = some_cases(5, 2);
  for (const Case& c : some_arithmetic_cases()) cases.push_back(c);
  std::erase_if(cases, [=](const Case& c) { return !c.trains() || c.spec.draws_masks() != masks; });
  return cases;
}

/// Small enough for numbers with bounds, one row at a time.
std::vector<Case> small_ones_with_masks() {
  std::vector<Case> cases = that_train(true);
  std::erase_if(cases, [](const Case& c) {
    return c.time * c.batch * c.batch * params_size(c.spec) > 2'000'000;
  });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cases, CpuSamples, testing::ValuesIn(that_train(false)), name_of);
INSTANTIATE_TEST_SUITE_P(Cases, CpuSampleBits, testing::ValuesIn(some_cases(9)), name_of);
INSTANTIATE_TEST_SUITE_P(Cases, SamplesOfMasks, testing::ValuesIn(small_ones_with_masks()),
                         name_of);

}  // namespace
}  // namespace openrnn::conformance
