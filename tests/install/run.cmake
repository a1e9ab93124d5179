# Installs the build into a fresh prefix, then configures, builds and runs a consumer from outside.
# -D build= part= (core or openrnn) source= readme= work= generator= compiler=

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed (${status}): ${ARGN}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

file(REMOVE_RECURSE ${work})
run(${CMAKE_COMMAND} --install ${build} --prefix ${work}/prefix)
set(extra)
if(part STREQUAL "core")
  # Proves that the core asks for neither package, even where they are installed.
  set(extra -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON -DCMAKE_DISABLE_FIND_PACKAGE_leveldb=ON)
endif()
run(${CMAKE_COMMAND} -S ${source} -B ${work}/build -G ${generator} -DPART=${part} ${extra}
  -DREADME=${readme}
  -DCMAKE_CXX_COMPILER=${compiler} -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH=${work}/prefix)
run(${CMAKE_COMMAND} --build ${work}/build)
run(${work}/build/consumer)
message(STATUS "${output}")
if(NOT output MATCHES "consumer of ${part}: ok")
  message(FATAL_ERROR "the consumer ran but did not say that all is well")
endif()

if(part STREQUAL "core")
  file(GET_RUNTIME_DEPENDENCIES EXECUTABLES ${work}/build/consumer
    RESOLVED_DEPENDENCIES_VAR libraries UNRESOLVED_DEPENDENCIES_VAR unknown)
  foreach(library IN LISTS libraries unknown)
    if(NOT library MATCHES "/(libc|libm|libstdc\\+\\+|libgcc_s|libpthread|ld-linux[^/]*|libopenrnn_core)\\.so")
      message(FATAL_ERROR "openrnn::core needs ${library}; only the C++ library and threads are allowed")
    endif()
  endforeach()
endif()
