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

# The tests that add_gpu_run named as one program; `which` of INCLUDE and EXCLUDE takes the
# conformance suite or the rest.
function(add_gpu_program name which)
  get_property(targets GLOBAL PROPERTY OPENRNN_GPU_TESTS)
  list(FILTER targets ${which} REGEX "agreement|conformance")
  set(sources)
  foreach(target IN LISTS targets)
    get_target_property(of_target ${target} SOURCES)
    list(APPEND sources ${of_target})
  endforeach()
  list(REMOVE_DUPLICATES sources)
  if(NOT sources)
    return()
  endif()
  add_executable(${name} EXCLUDE_FROM_ALL ${sources})
  target_link_libraries(${name} PRIVATE openrnn openrnn_core openrnn_flags fmt::fmt
    nlohmann_json::nlohmann_json GTest::gtest_main)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_include_directories(${name} SYSTEM PRIVATE ${OPENRNN_CUDA_INCLUDE}
    ${OPENRNN_CUDNN_INCLUDE})
endfunction()

if(OPENRNN_HAS_CUDA)
  add_gpu_program(openrnn_gpu_tests EXCLUDE)
  add_gpu_program(openrnn_gpu_conformance INCLUDE)
endif()
