#include <array>
#include <cstdlib>

#include "base/message.h"
#include "cpu/cpu_engine.h"
#include "engine/cudnn_entry.h"
#include "openrnn/device.h"
#include "openrnn/runtime.h"
#include "reference/reference.h"
#include "runtime/staged.h"

namespace openrnn {
namespace {

std::string nothing_missing() { return {}; }
std::string gpu_missing() { return cudnn_missing(); }

struct Entry {
  std::string_view name;
  std::string (*missing)();
  const Engine& (*get)();
  // Chosen without being named: engines that always exist and copy nothing between memories.
  bool chosen;
};

// Best first.
constexpr std::array kEngines = {Entry{"cudnn", gpu_missing, staged_gpu_engine, false},
                                 Entry{"cpu", nothing_missing, cpu_engine, true},
                                 Entry{"reference", nothing_missing, reference_engine, true}};

// The one place that reads the variable; empty when it is not set.
std::string_view forced_engine() {
  const char* text = std::getenv("OPENRNN_ENGINE");
  return text ? text : "";
}

const Entry& entry(std::string_view call, std::string_view name) {
  std::string known;
  for (const Entry& each : kEngines) {
    if (each.name == name) return each;
    known += message(known.empty() ? "'" : ", '", each.name, "'");
  }
  throw ArgumentError(message("[", call, "] engine is '", name, "', expected one of ", known));
}

const Engine& get(const Entry& from) {
  if (const std::string missing = from.missing(); !missing.empty()) {
    throw EngineError(message("[engine] '", from.name, "' cannot run on this machine: ", missing));
  }
  return from.get();
}

std::string why_not(const Entry& unasked) {
  const std::string missing = unasked.missing();
  return message("needs device='gpu:0'", missing.empty() ? "" : "; ", missing);
}

// Missing arithmetic is an error of the machine; a network that no engine runs is one of ours.
[[noreturn]] void refuse(const RnnSpec& spec, const std::string& text) {
  if (spec.compute.math != Math::kFloat32) throw EngineError(text);
  throw UnsupportedError(text);
}

}  // namespace

std::vector<EngineStatus> list_engines() {
  std::vector<EngineStatus> list;
  for (const Entry& each : kEngines) {
    const std::string missing = each.missing();
    const bool available = missing.empty();
    list.push_back(
        {std::string(each.name), available, available ? each.get().description() : missing});
  }
  return list;
}

const Engine& engine(std::string_view name) { return get(entry("engine", name)); }

const Engine& choose_engine(const ValidSpec& valid) {
  const RnnSpec& spec = valid;
  if (const std::string_view forced = forced_engine(); !forced.empty()) {
    const Engine& chosen = get(entry("OPENRNN_ENGINE", forced));
    if (const std::string reason = chosen.unsupported(spec); !reason.empty()) {
      refuse(spec, message("[choose_engine] OPENRNN_ENGINE is '", forced,
                           "', expected an engine that can run ", describe(spec), ": ", reason));
    }
    return chosen;
  }
  for (const Entry& each : kEngines) {
    if (each.chosen && each.get().unsupported(spec).empty()) return each.get();
  }
  // Text only now: every call of a layer passes here.
  std::string reasons;
  for (const Entry& each : kEngines) {
    const std::string reason = each.chosen ? each.get().unsupported(spec) : why_not(each);
    reasons += message("; ", each.name, ": ", reason);
  }
  refuse(spec, message("[choose_engine] no engine of the cpu can run ", describe(spec), reasons));
}

const Engine& choose_engine(const ValidSpec& valid, const Device& device) {
  const Engine* const own = device.engine();
  if (!own) return choose_engine(valid);
  const RnnSpec& spec = valid;
  if (const std::string reason = own->unsupported(spec); !reason.empty()) {
    refuse(spec, message("[choose_engine] device '", device.name(), "' cannot run ", describe(spec),
                         ": ", reason));
  }
  return *own;
}

std::string_view math_kind(const ValidSpec& spec) { return choose_engine(spec).math_kind(spec); }

std::string_view math_kind(const ValidSpec& spec, const Device& device) {
  return choose_engine(spec, device).math_kind(spec);
}

}  // namespace openrnn
