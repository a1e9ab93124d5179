// Model files of every framework as recurrent networks, and back: specs, weights and states.
// Files are untrusted input: every length is checked before use.
#pragma once

#include <map>

#include "openrnn/formats_model_file.h"
#include "openrnn/mapping_layers.h"
#include "openrnn/params.h"

namespace openrnn {

/// One recurrent network of a file.
struct MappedNetwork {
  /// Its path in the file: 'encoder.rnn', 'lstm_1'; empty for a file that is one network.
  std::string name;
  RnnSpec spec;
  /// The opaque buffer of `spec`, of its dtype.
  Array params;
  /// [L*D, O] and [L*D, U], where the file holds states to begin with.
  std::optional<Array> initial_h = {}, initial_c = {};
  /// What an optimizer keeps beside the parameters, by the optimizer's names ('exp_avg', 'm'): each
  /// of the shape of `params`.
  std::map<std::string, Array> slots = {};
  /// The tensors of the file that it was made from.
  std::vector<std::string> tensors = {};
};

struct MappedModel {
  /// As identify_file.
  FileKind kind = FileKind::kUnknown;
  std::string what;
  /// In the order of the file.
  std::vector<MappedNetwork> networks;
  /// The whole model around the networks, each layer behind its inputs; those of the kind 'input'
  /// are in the order of the model's inputs. Empty where the file holds no such, or what is not
  /// computed here, which a note then names.
  std::vector<MappedLayer> layers = {};
  /// Of those layers.
  std::vector<LayerOutput> outputs = {};
  /// Tensors that neither a network nor a layer was made from.
  std::vector<std::string> not_understood;
  /// What there is to say: why no network was made from some of them, and which networks have
  /// weights, states or slots that are NaN or infinite, which are kept.
  std::vector<std::string> notes;
  /// Metadata and plain values.
  std::vector<NamedValue> values;
  /// Reading it compared the checksums of every tensor of its networks.
  bool verified = false;
};

/// The specs of the model's networks, for check_layers; it must outlive what is returned.
OPENRNN_API FindSpec find_spec_in(const MappedModel& model);

/// What a file does not say and the caller knows. A hint is used where the file is silent, and
/// never against what it says.
struct MappingHints {
  /// Of plain networks whose file does not tell tanh from relu, such as PyTorch's.
  std::optional<RnnMode> mode = {};
  /// Of a GRU whose file does not tell.
  std::optional<bool> reset_after = {};
  /// The gates' activation, where the file has weights alone and frameworks differ.
  std::optional<CellActivation> recurrent_activation = {};
  /// Of TensorFlow's BasicLSTMCell, LSTMCell and the like, whose files do not say it. Without the
  /// hint it is TensorFlow's default, 1, and a note says so.
  std::optional<double> forget_bias = {};
  /// Of an opaque buffer that lies in a TensorFlow checkpoint alone.
  std::optional<RnnSpec> network = {};
};

/// Every recurrent network of a file, whatever kind of file its content shows it to be.
/// Throws: as ModelFile; ArgumentError naming the hint for what the file leaves open.
OPENRNN_API MappedModel load_networks(const std::string& path, const MappingHints& hints = {});

/// The kinds of files that networks are written to.
enum class ModelFormat : std::uint8_t {
  /// Our own: safetensors with everything that a MappedModel says in its metadata. It holds every
  /// network, its states and slots, and how it is trained and computed.
  kOpenrnn,
  /// safetensors with PyTorch's names.
  kSafetensors,
  /// A zip archive of torch.save with PyTorch's names.
  kTorch,
  /// A graph of ONNX's recurrent operators: mapping_onnx.h.
  kOnnx,
  /// A model of Keras 3: its archive, its weights alone, and `.h5`, which Keras 2 reads too:
  /// mapping_keras.h.
  kKeras,
  kKerasWeights,
  kKerasH5,
  /// A TensorFlow checkpoint (a prefix) with the names of the cells of version 1.
  kTensorflow,
  /// JSON of RTNeural, and of NeuralAmpModeler: chains of layers.
  kRtneural,
  kNam,
  /// An archive of NumPy with PyTorch's names.
  kNpz,
};
/// 'openrnn', 'safetensors', 'torch', 'onnx', 'keras', 'keras_weights', 'keras_h5', 'tensorflow',
/// 'rtneural', 'nam', 'npz'.
OPENRNN_API std::string_view to_string(ModelFormat format);
/// The inverse. Throws: ArgumentError listing the names.
OPENRNN_API ModelFormat parse_model_format(std::string_view name);
/// The one that files of this ending usually have. Throws: ArgumentError listing the endings.
OPENRNN_API ModelFormat model_format_of(const std::string& path);

/// Whether such a file holds the layers around the networks, and says how they are connected.
OPENRNN_API bool holds_layers(ModelFormat format);
/// Whether such a file holds a value (MappedModel::values) of this name.
OPENRNN_API bool holds_value(ModelFormat format, std::string_view name);

/// Writes the networks with their values, and the layers around them where the format holds those;
/// beside, synced and renamed. How a network is trained and computed is not in files of other
/// frameworks, nor are optimizer slots where those have no place for them. Throws, before anything
/// is written: UnsupportedError naming the network and each option that the format cannot hold;
/// ArgumentError for two networks of one name, and for parameters, states or slots that do not fit
/// the spec. IoError.
OPENRNN_API void save_networks(const std::string& path, const MappedModel& model,
                               ModelFormat format);

// ---- Names and layouts of the frameworks -------------------------------------------------------

/// One parameter of torch.nn.LSTM, GRU or RNN. The opaque buffer of such a network is PyTorch's
/// parameters one behind the other: all weights, then all biases; so each is a part of it.
struct TorchParameter {
  /// 'weight_ih_l0', 'bias_hh_l1_reverse'.
  std::string name;
  Shape shape;
  /// Elements from the start of the opaque buffer.
  std::int64_t offset = 0;
};
/// In the order of Module.parameters(): by layer and direction weight_ih, weight_hh, bias_ih,
/// bias_hh, weight_hr. Throws: UnsupportedError naming the options that PyTorch's modules lack, a
/// GRU's reset_after=false among them; ArgumentError as RnnSpec::validate.
OPENRNN_API std::vector<TorchParameter> torch_parameters(const ValidSpec& spec);
/// The canonical form of tensors in that order. Throws: as above; ArgumentError for a wrong count,
/// shape or dtype.
OPENRNN_API CanonicalParams canonical_from_torch(const ValidSpec& spec,
                                                 std::span<const ConstArrayView> tensors);
/// The inverse. Throws: as above, and as canonical_to_params.
OPENRNN_API std::vector<Array> torch_from_canonical(const ValidSpec& spec,
                                                    std::span<const ConstArrayView> weights,
                                                    std::span<const ConstArrayView> biases);

}  // namespace openrnn
