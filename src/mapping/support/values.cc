#include "mapping/support/values.h"

#include <nlohmann/json.hpp>

namespace openrnn::mapping {

namespace {

std::string text_of_value(const std::string& text) { return text; }
std::string text_of_value(std::monostate) { return "null"; }
template <class T>
std::string text_of_value(const T& value) {
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

std::map<std::string, std::string> text_values(const std::vector<NamedValue>& values) {
  std::map<std::string, std::string> texts;
  for (const NamedValue& value : values) {
    texts[value.name] =
        std::visit([](const auto& held) { return text_of_value(held); }, value.value);
  }
  return texts;
}

}  // namespace openrnn::mapping
