// Options of a subcommand whose values are checked as they are read, with messages of our own.
#pragma once

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/excerpt.h"
#include "openrnn/base.h"
#include "train/data/number.h"

namespace openrnn::cli {

/// What a number may be; both ends belong to it.
template <class T>
struct Bounds {
  T least = std::numeric_limits<T>::lowest();
  T most = std::numeric_limits<T>::max();
};

inline constexpr Bounds<std::int64_t> kPositive{1, std::int64_t{1} << 40};
inline constexpr Bounds<std::int64_t> kNotNegative{0, std::int64_t{1} << 40};

inline constexpr Bounds<double> kAny;  // that is finite

[[noreturn]] inline void refuse_value(const CLI::App* app, const std::string& name,
                                      const std::string& value, const std::string& expected) {
  throw ArgumentError("[" + app->get_name() + "] " + name + " " + value + ", expected " + expected);
}

template <class T>
std::string expected_number(const Bounds<T>& bounds) {
  const std::string kind = std::is_integral_v<T> ? "a whole number" : "a finite number";
  const auto text = [](T value) { return fmt::format("{}", value); };
  const bool least = std::is_unsigned_v<T> || bounds.least != std::numeric_limits<T>::lowest();
  const bool most = bounds.most != std::numeric_limits<T>::max();
  if (least && most) return kind + " from " + text(bounds.least) + " to " + text(bounds.most);
  return least ? kind + " of at least " + text(bounds.least) : kind;
}

/// Throws: ArgumentError naming subcommand, option, value and bounds.
template <class T>
T read_number(const CLI::App* app, const std::string& name, const std::string& text,
              const Bounds<T>& bounds) {
  const std::optional<T> value = train::parse_number<T>(text);
  // NaN is inside no bounds.
  if (value && *value >= bounds.least && *value <= bounds.most) return *value;
  const bool number = train::parse_number<double>(text).has_value();
  refuse_value(app, name, number ? excerpt(text) : "'" + excerpt(text) + "' is no number",
               expected_number(bounds));
}

template <class T>
CLI::Option* add_number(CLI::App* app, const std::string& name, std::optional<T>& value,
                        const Bounds<std::type_identity_t<T>>& bounds, const std::string& help) {
  const auto take = [app, name, bounds, &value](const std::string& text) {
    value = read_number<T>(app, name, text, bounds);
  };
  return app->add_option_function<std::string>(name, take, help)
      ->type_name(std::is_integral_v<T> ? "INT" : "FLOAT");
}

/// One that has a default.
template <class T>
requires std::is_arithmetic_v<T> CLI::Option* add_number(
    CLI::App* app, const std::string& name, T& value, const Bounds<std::type_identity_t<T>>& bounds,
    const std::string& help) {
  const auto take = [app, name, bounds, &value](const std::string& text) {
    value = read_number<T>(app, name, text, bounds);
  };
  return app->add_option_function<std::string>(name, take, help)
      ->type_name(std::is_integral_v<T> ? "INT" : "FLOAT");
}

/// Throws: ArgumentError unless `text` is one of the choices.
void require_choice(const CLI::App* app, const std::string& name, const std::string& text,
                    const std::vector<std::string>& choices);
/// "{a,b}".
std::string choice_type(const std::vector<std::string>& choices);

/// One of a few words.
CLI::Option* add_choice(CLI::App* app, const std::string& name, std::optional<std::string>& value,
                        const std::vector<std::string>& choices, const std::string& help);
/// The same, as the value that `parse` makes of it.
template <class T>
CLI::Option* add_choice(CLI::App* app, const std::string& name, std::optional<T>& value,
                        T (*parse)(std::string_view), const std::vector<std::string>& choices,
                        const std::string& help) {
  const auto take = [app, name, parse, choices, &value](const std::string& text) {
    require_choice(app, name, text, choices);
    value = parse(text);
  };
  return app->add_option_function<std::string>(name, take, help)->type_name(choice_type(choices));
}
CLI::Option* add_text(CLI::App* app, const std::string& name, std::optional<std::string>& value,
                      const std::string& help);

/// --threads and --device.
void add_threads(CLI::App* app, int& threads);
void add_device(CLI::App* app, std::string& device);

/// One that `take` reads; `type` is what the help shows of its values.
inline CLI::Option* add_text_as(CLI::App* app, const std::string& name, const std::string& type,
                                const std::string& help,
                                const std::function<void(const std::string&)>& take) {
  return app->add_option_function<std::string>(name, take, help)->type_name(type);
}

/// The closest of `words` to what was typed; nothing when none is close.
std::optional<std::string> nearest(const std::string& typed, const std::vector<std::string>& words);

}  // namespace openrnn::cli
