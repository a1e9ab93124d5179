// Writes and reads the tree of objects.
#pragma once

#include "checkpoint/objects/tree.h"

namespace openrnn::checkpoint {

/// A tree, its object graph and the save counter, if there is one, as one bundle.
/// Throws: ArgumentError when two values would get one key, IoError.
void write_tree(const ObjectTree& tree, std::optional<std::int64_t> save_counter,
                const std::string& prefix);

}  // namespace openrnn::checkpoint
