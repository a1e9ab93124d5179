// What the GPU engine is about to do, for those who ask.
#pragma once

#include <string_view>

namespace openrnn::cudnn {

/// Writes the line to standard error when OPENRNN_LOG_LEVEL is 'debug', else nothing. It is there
/// before this returns: what comes next may end the process.
void log_debug(std::string_view line);

}  // namespace openrnn::cudnn
