// The tile registers of AMX, which the operating system grants a process on demand.
#pragma once

#include <string>

namespace openrnn::cpu {

/// Whether there are tiles to be had.
bool has_tiles();
/// Whether this process may use them. The first question asks the operating system for them, for
/// this process and its children; the answer is kept.
bool may_use_tiles();
/// Whether that question was answered with no. Asks nobody, as below.
bool tiles_refused();
/// As openrnn::amx_permission().
std::string tile_permission();

/// Where tiles come from: whether there are any, and what asks for them, giving 0 or the number of
/// an error.
struct TileSource {
  bool (*present)();
  int (*ask)();
};
/// Takes tiles from there and forgets what was answered; returns where they came from. For tests.
TileSource assume_tiles(const TileSource& source) noexcept;

}  // namespace openrnn::cpu
