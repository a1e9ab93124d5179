// What graphs compute is what is computed without them, bit by bit; and when they run.
#include <gtest/gtest.h>

#include <sstream>
#include <thread>

#include "cudnn/graphs/device_calls.h"

namespace openrnn::conformance {
namespace {

using openrnn::testing::Setting;

/// Networks of every mode, direction and dtype, in every form of a batch.
std::vector<Case> networks() {
  std::vector<Case> list;
  int n = 0;
  for (const std::string mode : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
    for (const std::string direction : {"", " bi"}) {
      for (const std::string dtype : {" f16", " f32", " f64"}) {
        const std::string forms[] = {"", " lengths", " batch_major", " batch_major lengths",
                                     " null_states"};
        const std::string form = forms[n++ % 5];
        list.push_back(parse_case(mode + " L2 U7 I5 B3 T4" + direction + dtype + form, "network"));
      }
    }
  }
  for (const char* text : {"lstm L2 U8 I6 B3 T5 P5 bi f32 lengths", "gru L2 U7 I7 B3 T4 skip f64",
                           "lstm L1 U16 I16 B8 T3 f16", "lstm L1 U5 I3 B1 T1 f32 batch_major"}) {
    list.push_back(parse_case(text, "network"));
  }
  return list;
}

class CudnnReplay : public WithoutGraphs, public ::testing::WithParamInterface<Case> {};

class CudnnGraphs : public WithoutGraphs {};

TEST_P(CudnnReplay, GivesTheSameBits) {
  const Case& c = GetParam();
  const std::vector<Data> data = {make_data(c, 1), make_data(c, 2), make_data(c, 3)};
  const auto params = packed_of(c, data[0]);
  std::vector<Result> inference, training;
  for (const Data& d : data) inference.push_back(inferred(c, d, params));
  for (const Data& d : data) training.push_back(trained(c, d, params));
  const Graphs graphs;
  const Launches launches;
  // The first of each kind runs as without.
  for (const std::size_t n : {0, 1, 2, 0}) {
    EXPECT_EQ(first_difference(inference[n], inferred(c, data[n], params)), "") << n;
    EXPECT_EQ(first_difference(training[n], trained(c, data[n], params)), "") << n;
  }
  launches.expect(3 + 2 * 3);
}

INSTANTIATE_TEST_SUITE_P(Networks, CudnnReplay, ::testing::ValuesIn(networks()),
                         [](const auto& at) {
                           return "n" + std::to_string(at.index) + "_" + test_name(at.param);
                         });

Case case_of(const std::string& text) { return parse_case(text, "graphs"); }

TEST_F(CudnnGraphs, NothingIsRecordedUnlessItIsWanted) {
  const Case c = case_of("lstm L2 U11 I5 B3 T4 f32");
  const Data d = make_data(c);
  const auto params = packed_of(c, d);
  const Launches launches;
  const Setting off("OPENRNN_CUDA_GRAPHS", "0");
  for (int n = 0; n < 3; ++n) trained(c, d, params);
  launches.expect(0);
  EXPECT_EQ(gpu().engine()->description().find(", graphs"), std::string::npos);
  const Graphs graphs;
  EXPECT_NE(gpu().engine()->description().find(", graphs"), std::string::npos);
  const Setting unknown("OPENRNN_CUDA_GRAPHS", "yes");
  EXPECT_THROW(trained(c, d, params), ArgumentError);
}

TEST_F(CudnnGraphs, ReadsTheWeightsThatTheCallHas) {
  const Case c = case_of("gru L2 U12 I5 B3 T4 bi f32");
  std::vector<Data> data;
  std::vector<Result> expected;
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    data.push_back(make_data(c, seed));
    expected.push_back(trained(c, data.back(), packed_of(c, data.back())));
  }
  const Graphs graphs;
  // Parameters that replace others, often where those lay.
  for (int round = 0; round < 2; ++round) {
    for (std::size_t n = 0; n < data.size(); ++n) {
      EXPECT_EQ(first_difference(expected[n], trained(c, data[n], packed_of(c, data[n]))), "") << n;
    }
  }
  // Two that are in use at once.
  const auto first = packed_of(c, data[0]), second = packed_of(c, data[1]);
  trained(c, data[0], first);
  trained(c, data[1], second);
  const Launches launches;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(first_difference(expected[0], trained(c, data[0], first)), "");
    EXPECT_EQ(first_difference(expected[1], trained(c, data[1], second)), "");
  }
  launches.expect(std::int64_t{2} * 2 * 3);
}

