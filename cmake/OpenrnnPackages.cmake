# Finds what the parts that are built need from the system, and names all that is missing at once, as
# Debian calls it. openrnn::core needs the C++ library alone and asks for nothing.

set(openrnn_missing)

# A package of CMake, or the folder of a header in `variable`; otherwise `debian` is missing.
macro(openrnn_find_package package debian)
  find_package(${package} ${ARGN} QUIET)
  if(NOT ${package}_FOUND)
    list(APPEND openrnn_missing ${debian})
  endif()
endmacro()
macro(openrnn_find_header variable header debian)
  find_path(${variable} ${header})
  if(NOT ${variable})
    list(APPEND openrnn_missing ${debian})
  endif()
endmacro()

if(OPENRNN_FULL)
  openrnn_find_package(fmt libfmt-dev)
  openrnn_find_package(nlohmann_json nlohmann-json3-dev)
  openrnn_find_header(PROTOZERO_INCLUDE_DIR protozero/pbf_reader.hpp libprotozero-dev)
endif()
if(OPENRNN_BUILD_TOOL)
  openrnn_find_package(CLI11 libcli11-dev)
endif()
if(OPENRNN_BUILD_TESTS)
  openrnn_find_package(GTest libgtest-dev)
  openrnn_find_package(leveldb libleveldb-dev)
endif()
if(OPENRNN_BUILD_PYTHON)
  openrnn_find_package(Python python3-dev 3.10 COMPONENTS Interpreter Development.Module)
endif()

set(OPENRNN_HAS_FULL ${OPENRNN_FULL})
if(openrnn_missing)
  list(JOIN openrnn_missing " " openrnn_missing)
  if(OPENRNN_FULL STREQUAL "AUTO" AND NOT OPENRNN_BUILD_TOOL AND NOT OPENRNN_BUILD_TESTS
      AND NOT OPENRNN_BUILD_PYTHON AND NOT OPENRNN_BUILD_EXAMPLES AND NOT OPENRNN_BUILD_FUZZERS)
    message(STATUS "openrnn::openrnn is left out, openrnn::core is there: ${openrnn_missing} missing")
    set(OPENRNN_HAS_FULL OFF)
  else()
    message(FATAL_ERROR "OpenRNN needs packages that are missing here. On Debian, as root:\n"
      "  apt-get install ${openrnn_missing}\n"
      "openrnn::core alone needs none of them: -D OPENRNN_FULL=OFF. The tests are left out by "
      "-D OPENRNN_BUILD_TESTS=OFF, the tool by -D OPENRNN_BUILD_TOOL=OFF.")
  endif()
endif()
