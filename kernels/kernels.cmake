# The CPU backends. ref/ref.c and cpu/cpu.c are whole backends in one translation unit each, built once per instruction set.
set(KERNELS ${CMAKE_CURRENT_LIST_DIR})
function(kernels_build NAME SOURCE)
    add_library(tare_kernels_${NAME} OBJECT ${KERNELS}/${SOURCE})
    target_link_libraries(tare_kernels_${NAME} PRIVATE tare_base)
    target_compile_options(tare_kernels_${NAME} PRIVATE ${ARGN})
    target_sources(tare_kernels PRIVATE $<TARGET_OBJECTS:tare_kernels_${NAME}>)
endfunction()

add_library(tare_kernels STATIC ${KERNELS}/dispatch.c)
target_link_libraries(tare_kernels PUBLIC tare_base)
# emu512 runs the 16-lane code on AVX2, so that a machine without AVX-512 tests its indexing. For the kernels' own tests alone: its tiles do not fit the
# registers, and a compiler spends a minute on them.
option(TARE_EMULATE_AVX512 "build the emulated AVX-512 kernels for the tests" OFF)
# Every check of a sanitizer in every inlined vector operation: at -O3 that takes a compiler many minutes.
set(KERNELS_OPTIMIZE -O3)
if(TARE_SANITIZE)
    set(KERNELS_OPTIMIZE -O1)
endif()
kernels_build(ref_any ref/ref.c -DREF_TABLE=kernels_ref_any)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    kernels_build(ref_fma ref/ref.c -DREF_TABLE=kernels_ref_fma -mavx2 -mfma)
    kernels_build(avx2 cpu/cpu.c ${KERNELS_OPTIMIZE} -mavx2 -mfma -DCPU_TABLE=kernels_avx2 "-DCPU_NAME=\"avx2\"")
    if(TARE_EMULATE_AVX512)
        kernels_build(emu512 cpu/cpu.c -O1 -mavx2 -mfma -DCPU_TILE_512 -DCPU_TABLE=kernels_emu512 "-DCPU_NAME=\"emu512\"")
        kernels_build(emu512bf16 cpu/cpu.c -O1 -mavx2 -mfma -DCPU_TILE_512 -DCPU_DOT -DCPU_DOT_CHECK=kernels_emu512bf16_check
                      -DCPU_TABLE=kernels_emu512bf16 "-DCPU_NAME=\"emu512bf16\"")
        target_compile_definitions(tare_kernels PUBLIC TARE_CPU_EMU512)
    endif()
    kernels_build(avx512 cpu/cpu.c ${KERNELS_OPTIMIZE} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mfma -DCPU_TABLE=kernels_avx512 "-DCPU_NAME=\"avx512\"")
    include(CheckCCompilerFlag)
    check_c_compiler_flag(-mavx512bf16 TARE_HAVE_AVX512BF16)
    if(TARE_HAVE_AVX512BF16)
        kernels_build(avx512bf16 cpu/cpu.c ${KERNELS_OPTIMIZE} -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512bf16 -mfma -DCPU_DOT
                      -DCPU_DOT_CHECK=kernels_avx512bf16_check -DCPU_TABLE=kernels_avx512bf16 "-DCPU_NAME=\"avx512bf16\"")
        target_compile_definitions(tare_kernels PRIVATE TARE_CPU_DOT)
    endif()
    target_compile_definitions(tare_kernels PRIVATE TARE_CPU_SIMD)
endif()