TEST_F(CudnnGraphs, WhatIsSavedStaysWhileItIsInUse) {
  const Case c = case_of("lstm L2 U13 I5 B3 T4 f32");
  std::vector<Data> data;
  std::vector<Result> expected;
  const auto params = packed_of(c, make_data(c));
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    data.push_back(make_data(c, seed));
    expected.push_back(trained(c, data.back(), params));
  }
  const Graphs graphs;
  trained(c, data[0], params);
  // Two of the five go through graphs, and the first backward call of each.
  const Launches launches;
  std::vector<std::unique_ptr<DeviceCall>> calls;
  std::vector<std::unique_ptr<SavedForward>> saved;
  for (const Data& d : data) {
    calls.push_back(std::make_unique<DeviceCall>(c, d));
    saved.push_back(calls.back()->save(params));
  }
  for (int round = 0; round < 2; ++round) {
    for (std::size_t n = data.size(); n-- > 0;) {
      calls[n]->backward(*saved[n]);
      Result found = calls[n]->outputs();
      for (auto& part : calls[n]->gradients().parts) found.parts.push_back(std::move(part));
      EXPECT_EQ(first_difference(expected[n], found), "") << n << ", round " << round;
    }
  }
  launches.expect(4);
  // Given back, they run again.
  saved.clear();
  const Launches again;
  EXPECT_EQ(first_difference(expected[3], trained(c, data[3], params)), "");
  again.expect(2);
}

TEST_F(CudnnGraphs, OtherArraysOfAGradientRunWithoutOne) {
  const Case c = case_of("gru L2 U14 I5 B3 T4 f32");
  const Data d = make_data(c), other = make_data(c, 2);
  const auto params = packed_of(c, d);
  const Result expected = trained(c, other, params);
  const Graphs graphs;
  for (int n = 0; n < 3; ++n) trained(c, d, params);
  DeviceCall call(c, other);
  const auto saved = call.save(params);
  const Launches launches;
  call.backward(*saved, false);
  const Result alone = call.gradients();
  EXPECT_EQ(
      first_difference({{{"dparams", alone["dparams"]}}}, {{{"dparams", expected["dparams"]}}}),
      "");
  // A second gradient repeats the forward call; the graph of the first would not.
  call.backward(*saved);
  EXPECT_EQ(first_difference({{{"dx", call.gradients()["dx"]}}}, {{{"dx", expected["dx"]}}}), "");
  launches.expect(0);
}

TEST_F(CudnnGraphs, CallsThatDifferRunWithoutOne) {
  const std::string before = "lstm L2 U15 I5 B3 T4 f32 lengths";
  const Case c = case_of(before);
  const auto params = packed_of(c, make_data(c));
  std::vector<Case> others;
  for (const char* text : {"lstm L2 U15 I5 B4 T4 f32 lengths", "lstm L2 U15 I5 B3 T5 f32 lengths",
                           "lstm L2 U15 I5 B3 T4 f32", "lstm L2 U15 I5 B3 T4 f32 batch_major",
                           "lstm L2 U15 I5 B3 T4 f32 lengths null_states"}) {
    others.push_back(case_of(text));
  }
  others.push_back(c);
  others.back().lengths = {4, 4, 1};
  std::vector<Result> expected;
  for (const Case& each : others) expected.push_back(trained(each, make_data(each, 2), params));
  const Graphs graphs;
  for (int n = 0; n < 3; ++n) trained(c, make_data(c), params);
  const Launches launches;
  for (std::size_t n = 0; n < others.size(); ++n) {
    const Data d = make_data(others[n], 2);
    EXPECT_EQ(first_difference(expected[n], trained(others[n], d, params)), "") << n;
  }
  launches.expect(0);
}

std::string said(const std::function<void()>& call) {
  const Setting debug("OPENRNN_LOG_LEVEL", "debug");
  ::testing::internal::CaptureStderr();
  call();
  return ::testing::internal::GetCapturedStderr();
}

