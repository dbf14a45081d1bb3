# install.cmake - what `cmake --install` puts where: libraries, header, pkg-config and CMake package files, documents. The program
# and its manual page are installed by programs/CMakeLists.txt.
include(CMakePackageConfigHelpers)

install(TARGETS mica_shared EXPORT mica-targets)
install(TARGETS mica_static)
# Every public header whose library is built.
file(GLOB MICA_HEADERS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/include/mica/*.h)
if(NOT MICA_ROUTER)
  list(FILTER MICA_HEADERS EXCLUDE REGEX "/mica_(router|telemetry)\\.h$")
endif()
if(NOT MICA_OPS)
  list(FILTER MICA_HEADERS EXCLUDE REGEX "/mica_ops\\.h$")
endif()
if(NOT MICA_WHOLE)
  list(FILTER MICA_HEADERS EXCLUDE REGEX "/mica_(tools|tasks)\\.h$")
endif()
install(FILES ${MICA_HEADERS} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mica)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
# What tasks are, and the labelled sets that mica eval finds beside them.
install(DIRECTORY share/mica/ DESTINATION ${CMAKE_INSTALL_DATADIR}/mica)
install(DIRECTORY tests/data/tasks/ DESTINATION ${CMAKE_INSTALL_DATADIR}/mica/tasks/eval FILES_MATCHING PATTERN "*.jsonl")
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")
# Measuring: the adapters, whose setup writes to the user's cache and nowhere else, and the static libraries behind mica_ops.h.
if(MICA_OPS)
  install(DIRECTORY adapters/ DESTINATION ${CMAKE_INSTALL_DATADIR}/mica/adapters USE_SOURCE_PERMISSIONS
    PATTERN "__pycache__" EXCLUDE)
  install(TARGETS mica_ops mica_router)
endif()

# Relative to the file itself, so that an installed tree can be moved.
file(RELATIVE_PATH MICA_PC_PREFIX ${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" MICA_PC_PREFIX "${MICA_PC_PREFIX}")
configure_file(cmake/mica.pc.in mica.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/mica.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(MICA_OPS)
  foreach(target mica_ops mica_router) # what they were linked against, by the names that pkg-config knows
    get_target_property(libraries ${target} INTERFACE_LINK_LIBRARIES)
    foreach(library ${libraries})
      if(library MATCHES "^PkgConfig::(.+)$")
        list(APPEND MICA_OPS_REQUIRES "${${CMAKE_MATCH_1}_MODULE_NAME}")
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES MICA_OPS_REQUIRES)
  string(REPLACE ";" ", " MICA_OPS_REQUIRES "${MICA_OPS_REQUIRES}")
  configure_file(cmake/mica-ops.pc.in mica-ops.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/mica-ops.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endif()

set(MICA_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/mica)
configure_package_config_file(cmake/mica-config.cmake.in mica-config.cmake INSTALL_DESTINATION ${MICA_CMAKE_DIR})
write_basic_package_version_file(mica-config-version.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT mica-targets NAMESPACE mica:: DESTINATION ${MICA_CMAKE_DIR})
install(FILES ${CMAKE_BINARY_DIR}/mica-config.cmake ${CMAKE_BINARY_DIR}/mica-config-version.cmake
  DESTINATION ${MICA_CMAKE_DIR})
