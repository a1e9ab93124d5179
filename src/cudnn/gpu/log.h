// The debug log of the GPU engine.
#pragma once

#include <string_view>

namespace openrnn::cudnn {

/// Writes the line to standard error when OPENRNN_LOG_LEVEL is 'debug', else nothing. It is written
/// when this returns, as the next call may end the process.
void log_debug(std::string_view line);

}  // namespace openrnn::cudnn
