// The table of fields: a new option is a member of RnnSpec and a row here.
#include "openrnn/spec_fields.h"
#include "spec/checks.h"
#include "spec/field_values.h"

namespace openrnn {
namespace {

/// What a row says besides the member.
struct About {
  std::string_view name;
  FieldGroup group;
  bool always;
  void (*check)(const RnnSpec&);
  std::string_view help;
};

/// `Place` gives the member of a spec.
template <class Place>
constexpr RnnField row(const About& about, Place) {
  using T = std::remove_cvref_t<decltype(Place{}(std::declval<RnnSpec&>()))>;
  return {.name = about.name,
          .group = about.group,
          .type = spec::type_of(T{}),
          .help = about.help,
          .always = about.always,
          .get = [](const RnnSpec& spec) { return spec::write(Place{}(spec)); },
          .set = [](RnnSpec& spec,
                    const FieldValue& value) { return spec::read(value, Place{}(spec)); },
          .check = about.check,
          .choices = spec::choices_of(T{})};
}

/// The same for a member with a value that stands for 'off', which is written as nothing.
template <auto kOff, class Place>
constexpr RnnField row_or_none(const About& about, Place place) {
  RnnField field = row(about, place);
  field.get = [](const RnnSpec& spec) {
    return Place{}(spec) == kOff ? FieldValue() : spec::write(Place{}(spec));
  };
  field.set = [](RnnSpec& spec, const FieldValue& value) {
    if (!std::holds_alternative<std::monostate>(value)) return spec::read(value, Place{}(spec));
    Place{}(spec) = kOff;
    return true;
  };
  return field;
}

constexpr auto kNetwork = FieldGroup::kNetwork;
constexpr auto kTraining = FieldGroup::kTraining;
constexpr auto kCompute = FieldGroup::kCompute;
constexpr bool kAlways = true, kWhereSet = false;

constexpr RnnField kFields[] = {
    row(
        {"rnn_mode", kNetwork, kAlways, nullptr, "The cell"},
        [](auto& spec) -> auto& { return spec.mode; }),
    row(
        {"num_layers", kNetwork, kAlways, spec::check_num_layers, "Layers L"},
        [](auto& spec) -> auto& { return spec.num_layers; }),
    row(
        {"num_units", kNetwork, kAlways, spec::check_num_units,
         "Hidden size: units U of a layer; required"},
        [](auto& spec) -> auto& { return spec.num_units; }),
    row(
        {"input_size", kNetwork, kAlways, spec::check_input_size,
         "Input size I; a layer takes it from its first input"},
        [](auto& spec) -> auto& { return spec.input_size; }),
    row(
        {"input_mode", kNetwork, kAlways, nullptr,
         "Input of layer 0: W x, with skip_input x itself, with auto_select whichever fits I"},
        [](auto& spec) -> auto& { return spec.input_mode; }),
    row(
        {"direction", kNetwork, kAlways, nullptr,
         "One direction, or both, their outputs concatenated"},
        [](auto& spec) -> auto& { return spec.direction; }),
    row(
        {"dropout", kTraining, kAlways, spec::check_dropout,
         "Rate of the dropout between layers in training"},
        [](auto& spec) -> auto& { return spec.training.dropout; }),
    row(
        {"seed", kTraining, kAlways, nullptr,
         "Random seed of dropout and of a layer's default initializer"},
        [](auto& spec) -> auto& { return spec.training.seed; }),
    row(
        {"dtype", kNetwork, kAlways, spec::check_dtype,
         "Type of parameters, inputs and outputs: float16, bfloat16, float32 or float64"},
        [](auto& spec) -> auto& { return spec.dtype; }),
    row_or_none<0>(
        {"num_proj", kNetwork, kAlways, spec::check_num_proj, "Projection size P, at most U"},
        [](auto& spec) -> auto& { return spec.num_proj; }),
    row(
        {"cell_clip", kNetwork, kWhereSet, spec::check_cell_clip,
         "Bounds of the LSTM cell right after its update"},
        [](auto& spec) -> auto& { return spec.cell_clip; }),
    row(
        {"forget_bias", kNetwork, kWhereSet, spec::check_forget_bias,
         "Joins the biases of the LSTM's forget gate; in no parameter"},
        [](auto& spec) -> auto& { return spec.forget_bias; }),
    row(
        {"reset_after", kNetwork, kWhereSet, spec::check_reset_after,
         "GRU: the reset gate applies after the product with the state, else before it"},
        [](auto& spec) -> auto& { return spec.reset_after; }),
    row(
        {"activation", kNetwork, kWhereSet, spec::check_activation,
         "Of the candidate; off: tanh, and relu for rnn_relu"},
        [](auto& spec) -> auto& { return spec.activation; }),
    row(
        {"recurrent_activation", kNetwork, kWhereSet, spec::check_recurrent_activation,
         "Of the gates of LSTM and GRU; off: sigmoid"},
        [](auto& spec) -> auto& { return spec.recurrent_activation; }),
    row(
        {"output_activation", kNetwork, kWhereSet, spec::check_output_activation,
         "Of the LSTM's cell on its way out; off: tanh"},
        [](auto& spec) -> auto& { return spec.output_activation; }),
    row(
        {"use_peepholes", kNetwork, kWhereSet, spec::check_use_peepholes,
         "The LSTM's gates also see the cell"},
        [](auto& spec) -> auto& { return spec.use_peepholes; }),
    row(
        {"coupled_gates", kNetwork, kWhereSet, spec::check_coupled_gates,
         "The LSTM's forget gate is 1 - i"},
        [](auto& spec) -> auto& { return spec.coupled_gates; }),
    row(
        {"proj_clip", kNetwork, kWhereSet, spec::check_proj_clip, "Bounds of the projected output"},
        [](auto& spec) -> auto& { return spec.proj_clip; }),
    row(
        {"gate_clip", kNetwork, kWhereSet, spec::check_gate_clip,
         "Bounds of what enters the activations of gates and candidate"},
        [](auto& spec) -> auto& { return spec.gate_clip; }),
    row(
        {"use_bias", kNetwork, kWhereSet, nullptr, "Without, there are no biases"},
        [](auto& spec) -> auto& { return spec.use_bias; }),
    row(
        {"single_bias", kNetwork, kWhereSet, spec::check_single_bias,
         "One bias a gate, on the input's side, in place of two"},
        [](auto& spec) -> auto& { return spec.single_bias; }),
    row_or_none<LayerNorm::kNone>(
        {"layer_norm", kNetwork, kWhereSet, spec::check_layer_norm,
         "Layer normalization of W x and R h, or of their sum gate by gate, of LSTM and GRU"},
        [](auto& spec) -> auto& { return spec.layer_norm; }),
    row_or_none<LayerNormCell::kNone>(
        {"layer_norm_cell", kNetwork, kWhereSet, spec::check_layer_norm_cell,
         "Layer normalization of the LSTM's cell: of what the output sees, or of what is carried"},
        [](auto& spec) -> auto& { return spec.layer_norm_cell; }),
    row(
        {"layer_norm_epsilon", kNetwork, kWhereSet, spec::check_layer_norm_epsilon,
         "Joins the variance in layer normalization; LayerNormBasicLSTMCell has 1e-12"},
        [](auto& spec) -> auto& { return spec.layer_norm_epsilon; }),
    row(
        {"zoneout", kNetwork, kWhereSet, spec::check_zoneout,
         "Rate at which a unit of h keeps its value; outside of training the expectation"},
        [](auto& spec) -> auto& { return spec.zoneout; }),
    row(
        {"zoneout_cell", kNetwork, kWhereSet, spec::check_zoneout_cell,
         "The same of a unit of c: the LSTM's cell, or the state of a projected GRU"},
        [](auto& spec) -> auto& { return spec.zoneout_cell; }),
    row(
        {"input_dropout", kTraining, kWhereSet, spec::check_input_dropout,
         "Rate of dropout of the inputs in training"},
        [](auto& spec) -> auto& { return spec.training.input_dropout; }),
    row(
        {"output_dropout", kTraining, kWhereSet, spec::check_output_dropout,
         "Rate of dropout of the last layer's output in training"},
        [](auto& spec) -> auto& { return spec.training.output_dropout; }),
    row(
        {"drop_connect", kTraining, kWhereSet, spec::check_drop_connect,
         "Rate of DropConnect of the recurrent weights in training"},
        [](auto& spec) -> auto& { return spec.training.drop_connect; }),
    row(
        {"recurrent_dropout", kTraining, kWhereSet, spec::check_recurrent_dropout,
         "Rate of dropout inside the steps in training"},
        [](auto& spec) -> auto& { return spec.training.recurrent_dropout; }),
    row(
        {"recurrent_dropout_form", kTraining, kWhereSet, nullptr,
         "What it masks: the state that enters the recurrent product, one mask for all steps of a "
         "call, or the candidate, anew each step"},
        [](auto& spec) -> auto& { return spec.training.recurrent_dropout_form; }),
    row(
        {"math", kCompute, kAlways, spec::check_math, "Arithmetic of the products"},
        [](auto& spec) -> auto& { return spec.compute.math; }),
    row_or_none<WeightsDType::kNone>(
        {"weights_dtype", kCompute, kAlways, spec::check_weights_dtype,
         "Storage of weights for inference"},
        [](auto& spec) -> auto& { return spec.compute.weights_dtype; }),
};

std::string_view expected(FieldType type) {
  switch (type) {
    case FieldType::kBool:
      return "true or false";
    case FieldType::kInteger:
      return "a whole number";
    case FieldType::kNumber:
      return "a number";
    case FieldType::kWord:
      return "a word";
    case FieldType::kDType:
      return "the name of a dtype";
    case FieldType::kActivation:
      return "the name of an activation";
    default:
      return "two numbers, or one for both sides of 0";
  }
}

std::string words_of(const RnnField& field) {
  std::string text;
  for (const std::string_view word : field.choices) {
    text += message(text.empty() ? "" : ", ", "`", word, "`");
  }
  return text;
}

}  // namespace

std::string to_string(const FieldValue& value) {
  return std::visit(
      [](const auto& given) -> std::string {
        using T = std::remove_cvref_t<decltype(given)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return "None";
        } else if constexpr (std::is_same_v<T, bool>) {
          return given ? "true" : "false";
        } else if constexpr (std::is_same_v<T, std::array<double, 2>>) {
          return message("[", given[0], ", ", given[1], "]");
        } else {
          return message(given);
        }
      },
      value);
}

