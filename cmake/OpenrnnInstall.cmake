# cmake --install: libraries, headers, the tool, and the package that find_package(openrnn) finds.
# Components: `core` is all that a user of openrnn::core needs, `full` what openrnn::openrnn adds to it,
# `tool` the program, `dev` the headers alone.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/openrnn)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/openrnn-config.cmake.in
  ${PROJECT_BINARY_DIR}/openrnn-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/openrnn-config-version.cmake
  COMPATIBILITY SameMinorVersion)

# Two export sets: a consumer of core alone must not be asked for what the rest needs.
install(TARGETS openrnn_core EXPORT openrnn-core COMPONENT core)
install(EXPORT openrnn-core NAMESPACE openrnn:: DESTINATION ${package_dir} COMPONENT core)
install(FILES ${PROJECT_BINARY_DIR}/openrnn-config.cmake
  ${PROJECT_BINARY_DIR}/openrnn-config-version.cmake DESTINATION ${package_dir} COMPONENT core)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/openrnn TYPE INCLUDE COMPONENT core)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/openrnn TYPE INCLUDE COMPONENT dev EXCLUDE_FROM_ALL)

# What pkg-config reads. Paths are relative to the file, so an installed tree may be moved.
function(install_pkg_config name component library description)
  cmake_parse_arguments(pc "" "requires;private" "" ${ARGN})
  set(pc_name ${name})
  set(pc_library ${library})
  set(pc_description ${description})
  file(RELATIVE_PATH pc_up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  string(REGEX REPLACE "/$" "" pc_up "${pc_up}")
  configure_file(${CMAKE_CURRENT_FUNCTION_LIST_DIR}/openrnn.pc.in ${PROJECT_BINARY_DIR}/${name}.pc @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT ${component})
endfunction()
install_pkg_config(openrnn-core core openrnn_core "Recurrent networks: engines and inference"
  private "-pthread -ldl")

if(OPENRNN_HAS_FULL)
  install_pkg_config(openrnn full openrnn "Recurrent networks: layers, training, checkpoints"
    requires openrnn-core private -lfmt)
  install(TARGETS openrnn EXPORT openrnn-full COMPONENT full)
  install(EXPORT openrnn-full NAMESPACE openrnn:: DESTINATION ${package_dir} COMPONENT full)
endif()
if(OPENRNN_HAS_MPI)
  install(TARGETS openrnn_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT full)
endif()
if(TARGET openrnn_tool)
  install(TARGETS openrnn_tool COMPONENT tool)
endif()
