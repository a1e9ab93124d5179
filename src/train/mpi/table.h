/* What libopenrnn_mpi.so exports: one table of functions. The library that opens it knows no MPI,
   and the module nothing of the library, so neither has to be linked against the other. */
#ifndef OPENRNN_TRAIN_MPI_TABLE_H
#define OPENRNN_TRAIN_MPI_TABLE_H

#include <stddef.h>

#define OPENRNN_MPI_TABLE_VERSION 2
#define OPENRNN_MPI_ENTRY "openrnn_mpi_table"

/* Functions return null, or what failed: text that stays until the next call. */
struct OpenrnnMpiTable {
  int version;
  /* Starts MPI unless it runs, and makes a communicator of all its processes. */
  const char* (*start)(int* rank, int* size);
  /* Whether any thread may make the calls below, one at a time. */
  int (*takes_any_thread)(void);
  const char* (*all_to_all)(const void* send, void* receive, size_t bytes);
  const char* (*all_gather)(const void* send, void* receive, size_t bytes);
  /* is_double: of double, else of float. */
  const char* (*all_reduce)(int is_double, size_t count, void* values);
  const char* (*broadcast)(void* data, size_t bytes, int root);
  const char* (*barrier)(void);
  /* Ends all processes, and says why on stderr. */
  void (*abort)(const char* why, int code);
  /* Ends MPI if start() has started it. */
  const char* (*finish)(void);
};

#endif
