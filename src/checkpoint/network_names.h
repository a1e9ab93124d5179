// Canonical tensor names taken apart.
#pragma once

#include <map>

#include "openrnn/checkpoint.h"

namespace openrnn::checkpoint {

/// Tensors of one cell kind under one scope and direction: perhaps a network.
struct Candidate {
  std::string scope;
  Direction direction = Direction::kUnidirectional;
  /// What the cell's name tells, as a network without sizes. kRnnTanh stands for both plain modes,
  /// and kProducts of an lstm for kGates, too, but in LayerNormBasicLSTMCell's: the names are the
  /// same.
  RnnSpec form;
  std::int64_t num_layers = 0;
  /// By full name.
  std::map<std::string, const TensorInfo*> tensors;

  /// As tf_cell_name.
  std::string_view cell_name() const;
  /// 'SCOPE/rnn/multi_rnn_cell/cell_0/CELL/' for a layer and direction.
  std::string cell_prefix(std::int64_t layer) const;
  const TensorInfo* find(const std::string& name) const;
};

/// Tensors of other networks' cells in the places of this saveable's: what its own cells have not,
/// and where the file has nothing of its own, cells of the same mode under other names.
std::vector<std::string> foreign_tensors(const TensorBundleReader& reader,
                                         const SaveableObject& saveable);

/// All candidates in order of their names; optimizer slots and other tensors are skipped.
std::vector<Candidate> find_candidates(const TensorBundleReader& reader);

}  // namespace openrnn::checkpoint
