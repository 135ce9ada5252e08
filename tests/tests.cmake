# Builds tests/unit/MODULE/test_*.c: each file is a cmocka program, linked with that module of core/
# (and the modules that it uses). tests/unit/kernels/ belongs to kernels/. tests/e2e/*.sh run the
# tare program; they get TARE, TARE_PLUGIN_PATH and SHARED.
find_library(CMOCKA cmocka)
find_path(CMOCKA_INCLUDE cmocka.h)
tare_required(tests CMOCKA CMOCKA_INCLUDE)
tare_tests_required()
# The project's reference data next to the checkout. Without it, tests read the small part of it in
# tests/data.
get_filename_component(SHARED ${CMAKE_SOURCE_DIR}/../shared ABSOLUTE)
include(${CMAKE_SOURCE_DIR}/tests/plugin/fixtures.cmake)
include(${CMAKE_SOURCE_DIR}/tests/cuda/shim/shim.cmake)
# An emulated device, for tests of the engine on memory that the host cannot access.
add_library(tare_fake MODULE tests/device/fake.c)
target_link_libraries(tare_fake PRIVATE tare_kernels)
# Faults for the program's allocations and files. A sanitizer's build has its own allocator.
if(NOT TARE_SANITIZE)
    add_library(tare_interpose MODULE tests/faults/interpose.c)
    target_link_libraries(tare_interpose PRIVATE ${CMAKE_DL_LIBS})
    set(INTERPOSE $<TARGET_FILE:tare_interpose>)
    add_library(tare_record MODULE tests/faults/record.c)
    target_link_libraries(tare_record PRIVATE ${CMAKE_DL_LIBS})
    set(RECORD $<TARGET_FILE:tare_record>)
    add_library(tare_proxy MODULE tests/faults/proxy.c)
    target_link_libraries(tare_proxy PRIVATE ${CMAKE_DL_LIBS})
    set(PROXY $<TARGET_FILE:tare_proxy>)
    add_library(tare_clock MODULE tests/faults/clock.c)
    target_link_libraries(tare_clock PRIVATE ${CMAKE_DL_LIBS})
    set(CLOCK $<TARGET_FILE:tare_clock>)
elseif(TARE_SANITIZE MATCHES address)
    # With the address sanitizer only tare's own allocations are made to fail, and leaks and invalid
    # reads after them are found.
    target_sources(tare PRIVATE tests/faults/interpose.c)
    set_source_files_properties(tests/faults/interpose.c PROPERTIES COMPILE_DEFINITIONS TARE_WRAPPED)
    foreach(NAME malloc calloc realloc aligned_alloc posix_memalign)
        target_link_options(tare PRIVATE -Wl,--wrap=${NAME})
    endforeach()
    set(WRAPPED 1)
endif()
# NCCL for ranks that are threads, late and broken on demand.
add_library(tare_nccl_double MODULE tests/dist/nccl_double.c)
target_include_directories(tare_nccl_double PRIVATE core)
set(TEST_ENV "TARE_NCCL_DOUBLE=$<TARGET_FILE:tare_nccl_double>;INTERPOSE=${INTERPOSE};WRAPPED=${WRAPPED};RECORD=${RECORD};PROXY=${PROXY};CLOCK=${CLOCK};TARE=${CMAKE_BINARY_DIR}/tare;TARE_PLUGIN_PATH=${TARE_PLUGIN_DIR};SHARED=${SHARED};SOURCE=${CMAKE_SOURCE_DIR};FIXTURES=${FIXTURES};TARE_FAKE=$<TARGET_FILE:tare_fake>")
# Ranks as threads of one process.
add_library(tare_thread_ranks STATIC tests/dist/threads.c)
target_include_directories(tare_thread_ranks PRIVATE tests)
target_link_libraries(tare_thread_ranks PRIVATE tare_dist)
# Libraries that a test uses in addition to its module and that module's own.
foreach(TEST test_comm test_comm_gpu test_deal test_collect test_shards)
    set(TEST_USES_${TEST} tare_thread_ranks)
