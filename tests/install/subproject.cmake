# OpenRNN inside another project, where none of its packages can be found: nothing is built but what
# that project links. -D how= (add_subdirectory or fetch_content) builds= (ON: not only planned)
# root= parent= work= generator= compiler=

include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
file(REMOVE_RECURSE ${work})
set(configure ${CMAKE_COMMAND} -S ${parent} -B ${work}/build ${plain} -DHOW=${how} -DROOT=${root})

# Ends the test unless all that a plain build makes is one object and the program of the project, and
# things that match `others`.
function(expect_outputs others)
  run(${CMAKE_COMMAND} -E chdir ${work}/build ninja -t commands all)
  string(REGEX MATCHALL " -o [^ ]+| qc [^ ]+" made "${output}")
  set(more ${made})
  list(FILTER more EXCLUDE REGEX "${others}")
  list(LENGTH more found)
  if(NOT found EQUAL 2)
    message(FATAL_ERROR "a build makes ${made}")
  endif()
endfunction()

set(of_core "openrnn_(base|spec|params|engine|device|reference|cpu|cudnn|cudnn_absent|runtime)\\.dir/")
run(${configure} ${hidden} -DLINK=)
if(generator STREQUAL "Ninja")
  expect_outputs(none)
endif()
run(${configure} ${hidden} -DLINK=openrnn::core)
if(generator STREQUAL "Ninja")
  expect_outputs("${of_core}|libopenrnn_core\\.a")
endif()
if(builds)
  run(${CMAKE_COMMAND} --build ${work}/build)
  run(${work}/build/app)
  if(NOT output MATCHES "consumer of core: ok")
    message(FATAL_ERROR "the program ran but did not say that all is well")
  endif()
endif()
run_refused("openrnn::openrnn;libfmt-dev" ${configure} ${hidden} -DLINK=openrnn::openrnn)
