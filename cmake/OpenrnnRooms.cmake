# A room is a folder under src/: its sources become the object library openrnn_<room>.

find_package(Threads REQUIRED)

# -ffp-contract=off: a compiler that fuses a multiply and an add on one machine and not on another
# would change bits. Fusion is written out where it is meant.
add_library(openrnn_flags INTERFACE)
target_compile_options(openrnn_flags INTERFACE -ffp-contract=off -Wall -Wextra -Wshadow -Wno-psabi
  -Wno-missing-field-initializers)  # designated initialisers leave fields out on purpose
target_include_directories(openrnn_flags INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>)
target_link_libraries(openrnn_flags INTERFACE Threads::Threads)
# g++ 12 finds faults in its own std::string and intrinsics headers.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(openrnn_flags INTERFACE -Wno-restrict -Wno-uninitialized)
endif()
if(OPENRNN_WERROR)
  target_compile_options(openrnn_flags INTERFACE -Werror)
endif()

# Sanitizers and counters hold for everything in the build, the tests included.
if(OPENRNN_SANITIZE)
  add_compile_options(-fsanitize=${OPENRNN_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer -D_GLIBCXX_ASSERTIONS)
  add_link_options(-fsanitize=${OPENRNN_SANITIZE})
endif()
if(OPENRNN_COVERAGE)
  add_compile_options(--coverage)
  add_link_options(--coverage)
endif()

function(openrnn_room room)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${room}/*.cc)
  if(NOT sources)
    return()
  endif()
  add_library(openrnn_${room} OBJECT ${sources})
  target_link_libraries(openrnn_${room} PRIVATE openrnn_flags ${ARGN})
  set_target_properties(openrnn_${room} PROPERTIES
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  # Half of the time to compile is reading the same headers. Names of a room's unnamed namespaces
  # must then differ. The engine's files are compiled one by one, as they were measured.
  if(OPENRNN_UNITY AND NOT room STREQUAL "cpu")
    set_target_properties(openrnn_${room} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
    # A class of one file, whose members are of its unnamed namespace, is taken for a header's.
    target_compile_options(openrnn_${room} PRIVATE
      $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()
