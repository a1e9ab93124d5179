# tests/<room>/<name>_test.cc becomes the executable <room>_<name>_test, from a room's subfolders
# too; tests/tools/<name>.cc becomes tool_<name>, a small program that the Python tests
# run.

if(OPENRNN_HAS_CUDA)
  include(OpenrnnStandIns)
endif()

add_library(openrnn_source_file OBJECT ${PROJECT_SOURCE_DIR}/tests/support/files/source_file.cc)
target_link_libraries(openrnn_source_file PRIVATE openrnn_flags)
target_include_directories(openrnn_source_file PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_compile_definitions(openrnn_source_file PRIVATE OPENRNN_SOURCE_DIR="${PROJECT_SOURCE_DIR}")

function(room_of_test result path)
  file(RELATIVE_PATH below ${PROJECT_SOURCE_DIR}/tests ${path})
  string(REGEX REPLACE "/.*" "" room ${below})
  set(${result} ${room} PARENT_SCOPE)
endfunction()

function(add_lib_test path)
  get_filename_component(name ${path} NAME_WE)
  room_of_test(room ${path})
  set(target ${room}_${name})
  add_executable(${target} ${path} $<TARGET_OBJECTS:openrnn_source_file>)
  target_link_libraries(${target} PRIVATE openrnn openrnn_core openrnn_flags fmt::fmt
    nlohmann_json::nlohmann_json GTest::gtest_main)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  # Tests are compiled once and run for seconds. A sanitizer's checks of the library are in the library.
  if(NOT OPENRNN_SANITIZE)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  elseif(NOT room STREQUAL "conformance")
    target_compile_options(${target} PRIVATE -O0)
  endif()
  if(OPENRNN_SANITIZE MATCHES "undefined")
    target_compile_options(${target} PRIVATE -fno-sanitize=undefined)
  endif()
  add_test(NAME ${target} COMMAND ${target})
  set_tests_properties(${target} PROPERTIES LABELS unit)
endfunction()

# Once more on a device whose memory the host cannot read.
add_library(openrnn_default_device OBJECT ${PROJECT_SOURCE_DIR}/tests/support/default_device.cc)
target_link_libraries(openrnn_default_device PRIVATE openrnn openrnn_core openrnn_flags)
target_include_directories(openrnn_default_device PRIVATE ${PROJECT_SOURCE_DIR}/tests)
function(run_on_device path)
  get_filename_component(name ${path} NAME_WE)
  room_of_test(room ${path})
  set(target ${room}_${name})
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:openrnn_default_device>)
  add_test(NAME ${target}_on_device COMMAND ${target})
  set_tests_properties(${target}_on_device PROPERTIES LABELS unit
    ENVIRONMENT OPENRNN_TEST_DEVICE=tagged)
endfunction()
set(rooms_on_devices graph ops layers cells saveables checkpoint train)

file(GLOB test_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*/*_test.cc
  ${PROJECT_SOURCE_DIR}/tests/*/*/*_test.cc)
list(FILTER test_sources EXCLUDE REGEX "/tests/cudnn/")
if(NOT OPENRNN_BUILD_TOOL)  # whose flags CLI11 reads
  list(FILTER test_sources EXCLUDE REGEX "/tests/cli/flags_test")
endif()
# Rooms in which no thread is started have no races to look for.
if(OPENRNN_SANITIZE STREQUAL "thread")
  list(FILTER test_sources INCLUDE REGEX
    "/tests/(conformance|cpu|device|formats|graph|ops|runtime|train)/")
endif()
foreach(path IN LISTS test_sources)
  add_lib_test(${path})
  room_of_test(room ${path})
  if(room IN_LIST rooms_on_devices)
    run_on_device(${path})
  endif()
endforeach()
# The whole conformance suite once more in the arithmetics of AMX, on any processor with AVX-512.
function(run_emulated)
  foreach(name IN LISTS ARGN)
    add_test(NAME conformance_${name}_test_emulated COMMAND conformance_${name}_test)
    set_tests_properties(conformance_${name}_test_emulated PROPERTIES LABELS unit
      ENVIRONMENT "OPENRNN_ISA=amx_emulated;GTEST_FILTER=*bf16*:Session*:Allocation*")
  endforeach()
endfunction()
run_emulated(allocation bits every_layer padding saved session threads)
# Parts of the tool, which is no library.
function(add_tool_sources target)
  if(TARGET ${target})
    list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/src/cli/)
    target_sources(${target} PRIVATE ${ARGN})
  endif()
endfunction()
add_tool_sources(cli_progress_test report/progress.cc)
add_tool_sources(cli_plots_test report/plot.cc report/text_plot.cc)
add_tool_sources(cli_models_test common.cc model/difference.cc model/input.cc model/whole.cc)
add_tool_sources(cli_reports_test report/inspected.cc report/layer_text.cc report/progress.cc
  report/series_report.cc)
add_tool_sources(cli_bench_test bench/bare_tiles.cc bench/loops.cc bench/measure.cc bench/meters.cc
  bench/passes.cc)
add_tool_sources(cli_cell_bound_test report/cell_bound.cc)
add_tool_sources(cli_interrupt_test train/interrupt.cc)
add_tool_sources(cli_load_files_test bench/load_files.cc)
add_tool_sources(cli_flags_test flags/flags.cc flags/model_files.cc flags/network_options.cc
  flags/options.cc flags/train_flags.cc)
if(TARGET cli_flags_test)
  target_link_libraries(cli_flags_test PRIVATE CLI11::CLI11)
endif()
# Our writer of tables is held against LevelDB's.
target_link_libraries(formats_table_test PRIVATE leveldb::leveldb)
if(OPENRNN_HAS_CUDA)
  foreach(name decisions elementwise matmul memory optimizers rows softmax sums)
    add_device_runs(device_${name}_test)
  endforeach()
  foreach(name padding saved every_layer part_of_batch)
    add_device_runs(conformance_${name}_test)
  endforeach()
  file(GLOB cudnn_test_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/cudnn/*_test.cc
    ${PROJECT_SOURCE_DIR}/tests/cudnn/*/*_test.cc)
  foreach(path IN LISTS cudnn_test_sources)
    add_cudnn_test(${path})
  endforeach()
  target_sources(cudnn_kernels_on_cpu_test PRIVATE ${stand_in}/kernels/kernels_on_cpu.cc
    ${stand_in}/kernels/block_of_fibers.cc)
  # Programs that say nothing of a device, with gpu:0 as the default one.
  foreach(target ops_gradients_test ops_rnn_test ops_second_gradients_test ops_second_rnn_test
      layers_cudnn_rnn_test layers_calls_test
      cells_loops_test checkpoint_objects_test train_optimizer_test train_minimize_test
      train_model_test train_fit_test train_late_steps_test train_micro_batches_test
      train_tree_sum_test)
    if(TARGET ${target})
      add_default_device_run(${target})
    endif()
  endforeach()
  foreach(name device_bits device_training_bits device_memory agreement engine layout loans dropout uploads
      replay recording training)
    add_deferred_run(cudnn_${name}_test)
    add_gpu_run(cudnn_${name}_test)
  endforeach()
  add_gpu_run(cudnn_cpu_agreement_test)
  add_gpu_run(cudnn_nccl_test)
  set_property(TEST cudnn_nccl_test cudnn_nccl_faults_test APPEND PROPERTY ENVIRONMENT
    STAND_IN_GPUS=4)
  set_property(TEST cudnn_gpus_test APPEND PROPERTY ENVIRONMENT STAND_IN_GPUS=2)
  # What it proves must not depend on the user's variable.
  set_property(TEST cudnn_agreement_test APPEND PROPERTY ENVIRONMENT NVIDIA_TF32_OVERRIDE=1)
  # Of libraries that are opened later, gcc 12's leak checker reads thread-local memory that is gone.
  set_property(TEST cudnn_engine_test cudnn_engine_test_deferred APPEND
    PROPERTY ENVIRONMENT LSAN_OPTIONS=use_tls=0)
