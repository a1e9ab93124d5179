#include <array>
#include <cstdlib>

#include "base/message.h"
#include "cpu/cpu_engine.h"
#include "engine/cudnn_entry.h"
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
};

// Best first.
constexpr std::array kEngines = {Entry{"cudnn", gpu_missing, staged_gpu_engine},
                                 Entry{"cpu", nothing_missing, cpu_engine},
                                 Entry{"reference", nothing_missing, reference_engine}};

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

// Arithmetic that is not there is the machine's lack; a network that no engine runs is ours.
[[noreturn]] void refuse(const RnnSpec& spec, const std::string& text) {
  if (spec.math != Math::kFloat32) throw EngineError(text);
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

const Engine& choose_engine(const RnnSpec& spec) {
  spec.validate();
  if (const std::string_view forced = forced_engine(); !forced.empty()) {
    const Engine& chosen = get(entry("OPENRNN_ENGINE", forced));
    if (const std::string reason = chosen.unsupported(spec); !reason.empty()) {
      refuse(spec, message("[choose_engine] OPENRNN_ENGINE is '", forced,
                           "', expected an engine that can run ", describe(spec), ": ", reason));
    }
    return chosen;
  }
  const auto reason_against = [&spec](const Entry& each) {
    std::string reason = each.missing();
    return reason.empty() ? each.get().unsupported(spec) : reason;
  };
  for (const Entry& each : kEngines) {
    if (reason_against(each).empty()) return each.get();
  }
  // Only now in words: every call of a layer comes by here.
  std::string reasons;
  for (const Entry& each : kEngines) {
    reasons += message("; ", each.name, ": ", reason_against(each));
  }
  refuse(spec, message("[choose_engine] no engine can run ", describe(spec), reasons));
}

std::string_view math_kind(const RnnSpec& spec) { return choose_engine(spec).math_kind(spec); }

}  // namespace openrnn