TEST_F(CudnnGraphs, WhatNoneCanRunIsSaid) {
  const std::pair<const char*, const char*> reasons[] = {
      {"lstm L2 U16 I5 B3 T4 f32 D0.5", "without a graph: it drops out"},
      {"lstm L1 U16 I5 B3 T9 f32", "without a graph: its sequences are cut"}};
  const Setting longest("OPENRNN_CUDNN_MAX_TIME", "8");
  for (const auto& [text, reason] : reasons) {
    const Case c = case_of(text);
    const Data d = make_data(c);
    const auto params = packed_of(c, d);
    const Result expected = trained(c, d, params);
    const Graphs graphs;
    const Launches launches;
    for (int n = 0; n < 3; ++n) {
      const std::string line = said([&, &text = text] {
        EXPECT_EQ(first_difference(expected, trained(c, d, params)), "") << text;
      });
      EXPECT_NE(line.find(reason), std::string::npos) << line;
    }
    launches.expect(0);
  }
}

using Lines = std::vector<std::string>;

/// The lines about graphs alone, each without its beginning.
Lines lines_about_graphs(const std::function<void()>& call) {
  std::istringstream text(said(call));
  Lines lines;
  const std::string begin = "[openrnn] ";
  for (std::string line; std::getline(text, line);) {
    if (line.find("graph") == std::string::npos && line.find("recorded") == std::string::npos) {
      continue;
    }
    EXPECT_TRUE(line.starts_with(begin)) << line;
    lines.push_back(line.substr(begin.size()));
  }
  return lines;
}

TEST_F(CudnnGraphs, WhatIsRecordedAndWhatIsNotIsSaidWithItsReason) {
  const Case c = case_of("lstm L2 U18 I5 B3 T4 f32");
  const Data d = make_data(c);
  const auto params = packed_of(c, d);
  const std::string text = describe(c.spec) + ", batch 3, 4 steps, ";
  const Graphs graphs;
  const std::string first = " without a graph: it is the first of its kind";
  EXPECT_EQ(lines_about_graphs([&] { trained(c, d, params); }),
            (Lines{"runs a call of " + text + "training" + first}));
  EXPECT_EQ(lines_about_graphs([&] { trained(c, d, params); }),
            (Lines{"recorded a call of " + text + "training",
                   "recorded the gradient of " + text + "training"}));
  EXPECT_EQ(lines_about_graphs([&] { trained(c, d, params); }), Lines{});
  EXPECT_EQ(lines_about_graphs([&] { inferred(c, d, params); }),
            (Lines{"runs a call of " + text + "inference" + first}));
  EXPECT_EQ(lines_about_graphs([&] { inferred(c, d, params); }),
            (Lines{"recorded a call of " + text + "inference"}));
  DeviceCall call(c, d);
  EXPECT_EQ(lines_about_graphs([&] { call.backward(*call.save(params), false); }),
            (Lines{"runs the gradient of " + text + "training" + first}));
  EXPECT_EQ(lines_about_graphs([&] { call.backward(*call.save(params), false); }),
            (Lines{"runs the gradient of " + text +
                   "training without a graph: its graph is of other arrays"}));
  std::vector<std::unique_ptr<SavedForward>> saved;
  const auto save = [&] { saved.push_back(call.save(params)); };
  EXPECT_EQ(lines_about_graphs(save), Lines{});
  EXPECT_EQ(lines_about_graphs(save), (Lines{"recorded a call of " + text + "training"}));
  EXPECT_EQ(lines_about_graphs(save),
            (Lines{"runs a call of " + text +
                   "training without a graph: what its graphs have saved is still in use"}));
}

