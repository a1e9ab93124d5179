// All libraries that are opened at run time, and what is missing.
#pragma once

#include "cudnn/load/cublas_api.h"
#include "cudnn/load/cudnn_api.h"
#include "cudnn/load/driver_api.h"

namespace openrnn::cudnn {

struct Libraries {
  DriverApi driver;
  CublasApi cublas;
  CudnnApi cudnn;
  /// Why no GPU can be used, and the remedy; empty when one can.
  std::string missing;
  /// The same of the driver and its GPUs alone.
  std::string driver_missing;
  int gpus = 0;
  int driver_version = 0;         // 13000 is 13.0
  std::size_t cudnn_version = 0;  // 91900 is 9.19.0
};

/// Opened by the first call, and never closed. Thread-safe.
const Libraries& libraries();

/// Whether this process is the child of one that had used a GPU: CUDA cannot follow a fork.
bool forked();

/// The text for a process where forked() holds.
std::string forked_text();

/// "13.0", "9.19.0".
std::string cuda_version_text(int version);
std::string cudnn_version_text(std::size_t version);

}  // namespace openrnn::cudnn
