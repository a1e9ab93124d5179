// On which stream work goes, how wide its words are, and what an error of the driver becomes.
#include <bit>

#include "conformance/support/machine.h"
#include "cudnn/calls/instead.h"
#include "cudnn/gpu/arena.h"
#include "cudnn/gpu/busy_clock.h"
#include "cudnn/gpu/detour.h"
#include "cudnn/graphs/device_calls.h"
#include "cudnn/rnn/sequence.h"
#include "device/support.h"
#include "support/expect_error.h"

namespace openrnn::testing {
namespace {

using cudnn::DriverApi;
using cudnn::Event;

cudnn::Context& context() { return cudnn::Context::of(0); }

using Given = std::vector<std::pair<std::string, CUstream>>;

/// Notes the last argument of each call.
auto noting(Given& given, const char* name) {
  return [&given, name](auto function, auto... arguments) {
    given.emplace_back(name, std::get<sizeof...(arguments) - 1>(std::tuple(arguments...)));
    return function(arguments...);
  };
}

/// Every stream that the driver was given, by the function.
struct Streams {
  CUstream own, detour;
  Given given = {};
  Instead<&DriverApi::copy> copies{noting(given, "copy")};
  Instead<&DriverApi::copy_in> in{noting(given, "in")};
  Instead<&DriverApi::copy_out> out{noting(given, "out")};
  Instead<&DriverApi::fill> fills{noting(given, "fill")};
  Instead<&DriverApi::event_record> records{noting(given, "record")};
  Instead<&DriverApi::stream_synchronize> waits{noting(given, "wait")};

