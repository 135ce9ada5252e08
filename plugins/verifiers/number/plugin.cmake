# The reading of sentences is math's, without its arithmetic: none of these files needs FLINT.
foreach(FILE extract anchor marks unfinished doubt claim denial operated phrases numerals units unit_names joint dates words)
    target_sources(${PLUGIN} PRIVATE ${CMAKE_SOURCE_DIR}/plugins/verifiers/math/${FILE}.c)
endforeach()
target_sources(${PLUGIN} PRIVATE ${CMAKE_SOURCE_DIR}/plugins/verifiers/common/words/anchors.c ${CMAKE_SOURCE_DIR}/plugins/verifiers/common/words/sentences.c)
