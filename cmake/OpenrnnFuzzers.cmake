# fuzz/<name>_fuzz.cc becomes <name>_replay, which any compiler builds and which the tests run over
# fuzz/corpus/<name>; with OPENRNN_BUILD_FUZZERS and clang also the libFuzzer program <name>_fuzz.

if(OPENRNN_BUILD_FUZZERS)
  # The rooms that a file reaches; the others would be half of the time to compile.
  openrnn_library(openrnn_fuzzed formats graph ops saveables mapping onnx)
  target_link_libraries(openrnn_fuzzed PUBLIC openrnn_core
    PRIVATE fmt::fmt $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
  add_custom_target(fuzzers)
endif()

file(GLOB fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fuzz/*_fuzz.cc
  ${PROJECT_SOURCE_DIR}/fuzz/*/*_fuzz.cc)
foreach(path IN LISTS fuzz_sources)
  get_filename_component(target ${path} NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" name ${target})
  if(OPENRNN_BUILD_TESTS)
    add_executable(${name}_replay ${path} ${PROJECT_SOURCE_DIR}/fuzz/replay/main.cc)
    target_link_libraries(${name}_replay PRIVATE openrnn openrnn_core openrnn_flags
      nlohmann_json::nlohmann_json)
    target_include_directories(${name}_replay SYSTEM PRIVATE ${PROTOZERO_INCLUDE_DIR})
    add_test(NAME fuzz_${name}_replay
      COMMAND ${name}_replay ${PROJECT_SOURCE_DIR}/fuzz/corpus/${name})
    set_tests_properties(fuzz_${name}_replay PROPERTIES LABELS fuzz)
  endif()
  if(OPENRNN_BUILD_FUZZERS)
    add_executable(${target} ${path})
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    target_link_libraries(${target} PRIVATE openrnn_fuzzed openrnn_core openrnn_flags
      nlohmann_json::nlohmann_json)
    target_include_directories(${target} SYSTEM PRIVATE ${PROTOZERO_INCLUDE_DIR})
    add_dependencies(fuzzers ${target})
  endif()
endforeach()

if(OPENRNN_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "OPENRNN_BUILD_FUZZERS needs clang: configure with the preset fuzz")
  endif()
  # The library itself must count its edges, or the fuzzer is blind: what reads files and what they
  # say. The edges of engines and operations would only hide those.
  foreach(room base spec runtime formats mapping onnx)
    target_compile_options(openrnn_${room} PRIVATE -fsanitize=fuzzer-no-link)
  endforeach()
  # Kernels take no size that the engine has not checked, and would be most of the time to compile.
  file(GLOB kernels ${PROJECT_SOURCE_DIR}/src/cpu/kernels/*.cc)
  foreach(kernel IN LISTS kernels)
    set_property(SOURCE ${kernel} APPEND PROPERTY COMPILE_OPTIONS "-fno-sanitize=all")
  endforeach()
endif()
