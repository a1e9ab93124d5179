#include "mapping/support/values.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

namespace openrnn::mapping {

namespace {

using nlohmann::json;

// JSON has no numbers for them.
constexpr const char* kNotANumber = "nan";
constexpr const char* kInfinite[] = {"inf", "-inf"};
// The key of an object around numbers of which some have none.
constexpr const char* kReals = "reals";

json json_of_real(double value) {
  if (std::isnan(value)) return kNotANumber;
  if (std::isinf(value)) return kInfinite[value < 0 ? 1 : 0];
  return value;
}

json json_of(std::monostate) { return nullptr; }
template <class T>
json json_of(const T& value) {
  return value;
}
json json_of(double value) {
  return std::isfinite(value) ? json(value) : json{{kReals, json_of_real(value)}};
}
json json_of(const std::vector<double>& values) {
  const auto is_finite = [](double value) { return std::isfinite(value); };
  if (std::ranges::all_of(values, is_finite) && !values.empty()) return values;
  json reals = json::array();
  for (const double value : values) reals.push_back(json_of_real(value));
  return {{kReals, std::move(reals)}};
}
json json_of(const std::vector<std::string>& values) {
  // An empty list would be one of integers.
  return values.empty() ? json{{"texts", json::array()}} : json(values);
}

std::string dumped(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::optional<double> real_of(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  if (text == kNotANumber) return std::numeric_limits<double>::quiet_NaN();
  if (text == kInfinite[0]) return HUGE_VAL;
  if (text == kInfinite[1]) return -HUGE_VAL;
  return std::nullopt;
}

std::optional<PlainValue> reals_of(const json& values) {
  if (!values.is_array()) {
    const std::optional<double> value = real_of(values);
    return value ? std::optional<PlainValue>(*value) : std::nullopt;
  }
  std::vector<double> reals;
  for (const json& value : values) {
    const std::optional<double> real = real_of(value);
    if (!real) return std::nullopt;
    reals.push_back(*real);
  }
  return reals;
}

bool is_int64(const json& value) {
  return value.is_number_integer() &&
         (!value.is_number_unsigned() || value.get<std::uint64_t>() <= INT64_MAX);
}

std::optional<PlainValue> list_of(const json& values) {
  if (std::ranges::all_of(values, is_int64)) return values.get<std::vector<std::int64_t>>();
  const auto is_text = [](const json& value) { return value.is_string(); };
  if (std::ranges::all_of(values, is_text)) return values.get<std::vector<std::string>>();
  const auto is_number = [](const json& value) { return value.is_number(); };
  if (std::ranges::all_of(values, is_number)) return reals_of(values);
  return std::nullopt;
}

std::optional<PlainValue> value_of(const std::string& text) {
  const json value = json::parse(text, nullptr, false);
  if (value.is_null()) return PlainValue();
  if (value.is_boolean()) return value.get<bool>();
  if (is_int64(value)) return value.get<std::int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_array()) return list_of(value);
  if (!value.is_object()) return std::nullopt;
  if (value.contains(kReals)) return reals_of(value[kReals]);
  if (value.contains("texts")) return std::vector<std::string>();
  return std::nullopt;
}

}  // namespace

std::map<std::string, std::string> text_values(const std::vector<NamedValue>& values) {
  std::map<std::string, std::string> texts;
  std::set<std::string> names;
  for (const NamedValue& value : values) {
    const auto* const text = std::get_if<std::string>(&value.value);
    texts[value.name] =
        text ? *text
             : std::visit([](const auto& held) { return dumped(json_of(held)); }, value.value);
    if (text) {
      names.erase(value.name);
    } else {
      names.insert(value.name);
    }
  }
  if (!names.empty()) texts[std::string(kJsonValues)] = dumped(names);
  return texts;
}

std::vector<NamedValue> typed_values(const std::vector<NamedValue>& texts) {
  const auto* const list = find_value<std::string>(texts, kJsonValues);
  const json parsed = list ? json::parse(*list, nullptr, false) : json();
  std::set<std::string, std::less<>> names;
  if (parsed.is_array()) {
    for (const json& name : parsed) {
      if (name.is_string()) names.insert(name.get<std::string>());
    }
  }
  std::vector<NamedValue> values;
  for (const NamedValue& given : texts) {
    if (given.name == kJsonValues) continue;
    const auto* const text = std::get_if<std::string>(&given.value);
    std::optional<PlainValue> value;
    if (text && names.contains(given.name)) value = value_of(*text);
    values.push_back(value ? NamedValue{given.name, std::move(*value)} : given);
  }
  return values;
}

}  // namespace openrnn::mapping
