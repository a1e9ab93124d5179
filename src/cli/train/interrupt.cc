#include "cli/train/interrupt.h"

#include <csignal>
#include <initializer_list>

namespace openrnn::cli {
namespace {

volatile std::sig_atomic_t requested = 0;

void request(int) { requested = 1; }

}  // namespace

void watch_for_interrupts() {
  struct sigaction action {};
  action.sa_handler = request;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    sigaction(signal, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(signal, &action, nullptr);
  }
  // A log's reader often goes with the terminal; the run then has to be saved all the same.
  std::signal(SIGPIPE, SIG_IGN);
}

bool interrupted() { return requested != 0; }

}  // namespace openrnn::cli
