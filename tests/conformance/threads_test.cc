// Calls with enough work that threads divide it, in every way that there is.
#include <gtest/gtest.h>

#include <set>

#include "conformance/support/bounds.h"
#include "conformance/support/machine.h"
#include "cpu/plan/plan.h"

namespace openrnn::conformance {
namespace {

std::vector<Case> cases() {
  std::vector<Case> list;
  const auto add = [&list](const std::string& text, const std::string& reason) {
    list.push_back(parse_case(text, reason));
  };
  for (const std::string mode : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
    if (reduced() && mode != "lstm") continue;
    add(mode + " L2 U33 I17 B130 T3 f32", "rows");
    add(mode + " L2 U33 I15 B33 T7 bi f64 lengths batch_major", "rows_and_directions");
    add(mode + " L1 U130 I130 B1 T17 f32", "panels");
    add(mode + " L2 U130 I33 B1 T7 bi f32", "panels_and_directions");
    add(mode + " L2 U130 I3 B2 T9 bi f16 lengths", "two_rows");
    add(mode + " L2 U130 I3 B2 T9 bi b16 lengths", "two_rows");
    add(mode + " L2 U130 I130 B3 T5 skip f32 D0.5", "dropout");
    add(mode + " L3 U65 I65 B5 T7 auto f64 lengths", "three_layers");
    add(mode + " L4 U33 I17 B1 T37 f32", "layers");
    add(mode + " L5 U17 I17 B2 T49 f64 lengths batch_major skip", "layers_and_lengths");
    add(mode + " L4 U33 I3 B2 T31 f16 lengths", "layers_of_16_bits");
    add(mode + " L4 U33 I17 B1 T37 f32 D0.5", "layers_and_dropout");
  }
  for (const std::string arithmetic :
       {"bf16", "bf16x3", "stored_int8", "stored_bfloat16", "stored_float16"}) {
    add("lstm L2 U33 I17 B130 T3 f32 " + arithmetic, "rows");
    add("gru L1 U130 I130 B1 T17 f32 " + arithmetic, "panels");
    add("lstm L2 U130 I33 B1 T7 bi f32 " + arithmetic, "panels_and_directions");
    add("gru L2 U130 I3 B2 T9 bi f16 lengths " + arithmetic, "two_rows");
    add("lstm L2 U130 I33 B3 T5 P33 f32 lengths " + arithmetic, "projection");
    add("lstm L4 U33 I33 B2 T31 f32 lengths " + arithmetic, "layers");
  }
  add("lstm L2 U130 I33 B3 T5 P33 f32 lengths", "projection");
  add("lstm L1 U130 I33 B1 T9 P65 bi f64 clip", "projection_and_clip");
  add("lstm L2 U130 I130 B7 T3 P130 f16 skip", "projection_is_off");
  return list;
}

/// With a training call that saves nothing where that is not inference.
Result run_calls(const Case& c, const Data& d) {
  Result result = run_all(cpu(), c, d);
  if (!c.trains() || !c.spec.draws_masks()) return result;
  ForwardBuffers out = forward_buffers(c);
  cpu().forward(
      forward_args(c, d, out, cpu().pack(c.spec, d.params.view(), PackFor::kTraining), true));
  append_forward(result, "unsaved ", std::move(out));
  return result;
}

class CpuThreads : public testing::TestWithParam<Case> {};

TEST_P(CpuThreads, ChangeNoBit) {
  const Case& c = GetParam();
  const Data d = make_data(c);
  Result expected;
  {
    const ForcedThreads one(1);
    expected = run_calls(c, d);
  }
  EXPECT_EQ(compare(bounds_of(c, d), expected).failure, "");
  for (const int threads : {2, 3, 4}) {
    const ForcedThreads many(threads);
    EXPECT_EQ(first_difference(expected, run_calls(c, d)), "") << threads << " threads";
  }
}

TEST_P(CpuThreads, OfOtherInstructionSetsChangeNoBit) {
  const Case& c = GetParam();
  const Data d = make_data(c);
  const Result expected = run_all(cpu(), c, d);
  for (const std::string_view isa : available_cpu_isas()) {
    if (kind_on(isa, c.spec) != cpu().math_kind(c.spec)) continue;
    const ForcedIsa forced(isa);
    const ForcedThreads two(2);
    EXPECT_EQ(first_difference(expected, run_all(cpu(), c, d)), "") << isa;
  }
}

TEST_P(CpuThreads, MayWriteStatesInPlace) {
  const Case& c = GetParam();
  const Data d = make_data(c);
  const Result expected = run_inference(cpu(), c, d);
  const auto packed = cpu().pack(c.spec, d.params.view(), PackFor::kInference);
  for (const int threads : {1, 2, 4}) {
    const ForcedThreads many(threads);
    ForwardBuffers out = forward_buffers(c);
    Data given = d;
    ForwardArgs args = forward_args(c, given, out, packed, false);
    args.hn = given.h0.data();
    if (c.spec.has_cell()) args.cn = given.c0.data();
    cpu().forward(args);
    Result found;
    append_forward(found, "", {std::move(out.y), std::move(given.h0), std::move(given.c0)});
    EXPECT_EQ(first_difference(expected, found), "") << threads << " threads";
  }
}

// Every option of a cell, whose units are divided among threads.
class CpuThreadsOfOptions : public testing::TestWithParam<std::string> {};

TEST_P(CpuThreadsOfOptions, ChangeNoBit) {
  for (const char* const size : {" L1 U130 I65 B1 T11 f32 ", " L2 U130 I5 B2 T3 bi f16 lengths "}) {
    const std::string text = GetParam();
    const std::size_t mode = text.find(' ');
    const Case c = parse_case(text.substr(0, mode) + size + text.substr(mode), "options");
    const Data d = make_data(c);
    Result expected;
    {
      const ForcedThreads one(1);
      expected = run_calls(c, d);
    }
    const ForcedThreads four(4);
    EXPECT_EQ(first_difference(expected, run_calls(c, d)), "") << c.text;
  }
}

std::vector<std::string> options() {
  std::vector<std::string> list;
  for (const std::string mode : {"lstm", "gru", "gru reset_before", "rnn_tanh", "rnn_relu"}) {
    for (const char* option :
         {" gate_clip", " P33", " skip I130", " P9 proj_clip", " zone=0.25", " drop_state=0.5",
          " drop_candidate=0.5", " D0.5 zone=0.5 drop_state=0.25"}) {
      const bool projects = mode == "gru reset_before" && option[1] == 'P';
      if (!projects) list.push_back(mode + option);
    }
  }
  for (const char* option :
       {" zone_cell=0.5", " zone=0.25 zone_cell=0.5 P33", " coupled peepholes", " clip forget",
        " out=relu gates=hard_sigmoid", " norm=products", " norm=gates",
        " norm=products cell_norm=output P33", " norm=gates cell_norm=carried clip peepholes"}) {
    list.push_back(std::string("lstm") + option);
  }
  for (const char* option : {" norm=products", " norm=split_products"}) {
    list.push_back(std::string("gru") + option);
  }
  for (const std::string arithmetic : {" bf16", " bf16x3", " stored_int8", " stored_bfloat16"}) {
    for (const char* network : {"lstm peepholes zone=0.25 P33", "gru reset_before",
                                "gru norm=products", "lstm norm=gates D0.5"}) {
      list.push_back(network + arithmetic);
    }
  }
  return list;
}

INSTANTIATE_TEST_SUITE_P(Cases, CpuThreadsOfOptions, testing::ValuesIn(options()),
                         [](const auto& at) { return test_name(at.param); });

/// The cases above are worth nothing if the engine would run them all in one way.
TEST(CpuPlans, AreAllMet) {
  std::set<std::string> met;
  for (const Case& c : cases()) {
    for (const int threads : {2, 3, 4}) {
      const std::size_t element = c.spec.dtype == DType::kFloat64 ? 8 : 4;
      cpu::PlanQuestion question{
          c.spec, c.batch, 16, element, threads, cpu::kNearRates, cpu::kNearBarrierLatency};
      if (c.spec.num_dirs() == 1 && c.spec.num_layers > 1) question.wave_time = c.time;
      const cpu::Plan plan = cpu::choose_plan(question);
      const std::string kind = std::string(plan.layer_groups > 1 ? "layers" : "") +
                               (plan.row_groups > 1 ? "rows " : "") +
                               (plan.dir_groups > 1 ? "directions " : "") +
                               (plan.panel_threads > 1 ? "panels" : "");
      met.insert(kind);
    }
  }
  for (const char* kind : {"rows ", "panels", "directions ", "directions panels", "layers"}) {
    EXPECT_TRUE(met.contains(kind)) << "no case runs by " << kind;
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, CpuThreads, testing::ValuesIn(cases()),
                         [](const auto& at) { return test_name(at.param); });

}  // namespace
}  // namespace openrnn::conformance
