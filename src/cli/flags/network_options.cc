#include "cli/flags/network_options.h"

#include <algorithm>

#include "cli/flags.h"

namespace openrnn::cli {
namespace {

std::string type_name(const RnnField& field) {
  switch (field.type) {
    case FieldType::kInteger:
      return "INT";
    case FieldType::kNumber:
      return "FLOAT";
    case FieldType::kPair:
      return "FLOAT,FLOAT";
    case FieldType::kActivation:
      return "ACTIVATION";
    default:
      return choice_type(choices_of(field));
  }
}

/// Two numbers, or one for both sides of 0.
FieldValue read_pair(const CLI::App* app, const std::string& flag, const std::string& text) {
  const std::size_t comma = text.find(',');
  const double first = read_number<double>(app, flag, text.substr(0, comma), kAny);
  if (comma == std::string::npos) return first;
  return std::array{first, read_number<double>(app, flag, text.substr(comma + 1), kAny)};
}

FieldValue read_value(const CLI::App* app, const train::NetworkOption& option,
                      const std::string& flag, const std::string& text) {
  switch (option.field->type) {
    case FieldType::kInteger:
      return read_number<std::int64_t>(app, flag, text, {option.least, kPositive.most});
    case FieldType::kNumber:
      return read_number<double>(app, flag, text, kAny);
    case FieldType::kPair:
      return read_pair(app, flag, text);
    case FieldType::kActivation:
      return text;  // the run parses it
    default:
      require_choice(app, flag, text, choices_of(*option.field));
      if (option.field->type == FieldType::kBool) return text == "true";
      return text;
  }
}

}  // namespace

std::string flag_of(std::string option) {
  std::replace(option.begin(), option.end(), '_', '-');
  return "--" + option;
}

std::vector<std::string> choices_of(const RnnField& field) {
  if (field.type == FieldType::kBool) return {"true", "false"};
  if (field.type == FieldType::kDType) return {"float16", "bfloat16", "float32", "float64"};
  return {field.choices.begin(), field.choices.end()};
}

void add_network_option(CLI::App* app, const train::NetworkOption& option,
                        std::map<std::string, FieldValue>& network) {
  const std::string flag = flag_of(option.name);
  const auto take = [app, &option, flag, &network](const std::string& text) {
    network[option.name] = read_value(app, option, flag, text);
  };
  CLI::Option* const made = app->add_option_function<std::string>(flag, take, option.help)
                                ->type_name(type_name(*option.field));
  if (option.field->type == FieldType::kBool) {
    made->expected(0, 1)->default_str("true")->option_text("[true|false]");
  }
}

}  // namespace openrnn::cli
