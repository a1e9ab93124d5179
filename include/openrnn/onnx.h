// ONNX models that run here: recurrent operators, and what exporters put around them.
#pragma once

#include "openrnn/formats_onnx.h"
#include "openrnn/runtime.h"

namespace openrnn {

/// The graph of an ONNX model, computed by this library: RNN, LSTM and GRU by its engines, the rest
/// (onnx_operators()) by its operations. Host memory; results are the same bits for any number of
/// threads. Thread-safe.
class OPENRNN_API OnnxProgram {
 public:
  /// Throws: as read_onnx, and as below.
  explicit OnnxProgram(const std::string& path);
  /// Packs weights that are constants. Throws: UnsupportedError naming the node, before anything
  /// runs, for an operator that is not among them and for attributes that it does not have here;
  /// ArgumentError for a value that no node before makes.
  explicit OnnxProgram(const OnnxModel& model);
  ~OnnxProgram();
  OnnxProgram(OnnxProgram&&) noexcept;
  OnnxProgram& operator=(OnnxProgram&&) noexcept;

  /// What a call is given: the graph's inputs but for those that have an initializer.
  const std::vector<OnnxValueInfo>& inputs() const noexcept;
  const std::vector<OnnxValueInfo>& outputs() const noexcept;

  /// The outputs by name. An input that has an initializer may be given, too.
  /// Throws: ArgumentError for an input that is missing, unknown or of another dtype or shape, and
  /// naming the node for shapes that do not fit it; UnsupportedError as choose_engine.
  std::map<std::string, Array> run(const std::map<std::string, ConstArrayView>& inputs) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The names of the operators that an OnnxProgram runs, sorted.
OPENRNN_API std::vector<std::string> onnx_operators();

}  // namespace openrnn
