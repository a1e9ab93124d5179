# docs_snippets: the C++ snippets of README.md and docs/*.md as one program, run in a folder of its own.

find_package(Python3 3.10 COMPONENTS Interpreter)
if(NOT Python3_FOUND)
  message(STATUS "no Python 3.10: the snippets of the pages are not tested")
  return()
endif()

set(snippets_script ${PROJECT_SOURCE_DIR}/tests/python/docs/snippets.py)
set(snippets_dir ${PROJECT_BINARY_DIR}/snippets)
file(GLOB snippet_pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/*.md ${PROJECT_SOURCE_DIR}/docs/*.md)
# Read when configuring, since the pages decide which sources there are; a page that has changed
# configures anew.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${snippet_pages} ${snippets_script})
execute_process(COMMAND ${Python3_EXECUTABLE} ${snippets_script} ${PROJECT_SOURCE_DIR} ${snippets_dir}
  COMMAND_ERROR_IS_FATAL ANY)
file(GLOB snippet_sources ${snippets_dir}/*.cc)

add_executable(docs_snippets ${snippet_sources})
target_link_libraries(docs_snippets PRIVATE openrnn openrnn_core openrnn_flags)
# They show variables that they do not use, and their assertions hold in a release build too.
target_compile_options(docs_snippets PRIVATE -Wno-unused -UNDEBUG -O0)
add_test(NAME docs_snippets COMMAND docs_snippets ${snippets_dir}/folder)
set_tests_properties(docs_snippets PROPERTIES LABELS docs)
