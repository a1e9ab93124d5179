// Saving and restoring models: Saver, CheckpointManager, object-based checkpoints, and which
// networks a file holds.
#pragma once

#include <variant>

#include "openrnn/formats.h"
#include "openrnn/saveables.h"

namespace openrnn {

class Layer;
namespace checkpoint {
class Restoration;
class FolderLock;
}  // namespace checkpoint

/// Named strings and numbers that a run saves besides its variables. In the file they are
/// `openrnn/NAME`; `config` is the run's configuration as JSON.
class OPENRNN_API Extras {
 public:
  /// Overwrites a value of that name. Throws: ArgumentError for an empty name.
  void set(const std::string& name, TensorValue value);
  void set_string(const std::string& name, std::string value);
  void set_int(const std::string& name, std::int64_t value);
  void set_float(const std::string& name, double value);

  /// Whether there is a value of that name.
  bool contains(const std::string& name) const { return values_.count(name) != 0; }
  /// Throws: ArgumentError listing the names for an unknown `name`; TypeError for another kind.
  const TensorValue& get(const std::string& name) const;
  const Array& get_array(const std::string& name) const;
  /// Numbers of this type and shape; -1 stands for any size.
  const Array& get_array(const std::string& name, DType dtype, const Shape& shape) const;
  /// Scalars.
  const std::string& get_string(const std::string& name) const;
  std::int64_t get_int(const std::string& name) const;
  double get_float(const std::string& name) const;
  /// Sorted by name.
  const std::map<std::string, TensorValue>& values() const noexcept { return values_; }

 private:
  std::map<std::string, TensorValue> values_;
};

/// One item that a Saver stores.
using SaverItem = std::variant<Variable, std::shared_ptr<SaveableObject>>;

/// What a Saver stores, and how many checkpoints it keeps.
struct SaverOptions {
  /// Null: the graph that is current when the Saver is made.
  Graph* graph = nullptr;
  /// Empty: all variables of the graph, at each save and restore.
  std::optional<std::vector<Variable>> variables = {};
  /// Empty: all saveables of the graph; if `variables` are given, only theirs.
  std::optional<std::vector<std::shared_ptr<SaveableObject>>> saveables = {};
  /// Instead of the two above: variables under these names in place of their own. The tensors of a
  /// saveable keep their names; its key only decides their place in the order.
  std::optional<std::map<std::string, SaverItem>> by_name = {};
  /// Only the canonical tensors, no raw variables: the form exchanged with compatible cells.
  bool only_saveables = false;
  /// Checkpoints of save() to keep; 0: all.
  int max_to_keep = 5;
};

/// How strict Saver::restore is.
struct RestoreOptions {
  /// Whether an unused tensor of the file is an error (extras never are).
  bool refuse_unexpected = false;
};

/// Stores variables, raw under their names, and the canonical tensors of saveables, in one
/// TensorFlow V2 checkpoint; and reads such checkpoints, those of TensorFlow 1 included. The order
/// in the file is TensorFlow's: by name, variables and saveables together, the tensors of a
/// saveable in the order of its specs. So a file of TensorFlow's that is restored and saved again
/// has the same bytes.
class OPENRNN_API Saver {
 public:
  /// Reads the graph when it saves or restores, not before. Throws: ArgumentError for `by_name`
  /// together with another choice, one variable or saveable under two names, or a negative
  /// max_to_keep.
  explicit Saver(SaverOptions options = {});

  /// Writes PREFIX.index and PREFIX.data-00000-of-00001; a checkpoint that was there stays until
  /// the new pair is complete. Does not change the model, count for max_to_keep or touch the
  /// `checkpoint` file. Throws: ArgumentError when two tensors or two saveables have one name
  /// (nothing is written then), IoError.
  void write(const std::string& prefix, const Extras& extras = {}) const;

  /// write() to PATH, or to PATH-STEP; then names it in the `checkpoint` file of its folder, which
  /// must exist, and only then removes its own checkpoints beyond max_to_keep. Returns the prefix.
  /// Throws: as write().
  std::string save(const std::string& path, std::optional<std::int64_t> global_step = {},
                   const Extras& extras = {});
  /// The variable's value is the step.
  std::string save(const std::string& path, const Variable& global_step, const Extras& extras = {});
  /// The prefixes that save() wrote and kept, oldest first.
  const std::vector<std::string>& last_checkpoints() const noexcept { return last_; }

  /// Gives every variable its stored value. A variable with a saveable takes its raw tensor if the
  /// canonical form of that equals the stored canonical tensors bit for bit, or if those are
  /// absent; else the canonical tensors. A file of compatible cells has no raw tensors: only a
  /// Saver without raw variables (only_saveables) can restore it. A failed restore changes nothing.
  /// Throws: ArgumentError listing missing names, or naming a tensor, its shape or dtype and the
  /// expected one, or when two saveables have one name; IoError; FormatError.
  Extras restore(const std::string& prefix, const RestoreOptions& options = {}) const;
  /// The same from an open file.
  Extras restore(const TensorBundleReader& reader, const RestoreOptions& options = {}) const;

