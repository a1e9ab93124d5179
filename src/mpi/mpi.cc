// libopenrnn_mpi.so: MPI behind the table that the library opens.
#include <mpi.h>

#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "train/mpi/table.h"

namespace {

MPI_Comm world = MPI_COMM_NULL;
bool started_here = false;
std::string problem;

const char* said(const char* call, int code) {
  if (code == MPI_SUCCESS) return nullptr;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  problem = std::string(call) + ": " + text;
  return problem.c_str();
}

/// MPI counts in int.
const char* too_many(const char* call, size_t count) {
  if (count <= INT_MAX) return nullptr;
  problem = std::string(call) + ": " + std::to_string(count) +
            " elements in one message, expected " + std::to_string(INT_MAX) + " or fewer";
  return problem.c_str();
}

const char* start(int* rank, int* size) {
  int running = 0, finished = 0, level = 0;
  MPI_Initialized(&running);
  MPI_Finalized(&finished);
  if (finished != 0) {
    problem = "MPI has ended in this process, expected one start";
    return problem.c_str();
  }
  if (running == 0) {
    // Whichever thread trains makes the calls, one at a time.
    if (const char* wrong = said(
            "MPI_Init_thread", MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level))) {
      return wrong;
    }
    started_here = true;
  }
  if (world == MPI_COMM_NULL) {
    if (const char* wrong = said("MPI_Comm_dup", MPI_Comm_dup(MPI_COMM_WORLD, &world)))
      return wrong;
    MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  }
  MPI_Comm_rank(world, rank);
  return said("MPI_Comm_size", MPI_Comm_size(world, size));
}

int takes_any_thread() {
  int level = MPI_THREAD_SINGLE;
  return MPI_Query_thread(&level) == MPI_SUCCESS && level >= MPI_THREAD_SERIALIZED ? 1 : 0;
}

const char* all_to_all(const void* send, void* receive, size_t bytes) {
  if (const char* wrong = too_many("MPI_Alltoall", bytes)) return wrong;
  const int n = static_cast<int>(bytes);
  return said("MPI_Alltoall", MPI_Alltoall(send, n, MPI_BYTE, receive, n, MPI_BYTE, world));
}

const char* all_gather(const void* send, void* receive, size_t bytes) {
  if (const char* wrong = too_many("MPI_Allgather", bytes)) return wrong;
  const int n = static_cast<int>(bytes);
  return said("MPI_Allgather", MPI_Allgather(send, n, MPI_BYTE, receive, n, MPI_BYTE, world));
}

const char* all_reduce(int is_double, size_t count, void* values) {
  if (const char* wrong = too_many("MPI_Allreduce", count)) return wrong;
  const MPI_Datatype type = is_double != 0 ? MPI_DOUBLE : MPI_FLOAT;
  return said("MPI_Allreduce",
              MPI_Allreduce(MPI_IN_PLACE, values, static_cast<int>(count), type, MPI_SUM, world));
}

const char* broadcast(void* data, size_t bytes, int root) {
  if (const char* wrong = too_many("MPI_Bcast", bytes)) return wrong;
  return said("MPI_Bcast", MPI_Bcast(data, static_cast<int>(bytes), MPI_BYTE, root, world));
}

const char* barrier() { return said("MPI_Barrier", MPI_Barrier(world)); }

void abort_all(const char* why, int code) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  // Nobody can catch what ends the process.
  std::fprintf(stderr, "openrnn: rank %d: %s\n", rank, why);
  std::fflush(stderr);
  MPI_Abort(world == MPI_COMM_NULL ? MPI_COMM_WORLD : world, code);
}

const char* finish() {
  int finished = 0;
  MPI_Finalized(&finished);
  if (world == MPI_COMM_NULL || finished != 0) return nullptr;
  MPI_Comm_free(&world);
  if (!started_here) return nullptr;
  return said("MPI_Finalize", MPI_Finalize());
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const OpenrnnMpiTable* openrnn_mpi_table() {
  static const OpenrnnMpiTable table{OPENRNN_MPI_TABLE_VERSION,
                                     start,
                                     takes_any_thread,
                                     all_to_all,
                                     all_gather,
                                     all_reduce,
                                     broadcast,
                                     barrier,
                                     abort_all,
                                     finish};
  return &table;
}
