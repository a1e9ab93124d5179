// The table of an RnnSpec's fields, which drives messages, bindings, files, flags and docs.
#pragma once

#include <variant>

#include "openrnn/spec.h"

namespace openrnn {

/// The value of a field in every language and file: nothing (off), a bool, an integer, a number, a
/// name, two numbers.
using FieldValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, std::array<double, 2>>;
/// "None", "true", "3", "0.5", "lstm", "[-1, 1]".
OPENRNN_API std::string to_string(const FieldValue& value);

enum class FieldType : std::uint8_t { kBool, kInteger, kNumber, kWord, kDType, kPair, kActivation };
/// "bool", "int", "float", "str", "dtype", "(float, float)", "activation".
OPENRNN_API std::string_view to_string(FieldType type);

/// Whether a field says what a network is, how it is trained, or how it is computed.
enum class FieldGroup : std::uint8_t { kNetwork, kTraining, kCompute };

/// One field of an RnnSpec. RnnSpec::training.dropout is 'dropout': names have no group.
struct RnnField {
  std::string_view name;
  FieldGroup group;
  FieldType type;
  /// One line.
  std::string_view help;
  /// An argument of tf.contrib.cudnn_rnn, or as old as this library: in every get_config() and
  /// every file. Any other field is there only if it is not at its default.
  bool always;
  FieldValue (*get)(const RnnSpec&);
  /// False for a value of another type. Throws: ArgumentError for an unknown name.
  bool (*set)(RnnSpec&, const FieldValue&);
  /// Throws as RnnSpec::validate; null: every value is valid.
  void (*check)(const RnnSpec&);
  /// The names that it may have; empty for any other type.
  std::span<const std::string_view> choices;

  FieldValue default_value() const { return get(RnnSpec{}); }
  /// Whether a file or a configuration of this spec has it.
  bool stands_in(const RnnSpec& spec) const { return always || get(spec) != default_value(); }
  /// Sets it; an integer will do for a number, one number
  /// for the two of a clip: [-number, number]. Throws: ArgumentError naming field, value and what
  /// was expected.
  void put(RnnSpec& spec, const FieldValue& value) const;
};

/// All but `compute.device`, which is not stored; in the order of get_config().
OPENRNN_API std::span<const RnnField> rnn_fields();
/// Throws: ArgumentError listing the fields.
OPENRNN_API const RnnField& rnn_field(std::string_view name);
/// Those that make a step another than cuDNN's, where they are set: "use_peepholes true, zoneout
/// 0.1".
OPENRNN_API std::string step_options(const RnnSpec& spec);
/// One JSON object of the fields that stand in the spec; numbers in full, infinities as strings.
OPENRNN_API std::string spec_to_json(const RnnSpec& spec);
/// The fields as a table in Markdown: docs/options.md has it.
OPENRNN_API std::string rnn_fields_markdown();

}  // namespace openrnn
