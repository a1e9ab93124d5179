# Stand-ins for the libraries of NVIDIA in the tests of the GPU engine: libcuda.so.1, libcublas.so.13,
# libcudnn.so.9 and libnccl.so.2 in build/stand_in, which compute on the CPU. OPENRNN_CUDA_LIBRARIES names the folder.

set(stand_in ${PROJECT_SOURCE_DIR}/tests/cudnn/stand_in)
set(OPENRNN_STAND_INS ${PROJECT_BINARY_DIR}/stand_in)

# `version` is that of the file's name, which the engine opens.
function(add_stand_in name version)
  add_library(stand_in_${name} SHARED ${ARGN})
  set_target_properties(stand_in_${name} PROPERTIES OUTPUT_NAME ${name} VERSION ${version}
    SOVERSION ${version} LIBRARY_OUTPUT_DIRECTORY ${OPENRNN_STAND_INS} BUILD_RPATH "$ORIGIN"
    CXX_VISIBILITY_PRESET hidden)
  target_include_directories(stand_in_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_include_directories(stand_in_${name} SYSTEM PRIVATE ${OPENRNN_CUDA_INCLUDE}
    ${OPENRNN_CUDNN_INCLUDE})
  target_link_libraries(stand_in_${name} PRIVATE openrnn_flags)
endfunction()

add_stand_in(cuda 1 ${stand_in}/libcuda.cc ${stand_in}/graphs/libcuda_graphs.cc ${stand_in}/graphs/captures.cc
  ${stand_in}/memory.cc ${stand_in}/work.cc ${stand_in}/order/order.cc
  ${stand_in}/kernels/kernels.cc ${stand_in}/kernels/kernels_on_cpu.cc ${stand_in}/kernels/block_of_fibers.cc)
add_stand_in(cublas 13 ${stand_in}/libcublas.cc)
target_link_libraries(stand_in_cublas PRIVATE stand_in_cuda)
add_stand_in(cudnn 9 ${stand_in}/libcudnn.cc ${stand_in}/libcudnn_rnn.cc
  ${stand_in}/rnn_descriptors.cc ${stand_in}/rnn_on_cpu.cc ${stand_in}/faults.cc)
target_link_libraries(stand_in_cudnn PRIVATE stand_in_cuda openrnn_core)
# Its own copy of the library must not mix with the one under test.
target_link_options(stand_in_cudnn PRIVATE -Wl,--exclude-libs,ALL)

add_stand_in(nccl 2 ${stand_in}/nccl/libnccl.cc ${stand_in}/nccl/exchange.cc)
target_link_libraries(stand_in_nccl PRIVATE stand_in_cuda)
set(stand_ins stand_in_cuda stand_in_cublas stand_in_cudnn stand_in_nccl)

set(openrnn_pretended OPENRNN_TEST_DEVICE=gpu:0 OPENRNN_CUDA_LIBRARIES=${OPENRNN_STAND_INS})

# A test of the GPU's room, which reaches into its private parts: over the stand-ins.
function(add_cudnn_test path)
  add_lib_test(${path})
  get_filename_component(target ${path} NAME_WE)
  set(target cudnn_${target})
  target_include_directories(${target} SYSTEM PRIVATE ${OPENRNN_CUDA_INCLUDE}
    ${OPENRNN_CUDNN_INCLUDE})
  add_dependencies(${target} ${stand_ins})
  set_tests_properties(${target} PROPERTIES ENVIRONMENT "${openrnn_pretended}")
endfunction()

# Once more with work put off until it is waited for, and threads the other way round.
function(add_deferred_run target)
  add_test(NAME ${target}_deferred COMMAND ${target})
  set_tests_properties(${target}_deferred PROPERTIES LABELS unit
    ENVIRONMENT "${openrnn_pretended};STAND_IN_DEFERRED=1;STAND_IN_THREADS=reverse")
  add_dependencies(${target} ${stand_ins})
endfunction()

# Once more on a GPU, where there is one; the source is part of the bundle's test programs.
function(add_gpu_run target)
  set_property(GLOBAL APPEND PROPERTY OPENRNN_GPU_TESTS ${target})
  add_test(NAME ${target}_on_gpu COMMAND ${target})
  set_tests_properties(${target}_on_gpu PROPERTIES LABELS gpu
    ENVIRONMENT OPENRNN_TEST_DEVICE=gpu:0 SKIP_REGULAR_EXPRESSION "no GPU: ")
endfunction()

# All of these for a test of the device that OPENRNN_TEST_DEVICE names.
function(add_device_runs target)
  add_test(NAME ${target}_on_stand_in COMMAND ${target})
  set_tests_properties(${target}_on_stand_in PROPERTIES LABELS unit
    ENVIRONMENT "${openrnn_pretended}")
  add_deferred_run(${target})
  add_gpu_run(${target})
endfunction()

# The program with gpu:0 as its default device.
function(add_default_device_run target)
  set_property(GLOBAL APPEND PROPERTY OPENRNN_GPU_TESTS ${target})
  add_test(NAME ${target}_on_stand_in COMMAND ${target})
  set_tests_properties(${target}_on_stand_in PROPERTIES LABELS unit
    ENVIRONMENT "OPENRNN_DEVICE=gpu:0;OPENRNN_CUDA_LIBRARIES=${OPENRNN_STAND_INS}")
  add_dependencies(${target} ${stand_ins})
endfunction()
