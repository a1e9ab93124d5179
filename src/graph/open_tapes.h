// How many tapes record on a thread.
#pragma once

#include <atomic>
#include <memory>

namespace openrnn::graph {

/// The count of this thread. A tape keeps a share of it.
const std::shared_ptr<std::atomic<int>>& open_tapes();

}  // namespace openrnn::graph
