// What only the GPU engine does: cuts, permutes, chooses, repeats; and what it refuses.
#include <gtest/gtest.h>

#include <thread>

#include "conformance/support/bounds.h"
#include "cudnn/rnn/piece.h"
#include "openrnn/device.h"
#include "openrnn/runtime.h"
#include "support/expect_error.h"
#include "support/setting.h"

namespace openrnn::conformance {
namespace {

using openrnn::testing::Setting;

const Engine& subject() { return engine("cudnn"); }

void expect_agreement(const std::string& text) {
  const Case c = parse_case(text, "agreement");
  const Data d = make_data(c);
  EXPECT_EQ(compare(bounds_of(c, d), run_all(subject(), c, d)).failure, "") << text;
}

TEST(CudnnCuts, LongSequencesAgreeWithTheReference) {
  // Chunks of 3: whole, with a rest, one of a single step, in rows that end in each of them.
  const Setting limit("OPENRNN_CUDNN_MAX_TIME", "3");
  const Setting strict("STAND_IN_MAX_TIME", "3");
  for (const char* text :
       {"lstm L2 U7 I3 B5 T9 f32", "lstm L2 U7 I3 B5 T10 bi f32 lengths",
        "gru L2 U7 I7 B5 T8 bi skip f64 lengths batch_major", "rnn_tanh L1 U7 I3 B1 T4 f32",
        "lstm L2 U17 I3 B7 T7 P5 bi f32 lengths", "gru L3 U7 I3 B5 T7 f32 D0.5 lengths",
        "rnn_relu L2 U7 I3 B3 T11 f64 null_states lengths", "lstm L2 U7 I3 B5 T7 f64 bi"}) {
    expect_agreement(text);
  }
}

TEST(CudnnCuts, BackwardTwiceGivesTheSameBits) {
  const Setting limit("OPENRNN_CUDNN_MAX_TIME", "2");
  const Case c = parse_case("lstm L2 U7 I3 B5 T7 bi f32 lengths D0.5", "cut");
  const Data d = make_data(c);
  ForwardBuffers out = forward_buffers(c);
  const auto saved = subject().forward_saving(
      forward_args(c, d, out, subject().pack(c.spec, d.params.view(), PackFor::kTraining), true));
  const Result first = run_backward(subject(), c, d, *saved);
  // The saved call remembers where it was cut.
  const Setting other("OPENRNN_CUDNN_MAX_TIME", "5");
  EXPECT_EQ(first_difference(first, run_backward(subject(), c, d, *saved)), "");
}

TEST(CudnnCuts, MoreWeightsThanCudnnLaysOutRunLayerByLayer) {
  const Setting limit("OPENRNN_CUDNN_MAX_WEIGHTS", "2000");
  const Setting strict("STAND_IN_MAX_WEIGHTS", "2000");
  // Layers of 936 and 1,944 elements.
  expect_agreement("lstm L3 U9 I4 B3 T5 bi f32 lengths");
  expect_agreement("lstm L2 U9 I4 B3 T5 bi f64 D0.5");
  const Setting fast("OPENRNN_CUDNN_DROPOUT", "fast");
  expect_agreement("lstm L3 U9 I4 B3 T6 bi f32 D0.5");
}

TEST(CudnnWeights, InAnotherOrderArePermuted) {
  if (!pretends()) GTEST_SKIP() << "only the stand-in has another order";
  const Setting permute("STAND_IN_PERMUTE", "1");
  // Networks of sizes that no other test of this program has: places are asked for once.
  for (const char* text : {"lstm L2 U9 I4 B3 T3 P5 bi f32", "gru L2 U11 I11 B3 T3 skip f64 D0.5",
                           "rnn_relu L1 U19 I4 B3 T3 f16"}) {
    expect_agreement(text);
  }
  const Case c = parse_case("lstm L2 U9 I4 B3 T3 P5 bi f32", "permuted");
  const auto& context = cudnn::Context::of(0);
  EXPECT_FALSE(cudnn::weight_map(const_cast<cudnn::Context&>(context), c.spec)->is_ours);
}

TEST(CudnnWeights, AreInOurOrderOtherwise) {
  const Case c = parse_case("lstm L2 U10 I4 B3 T3 P5 bi f32", "ours");
  cudnn::Context& context = cudnn::Context::of(0);
  const cudnn::Context::Current current(context);
  EXPECT_TRUE(cudnn::weight_map(context, c.spec)->is_ours);
}

TEST(CudnnWeights, SayWhatTheyArePackedFor) {
  const Case c = parse_case("gru L1 U5 I3 B2 T3 f32", "purpose");
  const Data d = make_data(c);
  ForwardBuffers out = forward_buffers(c);
  for (const PackFor purpose : {PackFor::kInference, PackFor::kTraining}) {
    const auto packed = subject().pack(c.spec, d.params.view(), purpose);
    EXPECT_EQ(packed->purpose(), purpose);
    EXPECT_EQ(packed->spec(), c.spec);
    const auto save = [&] { subject().forward_saving(forward_args(c, d, out, packed, true)); };
    if (purpose == PackFor::kTraining) {
      save();
    } else {
      EXPECT_EQ(
          error_of(save),
          "[forward_saving] params are packed for inference, expected them packed for training");
    }
  }
}

std::string choice_for(const std::string& network) {
  std::string found;
  for (const std::string& line : cudnn::choices_so_far()) {
    if (line.starts_with(network)) found += line.substr(line.rfind(' ') + 1) + ";";
  }
  return found;
}

TEST(CudnnAlgorithms, TheFastestIsRememberedAndRight) {
  if (!pretends()) GTEST_SKIP() << "the times of the stand-in are its own";
  const Setting choice("OPENRNN_CUDNN_ALGORITHM", "auto");
  const Setting fast("STAND_IN_TIME_SMALL_H", "1");
  expect_agreement("lstm L2 U21 I4 B3 T4 f32");
  EXPECT_EQ(choice_for("lstm of 21 units"), "persist_static_small_h;persist_static_small_h;");
  {
    const Setting slow("STAND_IN_TIME_SMALL_H", "9");
    expect_agreement("lstm L2 U21 I4 B3 T4 f32");
    EXPECT_EQ(choice_for("lstm of 21 units"), "persist_static_small_h;persist_static_small_h;");
    expect_agreement("gru L1 U21 I4 B3 T4 f16");
    EXPECT_EQ(choice_for("gru of 21 units"), "standard;standard;");
  }
  const Setting faster("STAND_IN_TIME_STATIC", "0");
  expect_agreement("rnn_tanh L1 U128 I128 B8 T1 f16");
  EXPECT_EQ(choice_for("rnn_tanh of 128 units"), "persist_static;persist_static;");
}

TEST(CudnnAlgorithms, OnesThatAreOnlySafeElsewhereAreNotTried) {
  if (!pretends()) GTEST_SKIP() << "only the stand-in always fails there";
  const Setting fast("STAND_IN_TIME_STATIC", "0");
  // Each is one step away from where they are safe.
  for (const char* text : {"lstm L1 U128 I128 B8 T1 f32", "lstm L2 U128 I128 B8 T1 f16",
                           "lstm L1 U128 I128 B8 T1 bi f16", "lstm L1 U120 I128 B8 T1 f16",
                           "lstm L1 U128 I64 B8 T1 f16", "lstm L1 U128 I128 B7 T1 f16",
                           "gru L1 U128 I128 B8 T1 f16"}) {
    expect_agreement(text);
  }
}

TEST(CudnnAlgorithms, OneThatIsNamedRunsWhereverItMay) {
  if (!pretends()) GTEST_SKIP() << "a GPU may fail there";
  const Setting named("OPENRNN_CUDNN_ALGORITHM", "persist_static");
  const Setting anywhere("STAND_IN_PERSIST_ANYWHERE", "1");
  expect_agreement("lstm L2 U23 I4 B3 T4 bi f32");
  EXPECT_EQ(choice_for("lstm of 23 units"), "persist_static;persist_static;");
}

TEST(CudnnAlgorithms, WhatIsNotSupportedFallsToTheStandardOne) {
  if (!pretends()) GTEST_SKIP() << "only the stand-in refuses on request";
  const Setting most("STAND_IN_MOST_PERSISTENT", "8");
  const Setting fast("STAND_IN_TIME_STATIC", "1");
  expect_agreement("rnn_relu L1 U128 I128 B8 T1 f16");
  EXPECT_EQ(choice_for("rnn_relu of 128 units").find("persist_static;"), std::string::npos);
  const Setting named("OPENRNN_CUDNN_ALGORITHM", "persist_static");
  expect_agreement("lstm L2 U22 I4 B3 T4 f32");
  EXPECT_EQ(choice_for("lstm of 22 units"), "standard;standard;");
}

TEST(CudnnAlgorithms, OneThatIsWrongAnywhereIsNotChosen) {
  if (!pretends()) GTEST_SKIP() << "only the stand-in is wrong on request";
  const Setting choice("OPENRNN_CUDNN_ALGORITHM", "auto");
  const Setting fast("STAND_IN_TIME_STATIC", "0");
  int rows = 16;  // more than in any other test here
  for (const char* wrong : {"", "hy", "cy", "dx", "dhx", "dcx", "dweights"}) {
    const Setting spoiled("STAND_IN_WRONG_STATIC", wrong);
    const Case c = parse_case("lstm L1 U128 I128 B" + std::to_string(rows) + " T1 f16", "wrong");
    run_training(subject(), c, make_data(c));
    const std::string chosen =
        choice_for("lstm of 128 units, " + std::to_string(rows) + " rows, below 2 steps, training");
    EXPECT_EQ(chosen.starts_with("persist_static;"), !*wrong) << wrong << ": " << chosen;
    rows += 8;
  }
}

TEST(CudnnAlgorithms, AnUnknownNameIsRefused) {
  const Setting named("OPENRNN_CUDNN_ALGORITHM", "quick");
  EXPECT_THROW(expect_agreement("gru L1 U5 I4 B3 T4 f32"), ArgumentError);
}

TEST(CudnnArithmetics, SayWhatTheVariableOfNvidiaMakesOfThem) {
  RnnSpec exact = parse_case("lstm L1 U5 I4 B3 T4 f32", "math").spec, tf32 = exact;
  RnnSpec wide = exact, half = exact;
  tf32.compute.math = Math::kTf32;
  wide.dtype = DType::kFloat64;
  half.compute.math = Math::kFp16;
  if (!pretends()) GTEST_SKIP() << "what a GPU can do is not known here";
  const auto kinds = [&] {
    std::string text;
    for (const RnnSpec& each : {exact, tf32, wide, half}) {
      text += std::string(subject().math_kind(each)) + " ";
    }
    return text;
  };
  EXPECT_EQ(kinds(), "float32 tf32 float64 fp16 ");
  EXPECT_EQ(subject().description().find("OVERRIDE"), std::string::npos);
  const Setting off("NVIDIA_TF32_OVERRIDE", "0");
  EXPECT_EQ(kinds(), "float32 float32 float64 fp16 ");
  EXPECT_NE(subject().description().find(", NVIDIA_TF32_OVERRIDE forbids math 'tf32'"),
            std::string::npos);
  const Setting on("NVIDIA_TF32_OVERRIDE", "1");
  EXPECT_EQ(kinds(), "tf32 tf32 float64 fp16 ");
  EXPECT_NE(subject().description().find("makes math 'float32' to 'tf32'"), std::string::npos);
  EXPECT_NE(list_engines().front().detail.find("OVERRIDE"), std::string::npos)
      << "doctor prints this line";
}

// One line with all that the environment has changed.
TEST(CudnnEngine, DescribesWhatWasChosen) {
  // The checks of a GPU run this with variables of their own.
  const Setting exact("OPENRNN_CUDNN_DROPOUT", "exact"), any("OPENRNN_CUDNN_ALGORITHM", "auto");
  const Setting no_graphs("OPENRNN_CUDA_GRAPHS", "0"), none("NVIDIA_TF32_OVERRIDE", "");
  const std::string gpu = gpu_description(0);
  const auto said = [&] {
    const std::string text = gpu_device(0).engine()->description();
    EXPECT_TRUE(text.starts_with(gpu + ", ")) << text;
    return text.substr(gpu.size());
  };
  EXPECT_EQ(said(), ", dropout exact, algorithm auto");
  const Setting fast("OPENRNN_CUDNN_DROPOUT", "fast");
  EXPECT_EQ(said(), ", dropout fast, algorithm auto");
  const Setting named("OPENRNN_CUDNN_ALGORITHM", "standard");
  EXPECT_EQ(said(), ", dropout fast, algorithm standard");
  const Setting off("NVIDIA_TF32_OVERRIDE", "0");
  EXPECT_EQ(said(), ", dropout fast, algorithm standard, NVIDIA_TF32_OVERRIDE forbids math 'tf32'");
  const Setting graphs("OPENRNN_CUDA_GRAPHS", "1"), on("NVIDIA_TF32_OVERRIDE", "1");
  EXPECT_EQ(said(),
            ", dropout fast, algorithm standard, graphs, NVIDIA_TF32_OVERRIDE makes math 'float32' "
            "to 'tf32'");
}

TEST(CudnnModesOfDropout, FastIsAnother) {
  const Case c = parse_case("lstm L3 U17 I3 B5 T4 f32 D0.5", "fast");
  const Data d = make_data(c);
  const Result exact = run_training(subject(), c, d);
  const Setting fast("OPENRNN_CUDNN_DROPOUT", "fast");
  EXPECT_NE(subject().description().find("dropout fast"), std::string::npos);
  EXPECT_NE(first_difference(run_training(subject(), c, d), exact), "");
  // Backward twice, though cuDNN's generator has moved on.
  ForwardBuffers out = forward_buffers(c);
  const auto saved = subject().forward_saving(
      forward_args(c, d, out, subject().pack(c.spec, d.params.view(), PackFor::kTraining), true));
  const Result first = run_backward(subject(), c, d, *saved);
  EXPECT_EQ(first_difference(first, run_backward(subject(), c, d, *saved)), "");
  // Without training nothing drops.
  const Case plain = parse_case("lstm L3 U17 I3 B5 T4 f32", "no_dropout");
  Result inference = run_inference(subject(), c, d);
  EXPECT_EQ(first_difference(inference, run_inference(subject(), plain, d)), "");
}

TEST(CudnnThreads, ShareWeightsAndSavedCalls) {
  const Case c = parse_case("lstm L2 U17 I3 B5 T4 bi f32 lengths D0.5", "threads");
  const Data d = make_data(c);
  const Result expected = run_training(subject(), c, d);
  const auto packed = subject().pack(c.spec, d.params.view(), PackFor::kTraining);
  ForwardBuffers shared = forward_buffers(c);
  const auto saved = subject().forward_saving(forward_args(c, d, shared, packed, true));
  std::vector<std::string> differences(4);
  std::vector<std::thread> threads;
  for (std::string& difference : differences) {
    threads.emplace_back([&] {
      for (int round = 0; round < 3 && difference.empty(); ++round) {
        Result found;
        ForwardBuffers out = forward_buffers(c);
        const auto own = subject().forward_saving(forward_args(c, d, out, packed, true));
        append_forward(found, "", std::move(out));
        // In turn the thread's own call and the shared one, which are equal.
        const SavedForward& which = round == 1 ? *own : *saved;
        for (auto& part : run_backward(subject(), c, d, which).parts) {
          found.parts.push_back(std::move(part));
        }
        difference = first_difference(expected, found);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& difference : differences) EXPECT_EQ(difference, "");
}

TEST(CudnnDevice, EngineAndDeviceKnowEachOther) {
  const Device& device = gpu_device(0);
  ASSERT_NE(device.engine(), nullptr);
  EXPECT_EQ(device.engine()->device(), &device);
  EXPECT_EQ(device.engine()->name(), "cudnn");
  EXPECT_EQ(subject().device(), nullptr) << "the engine of the list takes the host's memory";
}

TEST(CudnnDevice, ExplainsItsCalls) {
  const Setting none("OPENRNN_ENGINE", "");
  const RnnSpec spec{.num_units = 8, .input_size = 3};
  const Device& device = gpu_device(0);
  const std::string slower = "slower than 'cudnn'";
  const std::vector<std::pair<std::string, std::string>> others = {{"cpu", slower},
                                                                   {"reference", slower}};
  const Explanation on_gpu = explain(spec, {.device = &device});
  EXPECT_EQ(on_gpu.engine, "cudnn");
  EXPECT_EQ(on_gpu.description, device.engine()->description());
  EXPECT_EQ(on_gpu.math_kind, device.engine()->math_kind(spec));
  EXPECT_FALSE(on_gpu.same_bits) << "as on this GPU, and no processor's";
  EXPECT_EQ(on_gpu.others, others);
  EXPECT_EQ(explain(spec).others[0].second, "needs device='gpu:0'");
  RnnSpec tf32 = spec;
  tf32.compute.math = Math::kTf32;
  if (subject().unsupported(tf32).empty()) {
    EXPECT_EQ(explain(tf32).others[0].second, "supports it, but is not asked for");
  }
  const Setting forced("OPENRNN_ENGINE", "cudnn");
  const Explanation of_host = explain(spec);
  EXPECT_EQ(of_host.engine, "cudnn");
  EXPECT_FALSE(of_host.same_bits);
  EXPECT_EQ(of_host.others, others);
}

TEST(CudnnDevice, RunsOverItsOwnMemory) {
  const Case c = parse_case("gru L2 U17 I3 B5 T4 f32 batch_major lengths", "device_memory");
  const Data d = make_data(c);
  const Device& device = gpu_device(0);
  const Engine& own = *device.engine();
  const auto params = DeviceArray::from_host(device, d.params.view());
  const auto x = DeviceArray::from_host(device, d.x.view());
  const auto h0 = DeviceArray::from_host(device, d.h0.view());
  DeviceArray y(device, DType::kFloat32, {c.seq_size(17)}),
      hn(device, DType::kFloat32, {c.h_size()});
  ForwardArgs args;
  args.params =
      own.pack(c.spec, {params.data(), DType::kFloat32, params.shape()}, PackFor::kInference);
  args.max_time = c.time;
  args.batch = c.batch;
  args.time_major = false;
  args.sequence_lengths = c.lengths.data();
  args.x = x.data();
  args.h0 = h0.data();
  args.y = y.mutable_data();
  args.hn = hn.mutable_data();
  own.forward(args);
  Result found;
  append_forward(found, "inference ", {y.to_host(), hn.to_host(), Array(DType::kFloat32, {0})});
  EXPECT_EQ(first_difference(run_inference(subject(), c, d), found), "");
}

/// The elements at one byte beside an aligned address.
DeviceArray beside(const Device& device, const Array& array) {
  DeviceArray all(device, array.dtype(), {array.view().size() + 1});
  device.upload(static_cast<char*>(all.mutable_data()) + dtype_size(array.dtype()), array.data(),
                static_cast<std::size_t>(array.view().size()) * dtype_size(array.dtype()));
  return all;
}

TEST(CudnnDevice, TakesArraysThatStartAnywhere) {
  const Case c = parse_case("lstm L1 U5 I3 B3 T4 f32", "unaligned");
  const Data d = make_data(c);
  const Device& device = gpu_device(0);
  const auto params = DeviceArray::from_host(device, d.params.view());
  const auto x = beside(device, d.x), h0 = beside(device, d.h0), c0 = beside(device, d.c0);
  const auto size = [](std::int64_t elements) { return static_cast<std::size_t>(elements) * 4; };
  const std::int64_t count = c.seq_size(5), states = c.h_size();
  DeviceArray y(device, DType::kFloat32, {count + 1}), hn(device, DType::kFloat32, {states + 1}),
      cn(device, DType::kFloat32, {states + 1});
  const auto second = [](const DeviceArray& array) {
    return static_cast<const char*>(array.data()) + 4;
  };
  ForwardArgs args;
  args.params = device.engine()->pack(c.spec, {params.data(), DType::kFloat32, params.shape()},
                                      PackFor::kInference);
  args.max_time = c.time;
  args.batch = c.batch;
  args.x = second(x);
  args.h0 = second(h0);
  args.c0 = second(c0);
  args.y = static_cast<char*>(y.mutable_data()) + 4;
  args.hn = static_cast<char*>(hn.mutable_data()) + 4;
  args.cn = static_cast<char*>(cn.mutable_data()) + 4;
  device.engine()->forward(args);
  Array found_y(DType::kFloat32, {count}), found_h(DType::kFloat32, {states}),
      found_c(DType::kFloat32, {states});
  device.download(found_y.data(), second(y), size(count));
  device.download(found_h.data(), second(hn), size(states));
  device.download(found_c.data(), second(cn), size(states));
  Result found;
  append_forward(found, "inference ", {std::move(found_y), std::move(found_h), std::move(found_c)});
  EXPECT_EQ(first_difference(run_inference(subject(), c, d), found), "");
}

TEST(CudnnErrors, NameWhatWasGiven) {
  const Case c = parse_case("lstm L1 U5 I3 B2 T3 f32", "errors");
  const Data d = make_data(c);
  ForwardBuffers out = forward_buffers(c);
  const auto packed = subject().pack(c.spec, d.params.view(), PackFor::kInference);
  const auto foreign = cpu().pack(c.spec, d.params.view(), PackFor::kTraining);
  EXPECT_EQ(error_of([&] { subject().forward_saving(forward_args(c, d, out, packed, true)); }),
            "[forward_saving] params are packed for inference, expected them packed for training");
  EXPECT_EQ(error_of([&] { subject().forward(forward_args(c, d, out, foreign, false)); }),
            "[forward] params were packed by another engine, expected cudnn");
  EXPECT_EQ(error_of([&] { subject().backward({}); }),
            "[backward] saved is null, expected what forward_saving of cudnn returned");
  const auto workspace = subject().make_workspace(packed, {2, 2});
  EXPECT_EQ(
      error_of([&] { subject().forward(forward_args(c, d, out, packed, false), workspace.get()); }),
      "[forward] the workspace is for batch 2 and time 2 of its own params, expected at least 2 "
      "and "
      "3 of these");
  RnnSpec spec = c.spec;
  spec.compute.math = Math::kBf16;
  EXPECT_EQ(
      error_of([&] { subject().pack(spec, d.params.view(), PackFor::kInference); }),
      "[pack] 'cudnn' cannot run " + describe(spec) +
          ": math 'bf16' is arithmetic of processors; cuDNN has 'float32', 'tf32' and 'fp16', "
          "and device='cpu' has this");
}

// What another engine, or another packing, has made; of both engines, that of the host's memory and
// that of the GPU's.
TEST(CudnnErrors, TakeNothingOfOthers) {
  const Case c = parse_case("lstm L1 U5 I3 B2 T3 f32", "errors");
  const Data d = make_data(c);
  ForwardBuffers out = forward_buffers(c);
  const auto packed = subject().pack(c.spec, d.params.view(), PackFor::kInference),
             again = subject().pack(c.spec, d.params.view(), PackFor::kInference),
             foreign = cpu().pack(c.spec, d.params.view(), PackFor::kTraining);
  const auto of_cpu = cpu().make_workspace(foreign, {2, 3}),
             of_others = subject().make_workspace(again, {2, 3});
  const auto saved = cpu().forward_saving(forward_args(c, d, out, foreign, true));
  BackwardArgs backward;
  backward.saved = saved.get();
  for (Workspace* const workspace : {of_cpu.get(), of_others.get()}) {
    EXPECT_EQ(
        error_of([&] { subject().forward(forward_args(c, d, out, packed, false), workspace); }),
        "[forward] workspace is of other params, expected one of these");
  }
  EXPECT_EQ(error_of([&] {
              subject().make_workspace(foreign, {2, 3});
            }),
            "[make_workspace] params were packed by another engine, expected cudnn");
  EXPECT_EQ(error_of([&] { subject().backward(backward); }),
            "[backward] saved is of another engine, expected what forward_saving of cudnn "
            "returned");
  const Engine& own = *gpu_device(0).engine();
  const auto there = DeviceArray::from_host(gpu_device(0), d.params.view());
  const auto on_gpu =
      own.pack(c.spec, {there.data(), DType::kFloat32, there.shape()}, PackFor::kInference);
  EXPECT_EQ(error_of([&] { own.forward(forward_args(c, d, out, on_gpu, false), of_cpu.get()); }),
            "[forward] workspace is of another engine, expected cudnn");
  EXPECT_EQ(error_of([&] {
              own.make_workspace(foreign, {2, 3});
            }),
            "[make_workspace] params were packed by another engine, expected cudnn on gpu:0");
  const std::string rest = ", expected what forward_saving of cudnn returned";
  EXPECT_EQ(error_of([&] { own.backward(backward); }),
            "[backward] saved is of another engine or GPU" + rest);
  EXPECT_EQ(error_of([&] { own.backward({}); }), "[backward] saved is null" + rest);
}

TEST(CudnnErrors, SayWhenTheMemoryIsFull) {
  if (!pretends()) GTEST_SKIP() << "a GPU has more";
  const Setting little("STAND_IN_MEMORY", "1000000");
  const Case c = parse_case("lstm L1 U5 I3 B64 T1000 f32", "too_large");
  const Data d = make_data(c);
  const std::string text = error_of([&] { run_inference(subject(), c, d); });
  EXPECT_NE(text.find("has no room for"), std::string::npos) << text;
}

}  // namespace
}  // namespace openrnn::conformance
