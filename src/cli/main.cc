// openrnn: the command-line tool. Errors end in one line on stderr and an exit code: 1 for those of
// the machine, 2 for those of the user.
#include <csignal>
#include <cstdio>
#include <exception>

#include "cli/commands.h"
#include "openrnn/base.h"

namespace openrnn::cli {
namespace {

int guarded(int argc, char** argv) {
  try {
    const std::optional<Flags> flags = parse_flags(argc, argv);
    if (!flags) return 0;
    const int code = std::visit([](const auto& of_one) { return run(of_one); }, *flags);
    flush_stdout();
    return code;
  } catch (const std::exception& error) {
    const Fault fault = fault_of(error);
    complain(fault);
    return fault.code;
  }
}

}  // namespace
}  // namespace openrnn::cli

int main(int argc, char** argv) {
  // Then a file-size limit is an error of write(), which is handled, and does not kill the process.
  std::signal(SIGXFSZ, SIG_IGN);
  return openrnn::cli::guarded(argc, argv);
}
