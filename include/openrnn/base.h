// Errors, dtypes, shapes, arrays, threads, processor features and counter-based random numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#if defined(__GNUC__)
#define OPENRNN_API __attribute__((visibility("default")))
#else
#define OPENRNN_API
#endif

namespace openrnn {

// ---- Errors ------------------------------------------------------------------------------------
// Every message reads "[call] what was given, what was expected". The library throws at its border
// only; it never prints and never aborts.

/// Base of every error that this library throws.
class OPENRNN_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
/// A value, shape or size that the call cannot take. Python: ValueError.
class OPENRNN_API ArgumentError : public Error {
  using Error::Error;
};
/// An argument of the wrong kind, such as a list where a tuple is expected. Python: TypeError.
class OPENRNN_API TypeError : public Error {
  using Error::Error;
};
/// A call that comes too early, too late or twice. Python: RuntimeError.
class OPENRNN_API StateError : public Error {
  using Error::Error;
};
/// A layer that was never connected to an input. Python: AttributeError.
class OPENRNN_API NotConnectedError : public Error {
  using Error::Error;
};
/// Something that this engine or build cannot do. Python: NotImplementedError.
class OPENRNN_API UnsupportedError : public Error {
  using Error::Error;
};
/// A failure inside an engine, such as a GPU library that is missing. Python: RuntimeError.
class OPENRNN_API EngineError : public Error {
  using Error::Error;
};
/// The operating system refused: disk full, unwritable folder, no such file. Python: OSError.
class OPENRNN_API IoError : public Error {
  using Error::Error;
};
/// A file whose bytes are not what its format says. Python: ValueError.
class OPENRNN_API FormatError : public Error {
 public:
  /// `offset` counts bytes from the start of the file at `path`.
  FormatError(const std::string& path, std::uint64_t offset, const std::string& what);
  const std::string& path() const noexcept { return path_; }
  std::uint64_t offset() const noexcept { return offset_; }

 private:
  std::string path_;
  std::uint64_t offset_;
};

// ---- Element types -----------------------------------------------------------------------------

enum class DType : std::uint8_t {
  kFloat16,
  kBfloat16,
  kFloat32,
  kFloat64,
  kInt32,
  kInt64,
  kUInt8,
  kBool
};

/// Bytes of one element.
OPENRNN_API std::size_t dtype_size(DType dtype);
/// 'float16', 'bfloat16', 'float32', 'float64', 'int32', 'int64', 'uint8', 'bool'.
OPENRNN_API std::string_view dtype_name(DType dtype);
/// The inverse of dtype_name. Throws: ArgumentError listing the names.
OPENRNN_API DType parse_dtype(std::string_view name);
OPENRNN_API bool is_floating(DType dtype);
/// Of float16 and bfloat16, which store 16 bits and are computed in float32.
OPENRNN_API bool is_16_bit_float(DType dtype);
/// What a floating dtype is computed in: float32 for the two of 16 bits, else itself.
OPENRNN_API DType compute_dtype(DType dtype);

/// An IEEE 754 binary16 as stored; arithmetic is done in float.
struct Half {
  std::uint16_t bits = 0;
  friend bool operator==(Half, Half) = default;
};
/// Round to nearest even; overflow gives infinity, subnormals are kept, NaN stays NaN.
OPENRNN_API Half to_half(float value) noexcept;
/// Rounds once, straight from double.
OPENRNN_API Half to_half(double value) noexcept;
OPENRNN_API float to_float(Half value) noexcept;

/// A bfloat16 as stored: the upper half of a float's bits. Arithmetic is done in float.
struct Bfloat16 {
  std::uint16_t bits = 0;
  friend bool operator==(Bfloat16, Bfloat16) = default;
};
/// Round to nearest even; overflow gives infinity, subnormals are kept, NaN stays NaN, quiet.
inline Bfloat16 to_bfloat16(float value) noexcept;
/// Rounds once, straight from double.
OPENRNN_API Bfloat16 to_bfloat16(double value) noexcept;
/// Exact, of every one.
inline float to_float(Bfloat16 value) noexcept;

// ---- Shapes and arrays -------------------------------------------------------------------------

/// Dimensions of a row-major array, outermost first; empty for a scalar.
using Shape = std::vector<std::int64_t>;

/// Product of the dimensions. Throws: ArgumentError for a negative dimension or an overflow.
OPENRNN_API std::int64_t shape_size(const Shape& shape);
/// "[2, 3]".
OPENRNN_API std::string to_string(const Shape& shape);

/// A borrowed, read-only, dense, row-major array. Valid as long as what it points to.
struct OPENRNN_API ConstArrayView {
  const void* data = nullptr;
  DType dtype = DType::kFloat32;
  Shape shape;

