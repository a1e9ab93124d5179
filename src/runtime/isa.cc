#include "cpu/isa/isa.h"

#include "cpu/isa/tiles.h"
#include "cpu/threading/affinity.h"
#include "cpu/threading/thread_lease.h"
#include "openrnn/runtime.h"

namespace openrnn {

std::string_view cpu_isa() { return cpu::isa_name(); }
std::vector<std::string_view> available_cpu_isas() { return cpu::available_isas(); }
void force_cpu_isa(std::string_view isa) { cpu::force_isa(isa); }
std::string amx_permission() { return cpu::tile_permission(); }
void shutdown() noexcept { cpu::end_workers(); }
bool spread_threads() noexcept { return cpu::spreads_threads(); }
void set_spread_threads(bool spread) noexcept { cpu::set_spreads_threads(spread); }

HostThreadsScope::HostThreadsScope(HostThreads host) noexcept
    : outer_(cpu::exchange_host_threads(host)) {}
HostThreadsScope::~HostThreadsScope() { cpu::exchange_host_threads(outer_); }

}  // namespace openrnn
