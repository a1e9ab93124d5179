#include "cudnn/gpu/log.h"

#include <cstdio>
#include <cstdlib>

#include "base/message.h"

namespace openrnn::cudnn {

void log_debug(std::string_view line) {
  const char* level = std::getenv("OPENRNN_LOG_LEVEL");
  if (!level || std::string_view(level) != "debug") return;
  // One write, so that lines of several threads stay apart.
  const std::string text = message("[openrnn] ", line, "\n");
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace openrnn::cudnn