  std::int64_t size() const { return shape_size(shape); }
  std::size_t size_bytes() const { return static_cast<std::size_t>(size()) * dtype_size(dtype); }
  /// The elements as T. Throws: TypeError if T is not the dtype.
  template <class T>
  std::span<const T> as() const;
};

/// A borrowed, writable, dense, row-major array.
struct OPENRNN_API ArrayView {
  void* data = nullptr;
  DType dtype = DType::kFloat32;
  Shape shape;

  operator ConstArrayView() const { return {data, dtype, shape}; }  // NOLINT: a view narrows freely
  std::int64_t size() const { return shape_size(shape); }
  std::size_t size_bytes() const { return static_cast<std::size_t>(size()) * dtype_size(dtype); }
  template <class T>
  std::span<T> as() const;
};

/// 64-byte aligned memory with value semantics: a cache line, and the widest vector register.
class OPENRNN_API AlignedBuffer {
 public:
  static constexpr std::size_t kAlignment = 64;
  AlignedBuffer() = default;
  /// Zero-filled. Throws: std::bad_alloc, whose what() says how much was asked for.
  explicit AlignedBuffer(std::size_t bytes);
  AlignedBuffer(const AlignedBuffer& other);
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer other) noexcept;
  ~AlignedBuffer();

  void* data() noexcept { return data_; }
  const void* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return bytes_; }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// An owned, dense, row-major array; copying copies the elements.
class OPENRNN_API Array {
 public:
  Array() : Array(DType::kFloat32, {0}) {}
  /// Zero-filled.
  Array(DType dtype, Shape shape);
  /// A copy of the viewed elements.
  explicit Array(const ConstArrayView& view);
  /// From values; T decides the dtype.
  template <class T>
  static Array of(Shape shape, std::span<const T> values);

  DType dtype() const noexcept { return dtype_; }
  const Shape& shape() const noexcept { return shape_; }
  std::int64_t size() const { return shape_size(shape_); }
  std::size_t size_bytes() const noexcept {
    return static_cast<std::size_t>(size()) * dtype_size(dtype_);
  }
  void* data() noexcept { return buffer_.data(); }
  const void* data() const noexcept { return buffer_.data(); }
  ArrayView view() { return {data(), dtype_, shape_}; }
  ConstArrayView view() const { return {data(), dtype_, shape_}; }
  /// The elements as T. Throws: TypeError if T is not the dtype.
  template <class T>
  std::span<T> as() {
    return view().as<T>();
  }
  template <class T>
  std::span<const T> as() const {
    return view().as<T>();
  }
  /// Same elements, other dimensions. Throws: ArgumentError if the sizes differ.
  Array reshaped(Shape shape) &&;

 private:
  DType dtype_;
  Shape shape_;
  AlignedBuffer buffer_;
};

/// A copy in another floating dtype, each element rounded to nearest even once.
/// Throws: TypeError unless both are floating.
OPENRNN_API Array cast(const ConstArrayView& source, DType dtype);
/// Element `index` of a floating array as double.
OPENRNN_API double element(const ConstArrayView& source, std::int64_t index);

