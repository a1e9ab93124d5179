# libopenrnn_mpi.so: the only part that is linked with MPI. The library opens it when it is asked for
# processes of mpirun, so that one build serves with and without.

set(OPENRNN_MPI AUTO CACHE STRING "The MPI module: AUTO (if MPI is found), ON, OFF")
set_property(CACHE OPENRNN_MPI PROPERTY STRINGS AUTO ON OFF)

set(OPENRNN_HAS_MPI OFF)
# Wheels and programs for other machines meet another MPI there, or none.
if(OPENRNN_MPI STREQUAL "AUTO" AND (CMAKE_CROSSCOMPILING OR OPENRNN_PORTABLE OR DEFINED SKBUILD))
  message(STATUS "the MPI module is left out: it would be of this machine's MPI")
elseif(OPENRNN_MPI)
  # The C functions alone.
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
  if(MPI_CXX_FOUND)
    set(OPENRNN_HAS_MPI ON)
  elseif(OPENRNN_MPI STREQUAL "AUTO")
    message(STATUS "the MPI module is left out: MPI was not found (Debian: libopenmpi-dev openmpi-bin)")
  else()
    message(FATAL_ERROR "OPENRNN_MPI is ${OPENRNN_MPI}: MPI was not found; on Debian\n"
      "  apt-get install libopenmpi-dev openmpi-bin")
  endif()
endif()

if(OPENRNN_HAS_MPI)
  add_library(openrnn_mpi MODULE ${PROJECT_SOURCE_DIR}/src/mpi/mpi.cc)
  target_link_libraries(openrnn_mpi PRIVATE MPI::MPI_CXX openrnn_flags)
  target_include_directories(openrnn_mpi PRIVATE ${PROJECT_SOURCE_DIR}/src)
  set_target_properties(openrnn_mpi PROPERTIES CXX_VISIBILITY_PRESET hidden)
endif()
