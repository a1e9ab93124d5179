# OPENRNN_PORTABLE: programs that run on another machine, every library but the C one inside.

find_library(LEVELDB_ARCHIVE libleveldb.a REQUIRED)
find_library(SNAPPY_ARCHIVE libsnappy.a REQUIRED)

# An imported target is what its properties say: archives in place of the shared libraries.
foreach(suffix "" _NONE _RELEASE _DEBUG _RELWITHDEBINFO)
  set_target_properties(leveldb::leveldb PROPERTIES IMPORTED_LOCATION${suffix} ${LEVELDB_ARCHIVE})
endforeach()
set_target_properties(leveldb::leveldb PROPERTIES INTERFACE_LINK_LIBRARIES ${SNAPPY_ARCHIVE})
# fmt has no archive here; with its code inline nothing asks for the shared one.
target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY=1)
# What nothing calls is left out, and with it what newer C libraries alone have: libstdc++'s random
# numbers of the system.
add_link_options(-static-libstdc++ -static-libgcc -Wl,--as-needed -Wl,--gc-sections)
