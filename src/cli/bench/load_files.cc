#include "cli/bench/load_files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/message.h"
#include "openrnn/runtime_file.h"

namespace openrnn::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr int kLoadRounds = 3, kReadyRounds = 11;
constexpr std::int64_t kLoadLayers = 8;

struct LoadedKind {
  const char* name;
  ModelFormat format;
  const char* ending;
  // Bytes of the file that the path itself is not.
  const char* data_ending;
};
constexpr LoadedKind kLoadedKinds[] = {
    {"OpenRNN", ModelFormat::kOpenrnn, ".openrnn", ""},
    {"safetensors", ModelFormat::kSafetensors, ".safetensors", ""},
    {"PyTorch", ModelFormat::kTorch, ".pt", ""},
    {"npz", ModelFormat::kNpz, ".npz", ""},
    {"ONNX", ModelFormat::kOnnx, ".onnx", ""},
    {"Keras .h5", ModelFormat::kKerasH5, ".h5", ""},
    {"Keras 3", ModelFormat::kKeras, ".keras", ""},
    {"TensorFlow", ModelFormat::kTensorflow, ".index", ".data-00000-of-00001"},
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Of the process and of the system for it. The files are in the page cache, so that nothing waits
// for a disk, and other programs do not count.
double processor_seconds() {
  struct ::rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const ::timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

/// What a process of its own measured, and its largest memory.
struct ChildResult {
  std::array<double, 2> values{};
  double peak_bytes = 0.0;
};

[[noreturn]] void fail_loading(const std::string& what) {
  throw IoError(message("[bench] ", what, ": ", std::strerror(errno)));
}

// The child ends without destructors of what the parent has; faults are its exit code.
template <class Work>
ChildResult in_child(const std::string& what, const Work& work) {
  int ends[2] = {-1, -1};
  if (::pipe(ends) != 0) fail_loading(what);
  const ::pid_t child = ::fork();
  if (child < 0) fail_loading(what);
  if (child == 0) {
    std::string fault;
    try {
      const std::array<double, 2> values = work();
      const ::ssize_t written = ::write(ends[1], values.data(), sizeof values);
      ::_exit(written == sizeof values ? 0 : 1);
    } catch (const std::exception& error) {
      fault = std::string(error.what()) + "\n";
    }
    const ::ssize_t ignored = ::write(STDERR_FILENO, fault.data(), fault.size());
    ::_exit(ignored < 0 ? 2 : 1);
  }
  ::close(ends[1]);
  ChildResult result;
  const ::ssize_t got = ::read(ends[0], result.values.data(), sizeof result.values);
  ::close(ends[0]);
  int status = 0;
  struct ::rusage usage {};
  while (::wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  if (got != sizeof result.values || status != 0) {
    throw IoError("[bench] the process for " + what + " failed, expected it to end well");
  }
  result.peak_bytes = static_cast<double>(usage.ru_maxrss) * 1024.0;
  return result;
}

// [W R] of kLoadLayers layers of as many inputs as units are all but the biases.
MappedModel loaded_model(std::int64_t layers, std::int64_t bytes) {
  const double units =
      std::sqrt(static_cast<double>(bytes) / (4.0 * 8.0 * static_cast<double>(layers)));
  RnnSpec spec{.num_layers = layers, .num_units = std::max<std::int64_t>(8, std::lround(units))};
  spec.input_size = spec.num_units;
  MappedModel model;
  model.networks.push_back(
      {.name = "net", .spec = spec, .params = Array(spec.dtype, {params_size(spec)})});
  // No two values in a row are equal, and none is special.
  std::uint32_t state = 1;
  for (float& value : model.networks[0].params.as<float>()) {
    state = state * 1664525u + 1013904223u;
    value = static_cast<float>(state >> 8) * 0x1p-25F - 0.25F;
  }
  return model;
}

double plain_read(const std::string& path, std::uint64_t bytes) {
  const double start = processor_seconds();
  const std::unique_ptr<char[]> memory(new char[bytes]);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  std::uint64_t at = 0;
  while (file >= 0 && at < bytes) {
    const ::ssize_t got = ::read(file, memory.get() + at, bytes - at);
    if (got <= 0) break;
    at += static_cast<std::uint64_t>(got);
  }
  if (file >= 0) ::close(file);
  if (at != bytes) fail_loading(path);
  return processor_seconds() - start;
}

LoadCost cost_of(const LoadedKind& kind, const std::string& path, const std::string& data) {
  LoadCost cost{.kind = kind.name};
  const std::uint64_t bytes = fs::file_size(data);
  cost.file_bytes = static_cast<double>(bytes);
  for (int round = 0; round <= kLoadRounds; ++round) {
    const ChildResult read =
        in_child("a plain read", [&] { return std::array<double, 2>{plain_read(data, bytes)}; });
    const ChildResult load = in_child(message("loading ", kind.name), [&] {
      const double start = processor_seconds();
      const MappedModel model = load_networks(path);
      const double seconds = processor_seconds() - start;
      return std::array<double, 2>{seconds, static_cast<double>(model.networks.size())};
    });
    if (load.values[1] != 1.0) fail_loading("no network was loaded");
    if (round == 0) continue;  // which brings the file into the page cache
    const auto keep = [&](double& best, double seconds) {
      best = round == 1 ? seconds : std::min(best, seconds);
    };
    keep(cost.read_seconds, read.values[0]);
    keep(cost.load_seconds, load.values[0]);
    cost.peak_bytes = std::max(cost.peak_bytes, load.peak_bytes);
  }
  return cost;
}

}  // namespace

void measure_loading(const std::string& folder, std::int64_t megabytes, const std::string& only,
                     const std::function<void(const LoadCost&)>& report) {
  for (const LoadedKind& kind : kLoadedKinds) {
    if (std::string_view(kind.name).find(only) == std::string_view::npos) continue;
    const std::string stem = (fs::path(folder) / "bench_load").string();
    const std::string path = stem + kind.ending,
                      data = kind.data_ending[0] ? stem + kind.data_ending : path;
    in_child("writing a file", [&] {
      save_networks(path, loaded_model(kLoadLayers, megabytes << 20), kind.format);
      return std::array<double, 2>{};
    });
    const LoadCost cost = cost_of(kind, path, data);
    fs::remove(path);
    if (data != path) fs::remove(data);
    report(cost);
  }
}

ReadyCost measure_ready(const std::string& folder) {
  const std::string path = (fs::path(folder) / "bench_ready.openrnn").string();
  save_networks(path, loaded_model(1, std::int64_t{1} << 20), ModelFormat::kOpenrnn);
  const ChildResult result = in_child("loading 1 MB", [&] {
    std::array<double, 2> ms{};
    for (int round = 0; round < kReadyRounds; ++round) {
      const Clock::time_point start = Clock::now();
      const auto packed = load_packed(path);
      const double spent = 1e3 * seconds_since(start);
      if (round == 0) ms[0] = spent;
      if (round > 0) ms[1] = round == 1 ? spent : std::min(ms[1], spent);
    }
    return ms;
  });
  fs::remove(path);
  return {result.values[0], result.values[1]};
}

}  // namespace openrnn::cli
