# Installation folders, and their paths relative to the program, so that an installation can be moved as a whole.
set(TARE_LIBRARIES ${CMAKE_INSTALL_LIBDIR}/tare)
set(TARE_DATA ${CMAKE_INSTALL_DATADIR}/tare)
file(RELATIVE_PATH BIN_TO_LIBRARIES ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_LIBDIR}/tare)
file(RELATIVE_PATH BIN_TO_DATA ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_DATADIR}/tare)
file(RELATIVE_PATH BIN_TO_HEADERS ${CMAKE_INSTALL_FULL_BINDIR} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
set_source_files_properties(core/base/program.c PROPERTIES COMPILE_DEFINITIONS
    "TARE_BIN_TO_LIBRARIES=\"${BIN_TO_LIBRARIES}\";TARE_BIN_TO_DATA=\"${BIN_TO_DATA}\";TARE_BIN_TO_HEADERS=\"${BIN_TO_HEADERS}\";TARE_SOURCE=\"${TARE_TREE}\"")

# The version of the SDK is that of the ABI, MAJOR.MINOR of sdk/include/tare/base.h, with a patch number for headers and templates.
file(STRINGS sdk/include/tare/base.h ABI_LINES REGEX "#define TARE_ABI_(MAJOR|MINOR) ")
string(REGEX REPLACE ".*MAJOR ([0-9]+).*MINOR ([0-9]+).*" "\\1.\\2" TARE_ABI_VERSION "${ABI_LINES}")
set(TARE_SDK_VERSION ${TARE_ABI_VERSION}.0)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS sdk/include/tare/base.h)
