set(PROGRAM ${CMAKE_SOURCE_DIR}/plugins/verifiers/common/program)
target_sources(${PLUGIN} PRIVATE ${PROGRAM}/left.c ${PROGRAM}/program.c)
target_link_libraries(${PLUGIN} PRIVATE jansson)
# environment.c has the functions of environments whose sessions are plain bytes
get_target_property(SOURCES ${PLUGIN} SOURCES)
list(FILTER SOURCES EXCLUDE REGEX "common/environment\\.c$")
set_property(TARGET ${PLUGIN} PROPERTY SOURCES ${SOURCES})
# The driver goes into the plugin as a string, so that the plugin is one file.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${FOLDER}/driver.py ${FOLDER}/schema.py)
file(READ ${FOLDER}/schema.py SCHEMA)
file(READ ${FOLDER}/driver.py DRIVER)
# A json.py in the working directory must not replace the library's module; load() restores the path.
string(PREPEND DRIVER "import sys\nHERE = [p for p in sys.path if not p]\nsys.path = [p for p in sys.path if p]\n${SCHEMA}\n\n")
string(REPLACE "\\" "\\\\" DRIVER "${DRIVER}")
string(REPLACE "\"" "\\\"" DRIVER "${DRIVER}")
string(REPLACE "\n" "\\n\"\n\"" DRIVER "${DRIVER}")
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/generated/python_class/driver.inc CONTENT "\"${DRIVER}\"\n")
set_property(TARGET ${PLUGIN} APPEND PROPERTY INCLUDE_DIRECTORIES ${CMAKE_BINARY_DIR}/generated/python_class ${CMAKE_SOURCE_DIR}/plugins/verifiers)
