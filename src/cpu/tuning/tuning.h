// Constants that decide how fast the engine is, never what it computes: results do not depend on
// them. Each says its unit and where it comes from; static_asserts hold what must agree.
//
// Measured on one core of an AMD Zen 4 (117 GFLOP/s of float; L1, L2, L3: 210, 110, 90 GB/s; L2 of
// 1 MB) and of an Intel Sapphire Rapids (207 GFLOP/s; 300, 160, 30 GB/s; L2 of 2 MB).
#pragma once

#include <stdint.h>

#include "engine/sum_order.h"

namespace openrnn::cpu {

// ---- Vectors and register tiles

/// Values of float in the widest vector (AVX-512).
inline constexpr int64_t kMostLanes = 16;

/// Vectors of columns in a panel that is not of gates: with kTileRows below, the accumulators
/// of a tile fill 32 registers. Lstm's panels have four vectors, too: its gates.
inline constexpr int64_t kColumnWidth = 4;

/// Columns of such a panel with the widest vectors: 4 * 16.
inline constexpr int64_t kMostPanelColumns = kColumnWidth * kMostLanes;

/// Rows of a register tile of four vectors where there are 32 vector registers: 6 * 4 accumulators,
/// 4 vectors of weights and a broadcast are 29; a seventh row would make 33.
inline constexpr int64_t kTileRows = 6;
static_assert(kTileRows * kColumnWidth + kColumnWidth + 1 <= 32);
static_assert((kTileRows + 1) * kColumnWidth + kColumnWidth + 1 > 32);

/// Rows of a thread's share of a product: the least whole number of tiles of 3, 4, 6 and 8 rows, so
/// that no share ends in a smaller tile.
inline constexpr int64_t kShareRows = 24;
static_assert(kShareRows % 3 == 0 && kShareRows % 4 == 0 && kShareRows % kTileRows == 0 &&
              kShareRows % 8 == 0);

/// Rows of a block of A in gemm/: of 1024 values of float each they take 384 kB of L2.
inline constexpr int64_t kBlockRows = 4 * kShareRows;

/// Values that one AMX tile instruction adds to a sum: 16 pairs.
inline constexpr int64_t kAmxBlock = 32;

// ---- Packed products

/// Rows that are converted for arithmetic of fewer bits at once, and rows of one product of the
/// input's gradient. Two blocks: of 512 values of float each they take 384 kB, which L2 holds
/// beside a panel of the weights.
inline constexpr int64_t kStagedRows = 2 * kBlockRows;

/// Weights of two bytes are converted before they are multiplied by at least this many rows: each
/// of them is converted once, and not once for every tile.
inline constexpr int64_t kWidenRows = kShareRows;

/// A product of at most this many rows (two tiles) reads each panel once and is bandwidth-bound:
/// cutting k into blocks that stay in L2 would read it no sooner.
inline constexpr int64_t kFewRows = 2 * kTileRows;

/// Part of L2 that a block of the weights' k may take: the rows and results of the product need the
/// rest, and half of that is a margin for L2s that replace lines badly.
inline constexpr int64_t kL2PartOfBlock = 4;

/// Fetching what a tile will write while it multiplies pays from N vectors of a tile on
/// (rows * vectors: half of the largest) and so many k: a shorter tile ends before the lines come.
/// Backward fetches more lines a tile than forward, and needs twice the time.
inline constexpr int64_t kFetchVectors = kTileRows * kColumnWidth / 2;
inline constexpr int64_t kFetchForwardK = 128, kFetchBackwardK = 256;

// ---- Large products: gemm/ and the weight gradients

/// A block of B of 1024 k and 1024 columns of float is 4 MB, a share of L3; a panel of it (64
/// columns) and a block of A (96 rows) are 256 and 384 kB, in L2 together.
inline constexpr int64_t kBlockK = 1024, kBlockN = 1024;
static_assert(kBlockK % kSumSpan == 0, "a pass over k ends with a span");
static_assert(kBlockN % kMostPanelColumns == 0);

/// Rows of A packed by k that are copied as one: a cache line of float.
inline constexpr int64_t kPackedRows = 16;
static_assert(kBlockRows % kPackedRows == 0 && kPackedRows % kMostLanes == 0);

/// Spans of one pass; a pass of short ones (groups of a few valid steps) ends when they are full.
inline constexpr int kMostSpans = 64;

/// Up to this many columns of the input and the state each, the gate gradients are packed once for
/// both. Measured: beyond, the time saved is not seen, and the memory is. Packing for bf16 costs
/// more, so it is worth saving for more columns.
inline constexpr int64_t kColumnsOfBoth = 256, kColumnsOfBothNarrow = 512;
static_assert(2 * kColumnsOfBothNarrow <= kBlockN, "both are packed at once");

// ---- The steps of a pass

/// Bytes of the pre-activations of a chunk of steps: half of the smaller L2, beside the weights.
inline constexpr int64_t kChunkBytes = int64_t{512} << 10;

/// Rows of a chunk: the projection of more is no faster.
inline constexpr int64_t kChunkRows = 512;

/// Layers that are shifted in time need an output each, where others take turns with two: up to
/// this many rows of the batch; more are divided among the threads.
inline constexpr int64_t kShiftedRows = 16;

/// In a backward pass each of them keeps its gate gradients and transposed weights, where others
/// take turns: bytes of that for all layers, a small part of what a process has anyway.
inline constexpr int64_t kShiftedBytes = int64_t{8} << 20;

/// Gates that a processor with AMX tiles saves go past its caches where they are more than so many
/// L2s of each thread: measured there, at 4 a training step gained, at 3 it lost as much. Others
/// are not known to gain: their L3 is nearer.
inline constexpr int64_t kStreamedL2s = 4;

// ---- Fetching ahead: rows lie too far from each other for the processor to foresee the next one

/// In rows, both measured: rows of four cache lines, and rows that are rounded to pairs in packing.
inline constexpr int64_t kRowsAhead = 4, kNarrowRowsAhead = 32;

// ---- When a second thread pays: work of some 1 to 10 us on one, as long as waking it

/// Multiplications of a call of a network, and of a product.
inline constexpr double kAloneNetwork = 1 << 18, kAloneProduct = 1 << 16;
/// Parameters to pack, and elements of a loop over an array.
inline constexpr double kAlonePacking = 1 << 15;
inline constexpr int64_t kAloneElements = 1 << 15;

// ---- The cost model of plan/, over what plan/rates.h and the lease measure

/// Packing one parameter takes as long as multiplying so many in L2; and the barriers that sharing
/// this work is worth.
inline constexpr double kRowsPerPacking = 8, kPackingBarriers = 100;
/// Bytes that others have just written and that are read in a barrier latency, which is that of one
/// cache line: five of them come at once.
inline constexpr double kForeignBytesPerLatency = 300;
/// Barrier latencies that threads which divide each step lose besides, where layers could be
/// shifted in time: two of them took as long as one for the steps of 64 units, of which each has
/// half, and four fifths of it for those of 4 rows.
inline constexpr double kLateAtStep = 2;
/// The shorter of reading and computing hides behind the longer one, but for this part.
inline constexpr double kNotHidden = 0.3;

}  // namespace openrnn::cpu
