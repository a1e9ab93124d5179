# tests/<room>/<name>_test.cc becomes the executable <room>_<name>_test; tests/tools/<name>.cc becomes
# tool_<name>, a small program that the Python tests run.

find_package(GTest REQUIRED)

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

# Once more on a device whose memory the host cannot read.
add_library(openrnn_default_device OBJECT ${PROJECT_SOURCE_DIR}/tests/support/default_device.cc)
target_link_libraries(openrnn_default_device PRIVATE openrnn openrnn_core openrnn_flags)
target_include_directories(openrnn_default_device PRIVATE ${PROJECT_SOURCE_DIR}/tests)
function(run_on_device path)
  get_filename_component(name ${path} NAME_WE)
  get_filename_component(folder ${path} DIRECTORY)
  get_filename_component(room ${folder} NAME)
  set(target ${room}_${name})
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:openrnn_default_device>)
  add_test(NAME ${target}_on_device COMMAND ${target})
  set_tests_properties(${target}_on_device PROPERTIES LABELS unit
    ENVIRONMENT OPENRNN_TEST_DEVICE=tagged)
endfunction()
set(rooms_on_devices graph ops layers cells saveables checkpoint train)

file(GLOB test_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*/*_test.cc)
foreach(path IN LISTS test_sources)
  add_lib_test(${path})
  get_filename_component(folder ${path} DIRECTORY)
  get_filename_component(room ${folder} NAME)
  if(room IN_LIST rooms_on_devices)
    run_on_device(${path})
  endif()
endforeach()

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
