// Model files of other frameworks as named tensors: safetensors, PyTorch, ONNX, Keras, NumPy.
// Files are untrusted input: every length is checked before use.
#pragma once

#include <functional>
#include <map>

#include "openrnn/formats.h"

namespace openrnn {

// ---- Reading -----------------------------------------------------------------------------------

/// The kinds of files that a ModelFile reads.
enum class FileKind : std::uint8_t {
  kUnknown,
  kSafetensors,
  /// The `.index.json` of tensors in several safetensors files, which lie in its folder.
  kSafetensorsIndex,
  /// A zip archive of torch.save.
  kTorch,
  /// What torch.save wrote before version 1.6.
  kTorchLegacy,
  kTorchScript,
  kOnnx,
  /// HDF5 of Keras 1, 2 and tf.keras, and of Keras 3 by that ending: weights, or a whole model.
  kKerasH5,
  /// `.weights.h5` of Keras 3.
  kKerasWeights,
  /// `.keras`: a zip archive with one of these and a configuration.
  kKerasArchive,
  /// Any other HDF5 file.
  kHdf5,
  /// A tensor bundle of TensorFlow: the folder of a SavedModel, one with a `checkpoint` state file,
  /// or a prefix.
  kTfCheckpoint,
  /// The one file of TensorFlow's Saver before version 1.0.
  kTfCheckpointV1,
  /// A GraphDef, whose constants are the tensors: a frozen graph.
  kTfGraph,
  /// A model of RTNeural as JSON.
  kRtneural,
  /// A model of NeuralAmpModeler (.nam), as JSON.
  kNam,
  /// An archive of numpy.savez or savez_compressed.
  kNpz,
};

/// What a file is by its content; its name is not looked at, but for the parts of a TensorFlow
/// checkpoint.
struct FoundFile {
  FileKind kind = FileKind::kUnknown;
  /// With an article: 'a safetensors file', 'an HDF5 file', 'a file' where nothing is known of it.
  std::string what;
};

/// Throws: IoError; FormatError for a zip archive whose directory is damaged, and for an HDF5 file
/// whose root group is; UnsupportedError for one of a form that is not read.
OPENRNN_API FoundFile identify_file(const std::string& path);

/// A value beside the tensors: None is std::monostate, a sequence of equal kinds is one value.
using PlainValue =
    std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                 std::vector<double>, std::vector<std::string>>;

struct NamedValue {
  std::string name;
  PlainValue value;
};

/// The tensors of one file, or of the files that an index names. All that the file says of them is
/// checked when opening; elements are read when they are asked for. Thread-safe.
class OPENRNN_API ModelFile {
 public:
  /// Throws: IoError for a file that cannot be opened; FormatError, naming what was found, for a
  /// malformed one or one of another kind; UnsupportedError for what is well-formed and not read.
  explicit ModelFile(const std::string& path);
  ~ModelFile();
  ModelFile(ModelFile&&) noexcept;
  ModelFile& operator=(ModelFile&&) noexcept;

  const std::string& path() const noexcept;
  FileKind kind() const noexcept;
  /// In the order of the file. Element types without a DType are listed with their usual names
  /// ('int8', 'float8_e5m2'), unknown ones with those of the file.
  const std::vector<TensorInfo>& tensors() const noexcept;
  /// Metadata and plain values in the order of the file; all of safetensors are strings. In files
  /// of PyTorch keys and positions are joined by '.': 'epoch', 'optimizer.param_groups.0.lr'.
  const std::vector<NamedValue>& values() const noexcept;
  bool contains(std::string_view name) const;
  /// Throws: ArgumentError listing the names of the file for an unknown `name`.
  const TensorInfo& info(std::string_view name) const;

  /// The elements in row-major order.
  /// Throws: ArgumentError for an unknown name, UnsupportedError for an element type without a
  /// DType and for more elements than are stored, FormatError for a wrong checksum and for a bool
  /// that is neither 0 nor 1.
  Array read(std::string_view name) const;
  /// The same, into memory of as many bytes as the elements have. Throws: as read(), and
  /// ArgumentError for another size.
  void read_into(std::string_view name, std::span<std::byte> out) const;
  /// The same, some rows of the first dimension at a time: calls visit(first, rows) in their order,
  /// with memory that is gone after the call. One of fewer than two dimensions is one row. A wrong
  /// checksum is thrown after the last call. Throws: as read(), and what `visit` throws.
  void read_rows(
      std::string_view name,
      const std::function<void(std::int64_t first, const ConstArrayView& rows)>& visit) const;
  /// The same as bytes, of any element type of whole bytes.
  std::string read_bytes(std::string_view name) const;
  /// The elements where they are mapped, without a copy; nothing if they are not aligned to
  /// their size or have strides: read() copies them. Checksums are not compared. Valid as long as
  /// this object. The file must not be truncated meanwhile: that would end the process (SIGBUS).
  /// Throws: as read().
  std::optional<ConstArrayView> view(std::string_view name) const;

