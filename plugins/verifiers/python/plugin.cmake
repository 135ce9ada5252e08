target_sources(${PLUGIN} PRIVATE ${CMAKE_SOURCE_DIR}/plugins/verifiers/common/program/left.c ${CMAKE_SOURCE_DIR}/plugins/verifiers/common/program/program.c)
target_link_libraries(${PLUGIN} PRIVATE jansson)
# The driver goes into the plugin as a string, so that the plugin is one file.
set(CALL ${CMAKE_SOURCE_DIR}/sdk/python/tare_sdk/reward_call.py)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${FOLDER}/driver.py ${CALL})
file(READ ${CALL} CALL_TEXT)
file(READ ${FOLDER}/driver.py DRIVER)
# A json.py in the working directory must not replace the library's module; load() restores the path.
string(PREPEND DRIVER "import sys\nHERE = [p for p in sys.path if not p]\nsys.path = [p for p in sys.path if p]\n${CALL_TEXT}\n\n")
string(REPLACE "\\" "\\\\" DRIVER "${DRIVER}")
string(REPLACE "\"" "\\\"" DRIVER "${DRIVER}")
string(REPLACE "\n" "\\n\"\n\"" DRIVER "${DRIVER}")
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/generated/python/driver.inc CONTENT "\"${DRIVER}\"\n")
set_property(TARGET ${PLUGIN} APPEND PROPERTY INCLUDE_DIRECTORIES ${CMAKE_BINARY_DIR}/generated/python)
