# Tests of the house itself: layering, sizes, weak symbols, and the package from outside.
# They are labelled `house`: a sanitizer has nothing to find in them.

find_package(Python3 3.10 COMPONENTS Interpreter)
set(house ${PROJECT_SOURCE_DIR}/tests/house)

function(add_house_test name)
  add_test(NAME house_${name} COMMAND ${ARGN} COMMAND_EXPAND_LISTS)
  set_tests_properties(house_${name} PROPERTIES LABELS house)
endfunction()

if(Python3_FOUND)
  foreach(script layering rules words)
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

# The installed package from outside, the core alone, and the tree inside another project. Each in an
# empty folder.
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  set(install ${PROJECT_SOURCE_DIR}/tests/install)
  function(add_install_test name script)
    add_house_test(${name} ${CMAKE_COMMAND} -D root=${PROJECT_SOURCE_DIR} -D build=${PROJECT_BINARY_DIR}
      -D consumer=${install}/consumer -D parent=${install}/parent
      -D readme=${PROJECT_SOURCE_DIR}/README.md -D work=${PROJECT_BINARY_DIR}/install-test/${name}
      -D generator=${CMAKE_GENERATOR} -D compiler=${CMAKE_CXX_COMPILER} ${ARGN}
      -P ${install}/${script}.cmake)
  endfunction()
  add_install_test(install_core installed -D part=core)
  add_install_test(install_openrnn installed -D part=openrnn)
  add_install_test(core_alone core_alone)
  add_install_test(missing_packages missing)
  # One is built; of the other it is enough to know that the plan is the same.
  add_install_test(add_subdirectory subproject -D how=add_subdirectory -D builds=ON)
  add_install_test(fetch_content subproject -D how=fetch_content -D builds=OFF)
endif()
