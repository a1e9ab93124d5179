// The same bits whatever the instruction set, the threads, the other rows and the cuts in time.
#include <gtest/gtest.h>

#include <map>

#include "conformance/support/grid.h"
#include "conformance/support/machine.h"
#include "conformance/support/parts.h"
#include "reference/network.h"

namespace openrnn::conformance {
namespace {

class CpuBits : public testing::TestWithParam<Case> {};
class CpuSameFunction : public testing::TestWithParam<Case> {};
class CpuRows : public testing::TestWithParam<Case> {};
class CpuCuts : public testing::TestWithParam<Case> {};

TEST_P(CpuBits, DependOnNeitherInstructionSetNorThreads) {
  const Case& c = GetParam();
  const Data d = make_data(c);
  const auto run = [&](std::string_view isa, int threads) {
    const ForcedIsa forced(isa);
    const ForcedThreads on(threads);
    return run_all(cpu(), c, d);
  };
  // Two kinds are two functions; on the instruction sets of one kind it is one.
  std::map<std::string, Result> expected;
  for (const std::string_view isa : tested_isas(c.spec)) {
    const std::string kind = kind_on(isa, c.spec);
    expected.try_emplace(kind, run(isa, 1));
    for (const int threads : {1, 2, 3, 4}) {
      EXPECT_EQ(first_difference(expected[kind], run(isa, threads)), "")
          << isa << " on " << threads << " threads";
    }
  }
}

TEST_P(CpuSameFunction, AsFloat32) {
  Case c = GetParam();
  Data d = make_data(c);
  const Result found = run_all(cpu(), c, d);
  // Weights stored in a smaller type are float32 of that value, whatever the arithmetic after it.
  reference::Network net = reference::make_network(c.spec);
  std::vector<double> values;
  for (std::int64_t k = 0; k < d.params.size(); ++k) values.push_back(element(d.params.view(), k));
  reference::store_weights(net, values);
  d.params = cast(Array::of<double>({d.params.size()}, values).view(), c.spec.dtype);
  c.spec.compute.weights_dtype = WeightsDType::kNone;
  c.spec.compute.math = Math::kFloat32;
  EXPECT_EQ(first_difference(found, run_all(cpu(), c, d)), "");
}

TEST_P(CpuRows, DependOnNoOtherRow) {
  const Case& c = GetParam();
  const Data d = make_data(c);
  const Result whole = run_all(cpu(), c, d);
  const std::int64_t stride = c.batch > 20 ? 13 : 1;
  for (std::int64_t b = 0; b < c.batch; b += stride) {
    const Case row = row_case(c, b);
    const Result alone = run_all(cpu(), row, row_data(c, d, b));
    ASSERT_EQ(first_difference(row_result(c, whole, b), row_result(row, alone, 0)), "")
        << "row " << b;
  }
}

/// The steps [first, first + count) as one call that goes on from the states in `states`.
void run_piece(const Case& c, const Data& d, std::int64_t first, std::int64_t count, bool training,
               ForwardBuffers& states, Array& y) {
  Case piece = c;
  piece.time = count;
  piece.null_states = false;
  for (std::int32_t& length : piece.lengths) {
    length = static_cast<std::int32_t>(std::clamp<std::int64_t>(length - first, 0, count));
  }
  Data part = d;
  part.x = take(d.x, time_cut(c, c.spec.input_size, first, count));
  ForwardBuffers out = forward_buffers(piece);
  const PackFor purpose = training ? PackFor::kTraining : PackFor::kInference;
  ForwardArgs args =
      forward_args(piece, part, out, cpu().pack(c.spec, d.params.view(), purpose), training);
  args.h0 = args.hn = states.hn.data();
  if (c.spec.has_cell()) args.c0 = args.cn = states.cn.data();
  if (training) {
    cpu().forward_saving(args);
  } else {
    cpu().forward(args);
  }
  y = std::move(out.y);
}

void expect_same_in_pieces(const Case& c, const Data& d, std::int64_t length, bool training) {
  Result whole = training ? run_training(cpu(), c, d) : run_inference(cpu(), c, d);
  const std::string prefix = training ? "" : "inference ";
  ForwardBuffers states{Array(c.spec.dtype, {0}), d.h0, d.c0};
  if (c.null_states) {
    std::memset(states.hn.data(), 0, states.hn.size_bytes());
    if (c.spec.has_cell()) std::memset(states.cn.data(), 0, states.cn.size_bytes());
  }
  Result expected, found;
  for (std::int64_t first = 0; first < c.time; first += length) {
    const std::int64_t count = std::min(length, c.time - first);
    Array y;
    run_piece(c, d, first, count, training, states, y);
    const std::string name = "y from step " + std::to_string(first);
    const Cut cut = time_cut(c, c.spec.output_size(), first, count);
    expected.parts.emplace_back(name, take(whole[prefix + "y"], cut));
    found.parts.emplace_back(name, std::move(y));
  }
  expected.parts.emplace_back("hn", whole[prefix + "hn"]);
  found.parts.emplace_back("hn", std::move(states.hn));
  if (c.spec.has_cell()) {
    expected.parts.emplace_back("cn", whole[prefix + "cn"]);
    found.parts.emplace_back("cn", std::move(states.cn));
  }
  EXPECT_EQ(first_difference(expected, found), "") << "pieces of " << length;
}

TEST_P(CpuCuts, ChangeNothing) {
  const Case& c = GetParam();
  const Data d = make_data(c);
  for (const std::int64_t length : {1, 3}) {
    expect_same_in_pieces(c, d, length, false);
    if (c.trains()) expect_same_in_pieces(c, d, length, true);
  }
}

// The input's product is made for some hundred rows at a time; a piece here is one such chunk.
TEST(CpuChunks, ChangeNothing) {
  for (const char* text :
       {"lstm L2 U17 I3 B7 T200 f32", "gru L1 U9 I4 B5 T260 f64 lengths",
        "rnn_tanh L1 U33 I2 B3 T400 f16 batch_major", "gru L1 U17 I2 B3 T300 b16 lengths"}) {
    const Case c = parse_case(text, "more rows than a chunk");
    const Data d = make_data(c);
    for (const bool training : {false, true}) expect_same_in_pieces(c, d, 60, training);
  }
}

// A state is carried as it is stored, whichever option the cell computes it with.
TEST(CpuCutsOfOptions, ChangeNothingInSixteenBits) {
  const std::vector<std::string> of_all = {
      "gate_clip",      "act=softsign",       "no_bias", "zone=0.25",
      "drop_state=0.5", "drop_candidate=0.5", "P7",      "P7 proj_clip gate_clip"};
  const std::vector<std::string> of_lstm = {"clip",
                                            "forget",
                                            "peepholes",
                                            "coupled",
                                            "gates=hard_sigmoid",
                                            "out=elu(0.7)",
                                            "zone_cell=0.5",
                                            "clip peepholes P5",
                                            "norm=products cell_norm=carried",
                                            "norm=gates cell_norm=output"};
  const std::vector<std::string> of_gru = {
      "reset_before",  "reset_before gate_clip", "reset_before zone=0.25", "gates=hard_sigmoid",
      "norm=products", "norm=split_products",    "zone_cell=0.25 P5"};
  for (const std::string mode : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
    std::vector<std::string> options = of_all;
    if (mode == "lstm") options.insert(options.end(), of_lstm.begin(), of_lstm.end());
    if (mode == "gru") options.insert(options.end(), of_gru.begin(), of_gru.end());
    for (const std::string& option : options) {
      for (const char* dtype : {" f16", " b16"}) {
        const Case c = parse_case(mode + " L1 U17 I5 B3 T5 " + option + dtype, "sixteen bits");
        SCOPED_TRACE(c.text);
        const Data d = make_data(c);
        for (const std::int64_t length : {1, 2}) {
          expect_same_in_pieces(c, d, length, false);
          if (!c.spec.draws_masks()) expect_same_in_pieces(c, d, length, true);
        }
      }
    }
  }
}

std::string name_of(const testing::TestParamInfo<Case>& at) {
  return "n" + std::to_string(at.index) + "_" + test_name(at.param);
}

std::vector<Case> float32_and_others() {
  std::vector<Case> cases = some_cases(5, 5);
  for (const Case& c : some_arithmetic_cases()) cases.push_back(c);
  return cases;
}

/// What is float32 by its definition: weights stored as a wider type than int8, in float32 storage,
/// where the float32 network can hold their values.
std::vector<Case> stored_in_float32() {
  std::vector<Case> cases = arithmetic_cases();
  std::erase_if(cases, [](const Case& c) {
    const WeightsDType stored = c.spec.compute.weights_dtype;
    return c.spec.dtype != DType::kFloat32 ||
           (stored != WeightsDType::kFloat16 && stored != WeightsDType::kBfloat16);
  });
  return cases;
}

/// A row's masks depend on its place and on its call, in training.
std::vector<Case> without_masks() {
  std::vector<Case> cases = float32_and_others();
  std::erase_if(cases, [](const Case& c) { return c.spec.draws_masks() && c.trains(); });
  return cases;
}

/// A backward direction needs the whole sequence.
std::vector<Case> that_can_be_cut() {
  std::vector<Case> cases = without_masks();
  std::erase_if(cases, [](const Case& c) { return c.spec.num_dirs() == 2; });
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Cases, CpuBits, testing::ValuesIn(float32_and_others()), name_of);
INSTANTIATE_TEST_SUITE_P(Cases, CpuSameFunction, testing::ValuesIn(stored_in_float32()), name_of);
INSTANTIATE_TEST_SUITE_P(Cases, CpuRows, testing::ValuesIn(without_masks()), name_of);
INSTANTIATE_TEST_SUITE_P(Cases, CpuCuts, testing::ValuesIn(that_can_be_cut()), name_of);

}  // namespace
}  // namespace openrnn::conformance
