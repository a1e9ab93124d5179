# The Python package: the extension openrnn._core with the whole library inside, its stub, and the
# rules that install both with python/openrnn (component `python`).

execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
  OUTPUT_VARIABLE nanobind_dir OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
find_package(nanobind CONFIG REQUIRED PATHS ${nanobind_dir} NO_DEFAULT_PATH)

file(GLOB_RECURSE python_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/python/*.cc)
set(python_objects)
foreach(room IN LISTS core_rooms full_rooms)
  if(TARGET openrnn_${room})
    list(APPEND python_objects $<TARGET_OBJECTS:openrnn_${room}>)
  endif()
endforeach()

set(package_build_dir ${PROJECT_BINARY_DIR}/python/openrnn)
# STABLE_ABI takes effect in a build for it alone, from Python 3.12 on.
nanobind_add_module(openrnn_python STABLE_ABI NB_STATIC NB_DOMAIN openrnn NOMINSIZE NB_SUPPRESS_WARNINGS
  ${python_sources} ${python_objects})
set_target_properties(openrnn_python PROPERTIES
  OUTPUT_NAME _core LIBRARY_OUTPUT_DIRECTORY ${package_build_dir})
# Python.h of the stable ABI leaves out stdio.h, which nanobind's headers rely on.
if(TARGET nanobind-static-abi3)
  target_compile_options(nanobind-static-abi3 PUBLIC "SHELL:-include cstdio")
endif()
# As of a room: names of unnamed namespaces must differ, or be overloads.
if(OPENRNN_UNITY)
  set_target_properties(openrnn_python PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 6)
  target_compile_options(openrnn_python PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()
# What nanobind calls a function: messages.cc puts itself around it.
target_include_directories(openrnn_python SYSTEM PRIVATE ${nanobind_dir}/../src
  ${nanobind_dir}/../ext/robin_map/include)

target_link_libraries(openrnn_python PRIVATE openrnn_flags)
target_compile_options(openrnn_python PRIVATE $<$<BOOL:${OPENRNN_SMALL}>:-Os>)

# Nothing but the entry is visible: other extensions in the process have symbols of their own.
set(version_script ${CMAKE_CURRENT_LIST_DIR}/python_symbols.map)
target_link_options(openrnn_python PRIVATE
  "-Wl,--version-script=${version_script}" -Wl,--no-undefined-version)
set_target_properties(openrnn_python PROPERTIES LINK_DEPENDS ${version_script})

# The stub is made by importing the module, which a wheel for another machine cannot.
set(OPENRNN_PYTHON_STUB "" CACHE FILEPATH "A stub that is there, in place of one made from the module")
if(OPENRNN_PYTHON_STUB)
  configure_file(${OPENRNN_PYTHON_STUB} ${package_build_dir}/_core.pyi COPYONLY)
  add_custom_target(openrnn_python_stub DEPENDS openrnn_python)
else()
  nanobind_add_stub(openrnn_python_stub MODULE _core OUTPUT ${package_build_dir}/_core.pyi
    PYTHON_PATH ${package_build_dir} DEPENDS openrnn_python
    PATTERN_FILE ${CMAKE_CURRENT_LIST_DIR}/python_stub.pat)
endif()

install(TARGETS openrnn_python LIBRARY DESTINATION openrnn COMPONENT python EXCLUDE_FROM_ALL)
# Of this machine's MPI; wheels go to machines with another one, or none.
if(OPENRNN_HAS_MPI AND NOT DEFINED SKBUILD)
  add_dependencies(openrnn_python openrnn_mpi)
  install(TARGETS openrnn_mpi LIBRARY DESTINATION openrnn COMPONENT python EXCLUDE_FROM_ALL)
endif()
install(FILES ${package_build_dir}/_core.pyi DESTINATION openrnn COMPONENT python EXCLUDE_FROM_ALL)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/python/openrnn DESTINATION . COMPONENT python
  EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.py" PATTERN "py.typed" PATTERN "__pycache__" EXCLUDE)
# The cases of `python -m openrnn.conformance`, as the scripts that make them, which are no modules of the package.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/conformance/ DESTINATION openrnn/conformance/onnx-suite COMPONENT python
  EXCLUDE_FROM_ALL FILES_MATCHING PATTERN "*.py" PATTERN "digests.txt" PATTERN "__pycache__" EXCLUDE)

# What importlib.metadata and pip know of the package; scikit-build-core writes its own into its wheels.
if(NOT DEFINED SKBUILD)
  set(dist_info openrnn-${PROJECT_VERSION}.dist-info)
  set(metadata ${PROJECT_BINARY_DIR}/python/METADATA)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/pyproject.toml
    ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/scripts/wheel.py)
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/python)
  execute_process(COMMAND ${Python_EXECUTABLE} ${PROJECT_SOURCE_DIR}/scripts/wheel.py metadata ${metadata}
    COMMAND_ERROR_IS_FATAL ANY)
  file(WRITE ${PROJECT_BINARY_DIR}/python/INSTALLER "cmake\n")
  install(FILES ${metadata} ${PROJECT_BINARY_DIR}/python/INSTALLER DESTINATION ${dist_info}
    COMPONENT python EXCLUDE_FROM_ALL)
  install(FILES ${PROJECT_SOURCE_DIR}/LICENSE DESTINATION ${dist_info}/licenses
    COMPONENT python EXCLUDE_FROM_ALL)
  # By the list of files pip can replace or remove what is installed here.
  install(CODE "
    set(prefix \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\")
    set(record \"${dist_info}/RECORD,,\\n\")
    foreach(file IN LISTS CMAKE_INSTALL_MANIFEST_FILES)
      cmake_path(RELATIVE_PATH file BASE_DIRECTORY \"\${CMAKE_INSTALL_PREFIX}\")
      string(APPEND record \"\${file},,\\n\")
    endforeach()
    file(WRITE \"\${prefix}/${dist_info}/RECORD\" \"\${record}\")"
    COMPONENT python EXCLUDE_FROM_ALL)
endif()
