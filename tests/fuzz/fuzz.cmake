# Fuzz targets, one a file fuzz_X.c, on the part of the engine that they feed; their inputs lie in corpus/X.
#   always                        replay_X runs the corpus once, as the test fuzz/X
#   -DTARE_FUZZ=ON with clang     fuzz_X is a libFuzzer program:   fuzz_X -max_total_time=60 tests/fuzz/corpus/X
# tests/fuzz/run.sh builds all of them with the sanitizers and lets each run for a while.
set(FUZZ_jsonl tare_data)
set(FUZZ_template tare_data)
set(FUZZ_tokenizer_json tare_data)
set(FUZZ_safetensors tare_base) # with the one file that reads it: the kernels under it take clang's sanitizers a quarter of an hour
if(TARGET plugin_math)
    set(FUZZ_math ${MATH_LIBRARIES} m) # the plugin's own files: nothing of the engine
endif()

function(tare_fuzz_target TARGET NAME)
    add_executable(${TARGET} ${CMAKE_CURRENT_SOURCE_DIR}/tests/fuzz/fuzz_${NAME}.c ${ARGN})
    target_link_libraries(${TARGET} PRIVATE ${FUZZ_${NAME}})
    if(NAME STREQUAL safetensors)
        target_sources(${TARGET} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/core/model/safetensors.c)
    endif()
    if(NAME STREQUAL math)
        file(GLOB SOURCES CONFIGURE_DEPENDS plugins/verifiers/common/*.c plugins/verifiers/math/*.c)
        target_sources(${TARGET} PRIVATE ${SOURCES})
        target_include_directories(${TARGET} PRIVATE plugins/verifiers)
        target_compile_options(${TARGET} PRIVATE $<$<C_COMPILER_ID:GNU>:-Wno-stringop-overread>)
    endif()
endfunction()

foreach(NAME jsonl template tokenizer_json safetensors math)
    if(NOT DEFINED FUZZ_${NAME})
        continue()
    endif()
    tare_fuzz_target(replay_${NAME} ${NAME} ${CMAKE_CURRENT_SOURCE_DIR}/tests/fuzz/driver.c)
    add_test(NAME fuzz/${NAME} COMMAND replay_${NAME} ${CMAKE_CURRENT_SOURCE_DIR}/tests/fuzz/corpus/${NAME})
    set_tests_properties(fuzz/${NAME} PROPERTIES TIMEOUT 300)
    if(TARE_FUZZ_ENGINE)
        tare_fuzz_target(fuzz_${NAME} ${NAME})
        target_link_options(fuzz_${NAME} PRIVATE -fsanitize=fuzzer)
    endif()
endforeach()
