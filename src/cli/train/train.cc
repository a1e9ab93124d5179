// openrnn train.
#include "cli/commands.h"
#include "cli/train/session.h"

namespace openrnn::cli {

int run(const TrainFlags& flags) {
  constexpr int kInterrupted = 130;
  use_threads(flags.threads);
  use_device(flags.device);
  Session session(flags);
  if (!session.train()) return kInterrupted;
  session.print_result();
  return 0;
}

}  // namespace openrnn::cli
