// What several subcommands share.
#include <cstdio>

#include "cli/commands.h"
#include "openrnn/base.h"

namespace openrnn::cli {

void use_threads(int threads) {
  if (threads > 0) set_num_threads(threads);
}

void flush_stdout() {
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw IoError("[stdout] not all output could be written, expected a place that takes it");
  }
}

}  // namespace openrnn::cli
