// The engines that are tested; the cpu engine, and its instruction sets and threads for the time of
// a scope.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "conformance/support/case.h"
#include "cpu/plan/plan.h"
#include "cpu/support/emulation.h"
#include "cpu/support/near_cores.h"
#include "cpu/threading/thread_lease.h"
#include "engine/cudnn_entry.h"
#include "openrnn/runtime.h"

namespace openrnn::conformance {

inline const Engine& cpu() { return engine("cpu"); }

/// Whether the GPU engine is tested: a GPU or its stand-in.
inline bool tests_gpu() {
  const char* device = std::getenv("OPENRNN_TEST_DEVICE");
  return device && std::string(device) == "gpu:0";
}
/// Whether that GPU is a stand-in.
inline bool pretends() {
  const char* folders = std::getenv("OPENRNN_CUDA_LIBRARIES");
  return folders && std::string(folders).find("stand_in") != std::string::npos;
}
inline std::vector<std::string> tested_engines() {
  return tests_gpu() ? std::vector<std::string>{"cudnn"}
                     : std::vector<std::string>{"cpu", "reference"};
}

/// A case on one of tested_engines().
struct Subject {
  std::string engine;
  Case c;
};

inline void PrintTo(const Subject& s, std::ostream* out) { *out << s.engine << " " << s.c.text; }
inline std::string subject_name(const testing::TestParamInfo<Subject>& info) {
  return info.param.engine + "_" + test_name(info.param.c);
}

/// Skips everything where the GPU, or the emulation of AMX, that is to be tested cannot be used.
class NeedsTestedEngine : public testing::Environment {
 public:
  void SetUp() override {
    const char* isa = std::getenv("OPENRNN_ISA");
    if (isa && std::string(isa) == "amx_emulated" && !cpu::has_emulation()) {
      GTEST_SKIP() << cpu::kNoEmulation;
    }
    if (!tests_gpu()) return;
    if (const std::string reason = cudnn_missing(); !reason.empty()) {
      GTEST_SKIP() << "no GPU: " << reason;
    }
  }
};
inline const testing::Environment* const needs_tested_engine =
    testing::AddGlobalTestEnvironment(new NeedsTestedEngine);

/// Runs on one instruction set while it lives.
class ForcedIsa {
 public:
  explicit ForcedIsa(std::string_view isa) : before_(cpu_isa()) { force_cpu_isa(isa); }
  ~ForcedIsa() { force_cpu_isa(before_); }
  ForcedIsa(const ForcedIsa&) = delete;
  ForcedIsa& operator=(const ForcedIsa&) = delete;

 private:
  std::string before_;
};

/// What the products of `spec` are on an instruction set.
inline std::string kind_on(std::string_view isa, const RnnSpec& spec) {
  const ForcedIsa forced(isa);
  return std::string(cpu().math_kind(spec));
}

/// The instruction sets that a case is tested on: those of this processor, and the emulation of AMX
/// where it alone has the kind.
inline std::vector<std::string_view> tested_isas(const RnnSpec& spec) {
  std::vector<std::string_view> isas = available_cpu_isas();
  if (!cpu::has_emulation()) return isas;
  const std::string emulated = kind_on("amx_emulated", spec);
  const auto has_kind = [&](std::string_view isa) { return kind_on(isa, spec) == emulated; };
  if (std::ranges::none_of(isas, has_kind)) isas.emplace_back("amx_emulated");
  return isas;
}

/// Runs on so many threads while it lives, which divide every call as near ones do, whoever else
/// runs here.
class ForcedThreads {
 public:
  explicit ForcedThreads(int n)
      : before_(num_threads()),
        latency_(cpu::assume_barrier_latency(cpu::kNearBarrierLatency)),
        rates_(cpu::assume_rates(&cpu::kNearRates)),
        heeding_(cpu::heed_contention(false)) {
    set_num_threads(n);
  }
  ~ForcedThreads() {
    set_num_threads(before_);
    cpu::assume_barrier_latency(latency_);
    cpu::assume_rates(rates_);
    cpu::heed_contention(heeding_);
  }
  ForcedThreads(const ForcedThreads&) = delete;
  ForcedThreads& operator=(const ForcedThreads&) = delete;

 private:
  int before_;
  double latency_;
  const cpu::Rates* rates_;
  bool heeding_;
};

}  // namespace openrnn::conformance
