# make install, the Debian package and the wheel install the same files under different prefixes.
# Installing does not build: run make first, so that nothing is compiled as root.
#   program: bin/tare, LIBDIR/tare (libtare.so, plugins, MPI), share/tare/configs     doc: manual pages, completions, documents
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY TRUE)
install(TARGETS tare COMPONENT program)
install(TARGETS tare_shared LIBRARY DESTINATION ${TARE_LIBRARIES} COMPONENT program)
install(DIRECTORY ${TARE_PLUGIN_DIR}/ DESTINATION ${TARE_LIBRARIES} COMPONENT program FILES_MATCHING PATTERN "*.so")
install(FILES ${CMAKE_BINARY_DIR}/libtare_cuda.so DESTINATION ${TARE_LIBRARIES} COMPONENT program OPTIONAL) # make cuda
install(DIRECTORY configs DESTINATION ${TARE_DATA} COMPONENT program)

# The program writes its manual pages from the --help texts and completions from the key table.
if(NOT CMAKE_CROSSCOMPILING)
    set(WRITTEN ${CMAKE_BINARY_DIR}/written)
    add_custom_command(OUTPUT ${WRITTEN}/done
        COMMAND sh ${CMAKE_SOURCE_DIR}/packaging/man.sh $<TARGET_FILE:tare> ${WRITTEN}/man
        COMMAND sh ${CMAKE_SOURCE_DIR}/packaging/completion.sh $<TARGET_FILE:tare> ${WRITTEN}
        COMMAND ${CMAKE_COMMAND} -E touch ${WRITTEN}/done
        DEPENDS tare packaging/man.sh packaging/completion.sh VERBATIM)
    add_custom_target(written ALL DEPENDS ${WRITTEN}/done)
    install(DIRECTORY ${WRITTEN}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT doc)
    install(FILES ${WRITTEN}/tare.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tare COMPONENT doc)
    install(FILES ${WRITTEN}/_tare DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT doc)
endif()
install(FILES README.md CHANGELOG.md CITATION.cff DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} RENAME copyright COMPONENT doc)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT doc PATTERN dev EXCLUDE)

# The list of files for make uninstall. A Debian package and a wheel have their own list.
install(CODE [[
    if(NOT CMAKE_INSTALL_COMPONENT AND NOT "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}" MATCHES "_CPack_Packages")
        set(LINES "")
        foreach(FILE ${CMAKE_INSTALL_MANIFEST_FILES})
            file(RELATIVE_PATH LINE "${CMAKE_INSTALL_PREFIX}" "${FILE}")
            string(APPEND LINES "${LINE}\n")
        endforeach()
        file(WRITE "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/share/tare/installed.txt" "${LINES}")
    endif()
]])

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME tare)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "the maintainers of tare <maintainers@tare.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "critic-free reinforcement learning of language models with verifiable rewards")
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_STRIP_FILES TRUE)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
if(CMAKE_CROSSCOMPILING AND CMAKE_SYSTEM_PROCESSOR STREQUAL "aarch64")
    set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE arm64) # the default is this machine's
endif()
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON) # dpkg-shlibdeps finds the packages of the linked libraries
set(CPACK_DEBIAN_PACKAGE_DEPENDS libmicrohttpd12) # additionally; `tare serve` loads it when it starts
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS openmpi-bin)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS python3)
include(CPack)
