# The CPU backends. ref/ref.c and cpu/cpu.c are each a whole backend in one translation unit, built once
# per instruction set.
set(KERNELS ${CMAKE_CURRENT_LIST_DIR})
function(kernels_build NAME SOURCE)
    add_library(tare_kernels_${NAME} OBJECT ${KERNELS}/${SOURCE})
    target_link_libraries(tare_kernels_${NAME} PRIVATE tare_base)
    target_compile_options(tare_kernels_${NAME} PRIVATE ${ARGN})
    target_sources(tare_kernels PRIVATE $<TARGET_OBJECTS:tare_kernels_${NAME}>)
endfunction()

add_library(tare_kernels STATIC ${KERNELS}/dispatch.c ${KERNELS}/caches.c ${KERNELS}/counting.c ${KERNELS}/cost.c)
target_link_libraries(tare_kernels PUBLIC tare_base)
# emu512 runs the 16-lane code on AVX2, so that a machine without AVX-512 tests its indexing. Only for
# the kernels' tests: its tiles do not fit in registers, and compiling them takes a minute.
option(TARE_EMULATE_AVX512 "build the emulated AVX-512 kernels for the tests" OFF)
# Sanitizer checks in every inlined vector operation would take a compiler many minutes at -O3.
set(KERNELS_OPTIMIZE -O3)
if(TARE_SANITIZE)
    set(KERNELS_OPTIMIZE -O1)
endif()
# clang, for the fuzz targets, would take a quarter of an hour, so there they have no checks; with gcc's
# sanitizers they have.
if(TARE_FUZZ_ENGINE)
    set(KERNELS_OPTIMIZE -O2 -fno-sanitize=all)
endif()
set(KERNELS_AVX2 -mavx2 -mfma)
set(KERNELS_AVX512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma)
set(KERNELS_AVX512BF16 ${KERNELS_AVX512} -mavx512bf16 -DCPU_DOT)
# GCC 12 would move the loads of a tile so far forward that registers run out (tests/tile_code.py).
set(KERNELS_NEON_GCC -fno-schedule-insns -fno-tree-coalesce-vars)
kernels_build(ref_any ref/ref.c -DREF_TABLE=kernels_ref_any "-DREF_NAME=\"ref\"")
kernels_build(ref_amx ref/ref.c -DREF_TILES -DREF_TABLE=kernels_ref_amx "-DREF_NAME=\"ref-amx\"")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    kernels_build(ref_fma ref/ref.c -DREF_TABLE=kernels_ref_fma "-DREF_NAME=\"ref\"" ${KERNELS_AVX2})
    kernels_build(avx2 cpu/cpu.c ${KERNELS_OPTIMIZE} ${KERNELS_AVX2} -DCPU_TABLE=kernels_avx2 "-DCPU_NAME=\"avx2\"")
    if(TARE_EMULATE_AVX512)
        kernels_build(emu512 cpu/cpu.c -O1 ${KERNELS_AVX2} -DCPU_TILE_512 -DCPU_TABLE=kernels_emu512 "-DCPU_NAME=\"emu512\"")
        kernels_build(emu512bf16 cpu/cpu.c -O1 ${KERNELS_AVX2} -DCPU_TILE_512 -DCPU_DOT -DCPU_DOT_CHECK=kernels_emu512bf16_check
                      -DCPU_TABLE=kernels_emu512bf16 "-DCPU_NAME=\"emu512bf16\"")
        target_compile_definitions(tare_kernels PUBLIC TARE_CPU_EMU512)
    endif()
    kernels_build(avx512 cpu/cpu.c ${KERNELS_OPTIMIZE} ${KERNELS_AVX512} -DCPU_TABLE=kernels_avx512 "-DCPU_NAME=\"avx512\"")
    include(CheckCCompilerFlag)
    check_c_compiler_flag(-mavx512bf16 TARE_HAVE_AVX512BF16)
    if(TARE_HAVE_AVX512BF16)
        kernels_build(avx512bf16 cpu/cpu.c ${KERNELS_OPTIMIZE} ${KERNELS_AVX512BF16}
                      -DCPU_DOT_CHECK=kernels_avx512bf16_check -DCPU_DOT_FASTER=kernels_avx512bf16_faster -DCPU_TABLE=kernels_avx512bf16 "-DCPU_NAME=\"avx512bf16\"")
        target_compile_definitions(tare_kernels PRIVATE TARE_CPU_DOT)
    endif()
    kernels_build(tiles_avx2 tiles/tiles.c ${KERNELS_OPTIMIZE} ${KERNELS_AVX2} -DTILES_TABLE=kernels_tiles_avx2 "-DTILES_NAME=\"amx-avx2\"")
    kernels_build(tiles_avx512 tiles/tiles.c ${KERNELS_OPTIMIZE} ${KERNELS_AVX512} -DTILES_TABLE=kernels_tiles_avx512
                  "-DTILES_NAME=\"amx-avx512\"")
    check_c_compiler_flag(-mamx-bf16 TARE_HAVE_AMX)
    if(TARE_HAVE_AMX AND TARE_HAVE_AVX512BF16)
        kernels_build(tiles_amx tiles/tiles.c ${KERNELS_OPTIMIZE} ${KERNELS_AVX512BF16} -mamx-tile -mamx-bf16 -DTILES_AMX
                      -DTILES_TABLE=kernels_tiles_amx "-DTILES_NAME=\"amx\"")
        target_compile_definitions(tare_kernels PRIVATE TARE_CPU_AMX)
    endif()
    target_compile_definitions(tare_kernels PRIVATE TARE_CPU_SIMD)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
        set(KERNELS_NEON ${KERNELS_NEON_GCC})
    endif()
    kernels_build(neon cpu/cpu.c ${KERNELS_OPTIMIZE} ${KERNELS_NEON} -DCPU_TABLE=kernels_neon "-DCPU_NAME=\"neon\"")
    kernels_build(tiles_neon tiles/tiles.c ${KERNELS_OPTIMIZE} -DTILES_TABLE=kernels_tiles_neon "-DTILES_NAME=\"amx-neon\"")
endif()
