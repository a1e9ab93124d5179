// openrnn doctor: what this machine and build have.
#include <fmt/core.h>
#include <link.h>

#include <cstring>

#include "cli/commands.h"
#include "openrnn/runtime.h"

namespace openrnn::cli {
namespace {

/// The libraries that this very process has loaded, which is what counts.
int print_library(dl_phdr_info* info, std::size_t, void*) {
  if (info->dlpi_name != nullptr && std::strchr(info->dlpi_name, '/') != nullptr) {
    fmt::print("  {}\n", info->dlpi_name);
  }
  return 0;
}

}  // namespace

int run(const DoctorFlags&) {
  fmt::print("engines:\n");
  for (const EngineStatus& engine : list_engines()) {
    fmt::print("  {:<10} {:<8} {}\n", engine.name, engine.available ? "ready" : "absent",
               engine.detail);
  }
  std::string isas;
  for (const std::string_view isa : available_cpu_isas()) {
    isas.append(isas.empty() ? "" : ", ").append(isa);
  }
  fmt::print("instruction set: {} (this processor has {}; OPENRNN_ISA forces one)\n", cpu_isa(),
             isas);
  fmt::print("threads: {} (OPENRNN_NUM_THREADS or --threads changes it)\n", num_threads());
  fmt::print("compiler: {}\nlibraries:\n", __VERSION__);
  dl_iterate_phdr(print_library, nullptr);
  return 0;
}

}  // namespace openrnn::cli
