// Ctrl-C, SIGTERM and SIGHUP as a request that training looks at between steps.
#pragma once

namespace openrnn::cli {

/// From now on the first of these signals sets the request; one that comes again ends the process.
/// A signal that was ignored stays so, as nohup wants it.
void watch_for_interrupts();
bool interrupted();

}  // namespace openrnn::cli
