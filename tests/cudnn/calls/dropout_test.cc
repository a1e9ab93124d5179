// Dropout between layers on a GPU: how many calls and kernels it takes, and whose masks they are.
#include <gtest/gtest.h>

#include "conformance/support/bounds.h"
#include "cudnn/calls/counted.h"
#include "cudnn/rnn/sequence.h"
#include "openrnn/device.h"
#include "support/setting.h"

namespace openrnn::conformance {
namespace {

using openrnn::testing::Counted;
using openrnn::testing::Setting;

const Engine& subject() { return engine("cudnn"); }

/// What one training call does on the GPU besides bringing its data there and back.
struct Work {
  Counted forward{"cudnnRNNForward"}, backward{"cudnnRNNBackwardData_v8"}, masks{"openrnn_mask"},
      copies{"cuMemcpyDtoDAsync"};
  struct Found {
    long forward, backward, masks, copies;
    bool operator==(const Found&) const = default;
  };
  Found found() const { return {forward.now(), backward.now(), masks.now(), copies.now()}; }
};

Work::Found work_of(const std::string& text, bool training) {
  const Case c = parse_case(text, "work");
  const Data d = make_data(c);
  const auto packed = subject().pack(c.spec, d.params.view(), PackFor::kTraining);
  ForwardBuffers out = forward_buffers(c);
  // The first call chooses an algorithm and copies the weights of parts.
  subject().forward_saving(forward_args(c, d, out, packed, training));
  const Work work;
  const auto saved = subject().forward_saving(forward_args(c, d, out, packed, training));
  std::vector<char> dx(d.x.size_bytes());
  BackwardArgs back;
  back.saved = saved.get();
  back.dy = d.dy.data();
  back.dx = dx.data();
  subject().backward(back);
  return work.found();
}

class CudnnDropout : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!pretends()) GTEST_SKIP() << "only the stand-in counts, and has a generator of ours";
  }

 private:
  // A graph's arrays are copied in and out, so that calls without dropout would count more.
  Setting no_graphs_{"OPENRNN_CUDA_GRAPHS", "0"};
};

TEST_F(CudnnDropout, ExactMasksAreOneKernelInPlaceOfACopy) {
  const Work::Found without = work_of("lstm L4 U8 I4 B3 T5 f32", true);
  EXPECT_EQ(without.forward, 1) << "layers without dropout are one call";
  EXPECT_EQ(without.backward, 1);
  EXPECT_EQ(without.masks, 0);
  const Work::Found with = work_of("lstm L4 U8 I4 B3 T5 f32 D0.5", true);
  EXPECT_EQ(with.forward, 4);
  EXPECT_EQ(with.backward, 4);
  EXPECT_EQ(with.masks, 2 * 3) << "one between two layers, there and back";
  EXPECT_EQ(with.copies, without.copies);
}

TEST_F(CudnnDropout, NothingDropsWithoutTrainingAndALayerAlone) {
  EXPECT_EQ(work_of("gru L3 U8 I4 B3 T5 f32 D0.5", false), work_of("gru L3 U8 I4 B3 T5 f32", true));
  EXPECT_EQ(work_of("gru L1 U8 I4 B3 T5 f32 D0.5", true), work_of("gru L1 U8 I4 B3 T5 f32", true));
}

/// Masks of layer 1 over packed vectors, by the function that every engine shares.
template <class T>
Array expected_masks(const Case& c, DropoutKey key, double rate, std::int64_t width) {
  std::vector<std::uint32_t> rows;
  for (std::uint32_t b = 0; b < c.lengths.size(); ++b) rows.push_back(b);
  std::stable_sort(rows.begin(), rows.end(),
                   [&](auto a, auto b) { return c.lengths[a] > c.lengths[b]; });
  std::vector<T> masks;
  for (std::int32_t t = 0; t < c.time; ++t) {
    for (const std::uint32_t row : rows) {
      if (c.lengths[row] <= t) continue;
      std::vector<T> mask(static_cast<std::size_t>(width));
      dropout_mask<T>(key, {1, static_cast<std::uint32_t>(t), row}, rate, mask);
      masks.insert(masks.end(), mask.begin(), mask.end());
    }
  }
  return Array::of<T>({static_cast<std::int64_t>(masks.size())}, std::span<const T>(masks));
}

TEST_F(CudnnDropout, ExactMasksHaveTheBitsOfTheCpu) {
  cudnn::Context& context = cudnn::Context::of(0);
  const cudnn::Context::Current current(context);
  const DropoutKey key{.seed = 0x123456789ABCDEF, .call = (std::uint64_t{1} << 40) + 3};
  const Case c = parse_case("lstm L2 U7 I3 B5 T4 f32 lengths", "masks");
  ForwardArgs args;
  args.max_time = c.time;
  args.batch = c.batch;
  args.sequence_lengths = c.lengths.data();
  const cudnn::Sequence sequence(context, args, true);
  for (const std::int64_t width : {7, 16}) {
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16}) {
      RnnSpec spec = c.spec;
      spec.dtype = dtype;
      const Array expected = dtype == DType::kFloat64
                                 ? expected_masks<double>(c, key, 0.3, width)
                                 : cast(expected_masks<float>(c, key, 0.3, width).view(), dtype);
      ASSERT_EQ(expected.size(), sequence.count() * width);
      Array ones(DType::kFloat64, expected.shape());
      for (double& one : ones.as<double>()) one = 1.0;
      DeviceArray x = DeviceArray::from_host(gpu_device(0), cast(ones.view(), dtype).view());
      cudnn::SequenceCopier(sequence, spec).mask(key, 1, 0.3, width, x.data(), x.mutable_data());
      EXPECT_EQ(std::memcmp(x.to_host().data(), expected.data(), expected.size_bytes()), 0)
          << dtype_name(dtype) << " of width " << width;
    }
  }
}

