# hardening.cmake - what compiler and linker do against faults that are left (docs/security.md, "Hardening"); tests/hardening.py reads it back
# from what was built. Sanitizers bring their own checks, and static programs of other C libraries have no dynamic linker to harden.
set(MICA_HARDENING_DEFAULT ON)
if(NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR MICA_MUSL_ARCH OR MICA_SANITIZE OR MICA_FUZZ)
  set(MICA_HARDENING_DEFAULT OFF)
endif()
option(MICA_HARDENING "Compile and link with hardening flags" ${MICA_HARDENING_DEFAULT})

if(MICA_HARDENING)
  include(CheckCCompilerFlag)
  include(CheckPIESupported)
  check_pie_supported(LANGUAGES C) # programs are linked with -pie
  # Of control-flow protection only the shadow stack: it costs no byte, and the other half, landing pads for indirect calls, takes four in each
  # function and no Linux kernel makes use of them in user space.
  set(flags -fstack-protector-strong -fstack-clash-protection)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|i.86)$")
    list(APPEND flags -fcf-protection=return)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
    list(APPEND flags -mbranch-protection=standard)
  endif()
  foreach(flag ${flags})
    string(MAKE_C_IDENTIFIER "MICA_HAS${flag}" has)
    check_c_compiler_flag(${flag} ${has})
    if(${has})
      add_compile_options(${flag})
    endif()
  endforeach()
  # It needs the optimiser, which knows the sizes.
  add_compile_options($<$<CONFIG:Release,MinSizeRel,RelWithDebInfo>:-U_FORTIFY_SOURCE>
    $<$<CONFIG:Release,MinSizeRel,RelWithDebInfo>:-D_FORTIFY_SOURCE=3>)
  # Programs that may lie anywhere have thousands of addresses to be filled in at the start: 24 bytes each, or two bits with glibc from 2.36 on.
  include(CheckCSourceCompiles)
  set(CMAKE_REQUIRED_LINK_OPTIONS LINKER:-z,pack-relative-relocs)
  check_c_source_compiles("#include <features.h>
#if !__GLIBC_PREREQ(2, 36)
#error older
#endif
int main(void) { return 0; }" MICA_HAS_PACKED_RELOCATIONS)
  unset(CMAKE_REQUIRED_LINK_OPTIONS)
  if(MICA_HAS_PACKED_RELOCATIONS)
    add_link_options(LINKER:-z,pack-relative-relocs)
  endif()
  add_link_options(LINKER:-z,relro LINKER:-z,now LINKER:-z,noexecstack LINKER:-z,text)
endif()
