# environment.c has the functions of environments whose sessions are plain bytes
get_target_property(SOURCES ${PLUGIN} SOURCES)
list(FILTER SOURCES EXCLUDE REGEX "common/environment\\.c$")
set_property(TARGET ${PLUGIN} PROPERTY SOURCES ${SOURCES})
set_property(TARGET ${PLUGIN} APPEND PROPERTY INCLUDE_DIRECTORIES ${CMAKE_SOURCE_DIR}/plugins/verifiers)
tare_python_driver(python_class ${FOLDER}/schema.py)
