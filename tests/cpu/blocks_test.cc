// Networks so wide that backward multiplies in parts of k, and so long that gradients of weights
// add up group by group: no bit may tell.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "conformance/support/machine.h"
#include "conformance/support/parts.h"
#include "cpu/cpu_engine.h"
#include "cpu/isa/isa.h"
#include "support/sum_model.h"

namespace openrnn::cpu {
namespace {

Array random_array(std::int64_t size, double range, std::uint64_t stream) {
  RandomStream random(9, stream);
  Array values(DType::kFloat32, {size});
  for (float& v : values.as<float>()) v = static_cast<float>(random.uniform(-range, 1.2 * range));
  return values;
}

bool same(const Array& a, const Array& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// Each way in which a backward pass multiplies by weights that do not stay in L2.
constexpr const char* kWide[] = {"lstm U600",
                                 "gru U600",
                                 "lstm U600 norm=products",
                                 "gru U600 norm=products",
                                 "lstm U600 norm=gates bi",
                                 "lstm U600 P500 zone=0.25",
                                 "gru U600 drop_state=0.5"};

class Wide : public testing::TestWithParam<const char*> {
 protected:
  static conformance::Case of(const std::string& network) {
    return conformance::parse_case(network + " L1 I37 B14 T2 f32 batch_major", "wide");
  }
  const conformance::Case c = of(GetParam());
  const conformance::Data d = make_data(c);

  // A training step of row b, whose masks are those that it has in the batch.
  conformance::Result run_row(std::int64_t b) const {
    const conformance::Case row = row_case(c, b);
    const conformance::Data own = row_data(c, d, b);
    conformance::ForwardBuffers out = forward_buffers(row);
    ForwardArgs args = forward_args(
        row, own, out, cpu_engine().pack(c.spec, own.params.view(), PackFor::kTraining), true);
    args.dropout.first_row = b;
    args.dropout.whole_batch = c.batch;
    return run_backward(cpu_engine(), row, own, *cpu_engine().forward_saving(args));
  }
};

TEST_P(Wide, RowsAloneHaveTheBitsOfTheBatch) {
  const conformance::Result all = run_training(cpu_engine(), c, d);
  for (std::int64_t b = 0; b < c.batch; b += 13) {
    const conformance::Result one = run_row(b), part = row_result(c, all, b);
    for (const char* const name : {"dx", "dh0"}) EXPECT_TRUE(same(one[name], part[name])) << name;
    if (c.spec.has_cell()) {
      EXPECT_TRUE(same(one["dc0"], part["dc0"]));
    }
  }
}

TEST_P(Wide, VectorWidthsAndThreadsAgree) {
  const conformance::Result want = run_training(cpu_engine(), c, d);
  for (const std::string_view isa : available_isas()) {
    if (isa == "scalar") continue;  // a minute of software arithmetic for no other path
    for (const int n : {1, 3}) {
      const conformance::ForcedIsa forced(isa);
      const conformance::ForcedThreads on(n);
      EXPECT_EQ(first_difference(want, run_training(cpu_engine(), c, d)), "") << isa << " " << n;
    }
  }
}

// A pass in chunks of 32 steps, each from the states that the one before left. Three rows make
// every chunk's gradient of the weights one span.
class Chunks : public testing::TestWithParam<RnnMode> {
 protected:
  static constexpr std::int64_t kRows = 3, kSteps = 70, kWidth = 17, kDepth = 9, kChunk = 32;
  struct Pass {
    std::unique_ptr<SavedForward> saved;
    Array y{DType::kFloat32, {kSteps * kRows * kWidth}}, hn{DType::kFloat32, {kRows * kWidth}},
        cn{DType::kFloat32, {kRows * kWidth}};
  };
  struct Back {
    Array dx{DType::kFloat32, {kSteps * kRows * kDepth}}, dh0{DType::kFloat32, {kRows * kWidth}},
        dc0{DType::kFloat32, {kRows * kWidth}}, dparams;
  };
  static float* part(Array& of, std::int64_t first) { return of.as<float>().data() + first; }

  Chunks() : params_(random_array(params_size(spec_), 0.3, 1)) {}

  Pass forward(std::int64_t first, std::int64_t last, Pass* before) {
    Pass pass;
    ForwardArgs args;
    args.params = cpu_engine().pack(spec_, params_.view(), PackFor::kTraining);
    args.max_time = last - first;
    args.batch = kRows;
    args.x = part(x_, first * kRows * kDepth);
    args.y = pass.y.data();
    args.hn = pass.hn.data();
    if (spec_.has_cell()) args.cn = pass.cn.data();
    if (before) args.h0 = before->hn.data();
    if (before && spec_.has_cell()) args.c0 = before->cn.data();
    pass.saved = cpu_engine().forward_saving(args);
    return pass;
  }
  Back backward(const Pass& pass, std::int64_t first, Back* after) {
    Back out;
    out.dparams = Array(DType::kFloat32, {params_size(spec_)});
    BackwardArgs args;
    args.saved = pass.saved.get();
    args.dy = part(dy_, first * kRows * kWidth);
    args.dx = out.dx.data();
    args.dh0 = out.dh0.data();
    if (spec_.has_cell()) args.dc0 = out.dc0.data();
    if (after) args.dhn = after->dh0.data();
    if (after && spec_.has_cell()) args.dcn = after->dc0.data();
    args.dparams = out.dparams.data();
    cpu_engine().backward(args);
    return out;
  }

  RnnSpec spec_{.mode = GetParam(), .num_units = kWidth, .input_size = kDepth};
  Array params_, x_ = random_array(kSteps * kRows * kDepth, 1, 2),
                 dy_ = random_array(kSteps * kRows * kWidth, 1, 3);
};

TEST_P(Chunks, AddUpToTheGradientOfTheWhole) {
  const Pass whole = forward(0, kSteps, nullptr);
  const Back want = backward(whole, 0, nullptr);
  std::vector<Pass> passes;
  for (std::int64_t first = 0; first < kSteps; first += kChunk) {
    passes.push_back(forward(first, std::min(first + kChunk, kSteps),
                             passes.empty() ? nullptr : &passes.back()));
  }
  Back after;
  std::vector<float> sum(static_cast<std::size_t>(params_.size()));
  for (auto i = static_cast<std::int64_t>(passes.size()) - 1; i >= 0; --i) {
    const std::int64_t first = i * kChunk;
    const bool last = first + kChunk >= kSteps;
    after = backward(passes[static_cast<std::size_t>(i)], first, last ? nullptr : &after);
    const auto added = after.dparams.as<float>();
    for (std::size_t p = 0; p < sum.size(); ++p) sum[p] = last ? added[p] : sum[p] + added[p];
  }
  EXPECT_TRUE(same(after.dh0, want.dh0));
  for (std::size_t p = 0; p < sum.size(); ++p) ASSERT_EQ(sum[p], want.dparams.as<float>()[p]) << p;
}

// Without recurrent weights the gate gradients follow from y and dy, one by one.
TEST(BiasGradients, AreSumsOfColumnsGroupByGroup) {
  constexpr std::int64_t kRows = 20, kSteps = 70, kWidth = 130;
  const RnnSpec spec{.mode = RnnMode::kRnnTanh, .num_units = kWidth, .input_size = 3};
  const ParamsLayout layout(spec);
  Array params = random_array(params_size(spec), 0.5, 1);
  const ParamRegion& recurrent = layout.weight(0, 0, ParamRole::kRecurrentWeight, 0);
  float* const weights = params.as<float>().data() + recurrent.offset;
  std::fill(weights, weights + recurrent.rows * recurrent.cols, 0.0f);
  const Array x = random_array(kSteps * kRows * 3, 1, 2);
  const Array dy = random_array(kSteps * kRows * kWidth, 1, 3);
  Array y(DType::kFloat32, {kSteps * kRows * kWidth}), dparams(DType::kFloat32, {params.size()});
  ForwardArgs args;
  args.params = cpu_engine().pack(spec, params.view(), PackFor::kTraining);
  args.max_time = kSteps;
  args.batch = kRows;
  args.x = x.data();
  args.y = y.data();
  const auto saved = cpu_engine().forward_saving(args);
  BackwardArgs back;
  back.saved = saved.get();
  back.dy = dy.data();
  back.dparams = dparams.data();
  cpu_engine().backward(back);

  const auto gradient = [&](std::int64_t t, std::int64_t b, std::int64_t unit) {
    const auto at = static_cast<std::size_t>((t * kRows + b) * kWidth + unit);
    const float h = y.as<float>()[at];
    return dy.as<float>()[at] * std::fma(-h, h, 1.0f);
  };
  for (std::int64_t unit = 0; unit < kWidth; ++unit) {
    float want = 0.0f;
    for (const std::int64_t first : {64, 32, 0}) {
      std::vector<float> group;
      for (std::int64_t t = first; t < std::min<std::int64_t>(first + 32, kSteps); ++t) {
        for (std::int64_t b = 0; b < kRows; ++b) group.push_back(gradient(t, b, unit));
      }
      for (std::size_t span = 0; span < group.size(); span += 512) {
        const std::size_t count = std::min<std::size_t>(512, group.size() - span);
        want += SumModel{}(std::span<const float>(group).subspan(span, count),
                           std::span<const float>{});
      }
    }
    for (const ParamRole role : {ParamRole::kInputBias, ParamRole::kRecurrentBias}) {
      const std::int64_t at = layout.bias(0, 0, role, 0).offset + unit;
      ASSERT_EQ(dparams.as<float>()[static_cast<std::size_t>(at)], want) << unit;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Modes, Chunks,
                         testing::Values(RnnMode::kRnnRelu, RnnMode::kRnnTanh, RnnMode::kLstm,
                                         RnnMode::kGru),
                         [](const auto& at) { return std::string(to_string(at.param)); });

INSTANTIATE_TEST_SUITE_P(Networks, Wide, testing::ValuesIn(kWide),
                         [](const auto& at) { return conformance::test_name(at.param); });

}  // namespace
}  // namespace openrnn::cpu
