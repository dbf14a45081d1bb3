# arm64.cmake - toolchain for 64-bit ARM on a Debian machine of another kind; the tests run under qemu-user.
#
#     dpkg --add-architecture arm64 && apt-get update
#     apt-get install gcc-aarch64-linux-gnu qemu-user-static \
#         libjansson-dev:arm64 libpcre2-dev:arm64 libutf8proc-dev:arm64 libcmocka-dev:arm64 libedit-dev:arm64
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

# The host's own .pc files would be found as well, and name the host's libraries.
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)

# "max" has dotprod and i8mm; MICA_QEMU_CPU=cortex-a53 is a core without.
set(MICA_QEMU_CPU max CACHE STRING "CPU model that the tests run on")
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static;-cpu;${MICA_QEMU_CPU})
