# openrnn_gpu_bench: what bench/gpu runs against PyTorch, and training across engines.

set(gpu_bench ${PROJECT_SOURCE_DIR}/bench)
file(GLOB gpu_bench_sources CONFIGURE_DEPENDS ${gpu_bench}/gpu/cpp/*.cc)
add_executable(openrnn_gpu_bench ${gpu_bench_sources} ${gpu_bench}/peers/cpp/server.cc
  ${gpu_bench}/peers/cpp/npy.cc)
target_include_directories(openrnn_gpu_bench PRIVATE ${gpu_bench})
target_link_libraries(openrnn_gpu_bench PRIVATE openrnn openrnn_core openrnn_flags)
