// Canonical tensor names taken apart.
#pragma once

#include <map>

#include "openrnn/checkpoint.h"

namespace openrnn::checkpoint {

/// Tensors of one cell kind under one scope and direction: perhaps a network.
struct Candidate {
  std::string scope;
  Direction direction = Direction::kUnidirectional;
  /// kRnnTanh stands for both plain modes, whose names are the same.
  RnnMode mode = RnnMode::kLstm;
  /// Of a gru.
  bool reset_after = true;
  /// Of an lstm: whether it is LayerNormBasicLSTMCell's.
  bool layer_norm = false;
  std::int64_t num_layers = 0;
  /// By full name.
  std::map<std::string, const TensorInfo*> tensors;

  /// As tf_cell_name.
  std::string_view cell_name() const;
  /// 'SCOPE/rnn/multi_rnn_cell/cell_0/CELL/' for a layer and direction.
  std::string cell_prefix(std::int64_t layer) const;
  const TensorInfo* find(const std::string& name) const;
};

/// All candidates in order of their names; optimizer slots and other tensors are skipped.
std::vector<Candidate> find_candidates(const TensorBundleReader& reader);

}  // namespace openrnn::checkpoint
