# musl.cmake - toolchain for programs without any library beside them: everything static, musl as C library. scripts/build-musl uses it.
#
# MICA_MUSL_ARCH is aarch64 or x86_64; MICA_MUSL_TOOLS is a folder with cc, ar and ranlib for it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${MICA_MUSL_ARCH})
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MICA_MUSL_ARCH MICA_MUSL_TOOLS)
set(CMAKE_C_COMPILER ${MICA_MUSL_TOOLS}/cc)
set(CMAKE_AR ${MICA_MUSL_TOOLS}/ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${MICA_MUSL_TOOLS}/ranlib CACHE FILEPATH "")
set(CMAKE_EXE_LINKER_FLAGS_INIT "-static")
set(CMAKE_POSITION_INDEPENDENT_CODE ON) # the libraries go into libmica.so, too
