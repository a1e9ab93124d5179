// Which numbers the rows of a dropout have for its masks.
#pragma once

#include "base/counter.h"
#include "openrnn/device.h"

namespace openrnn {

inline counter::PartRows part_rows(const DropoutArgs& args) {
  if (args.key.whole_batch == 0) return {};
  return {.group = args.before > 0 ? args.rows / args.before : 0,
          .stride = args.key.whole_batch * args.after,
          .first = args.key.first_row * args.after};
}

}  // namespace openrnn
