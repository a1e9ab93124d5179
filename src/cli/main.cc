// openrnn: the command-line tool. Errors end in one line on stderr and an exit code: 1 for those of
// the machine, 2 for those of the user.
#include <csignal>
#include <cstdio>
#include <exception>
#include <new>
#include <system_error>

#include "base/out_of_memory.h"
#include "cli/commands.h"
#include "openrnn/base.h"

namespace openrnn::cli {
namespace {

constexpr int kMachinesFault = 1;
constexpr int kUsersFault = 2;

int complain(const char* what, int code) {
  std::fprintf(stderr, "openrnn: %s\n", what);
  return code;
}

int guarded(int argc, char** argv) {
  try {
    const std::optional<Flags> flags = parse_flags(argc, argv);
    if (!flags) return 0;
    const int code = std::visit([](const auto& of_one) { return run(of_one); }, *flags);
    flush_stdout();
    return code;
  } catch (const IoError& error) {
    return complain(error.what(), kMachinesFault);
  } catch (const EngineError& error) {
    return complain(error.what(), kMachinesFault);
  } catch (const Error& error) {
    return complain(error.what(), kUsersFault);
  } catch (const OutOfMemory& error) {
    return complain(error.what(), kMachinesFault);
  } catch (const std::bad_alloc&) {
    return complain("[memory] this machine has too little for these sizes, expected smaller ones",
                    kMachinesFault);
  } catch (const std::exception& error) {
    return complain(error.what(), kMachinesFault);
  }
}

}  // namespace
}  // namespace openrnn::cli

int main(int argc, char** argv) {
  // Then a file-size limit is an error of write(), which is handled, and does not kill the process.
  std::signal(SIGXFSZ, SIG_IGN);
  return openrnn::cli::guarded(argc, argv);
}
