target_link_libraries(${PLUGIN} PRIVATE ${MATH_LIBRARIES})
# gcc 12 takes an element of an array of balls for its first member
target_compile_options(${PLUGIN} PRIVATE $<$<C_COMPILER_ID:GNU>:-Wno-stringop-overread>)
