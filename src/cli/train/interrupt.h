// Ctrl-C and SIGTERM as a request that training looks at between steps.
#pragma once

namespace openrnn::cli {

/// From now on the first of these signals sets the request; a second one ends the process.
void watch_for_interrupts();
bool interrupted();

}  // namespace openrnn::cli
