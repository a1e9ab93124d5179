// openrnn doctor: what this machine and build have.
#include <fmt/core.h>
#include <link.h>

#include <cstring>

#include "cli/commands.h"
#include "openrnn/runtime.h"

namespace openrnn::cli {
namespace {

/// The libraries that this process has really loaded.
int print_library(dl_phdr_info* info, std::size_t, void*) {
  if (info->dlpi_name != nullptr && std::strchr(info->dlpi_name, '/') != nullptr) {
    fmt::print("  {}\n", info->dlpi_name);
  }
  return 0;
}

/// One line of the table: a choice of arithmetic, and its kind on this machine.
struct Choice {
  const char* name;
  Math math = Math::kFloat32;
  WeightsDType weights = WeightsDType::kNone;
};

void print_math(const Device& device) {
  fmt::print("math on {}:\n", device.name());
  for (const Choice& choice :
       {Choice{"float32"}, Choice{"bf16", Math::kBf16}, Choice{"bf16x3", Math::kBf16x3},
        Choice{"tf32", Math::kTf32}, Choice{"fp16", Math::kFp16},
        Choice{"weights float16", Math::kFloat32, WeightsDType::kFloat16},
        Choice{"weights bfloat16", Math::kFloat32, WeightsDType::kBfloat16},
        Choice{"weights int8", Math::kFloat32, WeightsDType::kInt8}}) {
    RnnSpec spec;
    spec.num_units = spec.input_size = 1;
    spec.compute.math = choice.math;
    spec.compute.weights_dtype = choice.weights;
    try {
      const std::string_view kind = math_kind(spec, device);
      const bool other = choice.math == Math::kBf16x3 && kind == "float32";
      fmt::print("  {:<17} {}\n", choice.name, other ? "computed as float32, no AMX" : kind);
    } catch (const EngineError&) {
      fmt::print("  {:<17} not there\n", choice.name);
    } catch (const UnsupportedError&) {
      fmt::print("  {:<17} not there\n", choice.name);
    }
  }
}

}  // namespace

int run(const DoctorFlags&) {
  fmt::print("engines:\n");
  for (const EngineStatus& engine : list_engines()) {
    fmt::print("  {:<10} {:<8} {}\n", engine.name, engine.available ? "ready" : "absent",
               engine.detail);
  }
  fmt::print("devices:\n");
  for (const DeviceInfo& device : list_devices()) {
    fmt::print("  {:<10} {}\n", device.name, device.description);
  }
  std::string isas;
  for (const std::string_view isa : available_cpu_isas()) {
    isas.append(isas.empty() ? "" : ", ").append(isa);
  }
  fmt::print("instruction set: {} (this processor has {}; OPENRNN_ISA forces one)\n", cpu_isa(),
             isas);
  for (const DeviceInfo& each : list_devices()) print_math(device(each.name));
  fmt::print("tiles of AMX: {}\n", amx_permission());
  fmt::print("threads: {} (OPENRNN_NUM_THREADS or --threads changes it)\n", num_threads());
  fmt::print("compiler: {}\nlibraries:\n", __VERSION__);
  dl_iterate_phdr(print_library, nullptr);
  return 0;
}

}  // namespace openrnn::cli
