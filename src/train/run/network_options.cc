#include "train/run/network_options.h"

#include <algorithm>
#include <cmath>

#include "base/excerpt.h"
#include "train/run/option_error.h"
#include "train/run/text_of.h"

namespace openrnn::train {
namespace {

constexpr std::int64_t kUnits = 256, kUnitsOfSeries = 32;

/// What a run says of a field in place of the field's own row.
struct Told {
  std::string_view field, option;
  bool required;
  std::string_view help;
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
};
// The options that the first version had. A field without a row here is an option all the same.
constexpr Told kTold[] = {
    {"rnn_mode", "cell", true, "Recurrent cell (default lstm)"},
    {"num_layers", "layers", true, "Recurrent layers (default 1)", 1},
    {"num_units", "units", true, "Hidden size: units of each layer (default 256; series 32)", 1},
    {"dropout", "dropout", true,
     "Dropout rate between layers and before the dense layer (default 0)"},
    {"seed", "seed", true, "Random seed (default 0)", 0},
    {"dtype", "dtype", true, "float16, bfloat16, float32 or float64 (default float32)"},
    {"math", "math", false, "Arithmetic of the recurrent products (default float32)"},
};
// The data say the input size; what comes next is not known, so there is one direction; and only
// inference stores weights in another dtype.
constexpr std::string_view kNoOptions[] = {"input_size", "direction", "weights_dtype"};

NetworkOption option_of(const RnnField& field) {
  for (const Told& told : kTold) {
    if (told.field != field.name) continue;
    return {.field = &field,
            .name = std::string(told.option),
            .help = std::string(told.help),
            .least = told.least,
            .always = true,
            .required = told.required};
  }
  return {.field = &field,
          .name = std::string(field.name),
          .help = openrnn::message(field.help, " (default ", text_of(field.default_value()), ")")};
}

std::vector<NetworkOption> all_options() {
  std::vector<NetworkOption> all;
  for (const RnnField& field : rnn_fields()) {
    if (std::ranges::find(kNoOptions, field.name) == std::end(kNoOptions)) {
      all.push_back(option_of(field));
    }
  }
  return all;
}

[[noreturn]] void refuse_name(const std::string& name) {
  std::string known;
  for (const NetworkOption& option : network_options()) {
    known += (known.empty() ? "" : ", ") + option.name;
  }
  refuse_option("network has '", excerpt(name), "', expected one of ", known);
}

/// A file could not say a number that is not finite.
void check_number(const NetworkOption& option, const FieldValue& value) {
  const auto* const whole = std::get_if<std::int64_t>(&value);
  if (whole && *whole < option.least) {
    refuse_option(Option{option.name}, " ", *whole, ", expected ", option.least, " or more");
  }
  const auto* const number = std::get_if<double>(&value);
  const auto* const pair = std::get_if<std::array<double, 2>>(&value);
  if ((number && !std::isfinite(*number)) ||
      (pair && !(std::isfinite((*pair)[0]) && std::isfinite((*pair)[1])))) {
    refuse_option(Option{option.name}, " ", text_of(value), ", expected ",
                  pair ? "finite numbers" : "a finite number");
  }
}

}  // namespace

const std::vector<NetworkOption>& network_options() {
  static const std::vector<NetworkOption> all = all_options();
  return all;
}

const NetworkOption* find_network_option(std::string_view name) {
  const std::vector<NetworkOption>& all = network_options();
  const auto found = std::ranges::find(all, name, &NetworkOption::name);
  return found == all.end() ? nullptr : &*found;
}

void set_network(const RunOptions& options, RnnSpec& network) {
  for (const auto& [name, value] : options.network) {
    const NetworkOption* const option = find_network_option(name);
    if (!option) refuse_name(name);
    check_number(*option, value);
    option->field->put(network, value);
  }
}

RnnSpec new_network(const RunOptions& options) {
  const bool text = options.task.value_or("text") == "text";
  RnnSpec network{.num_units = text ? kUnits : kUnitsOfSeries, .training = {.seed = 0}};
  set_network(options, network);
  for (const NetworkOption& option : network_options()) {
    if (option.field->check) option.field->check(network);
  }
  return network;
}

void agree_on_network(const RunOptions& options, const RnnSpec& of_run) {
  RnnSpec wanted = of_run;
  set_network(options, wanted);
  for (const NetworkOption& option : network_options()) {
    const FieldValue given = option.field->get(wanted), had = option.field->get(of_run);
    if (given == had) continue;
    const Option name{option.name};
    const std::string shown = excerpt(text_of(given));
    constexpr const char* kExpected = " contradicts the run to resume, expected ";
    if (std::holds_alternative<std::monostate>(had)) {
      refuse_option(name, " ", shown, kExpected, "no ", name);
    }
    refuse_option(name, " ", shown, kExpected, name, " ", excerpt(text_of(had)));
  }
}

}  // namespace openrnn::train
