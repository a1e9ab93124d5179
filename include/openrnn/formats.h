// Files: TensorFlow V2 checkpoints, the `checkpoint` state file, TensorBoard event files.
// Files are untrusted input: every length is checked before use.
#pragma once

#include <optional>
#include <variant>

#include "openrnn/base.h"

namespace openrnn {

// ---- Named tensors -----------------------------------------------------------------------------

/// Byte strings in row-major order; an empty shape is a scalar and holds one string.
struct StringTensor {
  Shape shape;
  std::vector<std::string> values;
  friend bool operator==(const StringTensor&, const StringTensor&) = default;
};

using TensorValue = std::variant<Array, StringTensor>;

/// A value and the name that it has in a file.
struct NamedTensor {
  std::string name;
  TensorValue value;
};

/// What the index of a file says of one tensor.
struct TensorInfo {
  std::string name;
  /// The usual name of the element type, such as 'float32', 'string' or 'bfloat16'.
  std::string dtype;
  Shape shape;
  /// Bytes in the data files.
  std::uint64_t bytes = 0;
  /// Stored as several slices (a partitioned variable); reading joins them.
  bool sliced = false;
};

// ---- TensorFlow V2 checkpoints -----------------------------------------------------------------
// PREFIX names PREFIX.index and PREFIX.data-SSSSS-of-NNNNN.

/// Options of a TensorBundleReader.
struct TensorBundleOptions {
  /// Off only for tools that look at broken files.
  bool verify_checksums = true;
};

/// Reads a tensor bundle. The whole index is checked when opening, and that every tensor lies
/// inside its data file; the bytes of a tensor are checked when it is read. It changes nothing on
/// disk: during a save, or after an interrupted one, it reads the complete pair of files, which
/// stays readable whatever is saved over it. Reading is thread-safe.
class OPENRNN_API TensorBundleReader {
 public:
  /// Throws: IoError for a file that cannot be opened, FormatError for a malformed one,
  /// UnsupportedError for a big-endian or newer one.
  explicit TensorBundleReader(const std::string& prefix, TensorBundleOptions options = {});
  ~TensorBundleReader();
  TensorBundleReader(TensorBundleReader&&) noexcept;
  TensorBundleReader& operator=(TensorBundleReader&&) noexcept;

  const std::string& prefix() const noexcept;
  /// Sorted by name.
  const std::vector<TensorInfo>& tensors() const noexcept;
  /// Names in the order in which their bytes lie in the data files.
  std::vector<std::string> names_in_file_order() const;
  bool contains(std::string_view name) const;
  /// Throws: ArgumentError listing the names of the file for an unknown `name`.
  const TensorInfo& info(std::string_view name) const;

  /// Throws: ArgumentError for an unknown name, TypeError for strings, UnsupportedError for an
  /// element type without a DType, FormatError for a wrong checksum.
  Array read(std::string_view name) const;
  /// Throws: as read(), but TypeError unless the elements are strings.
  StringTensor read_strings(std::string_view name) const;
  /// Either kind.
  TensorValue read_value(std::string_view name) const;
  /// One scalar string.
  std::string read_string(std::string_view name) const;
  /// Reads everything, so that every checksum has been compared. Throws: FormatError.
  void verify() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Writes a tensor bundle of one shard, byte for byte as TensorFlow does. Nothing at PREFIX changes
/// before finish(), except that an unfinished save of a dead process is completed or removed; a
/// writer destroyed before finish() leaves no file.
class OPENRNN_API TensorBundleWriter {
 public:
  /// Throws: IoError if the folder is missing or unwritable, StateError while another process or
  /// writer has this prefix.
  explicit TensorBundleWriter(const std::string& prefix);
  ~TensorBundleWriter();
  TensorBundleWriter(TensorBundleWriter&&) noexcept;
  TensorBundleWriter& operator=(TensorBundleWriter&&) noexcept;

