# Included by the scripts of this folder.

# Runs a command; its output is in `output`. Anything but success ends the test.
function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "failed (${status}): ${ARGN}\n${output}")
  endif()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# Runs a command that must fail and say all of `words`.
function(run_refused words)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  if(status EQUAL 0)
    message(FATAL_ERROR "did not fail: ${ARGN}")
  endif()
  foreach(word IN LISTS words)
    if(NOT output MATCHES "${word}")
      message(FATAL_ERROR "the message has no '${word}':\n${output}")
    endif()
  endforeach()
  set(output "${output}" PARENT_SCOPE)
endfunction()

# Arguments of CMake that hide every package which the core must not ask for, installed or not;
# protozero has headers alone.
set(hidden -DCMAKE_IGNORE_PATH=/usr/include)
foreach(package fmt nlohmann_json leveldb Snappy GTest CLI11 Python Python3 nanobind)
  list(APPEND hidden -DCMAKE_DISABLE_FIND_PACKAGE_${package}=ON)
endforeach()
# Whether it builds is asked here, not how fast it is.
set(plain -G ${generator} -DCMAKE_CXX_COMPILER=${compiler} -DCMAKE_BUILD_TYPE=Debug
  -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DOPENRNN_CUDA=OFF)

# Ends the test if a file of the folder is there that matches `regex`.
function(expect_none folder regex)
  file(GLOB_RECURSE found RELATIVE ${folder} ${folder}/*)
  list(FILTER found INCLUDE REGEX "${regex}")
  if(found)
    message(FATAL_ERROR "${folder} has ${found}")
  endif()
endfunction()
