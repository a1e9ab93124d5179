// What forward saved is its own, and stays what it was; for every engine.
#include <gtest/gtest.h>

#include <functional>

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

/// The gradients of a layer, one region after another.
std::vector<double> gradients_of(const Case& c, const Array& dparams, std::int64_t layer) {
  const ParamsLayout layout(c.spec);
  std::vector<double> values;
  for (const auto& regions : {layout.weights(), layout.biases()}) {
    for (const ParamRegion& region : regions) {
      if (region.layer != layer) continue;
      for (std::int64_t i = 0; i < region.size(); ++i) {
        values.push_back(element(dparams.view(), region.offset + i));
      }
    }
  }
  return values;
}

/// The layers that a call tells of, each with what dparams holds of it then and at the end.
struct Told {
  std::vector<std::int64_t> layers;
  std::vector<std::vector<double>> then, last;
};

Told run_telling(const Case& c, std::int64_t recompute, bool wants_dparams) {
  const Data d = make_data(c);
  ForwardBuffers out = forward_buffers(c);
  ForwardArgs call =
      forward_args(c, d, out, cpu().pack(c.spec, d.params.view(), PackFor::kTraining), true);
  call.recompute = recompute;
  const auto saved = cpu().forward_saving(call);
  Array dparams = random_array(c.spec.dtype, params_size(c.spec), 5, 6, 4);
  Array dx = random_array(c.spec.dtype, c.seq_size(c.spec.input_size), 5, 6, 1);
  Told told;
  const std::function<void(std::int64_t)> tell = [&](std::int64_t layer) {
    told.layers.push_back(layer);
    told.then.push_back(gradients_of(c, dparams, layer));
  };
  BackwardArgs args{.saved = saved.get(), .dy = d.dy.data(), .dx = dx.data()};
  if (wants_dparams) args.dparams = dparams.data();
  args.layer_done = &tell;
  cpu().backward(args);
  for (const std::int64_t layer : told.layers) {
    told.last.push_back(gradients_of(c, dparams, layer));
  }
  return told;
}

TEST(LayerDone, IsToldOnceOfALayerWhoseGradientIsThereForGood) {
  if (tests_gpu()) GTEST_SKIP() << "the cpu engine tells";
  for (const int threads : {1, 3}) {
    const ForcedThreads on(threads);
    for (const char* const text :
         {"lstm L3 U33 I17 B5 T40 f32", "gru L3 U9 I5 B3 T70 bi f64 lengths",
          "rnn_tanh L3 U9 I5 B3 T70 f16 D0.5", "lstm L3 U9 I5 B2 T40 bi b16 P4",
          "gru L3 U17 I5 B3 T40 f32 norm=products"}) {
      const Case c = parse_case(text, "told");
      for (const std::int64_t recompute : {0, 32}) {
        const Told told = run_telling(c, recompute, true);
        EXPECT_EQ(told.then, told.last) << text << ", recompute " << recompute;
        // Others have no gradient there before the end of the call.
        const bool tells = recompute == 0 && !is_16_bit_float(c.spec.dtype);
        EXPECT_EQ(told.layers,
                  tells ? std::vector<std::int64_t>({2, 1, 0}) : std::vector<std::int64_t>())
            << text << ", recompute " << recompute;
        EXPECT_TRUE(run_telling(c, recompute, false).layers.empty()) << text;
      }
    }
  }
}

}  // namespace
}  // namespace openrnn::conformance
