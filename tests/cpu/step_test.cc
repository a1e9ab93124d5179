// One step of every cell from the definition of its sums, in float32 on every instruction set and
// in the arithmetics of AMX: the same bits.
#include <gtest/gtest.h>

#include <algorithm>

#include "cpu/cpu_engine.h"
#include "cpu/gemm/gemm.h"
#include "cpu/support/amx_model.h"
#include "openrnn/params.h"
#include "support/sum_model.h"

namespace openrnn::cpu {
namespace {

struct Size {
  std::int64_t units, inputs, batch;
};
constexpr Size kSizes[] = {{1, 1, 1},     {3, 33, 2},    {17, 7, 17},
                           {33, 130, 16}, {130, 15, 70}, {65, 600, 9}};

struct Step {
  RnnMode mode;
  Arithmetic kind;
};

Array random_array(std::int64_t size, std::uint64_t stream) {
  RandomStream random(77, stream);
  Array values(DType::kFloat32, {size});
  for (float& v : values.as<float>()) v = static_cast<float>(random.uniform(-0.7, 0.8));
  return values;
}

std::vector<float> row_of(const Array& from, std::int64_t row, std::int64_t width) {
  const float* at = from.as<float>().data() + row * width;
  return {at, at + width};
}

float applied(Unary function, float x) {
  float y = 0;
  apply(function, DType::kFloat32, &x, &y, 1);
  return y;
}
float sigmoid(float x) { return applied(Unary::kSigmoid, x); }
float tanh_of(float x) { return applied(Unary::kTanh, x); }

std::string name_of(const testing::TestParamInfo<Step>& at) {
  const std::string kind = at.param.kind == kExact ? "float32"
                           : at.param.kind == kAmx ? "amx"
                                                   : "bf16x3";
  return std::string(to_string(at.param.mode)) + "_" + kind;
}

class CellStep : public testing::TestWithParam<Step> {
 protected:
  // Empty where this processor can not even emulate it.
  static std::vector<std::string_view> isas() {
    if (GetParam().kind == kExact) return available_isas();
    if (has_emulation()) return {"amx_emulated"};
    return {};
  }
  static std::vector<std::pair<std::string_view, Size>> runs() {
    std::vector<std::pair<std::string_view, Size>> all;
    for (const std::string_view isa : isas()) {
      for (const Size& size : kSizes) all.emplace_back(isa, size);
    }
    return all;
  }
  void prepare(const Size& size) {
    const Math math = GetParam().kind == kExact ? Math::kFloat32
                      : GetParam().kind == kAmx ? Math::kBf16
                                                : Math::kBf16x3;
    spec_ = {.mode = GetParam().mode,
             .num_units = size.units,
             .input_size = size.inputs,
             .compute = {.math = math}};
    params_ = random_array(params_size(spec_), 1);
    // What row 0 has in its first unit is left to float32, and nothing is to be seen of it.
    const ParamsLayout layout(spec_);
    for (std::int64_t gate = 0; gate < spec_.num_gates(); ++gate) {
      const auto offset = layout.weight(0, 0, ParamRole::kRecurrentWeight, gate).offset;
      for (std::int64_t unit = 0; unit < size.units; ++unit) {
        params_.as<float>()[static_cast<std::size_t>(offset + unit * size.units)] = 0;
      }
    }
    canonical_ = params_to_canonical(ParamsLayout(spec_), params_.view());
    x_ = random_array(size.batch * size.inputs, 2);
    h0_ = random_array(size.batch * size.units, 3);
    h0_.as<float>()[0] = 0x1p127f;
    c0_ = random_array(size.batch * size.units, 4);
    batch_ = size.batch;
  }
  ForwardArgs args(PackFor purpose, Array& y) const {
    ForwardArgs args;
    args.params = cpu_engine().pack(spec_, params_.view(), purpose);
    args.max_time = 1;
    args.batch = batch_;
    args.x = x_.data();
    args.h0 = h0_.data();
    if (spec_.has_cell()) args.c0 = c0_.data();
    args.y = y.data();
    return args;
  }
  float bias(std::int64_t gate, std::int64_t unit, bool recurrent) const {
    const std::int64_t index = gate + (recurrent ? spec_.num_gates() : 0);
    return canonical_.biases[static_cast<std::size_t>(index)]
        .as<float>()[static_cast<std::size_t>(unit)];
  }
  float sum_of(const std::vector<float>& a, const std::vector<float>& w) const {
    if (GetParam().kind != kExact) {
      return model_sum(GetParam().kind, 0.0f, SplitNumbers(a), SplitNumbers(w));
    }
    return SumModel{}(std::span<const float>(a), std::span<const float>(w));
  }
  // W x, and R h.
  float input_sum(std::int64_t gate, std::int64_t unit, std::int64_t row) const {
    const Array& w = canonical_.weights[static_cast<std::size_t>(gate)];
    return sum_of(row_of(x_, row, spec_.input_size), row_of(w, unit, spec_.input_size));
  }
  float recurrent_sum(std::int64_t gate, std::int64_t unit, std::int64_t row) const {
    const Array& r = canonical_.weights[static_cast<std::size_t>(gate + spec_.num_gates())];
    return sum_of(row_of(h0_, row, spec_.num_units), row_of(r, unit, spec_.num_units));
  }
  float gate(std::int64_t g, std::int64_t unit, std::int64_t row) const {
    const float both = bias(g, unit, false) + bias(g, unit, true);
    return (recurrent_sum(g, unit, row) + input_sum(g, unit, row)) + both;
  }
  float state(const Array& states, std::int64_t unit, std::int64_t row) const {
    return states.as<float>()[static_cast<std::size_t>(row * spec_.num_units + unit)];
  }
  float expected(std::int64_t unit, std::int64_t row) const {
    if (spec_.mode == RnnMode::kLstm) {
      const float i = sigmoid(gate(0, unit, row)), f = sigmoid(gate(1, unit, row));
      const float g = tanh_of(gate(2, unit, row)), o = sigmoid(gate(3, unit, row));
      return o * tanh_of(std::fma(f, state(c0_, unit, row), i * g));
    }
    if (spec_.mode == RnnMode::kGru) {
      const float r = sigmoid(gate(0, unit, row)), z = sigmoid(gate(1, unit, row));
      const float hn = recurrent_sum(2, unit, row) + bias(2, unit, true);
      const float n = tanh_of(std::fma(r, hn, input_sum(2, unit, row) + bias(2, unit, false)));
      return std::fma(z, state(h0_, unit, row), (1.0f - z) * n);
    }
    const float sum = gate(0, unit, row);
    return spec_.mode == RnnMode::kRnnTanh ? tanh_of(sum) : std::max(sum, 0.0f);
  }

