# A package that is missing is named as Debian, Fedora and Homebrew call it, all of them at once.
# -D root= work= generator= compiler=

include(${CMAKE_CURRENT_LIST_DIR}/common.cmake)
file(REMOVE_RECURSE ${work})
set(configure ${CMAKE_COMMAND} -S ${root} ${plain})
set(of_python -DOPENRNN_BUILD_PYTHON=ON -DOPENRNN_BUILD_TESTS=OFF -DOPENRNN_BUILD_TOOL=OFF)

set(of_library libfmt-dev nlohmann-json3-dev libprotozero-dev)
run_refused("${of_library};libcli11-dev;libgtest-dev;libleveldb-dev;OPENRNN_FULL=OFF"
  ${configure} -B ${work}/all ${hidden})
run_refused("${of_library};python3-dev" ${configure} -B ${work}/python ${hidden} ${of_python})
run_refused("apt-get install libfmt-dev\n;dnf install fmt-devel\n;brew install fmt\n"
  ${configure} -B ${work}/one -DCMAKE_DISABLE_FIND_PACKAGE_fmt=ON ${of_python})

# What is named is what make setup installs.
set(lists)
foreach(group build python)
  file(READ ${root}/scripts/packages-${group}.txt list)
  string(APPEND lists "${list}")
endforeach()
foreach(name ${of_library} libcli11-dev libgtest-dev libleveldb-dev python3-dev)
  if(NOT lists MATCHES "(^|\n)${name}[ \n]")
    message(FATAL_ERROR "${name} is not in scripts/packages-*.txt")
  endif()
endforeach()
