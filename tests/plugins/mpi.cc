// In place of libopenrnn_mpi.so: writes down what it is asked, and fails where STAND_IN_MPI_FAULT
// names the call.
#include <cstdlib>
#include <sstream>
#include <string>

#include "train/mpi/table.h"

namespace {

std::string calls, answer;

const char* say(const char* call, const std::string& what) {
  calls += call + what + "; ";
  const char* const fault = std::getenv("STAND_IN_MPI_FAULT");
  if (!fault || std::string(fault) != call) return nullptr;
  answer = std::string(call) + ": of the stand-in";
  return answer.c_str();
}

template <class... Parts>
std::string of(const Parts&... parts) {
  std::ostringstream text;
  ((text << ' ' << parts), ...);
  return text.str();
}

const char* start(int* rank, int* size) {
  *rank = 2;
  *size = 5;
  return say("start", "");
}
int takes_any_thread() { return std::getenv("STAND_IN_MPI_ONE_THREAD") ? 0 : 4; }
const char* all_to_all(const void* send, void* receive, size_t bytes) {
  return say("all_to_all", of(send, receive, bytes));
}
const char* all_gather(const void* send, void* receive, size_t bytes) {
  return say("all_gather", of(send, receive, bytes));
}
const char* all_reduce(int is_double, size_t count, void* values) {
  return say("all_reduce", of(is_double, count, values));
}
const char* broadcast(void* data, size_t bytes, int root) {
  return say("broadcast", of(data, bytes, root));
}
const char* barrier() { return say("barrier", ""); }
void abort_all(const char* why, int code) { say("abort", of(why, code)); }
const char* finish() { return say("finish", ""); }

}  // namespace

extern "C" {
__attribute__((visibility("default"))) const OpenrnnMpiTable* openrnn_mpi_table() {
  static OpenrnnMpiTable table{OPENRNN_MPI_TABLE_VERSION,
                               start,
                               takes_any_thread,
                               all_to_all,
                               all_gather,
                               all_reduce,
                               broadcast,
                               barrier,
                               abort_all,
                               finish};
  if (const char* const version = std::getenv("STAND_IN_MPI_VERSION")) {
    table.version = std::atoi(version);
  }
  return &table;
}
__attribute__((visibility("default"))) const char* stand_in_mpi_calls() { return calls.c_str(); }
}