  RnnSpec spec_;
  Array params_, x_, h0_, c0_;
  CanonicalParams canonical_;
  std::int64_t batch_ = 0;
};

TEST_P(CellStep, IsItsDefinition) {
  if (isas().empty()) GTEST_SKIP() << kNoEmulation;
  for (const auto& [isa, size] : runs()) {
    const OnIsa on(isa);
    prepare(size);
    Array y = random_array(size.batch * size.units, 5), saved_y = y;
    cpu_engine().forward(args(PackFor::kInference, y));
    cpu_engine().forward_saving(args(PackFor::kTraining, saved_y));
    EXPECT_EQ(std::memcmp(y.data(), saved_y.data(), y.size_bytes()), 0);
    const FlushSubnormals flush;
    for (std::int64_t row = 0; row < size.batch; row += 1 + size.batch / 6) {
      for (std::int64_t unit = 0; unit < size.units; unit += 1 + size.units / 9) {
        const float got = state(y, unit, row), want = expected(unit, row);
        ASSERT_TRUE(same_number(got, want)) << "U " << size.units << " unit " << unit << " row "
                                            << row << ": " << got << " and " << want;
      }
    }
  }
}

std::vector<Step> all_steps() {
  std::vector<Step> steps;
  for (const Arithmetic kind : {kExact, kAmx, kBf16x3}) {
    for (const RnnMode mode :
         {RnnMode::kRnnRelu, RnnMode::kRnnTanh, RnnMode::kLstm, RnnMode::kGru}) {
      steps.push_back({mode, kind});
    }
  }
  return steps;
}
INSTANTIATE_TEST_SUITE_P(Cells, CellStep, testing::ValuesIn(all_steps()), name_of);

// With no later step dh is dy + dhn; backward of relu passes it on as da, so dx = da W, dh0 = da R.
class ReluBackward : public CellStep {};
TEST_P(ReluBackward, IsItsDefinition) {
  if (isas().empty()) GTEST_SKIP() << kNoEmulation;
  for (const auto& [isa, size] : runs()) {
    const OnIsa on(isa);
    prepare(size);
    Array y = random_array(size.batch * size.units, 5);
    const Array dy = random_array(size.batch * size.units, 6);
    Array dx = random_array(size.batch * size.inputs, 7), dh0 = random_array(y.size(), 8);
    const auto saved = cpu_engine().forward_saving(args(PackFor::kTraining, y));
    BackwardArgs back;
    back.saved = saved.get();
    back.dy = dy.data();
    back.dx = dx.data();
    back.dh0 = dh0.data();
    cpu_engine().backward(back);
    const FlushSubnormals flush;
    const auto expect = [&](const Array& got, const Array& matrix, std::int64_t width) {
      for (std::int64_t row = 0; row < size.batch; row += 1 + size.batch / 6) {
        std::vector<float> da = row_of(dy, row, size.units);
        const std::vector<float> h = row_of(y, row, size.units);
        for (std::size_t u = 0; u < da.size(); ++u) da[u] = h[u] > 0 ? da[u] : 0.0f;
        for (std::int64_t i = 0; i < width; i += 1 + width / 9) {
          std::vector<float> column;
          for (std::int64_t u = 0; u < size.units; ++u) {
            column.push_back(matrix.as<float>()[static_cast<std::size_t>(u * width + i)]);
          }
          const float want = sum_of(da, column);
          ASSERT_TRUE(same_number(got.as<float>()[static_cast<std::size_t>(row * width + i)], want))
              << size.units << " row " << row << " column " << i;
        }
      }
    };
    expect(dx, canonical_.weights[0], size.inputs);
    expect(dh0, canonical_.weights[1], size.units);
  }
}

INSTANTIATE_TEST_SUITE_P(Cells, ReluBackward,
                         testing::Values(Step{RnnMode::kRnnRelu, kExact},
                                         Step{RnnMode::kRnnRelu, kAmx},
                                         Step{RnnMode::kRnnRelu, kBf16x3}),
                         name_of);

}  // namespace
}  // namespace openrnn::cpu
