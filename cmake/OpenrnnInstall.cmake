# cmake --install: headers, libraries, the tool, and the package that find_package(openrnn) finds.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/openrnn)

# Two export sets: a consumer of core alone must not be asked for what the rest needs.
install(TARGETS openrnn_core EXPORT openrnn-core)
install(TARGETS openrnn EXPORT openrnn-full)
if(TARGET openrnn_tool)
  install(TARGETS openrnn_tool)
endif()
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/openrnn TYPE INCLUDE)
foreach(part core full)
  install(EXPORT openrnn-${part} NAMESPACE openrnn:: DESTINATION ${package_dir})
endforeach()

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/openrnn-config.cmake.in
  ${PROJECT_BINARY_DIR}/openrnn-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/openrnn-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/openrnn-config.cmake
  ${PROJECT_BINARY_DIR}/openrnn-config-version.cmake DESTINATION ${package_dir})