  /// Whose they were, since this was last asked.
  std::string all() {
    std::string text;
    for (const auto& [name, stream] : std::exchange(given, {})) {
      const char* const whose = stream == own ? " own" : stream == detour ? " detour" : " another";
      text += (text.empty() ? "" : ", ") + name + whose;
    }
    return text;
  }
};

/// One of each, with both addresses on the GPU.
void work_on(cudnn::Context& where, void* to, const void* from) {
  char host[8] = {};
  where.copy(to, from, 8);
  where.zero(to, 8);
  where.copy_in(where.stream(), to, host, 8);
  where.copy_out_later(host, from, 8);
  where.copy_out(host, from, 8);
  where.wait();
  Event event;
  event.record(where);
}

TEST(CudnnStreams, OfADetourGetAllOfItsWork) {
  const cudnn::Context::Current current(context());
  const auto block = context().allocate(16);
  char* const data = static_cast<char*>(block.get());
  const auto words = [](const std::string& whose) {
    std::string text;
    for (const char* name : {"copy", "fill", "in", "out", "out", "wait", "wait", "record"}) {
      text += (text.empty() ? "" : ", ") + std::string(name) + " " + whose;
    }
    return text;
  };
  CUstream other = nullptr;
  cudnn::check(cudnn::libraries().driver.stream_create(&other, CU_STREAM_NON_BLOCKING), "create");
  cudnn::Arena arena(context().pool()), inner(context().pool());
  Streams streams{context().stream(), other};
  work_on(context(), data, data + 8);
  EXPECT_EQ(streams.all(), words("own"));
  {
    const cudnn::Detour memory_alone(context(), arena);
    work_on(context(), data, data + 8);
    EXPECT_EQ(streams.all(), words("own"));
    const cudnn::Detour detour(context(), inner, other);
    EXPECT_EQ(&cudnn::Detour::of(context())->memory(), &inner);
    work_on(context(), data, data + 8);
    EXPECT_EQ(streams.all(), words("detour"));
    context().bring(data, 0);
    const float host[2] = {1.0F, 2.0F};
    const auto brought = context().bring(host, 8);
    EXPECT_EQ(streams.all(), "in detour, record detour");
    EXPECT_EQ(inner.sizes(), (std::vector<std::size_t>{0, 8}));
  }
  work_on(context(), data, data + 8);
  EXPECT_EQ(streams.all(), words("own"));
  EXPECT_EQ(arena.sizes(), std::vector<std::size_t>{});
}

/// What `work` throws where the function `Which` of the driver answers with that.
template <auto Which, class Work>
std::string said(CUresult answer, const Work& work) {
  const Instead<Which> answers([&](auto, auto...) { return answer; });
  return error_of<EngineError>(work);
}

TEST(CudnnDriver, AnEventThatFailsIsNotOneThatTakesLong) {
  const cudnn::Context::Current current(context());
  Event event;
  event.record(context());
  bool done = true;
  const auto ask = [&] { done = event.is_done(); };
  EXPECT_EQ(said<&DriverApi::event_query>(CUDA_ERROR_NOT_READY, ask), "");
  EXPECT_FALSE(done);
  EXPECT_EQ(said<&DriverApi::event_query>(CUDA_SUCCESS, ask), "");
  EXPECT_TRUE(done);
  EXPECT_TRUE(said<&DriverApi::event_query>(CUDA_ERROR_ILLEGAL_ADDRESS, ask)
                  .starts_with("[cuEventQuery] the driver answered CUDA_ERROR_ILLEGAL_ADDRESS"));
}

template <auto Which, class Work>
void expect_named(const std::string& name, const Work& work) {
  EXPECT_TRUE(said<Which>(CUDA_ERROR_ILLEGAL_ADDRESS, work)
                  .starts_with("[" + name +
                               "] the driver answered CUDA_ERROR_ILLEGAL_ADDRESS (an "
                               "error of the stand-in), expected success; an earlier operation "))
      << name;
}

TEST(CudnnDriver, EveryCallThatFailsIsNamed) {
  if (!conformance::pretends()) GTEST_SKIP() << "with the words of the stand-in";
  const cudnn::Context::Current current(context());
  const auto block = context().allocate(16);
  char* const data = static_cast<char*>(block.get());
  char host[8] = {};
  Event first(Event::Time::kMeasured), second(Event::Time::kMeasured);
  first.record(context());
  second.record(context());
  expect_named<&DriverApi::event_create>("cuEventCreate", [] { const Event event; });
  expect_named<&DriverApi::event_record>("cuEventRecord", [&] { first.record(context()); });
  expect_named<&DriverApi::event_synchronize>("cuEventSynchronize", [&] { first.wait(); });
  expect_named<&DriverApi::event_elapsed>("cuEventElapsedTime",
                                          [&] { Event::between(first, second); });
  expect_named<&DriverApi::copy>("cuMemcpyDtoDAsync", [&] { context().copy(data, data + 8, 8); });
  expect_named<&DriverApi::copy_in>("cuMemcpyHtoDAsync",
                                    [&] { context().copy_in(context().stream(), data, host, 8); });
  expect_named<&DriverApi::copy_out>("cuMemcpyDtoHAsync",
                                     [&] { context().copy_out(host, data, 8); });
  expect_named<&DriverApi::fill>("cuMemsetD8Async", [&] { context().zero(data, 8); });
  expect_named<&DriverApi::stream_synchronize>("cuStreamSynchronize", [] { context().wait(); });
  expect_named<&DriverApi::context_push>("cuCtxPushCurrent",
                                         [] { const cudnn::Context::Current again(context()); });
  expect_named<&DriverApi::device_name>("cuDeviceGetName", [] { cudnn::Context::gpu_name(0); });
  expect_named<&DriverApi::device_get>("cuDeviceGet", [] { cudnn::Context::gpu_name(0); });
  expect_named<&DriverApi::device_attribute>("cuDeviceGetAttribute",
                                             [] { cudnn::Context::missing(0); });
  // Nothing is asked of the driver for no bytes.
  EXPECT_EQ(said<&DriverApi::fill>(CUDA_ERROR_INVALID_VALUE, [&] { context().zero(data, 0); }), "");
  EXPECT_EQ(
      said<&DriverApi::copy>(CUDA_ERROR_INVALID_VALUE, [&] { context().copy(data, data, 0); }), "");
}

/// An error of the driver while a clock watches is that of the clock.
template <auto Which>
void expect_failed_clock(int fine) {
  const DeviceArray array = array_of<float>({3}, {1, 2, 3});
  cudnn::BusyClock clock(context());
  {
    const Instead<Which> fails([&](auto own, auto... arguments) {
      return fine-- > 0 ? own(arguments...) : CUDA_ERROR_ILLEGAL_ADDRESS;
    });
    const cudnn::Context::Current current(context());
  }
  for (int n = 0; n < 2; ++n) {
    expect_error<EngineError>([&] { clock.milliseconds(); },
                              "[busy_clock] the GPU failed while it was watched");
  }
}

TEST(CudnnDriver, AnErrorWhileAClockWatchesIsTheClocks) {
  expect_failed_clock<&DriverApi::event_create>(0);
  expect_failed_clock<&DriverApi::event_create>(1);
  for (const int fine : {0, 1, 2}) expect_failed_clock<&DriverApi::event_record>(fine);
  cudnn::BusyClock whole(context());
  EXPECT_GE(whole.milliseconds(), 0.0) << "a new one knows nothing of it";
}

/// The widest word that divides all of them.
std::int32_t widest(std::int64_t bytes, std::initializer_list<const void*> addresses) {
  std::uintptr_t bits = static_cast<std::uintptr_t>(bytes) | 16;
  for (const void* const each : addresses) bits |= reinterpret_cast<std::uintptr_t>(each);
  return std::int32_t{1} << std::countr_zero(bits);
}

/// Holds the words of every copy against its addresses; counts the copies.
struct Words {
  int copies = 0;
  Instead<&DriverApi::launch> launches{[this](auto own, CUfunction function, auto... rest) {
    look(function, *std::get<8>(std::tuple(rest...)));
    return own(function, rest...);
  }};
  void look(CUfunction function, const void* arguments) {
    for (const char* const name : {"openrnn_pack", "openrnn_unpack"}) {
      if (function != context().kernel(name)) continue;
      const auto& a = *static_cast<const gpu::PackArguments*>(arguments);
      EXPECT_EQ(a.word_bytes, widest(a.words * a.word_bytes, {a.from, a.to})) << name;
      ++copies;
    }
    for (const char* const name : {"openrnn_pack_states", "openrnn_unpack_states"}) {
      if (function != context().kernel(name)) continue;
      const auto& a = *static_cast<const gpu::StateArguments*>(arguments);
      EXPECT_EQ(a.word_bytes, widest(a.words * a.word_bytes, {a.from, a.other, a.to})) << name;
      ++copies;
    }
  }
};

TEST(CudnnWords, OfCopiesDivideEachOfTheAddresses) {
  using conformance::parse_case;
  const conformance::Case c = parse_case("lstm L2 U8 I8 B3 T4 f16 lengths batch_major", "words");
  const cudnn::Context::Current current(context());
  const ForwardArgs args = conformance::args_without_arrays(c, nullptr, false);
  const cudnn::Sequence sequence(context(), args, true);
  const cudnn::SequenceCopier copier(sequence, c.spec);
  const auto block = context().allocate(4096), other = context().allocate(4096);
  context().zero(block.get(), 4096);
  char* const from = static_cast<char*>(block.get());
  char* const to = static_cast<char*>(other.get());
  Words words;
  for (const std::int64_t width : {8, 4, 2, 1, 3, 12}) {
    for (const std::size_t odd : {0, 2, 4, 8, 16}) {
      copier.pack(from + odd, width, false);
      copier.unpack(from, width, to + odd);
      copier.unpack(from + odd, width, to);
      copier.pack_states(from + odd, width);
      copier.unpack_states(from + odd, width, from + 1024, to);
      copier.unpack_states(from, width, from + 1024 + odd, to);
      copier.unpack_states(from, width, nullptr, to + odd);
    }
  }
  EXPECT_EQ(words.copies, 6 * 5 * 7);
}

}  // namespace
}  // namespace openrnn::testing
