# tests/<room>/<name>_test.cc becomes the executable <room>_<name>_test; tests/tools/<name>.cc becomes
# tool_<name>, a small program that the Python tests run.

find_package(GTest REQUIRED)
if(OPENRNN_HAS_CUDA)
  include(OpenrnnStandIns)
endif()

function(add_lib_test path)
  get_filename_component(name ${path} NAME_WE)
  get_filename_component(folder ${path} DIRECTORY)
  get_filename_component(room ${folder} NAME)
  set(target ${room}_${name})
  add_executable(${target} ${path})
  target_link_libraries(${target} PRIVATE openrnn openrnn_core openrnn_flags fmt::fmt
    nlohmann_json::nlohmann_json GTest::gtest_main)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_definitions(${target} PRIVATE OPENRNN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME ${target} COMMAND ${target})
  set_tests_properties(${target} PROPERTIES LABELS unit)
endfunction()

file(GLOB test_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*/*_test.cc)
foreach(path IN LISTS test_sources)
  add_lib_test(${path})
endforeach()
if(OPENRNN_HAS_CUDA)
  foreach(name elementwise matmul memory optimizers rows softmax sums)
    add_gpu_runs(device_${name}_test)
  endforeach()
endif()

file(GLOB tool_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/tools/*.cc)
foreach(path IN LISTS tool_sources)
  get_filename_component(name ${path} NAME_WE)
  add_executable(tool_${name} ${path})
  target_link_libraries(tool_${name} PRIVATE openrnn openrnn_core openrnn_flags fmt::fmt)
endforeach()

file(GLOB capi_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/capi/*.cc)
if(capi_sources)
  add_library(openrnn_testapi SHARED ${capi_sources})
  target_link_libraries(openrnn_testapi PRIVATE openrnn openrnn_core openrnn_flags)
endif()
