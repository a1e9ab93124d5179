#include "mapping/keras/cells.h"

#include <algorithm>
#include <unordered_set>

#include "base/excerpt.h"
#include "base/message.h"
#include "mapping/keras/fields.h"

namespace openrnn::mapping {

namespace {

// A tensor of a layer: its name inside the layer's group.
struct LayerTensor {
  std::string name;
  const TensorInfo* info = nullptr;
};

std::string joined(const std::vector<std::string>& parts, std::size_t count) {
  std::string path;
  for (std::size_t i = 0; i < count; ++i) path += (i ? "/" : "") + parts[i];
  return path;
}

// Without the ':0' of TensorFlow's variables.
std::string_view without_output(std::string_view name) { return name.substr(0, name.rfind(':')); }

std::string_view last_part(std::string_view name) {
  return without_output(name.substr(name.rfind('/') + 1));
}

std::string_view folder_of_name(std::string_view name) {
  const std::size_t slash = name.rfind('/');
  return slash == std::string_view::npos ? std::string_view() : name.substr(0, slash);
}

// What follows '_' at the end of Keras 1's names, in its order.
constexpr std::string_view kSplitLstm[] = {"W_i", "U_i", "b_i", "W_c", "U_c", "b_c",
                                           "W_f", "U_f", "b_f", "W_o", "U_o", "b_o"};
constexpr std::string_view kSplitGru[] = {"W_z", "U_z", "b_z", "W_r", "U_r",
                                          "b_r", "W_h", "U_h", "b_h"};
constexpr std::string_view kSplitPlain[] = {"W", "U", "b"};

bool ends_in(std::string_view name, std::string_view suffix) {
  name = without_output(name);
  return name.ends_with(suffix) && name.size() > suffix.size() &&
         name[name.size() - suffix.size() - 1] == '_';
}

// How many tensors from `at` on are a cell of Keras 1.
std::size_t split_cell_at(const std::vector<LayerTensor>& tensors, std::size_t at) {
  for (const auto suffixes :
       {std::span<const std::string_view>(kSplitLstm), std::span<const std::string_view>(kSplitGru),
        std::span<const std::string_view>(kSplitPlain)}) {
    if (suffixes.size() > tensors.size() - at) continue;
    std::size_t same = 0;
    while (same < suffixes.size() && ends_in(tensors[at + same].name, suffixes[same])) ++same;
    if (same == suffixes.size()) return same;
  }
  return 0;
}

// kernel, recurrent_kernel and perhaps bias of one folder.
std::size_t usual_cell_at(const std::vector<LayerTensor>& tensors, std::size_t at) {
  if (tensors.size() - at < 2 || last_part(tensors[at].name) != "kernel" ||
      last_part(tensors[at + 1].name) != "recurrent_kernel" ||
      folder_of_name(tensors[at].name) != folder_of_name(tensors[at + 1].name)) {
    return 0;
  }
  const bool bias = at + 2 < tensors.size() && last_part(tensors[at + 2].name) == "bias" &&
                    folder_of_name(tensors[at + 2].name) == folder_of_name(tensors[at].name);
  return bias ? 3 : 2;
}

bool is_cell_part(std::string_view part) {
  return part == "cell" || part.ends_with("_cell") || part.find("_cell_") != part.npos;
}

// The layer that a cell is in, and whether it is the backward one. `group` is the first part.
std::pair<std::string, bool> layer_of(const std::vector<std::string>& parts, bool split) {
  for (std::size_t i = split ? 1 : 2; i < parts.size(); ++i) {
    if (parts[i].starts_with("forward_")) return {joined(parts, i), false};
    if (parts[i].starts_with("backward_")) return {joined(parts, i), true};
  }
  std::size_t count = parts.size();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (parts[i] == "stacked_rnn_cells" || parts[i].starts_with("stacked_rnn_cells_")) count = i;
    if (count == i) break;
  }
  while (count > 1 && is_cell_part(parts[count - 1])) --count;
  return {joined(parts, count), false};
}

void add_cell(std::string path, KerasCell cell, std::vector<KerasUnit>* units) {
  if (units->empty() || units->back().path != path) units->push_back({std::move(path), {}, {}});
  units->back().cells.push_back(std::move(cell));
}

// The cells among the tensors of one group of the old form.
void find_in_group(const std::string& group, const std::vector<LayerTensor>& tensors,
                   std::vector<KerasUnit>* units) {
  std::vector<KerasUnit> found;
  for (std::size_t at = 0; at < tensors.size();) {
    const std::size_t split = split_cell_at(tensors, at);
    const std::size_t count = split ? split : usual_cell_at(tensors, at);
    if (count == 0) {
      ++at;
      continue;
    }
    KerasCell cell{.form = split ? KerasForm::kSplit : KerasForm::kUsual};
    for (std::size_t i = 0; i < count; ++i) cell.tensors.push_back(tensors[at + i].info);
    // Keras 1 has no folder: 'lstm_1_W_i' is of 'lstm_1'.
    const std::string_view name = without_output(tensors[at].name);
    const std::string_view last = split_cell_at(tensors, at) == 3 ? "_W" : "_W_i";
    const std::string_view folder =
        split ? name.substr(0, name.size() - last.size()) : folder_of_name(tensors[at].name);
    auto [path, backward] = layer_of(split_path(group + "/" + std::string(folder)), split > 0);
    cell.backward = backward;
    add_cell(std::move(path), std::move(cell), &found);
    at += count;
  }
  for (KerasUnit& unit : found) {
    // The only layer of its group has that name; one of a model inside has both.
    unit.name = found.size() == 1 ? group : unit.path;
    units->push_back(std::move(unit));
  }
}

std::vector<LayerTensor> tensors_of_group(const ModelFile& file, const ValueIndex& values,
                                          const std::string& prefix, const std::string& group) {
  std::vector<LayerTensor> tensors;
  std::unordered_set<std::string> seen;
  for (const std::string& name : values.texts(prefix + group + "/weight_names")) {
    const std::string path = prefix + group + "/" + name;
    // Or a network could be as many times larger than its file as the list is long.
    if (!seen.insert(name).second) {
      throw FormatError(file.path(), 0,
                        "weight_names has '" + excerpt(path) + "' twice, expected it once");
    }
    if (!file.contains(path)) {
      throw FormatError(file.path(), 0,
                        "there is no '" + excerpt(path) + "', expected it as weight_names says");
    }
    tensors.push_back({name, &file.info(path)});
  }
  return tensors;
}

std::vector<KerasUnit> find_in_h5(const ModelFile& file, const ValueIndex& values) {
  std::string prefix = "model_weights/";
  std::vector<std::string> layers = values.texts(prefix + "layer_names");
  if (layers.empty()) layers = values.texts((prefix = "") + "layer_names");
  std::vector<KerasUnit> units;
  std::unordered_set<std::string> seen;
  for (const std::string& layer : layers) {
    if (!seen.insert(layer).second) continue;
    find_in_group(layer, tensors_of_group(file, values, prefix, layer), &units);
  }
  return units;
}

// Whether the shapes are those of a cell: [I, G*U], [U, G*U].
bool has_shapes_of_cell(const std::vector<const TensorInfo*>& tensors) {
  if (tensors.size() < 2) return false;
  const Shape &kernel = tensors[0]->shape, &recurrent = tensors[1]->shape;
  return kernel.size() == 2 && recurrent.size() == 2 && kernel[1] == recurrent[1];
}

// 'layers/lstm/cell/vars/0', 'layers/bidirectional/forward_layer/cell/vars/1',
// 'layers/rnn/cell/cells/lstm_cell/vars/2'.
std::vector<KerasUnit> find_by_paths(const ModelFile& file, const ValueIndex& values) {
  std::vector<KerasUnit> units;
  std::string last;
  std::vector<const TensorInfo*> tensors;
  const auto finish = [&] {
    const std::vector<std::string> parts = split_path(last);
    const auto at = std::find_if(parts.begin(), parts.end(), [](const std::string& part) {
      return part == "cell" || part == "forward_layer" || part == "backward_layer";
    });
    if (at == parts.end() || !has_shapes_of_cell(tensors)) return;
    KerasCell cell{.backward = *at == "backward_layer", .tensors = tensors};
    if (cell.tensors.size() > 3) cell.tensors.resize(3);
    add_cell(joined(parts, static_cast<std::size_t>(at - parts.begin())), std::move(cell), &units);
  };
  for (const TensorInfo& info : file.tensors()) {
    const std::string_view vars = folder_of_name(info.name);
    const std::string_view object = folder_of_name(vars);
    if (vars.substr(object.size()) != "/vars") continue;
    if (object != last) {
      finish();
      last = object;
      tensors.clear();
    }
    tensors.push_back(&info);
  }
  finish();
  for (KerasUnit& unit : units) {
    unit.name = values.text(unit.path + "/vars/name");
    if (unit.name.empty()) unit.name = unit.path;
  }
  // Groups are sorted by name: the forward layer goes first.
  for (KerasUnit& unit : units) {
    std::stable_sort(
        unit.cells.begin(), unit.cells.end(),
        [](const KerasCell& a, const KerasCell& b) { return a.backward < b.backward; });
  }
  return units;
}

std::int64_t gates_of(const KerasOptions& options) {
  return RnnSpec{.mode = options.mode}.num_gates();
}

}  // namespace

