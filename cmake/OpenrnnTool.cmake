# build/<preset>/openrnn, the command-line tool.

file(GLOB_RECURSE cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/cli/*.cc)
if(cli_sources)
  add_executable(openrnn_tool ${cli_sources})
  set_target_properties(openrnn_tool PROPERTIES OUTPUT_NAME openrnn)
  target_link_libraries(openrnn_tool PRIVATE openrnn openrnn_flags CLI11::CLI11 fmt::fmt
    nlohmann_json::nlohmann_json)
  if(OPENRNN_HAS_MPI)
    add_dependencies(openrnn_tool openrnn_mpi)  # which it opens
  endif()
  if(OPENRNN_UNITY)
    set_target_properties(openrnn_tool PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  endif()
endif()
