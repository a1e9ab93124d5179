// Cells among named tensors of TensorFlow: which there are, and where each is in its network.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "openrnn/mapping.h"

namespace openrnn::mapping {

/// A tensor under the name that its variable has; `key` is its name in the file.
struct TfVariable {
  std::string name;
  std::string key;
  Shape shape;
  std::string dtype;
};

/// The tensors of one scope that a cell could have, by their names inside it: 'gates/kernel'.
struct TfScope {
  std::string scope;
  std::map<std::string, const TfVariable*, std::less<>> tensors;

  const TfVariable* find(std::string_view suffix) const {
    const auto found = tensors.find(suffix);
    return found == tensors.end() ? nullptr : found->second;
  }
};

/// What a class of cells fixes, by the name that its scope has.
struct TfCellClass {
  /// Without a number behind it.
  std::string_view name;
  RnnMode mode = RnnMode::kLstm;
  /// One bias a gate; else cuDNN's two, whose sums the file has.
  bool single_bias = true;
  bool reset_after = true;
  /// Which the file does not say.
  double forget_bias = 0.0;
  bool normalizes = false;
};

/// One layer of one direction.
struct TfCell {
  const TfScope* scope = nullptr;
  /// Has kernel and recurrent_kernel, as Keras's.
  bool is_keras = false;
  /// Of TensorFlow's own.
  const TfCellClass* kind = nullptr;
  /// Of one layer.
  RnnSpec spec;
  /// The network that it is a part of, and where.
  std::string network;
  bool bidirectional = false;
  std::int64_t layer = 0, direction = 0;
};

/// Why tensors with the names of a cell are none.
struct NoCell {
  std::string why;
};

/// Scopes in the order of their first tensor; variables without such a name go to `others`.
std::vector<TfScope> tf_scopes(const std::vector<TfVariable>& variables,
                               std::vector<const TfVariable*>* others);
/// Nothing where the tensors are those of no cell, such as a dense layer's.
/// Throws: NoCell; ArgumentError naming a hint that is needed.
std::optional<TfCell> tf_cell(const TfScope& scope, const MappingHints& hints,
                              const std::string& path);
/// Sets network, bidirectional, layer and direction from the scope's name.
void place_tf_cell(TfCell* cell);

}  // namespace openrnn::mapping
