// The recurrent layers of a file of Keras, by the names of their tensors.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mapping/keras/config.h"
#include "mapping/keras/values.h"
#include "mapping/support/keras_arrays.h"
#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// The tensors of one cell, in Keras's order.
struct KerasCell {
  KerasForm form = KerasForm::kUsual;
  bool backward = false;
  std::vector<const TensorInfo*> tensors;
};

/// A layer: one cell, one in each direction, or stacked ones.
struct KerasUnit {
  /// Names of its group and of what its tensors are in, 'lstm_1/lstm_1', 'model_1/lstm_1'; the
  /// path of Keras 3, 'layers/lstm_1'.
  std::string path;
  /// The layer's own name where the file has it, else the path.
  std::string name;
  std::vector<KerasCell> cells;
  /// Of one of several stacked cells that are no network together: which it is.
  std::optional<std::size_t> cell_number = {};
};

/// In the order of `layer_names` and `weight_names`, or of the file where it has none. What looks
/// like no cell is left out. Throws: FormatError for names of tensors that are not there.
std::vector<KerasUnit> find_keras_units(const ModelFile& file, const ValueIndex& values);
/// The tensors of a group of the old form by their names in `weight_names`. Throws: as above.
std::vector<std::pair<std::string, const TensorInfo*>> keras_group_tensors(
    const ModelFile& file, const ValueIndex& values, const std::string& group);
/// 'a/b' as {'a', 'b'}.
std::vector<std::string> split_path(std::string_view path);

/// What the tensors of one cell show.
struct CellShape {
  std::int64_t input = 0, units = 0, gates = 0;
  int biases = 0;
  KerasForm form = KerasForm::kUsual;
};
/// Throws: NoKerasLayer for shapes that are no cell's.
CellShape shape_of(const KerasCell& cell);

/// Archives name stacked cells by class and number, so their tensors come class by class: puts
/// them in the order of the configuration, where it has as many of each.
void order_cells(const KerasLayer& layer, std::vector<KerasCell>* cells);

}  // namespace openrnn::mapping
