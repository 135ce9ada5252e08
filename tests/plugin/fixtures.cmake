# Plugins that break the contract, for the tests of the loader; and good ones beside them. They lie in BUILD/fixtures.
set(FIXTURES ${CMAKE_BINARY_DIR}/fixtures)
function(tare_fixture NAME FILE)
    add_library(fixture_${NAME} MODULE ${FILE})
    set_target_properties(fixture_${NAME} PROPERTIES PREFIX "" OUTPUT_NAME ${NAME} LIBRARY_OUTPUT_DIRECTORY ${FIXTURES}
        INCLUDE_DIRECTORIES ${CMAKE_SOURCE_DIR}/sdk/include)
    target_link_libraries(fixture_${NAME} PRIVATE m)
    string(TOUPPER ${NAME} UPPER)
    target_compile_definitions(fixture_${NAME} PRIVATE CASE=${NAME} CASE_${UPPER}=1)
    set_property(GLOBAL APPEND PROPERTY TARE_FIXTURES fixture_${NAME})
endfunction()

foreach(CASE good wrong_major no_entry refuses refuses_silently newer_minor short_plugin no_descriptors null_descriptor short_descriptor bad_kind bad_name
        bad_version no_summary no_table short_table huge_table null_member half_state collect_without_apply duplicate_names two_estimators param_stride
        duplicate_params bad_default bad_type bad_range no_choices no_default no_doc unknown_needs create_fails silent_failure endless_message unknown_status
        negative_size nan_advantage unwritten bad_confidence infinite_scale negative_weight past_end nan_sums changes_fp changes_locale leaves_bytes
        reads_too_much wants_refill metrics aborts hangs exits writes_state overwrites_sums counts_calls leaks_memory leaks_files takes_signals
        forgets_cluster segfaults trusts_state needless_records unknown_kind_beside grown_descriptor keeps_host new_locked other_locked tells_version)
    tare_fixture(${CASE} ${CMAKE_SOURCE_DIR}/tests/plugin/hostile/hostile.c)
endforeach()
tare_fixture(undefined_symbol ${CMAKE_SOURCE_DIR}/tests/plugin/hostile/hostile.c)
set_target_properties(fixture_undefined_symbol PROPERTIES COMPILE_DEFINITIONS "CASE=good;CASE_UNDEFINED_SYMBOL=1")
tare_fixture(verdicts ${CMAKE_SOURCE_DIR}/tests/plugin/hostile/verdicts.c)
get_property(TARE_FIXTURES GLOBAL PROPERTY TARE_FIXTURES)
add_custom_target(fixtures ALL DEPENDS ${TARE_FIXTURES})
