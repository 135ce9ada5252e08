target_sources(${PLUGIN} PRIVATE ${CMAKE_SOURCE_DIR}/plugins/verifiers/common/words/anchors.c ${CMAKE_SOURCE_DIR}/plugins/verifiers/common/words/sentences.c)