std::vector<std::string> split_path(std::string_view path) {
  std::vector<std::string> parts;
  while (!path.empty()) {
    const std::size_t end = std::min(path.find('/'), path.size());
    parts.emplace_back(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return parts;
}

std::vector<std::pair<std::string, const TensorInfo*>> keras_group_tensors(
    const ModelFile& file, const ValueIndex& values, const std::string& group) {
  const std::string whole = "model_weights/";
  const bool in_model = !values.texts(whole + "layer_names").empty();
  std::vector<std::pair<std::string, const TensorInfo*>> tensors;
  for (LayerTensor& one : tensors_of_group(file, values, in_model ? whole : "", group)) {
    tensors.emplace_back(std::move(one.name), one.info);
  }
  return tensors;
}

std::vector<KerasUnit> find_keras_units(const ModelFile& file, const ValueIndex& values) {
  return file.kind() == FileKind::kKerasH5 ? find_in_h5(file, values) : find_by_paths(file, values);
}

CellShape shape_of(const KerasCell& cell) {
  const auto matrix = [&](std::size_t i) -> const Shape& {
    const Shape& shape = cell.tensors[i]->shape;
    if (shape.size() == 2 && shape[0] > 0 && shape[1] > 0) return shape;
    throw NoKerasLayer{message("'", excerpt(cell.tensors[i]->name), "' has shape ",
                               to_string(shape), ", expected two sizes of at least 1")};
  };
  const Shape &kernel = matrix(0), &recurrent = matrix(1);
  CellShape found{.input = kernel[0], .units = recurrent[0], .form = cell.form};
  if (cell.form == KerasForm::kSplit) {
    found.gates = static_cast<std::int64_t>(cell.tensors.size()) / 3;
    found.biases = 1;
    return found;
  }
  found.gates = recurrent[1] / found.units;
  if (found.gates * found.units != recurrent[1] ||
      (found.gates != 1 && found.gates != 3 && found.gates != 4)) {
    throw NoKerasLayer{message("the recurrent kernel has shape ", to_string(recurrent),
                               ", expected 1, 3 or 4 gates of ", found.units, " columns")};
  }
  if (cell.tensors.size() < 3) return found;
  const Shape& bias = cell.tensors[2]->shape;
  const std::int64_t width = recurrent[1];
  if (found.gates > 1 && bias == Shape{2 * width}) found.form = KerasForm::kCudnn;
  found.biases = bias.size() == 2 || found.form == KerasForm::kCudnn ? 2 : 1;
  return found;
}

void order_cells(const KerasLayer& layer, std::vector<KerasCell>* cells) {
  if (layer.cells.size() != cells->size() || cells->size() < 2) return;
  std::vector<KerasCell> ordered;
  std::vector<bool> taken(cells->size(), false);
  for (const KerasOptions& options : layer.cells) {
    for (std::size_t i = 0; i < cells->size(); ++i) {
      const KerasCell& cell = (*cells)[i];
      if (taken[i] || cell.backward || cell.tensors.size() < 2) continue;
      if (shape_of(cell).gates != gates_of(options)) continue;
      taken[i] = true;
      ordered.push_back(cell);
      break;
    }
  }
  if (ordered.size() == cells->size()) *cells = std::move(ordered);
}

}  // namespace openrnn::mapping
