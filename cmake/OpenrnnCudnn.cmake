# Chooses the room behind engine/cudnn_entry.h: `cudnn` where the CUDA 13 compiler and cuDNN 9's
# headers are found, else `cudnn_absent`. No CUDA library is linked: they are opened when used.

set(OPENRNN_CUDA AUTO CACHE STRING "The GPU engine: AUTO (if nvcc and cudnn.h are found), ON, OFF")
set_property(CACHE OPENRNN_CUDA PROPERTY STRINGS AUTO ON OFF)

# Sets `problem` to what is missing; empty when nothing is.
function(openrnn_find_cuda problem)
  find_program(OPENRNN_NVCC nvcc HINTS ENV CUDA_HOME ENV CUDA_PATH PATHS /usr/local/cuda
    PATH_SUFFIXES bin)
  if(NOT OPENRNN_NVCC)
    set(${problem} "nvcc was not found; install the CUDA 13 toolkit or set CUDA_HOME" PARENT_SCOPE)
    return()
  endif()
  get_filename_component(nvcc ${OPENRNN_NVCC} REALPATH)
  get_filename_component(home ${nvcc}/../.. ABSOLUTE)
  find_path(OPENRNN_CUDA_INCLUDE cuda.h HINTS ${home} ENV CUDA_HOME ENV CUDA_PATH
    PATHS /usr/local/cuda PATH_SUFFIXES include)
  find_path(OPENRNN_CUDNN_INCLUDE cudnn.h HINTS ENV CUDNN_PATH ${home} PATHS /usr/local/cuda
    PATH_SUFFIXES include)
  if(NOT OPENRNN_CUDA_INCLUDE OR NOT EXISTS ${OPENRNN_CUDA_INCLUDE}/cublas_v2.h)
    set(${problem} "the headers cuda.h and cublas_v2.h were not found" PARENT_SCOPE)
  elseif(NOT OPENRNN_CUDNN_INCLUDE)
    set(${problem} "cudnn.h was not found; install cuDNN 9 or set CUDNN_PATH" PARENT_SCOPE)
  else()
    file(STRINGS ${OPENRNN_CUDA_INCLUDE}/cuda.h cuda REGEX "^#define CUDA_VERSION 13")
    file(STRINGS ${OPENRNN_CUDNN_INCLUDE}/cudnn_version.h cudnn REGEX "^#define CUDNN_MAJOR 9")
    if(cuda AND cudnn)
      set(${problem} "" PARENT_SCOPE)
    else()
      set(${problem} "the headers are not of CUDA 13 and cuDNN 9" PARENT_SCOPE)
    endif()
  endif()
endfunction()

set(OPENRNN_HAS_CUDA OFF)
if(OPENRNN_CUDA)
  openrnn_find_cuda(cuda_problem)
  if(cuda_problem STREQUAL "")
    set(OPENRNN_HAS_CUDA ON)
  elseif(OPENRNN_CUDA STREQUAL "AUTO")
    message(STATUS "the GPU engine is left out: ${cuda_problem}")
  else()
    message(FATAL_ERROR "OPENRNN_CUDA is ${OPENRNN_CUDA}: ${cuda_problem}")
  endif()
endif()
if(OPENRNN_HAS_CUDA)
  set(cudnn_room cudnn)
else()
  set(cudnn_room cudnn_absent)
endif()

# Machine code for each architecture of the table, and PTX that later ones compile for themselves.
set(OPENRNN_CUDA_ARCHITECTURES 75 80 86 89 90 CACHE STRING "Architectures of the GPU kernels")

# Compiles src/cudnn/kernels/*.cu and adds the images to the room, as bytes of one object.
function(openrnn_embed_kernels target)
  set(kernels ${PROJECT_SOURCE_DIR}/src/cudnn/kernels)
  set(work ${PROJECT_BINARY_DIR}/kernels)
  file(GLOB sources CONFIGURE_DEPENDS ${kernels}/*.cu)
  file(GLOB headers CONFIGURE_DEPENDS ${kernels}/*.h ${PROJECT_SOURCE_DIR}/src/base/counter.h
    ${PROJECT_SOURCE_DIR}/src/base/log_series.h ${PROJECT_SOURCE_DIR}/src/base/power.h)
  set(codes)
  foreach(architecture IN LISTS OPENRNN_CUDA_ARCHITECTURES)
    list(APPEND codes -gencode arch=compute_${architecture},code=sm_${architecture})
  endforeach()
  list(GET OPENRNN_CUDA_ARCHITECTURES -1 newest)
  list(APPEND codes -gencode arch=compute_${newest},code=compute_${newest})
  set(images)
  set(bytes "")
  set(names "")
  set(list "")
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    set(image ${work}/${name}.fatbin)
    # No fused multiply-add but where it is written: the arithmetic is that of the other engines.
    add_custom_command(OUTPUT ${image}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${work}
      COMMAND ${OPENRNN_NVCC} -fatbin ${codes} -std=c++17 --expt-relaxed-constexpr -O3 --fmad=false --ftz=true
        -Xfatbin -compress-all -Werror all-warnings -I ${PROJECT_SOURCE_DIR}/src --threads 0 -o ${image} ${source}
      DEPENDS ${source} ${headers} VERBATIM COMMENT "Compiling the GPU kernels of ${name}.cu")
    list(APPEND images ${image})
    set(symbol openrnn_kernels_of_${name})
    string(APPEND bytes "    \".balign 64\\n.global ${symbol}\\n.hidden ${symbol}\\n\"\n"
      "    \"${symbol}:\\n.incbin \\\"${image}\\\"\\n\"\n")
    string(APPEND names "extern const unsigned char ${symbol}[];\n")
    string(APPEND list "${symbol}, ")
  endforeach()
  file(CONFIGURE OUTPUT ${work}/fatbins.cc @ONLY CONTENT
"// Made by the build: the images of the kernels, as they are.
#include \"cudnn/gpu/fatbins.h\"

asm(\".section .rodata\\n\"
@bytes@    \".previous\\n\");

extern \"C\" {
@names@}

namespace openrnn::cudnn {

std::span<const void* const> fatbins() {
  static constexpr const void* kImages[] = {@list@};
  return kImages;
}

}  // namespace openrnn::cudnn
")
  target_sources(${target} PRIVATE ${work}/fatbins.cc)
  set_source_files_properties(${work}/fatbins.cc PROPERTIES OBJECT_DEPENDS "${images}")
endfunction()
