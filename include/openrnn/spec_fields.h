// The table of an RnnSpec's fields, from which messages, bindings, files, flags and docs are made.
#pragma once

#include <variant>

#include "openrnn/spec.h"

namespace openrnn {

/// The value of a field as every face writes it: nothing (off), yes or no, a whole number, a
/// number, a word, two numbers.
using FieldValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, std::array<double, 2>>;
/// "None", "true", "3", "0.5", "lstm", "[-1, 1]".
OPENRNN_API std::string to_string(const FieldValue& value);

enum class FieldType : std::uint8_t { kBool, kInteger, kNumber, kWord, kDType, kPair };
/// "bool", "int", "float", "str", "dtype", "(float, float)".
OPENRNN_API std::string_view to_string(FieldType type);

/// What a field says of a network: what it is, how it is trained, how it is computed.
enum class FieldGroup : std::uint8_t { kNetwork, kTraining, kCompute };

/// One field of an RnnSpec. RnnSpec::training.dropout is 'dropout': names have no group.
struct RnnField {
  std::string_view name;
  FieldGroup group;
  FieldType type;
  /// One line.
  std::string_view help;
  /// Of tf.contrib.cudnn_rnn, or as old as this library: every get_config() and every file has it.
  /// Any other field stands there only where it is not at its default.
  bool always;
  FieldValue (*get)(const RnnSpec&);
  /// False for a value of another type. Throws: ArgumentError for a word that is not there.
  bool (*set)(RnnSpec&, const FieldValue&);
  /// Throws as RnnSpec::validate; null where every value is right.
  void (*check)(const RnnSpec&);
  /// The words that it may be; empty for any other type.
  std::span<const std::string_view> choices;

  FieldValue default_value() const { return get(RnnSpec{}); }
  /// Whether a file or a configuration of this spec has it.
  bool stands_in(const RnnSpec& spec) const { return always || get(spec) != default_value(); }
  /// Sets it; a whole number will do for a number. Throws: ArgumentError naming field, value and
  /// what was expected.
  void put(RnnSpec& spec, const FieldValue& value) const;
};

/// All but `compute.device`, which is no value but a place; in the order of get_config().
OPENRNN_API std::span<const RnnField> rnn_fields();
/// Throws: ArgumentError naming the fields that there are.
OPENRNN_API const RnnField& rnn_field(std::string_view name);
/// The fields as a table in Markdown: docs/options.md has it.
OPENRNN_API std::string rnn_fields_markdown();

}  // namespace openrnn
