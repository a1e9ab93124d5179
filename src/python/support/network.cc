#include "python/support/network.h"

#include <algorithm>

#include "base/message.h"

namespace openrnn::python {
namespace {

bool can_be_none(const RnnField& field) {
  return std::holds_alternative<std::monostate>(field.default_value());
}

template <class T>
T as_field(const char* call, std::string_view name, nb::handle value, const char* expected) {
  T result{};
  if (nb::try_cast<T>(value, result)) return result;
  throw TypeError(
      message("[", call, "] ", name, " is ", quoted_type(value), ", expected ", expected));
}

nb::dict dict_of(const RnnField& field) {
  nb::dict result;
  result["name"] = field.name;
  result["type"] = to_string(field.type);
  result["default"] = python_of(field, RnnSpec{});
  result["help"] = field.help;
  nb::list choices;
  for (const std::string_view choice : field.choices) choices.append(choice);
  result["choices"] = choices;
  result["always"] = field.always;
  result["group"] = field.group == FieldGroup::kNetwork    ? "network"
                    : field.group == FieldGroup::kTraining ? "training"
                                                           : "compute";
  return result;
}

}  // namespace

FieldValue value_of(const char* call, std::string_view name, const RnnField& field,
                    nb::handle value) {
  if (can_be_none(field) && value.is_none()) return {};
  switch (field.type) {
    case FieldType::kBool:
      return as_field<bool>(call, name, value, "True or False");
    case FieldType::kInteger:
      return as_field<std::int64_t>(call, name, value, "an integer");
    case FieldType::kNumber:
      return as_field<double>(call, name, value, "a number");
    case FieldType::kActivation:
      return as_field<std::string>(call, name, value, "the name of an activation");
    case FieldType::kWord:
      return as_field<std::string>(call, name, value, "a string");
    case FieldType::kDType:
      return std::string(dtype_name(as_dtype(value)));
    default: {
      double bound = 0.0;
      if (nb::try_cast<double>(value, bound)) return bound;
      const auto [low, high] = as_field<std::pair<double, double>>(
          call, name, value, "two numbers, or one for both sides of 0");
      return std::array{low, high};
    }
  }
}

void set_field(const char* call, RnnSpec& spec, const RnnField& field, nb::handle value) {
  if (field.type == FieldType::kDType && value.is_none()) return;
  field.put(spec, value_of(call, field.name, field, value));
}

RnnSpec as_network(const char* call, const nb::dict& options) {
  RnnSpec spec;
  for (const RnnField& field : rnn_fields()) {
    const nb::str name(field.name.data(), field.name.size());
    if (options.contains(name)) set_field(call, spec, field, nb::object(options[name]));
  }
  if (options.contains("device")) spec.compute.device = as_device(nb::object(options["device"]));
  return spec;
}

nb::dict network_dict(const RnnSpec& spec, bool (*wanted)(const RnnField&)) {
  nb::dict result;
  for (const RnnField& field : rnn_fields()) {
    if (!wanted(field) || !field.stands_in(spec)) continue;
    result[nb::str(field.name.data(), field.name.size())] = python_of(field, spec);
  }
  return result;
}

nb::object python_of(const RnnField& field, const RnnSpec& spec) {
  const FieldValue value = field.get(spec);
  if (field.type == FieldType::kDType) return dtype_str(spec.dtype);
  return std::visit(
      [](const auto& given) -> nb::object {
        using T = std::remove_cvref_t<decltype(given)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return nb::none();
        } else if constexpr (std::is_same_v<T, std::array<double, 2>>) {
          return nb::make_tuple(given[0], given[1]);
        } else {
          return nb::cast(given);
        }
      },
      value);
}

void require_fields(const std::string& call, const nb::dict& options,
                    const std::vector<std::string>& without) {
  for (const auto [key, value] : options) {
    const auto name = nb::cast<std::string>(key);
    const auto fields = rnn_fields();
    const bool known = std::any_of(fields.begin(), fields.end(),
                                   [&](const RnnField& field) { return field.name == name; });
    if (!known || std::find(without.begin(), without.end(), name) != without.end())
      throw TypeError(call + "() got an unexpected keyword argument '" + name + "'");
  }
}

std::string annotation(const RnnField& field) {
  constexpr std::string_view kNames[] = {
      "bool", "int", "float", "str", "str", "float | tuple[float, float]", "str"};
  return message(kNames[static_cast<std::size_t>(field.type)], can_be_none(field) ? " | None" : "");
}

void bind_fields(nb::module_& m) {
  m.def(
      "network_options",
      [] {
        nb::list all;
        for (const RnnField& field : rnn_fields()) all.append(dict_of(field));
        return all;
      },
      "The options of a network, each as name, type, default, help and choices.\n\n"
      "Examples\n--------\n"
      ">>> option = {each[\"name\"]: each for each in openrnn.network_options()}[\"direction\"]\n"
      ">>> option[\"default\"], option[\"choices\"]\n"
      "('unidirectional', ['unidirectional', 'bidirectional'])",
      nb::sig("def network_options() -> list[dict[str, typing.Any]]"));
  m.def("require_fields", &require_fields, "call"_a, "options"_a, "without"_a,
        nb::sig("def require_fields(call: str, options: dict[str, typing.Any], "
                "without: list[str]) -> None"));
}

}  // namespace openrnn::python