TEST_F(CudnnGraphs, ReasonsOfACallAreItsOwn) {
  const auto why = [](const std::string& text, const auto& change) {
    Case c = case_of(text);
    const Data d = make_data(c);
    ForwardArgs args = args_without_arrays(c, packed_of(c, d), true);
    change(args);
    return cudnn::unrecordable(args);
  };
  const std::string drops = "lstm L2 U16 I5 B3 T4 f32 D0.5", plain = "gru L2 U16 I5 B3 T4 f32";
  const auto nothing = [](ForwardArgs&) {};
  static constexpr std::int32_t kLengths[] = {0, 0, 1};
  void* outputs[] = {nullptr, nullptr};
  EXPECT_EQ(why(plain, nothing), "");
  EXPECT_EQ(why(drops, nothing), "it drops out");
  EXPECT_EQ(why(drops, [](ForwardArgs& args) { args.training = false; }), "");
  EXPECT_EQ(why("lstm L1 U16 I5 B3 T4 f32 D0.5", nothing), "") << "nothing between the layers";
  const std::string leaves = "it gives what every layer leaves";
  EXPECT_EQ(why(plain, [&](ForwardArgs& args) { args.layer_outputs = outputs; }), leaves);
  EXPECT_EQ(why(plain, [&](ForwardArgs& args) { args.layer_cells = outputs; }), leaves);
  const std::string empty = "all its rows are empty";
  EXPECT_EQ(why(plain, [](ForwardArgs& args) { args.batch = 0; }), empty);
  EXPECT_EQ(why(plain, [](ForwardArgs& args) { args.max_time = 0; }), empty);
  EXPECT_EQ(why(plain, [](ForwardArgs& args) { args.sequence_lengths = kLengths; }), "");
  EXPECT_EQ(why(plain,
                [](ForwardArgs& args) {
                  args.sequence_lengths = kLengths;
                  args.batch = 2;
                }),
            empty);
  const Setting longest("OPENRNN_CUDNN_MAX_TIME", "4");
  EXPECT_EQ(why(plain, nothing), "");
  EXPECT_EQ(why(plain, [](ForwardArgs& args) { args.max_time = 5; }), "its sequences are cut");
}

TEST_F(CudnnGraphs, ADriverThatCannotRecordChangesNothing) {
  if (!pretends()) GTEST_SKIP() << "only the stand-in refuses on request";
  for (const char* refusal : {"STAND_IN_NO_CAPTURES", "STAND_IN_SPOILED_CAPTURES"}) {
    const Case c =
        case_of(refusal[9] == 'N' ? "lstm L2 U17 I5 B3 T4 bi f32" : "gru L2 U17 I5 B3 T4 bi f32");
    const Data d = make_data(c);
    const auto params = packed_of(c, d);
    const Result expected = trained(c, d, params);
    const Graphs graphs;
    const Launches launches;
    {
      const Setting refuses(refusal, "1");
      std::string text;
      for (int n = 0; n < 3; ++n) {
        text += said(
            [&] { EXPECT_EQ(first_difference(expected, trained(c, d, params)), "") << refusal; });
      }
      EXPECT_NE(text.find("without a graph: [cuStream"), std::string::npos) << text;
    }
    // What could not be recorded once is not tried again.
    EXPECT_EQ(first_difference(expected, trained(c, d, params)), "") << refusal;
    launches.expect(0);
  }
}

TEST_F(CudnnGraphs, AGradientThatCannotBeRecordedIsRight) {
  if (!pretends()) GTEST_SKIP() << "only the stand-in refuses on request";
  const Case c = case_of("lstm L2 U18 I5 B3 T4 f32");
  const Data d = make_data(c);
  const auto params = packed_of(c, d);
  const Result expected = trained(c, d, params);
  const Graphs graphs;
  trained(c, d, params);
  const Launches launches;
  for (int n = 0; n < 3; ++n) {
    DeviceCall call(c, d);
    const auto saved = call.save(params);
    const Setting refuses("STAND_IN_SPOILED_CAPTURES", "1");
    call.backward(*saved);
    EXPECT_EQ(first_difference({{{"dx", call.gradients()["dx"]}}}, {{{"dx", expected["dx"]}}}), "");
  }
  launches.expect(3);
}

TEST_F(CudnnGraphs, NoMoreAreKeptThanAreBounded) {
  const Case c = case_of("lstm L1 U19 I5 B3 T1 f32");
  const auto params = packed_of(c, make_data(c));
  const Graphs graphs;
  for (int time = 1; time <= 12; ++time) {
    const Case each = case_of("lstm L1 U19 I5 B3 T" + std::to_string(time) + " f32");
    const Data d = make_data(each);
    for (int n = 0; n < 3; ++n) trained(each, d, params);
    EXPECT_LE(graphs_alive(), 2 * 8);
  }
  // The one that was used last is among them, the first one is not.
  const Launches launches;
  trained(case_of("lstm L1 U19 I5 B3 T12 f32"), make_data(case_of("lstm L1 U19 I5 B3 T12 f32")),
          params);
  launches.expect(2);
}