endforeach()
set(TEST_USES_test_kmeans tare_model)
set(TEST_USES_test_plan tare_update tare_thread_ranks)
set(TEST_USES_test_episode_ranks tare_update tare_thread_ranks)
set(TEST_USES_test_recipes tare_estimate)
# Adds one test of ctest for each case of a cmocka program: PREFIX.CASE. After the build the program
# lists their names. RUN_SERIAL if a case starts many processes or waits for deadlines.
set(TEST_ALONE test_ranks test_watch test_comm test_pool test_verify_run test_check test_checkpoint)
function(tare_cases PROGRAM PREFIX ENVIRONMENT)
    string(REPLACE "/" "." FILE ${PREFIX})
    set(FILE ${CMAKE_BINARY_DIR}/cases/${FILE}.cmake)
    set(ALONE FALSE)
    if(PROGRAM IN_LIST TEST_ALONE)
        set(ALONE TRUE)
    endif()
    add_custom_command(TARGET ${PROGRAM} POST_BUILD BYPRODUCTS ${FILE} VERBATIM
        COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${PROGRAM}> "-DEMULATOR=${CMAKE_CROSSCOMPILING_EMULATOR}" -DPREFIX=${PREFIX} "-DENVIRONMENT=${ENVIRONMENT}" -DALONE=${ALONE} -DOUT=${FILE}
            -P ${CMAKE_SOURCE_DIR}/tests/cases.cmake)
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${FILE}.include)
    # before the first build, and for a program that was not built, ctest has one failing test
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
target_link_options(test_base PRIVATE -Wl,--wrap=realloc)
target_link_options(test_json_memory PRIVATE -Wl,--wrap=json_loadb)
# The machine code of the tiles of matrix products, by gcc and clang, for every instruction set.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT TARE_SANITIZE)
    string(JOIN " " TILE_AVX2 ${KERNELS_AVX2})
    string(JOIN " " TILE_AVX512 ${KERNELS_AVX512})
    string(JOIN " " TILE_AVX512BF16 ${KERNELS_AVX512BF16})
    add_test(NAME kernels/tile_code COMMAND bash ${CMAKE_SOURCE_DIR}/tests/by_python.sh ${CMAKE_SOURCE_DIR}/tests/tile_code.py ${CMAKE_SOURCE_DIR}
             "avx2=${TILE_AVX2}" "avx512=${TILE_AVX512}" "avx512bf16=${TILE_AVX512BF16}")
    set_tests_properties(kernels/tile_code PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)
    # NEON, by the compilers for aarch64.
    string(JOIN " " TILE_NEON ${KERNELS_NEON_GCC})
    add_test(NAME kernels/tile_code_neon COMMAND bash ${CMAKE_SOURCE_DIR}/tests/by_python.sh ${CMAKE_SOURCE_DIR}/tests/tile_code.py ${CMAKE_SOURCE_DIR} "neon=${TILE_NEON}")
    set_tests_properties(kernels/tile_code_neon PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 600)
endif()
# Blocks per multiprocessor and waves of the CUDA backend's launches.
if(TARE_CUDA_SHIM)
    add_test(NAME kernels/occupancy COMMAND bash ${CMAKE_SOURCE_DIR}/tests/by_python.sh ${CMAKE_SOURCE_DIR}/tests/cuda/occupancy.py $<TARGET_FILE:test_launches_shim>)
    set_tests_properties(kernels/occupancy PROPERTIES SKIP_RETURN_CODE 77)
endif()
# The families of models, against transformers.
tare_cases(test_parity model/test_parity_of_families "${TEST_ENV};TARE_GOLDENS=${CMAKE_SOURCE_DIR}/tests/data/models/families")
tare_cases(test_update update/test_update_of_families "${TEST_ENV};TARE_GOLDENS=${CMAKE_SOURCE_DIR}/tests/data/models/families")
# The tiny models' goldens, on the emulated device.
tare_cases(test_update update/test_update_on_fake_device "${TEST_ENV};TARE_TEST_DEVICE=cuda;TARE_CUDA=$<TARGET_FILE:tare_fake>")
# Rules of the source that the compiler does not check.
foreach(RULE edges sizes picture choices idioms metrics names version)
    add_test(NAME structure/${RULE} COMMAND bash ${CMAKE_SOURCE_DIR}/tests/by_python.sh ${CMAKE_SOURCE_DIR}/tests/structure.py ${CMAKE_SOURCE_DIR} ${RULE})
    set_tests_properties(structure/${RULE} PROPERTIES ENVIRONMENT "${TEST_ENV}" SKIP_RETURN_CODE 77)
endforeach()
# Scripts outside of tests/quick.list have the labels deep and turn0 to turn4: CI runs one fifth of
# them each time.
file(STRINGS tests/quick.list QUICK REGEX "^[a-z]")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS tests/quick.list)
file(GLOB SCRIPTS CONFIGURE_DEPENDS tests/e2e/*.sh)
set(TURN 0)
foreach(FILE ${SCRIPTS})
    get_filename_component(NAME ${FILE} NAME_WE)
    add_test(NAME e2e/${NAME} COMMAND bash ${FILE} WORKING_DIRECTORY ${CMAKE_BINARY_DIR})
    set_tests_properties(e2e/${NAME} PROPERTIES ENVIRONMENT "${TEST_ENV}" SKIP_RETURN_CODE 77 TIMEOUT 3600)
    if(NOT "${NAME}.sh" IN_LIST QUICK)
        set_tests_properties(e2e/${NAME} PROPERTIES LABELS "deep;turn${TURN}")
        math(EXPR TURN "(${TURN} + 1) % 5")
    endif()
endforeach()
include(${CMAKE_SOURCE_DIR}/tests/fuzz/fuzz.cmake)
