# Tests of the house itself: layering, sizes, weak symbols, and the installed package from outside.
# They are labelled `house`: a sanitizer has nothing to find in them.

find_package(Python3 3.10 COMPONENTS Interpreter)
set(house ${PROJECT_SOURCE_DIR}/tests/house)

function(add_house_test name)
  add_test(NAME house_${name} COMMAND ${ARGN} COMMAND_EXPAND_LISTS)
  set_tests_properties(house_${name} PROPERTIES LABELS house)
endfunction()

if(Python3_FOUND)
  foreach(script layering rules)
    add_house_test(${script} ${Python3_EXECUTABLE} ${house}/${script}.py ${PROJECT_SOURCE_DIR})
    add_house_test(${script}_self_test ${Python3_EXECUTABLE} ${house}/${script}.py --self-test)
  endforeach()
  # Only an optimised build inlines what it should: elsewhere every inline function is a symbol.
  if(CMAKE_BUILD_TYPE STREQUAL "Release" AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64"
      AND TARGET openrnn_cpu)
    add_house_test(weak_symbols ${Python3_EXECUTABLE} ${house}/weak_symbols.py
      $<TARGET_OBJECTS:openrnn_cpu>)
    add_house_test(weak_symbols_self_test ${Python3_EXECUTABLE} ${house}/weak_symbols.py
      --self-test ${CMAKE_CXX_COMPILER})
  endif()
else()
  message(STATUS "no Python 3.10: the tests of the house are left out")
endif()

if(CMAKE_BUILD_TYPE STREQUAL "Release")
  foreach(part core openrnn)
    add_house_test(install_${part} ${CMAKE_COMMAND} -D build=${PROJECT_BINARY_DIR} -D part=${part}
      -D source=${PROJECT_SOURCE_DIR}/tests/install/consumer
      -D readme=${PROJECT_SOURCE_DIR}/README.md
      -D work=${PROJECT_BINARY_DIR}/install-test/${part} -D generator=${CMAKE_GENERATOR}
      -D compiler=${CMAKE_CXX_COMPILER} -P ${PROJECT_SOURCE_DIR}/tests/install/run.cmake)
  endforeach()
endif()
