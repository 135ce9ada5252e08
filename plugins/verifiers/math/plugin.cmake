target_link_libraries(${PLUGIN} PRIVATE ${MATH_LIBRARIES})
# gcc 12 takes an element of an array of balls for its first member
target_compile_options(${PLUGIN} PRIVATE $<$<C_COMPILER_ID:GNU>:-Wno-stringop-overread>)
# FLINT keeps the addresses of its memory functions, memory.c
target_link_options(${PLUGIN} PRIVATE -Wl,-z,nodelete)
target_sources(${PLUGIN} PRIVATE ${CMAKE_SOURCE_DIR}/plugins/verifiers/common/words/anchors.c ${CMAKE_SOURCE_DIR}/plugins/verifiers/common/words/sentences.c)
