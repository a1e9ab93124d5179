// Arguments of each kernel, passed by value. Read by both compilers, so it includes nothing of the
// library. Pointers are to device memory. The values of the enumerations are those of the
// interface, which the host's side static_asserts.
#pragma once

#include <cstdint>

namespace openrnn::gpu {

enum class Number : std::int32_t { kHalf, kFloat, kDouble };

enum class Unary : std::int32_t {
  kRelu,
  kTanh,
  kSigmoid,
  kExp,
  kNegate,
  kSquare,
  kAbs,
  kSqrt,
  kLog,
  kSoftplus
};
enum class Binary : std::int32_t {
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kMaximum,
  kMinimum,
  kPower
};
enum class Compare : std::int32_t { kEqual, kLess, kLessEqual };
enum class Rule : std::int32_t {
  kGradientDescent,
  kMomentum,
  kNesterov,
  kAdagrad,
  kRmsProp,
  kCenteredRmsProp,
  kAdam,
  kAdamW
};

struct UnaryArguments {
  Unary op;
  Number number;
  std::int64_t size;
  const void* x;
  void* y;
};

struct UnaryGradientArguments {
  Unary op;
  Number number;
  std::int64_t size;
  const void *x, *y, *dy;
  void* dx;
};

struct BinaryArguments {
  Binary op;
  Number number;
  std::int64_t size;
  const void *a, *b;
  void* c;
};

struct CompareArguments {
  Compare op;
  Number number;
  std::int64_t size;
  const void *a, *b;
  std::uint8_t* mask;
};

/// Elements of `bytes`; null a or b: 0.
struct SelectArguments {
  std::int32_t bytes;
  std::int64_t size;
  const std::uint8_t* mask;
  const void *a, *b;
  void* out;
};

/// Dimensions of one launch of a strided copy, the last one innermost.
inline constexpr int kStridedRank = 6;

/// Elements of `bytes`; strides in elements.
struct StridedArguments {
  std::int32_t bytes, rank;
  std::int64_t size;
  std::int64_t shape[kStridedRank], from_strides[kStridedRank], to_strides[kStridedRank];
  const void* from;
  void* to;
};

struct ScaleArguments {
  Number number;
  std::int64_t size;
  double factor;
  const void* x;
  void* y;
};

/// x within the bounds, or with dy the gradient of that.
struct ClipArguments {
  Number number;
  std::int64_t size;
  double low, high;
  const void *x, *dy;
  void* out;
};

/// y = factor * *scalar; null stands for 1.
struct FillArguments {
  Number number, scalar_number;
  std::int64_t size;
  double factor;
  const void* scalar;
  void* y;
};

struct ConvertArguments {
  Number from_number, to_number;
  std::int64_t size;
  const void* from;
  void* to;
};

struct AddRowArguments {
  Number number;
  std::int64_t rows, cols;
  const void *x, *row;
  void* y;
};

struct ColumnSumArguments {
  Number number;
  std::int64_t rows, cols;
  const void* x;
  void* out;
};

/// Block i of `words` words of `word_bytes`: to[i * to_stride] = from[i * from_stride], or
/// from[indices[i] * from_stride]; strides in words.
struct CopyArguments {
  std::int64_t count, words;
  std::int32_t word_bytes;
  const void* from;
  std::int64_t from_stride;
  const std::int32_t* indices;  // null: i itself
  void* to;
  std::int64_t to_stride;
};

struct ScatterArguments {
  Number number;
  std::int64_t count, cols;
  const void* rows;
  const std::int32_t* indices;
  void* table;
};

struct DropoutArguments {
  Number number;
  std::int64_t rows, cols;
  std::uint64_t seed, call;
  std::int64_t part_group, part_stride, part_first;  // of counter::PartRows
  double rate;
  const void* x;
  void* out;
};

struct SoftmaxArguments {
  Number number;
  std::int64_t rows, classes;
  const void* logits;
  const std::int32_t* labels;
  void *losses, *probabilities;
};

struct SoftmaxLossGradientArguments {
  Number number;
  std::int64_t rows, classes;
  const void* probabilities;
  const std::int32_t* labels;
  const void* row_gradients;
  void* logits_gradient;
};

struct SoftmaxGradientArguments {
  Number number;
  std::int64_t rows, cols;
  const void *y, *dy;
  void* dx;
};

/// partial[b] = the sum of the kSumBlock elements from b * kSumBlock on, or of their squares.
struct SumArguments {
  Number number;
  bool squares;
  std::int64_t size;
  const void* x;
  double* partial;
};

/// Adds the terms from the first to the last: *out = factor * their total, and *sum += it; null:
/// not wanted. One block.
struct TotalArguments {
  std::int64_t count;
  const double* terms;
  double* sum;
  double factor;
  Number number;  // of out
  void* out;
};

/// As openrnn::StepDecision.
struct StepDecision {
  double norm, factor, loss, taken;
};

/// One block; fields as in openrnn::DecisionArgs.
struct DecideArguments {
  const double* squares;
  double clip_norm;
  Number loss_number;
  bool loss_decides;
  const void* loss;
  StepDecision* decision;
};

/// Both sides begin at multiples of 4.
struct CopyIfArguments {
  std::int64_t bytes;
  const StepDecision* decision;
  const void* from;
  void* to;
};

/// The decision may be null: taken, with factor 1.
struct OptimizerArguments {
  Rule rule;
  Number number;
  std::int64_t size;
  void* variable;
  const void* gradient;
  void *a, *b, *c;
  double rate, momentum, decay, beta1, beta2, epsilon;
  const StepDecision* decision;
};

// ---- Shapes of launches that the kernels rely on ----

/// Threads of a block of the kernels without another shape.
inline constexpr int kThreads = 256;
/// Threads that share a row of a softmax, or the rows that are added to a row of a table.
inline constexpr int kRowThreads = 128;
/// Elements of a row in shared memory at once; a multiple of kSumLanes.
inline constexpr int kRowTile = 1024;
/// The order of a sum: lanes within blocks.
inline constexpr int kSumLanes = 16, kSumBlock = 4096;
/// A tile of column_sum; kThreads / kColumnTile rows are read at once.
inline constexpr int kColumnTile = 32, kColumnTileRows = 128;

}  // namespace openrnn::gpu
