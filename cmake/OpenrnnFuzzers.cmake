# fuzz/<name>_fuzz.cc becomes <name>_replay, which any compiler builds and which the tests run over
# fuzz/corpus/<name>; with OPENRNN_BUILD_FUZZERS and clang also the libFuzzer program <name>_fuzz.

file(GLOB fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fuzz/*_fuzz.cc
  ${PROJECT_SOURCE_DIR}/fuzz/*/*_fuzz.cc)
foreach(path IN LISTS fuzz_sources)
  get_filename_component(target ${path} NAME_WE)
  string(REGEX REPLACE "_fuzz$" "" name ${target})
  if(OPENRNN_BUILD_TESTS)
    add_executable(${name}_replay ${path} ${PROJECT_SOURCE_DIR}/fuzz/replay/main.cc)
    target_link_libraries(${name}_replay PRIVATE openrnn openrnn_core openrnn_flags)
    add_test(NAME fuzz_${name}_replay
      COMMAND ${name}_replay ${PROJECT_SOURCE_DIR}/fuzz/corpus/${name})
    set_tests_properties(fuzz_${name}_replay PROPERTIES LABELS fuzz)
  endif()
  if(OPENRNN_BUILD_FUZZERS)
    add_executable(${target} ${path})
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    target_link_libraries(${target} PRIVATE openrnn openrnn_core openrnn_flags)
  endif()
endforeach()

# The library itself must count its edges, or the fuzzer is blind.
if(OPENRNN_BUILD_FUZZERS)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "OPENRNN_BUILD_FUZZERS needs clang: configure with the preset fuzz")
  endif()
  # No file reaches the engine, whose kernels would be most of the time to compile.
  target_compile_options(openrnn_flags INTERFACE
    "$<IF:$<STREQUAL:$<TARGET_PROPERTY:NAME>,openrnn_cpu>,-fno-sanitize=all,-fsanitize=fuzzer-no-link>")
endif()
