// Data of the two tasks: text as symbols in parallel streams, series as windows of numbers.
#pragma once

#include <map>
#include <optional>

#include "openrnn/base.h"

namespace openrnn::train {

/// Position of training in its data; one window is one step.
struct DataPosition {
  std::int64_t epoch = 0;
  std::int64_t window = 0;
  friend bool operator==(const DataPosition&, const DataPosition&) = default;
};

/// Data of one training step, or of a part of its rows. Text: x and y [T, B] int32. Series: x [T,
/// B, C], y [B, C] or [T, B, C], float64.
struct Window {
  Array x, y;
  /// The recurrent state is reset to zeros, not carried over from the last window.
  bool fresh = false;

  /// The rows [first, first + count) of its batch.
  OPENRNN_API Window part(std::int64_t first, std::int64_t count) const;
};

// ---- Text --------------------------------------------------------------------------------------

enum class TextLevel : std::uint8_t { kByte, kChar };
/// 'byte', 'char'.
OPENRNN_API std::string_view to_string(TextLevel level);
/// The inverse. Throws: ArgumentError listing the names.
OPENRNN_API TextLevel parse_text_level(std::string_view name);

/// The symbols of a model: those of its training text in ascending order, then one for all unknown
/// symbols, unless every byte value occurs.
class OPENRNN_API Vocabulary {
 public:
  Vocabulary() = default;
  /// The symbols of `text`. Throws: ArgumentError for text that is not UTF-8 at the level kChar.
  static Vocabulary of_text(std::string_view text, TextLevel level);
  /// From what codes() gave. Throws: ArgumentError unless ascending and in range.
  Vocabulary(TextLevel level, std::vector<std::int32_t> codes);

  TextLevel level() const noexcept { return level_; }
  /// Byte values or code points, ascending, without the unknown symbol.
  const std::vector<std::int32_t>& codes() const noexcept { return codes_; }
  /// Number of classes of a model over it.
  std::int64_t size() const noexcept;
  /// The class of all unknown symbols; -1 when there are none.
  std::int32_t unknown() const noexcept;
  /// Bits that encode which unknown symbol it is, all being equally likely.
  double bits_of_unknown() const;

  /// The class of a byte value or code point.
  std::int32_t id_of(std::int32_t code) const;
  /// The classes of a text. Throws: ArgumentError naming the first byte that is not UTF-8.
  std::vector<std::int32_t> encode(std::string_view text) const;
  /// The bytes of one class; empty for unknown(). Throws: ArgumentError for an id out of range.
  std::string decode(std::int32_t id) const;

 private:
  TextLevel level_ = TextLevel::kByte;
  std::vector<std::int32_t> codes_;
  std::map<std::int32_t, std::int32_t> ids_;
};

/// Which text is loaded, and what of it is held out.
struct TextOptions {
  std::string path = {};
  /// A separate text to validate on; empty: the last lines of `path`.
  std::string valid_path = {};
  TextLevel level = TextLevel::kByte;
  /// Fraction of the lines of `path` that is held out without a valid_path.
  double valid_fraction = 0.05;
  /// Larger files are mapped, not read: they may be larger than memory.
  std::uint64_t map_above = std::uint64_t{64} << 20;
};

/// The bytes of a text: owned, or those of a mapped file, of which only the parts that are read
/// take memory. A mapped file must not change while it is used. Copies share the bytes.
class OPENRNN_API TextBytes {
 public:
  TextBytes() = default;
  TextBytes(std::string text);                                   // NOLINT: a text is its bytes
  TextBytes(const char* text) : TextBytes(std::string(text)) {}  // NOLINT
  /// A file of up to `map_above` bytes, or one without a size, is read, another one mapped.
  /// Throws: IoError.
  static TextBytes of_file(const std::string& path, std::uint64_t map_above);
  /// Bytes that the caller keeps alive.
  static TextBytes view(std::string_view bytes);
  operator std::string_view() const noexcept { return bytes_; }  // NOLINT
  std::size_t size() const noexcept { return bytes_.size(); }
  /// The bytes [begin, end).
  TextBytes part(std::size_t begin, std::size_t end) const;
  friend bool operator==(const TextBytes& a, const TextBytes& b) { return a.bytes_ == b.bytes_; }

