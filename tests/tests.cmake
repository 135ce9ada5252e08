# tests/unit/MODULE/test_*.c: cmocka programs, one a file, linked with that module of core/ (and what it stands on).
# tests/unit/kernels/ goes with kernels/. tests/e2e/*.sh run the tare program; they get TARE, TARE_PLUGIN_PATH and SHARED.
find_library(CMOCKA cmocka)
find_path(CMOCKA_INCLUDE cmocka.h)
tare_required(tests CMOCKA CMOCKA_INCLUDE)
tare_tests_required()
# The project's reference data beside the checkout; where it is not, tests read the small part of it in tests/data.
get_filename_component(SHARED ${CMAKE_SOURCE_DIR}/../shared ABSOLUTE)
include(${CMAKE_SOURCE_DIR}/tests/plugin/fixtures.cmake)
include(${CMAKE_SOURCE_DIR}/kernels/cuda/shim/shim.cmake)
# A device that is none, for tests of the engine on memory that it cannot touch.
add_library(tare_fake MODULE tests/device/fake.c)
target_link_libraries(tare_fake PRIVATE tare_kernels)
# Faults for the program's allocations and files; a sanitizer's build has an allocator of its own.
if(NOT TARE_SANITIZE)
    add_library(tare_interpose MODULE tests/faults/interpose.c)
    target_link_libraries(tare_interpose PRIVATE ${CMAKE_DL_LIBS})
    set(INTERPOSE $<TARGET_FILE:tare_interpose>)
endif()
set(TEST_ENV "INTERPOSE=${INTERPOSE};TARE=${CMAKE_BINARY_DIR}/tare;TARE_PLUGIN_PATH=${TARE_PLUGIN_DIR};SHARED=${SHARED};SOURCE=${CMAKE_SOURCE_DIR};FIXTURES=${FIXTURES};TARE_FAKE=$<TARGET_FILE:tare_fake>")
# What a test uses beside its module and what that stands on.
set(TEST_USES_test_kmeans tare_model)
set(TEST_USES_test_plan tare_update)
set(TEST_USES_test_recipes tare_estimate)
# One test of ctest for each case of a cmocka program: PREFIX.CASE. The program is asked for their names when it has been built.
# RUN_SERIAL where a case starts many processes or waits for deadlines.
set(TEST_ALONE test_ranks test_watch test_comm test_pool test_verify_run test_check test_checkpoint)
function(tare_cases PROGRAM PREFIX ENVIRONMENT)
    string(REPLACE "/" "." FILE ${PREFIX})
    set(FILE ${CMAKE_BINARY_DIR}/cases/${FILE}.cmake)
    set(ALONE FALSE)
    if(PROGRAM IN_LIST TEST_ALONE)
        set(ALONE TRUE)
    endif()
    add_custom_command(TARGET ${PROGRAM} POST_BUILD BYPRODUCTS ${FILE} VERBATIM
        COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${PROGRAM}> -DPREFIX=${PREFIX} "-DENVIRONMENT=${ENVIRONMENT}" -DALONE=${ALONE} -DOUT=${FILE}
            -P ${CMAKE_SOURCE_DIR}/tests/cases.cmake)
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${FILE}.include)
    # before the first build, and for a program that was not built, ctest has one test that fails
    file(WRITE ${FILE}.include "if(EXISTS \"${FILE}\")\n    include(\"${FILE}\")\nelse()\n    add_test(${PREFIX}.not_built false)\nendif()\n")
endfunction()
file(GLOB MODULES RELATIVE ${CMAKE_SOURCE_DIR}/tests/unit CONFIGURE_DEPENDS tests/unit/*)
foreach(MODULE ${MODULES})
    file(GLOB FILES CONFIGURE_DEPENDS tests/unit/${MODULE}/test_*.c)
    foreach(FILE ${FILES})
        get_filename_component(NAME ${FILE} NAME_WE)
        add_executable(${NAME} ${FILE})
        target_include_directories(${NAME} PRIVATE tests)
        target_link_libraries(${NAME} PRIVATE tare_${MODULE} ${TEST_USES_${NAME}} ${CMOCKA})
        if(TARE_CUDA_SHIM AND NAME MATCHES "_(device|shim)(_|$)")
            target_link_libraries(${NAME} PRIVATE tare_cuda_shim)
            target_compile_definitions(${NAME} PRIVATE TARE_CUDA_SHIM)
        endif()
        tare_cases(${NAME} ${MODULE}/${NAME} "${TEST_ENV}")
    endforeach()
endforeach()
# The machine code of the products' tiles, by gcc and clang, for every instruction set.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT TARE_SANITIZE)
    string(JOIN " " TILE_AVX2 ${KERNELS_AVX2})
    string(JOIN " " TILE_AVX512 ${KERNELS_AVX512})
    string(JOIN " " TILE_AVX512BF16 ${KERNELS_AVX512BF16})
    add_test(NAME kernels/tile_code COMMAND bash ${CMAKE_SOURCE_DIR}/tests/by_python.sh ${CMAKE_SOURCE_DIR}/tests/tile_code.py ${CMAKE_SOURCE_DIR}
             "avx2=${TILE_AVX2}" "avx512=${TILE_AVX512}" "avx512bf16=${TILE_AVX512BF16}")
    set_tests_properties(kernels/tile_code PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)
endif()
# The tiny models' goldens, on the device that is none.
tare_cases(test_update update/test_update_on_fake_device "${TEST_ENV};TARE_TEST_DEVICE=cuda;TARE_CUDA=$<TARGET_FILE:tare_fake>")
# House rules that the compiler does not check.
foreach(RULE edges sizes picture choices idioms)
    add_test(NAME structure/${RULE} COMMAND bash ${CMAKE_SOURCE_DIR}/tests/by_python.sh ${CMAKE_SOURCE_DIR}/tests/structure.py ${CMAKE_SOURCE_DIR} ${RULE})
    set_tests_properties(structure/${RULE} PROPERTIES ENVIRONMENT "${TEST_ENV}" SKIP_RETURN_CODE 77)
endforeach()
file(GLOB SCRIPTS CONFIGURE_DEPENDS tests/e2e/*.sh)
foreach(FILE ${SCRIPTS})
    get_filename_component(NAME ${FILE} NAME_WE)
    add_test(NAME e2e/${NAME} COMMAND bash ${FILE} WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
    set_tests_properties(e2e/${NAME} PROPERTIES ENVIRONMENT "${TEST_ENV}" SKIP_RETURN_CODE 77 TIMEOUT 1200)
endforeach()
include(${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz.cmake)
