# wasm.cmake - toolchain for WebAssembly modules: wasm32 with the WASI C library, 128-bit vectors. scripts/build-web uses it.
#
# MICA_WASM_TOOLS is a folder with cc, ar and ranlib for it.
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR wasm32)
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES MICA_WASM_TOOLS)
set(CMAKE_C_COMPILER ${MICA_WASM_TOOLS}/cc)
set(CMAKE_AR ${MICA_WASM_TOOLS}/ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${MICA_WASM_TOOLS}/ranlib CACHE FILEPATH "")
set(CMAKE_POSITION_INDEPENDENT_CODE OFF) # a module is never moved; addresses would go through a table
