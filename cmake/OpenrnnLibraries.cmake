# openrnn::core is what embedders link (the C++ library alone); openrnn::openrnn is everything.

if(OPENRNN_PORTABLE AND OPENRNN_HAS_FULL)
  include(OpenrnnPortable)
endif()

include(OpenrnnCudnn)
set(core_rooms base spec params device engine reference cpu ${cudnn_room} runtime)
set(full_rooms)
if(OPENRNN_HAS_FULL)
  set(full_rooms formats graph ops saveables cells mapping onnx layers checkpoint train)
endif()

foreach(room IN LISTS core_rooms)
  openrnn_room(${room})
endforeach()
foreach(room IN LISTS full_rooms)
  openrnn_room(${room} fmt::fmt nlohmann_json::nlohmann_json)
  if(TARGET openrnn_${room})
    target_include_directories(openrnn_${room} SYSTEM PRIVATE ${PROTOZERO_INCLUDE_DIR})
  endif()
endforeach()

if(OPENRNN_HAS_CUDA)
  target_include_directories(openrnn_cudnn SYSTEM PRIVATE ${OPENRNN_CUDA_INCLUDE}
    ${OPENRNN_CUDNN_INCLUDE})
  target_link_libraries(openrnn_cudnn PRIVATE ${CMAKE_DL_LIBS})
  openrnn_embed_kernels(openrnn_cudnn)
endif()

# The instruction-set files alone are compiled for their instruction set. They include no header
# that emits shared inline code, so no such instruction can leak into the rest (a test looks).
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  set_source_files_properties(
    ${PROJECT_SOURCE_DIR}/src/cpu/kernels/avx2.cc
    PROPERTIES COMPILE_OPTIONS "-mavx2;-mfma;-mf16c")
  set(avx512_flags -mavx512f -mavx512vl -mavx512dq -mavx512bw -mfma -mf16c -mprfchw
    -mprefer-vector-width=512)
  set_source_files_properties(
    ${PROJECT_SOURCE_DIR}/src/cpu/kernels/avx512.cc
    ${PROJECT_SOURCE_DIR}/src/cpu/kernels/amx_emulated.cc
    PROPERTIES COMPILE_OPTIONS "${avx512_flags}")
  set_source_files_properties(
    ${PROJECT_SOURCE_DIR}/src/cpu/kernels/avx512_dot.cc
    PROPERTIES COMPILE_OPTIONS "${avx512_flags};-mavx512bf16;-mavx512vnni")
  set_source_files_properties(
    ${PROJECT_SOURCE_DIR}/src/cpu/kernels/amx.cc
    PROPERTIES COMPILE_OPTIONS "${avx512_flags};-mavx512bf16;-mamx-tile;-mamx-bf16")
endif()

# Undefined behaviour is looked for in the scalar kernels, the same templates: in the others it would
# double the time to compile.
if(OPENRNN_SANITIZE)
  foreach(set avx2 avx512 avx512_dot amx amx_emulated)
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/cpu/kernels/${set}.cc APPEND PROPERTY
      COMPILE_OPTIONS "-fno-sanitize=undefined")
  endforeach()
endif()

# For wheels: what calls others to compute, and an emulation that is slow by its nature.
option(OPENRNN_SMALL "Compile for size what no computation waits for" OFF)
if(OPENRNN_SMALL)
  foreach(room ${cudnn_room} formats saveables mapping onnx layers checkpoint train)
    if(TARGET openrnn_${room})
      target_compile_options(openrnn_${room} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Os>)
    endif()
  endforeach()
  # These see every byte of a file.
  foreach(name zip/inflate zip/crc32 table/snappy tensors/elements)
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/formats/${name}.cc APPEND PROPERTY
      COMPILE_OPTIONS "-O3")
  endforeach()
  set_property(SOURCE ${PROJECT_SOURCE_DIR}/src/cpu/kernels/amx_emulated.cc APPEND PROPERTY
    COMPILE_OPTIONS "-Os")
endif()

# A square root that may set errno is a call in the middle of a loop; its bits are the same without.
set_source_files_properties(${PROJECT_SOURCE_DIR}/src/cpu/device/optimizers.cc
  PROPERTIES COMPILE_OPTIONS "-fno-math-errno")

function(openrnn_library name)
  set(objects)
  foreach(room IN LISTS ARGN)
    if(TARGET openrnn_${room})
      list(APPEND objects $<TARGET_OBJECTS:openrnn_${room}>)
    endif()
  endforeach()
  add_library(${name} ${objects})
  target_compile_features(${name} PUBLIC cxx_std_20)
  target_include_directories(${name} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:include>)
  target_link_libraries(${name} PUBLIC Threads::Threads ${CMAKE_DL_LIBS})
  set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
endfunction()

openrnn_library(openrnn_core ${core_rooms})
set_target_properties(openrnn_core PROPERTIES EXPORT_NAME core)
add_library(openrnn::core ALIAS openrnn_core)

if(OPENRNN_HAS_FULL)
  openrnn_library(openrnn ${full_rooms})
  target_link_libraries(openrnn PUBLIC openrnn_core
    PRIVATE fmt::fmt $<BUILD_INTERFACE:nlohmann_json::nlohmann_json>)
  add_library(openrnn::openrnn ALIAS openrnn)
endif()