TEST_F(CudnnDropout, PartsOfABatchHaveExactMasksInEveryWay) {
  const Case c = parse_case("lstm L3 U17 I3 B4 T4 f32 D0.5 lengths", "part");
  const Data d = make_data(c);
  const auto packed = subject().pack(c.spec, d.params.view(), PackFor::kTraining);
  const auto run = [&] {
    ForwardBuffers out = forward_buffers(c);
    ForwardArgs args = forward_args(c, d, out, packed, true);
    args.dropout.first_row = 3;
    args.dropout.whole_batch = 8;
    const auto saved = subject().forward_saving(args);
    Result result = run_backward(subject(), c, d, *saved);
    append_forward(result, "", std::move(out));
    return result;
  };
  const Result exact = run();
  const Setting fast("OPENRNN_CUDNN_DROPOUT", "fast");
  EXPECT_EQ(first_difference(exact, run()), "");
}

class CudnnFastDropout : public CudnnDropout {
 protected:
  void SetUp() override {
    CudnnDropout::SetUp();
    fast_.emplace("OPENRNN_CUDNN_DROPOUT", "fast");
  }

 private:
  std::optional<Setting> fast_;
};

/// Training calls of those numbers, one after another, and the gradient of each.
std::vector<Result> calls(const std::string& text, std::uint64_t seed,
                          const std::vector<std::uint64_t>& numbers) {
  const Case c = parse_case(text, "calls");
  const Data d = make_data(c);
  const auto packed = subject().pack(c.spec, d.params.view(), PackFor::kTraining);
  std::vector<Result> results;
  for (const std::uint64_t number : numbers) {
    ForwardBuffers out = forward_buffers(c);
    ForwardArgs args = forward_args(c, d, out, packed, true);
    args.dropout = {seed, number};
    const auto saved = subject().forward_saving(args);
    Result result = run_backward(subject(), c, d, *saved);
    append_forward(result, "", std::move(out));
    results.push_back(std::move(result));
  }
  return results;
}

constexpr const char* kNetwork = "lstm L3 U17 I3 B5 T4 f32 D0.5";

TEST_F(CudnnFastDropout, AGeneratorIsSetUpOnceASeed) {
  calls(kNetwork, 1, {0});  // chooses an algorithm
  const Counted made("cudnnSetDropoutDescriptor");
  const auto results = calls(kNetwork, 1, {0, 1, 2, 3});
  EXPECT_EQ(made.now(), 1);
  for (std::size_t n = 1; n < results.size(); ++n) {
    EXPECT_NE(first_difference(results[n - 1], results[n]), "") << "masks of their own";
  }
}

TEST_F(CudnnFastDropout, TheSameCallsInTheSameOrderHaveTheSameMasks) {
  const auto once = calls(kNetwork, 2, {0, 1, 2});
  calls(kNetwork, 3, {0, 1});
  const auto again = calls(kNetwork, 2, {0, 1, 2});
  for (std::size_t n = 0; n < once.size(); ++n) EXPECT_EQ(first_difference(once[n], again[n]), "");
  // A call of number 0 alone is how a program asks for the same masks each time.
  EXPECT_EQ(first_difference(calls(kNetwork, 2, {0})[0], once[0]), "");
  // Masks follow the order of the calls, not their numbers.
  EXPECT_NE(first_difference(calls(kNetwork, 2, {2})[0], once[2]), "");
}

TEST_F(CudnnFastDropout, ARunThatGoesOnInAnotherProcessHasOtherMasks) {
  const auto whole = calls(kNetwork, 4, {0, 1, 2});
  // A seed of which this process knows nothing yet.
  const auto resumed = calls(kNetwork, 5, {2});
  EXPECT_NE(first_difference(whole[2], resumed[0]), "");
  const Counted made("cudnnSetDropoutDescriptor");
  calls(kNetwork, 5, {3, 4});
  EXPECT_EQ(made.now(), 0);
}

TEST_F(CudnnFastDropout, TrialsOfAlgorithmsDrawFromAnotherGenerator) {
  // Of a shape that no other test of this program has.
  constexpr const char* kNew = "lstm L2 U13 I3 B6 T4 f32 D0.5";
  calls(kNetwork, 6, {0});
  const auto tried = calls(kNew, 6, {1, 2});
  const Setting standard("OPENRNN_CUDNN_ALGORITHM", "standard");
  calls(kNetwork, 6, {0});
  const auto named = calls(kNew, 6, {1, 2});
  for (std::size_t n = 0; n < tried.size(); ++n) {
    EXPECT_EQ(first_difference(tried[n], named[n]), "") << n;
  }
}

TEST_F(CudnnFastDropout, OnlyTheSeedsThatWereUsedLastAreKept) {
  for (std::uint64_t seed = 100; seed < 120; ++seed) calls(kNetwork, seed, {0});
  const Counted made("cudnnSetDropoutDescriptor");
  calls(kNetwork, 119, {1});
  calls(kNetwork, 104, {1});
  EXPECT_EQ(made.now(), 0);
  calls(kNetwork, 103, {1});
  EXPECT_EQ(made.now(), 1) << "it was forgotten, and goes on as in another process";
}

}  // namespace
}  // namespace openrnn::conformance
