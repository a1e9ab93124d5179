# Installs components of the build into a fresh prefix, then configures, builds and runs a consumer from
# outside. -D build= part= (core or openrnn) consumer= readme= work= generator= compiler=

include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
file(REMOVE_RECURSE ${work})
set(extra)
if(part STREQUAL "core")
  run(${CMAKE_COMMAND} --install ${build} --prefix ${work}/prefix --component core)
  expect_none(${work}/prefix "^bin/|libopenrnn\\.|openrnn-full")
  set(extra ${hidden})
else()
  foreach(component core full tool)
    run(${CMAKE_COMMAND} --install ${build} --prefix ${work}/prefix --component ${component})
  endforeach()
  run(${work}/prefix/bin/openrnn --help)
  run(${CMAKE_COMMAND} --install ${build} --prefix ${work}/dev --component dev)
  expect_none(${work}/dev "^lib|^bin")
  if(NOT EXISTS ${work}/dev/include/openrnn/openrnn.h)
    message(FATAL_ERROR "component dev has no headers")
  endif()
  # The three are everything.
  run(${CMAKE_COMMAND} --install ${build} --prefix ${work}/all)
  file(GLOB_RECURSE all RELATIVE ${work}/all ${work}/all/*)
  file(GLOB_RECURSE three RELATIVE ${work}/prefix ${work}/prefix/*)
  if(NOT all STREQUAL three)
    message(FATAL_ERROR "components core, full and tool: ${three}\nwithout components: ${all}")
  endif()
endif()

run(${CMAKE_COMMAND} -S ${consumer} -B ${work}/build -G ${generator} -DPART=${part} ${extra}
  -DREADME=${readme}
  -DCMAKE_CXX_COMPILER=${compiler} -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=${work}/prefix)
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer)
message(STATUS "${output}")
if(NOT output MATCHES "consumer of ${part}: ok")
  message(FATAL_ERROR "the consumer ran but did not say that all is well")
endif()

if(part STREQUAL "core")
  run(${work}/build/readme)
  file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${work}/build/consumer
    RESOLVED_DEPENDENCIES_VAR libraries UNRESOLVED_DEPENDENCIES_VAR unknown)
  foreach(library IN LISTS libraries unknown)
    if(NOT library MATCHES "/(libc|libm|libstdc\\+\\+|libgcc_s|libpthread|ld-linux[^/]*|libopenrnn_core)\\.so")
      message(FATAL_ERROR "openrnn::core needs ${library}; only the C++ library and threads are allowed")
    endif()
  endforeach()
endif()
