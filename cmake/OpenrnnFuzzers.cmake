# fuzz/<name>_fuzz.cc becomes <name>_fuzz, a libFuzzer program under the address and
# undefined-behaviour sanitizers.

file(GLOB fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fuzz/*_fuzz.cc)
foreach(path IN LISTS fuzz_sources)
  get_filename_component(name ${path} NAME_WE)
  add_executable(${name} ${path})
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  target_link_libraries(${name} PRIVATE openrnn openrnn_core openrnn_flags)
endforeach()
