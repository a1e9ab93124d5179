# openrnn::core alone where no other package can be found: configured, built, installed, consumed.
# -D root= consumer= readme= work= generator= compiler=

include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
file(REMOVE_RECURSE ${work})
run(${CMAKE_COMMAND} -S ${root} -B ${work}/build ${plain} ${hidden} -DOPENRNN_FULL=OFF)
run(${CMAKE_COMMAND} --build ${work}/build)
if(generator STREQUAL "Ninja")
  # What the compiler has read, also from the folders that it always looks into.
  run(${CMAKE_COMMAND} -E chdir ${work}/build ninja -t deps)
  if(NOT output MATCHES "src/cpu/")
    message(FATAL_ERROR "ninja knows no file that was read:\n${output}")
  endif()
  string(REGEX MATCH "[^\n]*/(fmt|nlohmann|leveldb|protozero|gtest|CLI|snappy[^\n]*)/?[^\n]*" read
    "${output}")
  if(read)
    message(FATAL_ERROR "the core includes ${read}")
  endif()
endif()

run(${CMAKE_COMMAND} --install ${work}/build --prefix ${work}/prefix)
expect_none(${work}/prefix "^bin/|libopenrnn\\.|openrnn-full")
set(consume ${CMAKE_COMMAND} -S ${consumer} -B ${work}/consumer ${plain} ${hidden}
  -DREADME=${readme} -DCMAKE_PREFIX_PATH=${work}/prefix)
run(${consume} -DPART=core)
run(${CMAKE_COMMAND} --build ${work}/consumer)
run(${work}/consumer/consumer)
run_refused("only openrnn::core is installed" ${consume} -DPART=openrnn)
