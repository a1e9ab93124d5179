// Which numbers the rows of a dropout have for its masks.
#pragma once

#include "base/counter.h"
#include "openrnn/device.h"

namespace openrnn {

inline counter::PartRows part_rows(const DropoutArgs& args) {
  if (args.key.whole_batch == 0) return {};
  const std::int64_t around = args.before * args.after;
  return {.group = around > 0 ? args.rows / around * args.after : 0,
          .stride = args.key.whole_batch * args.after,
          .first = args.key.first_row * args.after};
}

}  // namespace openrnn