  /// Bytes go to the file in the order of the calls; the index is sorted.
  /// Throws: ArgumentError for a name that is empty, repeated, not UTF-8 or holds a control
  /// character, or a shape that does not fit the values; IoError for a full disk, StateError after
  /// finish().
  void add(const std::string& name, const ConstArrayView& values);
  void add(const std::string& name, const Array& values) { add(name, values.view()); }
  void add(const std::string& name, const StringTensor& values);
  void add(const NamedTensor& tensor);
  /// One scalar string.
  void add_string(const std::string& name, std::string_view value);
  /// Syncs a whole temporary pair, then renames it over PREFIX: at any moment a reader finds the
  /// old tensors or the new ones. Throws: IoError, StateError if called twice or after a failure.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// add() for each, then finish().
OPENRNN_API void write_tensor_bundle(const std::string& prefix,
                                     std::span<const NamedTensor> tensors);
/// Whether there is an index at this prefix, or a new one of an unfinished save.
OPENRNN_API bool tensor_bundle_exists(const std::string& prefix);
/// Removes the index first, then the data files and what an unfinished save left. No error if
/// nothing is there. Throws: IoError.
OPENRNN_API void remove_tensor_bundle(const std::string& prefix);

// ---- The `checkpoint` state file ---------------------------------------------------------------

/// Which prefixes a folder holds. Paths are as a caller opens them; in the file those inside the
/// folder are stored relative to it, so that the folder can be moved.
struct CheckpointState {
  std::string latest;
  /// Oldest first; `latest` is usually the last.
  std::vector<std::string> all;
  /// Seconds since 1970 of each of `all`; may be empty.
  std::vector<double> timestamps;
  std::optional<double> last_preserved_timestamp;
};

/// The state of FOLDER/checkpoint, or nothing if there is no such file.
/// Throws: IoError, FormatError.
OPENRNN_API std::optional<CheckpointState> read_checkpoint_state(const std::string& folder);
/// Replaces FOLDER/checkpoint in one step. Throws: IoError.
OPENRNN_API void write_checkpoint_state(const std::string& folder, const CheckpointState& state);

// ---- TensorBoard event files -------------------------------------------------------------------

/// Appends scalars to a new `events.out.tfevents...` file. Not thread-safe.
class OPENRNN_API EventWriter {
 public:
  /// Throws: IoError if the folder is missing or unwritable.
  explicit EventWriter(const std::string& folder);
  /// Flushes; a failure is lost, so call flush() where it matters.
  ~EventWriter();
  EventWriter(EventWriter&&) noexcept;
  EventWriter& operator=(EventWriter&&) noexcept;

  const std::string& path() const noexcept;
  /// The wall time is now. Throws: IoError; ArgumentError for a tag that is not UTF-8 or holds a
  /// control character.
  void add_scalar(const std::string& tag, std::int64_t step, double value);
  /// `wall_time` in seconds since 1970.
  void add_scalar(const std::string& tag, std::int64_t step, double value, double wall_time);
  /// Writes everything to the operating system. Throws: IoError.
  void flush();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// One number of a TensorBoard event file.
struct ScalarEvent {
  std::string tag;
  std::int64_t step = 0;
  double value = 0;
  double wall_time = 0;
};

/// The scalars of one event file in its order; a truncated last record ends the list without an
/// error, as its writer may still be running. Throws: IoError, FormatError.
OPENRNN_API std::vector<ScalarEvent> read_scalar_events(const std::string& path);

// ---- One file ----------------------------------------------------------------------------------

/// Replaces `path` in one step: written beside as PATH.new, synced, renamed, folder synced. On any
/// failure the old file stays and PATH.new is removed. Throws: IoError with path and reason,
/// StateError while another writer has it.
OPENRNN_API void write_file_atomically(const std::string& path, std::string_view bytes);
/// The whole file, or an anonymous pipe (a shell's <(command)) to its end. Throws: IoError, also
/// for a named pipe, which could block for ever, and for a device.
OPENRNN_API std::string read_file(const std::string& path);

}  // namespace openrnn
