# Finds what the parts that are built need from the system, and names all that is missing at once, as
# Debian, Fedora and Homebrew call it. openrnn::core needs the C++ library alone and asks for nothing.

foreach(system debian fedora homebrew)
  set(openrnn_missing_${system})
endforeach()

# A package of CMake, or the folder of a header in `variable`; `names` are those of the three systems.
function(openrnn_note_missing names)
  foreach(system debian fedora homebrew)
    list(POP_FRONT names name)
    set(openrnn_missing_${system} ${openrnn_missing_${system}} ${name} PARENT_SCOPE)
  endforeach()
endfunction()
macro(openrnn_find_package package names)
  find_package(${package} ${ARGN} QUIET)
  if(NOT ${package}_FOUND)
    openrnn_note_missing("${names}")
  endif()
endmacro()
macro(openrnn_find_header variable header names)
  find_path(${variable} ${header})
  if(NOT ${variable})
    openrnn_note_missing("${names}")
  endif()
endmacro()

if(OPENRNN_FULL)
  openrnn_find_package(fmt "libfmt-dev;fmt-devel;fmt")
  openrnn_find_package(nlohmann_json "nlohmann-json3-dev;json-devel;nlohmann-json")
  openrnn_find_header(PROTOZERO_INCLUDE_DIR protozero/pbf_reader.hpp
    "libprotozero-dev;protozero-devel;protozero")
endif()
if(OPENRNN_BUILD_TOOL)
  openrnn_find_package(CLI11 "libcli11-dev;cli11-devel;cli11")
endif()
if(OPENRNN_BUILD_TESTS)
  openrnn_find_package(GTest "libgtest-dev;gtest-devel;googletest")
  openrnn_find_package(leveldb "libleveldb-dev;leveldb-devel;leveldb")
endif()
if(OPENRNN_BUILD_PYTHON)
  openrnn_find_package(Python "python3-dev;python3-devel;python" 3.10 COMPONENTS Interpreter Development.Module)
endif()

set(OPENRNN_HAS_FULL ${OPENRNN_FULL})
if(openrnn_missing_debian)
  foreach(system debian fedora homebrew)
    list(JOIN openrnn_missing_${system} " " openrnn_missing_${system})
  endforeach()
  if(OPENRNN_FULL STREQUAL "AUTO" AND NOT OPENRNN_BUILD_TOOL AND NOT OPENRNN_BUILD_TESTS
      AND NOT OPENRNN_BUILD_PYTHON AND NOT OPENRNN_BUILD_EXAMPLES AND NOT OPENRNN_BUILD_FUZZERS)
    message(STATUS "openrnn::openrnn is left out, openrnn::core is there: ${openrnn_missing_debian} missing")
    set(OPENRNN_HAS_FULL OFF)
  else()
    message(FATAL_ERROR "OpenRNN needs packages that are missing here. As root on Debian, on Fedora, or with "
      "Homebrew:\n"
      "  apt-get install ${openrnn_missing_debian}\n"
      "  dnf install ${openrnn_missing_fedora}\n"
      "  brew install ${openrnn_missing_homebrew}\n"
      "openrnn::core alone needs none of them: -D OPENRNN_FULL=OFF. The tests are left out by "
      "-D OPENRNN_BUILD_TESTS=OFF, the tool by -D OPENRNN_BUILD_TOOL=OFF.")
  endif()
endif()
