#include <charconv>

#include "base/excerpt.h"
#include "base/message.h"
#include "cpu/device/cpu_device.h"
#include "engine/cudnn_entry.h"
#include "openrnn/runtime.h"

namespace openrnn {
namespace {

std::string gpu_name(int ordinal) { return message("gpu:", ordinal); }

// The N of 'gpu:N'; -1 for anything else.
int gpu_ordinal(std::string_view name) {
  constexpr std::string_view kPrefix = "gpu:";
  if (name == "gpu") return 0;
  if (!name.starts_with(kPrefix)) return -1;
  const std::string_view digits = name.substr(kPrefix.size());
  int ordinal = -1;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  // 'gpu:007' would be a second name of the same device.
  return whole && gpu_name(ordinal) == name ? ordinal : -1;
}

}  // namespace

std::vector<DeviceInfo> list_devices() {
  std::vector<DeviceInfo> list{{"cpu", message("this processor, ", cpu_isa())}};
  const int count = gpu_count();
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    if (!cudnn_missing(ordinal).empty()) continue;
    list.push_back({gpu_name(ordinal), gpu_description(ordinal)});
  }
  return list;
}

const Device& device(std::string_view name) {
  if (name == "cpu") return cpu_device();
  if (const int ordinal = gpu_ordinal(name); ordinal >= 0) return gpu_device(ordinal);
  throw ArgumentError(message("[device] name is '", excerpt(name),
                              "', expected 'cpu', 'gpu' or 'gpu:N', N from 0"));
}

}  // namespace openrnn
