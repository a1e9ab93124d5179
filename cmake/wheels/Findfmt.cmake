# fmt of a wheel: its headers alone, in OPENRNN_WHEEL_HEADERS.
set(fmt_FOUND TRUE)
if(NOT TARGET fmt::fmt)
  add_library(fmt::fmt INTERFACE IMPORTED)
  target_include_directories(fmt::fmt INTERFACE ${OPENRNN_WHEEL_HEADERS})
  target_compile_definitions(fmt::fmt INTERFACE FMT_HEADER_ONLY=1)
endif()