// Of the calls that are known, the one that was made longest ago makes room for a new one.
TEST_F(CudnnGraphs, CallsThatGoOnAreNotForgotten) {
  const Case c = case_of("gru L1 U4 I3 B2 T1 f32");
  const auto params = packed_of(c, make_data(c));
  const Graphs graphs;
  const auto launched = [&](int time) {
    const Case each = case_of("gru L1 U4 I3 B2 T" + std::to_string(time) + " f32");
    const long before = graph_launches();
    inferred(each, make_data(each), params);
    return graph_launches() - before;
  };
  if (graph_launches() < 0) GTEST_SKIP() << "only the stand-in counts";
  constexpr int kKnown = 64;
  for (int time = 1; time <= kKnown; ++time) EXPECT_EQ(launched(time), 0) << time;
  EXPECT_EQ(launched(1), 1);
  EXPECT_EQ(launched(kKnown + 1), 0) << "takes the place of the second one";
  EXPECT_EQ(launched(1), 1);
  EXPECT_EQ(launched(3), 1);
  EXPECT_EQ(launched(2), 0);
  EXPECT_EQ(launched(4), 0) << "whose place the second one has taken";
}

TEST_F(CudnnGraphs, GiveTheirMemoryToWhatFindsNone) {
  if (!pretends()) GTEST_SKIP() << "a GPU has more";
  const Case c = case_of("lstm L2 U32 I32 B16 T16 f32");
  const Data d = make_data(c);
  const auto params = packed_of(c, d);
  const Result expected = trained(c, d, params);
  const Graphs graphs;
  for (int n = 0; n < 3; ++n) trained(c, d, params);
  EXPECT_EQ(graphs_alive(), 2);
  cudnn::Context& context = cudnn::Context::of(0);
  context.pool().release_idle();
  const std::size_t held = context.pool().held_bytes();
  {
    constexpr std::size_t kMore = 100000;
    const Setting memory("STAND_IN_MEMORY", std::to_string(held + kMore / 2));
    EXPECT_NE(context.allocate(kMore), nullptr);
    EXPECT_EQ(graphs_alive(), 0);
    EXPECT_THROW(context.allocate(held), EngineError) << "there is nothing left to give";
  }
  for (int n = 0; n < 3; ++n) EXPECT_EQ(first_difference(expected, trained(c, d, params)), "");
  EXPECT_EQ(graphs_alive(), 2);
}

TEST_F(CudnnGraphs, ThreadsShareThem) {
  const Case c = case_of("lstm L2 U20 I5 B3 T4 bi f32 lengths");
  const auto params = packed_of(c, make_data(c));
  std::vector<Data> data;
  std::vector<Result> inference, training;
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    data.push_back(make_data(c, seed));
    inference.push_back(inferred(c, data.back(), params));
    training.push_back(trained(c, data.back(), params));
  }
  const Graphs graphs;
  std::vector<std::string> differences(data.size());
  std::vector<std::thread> threads;
  for (std::size_t n = 0; n < data.size(); ++n) {
    threads.emplace_back([&, n] {
      for (int round = 0; round < 4 && differences[n].empty(); ++round) {
        differences[n] = first_difference(inference[n], inferred(c, data[n], params));
        differences[n] += first_difference(training[n], trained(c, data[n], params));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& difference : differences) EXPECT_EQ(difference, "");
}

TEST_F(CudnnGraphs, LayersOfTheirOwnWeightsAreRead) {
  const Setting limit("OPENRNN_CUDNN_MAX_WEIGHTS", "2000");
  const Case c = case_of("lstm L3 U9 I4 B3 T5 bi f32 lengths");
  std::vector<Data> data;
  std::vector<Result> expected;
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    data.push_back(make_data(c, seed));
    expected.push_back(trained(c, data.back(), packed_of(c, data.back())));
  }
  const Graphs graphs;
  const Launches launches;
  for (int round = 0; round < 4; ++round) {
    for (std::size_t n = 0; n < data.size(); ++n) {
      EXPECT_EQ(first_difference(expected[n], trained(c, data[n], packed_of(c, data[n]))), "") << n;
    }
  }
}

}  // namespace
}  // namespace openrnn::conformance