 private:
  std::shared_ptr<const void> owner_;
  std::string_view bytes_;
};

/// A text split in two; the vocabulary is that of the training part alone.
struct Text {
  Vocabulary vocabulary;
  TextBytes train, valid;
};

/// The classes of a text's symbols, found as they are asked for.
class OPENRNN_API TextSymbols {
 public:
  explicit TextSymbols(std::vector<std::int32_t> ids);
  /// Throws: ArgumentError for text that is not UTF-8 at the level kChar.
  TextSymbols(const TextBytes& text, Vocabulary vocabulary);
  std::int64_t size() const noexcept { return count_; }
  /// The symbols [first, first + count).
  void read(std::int64_t first, std::int64_t count, std::int32_t* ids) const;

 private:
  std::vector<std::int32_t> ids_;
  TextBytes text_;
  Vocabulary vocabulary_;
  std::vector<std::size_t> places_;  // of some characters
  std::int64_t count_ = 0;
};

/// Throws: IoError for a file that cannot be read; ArgumentError naming the file for an empty one,
/// for one of a single line when part of it is to be held out, and as Vocabulary::of_text.
OPENRNN_API Text load_text(const TextOptions& options);

/// `batch` parallel streams of windows of `seq_len` steps. A text is cut into segments of several
/// windows, which each epoch reads in another order: streams that read straight through would bias
/// the model towards the few places where they are. The state is carried from window to window
/// inside a segment.
class OPENRNN_API TextStreams {
 public:
  /// Sizes of the streams.
  struct Options {
    std::int64_t batch = 32;
    std::int64_t seq_len = 100;
    /// Windows of a segment, at most; fewer if the text is short.
    std::int64_t segment_windows = 16;
    std::uint64_t seed = 0;
  };
  /// A text too short for seq_len has shorter windows. Throws: ArgumentError for sizes below 1 or a
  /// text of at most `batch` symbols.
  TextStreams(std::vector<std::int32_t> ids, const Options& options)
      : TextStreams(TextSymbols(std::move(ids)), options) {}
  TextStreams(TextSymbols symbols, const Options& options);
  const TextSymbols& text() const noexcept { return text_; }
  /// Windows of one epoch.
  std::int64_t windows() const noexcept { return groups_ * segment_windows_; }
  /// Symbols that one window predicts.
  std::int64_t symbols() const noexcept { return seq_len_ * batch_; }
  /// The order depends on the seed and the epoch alone. Not for use by two threads at once.
  Window window(const DataPosition& position) const;

