// The whole model of a file as one layer, ready to run and to train.
#pragma once

#include "openrnn/layers.h"
#include "openrnn/mapping.h"

namespace openrnn::layers {

/// The layers of a model file, connected as the file says: embeddings, masks, recurrent networks,
/// dense layers and what lies between. Batch-major: inputs and outputs begin with B. Masks are
/// computed from the values of each call, so gradients and training need no lengths.
/// On symbolic inputs a call is one node. Calls of one graph must not overlap.
class OPENRNN_API LayerGraph : public Layer {
 public:
  /// Layers by their names in the model: those of the kinds 'embedding', 'dense', 'recurrent' and
  /// 'dropout', built where they have weights.
  using Made = std::map<std::string, std::shared_ptr<Layer>>;

  /// Of a description without weights, whose layers are `made`; a recurrent layer's spec is that of
  /// its layer. Throws: ArgumentError as check_layers, and for a layer that is missing or of
  /// another class.
  LayerGraph(std::vector<MappedLayer> layers, std::vector<LayerOutput> outputs, Made made,
             std::string name = "");
  /// Makes the layers of a model with their weights, on `device`; null: the default one. Throws:
  /// UnsupportedError for a model without layers; ArgumentError as check_layers.
  static std::shared_ptr<LayerGraph> of(const MappedModel& model, const Device* device = nullptr);

  /// Without weights.
  const std::vector<MappedLayer>& description() const noexcept { return layers_; }
  const std::vector<LayerOutput>& output_names() const noexcept { return outputs_; }
  /// What the calls are given, in this order, and what they return.
  const std::vector<LayerValue>& inputs() const noexcept { return input_values_; }
  std::vector<LayerValue> outputs() const;
  /// Throws: ArgumentError listing the names for one that has no Layer.
  std::shared_ptr<Layer> layer(const std::string& name) const;
  const Made& layers() const noexcept { return made_; }

  /// The outputs for values of the inputs; integers are int32. `training` switches dropout.
  /// Throws: ArgumentError for a number, dtype or shape that does not fit.
  std::vector<Tensor> operator()(const std::vector<Tensor>& values, bool training = false);
  std::vector<Tensor> call(const std::vector<Tensor>& values, bool training = false) {
    return (*this)(values, training);
  }
  /// The same on the host, with training off.
  std::vector<Array> predict(const std::vector<Tensor>& values);
  /// Layers that are stateful begin the next call with their initial states again.
  void reset_states() { states_.clear(); }

  /// The model with the weights of now, to be written. Networks and layers have their names and
  /// nothing else that the file said of them.
  MappedModel to_model() const;
  std::shared_ptr<Layer> copy() const override;

 protected:
  bool builds_again() const override { return false; }
  void do_build(const Shape&) override {}
  std::vector<Tensor> compute_call(const Attributes& call, const std::vector<Tensor>& inputs,
                                   const Replay& replay) override;

 private:
  FindSpec find_spec() const;
  void check_made() const;
  void check_whole_batch() const;
  void check_values(const std::vector<Tensor>& values) const;

  std::vector<MappedLayer> layers_;
  std::vector<LayerOutput> outputs_;
  Made made_;
  std::vector<LayerValue> input_values_;
  std::map<std::string, std::vector<LayerValue>> values_;
  /// Of stateful layers, by name.
  std::map<std::string, std::vector<Tensor>> states_;
};

}  // namespace openrnn::layers

namespace openrnn {

/// The whole model of a file. Throws: as load_networks; UnsupportedError naming what the file holds
/// that is not computed here.
OPENRNN_API std::shared_ptr<layers::LayerGraph> load_model(const std::string& path,
                                                           const MappingHints& hints = {});
/// Writes it with the weights of now; see save_networks. Throws: as it does.
OPENRNN_API void save_model(const std::string& path, const layers::LayerGraph& model,
                            ModelFormat format);

}  // namespace openrnn