 private:
  std::vector<std::pair<std::string, SaverItem>> items() const;
  std::vector<Variable> variables() const;
  std::vector<std::shared_ptr<SaveableObject>> saveables() const;
  SaverOptions options_;
  std::vector<std::string> last_;
};

/// The extras alone: the configuration of a model, before it is built. Throws: IoError,
/// FormatError.
OPENRNN_API Extras read_extras(const std::string& prefix);
OPENRNN_API Extras read_extras(const TensorBundleReader& reader);

/// The prefix that FOLDER/checkpoint names as the latest, if its files exist; else the newest
/// listed one whose files do; else nothing. Throws: FormatError for a broken state file.
OPENRNN_API std::optional<std::string> latest_checkpoint(const std::string& folder);

/// What a CheckpointManager keeps, and under which names.
struct CheckpointManagerOptions {
  /// Checkpoints to keep, at least 1; 0 keeps all.
  int keep = 5;
  /// Prefixes are FOLDER/BASE-STEP.
  std::string base = "model.ckpt";
};

/// Keeps the newest checkpoints of one run in a folder. If the process is killed, at least one can
/// be loaded: a save writes to a new prefix, then the `checkpoint` file names it, and only then old
/// ones are removed. Names BASE-NUMBER in the folder belong to it: those that its state file does
/// not list (leftovers of a killed process) are removed at the next save, unless another program
/// made them.
class OPENRNN_API CheckpointManager {
 public:
  /// Creates a missing folder, and goes on from what its state file lists of this run.
  /// Throws: ArgumentError for a negative `keep` or a `base` that is no file name; IoError,
  /// FormatError.
  explicit CheckpointManager(std::string folder, CheckpointManagerOptions options = {});

  /// Locks the folder against other processes, as the first save does. Throws: StateError naming
  /// the process that holds the lock.
  void lock();
  /// Returns the new prefix, FOLDER/BASE-STEP; with a further number if one of that step is listed.
  /// Throws: as lock() and Saver::save.
  std::string save(const Saver& saver, std::int64_t step, const Extras& extras = {});
  /// The same of what `write` stores at the prefix that it is given, such as Checkpoint::write.
  std::string save(const std::function<void(const std::string& prefix)>& write, std::int64_t step);
  /// As latest_checkpoint.
  std::optional<std::string> latest() const;
  /// Oldest first.
  const std::vector<std::string>& checkpoints() const noexcept { return prefixes_; }

 private:
  void take_up();
  std::string new_prefix(std::int64_t step) const;
  void remove_unlisted() const;
  std::string folder_;
  CheckpointManagerOptions options_;
  std::vector<std::string> prefixes_;
  std::vector<double> timestamps_;
  bool owns_folder_ = false;
  std::shared_ptr<checkpoint::FolderLock> lock_;
};

// ---- Object-based checkpoints ------------------------------------------------------------------
// As tf.train.Checkpoint(**objects): values are found by the names of objects in one another, not
// by the names of variables. docs/checkpoint_format.md lists the names.

class Trackable;
struct TrackedObject;
/// Objects by name, in the order in which they are stored.
using NamedTrackables = std::vector<std::pair<std::string, Trackable>>;

/// An object that an object-based checkpoint stores. It refers to the object, which must outlive
/// it, and reads it when saving or restoring: what is built later is stored then, and restored when
/// it is built.
class OPENRNN_API Trackable {
 public:
  Trackable(Variable variable);  // NOLINT(google-explicit-constructor): so are the others
  /// Its variables by their names inside the layer's scope. A recurrent layer: the tensors of
  /// compatible cells, `cell-0/kernel`, and for a single layer also `kernel`. MultiRNNCell:
  /// `cell-0`, `cell-1`, ...; DropoutWrapper: `cell`; Model: `layer_with_weights-0`, .... Each with
  /// its parts as well, by their names (see Layer::track).
  Trackable(const Layer& layer);  // NOLINT(google-explicit-constructor)
  /// The tensors of one opaque variable, without a layer. Throws: ArgumentError if null.
  Trackable(std::shared_ptr<const ObjectSaveable> saveable);  // NOLINT(google-explicit-constructor)
  /// Named children: a model of several layers, a dictionary.
  Trackable(NamedTrackables children);  // NOLINT(google-explicit-constructor)
  /// Children '0', '1', ... as TensorFlow names those of a list.
  static Trackable list(std::vector<Trackable> items);
  /// Anything else. Throws: ArgumentError for an empty function.
  static Trackable from(std::function<TrackedObject()> describe);

  /// What it holds now.
  TrackedObject now() const;

