#include <array>
#include <cstdlib>

#include "base/message.h"
#include "cpu/cpu_engine.h"
#include "engine/cudnn_entry.h"
#include "openrnn/device.h"
#include "openrnn/runtime.h"
#include "openrnn/spec_fields.h"
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

std::string kernels_of(const RnnSpec& spec) {
  if (spec.has_cudnn_step()) return message("cudnn's ", to_string(spec.mode), " step");
  return message(to_string(spec.mode), " step with options: ", step_options(spec));
}

// Why `each` does not run the network when `chosen` does.
std::string reason_of(const Entry& each, const RnnSpec& spec, const Engine* chosen) {
  if (const std::string missing = each.missing(); !missing.empty()) return missing;
  if (const std::string reason = each.get().unsupported(spec); !reason.empty()) return reason;
  if (!chosen) return "supports it, but is not asked for";
  return each.chosen ? message("slower than '", chosen->name(), "'") : "needs device='gpu:0'";
}

}  // namespace

Explanation explain(const ValidSpec& valid, const ExplainedCall& call) {
  if (call.max_time < 0 || call.batch < 0) {
    throw ArgumentError(message("[explain] max_time is ", call.max_time, ", batch ", call.batch,
                                ", expected 0 or more"));
  }
  if (call.recompute < kRecomputeRoot) {
    throw ArgumentError(message("[explain] recompute is ", call.recompute,
                                ", expected a number of steps, 0 or kRecomputeRoot"));
  }
  const RnnSpec& spec = valid;
  Explanation found;
  const Engine* chosen = nullptr;
  try {
    chosen = call.device ? &choose_engine(valid, *call.device) : &choose_engine(valid);
    found.engine = chosen->name();
    found.description = chosen->description();
    found.kernels = kernels_of(spec);
    found.math_kind = chosen->math_kind(spec);
    found.saved_bytes = chosen->saved_bytes(spec, call.max_time, call.batch, call.recompute);
    // A GPU's results are repeatable there, but no promise to others.
    found.same_bits = !chosen->device() && found.engine != "cudnn";
  } catch (const Error&) {
    chosen = nullptr;
  }
  found.params_bytes = params_size(valid) * static_cast<std::int64_t>(dtype_size(spec.dtype));
  for (const Entry& each : kEngines) {
    if (each.name != found.engine) {
      found.others.emplace_back(each.name, reason_of(each, spec, chosen));
    }
  }
  return found;
}

std::string to_string(const Explanation& e) {
  std::string text = message("engine       ", e.engine.empty() ? "none" : e.engine, "\n");
  if (!e.engine.empty()) {
    text += message("runs on      ", e.description, "\nkernels      ", e.kernels, "\narithmetic   ",
                    e.math_kind, "\nsame bits    ",
                    e.same_bits ? "at every run, thread count and processor of this arithmetic"
                                : "at every run on this GPU",
                    "\n");
  }
  text += message("parameters   ", e.params_bytes, " bytes\n");
  if (e.saved_bytes) text += message("saved        ", *e.saved_bytes, " bytes in training\n");
  for (const auto& [name, reason] : e.others) text += message("not ", name, ": ", reason, "\n");
  return text;
}

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
