# openrnn_gpu_bench, which bench/gpu runs against PyTorch and which trains across engines; and the
# tests that run on a GPU as one program each, for the bundle that scripts/gpu_bundle makes.

set(bench ${PROJECT_SOURCE_DIR}/bench)
file(GLOB gpu_bench_sources CONFIGURE_DEPENDS ${bench}/gpu/cpp/*.cc)
add_executable(openrnn_gpu_bench ${gpu_bench_sources} ${bench}/peers/cpp/server.cc
  ${bench}/peers/cpp/npy.cc)
target_include_directories(openrnn_gpu_bench PRIVATE ${bench})
target_link_libraries(openrnn_gpu_bench PRIVATE openrnn openrnn_core openrnn_flags)
if(OPENRNN_HAS_CUDA)
  target_sources(openrnn_gpu_bench PRIVATE ${bench}/gpu/cpp/events/cuda.cc)
  target_include_directories(openrnn_gpu_bench SYSTEM PRIVATE ${OPENRNN_CUDA_INCLUDE}
    ${OPENRNN_CUDNN_INCLUDE})
else()
  target_sources(openrnn_gpu_bench PRIVATE ${bench}/gpu/cpp/events/absent.cc)
endif()