endif()

file(GLOB tool_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/tools/*.cc)
if(NOT OPENRNN_HAS_CUDA)
  list(FILTER tool_sources EXCLUDE REGEX "/cudnn_")
endif()
foreach(path IN LISTS tool_sources)
  get_filename_component(name ${path} NAME_WE)
  add_executable(tool_${name} ${path})
  target_link_libraries(tool_${name} PRIVATE openrnn openrnn_core openrnn_flags fmt::fmt)
  target_include_directories(tool_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  if(name MATCHES "^cudnn_")
    target_include_directories(tool_${name} SYSTEM PRIVATE ${OPENRNN_CUDA_INCLUDE}
      ${OPENRNN_CUDNN_INCLUDE})
  endif()
endforeach()

# Workers of the benchmark against other libraries that need none of these, for the Python tests.
set(peers ${PROJECT_SOURCE_DIR}/bench/peers/cpp)
add_executable(peers_openrnn_core ${peers}/openrnn_core.cc ${peers}/server.cc ${peers}/npy.cc
  ${PROJECT_SOURCE_DIR}/src/cli/bench/meters.cc ${PROJECT_SOURCE_DIR}/src/cli/bench/loops.cc)
target_include_directories(peers_openrnn_core PRIVATE ${PROJECT_SOURCE_DIR}/src)
target_link_libraries(peers_openrnn_core PRIVATE openrnn_core openrnn_flags)
set_target_properties(peers_openrnn_core PROPERTIES OUTPUT_NAME openrnn_core
  RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/peers)
add_library(peers_ort_loop SHARED ${peers}/ort_loop.cc)
target_link_libraries(peers_ort_loop PRIVATE openrnn_flags)
set_target_properties(peers_ort_loop PROPERTIES OUTPUT_NAME ort_loop
  LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/peers)

# A plug-in with openrnn::core inside, linked so that dlclose unloads it: a symbol that is unique in
# the process, as g++ makes one of std::make_shared, would keep it for ever.
add_library(plugin_recurrent MODULE ${PROJECT_SOURCE_DIR}/tests/plugins/recurrent.cc)
target_link_libraries(plugin_recurrent PRIVATE openrnn_core openrnn_flags)
target_compile_options(plugin_recurrent PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)
target_link_options(plugin_recurrent PRIVATE -Wl,--exclude-libs,ALL)
add_dependencies(runtime_unload_test plugin_recurrent)
target_compile_definitions(runtime_unload_test PRIVATE
  OPENRNN_PLUGIN="$<TARGET_FILE:plugin_recurrent>")

# In place of libopenrnn_mpi.so, without MPI.
add_library(plugin_mpi MODULE ${PROJECT_SOURCE_DIR}/tests/plugins/mpi.cc)
target_link_libraries(plugin_mpi PRIVATE openrnn_flags)
target_include_directories(plugin_mpi PRIVATE ${PROJECT_SOURCE_DIR}/src)
add_dependencies(train_mpi_test plugin_mpi)
target_compile_definitions(train_mpi_test PRIVATE OPENRNN_MPI_STAND_IN="$<TARGET_FILE:plugin_mpi>")

file(GLOB capi_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/capi/*.cc)
if(capi_sources)
  add_library(openrnn_testapi SHARED ${capi_sources})
  target_link_libraries(openrnn_testapi PRIVATE openrnn openrnn_core openrnn_flags)
endif()
