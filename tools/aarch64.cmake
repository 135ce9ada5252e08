# Builds for aarch64 on another machine: cmake -DCMAKE_TOOLCHAIN_FILE=tools/aarch64.cmake (docs/install.md).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
# Without it the tests of the CUDA kernels on the host are left out.
find_program(AARCH64_CXX aarch64-linux-gnu-g++)
set(CMAKE_CXX_COMPILER ${AARCH64_CXX})
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
# The NCCL that this machine may have is for this machine.
set(NCCL_LIBRARY "" CACHE FILEPATH "")
