// Members of JSON that may be missing or of another type.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace openrnn::mapping {

/// Why a layer or model is none here.
struct NoKerasLayer {
  std::string why;
};

inline const nlohmann::json* member(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

/// Empty if there is no such text.
inline std::string text_at(const nlohmann::json& object, const char* key) {
  const nlohmann::json* const value = member(object, key);
  return value && value->is_string() ? value->get<std::string>() : std::string();
}

inline bool flag_at(const nlohmann::json& object, const char* key, bool otherwise) {
  const nlohmann::json* const value = member(object, key);
  return value && value->is_boolean() ? value->get<bool>() : otherwise;
}

inline double number_at(const nlohmann::json& object, const char* key, double otherwise) {
  const nlohmann::json* const value = member(object, key);
  return value && value->is_number() ? value->get<double>() : otherwise;
}

/// The member "config", empty where there is none.
inline const nlohmann::json& config_of(const nlohmann::json& node) {
  static const nlohmann::json kNone = nlohmann::json::object();
  const nlohmann::json* const config = member(node, "config");
  return config ? *config : kNone;
}

/// The layer's name.
inline std::string name_of(const nlohmann::json& node) {
  const std::string name = text_at(config_of(node), "name");
  return name.empty() ? text_at(node, "name") : name;
}

}  // namespace openrnn::mapping