// ---- Threads -----------------------------------------------------------------------------------

/// Number of threads that a call may use, the caller's included. The default is
/// OPENRNN_NUM_THREADS, else the smaller of the affinity mask and the cgroup quota. Thread-safe.
OPENRNN_API int num_threads();
/// Throws: ArgumentError unless 1 <= n <= 1024. Results do not depend on it.
OPENRNN_API void set_num_threads(int n);

// ---- Counter-based random numbers --------------------------------------------------------------

/// Philox 4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011): four words
/// from a 128-bit counter and a 64-bit key.
OPENRNN_API std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                std::array<std::uint32_t, 2> key) noexcept;

/// Names one call's masks: `seed` as in the layer, `call` counts training calls from 0. A training
/// step may be computed in parts, consecutive rows of one batch: each part's call then has the same
/// seed and call, and says where its rows lie. Row r of the part has the masks of row first_row + r
/// of a call with all of the batch, so that masks do not depend on how a batch is cut.
struct DropoutKey {
  std::uint64_t seed = 0;
  std::uint64_t call = 0;
  std::int64_t first_row = 0;
  std::int64_t whole_batch = 0;  // rows of the batch; 0: the call has all of it, and first_row is 0
};

/// What a call's masks are of. Each has a stream of its own: that between layers is the key's.
enum class MaskOf : std::uint8_t {
  kLayer,           // dropout between layers
  kInput,           // input_dropout
  kOutput,          // output_dropout
  kWeights,         // drop_connect
  kRecurrentState,  // recurrent_dropout of the state
  kCandidate,       // recurrent_dropout of the candidate
  kZoneout,         // zoneout of h
  kZoneoutCell,     // zoneout of c
};
/// The key of those masks of the call that `key` names.
OPENRNN_API DropoutKey key_of(DropoutKey key, MaskOf masks) noexcept;

/// Where a row of one mask lies. `layer` is the layer whose output is dropped, or for masks inside
/// a step its pseudo-layer.
struct DropoutRow {
  std::uint32_t layer = 0;
  std::uint32_t time = 0;
  std::uint32_t row = 0;
};

/// Fills mask[0, width) with 1/(1 - rate) where the unit is kept and 0 where it is dropped; rate 1
/// drops all. It depends on the arguments alone, so that it can be replayed by any thread.
/// T is float or double; `rate` lies in [0, 1].
template <class T>
void dropout_mask(DropoutKey key, DropoutRow at, double rate, std::span<T> mask) noexcept;
extern template OPENRNN_API void dropout_mask<float>(DropoutKey, DropoutRow, double,
                                                     std::span<float>) noexcept;
extern template OPENRNN_API void dropout_mask<double>(DropoutKey, DropoutRow, double,
                                                      std::span<double>) noexcept;

/// A stream of random numbers: the same (seed, stream) gives the same numbers on every machine.
class OPENRNN_API RandomStream {
 public:
  explicit RandomStream(std::uint64_t seed, std::uint64_t stream = 0) noexcept
      : seed_(seed), stream_(stream) {}
  std::uint32_t next_uint32() noexcept;
  /// Uniform in [0, 1) with 53 bits.
  double uniform() noexcept;
  /// Uniform in [low, high).
  double uniform(double low, double high) noexcept { return low + (high - low) * uniform(); }
  /// Standard normal by the polar method, from this library's own logarithm.
  double normal() noexcept;
  /// Uniform in [0, bound), without bias.
  std::uint64_t below(std::uint64_t bound) noexcept;

 private:
  std::uint64_t seed_, stream_, counter_ = 0;
  std::array<std::uint32_t, 4> block_{};
  int left_ = 0;
};

/// exp and log whose bits are the same on every machine (libm's are not). At most 1 ulp of error.
OPENRNN_API double portable_exp(double x) noexcept;
OPENRNN_API double portable_log(double x) noexcept;

}  // namespace openrnn

#include "openrnn/base_inl.h"
