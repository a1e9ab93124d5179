# Toolchain of Debian's cross compiler (g++-aarch64-linux-gnu), for openrnn::core.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