 private:
  Trackable() = default;
  std::function<TrackedObject()> describe_;
};

/// A variable that an optimizer keeps beside another one, such as 'm' of Adam.
struct TrackedSlot {
  std::string name;
  Variable variable;
  Variable slot;
};

/// What an object holds at one moment.
struct OPENRNN_API TrackedObject {
  /// Equal for the same object wherever it is reached; null: a new one each time.
  const void* identity = nullptr;
  /// A leaf: this variable and nothing else.
  Variable variable = {};
  NamedTrackables children = {};
  /// Variables that are stored as several computed pieces, which are children as well.
  std::vector<std::shared_ptr<const ObjectSaveable>> saveables = {};
  /// Of an optimizer.
  std::vector<TrackedSlot> slots = {};
  /// Of an optimizer: makes the slots of these variables, so that a restore can fill them.
  std::function<void(const std::vector<Variable>&)> make_slots = {};
  /// For objects that may get more children: calls a function after each change until it returns
  /// true.
  std::function<void(std::function<bool()>)> when_changed = {};
  /// Identifies such an object, even after it was destroyed.
  std::shared_ptr<const void> token = {};
  /// Its variables are not made yet.
  bool unbuilt = false;
  /// The object was destroyed.
  bool gone = false;
};

/// Result of a restore. Values that matched are restored whatever is asserted.
struct OPENRNN_API CheckpointStatus {
  /// Prefix that was read; empty when none was given.
  std::string prefix;
  /// Keys in the file whose values were restored.
  std::vector<std::string> restored;
  /// Paths of variables that the file has no value for, such as 'model/cell-0/kernel', and of
  /// objects without variables that it lacks.
  std::vector<std::string> missing;
  /// How many of them are such objects.
  std::size_t missing_objects = 0;
  /// Keys in the file that were not used.
  std::vector<std::string> unused;

  /// The status now: what was built since the restore has its values.
  CheckpointStatus current() const;
  /// All of these check current(), and throw when no prefix was given.
  /// Throws: ArgumentError listing `missing` and `unused`, when there are any.
  const CheckpointStatus& assert_consumed() const;
  /// Throws: ArgumentError listing `missing`, when there are any.
  const CheckpointStatus& assert_existing_objects_matched() const;
  /// Throws: ArgumentError when nothing was restored.
  const CheckpointStatus& assert_nontrivial_match() const;

  /// Restores what is built later; null: nothing to restore.
  std::shared_ptr<checkpoint::Restoration> restoration = {};
};

/// Saves and restores objects under names, exchanging files with tf.train.Checkpoint.
class OPENRNN_API Checkpoint {
 public:
  /// Throws: ArgumentError for an empty or repeated name, or 'save_counter', which is its own.
  explicit Checkpoint(NamedTrackables objects);

  /// How often save() was called, restored with the objects; 0 at first.
  std::int64_t save_counter() const noexcept { return save_counter_.value_or(0); }
  /// Writes to exactly this prefix, without counting and without a `checkpoint` file; returns it. A
  /// checkpoint that was there stays until the new pair is complete. Throws: ArgumentError when two
  /// values would get one key, IoError.
  std::string write(const std::string& prefix) const;
  /// Counts, writes to PREFIX-NUMBER, names it in the folder's `checkpoint` file and returns it.
  /// A failed save does not count.
  std::string save(const std::string& prefix);
  /// Restores every variable that the file has a value for; a failed restore changes none. The
  /// tensors of one opaque variable are restored together. Values of a layer that is not built yet
  /// are assigned when it is built; a later restore wins.
  /// Throws: ArgumentError for a file without object graph, a value of another shape or dtype, some
  /// but not all tensors of a variable, or when nothing matches: no value fits any object, now or
  /// after a build; IoError; FormatError.
  CheckpointStatus read(const std::string& prefix) const;
  /// read(), and the save counter. Without a prefix, such as latest_checkpoint() of an empty
  /// folder, nothing happens, and every assertion of the status throws.
  CheckpointStatus restore(const std::optional<std::string>& prefix);

 private:
  NamedTrackables objects_;
  std::optional<std::int64_t> save_counter_;
};

// ---- Networks in a file ------------------------------------------------------------------------

/// One recurrent network in a checkpoint.
struct NetworkDescription {
  /// Prefix of the canonical names: '' or 'm1/cudnn_lstm'.
  std::string scope;
  /// One mode; both rnn_tanh and rnn_relu, whose tensors have the same names, unless
  /// `openrnn/config` says which.
  std::vector<RnnMode> modes;
  /// The whole network, with modes[0].
  RnnSpec spec;
  /// The raw variable of the same network, or ''.
  std::string raw_variable = {};
  /// "lstm, 2 layers, 128 units, input size 64, bidirectional, float32"; "rnn_tanh or rnn_relu,
  /// ..".
  std::string text = {};
};

/// Result of describe_network.
struct CheckpointContents {
  std::vector<NetworkDescription> networks;
  /// One sentence for each group of tensors that looks like a network but is not, and for each
  /// opaque buffer whose network the file does not say.
  std::vector<std::string> remarks;
};

/// The recurrent networks in a checkpoint, found from canonical names and shapes.
OPENRNN_API CheckpointContents describe_network(const TensorBundleReader& reader);

}  // namespace openrnn
