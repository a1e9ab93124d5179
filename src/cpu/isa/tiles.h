// The tile registers of AMX, which the operating system grants a process on demand.
#pragma once

#include <string>

namespace openrnn::cpu {

/// Whether processor and operating system have tiles.
bool has_tiles();
/// Whether this process may use them. The first call asks the operating system for them, for this
/// process and its children; the answer is kept.
bool may_use_tiles();
/// Whether that request was refused. Does not ask, and neither does the function below.
bool tiles_refused();
/// As openrnn::amx_permission().
std::string tile_permission();

/// Where tiles come from: whether there are any, and what asks for them, which returns 0 or an
/// errno.
struct TileSource {
  bool (*present)();
  int (*ask)();
};
/// Replaces that source and forgets the answer; returns the source before. For tests.
TileSource assume_tiles(const TileSource& source) noexcept;

}  // namespace openrnn::cpu
