# sanitize.cmake - applies MICA_SANITIZE and MICA_FUZZ to every target of the build.
#
# The sanitizer presets turn MICA_WERROR off: in instrumented code gcc warns of sizes and values that cannot occur.
if(MICA_FUZZ)
  if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "MICA_FUZZ needs clang (cmake --preset fuzz); with gcc the corpora are replayed by the ordinary tests")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(MICA_SANITIZE)
  # A finding must fail the test that met it.
  add_compile_options(-fsanitize=${MICA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${MICA_SANITIZE})
endif()
