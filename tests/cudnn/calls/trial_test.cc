// Which results of an algorithm a trial looks at, and where.
#include "cudnn/rnn/trial.h"

#include "conformance/support/machine.h"
#include "cudnn/calls/instead.h"
#include "cudnn/graphs/device_calls.h"
#include "cudnn/rnn/network.h"

namespace openrnn::conformance {
namespace {

using cudnn::CudnnApi;
using openrnn::testing::Instead;

cudnn::Context& context() { return cudnn::Context::of(0); }

/// A call of a whole network as a trial gets it, with memory of its own.
struct Tried {
  Tried(const std::string& text, bool training)
      : c(parse_case(text, "tried")),
        d(make_data(c)),
        packed(std::dynamic_pointer_cast<const cudnn::CudnnPacked>(packed_of(c, d))),
        sequence(context(), args_without_arrays(c, packed, training), false) {
    const auto up = [&](const Array& array) {
      return arrays.emplace_back(DeviceArray::from_host(gpu(), array.view())).mutable_data();
    };
    call.context = &context();
    call.weights = &packed->part(packed->whole());
    call.slice = sequence.all();
    call.training = training;
    memory = {up(d.x), up(d.dy), up(d.h0), nullptr, up(d.dhn), nullptr};
    if (!c.spec.is_lstm()) return;
    memory.cx = up(d.c0);
    memory.cy = up(d.dcn);
  }
  std::int64_t bytes(std::int64_t elements) const {
    return elements * static_cast<std::int64_t>(dtype_size(c.spec.dtype));
  }

  cudnn::Context::Current current{context()};
  Case c;
  Data d;
  std::shared_ptr<const cudnn::CudnnPacked> packed;
  cudnn::Sequence sequence;
  std::vector<DeviceArray> arrays;
  cudnn::PieceCall call;
  cudnn::PieceForward memory;
};

/// While it lives, a part of one result of cuDNN is zeros. Place: the number of that result among
/// the function's arguments, from 0.
template <auto Which, std::size_t Place>
class Spoiled {
 public:
  Spoiled(std::int64_t first, std::int64_t bytes)
      : works_([=](auto own, auto... arguments) {
          const auto answer = own(arguments...);
          void* const result = const_cast<void*>(
              static_cast<const void*>(std::get<Place>(std::tuple(arguments...))));
          context().zero(static_cast<char*>(result) + first, static_cast<std::size_t>(bytes));
          return answer;
        }) {}

 private:
  Instead<Which> works_;
};

/// Whether a trial refuses results of which a part of `elements` is wrong, wherever that is.
template <auto Which, std::size_t Place>
void expect_refused(const Tried& tried, std::int64_t elements, std::int64_t part,
                    const std::string& name) {
  cudnn::Trial trial(tried.call, tried.memory);
  const auto expected = trial.results({});
  EXPECT_TRUE(trial.agrees({}, expected)) << name;
  for (const std::int64_t first : {std::int64_t{0}, (elements - part) / 2, elements - part}) {
    const Spoiled<Which, Place> spoiled(tried.bytes(first), tried.bytes(part));
    EXPECT_FALSE(trial.agrees({}, expected)) << name << " from " << first;
  }
  EXPECT_TRUE(trial.agrees({}, expected)) << name;
}

TEST(CudnnTrials, LookAtEveryResult) {
  if (!pretends()) GTEST_SKIP() << "only the stand-in computes at once";
  for (const char* dtype : {"f32", "f64", "f16"}) {
    const std::string text = "lstm L2 U16 I8 B4 T5 bi " + std::string(dtype);
    const Tried inference(text, false), training(text, true);
    const std::int64_t y = inference.c.seq_size(32), h = inference.c.h_size();
    expect_refused<&CudnnApi::forward, 7>(inference, y, y / 8, "y");
    expect_refused<&CudnnApi::forward, 10>(inference, h, h / 8, "hy");
    expect_refused<&CudnnApi::forward, 13>(inference, h, h / 8, "cy");
    const std::int64_t x = training.c.seq_size(8), weights = params_size(training.c.spec);
    expect_refused<&CudnnApi::backward_data, 7>(training, x, x / 8, "dx");
    expect_refused<&CudnnApi::backward_data, 11>(training, h, h / 8, "dhx");
    expect_refused<&CudnnApi::backward_data, 15>(training, h, h / 8, "dcx");
    expect_refused<&CudnnApi::backward_weights, 11>(training, weights, weights / 8, "dweights");
  }
}

TEST(CudnnTrials, HaveTheResultsThatWereAskedFor) {
  const Tried gated("gru L1 U8 I4 B4 T3 f32", true), plain("lstm L1 U8 I4 B4 T3 P5 f32", false);
  const auto sizes = [](const Tried& tried) {
    std::vector<std::int64_t> all;
    for (const auto& each : cudnn::Trial(tried.call, tried.memory).results({})) {
      all.push_back(static_cast<std::int64_t>(each.size()));
    }
    return all;
  };
  // y, hy, cy; dx, dhx, dcx, dweights.
  EXPECT_EQ(sizes(gated), (std::vector<std::int64_t>{96, 32, 48, 32, params_size(gated.c.spec)}));
  EXPECT_EQ(sizes(plain), (std::vector<std::int64_t>{60, 20, 32}));
}

// All of them where they are few, else 64 stretches from the first to the last one.
TEST(CudnnTrials, TakeSamplesOfManyNumbers) {
  if (!pretends()) GTEST_SKIP() << "only the stand-in computes at once";
  const openrnn::testing::Setting standard("OPENRNN_CUDNN_ALGORITHM", "standard");
  constexpr std::int64_t kMost = std::int64_t{1} << 20, kEach = 1 << 14;
  const Tried tried("rnn_relu L1 U32 I1 B32 T1030 f32", false);
  const std::int64_t all = tried.c.seq_size(32);
  ASSERT_GT(all, kMost);
  cudnn::Trial trial(tried.call, tried.memory);
  const auto expected = trial.results({});
  ASSERT_EQ(static_cast<std::int64_t>(expected[0].size()), kMost);
  const Array y = run_inference(engine("cudnn"), tried.c, tried.d)["inference y"];
  std::int64_t wrong = 0;
  for (std::int64_t n = 0; n < 64; ++n) {
    const std::int64_t first = n * (all - kEach) / 63;
    for (std::int64_t i = 0; i < kEach; ++i) {
      const double found = expected[0][static_cast<std::size_t>(n * kEach + i)];
      wrong += found != static_cast<double>(y.as<float>()[static_cast<std::size_t>(first + i)]);
    }
  }
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace openrnn::conformance
