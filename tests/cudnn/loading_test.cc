// What is said where something is missing or breaks. Each question is asked in a process of its
// own, as the libraries are opened once; so no other test may be in this program.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <regex>
#include <vector>

#include "cudnn/gpu/context.h"
#include "engine/cudnn_entry.h"
#include "openrnn/device.h"
#include "openrnn/params.h"
#include "openrnn/runtime.h"
#include "support/in_child.h"

namespace openrnn {
namespace {

namespace fs = std::filesystem;

std::string missing() { return cudnn_missing(); }

TEST(Loading, NothingIsMissingOverTheStandIns) {
  EXPECT_EQ(answer({}, missing), "");
  EXPECT_EQ(answer({}, [] { return gpu_description(0); }),
            "cuDNN 9.19.0, CUDA driver 13.0, Stand-in GPU");
  EXPECT_EQ(answer({{"STAND_IN_GPUS", "3"}}, [] { return std::to_string(gpu_count()); }), "3");
}

TEST(Loading, AFolderMayHoldWheels) {
  const fs::path site = fs::temp_directory_path() / "openrnn_loading_test_site";
  fs::remove_all(site);
  const fs::path from = std::getenv("OPENRNN_CUDA_LIBRARIES");
  for (const char* inside : {"nvidia/cudnn/lib", "nvidia/cu13/lib"}) {
    fs::create_directories(site / inside);
  }
  fs::create_symlink(from / "libcuda.so.1", site / "libcuda.so.1");
  fs::create_symlink(from / "libcublas.so.13", site / "nvidia/cu13/lib/libcublas.so.13");
  fs::create_symlink(from / "libcudnn.so.9", site / "nvidia/cudnn/lib/libcudnn.so.9");
  EXPECT_EQ(answer({{"OPENRNN_CUDA_LIBRARIES", "/nowhere:" + site.string()}},
                   [] { return gpu_description(0); }),
            "cuDNN 9.19.0, CUDA driver 13.0, Stand-in GPU");
  fs::remove_all(site);
}

TEST(Loading, SaysThatThereIsNoDriver) {
  if (dlopen("libcuda.so.1", RTLD_LAZY)) GTEST_SKIP() << "this machine has a driver";
  EXPECT_EQ(answer({{"OPENRNN_CUDA_LIBRARIES", "/nowhere"}}, missing),
            "the NVIDIA driver is missing: libcuda.so.1 was not found in the folders of "
            "OPENRNN_CUDA_LIBRARIES ('/nowhere') nor on the system's library path; install the "
            "driver (Debian: nvidia-driver) on a machine with an NVIDIA GPU");
}

TEST(Loading, SaysThatTheDriverIsTooOld) {
  EXPECT_EQ(
      answer({{"STAND_IN_DRIVER", "12080"}}, missing),
      "the NVIDIA driver is of CUDA 12.8, expected 13.0 or newer; install a driver of version "
      "580 or newer");
}

TEST(Loading, SaysThatThereIsNoGpu) {
  constexpr const char* kNone =
      "the NVIDIA driver shows no GPU; look at nvidia-smi and CUDA_VISIBLE_DEVICES";
  EXPECT_EQ(answer({{"STAND_IN_GPUS", "0"}}, missing), kNone);
  EXPECT_EQ(answer({{"STAND_IN_GPUS", "0"}, {"STAND_IN_INIT", "0"}}, missing), kNone);
  EXPECT_EQ(answer({}, [] { return cudnn_missing(1); }),
            "there is no GPU 1; the driver shows 1, numbered from 0");
  EXPECT_EQ(answer({}, [] { return cudnn_missing(-1); }),
            "there is no GPU -1; the driver shows 1, numbered from 0");
}

TEST(Loading, SaysThatTheDriverDoesNotStart) {
  EXPECT_EQ(answer({{"STAND_IN_INIT", "999"}}, missing),
            "the NVIDIA driver does not start: cuInit says 'an error of the stand-in' (999); look "
            "at nvidia-smi");
}

TEST(Loading, SaysThatTheGpuIsTooOld) {
  EXPECT_EQ(answer({{"STAND_IN_CAPABILITY", "61"}}, missing),
            "GPU 0 (Stand-in GPU) is of compute capability 6.1, expected 7.5 or newer");
}

TEST(Loading, SaysThatCudnnIsOfAnotherVersion) {
  constexpr const char* kRemedy =
      ", expected 9.0.0 or newer of version 9; install cuDNN 9 for CUDA 13 (pip: "
      "nvidia-cudnn-cu13)";
  EXPECT_EQ(answer({{"STAND_IN_CUDNN", "8907"}}, missing),
            std::string("cuDNN is of version 8.9.7") + kRemedy);
  EXPECT_EQ(answer({{"STAND_IN_CUDNN", "100000"}}, missing),
            std::string("cuDNN is of version 10.0.0") + kRemedy);
  EXPECT_EQ(answer({{"STAND_IN_CUDNN", "90000"}}, missing), "");
}

TEST(Loading, NamesAFunctionThatALibraryLacks) {
  const fs::path folder = fs::temp_directory_path() / "openrnn_loading_test_lacks";
  fs::remove_all(folder);
  fs::create_directories(folder);
  const fs::path from = std::getenv("OPENRNN_CUDA_LIBRARIES");
  // The driver's functions under the name of cuBLAS.
  fs::copy_file(from / "libcuda.so.1", folder / "libcublas.so.13");
  EXPECT_EQ(answer({{"OPENRNN_CUDA_LIBRARIES", folder.string() + ":" + from.string()}}, missing),
            "cuBLAS is missing: libcublas.so.13 lacks cublasCreate_v2; install cuBLAS of CUDA 13 "
            "(pip: nvidia-cublas) and name its folder in OPENRNN_CUDA_LIBRARIES");
  // cuDNN is of the wrong version, too: it needs cuBLAS, which comes first.
  const std::string both =
      answer({{"OPENRNN_CUDA_LIBRARIES", folder.string() + ":" + from.string()},
              {"STAND_IN_CUDNN", "8907"}},
             missing);
  EXPECT_EQ(both.find("cuBLAS is missing: "), 0u) << both;
  fs::remove_all(folder);
}

TEST(Loading, ErrorsOfTheDeviceSayWhatIsMissing) {
  const auto error = [] {
    try {
      gpu_device(0);
    } catch (const EngineError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  EXPECT_EQ(
      answer({{"STAND_IN_GPUS", "0"}}, error),
      "[device] 'gpu:0' cannot be used: the NVIDIA driver shows no GPU; look at nvidia-smi and "
      "CUDA_VISIBLE_DEVICES");
}

TEST(Loading, AListTouchesNoGpu) {
  const Settings no_context{{"STAND_IN_CONTEXT", "2"}, {"STAND_IN_GPUS", "2"}};
  EXPECT_EQ(answer(no_context, [] { return list_devices().back().name; }), "gpu:1");
  EXPECT_EQ(answer(no_context, [] { return list_devices().back().description; }),
            "cuDNN 9.19.0, CUDA driver 13.0, Stand-in GPU");
  EXPECT_EQ(answer(no_context,
                   [] { return list_engines().front().detail.substr(0, sizeof("cuDNN 9") - 1); }),
            "cuDNN 9");
  EXPECT_EQ(answer(no_context,
                   [] {
                     try {
                       gpu_device(0);
                     } catch (const EngineError&) {
                       return std::string("refused");
                     }
                     return std::string();
                   }),
            "refused");
}

TEST(Loading, AMissingGpuLeavesTheOthersInTheList) {
  const std::string list = answer({{"STAND_IN_GPUS", "0"}}, [] {
    std::string text;
    for (const EngineStatus& each : list_engines()) {
      text += each.name + (each.available ? "+ " : "- ");
    }
    RnnSpec spec;
    spec.num_units = spec.input_size = 3;
    return text + std::string(choose_engine(spec).name());
  });
  EXPECT_EQ(list, "cudnn- cpu+ reference+ cpu");
}

TEST(Loading, AChildOfAProcessThatUsedTheGpuIsToldSo) {
  constexpr const char* kForked =
      "the process was forked from one that had used a GPU, which CUDA does not allow; start it by "
      "spawn, or fork before the first use";
  const std::string text = answer({}, [] {
    gpu_device(0).allocate(100);
    return answer({}, [] {
      std::string said = cudnn_missing() + "|";
      try {
        gpu_device(0).allocate(100);
      } catch (const EngineError& error) {
        said += error.what();
      }
      return said + "|" + std::to_string(gpu_count());
    });
  });
  EXPECT_EQ(text.substr(0, text.find('|')), kForked);
  EXPECT_NE(text.find("'gpu:0' cannot be used") == std::string::npos
                ? text.find("[gpu:0] cannot be used")
                : 0u,
            std::string::npos)
      << text;
  EXPECT_EQ(text.back(), '0');
}

TEST(Loading, TheEnvironmentOfTheProcessStaysAsItIs) {
  const auto value = [] {
    std::string before, after;
    for (char** each = environ; *each; ++each) before += std::string(*each) + ";";
    gpu_device(0).allocate(100);
    for (char** each = environ; *each; ++each) after += std::string(*each) + ";";
    return std::string(before == after ? "the same" : "changed");
  };
  EXPECT_EQ(answer({}, value), "the same");
  EXPECT_EQ(answer({{"CUBLAS_WORKSPACE_CONFIG", ":16:8"}}, value), "the same");
}

/// Arrays of the host for one network, filled with small values.
struct HostJob {
  RnnSpec spec;
  Array params, x, h0, y, hn, dy, dx, dparams;

  explicit HostJob(const RnnSpec& network) : spec(network) {
    const std::int64_t units = spec.num_units, planes = spec.num_pseudo_layers() * kBatch;
    const auto make = [](std::int64_t size) {
      Array array(DType::kFloat32, {size});
      auto* values = static_cast<float*>(array.data());
      for (std::int64_t i = 0; i < size; ++i) values[i] = 0.1f * static_cast<float>(i % 7 - 3);
      return array;
    };
    params = make(params_size(spec));
    x = make(kTime * kBatch * spec.input_size);
    h0 = hn = make(planes * units);
    y = dy = make(kTime * kBatch * spec.output_size());
    dx = x;
    dparams = params;
  }

  void run(bool time_major) {
    const Engine& subject = engine("cudnn");
    const std::vector<std::int32_t> lengths = {2, 4, 0};
    ForwardArgs args;
    args.params = subject.pack(spec, params.view(), PackFor::kTraining);
    args.max_time = kTime;
    args.batch = kBatch;
    args.time_major = time_major;
    if (!time_major) args.sequence_lengths = lengths.data();
    args.x = x.data();
    args.h0 = h0.data();
    args.y = y.data();
    args.hn = hn.data();
    args.training = true;
    const auto saved = subject.forward_saving(args);
    subject.backward(
        {saved.get(), dy.data(), nullptr, nullptr, dx.data(), nullptr, nullptr, dparams.data()});
  }

  static constexpr std::int64_t kTime = 4, kBatch = 3;
};

bool same(const Array& a, const Array& b) {
  return std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.view().size()) * 4) == 0;
}

/// Training steps through the engine, and a product and sums on the device: "done", or the error.
/// What was given must be as it was either way.
std::string train(bool time_major, double dropout, int steps) {
  RnnSpec spec;
  spec.mode = time_major ? RnnMode::kLstm : RnnMode::kGru;
  spec.num_layers = 2;
  spec.num_units = 5;
  spec.input_size = 4;
  spec.training.dropout = dropout;
  HostJob job(spec);
  const HostJob before = job;
  std::string text = "done";
  try {
    for (int n = 0; n < steps; ++n) job.run(time_major);
    const Device& gpu = gpu_device(0);
    const auto a = DeviceArray::from_host(gpu, job.x.view());
    DeviceArray c(gpu, DType::kFloat32, {9});
    gpu.matmul({DType::kFloat32, 3, 3, 4, a.data(), a.data(), nullptr, c.mutable_data()});
    gpu.scale(DType::kFloat32, 9, 2.0, c.data(), c.mutable_data());
    gpu.accumulate(DType::kFloat32, 9, a.data(), c.mutable_data());
    c.to_host();
  } catch (const Error& error) {
    text = error.what();
  }
  const bool whole = same(job.params, before.params) && same(job.x, before.x) &&
                     same(job.h0, before.h0) && same(job.dy, before.dy);
  return whole ? text : "the host's data was changed: " + text;
}

struct FaultTrial {
  bool time_major;
  const char *deferred, *graphs;
  // With graphs there are four steps: one as without, one that records, two that are launched.
  std::string operator()() const {
    return *graphs == '1' ? train(time_major, 0.0, 4) : train(time_major, 0.5, 1);
  }
  // Not every call of four steps.
  int stride() const { return *graphs == '1' ? 5 : 1; }
};

TEST(Faults, AtAnyCallEndInAnErrorThatNamesACall) {
  const std::regex error(R"(^\[\w+\] (the driver|cuDNN|cuBLAS) answered [\s\S]*)");
  int faults = 0;
  for (const FaultTrial& trial :
       {FaultTrial{true, "0", "0"}, {false, "0", "0"}, {false, "1", "0"}, {false, "1", "1"}}) {
    const Settings common = {{"STAND_IN_DEFERRED", trial.deferred},
                             {"OPENRNN_CUDA_GRAPHS", trial.graphs},
                             {"OPENRNN_CUDNN_ALGORITHM", "standard"}};
    std::string text;
    for (int call = 1; call < 2000 && text != "done"; call += trial.stride()) {
      Settings settings = common;
      settings.emplace_back("STAND_IN_FAULT", std::to_string(call));
      text = answer(settings, trial);
      if (text == "done") break;
      ++faults;
      EXPECT_TRUE(std::regex_match(text, error)) << call << ": " << text;
    }
    // The next process starts clean.
    EXPECT_EQ(answer(common, trial), "done");
  }
  EXPECT_GE(faults, 300);
}

// ---- What the stand-in itself checks -----------------------------------------------------------

/// A stream besides the context's own, and an event that orders the two.
struct OtherStream {
  OtherStream() {
    driver.stream_create(&stream, CU_STREAM_NON_BLOCKING);
    driver.event_create(&event, CU_EVENT_DISABLE_TIMING);
  }
  cudnn::Context& context = cudnn::Context::of(0);
  const cudnn::Context::Current current{context};
  const cudnn::DriverApi& driver = cudnn::libraries().driver;
  CUstream stream = nullptr;
  CUevent event = nullptr;
};

/// The first byte of a block that one stream has filled and another one has read.
std::string read_across_streams(bool waits) {
  OtherStream other;
  const auto& [context, current, driver, stream, filled] = other;
  const auto from = context.allocate(16), to = context.allocate(16);
  driver.fill(cudnn::device_address(from.get()), 7, 16, stream);
  driver.event_record(filled, stream);
  if (waits) driver.stream_wait(context.stream(), filled, 0);
  try {
    context.copy(to.get(), from.get(), 16);
    unsigned char found = 0;
    context.copy_out(&found, to.get(), 1);
    cudnn::check(driver.stream_synchronize(stream), "the other stream");
    return std::to_string(found);
  } catch (const EngineError&) {
    return "broken";
  }
}

/// The first byte of a block that one stream has read, or not yet, when another one fills it.
std::string write_across_streams(bool waits) {
  OtherStream other;
  const auto& [context, current, driver, stream, read] = other;
  const auto from = context.allocate(16), to = context.allocate(16);
  context.zero(from.get(), 16);
  context.copy(to.get(), from.get(), 16);
  driver.event_record(read, context.stream());
  if (waits) driver.stream_wait(stream, read, 0);
  driver.fill(cudnn::device_address(from.get()), 7, 16, stream);
  driver.stream_synchronize(stream);
  try {
    unsigned char found = 0;
    context.copy_out(&found, to.get(), 1);
    return std::to_string(found);
  } catch (const EngineError&) {
    return "broken";
  }
}

// In whatever order they happen to run here.
TEST(StandIn, RefusesTwoStreamsThatNoEventOrders) {
  for (const char* deferred : {"0", "1"}) {
    const Settings settings = {{"STAND_IN_DEFERRED", deferred}};
    EXPECT_EQ(answer(settings, [] { return read_across_streams(true); }), "7");
    EXPECT_EQ(answer(settings, [] { return read_across_streams(false); }), "broken");
    EXPECT_EQ(answer(settings, [] { return write_across_streams(true); }), "0");
    EXPECT_EQ(answer(settings, [] { return write_across_streams(false); }), "broken");
  }
}

/// What the end of a capture answers, around `work`.
std::string capture(const std::function<void(cudnn::Context&, void*)>& work) {
  cudnn::Context& context = cudnn::Context::of(0);
  const cudnn::Context::Current current(context);
  const auto memory = context.allocate(16);
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!library) return "libcuda.so.1 is not open";
  const auto begin =
      reinterpret_cast<decltype(&cuStreamBeginCapture)>(dlsym(library, "cuStreamBeginCapture_v2"));
  const auto end =
      reinterpret_cast<decltype(&cuStreamEndCapture)>(dlsym(library, "cuStreamEndCapture"));
  if (!begin || !end) return "no captures";
  CUgraph graph = nullptr;
  begin(context.stream(), CU_STREAM_CAPTURE_MODE_GLOBAL);
  try {
    work(context, memory.get());
  } catch (const EngineError&) {
    // The answer is the end's.
  }
  return std::to_string(end(context.stream(), &graph));
}

TEST(StandIn, RefusesWhatACaptureMayNotHold) {
  const auto expect = [](CUresult result, const std::function<void(cudnn::Context&, void*)>& work) {
    EXPECT_EQ(answer({}, [&] { return capture(work); }), std::to_string(result));
  };
  constexpr CUresult kBad = CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  expect(CUDA_SUCCESS, [](cudnn::Context& context, void* to) { context.zero(to, 16); });
  expect(kBad, [](cudnn::Context& context, void*) { context.wait(); });
  expect(kBad, [](cudnn::Context& context, void*) { context.allocate(1 << 20); });
  expect(kBad, [](cudnn::Context& context, void* to) {
    const std::array<char, 16> pageable{};
    context.copy_in(context.stream(), to, pageable.data(), 16);
  });
}

}  // namespace
}  // namespace openrnn
