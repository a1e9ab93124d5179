#include "cudnn/load/cublas_api.h"

#include "cudnn/load/library.h"

namespace openrnn::cudnn {

std::string open_cublas(CublasApi& api) {
  // cuBLAS and cuDNN open these by name only, so libraries in another folder are opened first.
  const std::vector<const char*> homes = {"CUDA_HOME", "CUDA_PATH"};
  const Library light("libcublasLt.so.13", homes);
  Library lib("libcublas.so.13", homes);
  lib.find("cublasCreate_v2", api.create);
  lib.find("cublasDestroy_v2", api.destroy);
  lib.find("cublasSetStream_v2", api.set_stream);
  lib.find("cublasSetMathMode", api.set_math_mode);
  lib.find("cublasSetWorkspace_v2", api.set_workspace);
  lib.find("cublasGetStatusString", api.status_string);
  lib.find("cublasGemmEx_64", api.gemm_64);
  return lib.problem();
}

}  // namespace openrnn::cudnn
