// How a member of each type is written as a FieldValue, and read from one.
#pragma once

#include "openrnn/spec_fields.h"
#include "spec/words.h"

namespace openrnn::spec {

template <class T>
constexpr FieldType type_of(const T&) {
  return FieldType::kWord;  // an enum
}
constexpr FieldType type_of(bool) { return FieldType::kBool; }
constexpr FieldType type_of(std::int64_t) { return FieldType::kInteger; }
constexpr FieldType type_of(double) { return FieldType::kNumber; }
constexpr FieldType type_of(DType) { return FieldType::kDType; }
constexpr FieldType type_of(const std::array<double, 2>&) { return FieldType::kPair; }
constexpr FieldType type_of(const CellActivation&) { return FieldType::kActivation; }
template <class T>
constexpr FieldType type_of(const std::optional<T>&) {
  return type_of(T{});
}

template <class T>
FieldValue write(const T& value) {
  if constexpr (std::is_same_v<T, DType>) {
    return std::string(dtype_name(value));
  } else if constexpr (std::is_enum_v<T>) {
    return std::string(word(value));
  } else if constexpr (std::is_same_v<T, CellActivation>) {
    return to_string(value);
  } else {
    return value;
  }
}
template <class T>
FieldValue write(const std::optional<T>& value) {
  return value ? write(*value) : FieldValue();
}

/// False when the value is of another type. Throws: ArgumentError for a word that is not there.
template <class T>
bool read(const FieldValue& value, T& to) {
  if constexpr (std::is_enum_v<T>) {
    const auto* const name = std::get_if<std::string>(&value);
    if (!name) return false;
    if constexpr (std::is_same_v<T, DType>) {
      to = parse_dtype(*name);
    } else {
      to = parse_word<T>(*name);
    }
    return true;
  } else {
    const T* const given = std::get_if<T>(&value);
    if (given) to = *given;
    return given != nullptr;
  }
}
inline bool read(const FieldValue& value, double& to) {
  if (const auto* const whole = std::get_if<std::int64_t>(&value)) {
    to = static_cast<double>(*whole);
    return true;
  }
  const auto* const given = std::get_if<double>(&value);
  if (given) to = *given;
  return given != nullptr;
}
/// One number stands for the bounds on either side of 0.
inline bool read(const FieldValue& value, std::array<double, 2>& to) {
  double bound = 0.0;
  if (read(value, bound)) {
    to = {-bound, bound};
    return true;
  }
  const auto* const given = std::get_if<std::array<double, 2>>(&value);
  if (given) to = *given;
  return given != nullptr;
}
inline bool read(const FieldValue& value, CellActivation& to) {
  const auto* const text = std::get_if<std::string>(&value);
  if (text) to = parse_cell_activation(*text);
  return text != nullptr;
}
template <class T>
bool read(const FieldValue& value, std::optional<T>& to) {
  if (std::holds_alternative<std::monostate>(value)) {
    to.reset();
    return true;
  }
  T given{};
  if (!read(value, given)) return false;
  to = given;
  return true;
}

template <class T>
constexpr Words choices_of(const T&) {
  if constexpr (std::is_enum_v<T> && !std::is_same_v<T, DType>) {
    return words_of(T{}).words;
  } else {
    return {};
  }
}

}  // namespace openrnn::spec
