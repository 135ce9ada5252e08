# Writes the cases of a test program, as tests of ctest, to the file OUT. It runs after the program
# is built (tare_cases in tests.cmake); EMULATOR runs a program of another processor. The
# time-out only ends a hanging case: with twenty jobs per core the longest case took ten minutes.
set(ENV{TARE_TEST_LIST} 1)
execute_process(COMMAND ${EMULATOR} ${PROGRAM} OUTPUT_VARIABLE TEXT RESULT_VARIABLE STATUS)
string(REGEX MATCHALL "CASE [A-Za-z0-9_]+" CASES "${TEXT}")
if(STATUS OR NOT CASES)
    message(FATAL_ERROR "${PROGRAM}: does not name its cases (${STATUS}): ${TEXT}")
endif()
set(LINES)
set(RUN)
foreach(WORD ${EMULATOR})
    string(APPEND RUN "\"${WORD}\" ")
endforeach()
foreach(CASE ${CASES})
    string(REPLACE "CASE " "" CASE ${CASE})
    set(NAME "${PREFIX}.${CASE}")
    string(APPEND LINES "add_test(\"${NAME}\" ${RUN}\"${PROGRAM}\")\nset_tests_properties(\"${NAME}\" PROPERTIES ENVIRONMENT \"${ENVIRONMENT};TARE_TEST_CASE=${CASE}\" "
        "SKIP_RETURN_CODE 77 TIMEOUT 1800 RUN_SERIAL ${ALONE})\n")
endforeach()
file(WRITE ${OUT} "${LINES}")
