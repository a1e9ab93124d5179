// The Python object of a recorded call.
#pragma once

#include "python/layers/layer_ref.h"

namespace openrnn::python {

/// A call on symbolic tensors, as a Python object.
struct NodeRef {
  std::shared_ptr<const SymbolicCall> call;
  /// Keeps the layers behind a call alive that was recorded for a copy; others have their outputs.
  std::shared_ptr<const void> owner = {};

  std::vector<Tensor> outputs() const;
};

/// One Python object a call, as long as somebody holds it.
nb::object wrap_node(const std::shared_ptr<const SymbolicCall>& call,
                     const std::shared_ptr<const void>& owner = {});

/// What a layer that Python wrote computes in a recorded call.
struct PythonCall {
  Kept function;
  std::vector<Tensor> operator()(const std::vector<Tensor>& tensors, const Replay& replay) const;
};

/// What recorded calls are copied and pickled by.
void bind_recorded(nb::class_<NodeRef>& node, nb::module_& m);

}  // namespace openrnn::python