 private:
  const std::vector<std::int64_t>& starts(std::int64_t epoch) const;
  TextSymbols text_;
  mutable std::int64_t epoch_ = -1;  // whose order is in starts_
  mutable std::vector<std::int64_t> starts_;
  std::int64_t batch_, seq_len_, segment_windows_ = 0, segments_ = 0, groups_ = 0;
  std::uint64_t seed_;
};

// ---- Series ------------------------------------------------------------------------------------

/// Numeric columns of a CSV file.
struct SeriesTable {
  std::vector<std::string> names;
  /// Columns without any number, such as dates; left out.
  std::vector<std::string> ignored;
  Array values;  // [rows, columns] float64
};

/// Comma, semicolon or tab between cells, cells quoted or not, a header line or none. `columns`
/// picks by name, or by number from 1; empty: all that hold numbers. Throws: ArgumentError naming
/// file, row (of the file, from 1) and column of a missing or non-numeric cell or a row of another
/// length, an unknown column, a file without rows or numbers; IoError.
OPENRNN_API SeriesTable load_series(const std::string& path,
                                    const std::vector<std::string>& columns = {});

/// The rows of a table, in memory or not. Not for use by two threads at once.
class OPENRNN_API SeriesRows {
 public:
  virtual ~SeriesRows();
  virtual std::int64_t rows() const = 0;
  virtual std::int64_t columns() const = 0;
  /// The rows [first, first + count) as [count, columns].
  virtual void read(std::int64_t first, std::int64_t count, double* values) const = 0;
};

/// A table whose rows are read when they are asked for.
struct SeriesFile {
  std::vector<std::string> names, ignored;
  std::shared_ptr<const SeriesRows> rows;
  /// Of all numbers, as fingerprint() of an array of them.
  std::string fingerprint;
};

/// As load_series, which it equals in everything but memory: of a file of more than `map_above`
/// bytes only where every 64th row begins is kept, and rows are parsed when they are read. All is
/// checked here; the file must not change while it is used: a row that is not the one that was
/// checked is an error then, of FormatError where it was cut. Throws: as load_series.
OPENRNN_API SeriesFile open_series(const std::string& path,
                                   const std::vector<std::string>& columns = {},
                                   std::uint64_t map_above = std::uint64_t{64} << 20);

/// Mean and standard deviation of each column.
struct Normalisation {
  std::vector<double> mean, deviation;
};

/// Of the values, and of their changes over the horizon.
struct SeriesScaling {
  Normalisation values, changes;
};

/// How windows are cut from a table.
struct SeriesOptions {
  std::int64_t window = 32;  // steps that the network sees
  std::int64_t horizon = 1;  // steps ahead that it forecasts
  bool to_sequence = false;  // a forecast after every step, not only after the last
  std::int64_t batch = 32;
  double valid_fraction = 0.2;
  std::uint64_t seed = 0;
};

/// Windows over a table: the first rows train, the last are held out; normalised by the training
/// rows alone. What is forecast is the change from the last value seen to `horizon` later, each
/// column over the standard deviation of that change in the training rows. Not for use by two
/// threads at once.
class OPENRNN_API SeriesWindows {
 public:
  /// Whose scaling is given: a trained model's, with which every row that can be forecast is held
  /// out and none is trained on; or that of the training rows, which then need not be read for it.
  enum class ScalingOf : std::uint8_t { kModel, kTrainingRows };
  /// Throws: ArgumentError naming the rows there are and those needed, the columns, or one whose
  /// values overflow; as SeriesRows::read.
  SeriesWindows(const SeriesTable& table, const SeriesOptions& options,
                const std::optional<SeriesScaling>& scaling = {});
  SeriesWindows(const SeriesFile& file, const SeriesOptions& options,
                const std::optional<SeriesScaling>& scaling = {},
                ScalingOf scaling_of = ScalingOf::kModel);

  std::int64_t columns() const noexcept { return columns_; }
  const SeriesScaling& scaling() const noexcept { return scaling_; }
  /// Steps of an epoch; the last may have fewer rows.
  std::int64_t windows() const noexcept;
  /// Rows of a step, and of this one.
  std::int64_t batch() const noexcept { return options_.batch; }
  std::int64_t rows(const DataPosition& position) const;
  /// The order of an epoch depends on the seed and the epoch alone.
  Window window(const DataPosition& position) const;

  /// One forecast after each held-out row that has one: window x [W, N, C], and the truth.
  std::int64_t valid_count() const noexcept { return valid_count_; }
  Array valid_inputs(std::int64_t begin, std::int64_t count) const;
  /// The last input value of a forecast, and the true value that it should predict, in the file's
  /// units.
  double valid_last(std::int64_t index, std::int64_t column) const;
  double valid_truth(std::int64_t index, std::int64_t column) const;
  /// The value one `season` before the true one.
  double valid_seasonal(std::int64_t index, std::int64_t column, std::int64_t season) const;
  /// The season of 2 to `window` rows whose seasonal forecast is best on the training rows; 0 when
  /// there are too few or none.
  std::int64_t best_season() const;

 private:
  double value(std::int64_t row, std::int64_t column) const;
  void normalise();
  void require_scale(std::size_t column, double mean, double deviation) const;
  void require_scaling(const SeriesScaling& scaling) const;
  std::int64_t find_season() const;
  std::int64_t row_of(std::int64_t epoch, std::int64_t place) const;
  void gather(const std::vector<std::int64_t>& first_rows, Array& x, Array* y) const;

  SeriesOptions options_;
  std::vector<std::string> names_;
  std::shared_ptr<const SeriesRows> data_;
  std::int64_t rows_ = 0, columns_ = 0, train_rows_ = 0, train_count_ = 0, valid_count_ = 0;
  SeriesScaling scaling_;
  mutable std::int64_t epoch_ = -1;  // whose order is in one of these, the small one if it can
  mutable std::vector<std::uint32_t> order_;
  mutable std::vector<std::int64_t> large_order_;
  mutable std::optional<std::int64_t> season_;
  mutable std::vector<double> row_;  // one
};

}  // namespace openrnn::train
