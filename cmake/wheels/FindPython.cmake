# FindPython for a wheel (scripts/wheels): the interpreter of this machine runs nanobind's tools, the headers
# in OPENRNN_PYTHON_HEADERS are those of the Python that the wheel is for.

file(STRINGS ${OPENRNN_PYTHON_HEADERS}/patchlevel.h Python_VERSION REGEX "define PY_VERSION ")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" Python_VERSION "${Python_VERSION}")
string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" _ "${Python_VERSION}")
set(Python_FOUND TRUE)
set(Python_INTERPRETER_ID Python)
set(Python_SOABI cpython-${CMAKE_MATCH_1}${CMAKE_MATCH_2}-${CMAKE_SYSTEM_PROCESSOR}-linux-gnu)
set(Python_SOSABI abi3)
# pyconfig.h is in a folder of the architecture beside that of the others.
get_filename_component(headers_above ${OPENRNN_PYTHON_HEADERS} DIRECTORY)
set(Python_INCLUDE_DIRS ${OPENRNN_PYTHON_HEADERS} ${headers_above})

if(NOT TARGET Python::Module)
  add_executable(Python::Interpreter IMPORTED)
  set_target_properties(Python::Interpreter PROPERTIES IMPORTED_LOCATION ${Python_EXECUTABLE})
  add_library(Python::Module INTERFACE IMPORTED)
  add_library(Python::SABIModule INTERFACE IMPORTED)
  target_include_directories(Python::Module INTERFACE ${Python_INCLUDE_DIRS})
  target_include_directories(Python::SABIModule INTERFACE ${Python_INCLUDE_DIRS})
endif()
