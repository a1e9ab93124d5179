#include "spec/json.h"

#include <limits>
#include <set>

#include "base/excerpt.h"
#include "base/message.h"

namespace openrnn {

namespace {

std::string json_of(std::monostate) { return "null"; }
std::string json_of(bool value) { return value ? "true" : "false"; }
std::string json_of(std::int64_t value) { return std::to_string(value); }
std::string json_of(double value) { return json_number(value); }
std::string json_of(const std::string& text) { return json_quoted(text); }
std::string json_of(const std::array<double, 2>& pair) {
  return "[" + json_number(pair[0]) + ", " + json_number(pair[1]) + "]";
}

double number_from(JsonScanner& json) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (json.kind() == '"') {
    const std::string word = json.string();
    if (word == "inf") return kInfinity;
    if (word == "-inf") return -kInfinity;
    json.fail(message("'", excerpt(word), "', expected a number, \"inf\" or \"-inf\""));
  }
  return std::visit([](auto value) { return static_cast<double>(value); }, json.number());
}

FieldValue pair_from(JsonScanner& json) {
  std::array<double, 2> pair{};
  std::size_t count = 0;
  json.array([&] {
    if (count == 2) json.fail("more than two numbers, expected two");
    pair[count++] = number_from(json);
  });
  if (count != 2) json.fail(message(count, " numbers, expected two"));
  return pair;
}

FieldValue field_from(JsonScanner& json) {
  switch (json.kind()) {
    case 'n':
      json.null();
      return {};
    case 't':
    case 'f':
      return json.boolean();
    case '"':
      return json.string();
    case '[':
      return pair_from(json);
    default:
      return std::visit([](auto value) { return FieldValue(value); }, json.number());
  }
}

}  // namespace

std::string spec_to_json(const RnnSpec& spec) {
  std::string text = "{";
  for (const RnnField& field : rnn_fields()) {
    if (!field.stands_in(spec)) continue;
    text += message(text.size() == 1 ? "" : ", ", json_quoted(field.name), ": ",
                    std::visit([](const auto& held) { return json_of(held); }, field.get(spec)));
  }
  return text + "}";
}

namespace spec {

RnnSpec spec_from_json(JsonScanner& json) {
  RnnSpec found;
  std::set<std::string> names;
  try {
    json.object([&](const std::string& name) {
      if (!names.insert(name).second) {
        json.fail(message("the field '", excerpt(name), "' is there twice, expected once"));
      }
      rnn_field(name).put(found, field_from(json));
    });
    found.validate();
  } catch (const ArgumentError& error) {
    json.fail(error.what());
  }
  return found;
}

}  // namespace spec

}  // namespace openrnn
