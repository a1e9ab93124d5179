// One network in one arithmetic on a device: inference, training forward, forward + backward.
#pragma once

#include "openrnn/device.h"
#include "openrnn/engine.h"
#include "peers/cpp/server.h"

namespace openrnn::gpu_bench {

/// The engine from C++, with all arrays in the memory of the device. Training packs the parameters
/// in every call, as they change in every step, and lends them as a variable does.
class NetworkJob final : public peers::Job {
 public:
  /// Throws: peers::Refused for an arithmetic that is not one of ours, and what the engine throws.
  NetworkJob(const peers::Task& task, const Device& device);

  std::string kernel() const override;
  double call() override;
  std::vector<double> times(long count, long warm) override;
  /// 'inference', 'forward', 'training'.
  void choose(const std::string& pass) override;
  std::map<std::string, peers::Floats> results() const override;

 private:
  enum class Pass : std::uint8_t { kInference, kForward, kTraining };
  DeviceArray on_device(const peers::Floats& values) const;
  void train();

  const Device& device_;
  RnnSpec spec_;
  const Engine& engine_;
  DeviceArray params_, x_, r_, y_, hn_, cn_, dx_, dparams_;
  ForwardArgs args_;
  Pass pass_ = Pass::kInference;
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace openrnn::gpu_bench
