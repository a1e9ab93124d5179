#include "mapping/onnx/cell.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/onnx/facts.h"
#include "mapping/onnx/values/attributes.h"

namespace openrnn::mapping {

namespace {

// Lists of numbers that functions take one after another, each only if it has such a parameter.
struct Numbers {
  const std::vector<float>* values;
  std::size_t next = 0;

  std::optional<double> take() {
    if (!values || next >= values->size()) return std::nullopt;
    return decimal_of((*values)[next++]);
  }
};

CellActivation activation_of(const OnnxNode& node, const std::string& name, Numbers* alphas,
                             Numbers* betas) {
  const OnnxActivation* found = find_onnx_activation(name);
  if (!found) {
    refuse_node(node, "the activation is '" + excerpt(name) + "', expected one that ONNX has");
  }
  CellActivation activation = make_cell_activation(found->kind);
  const auto take = [&](bool takes, Numbers* from, double* value, const char* attribute) {
    if (!takes) return;
    const std::optional<double> given = from->take();
    if (!given && !found->has_defaults) {
      refuse_node(node,
                  message("the activation ", found->name, " has no ", attribute,
                          ", expected it: ONNX has no operator of this name that says its value"));
    }
    if (given && !std::isfinite(*given)) {
      refuse_node(node, message(attribute, " is ", *given, ", expected finite numbers"));
    }
    *value = given.value_or(*value);
  };
  take(found->takes_alpha, alphas, &activation.alpha, "activation_alpha");
  take(found->takes_beta, betas, &activation.beta, "activation_beta");
  return activation;
}

// The functions of each direction; none where the node has none.
std::vector<std::vector<CellActivation>> activations_of(const OnnxNode& node,
                                                        const OnnxOperator& facts,
                                                        std::size_t dirs) {
  const std::vector<std::string>* names = find_texts(node, "activations");
  if (!names) return {};
  if (names->size() != dirs * facts.activations) {
    refuse_node(node, message(names->size(), " activations are there, expected ", facts.activations,
                              " for each direction"));
  }
  Numbers alphas{find_numbers(node, "activation_alpha")};
  Numbers betas{find_numbers(node, "activation_beta")};
  std::vector<std::vector<CellActivation>> all(dirs);
  for (std::size_t n = 0; n < names->size(); ++n) {
    all[n / facts.activations].push_back(activation_of(node, (*names)[n], &alphas, &betas));
  }
  return all;
}

void set_activations(const std::vector<CellActivation>& found, RnnSpec* spec) {
  if (found.empty()) return;
  const bool plain = spec->mode == RnnMode::kRnnTanh;
  if (plain && found[0] == make_cell_activation(CellActivationKind::kRelu)) {
    spec->mode = RnnMode::kRnnRelu;
    return;
  }
  const auto set = [](const CellActivation& given, CellActivationKind usual,
                      std::optional<CellActivation>* option) {
    if (given != make_cell_activation(usual)) *option = given;
  };
  set(found[plain ? 0 : 1], CellActivationKind::kTanh, &spec->activation);
  if (!plain) set(found[0], CellActivationKind::kSigmoid, &spec->recurrent_activation);
  if (spec->is_lstm()) set(found[2], CellActivationKind::kTanh, &spec->output_activation);
}

void set_direction(const OnnxNode& node, OnnxCell* cell) {
  const std::string* direction = find_text(node, "direction");
  if (!direction || *direction == "forward") return;
  cell->reverse = *direction == "reverse";
  if (cell->reverse) return;
  if (*direction != "bidirectional") {
    refuse_node(node, "the direction is '" + excerpt(*direction) +
                          "', expected forward, reverse or bidirectional");
  }
  cell->spec.direction = Direction::kBidirectional;
}

void set_clip(const OnnxNode& node, RnnSpec* spec) {
  const float* clip = find_number(node, "clip");
  if (!clip) return;
  if (!(*clip > 0.0f) || std::isinf(*clip)) {
    refuse_node(node, message("clip is ", *clip, ", expected a finite number above 0"));
  }
  spec->gate_clip = {-decimal_of(*clip), decimal_of(*clip)};
}

void require_shape(const OnnxNode& node, const char* name, const ConstArrayView& array, DType dtype,
                   const Shape& expected) {
  if (array.shape == expected && array.dtype == dtype) return;
  refuse_node(node, message(name, " is ", dtype_name(array.dtype), " ", to_string(array.shape),
                            ", expected ", dtype_name(dtype), " ", to_string(expected)));
}

OnnxWeightViews weights_of_direction(const OnnxNode& node, const OnnxWeightViews& all,
                                     std::int64_t which) {
  const auto of = [&](const char* name, const ConstArrayView& view) {
    if (view.shape.empty() || view.shape[0] != 2) {
      refuse_node(node, message(name, " is ", to_string(view.shape), ", expected 2 directions"));
    }
    ConstArrayView found = view;
    found.shape[0] = 1;
    const std::int64_t bytes =
        shape_size(found.shape) * static_cast<std::int64_t>(dtype_size(found.dtype));
    found.data = static_cast<const char*>(view.data) + which * bytes;
    return found;
  };
  OnnxWeightViews found{.w = of("W", all.w), .r = of("R", all.r)};
  if (all.b) found.b = of("B", *all.b);
  if (all.p) found.p = of("P", *all.p);
  return found;
}

// All but the functions.
OnnxCell plain_cell_of_node(const OnnxNode& node) {
  constexpr std::string_view kKnown[] = {
      "activation_alpha", "activation_beta",    "activations",  "clip",
      "direction",        "hidden_size",        "input_forget", "layout",
      "output_sequence",  "linear_before_reset"};
  require_known_attributes(node, kKnown);
  const OnnxOperator& facts = *find_recurrent(node);
  OnnxCell cell;
  RnnSpec& spec = cell.spec;
  spec.mode = facts.op_type == "LSTM"  ? RnnMode::kLstm
              : facts.op_type == "GRU" ? RnnMode::kGru
                                       : RnnMode::kRnnTanh;
  set_direction(node, &cell);
  set_clip(node, &spec);
  if (spec.mode == RnnMode::kGru) {
    spec.reset_after = integer_or(node, "linear_before_reset", 0) != 0;
  }
  if (spec.is_lstm()) spec.coupled_gates = integer_or(node, "input_forget", 0) != 0;
  const std::int64_t layout = integer_or(node, "layout", 0);
  if (layout != 0 && layout != 1) {
    refuse_node(node, message("layout is ", layout, ", expected 0 or 1"));
  }
  cell.batch_major = layout == 1;
  return cell;
}

}  // namespace

double decimal_of(float value) {
  if (!std::isfinite(value)) return value;
  char text[32];
  const std::to_chars_result end = std::to_chars(text, text + sizeof text, value);
  double decimal = 0.0;
  std::from_chars(text, end.ptr, decimal);
  return decimal;
}

std::vector<OnnxCell> cells_of_node(const OnnxNode& node) {
  const OnnxCell plain = plain_cell_of_node(node);
  const auto dirs = static_cast<std::size_t>(plain.spec.num_dirs());
  const auto functions = activations_of(node, *find_recurrent(node), dirs);
  const bool same = dirs == 1 || functions.empty() || functions[0] == functions[1];
  std::vector<OnnxCell> cells(same ? 1 : 2, plain);
  for (std::size_t n = 0; n < cells.size(); ++n) {
    if (!functions.empty()) set_activations(functions[n], &cells[n].spec);
    if (same) continue;
    cells[n].spec.direction = Direction::kUnidirectional;
    cells[n].reverse = n == 1;
    cells[n].part = static_cast<std::int64_t>(n);
  }
  return cells;
}

OnnxCell cell_of_node(const OnnxNode& node) {
  std::vector<OnnxCell> cells = cells_of_node(node);
  if (cells.size() > 1) {
    refuse_node(node, "the activations differ between the directions, expected the same");
  }
  return cells[0];
}

void set_weights(const OnnxNode& node, const OnnxWeightViews& weights, OnnxCell* cell) {
  RnnSpec& spec = cell->spec;
  const Shape &w = weights.w.shape, &r = weights.r.shape;
  if (w.size() != 3 || r.size() != 3 || !is_floating(weights.w.dtype)) {
    refuse_node(node, message("W is ", dtype_name(weights.w.dtype), " ", to_string(w), " and R ",
                              to_string(r), ", expected floating ones of three dimensions"));
  }
  const std::int64_t dirs = spec.num_dirs(), rows = w[1];
  spec.num_units = r[2];
  spec.input_size = w[2];
  spec.dtype = weights.w.dtype;
  spec.use_bias = weights.b.has_value();
  spec.use_peepholes = weights.p.has_value();
  const std::int64_t hidden = integer_or(node, "hidden_size", spec.num_units);
  if (hidden != spec.num_units || rows % spec.num_gates() != 0 ||
      rows / spec.num_gates() != spec.num_units) {
    refuse_node(node, message("W is ", to_string(w), ", R ", to_string(r), " and hidden_size ",
                              hidden, ", expected ", spec.num_gates(), " blocks of hidden_size"));
  }
  try {
    spec.validate();
  } catch (const ArgumentError& error) {
    refuse_node(node, error.what());
  }
  require_shape(node, "W", weights.w, spec.dtype, {dirs, rows, spec.input_size});
  require_shape(node, "R", weights.r, spec.dtype, {dirs, rows, spec.num_units});
  if (weights.b) require_shape(node, "B", *weights.b, spec.dtype, {dirs, 2 * rows});
  if (weights.p) require_shape(node, "P", *weights.p, spec.dtype, {dirs, 3 * spec.num_units});
}

Array params_of_node(const OnnxNode& node, const OnnxWeightViews& given, OnnxCell* cell) {
  const OnnxWeightViews weights =
      cell->part ? weights_of_direction(node, given, *cell->part) : given;
  set_weights(node, weights, cell);
  const ParamsLayout layout(cell->spec);
  Array params(cell->spec.dtype, {layout.size()});
  fill_params(layout, 0, weights, params.view());
  return params;
}

}  // namespace openrnn::mapping
