target_sources(${PLUGIN} PRIVATE ${CMAKE_SOURCE_DIR}/plugins/verifiers/common/words/words.c)
target_link_libraries(${PLUGIN} PRIVATE utf8proc)
