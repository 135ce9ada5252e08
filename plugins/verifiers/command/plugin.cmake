target_sources(${PLUGIN} PRIVATE ${CMAKE_SOURCE_DIR}/plugins/verifiers/common/program/left.c ${CMAKE_SOURCE_DIR}/plugins/verifiers/common/program/program.c)
target_link_libraries(${PLUGIN} PRIVATE jansson)