std::string_view to_string(FieldType type) {
  constexpr std::string_view kNames[] = {"bool",           "int",       "float", "str", "dtype",
                                         "(float, float)", "activation"};
  return kNames[static_cast<std::size_t>(type)];
}

std::span<const RnnField> rnn_fields() { return kFields; }

const RnnField& rnn_field(std::string_view name) {
  std::string known;
  for (const RnnField& field : kFields) {
    if (field.name == name) return field;
    known += message(known.empty() ? "" : ", ", field.name);
  }
  throw ArgumentError(
      message("[RnnSpec] '", excerpt(name), "' is no field, expected one of ", known));
}

void RnnField::put(RnnSpec& spec, const FieldValue& value) const {
  if (set(spec, value)) return;
  throw ArgumentError(message("[RnnSpec] ", name, " is ", excerpt(to_string(value)), ", expected ",
                              expected(type)));
}

std::string step_options(const RnnSpec& spec) {
  std::string text;
  for (const RnnField& field : kFields) {
    const bool in_step = field.group == kNetwork ||
                         (field.group == kTraining && field.name.starts_with("recurrent_"));
    // cuDNN projects an LSTM.
    const bool beyond = field.name == "num_proj" && spec.projecting() && !spec.is_lstm();
    if (!beyond && (field.always || !in_step || !field.stands_in(spec))) continue;
    text += message(text.empty() ? "" : ", ", field.name, " ", to_string(field.get(spec)));
  }
  return text;
}

std::string rnn_fields_markdown() {
  std::string text = "| option | type | default | meaning |\n|---|---|---|---|\n";
  for (const RnnField& field : kFields) {
    text += message("| `", field.name, "` | ", to_string(field.type), " | `",
                    to_string(field.default_value()), "` | ", field.help,
                    field.choices.empty() ? "" : ": ", words_of(field), " |\n");
  }
  return text;
}

}  // namespace openrnn
