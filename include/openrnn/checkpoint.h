// Saving and restoring models: Saver, CheckpointManager, object-based checkpoints, and what a
// file's tensors make up.
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

/// What a run wants kept besides its variables: strings and numbers under a name. In the file they
/// stand as `openrnn/NAME`; `config` is the run's configuration as JSON.
class OPENRNN_API Extras {
 public:
  /// Overwrites what has that name. Throws: ArgumentError for an empty name.
  void set(const std::string& name, TensorValue value);
  void set_string(const std::string& name, std::string value);
  void set_int(const std::string& name, std::int64_t value);
  void set_float(const std::string& name, double value);

  /// Whether something has that name.
  bool contains(const std::string& name) const { return values_.count(name) != 0; }
  /// Throws: ArgumentError naming what there is when `name` is not; TypeError for another kind.
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

/// One thing that a Saver stores.
using SaverItem = std::variant<Variable, std::shared_ptr<SaveableObject>>;

/// What a Saver stores, and how many checkpoints it keeps.
struct SaverOptions {
  /// Null: the graph that is current when the Saver is made.
  Graph* graph = nullptr;
  /// Empty: all variables of the graph, at each save and restore.
  std::optional<std::vector<Variable>> variables = {};
  /// Empty: all saveables of the graph; if `variables` are given, only theirs.
  std::optional<std::vector<std::shared_ptr<SaveableObject>>> saveables = {};
  /// Instead of the two above: variables under these names, whatever their own are. The tensors of
  /// a saveable keep their names; its key says where among the others they stand.
  std::optional<std::map<std::string, SaverItem>> by_name = {};
  /// Only the canonical tensors: no raw variables. What compatible cells and such Savers exchange.
  bool only_saveables = false;
  /// Checkpoints of save() to keep; 0: all.
  int max_to_keep = 5;
};

/// How strict Saver::restore is.
struct RestoreOptions {
  /// Whether a tensor in the file that nothing here takes is an error (extras are not).
  bool refuse_unexpected = false;
};

/// Stores variables, raw under their names, and the canonical tensors of saveables, in one
/// TensorFlow V2 checkpoint; and reads such checkpoints, those of TensorFlow 1 included. The order
/// in the file is TensorFlow's: by name, variables and saveables together, the tensors of a
/// saveable in the order of its specs. So what TensorFlow wrote comes out again with the same
/// bytes.
class OPENRNN_API Saver {
 public:
  /// Looks at the graph when it saves or restores, not before. Throws: ArgumentError for `by_name`
  /// beside another choice, one variable or saveable under two names, or a negative max_to_keep.
  explicit Saver(SaverOptions options = {});

  /// Writes PREFIX.index and PREFIX.data-00000-of-00001; what was there stays until the new pair is
  /// whole. Changes nothing in the model, counts for no max_to_keep and leaves the `checkpoint`
  /// file alone. Throws: ArgumentError when two tensors or two saveables have one name (nothing is
  /// written then), IoError.
  void write(const std::string& prefix, const Extras& extras = {}) const;

  /// write() to PATH, or to PATH-STEP; then names it in the `checkpoint` file of its folder, which
  /// must exist, and only then removes what is more than max_to_keep of its own. Returns the
  /// prefix. Throws: as write().
  std::string save(const std::string& path, std::optional<std::int64_t> global_step = {},
                   const Extras& extras = {});
  /// The variable's value is the step.
  std::string save(const std::string& path, const Variable& global_step, const Extras& extras = {});
  /// The prefixes that save() wrote and kept, oldest first.
  const std::vector<std::string>& last_checkpoints() const noexcept { return last_; }

  /// Gives every variable its stored value. A variable with a saveable takes its raw tensor if that
  /// one's canonical form equals the stored canonical tensors bit for bit, or if those are absent;
  /// else the canonical tensors. A file of compatible cells has no raw tensors: only a Saver that
  /// leaves out the variables takes it. A failed restore changes nothing.
  /// Throws: ArgumentError listing missing names, or naming a tensor, its shape or dtype and the
  /// expected one, or when two saveables have one name; IoError; FormatError.
  Extras restore(const std::string& prefix, const RestoreOptions& options = {}) const;
  /// The same from a file that is open.
  Extras restore(const TensorBundleReader& reader, const RestoreOptions& options = {}) const;

 private:
  std::vector<std::pair<std::string, SaverItem>> items() const;
  std::vector<Variable> variables() const;
  std::vector<std::shared_ptr<SaveableObject>> saveables() const;
  SaverOptions options_;
  std::vector<std::string> last_;
};

/// The extras alone: what a model is, before it is built. Throws: IoError, FormatError.
OPENRNN_API Extras read_extras(const std::string& prefix);
OPENRNN_API Extras read_extras(const TensorBundleReader& reader);

/// The prefix that FOLDER/checkpoint names as the latest, if its files are there; else the newest
/// of those it lists that are; else nothing. Throws: FormatError for a broken state file.
OPENRNN_API std::optional<std::string> latest_checkpoint(const std::string& folder);

/// What a CheckpointManager keeps, and under which names.
struct CheckpointManagerOptions {
  /// Checkpoints to keep, at least 1; 0 keeps all.
  int keep = 5;
  /// Prefixes are FOLDER/BASE-STEP.
  std::string base = "model.ckpt";
};

/// Keeps the newest checkpoints of one run in a folder. A killed process leaves at least one that
/// can be loaded: a save goes to a prefix of its own, then the `checkpoint` file names it, and only
/// then old ones are removed. Names BASE-NUMBER in the folder belong to it: what its state file
/// does not list (leftovers of a killed process) goes at the next save, unless it was not made
/// here.
class OPENRNN_API CheckpointManager {
 public:
  /// Makes the folder if need be, and takes up what its state file lists of this run.
  /// Throws: ArgumentError for a negative `keep` or a `base` that is no file name; IoError,
  /// FormatError.
  explicit CheckpointManager(std::string folder, CheckpointManagerOptions options = {});

