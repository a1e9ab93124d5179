// What is said where something is missing. Each question is asked in a process of its own, as the
// libraries are opened once; so no other test may be in this program.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <vector>

#include "cudnn/gpu/context.h"
#include "engine/cudnn_entry.h"
#include "openrnn/runtime.h"

namespace openrnn {
namespace {

namespace fs = std::filesystem;

using Settings = std::vector<std::pair<const char*, std::string>>;

/// What `question` answers in a child with those settings.
std::string answer(const Settings& settings, const std::function<std::string()>& question) {
  int ends[2];
  if (pipe(ends) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    for (const auto& [name, value] : settings) setenv(name, value.c_str(), 1);
    const std::string text = question();
    const bool whole = write(ends[1], text.data(), text.size()) == ssize_t(text.size());
    _exit(whole ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  for (char c = 0; read(ends[0], &c, 1) == 1;) text += c;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? text : text + " (the child died)";
}

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

}  // namespace
}  // namespace openrnn
