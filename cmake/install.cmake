# install.cmake - what `cmake --install` puts where: libraries, header, pkg-config and CMake package files, documents. The program
# and its manual page are installed by programs/CMakeLists.txt.
include(CMakePackageConfigHelpers)

install(TARGETS mica_shared EXPORT mica-targets)
install(TARGETS mica_static)
install(FILES include/mica/mica.h include/mica/mica_tools.h include/mica/mica_tasks.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mica)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
# What tasks are, and the labelled sets that mica eval finds beside them.
install(DIRECTORY share/mica/ DESTINATION ${CMAKE_INSTALL_DATADIR}/mica)
install(DIRECTORY tests/data/tasks/ DESTINATION ${CMAKE_INSTALL_DATADIR}/mica/tasks/eval FILES_MATCHING PATTERN "*.jsonl")
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN "*.md")

# Relative to the file itself, so that an installed tree can be moved.
file(RELATIVE_PATH MICA_PC_PREFIX ${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
string(REGEX REPLACE "/$" "" MICA_PC_PREFIX "${MICA_PC_PREFIX}")
configure_file(cmake/mica.pc.in mica.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/mica.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(MICA_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/mica)
configure_package_config_file(cmake/mica-config.cmake.in mica-config.cmake INSTALL_DESTINATION ${MICA_CMAKE_DIR})
write_basic_package_version_file(mica-config-version.cmake COMPATIBILITY SameMinorVersion)
install(EXPORT mica-targets NAMESPACE mica:: DESTINATION ${MICA_CMAKE_DIR})
install(FILES ${CMAKE_BINARY_DIR}/mica-config.cmake ${CMAKE_BINARY_DIR}/mica-config-version.cmake
  DESTINATION ${MICA_CMAKE_DIR})