  /// Whether there are checksums of the elements: files of safetensors, old ones of PyTorch, and
  /// those that PyTorch was told to write so, have none.
  bool has_checksums() const noexcept;
  /// Reads everything, so that every checksum has been compared. Throws: FormatError.
  void verify() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// ---- Writing -----------------------------------------------------------------------------------

/// A tensor to be written; its elements are borrowed.
struct NamedView {
  std::string name;
  ConstArrayView values;
};

struct SafetensorsOptions {
  std::map<std::string, std::string> metadata;
  /// 0: one file. Otherwise P.safetensors becomes files P-00001-of-N.safetensors of at most this
  /// many bytes of elements (but at least one tensor), and P.safetensors.index.json.
  std::uint64_t max_shard_bytes = 0;
};

/// Writes beside, syncs and renames; byte for byte what the safetensors package writes for the same
/// tensors. A sharded write replaces nothing.
/// Throws: ArgumentError, before anything is written, for a name that is empty, repeated, not
/// UTF-8, holds a control character or is '__metadata__', and where a file of a sharded write is
/// there already; UnsupportedError for a dtype that the format lacks; IoError; StateError while
/// another writer has the file.
OPENRNN_API void write_safetensors(const std::string& path, std::span<const NamedView> tensors,
                                   const SafetensorsOptions& options = {});

/// Writes what torch.load reads as a state_dict, with weights_only=True, too: in the order given,
/// beside, synced and renamed.
/// Throws: ArgumentError, before anything is written, for a name that is empty, repeated, not UTF-8
/// or holds a control character; UnsupportedError for a dtype without a storage in PyTorch;
/// IoError; StateError while another writer has the file.
OPENRNN_API void write_torch_state_dict(const std::string& path,
                                        std::span<const NamedView> tensors);

/// Writes what numpy.load reads by name, and the values as arrays beside: None as an empty one of
/// bool, strings as those of NumPy, which lose zeros at their end. Beside, synced and renamed.
/// Throws, before anything is written: ArgumentError for a name that is empty, repeated, not UTF-8,
/// holds a control character, is 'openrnn.values' or has more than 65531 bytes; UnsupportedError
/// for bfloat16; IoError; StateError while another writer has the file.
OPENRNN_API void write_npz(const std::string& path, std::span<const NamedView> tensors,
                           std::span<const NamedValue> values = {});

/// Writes an HDF5 file of the oldest form: a dataset at the path that each tensor's name is
/// ('lstm/lstm_cell/kernel'), and an attribute for each value, of the group or dataset whose path
/// is in front of its last '/' ('lstm/weight_names'). So it writes what ModelFile has read. Groups
/// are made of the paths. A single string has variable length, a list of them the longest one's.
/// Beside, synced and renamed.
/// Throws, before anything is written: ArgumentError for a path that is none, is there twice or
/// goes through a dataset, and for an attribute of more than 64 KB but for single strings; IoError;
/// StateError while another writer has the file.
OPENRNN_API void write_hdf5(const std::string& path, std::span<const NamedView> tensors,
                            std::span<const NamedValue> values = {});

/// Writes Keras 3's archive: the values 'config.json' and 'metadata.json', which are texts and
/// both there, are its entries, and all else is model.weights.h5 as write_hdf5 has it.
/// Throws: as write_hdf5.
OPENRNN_API void write_keras_archive(const std::string& path, std::span<const NamedView> tensors,
                                     std::span<const NamedValue> values);

// ---- NumPy arrays -------------------------------------------------------------------------------

/// One array of numpy.save, of versions 1 to 3 of the format; row-major, whatever the file is.
/// Throws: IoError; FormatError for a malformed file; UnsupportedError for objects, structures,
/// and element types without a DType (bfloat16 is one of them: NumPy's files have no name for it).
OPENRNN_API Array read_npy(const std::string& path);
/// Writes what numpy.load reads: beside, synced and renamed.
/// Throws: UnsupportedError for bfloat16; IoError; StateError while another writer has the file.
OPENRNN_API void write_npy(const std::string& path, const ConstArrayView& values);

}  // namespace openrnn
