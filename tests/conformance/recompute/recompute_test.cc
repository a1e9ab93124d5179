// A backward pass that computes its forward pass again gives the bits of one that kept everything.
#include <gtest/gtest.h>

#include <limits>

#include "conformance/support/grid.h"
#include "conformance/support/machine.h"
#include "conformance/support/run.h"
#include "engine/sum_order.h"

namespace openrnn::conformance {
namespace {

class Recompute : public testing::TestWithParam<Case> {};

// The odd networks over several chunks, and every kind at lengths around the borders.
std::vector<Case> cases() {
  std::vector<Case> list;
  std::int64_t turn = 0;
  for (Case c : odd_cases()) {
    if (c.time == 0 || c.batch == 0) {
      list.push_back(c);
      continue;
    }
    const bool lengths = !c.lengths.empty();
    c.time = std::array{65, 96, 33, 97, 70}[static_cast<std::size_t>(turn++ % 5)];
    c.text += " over T" + std::to_string(c.time);
    if (lengths) c.lengths = uneven_lengths(c.time, c.batch);
    list.push_back(std::move(c));
  }
  for (const char* mode : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
    for (const char* rest :
         {"L2 U17 I3 B5 T100 f32", "L1 U33 I15 B18 T64 f32 lengths", "L3 U7 I3 B3 T130 bi f32",
          "L2 U15 I5 B7 T100 bi f64 lengths batch_major", "L2 U16 I16 B3 T67 skip f16 batch_major",
          "L1 U130 I33 B3 T35 f32 null_states", "L2 U3 I3 B1 T1 bi f32",
          "L2 U7 I3 B6 T99 bi D0.5 f16 lengths", "L3 U7 I7 B5 T66 D0.3 f32 lengths",
          "L2 U17 I33 B5 T70 f32 lengths bf16", "L2 U17 I33 B5 T70 bi f32 bf16x3"}) {
      list.push_back(parse_case(std::string(mode) + " " + rest, "several_chunks"));
    }
  }
  // Products whose weights take several spans, and many rows in a group.
  list.push_back(parse_case("lstm L2 U140 I520 B33 T40 f32 lengths", "large"));
  list.push_back(parse_case("gru L2 U140 I9 B33 T40 bi f32", "large"));
  return list;
}

Result train(const Case& c, const Data& d, std::int64_t recompute, int threads,
             bool states = true) {
  const Engine& cpu = engine("cpu");
  ForwardBuffers out = forward_buffers(c);
  ForwardArgs args =
      forward_args(c, d, out, cpu.pack(c.spec, d.params.view(), PackFor::kTraining), true);
  args.recompute = recompute;
  args.max_threads = threads;
  const auto saved = cpu.forward_saving(args);
  Result result;
  append_forward(result, "", std::move(out));
  Data given = d;
  if (!states) given.dhn = given.dcn = Array();
  for (auto& part : run_backward(cpu, c, given, *saved).parts) {
    result.parts.push_back(std::move(part));
  }
  // What was kept is not used up.
  const Result again = run_backward(cpu, c, given, *saved);
  for (std::size_t n = 0; n < again.parts.size(); ++n) {
    result.parts.emplace_back("again " + again.parts[n].first, again.parts[n].second);
  }
  return result;
}

TEST_P(Recompute, GivesTheSameBits) {
  const ForcedThreads threads(4);
  const Case& c = GetParam();
  const Data d = make_data(c);
  const Result kept = train(c, d, 0, 1);
  for (const std::int64_t steps : {kRecomputeRoot, std::int64_t{1}, std::int64_t{64}}) {
    EXPECT_EQ(first_difference(kept, train(c, d, steps, 1)), "") << steps << " steps";
  }
  EXPECT_EQ(first_difference(kept, train(c, d, 32, 2)), "");
  EXPECT_EQ(first_difference(kept, train(c, d, 32, 4)), "");
  EXPECT_EQ(first_difference(kept, train(c, d, 10000, 1)), "");
  EXPECT_EQ(first_difference(train(c, d, 0, 1, false), train(c, d, 32, 1, false)), "");
}

// Only what is wanted: each of the gradients alone.
TEST_P(Recompute, ComputesAnyPartOfTheGradient) {
  const Case& c = GetParam();
  const Data d = make_data(c);
  const Engine& cpu = engine("cpu");
  const Result kept = train(c, d, 0, 1);
  ForwardBuffers out = forward_buffers(c);
  ForwardArgs call =
      forward_args(c, d, out, cpu.pack(c.spec, d.params.view(), PackFor::kTraining), true);
  call.recompute = 32;
  const auto saved = cpu.forward_saving(call);
  for (const char* const part : {"dx", "dh0", "dc0", "dparams"}) {
    const Array& expected = kept[part];
    Array found = random_array(c.spec.dtype, expected.size(), 5, 6, 1);
    const std::string name = part;
    BackwardArgs args{.saved = saved.get(), .dy = d.dy.data(), .dhn = d.dhn.data()};
    if (c.spec.has_cell()) args.dcn = d.dcn.data();
    if (name == "dx") args.dx = found.data();
    if (name == "dh0") args.dh0 = found.data();
    if (name == "dc0" && c.spec.has_cell()) args.dc0 = found.data();
    if (name == "dparams") args.dparams = found.data();
    cpu.backward(args);
    Result one, other;
    one.parts.emplace_back(part, expected);
    other.parts.emplace_back(part, std::move(found));
    EXPECT_EQ(first_difference(one, other), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Cpu, Recompute, testing::ValuesIn(cases()),
                         [](const auto& param) { return test_name(param.param); });

// Chunks that no row reaches are not computed, and the gradients of their inputs are zeros.
TEST(RecomputeSteps, ThoseThatNoRowReachesHaveNoGradient) {
  for (const char* const text :
       {"lstm L2 U7 I3 B3 T100 f32 lengths", "gru L1 U5 I3 B3 T70 bi f64 lengths",
        "rnn_tanh L2 U9 I4 B3 T130 f16 lengths batch_major"}) {
    Case c = parse_case(text, "short_rows");
    for (const std::vector<std::int32_t>& lengths :
         {std::vector<std::int32_t>{20, 0, 31}, std::vector<std::int32_t>{0, 0, 0},
          std::vector<std::int32_t>{33, 64, 1}}) {
      c.lengths = lengths;
      const Data d = make_data(c);
      EXPECT_EQ(first_difference(train(c, d, 0, 1), train(c, d, 32, 2)), "") << text;
    }
  }
}

// What every layer leaves is written by the forward pass alone.
TEST(RecomputeSteps, LeaveWhatEveryLayerGave) {
  for (const char* const text :
       {"lstm L2 U7 I3 B3 T70 f32 lengths batch_major", "lstm L2 U5 I3 B2 T70 bi f64"}) {
    Case c = parse_case(text, "every_layer");
    if (!c.lengths.empty()) c.lengths = {70, 33, 5};
    const Data d = make_data(c);
    const std::int64_t width = c.spec.num_dirs() * c.spec.num_units;
    const auto run = [&](std::int64_t recompute) {
      ForwardBuffers out = forward_buffers(c);
      ForwardArgs args =
          forward_args(c, d, out, cpu().pack(c.spec, d.params.view(), PackFor::kTraining), true);
      args.recompute = recompute;
      Result every;
      std::vector<void*> pointers;  // the outputs of both layers, then their cells
      for (const char* const name : {"output 0", "output 1", "cell 0", "cell 1"}) {
        every.parts.emplace_back(name, random_array(c.spec.dtype, c.seq_size(width), 5, 6, 7));
      }
      for (auto& part : every.parts) pointers.push_back(part.second.data());
      args.layer_outputs = pointers.data();
      args.layer_cells = pointers.data() + 2;
      const auto saved = cpu().forward_saving(args);
      run_backward(cpu(), c, d, *saved);
      return every;
    };
    EXPECT_EQ(first_difference(run(0), run(32)), "") << text;
  }
}

TEST(RecomputeSteps, AreWholeGroupsOfTheSums) {
  EXPECT_EQ(recompute_steps(0, 100), 0);
  EXPECT_EQ(recompute_steps(1, 100), kGradientSteps);
  EXPECT_EQ(recompute_steps(33, 100), 64);
  EXPECT_EQ(recompute_steps(kRecomputeRoot, 0), 32);
  EXPECT_EQ(recompute_steps(kRecomputeRoot, 512), 32);
  EXPECT_EQ(recompute_steps(kRecomputeRoot, 1024), 32);
  EXPECT_EQ(recompute_steps(kRecomputeRoot, 1100), 64);
  EXPECT_EQ(recompute_steps(kRecomputeRoot, 100000), 320);
  EXPECT_EQ(recompute_steps(std::numeric_limits<std::int64_t>::max(), 100), 128);
}

TEST(RecomputeSteps, OtherEnginesRefuseThem) {
  const Case c = parse_case("lstm L1 U3 I3 B2 T4 f32", "small");
  const Data d = make_data(c);
  const Engine& reference = engine("reference");
  ForwardBuffers out = forward_buffers(c);
  ForwardArgs args =
      forward_args(c, d, out, reference.pack(c.spec, d.params.view(), PackFor::kTraining), true);
  args.recompute = 32;
  try {
    reference.forward_saving(args);
    FAIL() << "no error";
  } catch (const UnsupportedError& error) {
    EXPECT_STREQ(error.what(),
                 "[forward_saving] engine 'reference' keeps all that backward reads and cannot "
                 "recompute it, expected save=True (recompute 0), or engine 'cpu'");
  }
  args.recompute = -2;
  EXPECT_THROW(reference.forward_saving(args), ArgumentError);
}

}  // namespace
}  // namespace openrnn::conformance
