// The calls that `openrnn bench` times.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cli/bench/measure.h"
#include "openrnn/graph.h"
#include "openrnn/runtime.h"

namespace openrnn::cli {

/// A network's calls on arrays of its own.
class Passes {
 public:
  explicit Passes(const BenchConfig& config);
  Passes(const Passes&) = delete;
  Passes& operator=(const Passes&) = delete;

  struct Pass {
    const char* name;
    std::function<void()> work;
    double flop;
  };
  /// All passes of the network.
  std::vector<Pass> all();
  void forward_backward();
  /// Whether it can be compared with the peak of the CPU.
  bool on_processor() const { return engine_.device() == nullptr; }

 private:
  void forward();
  void forward_training();
  DeviceArray there(const Array& host) { return DeviceArray::from_host(device_, host.view()); }
  // A GPU works asynchronously until a result is read.
  void wait_for(const DeviceArray& result);

  BenchConfig config_;
  const Device& device_;
  const Engine& engine_;
  DeviceArray params_, x_, y_, dy_, dx_, dparams_;
  std::unique_ptr<Workspace> workspace_;
  std::unique_ptr<SavedForward> saved_;
  ForwardArgs forward_, training_;
};

/// Medians of rounds in which both are timed one after the other.
struct Compared {
  double ratio, first_ms, second_ms;
};
/// The best of `tries` counts in each round, since a machine in use is only ever slower.
Compared compare(const std::function<void()>& first, const std::function<void()>& second,
                 int tries);
double seconds_of(const std::function<void()>& work);
double median(std::vector<double> values);

}  // namespace openrnn::cli
