// The variables of a file of TensorFlow under the names that they have in their program.
#pragma once

#include <unordered_map>

#include "mapping/tensorflow/cells.h"

namespace openrnn::mapping {

struct TfVariables {
  std::vector<TfVariable> variables;
  /// Scalars of checkpoints: steps, rates, texts.
  std::vector<NamedValue> values;
};

/// In a checkpoint of objects the object graph names them, slots as VARIABLE/SLOT. A variable that
/// is there twice with the same values counts once.
TfVariables tf_variables(const ModelFile& file);

/// A network, and the variables that it was made from, in the order of tf_form.
struct TfNetwork {
  bool is_keras = false;
  std::vector<const TfVariable*> variables;
};

/// Sets the slots that optimizers keep of the networks' variables: 'kernel/Adam' of version 1, and
/// 'adam/.._kernel_momentum' of Keras 3. `others` loses what was taken.
void add_tf_slots(const ModelFile& file, const std::vector<TfNetwork>& made,
                  std::vector<const TfVariable*>* others, MappedModel* model);

/// Opaque buffers ('opaque_kernel') beside the tensors of their cells, or alone with the hint
/// `network`. `others` loses what was taken.
void add_tf_opaque(const ModelFile& file, const std::vector<TfNetwork>& made,
                   const MappingHints& hints, std::vector<const TfVariable*>* others,
                   MappedModel* model);

}  // namespace openrnn::mapping
