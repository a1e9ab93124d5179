# Pretended libraries of NVIDIA for the tests of the GPU engine: libcuda.so.1, libcublas.so.13 and
# libcudnn.so.9 in build/stand_in, which compute on the CPU. OPENRNN_CUDA_LIBRARIES names the folder.

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

add_stand_in(cuda 1 ${stand_in}/libcuda.cc ${stand_in}/memory.cc ${stand_in}/work.cc
  ${stand_in}/kernels.cc ${stand_in}/kernels_on_cpu.cc ${stand_in}/block_of_fibers.cc)
