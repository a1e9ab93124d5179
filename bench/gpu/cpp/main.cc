// openrnn_gpu_bench serve|across|step [DEVICE [STEPS|SECONDS [reduced]]]
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

#include "gpu/cpp/commands.h"
#include "gpu/cpp/network_job.h"
#include "openrnn/runtime.h"

namespace openrnn::gpu_bench {
namespace {

std::string about(const Device& device) {
  for (const DeviceInfo& info : list_devices()) {
    if (info.name == device.name()) return "OpenRNN, " + info.description;
  }
  return "OpenRNN, " + std::string(device.name());
}

int run(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  const Device& on = device(argc > 2 ? argv[2] : "gpu:0");
  const char* const number = argc > 3 ? argv[3] : nullptr;
  if (command == "serve") return serve(on);
  if (command == "across") return across(on, number ? std::atoll(number) : 40) ? 0 : 1;
  if (command == "step") {
    step(on, number ? std::atof(number) : 5.0, argc > 4 && std::string(argv[4]) == "reduced");
    return 0;
  }
  throw ArgumentError("[openrnn_gpu_bench] command is '" + command +
                      "', expected serve, across or step");
}

}  // namespace

int serve(const Device& device) {
  const auto make = [&device](const peers::Task& task) -> std::unique_ptr<peers::Job> {
    return std::make_unique<NetworkJob>(task, device);
  };
  return peers::serve(make, about(device));
}

}  // namespace openrnn::gpu_bench

int main(int argc, char** argv) try {
  return openrnn::gpu_bench::run(argc, argv);
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
