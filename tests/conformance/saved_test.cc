// What forward saved is its own, and stays what it was; for every engine.
#include <gtest/gtest.h>

#include "conformance/support/grid.h"
#include "conformance/support/machine.h"
#include "conformance/support/run.h"

namespace openrnn::conformance {
namespace {

class Saved : public testing::TestWithParam<std::tuple<std::string, Case>> {
 protected:
  const Engine& subject() const { return engine(std::get<0>(GetParam())); }
  const Case& c() const { return std::get<1>(GetParam()); }
};

std::vector<Case> cases() {
  std::vector<Case> list = odd_cases();
  for (const char* mode : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
    for (const char* rest : {"f32", "f64 lengths", "f16 batch_major lengths", "bi f32", "b16"}) {
      list.push_back(parse_case(std::string(mode) + " L2 U17 I3 B5 T4 " + rest, "usual"));
    }
    list.push_back(parse_case(std::string(mode) + " L1 U16 I16 B5 T4 skip f32", "copies_x"));
    for (const char* math : {"bf16", "bf16x3"}) {
      if (tests_gpu()) continue;
      const std::string text = std::string(mode) + " L2 U17 I33 B5 T4 f32 lengths ";
      list.push_back(parse_case(text + math, "arithmetic"));
    }
  }
  return tests_gpu() ? of_cudnn(list) : list;
}

void overwrite(Array& values) {
  if (values.size_bytes()) std::memset(values.data(), 0x5A, values.size_bytes());
}

TEST_P(Saved, BackwardTwiceGivesTheSameBits) {
  const Data d = make_data(c());
  ForwardBuffers out = forward_buffers(c());
  const auto saved = subject().forward_saving(forward_args(
      c(), d, out, subject().pack(c().spec, d.params.view(), PackFor::kTraining), true));
  const Result first = run_backward(subject(), c(), d, *saved);
  EXPECT_EQ(first_difference(first, run_backward(subject(), c(), d, *saved)), "");
  // Another upstream gradient in between leaves no trace.
  run_backward(subject(), c(), make_data(c(), 2), *saved);
  EXPECT_EQ(first_difference(first, run_backward(subject(), c(), d, *saved)), "");
}

TEST_P(Saved, ParamsPackedForInferenceAreRefused) {
  const Data d = make_data(c());
  ForwardBuffers out = forward_buffers(c());
  const ForwardArgs args = forward_args(
      c(), d, out, subject().pack(c().spec, d.params.view(), PackFor::kInference), true);
  try {
    subject().forward_saving(args);
    FAIL() << "no error";
  } catch (const StateError& error) {
    EXPECT_STREQ(error.what(),
                 "[forward_saving] params are packed for inference, expected them packed for "
                 "training");
  }
}

TEST_P(Saved, AbsentGradientsOfStatesAreZeros) {
  const Data d = make_data(c());
  ForwardBuffers out = forward_buffers(c());
  const auto saved = subject().forward_saving(forward_args(
      c(), d, out, subject().pack(c().spec, d.params.view(), PackFor::kTraining), true));
  for (Array Data::*const state : {&Data::dhn, &Data::dcn}) {
    Data zero = d, absent = d;
    if ((zero.*state).size_bytes())
      std::memset((zero.*state).data(), 0, (zero.*state).size_bytes());
    absent.*state = Array();
    const Result expected = run_backward(subject(), c(), zero, *saved);
    // What this one leaves in the engine's memory is not read.
    run_backward(subject(), c(), d, *saved);
    EXPECT_EQ(first_difference(expected, run_backward(subject(), c(), absent, *saved)), "");
  }
}

TEST_P(Saved, KeepsNoMemoryOfTheCallers) {
  const Data d = make_data(c());
  const Result expected = run_training(subject(), c(), d);
  Data given = d;
  Case call = c();
  ForwardBuffers out = forward_buffers(call);
  auto packed = subject().pack(call.spec, given.params.view(), PackFor::kTraining);
  overwrite(given.params);
  const auto saved = subject().forward_saving(forward_args(call, given, out, packed, true));
  packed.reset();
  for (Array* array : {&given.x, &given.h0, &given.c0, &out.y, &out.hn, &out.cn}) overwrite(*array);
  std::fill(call.lengths.begin(), call.lengths.end(), 12345);
  const Result gradients = run_backward(subject(), c(), d, *saved);
  Result wanted;
  for (const auto& [name, values] : gradients.parts)
    wanted.parts.emplace_back(name, expected[name]);
  EXPECT_EQ(first_difference(wanted, gradients), "");
}

TEST_P(Saved, ForwardIsTheSameWithAndWithoutSaving) {
  if (tests_gpu() && !pretends()) GTEST_SKIP() << "cuDNN's two modes are two computations";
  const Data d = make_data(c());
  ForwardBuffers out = forward_buffers(c());
  const auto packed = subject().pack(c().spec, d.params.view(), PackFor::kTraining);
  subject().forward(forward_args(c(), d, out, packed, true));
  Result expected, found = run_training(subject(), c(), d);
  append_forward(expected, "", std::move(out));
  EXPECT_EQ(first_difference(expected, found), "");
}

TEST_P(Saved, StatesMayStayInPlace) {
  const Data d = make_data(c());
  const Result expected = run_inference(subject(), c(), d);
  ForwardBuffers out = forward_buffers(c());
  Data given = d;
  Case call = c();
  ForwardArgs args = forward_args(
      call, given, out, subject().pack(call.spec, d.params.view(), PackFor::kInference), false);
  if (call.null_states) return;  // nothing to keep in place
  args.hn = given.h0.data();
  if (call.spec.has_cell()) args.cn = given.c0.data();
  subject().forward(args);
  Result found;
  found.parts.emplace_back("y", std::move(out.y));
  found.parts.emplace_back("hn", std::move(given.h0));
  if (call.spec.has_cell()) found.parts.emplace_back("cn", std::move(given.c0));
  EXPECT_EQ(first_difference(found, expected), "");
}

INSTANTIATE_TEST_SUITE_P(Engines, Saved,
                         testing::Combine(testing::ValuesIn(tested_engines()),
                                          testing::ValuesIn(cases())),
                         [](const auto& at) {
                           return std::get<0>(at.param) + "_n" + std::to_string(at.index) + "_" +
                                  test_name(std::get<1>(at.param));
                         });

}  // namespace
}  // namespace openrnn::conformance