  /// Keeps other processes out from now on, as the first save does.
  /// Throws: StateError naming the process that is in.
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

/// Something that an object-based checkpoint stores. It refers to the object, which must live as
/// long, and looks at it when saving or restoring: what is built later is stored then, and restored
/// when it is built.
class OPENRNN_API Trackable {
 public:
  Trackable(Variable variable);  // NOLINT(google-explicit-constructor): so are the others
  /// Its variables by their names inside the layer's scope. A recurrent layer: the tensors of
  /// compatible cells, `cell-0/kernel`, and for a single layer also `kernel`. MultiRNNCell:
  /// `cell-0`, `cell-1`, ...; DropoutWrapper: `cell`; Model: `layer_with_weights-0`, .... Of each
  /// its parts as well, by their names (see Layer::track).
  Trackable(const Layer& layer);  // NOLINT(google-explicit-constructor)
  /// The pieces of one opaque variable, for those who have no layer. Throws: ArgumentError if null.
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
  /// Of what may get more children: calls a function after each change until that returns true.
  std::function<void(std::function<bool()>)> when_changed = {};
  /// Of such an object, alive or not: it and no other.
  std::shared_ptr<const void> token = {};
  /// Its variables are still to be made.
  bool unbuilt = false;
  /// The object lives no longer.
  bool gone = false;
};

/// What a restore found. Values that matched are restored whatever is asked here.
struct OPENRNN_API CheckpointStatus {
  /// Prefix that was read; empty when none was given.
  std::string prefix;
  /// Keys in the file whose values were restored.
  std::vector<std::string> restored;
  /// Paths of variables here that the file has no value for, 'model/cell-0/kernel', and of objects
  /// without variables that it does not have.
  std::vector<std::string> missing;
  /// How many of them are such objects.
  std::size_t missing_objects = 0;
  /// Keys in the file that nothing here took.
  std::vector<std::string> unused;

  /// The same restore as it is by now: what was built since then has got its values.
  CheckpointStatus current() const;
  /// All of these look at current(), and throw when no prefix was given.
  /// Throws: ArgumentError listing `missing` and `unused`, when there are any.
  const CheckpointStatus& assert_consumed() const;
  /// Throws: ArgumentError listing `missing`, when there are any.
  const CheckpointStatus& assert_existing_objects_matched() const;
  /// Throws: ArgumentError when nothing was restored.
  const CheckpointStatus& assert_nontrivial_match() const;

  /// What goes on with it; null: nothing.
  std::shared_ptr<checkpoint::Restoration> restoration = {};
};

/// Saves and restores objects under names, exchanging files with tf.train.Checkpoint.
class OPENRNN_API Checkpoint {
 public:
  /// Throws: ArgumentError for an empty or repeated name, or 'save_counter', which is its own.
  explicit Checkpoint(NamedTrackables objects);

  /// How often save() was called, restored with the objects; 0 at first.
  std::int64_t save_counter() const noexcept { return save_counter_.value_or(0); }
  /// Writes to this very prefix, without counting and without a `checkpoint` file; returns it. What
  /// was there stays until the new pair is whole. Throws: ArgumentError when two values would get
  /// one key, IoError.
  std::string write(const std::string& prefix) const;
  /// Counts, writes to PREFIX-NUMBER, names it in the folder's `checkpoint` file and returns it.
  /// A failed save does not count.
  std::string save(const std::string& prefix);
  /// Gives every variable that the file has a value for that value. All or nothing: a failed
  /// restore changes no value. The pieces of one opaque variable are restored together.
  /// What a layer that is not built yet has there waits for its build; a later restore wins.
  /// Throws: ArgumentError for a file without object graph, a value of another shape or dtype, some
  /// but not all pieces of a variable, or when nothing matches: no value fits anything here, now or
  /// after a build; IoError; FormatError.
  CheckpointStatus read(const std::string& prefix) const;
  /// read(), and the save counter. Without a prefix, such as latest_checkpoint() of an empty
  /// folder, nothing happens, and every assertion of the status throws.
  CheckpointStatus restore(const std::optional<std::string>& prefix);

 private:
  NamedTrackables objects_;
  std::optional<std::int64_t> save_counter_;
};

// ---- What a file holds --------------------------------------------------------------------------

/// One recurrent network that a checkpoint's tensors make up.
struct NetworkDescription {
  /// What stands before the canonical names: '' or 'm1/cudnn_lstm'.
  std::string scope;
  /// lstm and gru by their names; tanh and relu share theirs, so both stand here unless
  /// `openrnn/config` tells which.
  std::vector<RnnMode> modes;
  /// Everything else, with modes[0].
  RnnSpec spec;
  /// The raw variable of the same network, or ''.
  std::string raw_variable = {};
  /// "lstm, 2 layers, 128 units, input size 64, bidirectional, float32"; "rnn_tanh or rnn_relu,
  /// ..".
  std::string text = {};
};

/// What describe_network found.
struct CheckpointContents {
  std::vector<NetworkDescription> networks;
  /// One sentence for each group of tensors that looks like a network but is none, and for each
  /// opaque buffer whose network the file does not tell.
  std::vector<std::string> remarks;
};

/// Which recurrent networks the tensors of a checkpoint make up, from canonical names and shapes.
OPENRNN_API CheckpointContents describe_network(const TensorBundleReader& reader);

}  // namespace openrnn
