# Plugins that break the contract, for the tests of the loader, and valid ones. They are built into
# BUILD/fixtures.
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
        bad_version no_summary no_table uncounted_params short_table huge_table null_member half_state collect_without_apply duplicate_names two_estimators param_stride
        duplicate_params bad_default bad_type bad_range no_choices no_default no_doc unknown_want no_state_version unknown_bits wants_twice wants_axis wants_stride create_fails silent_failure endless_message unknown_status
        negative_size nan_advantage unwritten bad_confidence infinite_scale negative_weight past_end nan_sums changes_fp changes_locale leaves_bytes
        reads_too_much wants_extra metrics aborts hangs exits exits_in_compute endless_save unknown_flags grows_size writes_state overwrites_sums counts_calls leaks_memory leaks_files takes_signals
        forgets_cluster segfaults trusts_state unknown_kind_beside grown_descriptor keeps_host new_locked other_locked renamed_locked tells_version
        reads_undeclared loses_prompts weight_by_call baseline_by_call scale_by_call confidence_by_call tokens_by_call extra_by_call weight_by_rank baseline_by_rank tokens_by_rank records_by_call weight_by_order prints prints_error leaves_thread signals_in_compute changes_folder leaks_heap infinite_at_end past_tokens past_record past_sums state_changes flushes_at_load
        column_by_rank ignores_nan)
    tare_fixture(${CASE} ${CMAKE_SOURCE_DIR}/tests/plugin/hostile/hostile.c)
endforeach()
foreach(CASE good_verifier first_verdict_only depends_on_neighbours drops_status verdict_by_wishes judges_by_call shares_buffer dies_of_row explains_nothing explains_half ignores_deadline overflows names_no_answer uses_by_call unknown_uses)
    tare_fixture(${CASE} ${CMAKE_SOURCE_DIR}/tests/plugin/hostile/verifier.c)
endforeach()
foreach(CASE waits swaps_tickets waits_too_long differs_when_waited_for never_judges keeps_views cancels_nothing unknown_state)
    tare_fixture(${CASE} ${CMAKE_SOURCE_DIR}/tests/plugin/hostile/waits.c)
endforeach()
foreach(CASE good_clusterer depends_on_batch nan_embedding distance_by_batch cluster_by_batch loses_fit takes_damage learns_in_assign name_by_call identity_by_instance shares_scratch)
    tare_fixture(${CASE} ${CMAKE_SOURCE_DIR}/tests/plugin/hostile/clusterer.c)
endforeach()
foreach(CASE good_objective own_kl pulls_at_zero slope_sign slope_in_clip slope_half slope_of_detached entropy_without_slope wrong_way learns_nothing value_unwritten
        value_infinite past_values past_marks past_annotated marks_two uses_neighbour reads_unwanted reads_logprob_early annotates_by_call computes_by_call
        annotates_no_number collects_over collects_nan writes_in_compute forgets_bound takes_short_state infinite_at_edge exits_in_objective)
    tare_fixture(${CASE} ${CMAKE_SOURCE_DIR}/tests/plugin/hostile/objective.c)
endforeach()
foreach(CASE good_curriculum row_unwritten row_past_end rollouts_none rollouts_over writes_past_rows writes_past_fates fate_three extra_negative
        chooses_by_call keeps_by_call writes_in_next writes_in_keep chooses_by_instance forgets_stride takes_short_course fails_on_unjudged)
    tare_fixture(${CASE} ${CMAKE_SOURCE_DIR}/tests/plugin/hostile/curriculum.c)
endforeach()
foreach(CASE good_environment says_special unknown_role unknown_end unknown_episode_verdict early_verdict infinite_reward episode_by_call keeps_episode shares_session
        loses_session takes_short_session says_parts spoils_card suggests_by_call changes_by_suggesting suggests_nothing)
    tare_fixture(${CASE} ${CMAKE_SOURCE_DIR}/tests/plugin/hostile/environment.c)
endforeach()
foreach(CASE reads_behind writes_behind compares_size compares_flags)
    tare_fixture(${CASE} ${CMAKE_SOURCE_DIR}/tests/plugin/hostile/hostile.c)
endforeach()
tare_fixture(undefined_symbol ${CMAKE_SOURCE_DIR}/tests/plugin/hostile/hostile.c)
set_target_properties(fixture_undefined_symbol PROPERTIES COMPILE_DEFINITIONS "CASE=good;CASE_UNDEFINED_SYMBOL=1")
foreach(CASE plain_texts old_key_is_a_key old_key_of_two old_key_twice old_key_invalid doc_of_two_lines unit_with_escape default_not_utf8 summary_of_two_lines
        about_of_two_lines about_not_utf8 choice_twice choice_without_doc field_of_secret identity_binary identity_of_two_lines identity_not_utf8 identity_endless
        identity_with_secret describes_secret saves_secret logs_secret fails_with_secret measures_secret measures_oddly selects_beyond writes_null writes_negative
        reads_on grows_at_load takes_half list_of_records describes_in_words describes_a_list describes_two describes_nothing)
    tare_fixture(${CASE} ${CMAKE_SOURCE_DIR}/tests/plugin/hostile/texts.c)
endforeach()
foreach(CASE needs_folder executable_stack)
    tare_fixture(${CASE} ${CMAKE_SOURCE_DIR}/tests/plugin/hostile/hostile.c)
    set_target_properties(fixture_${CASE} PROPERTIES COMPILE_DEFINITIONS "CASE=good")
endforeach()
target_link_options(fixture_needs_folder PRIVATE -Wl,-rpath,/opt/nowhere)
target_link_options(fixture_executable_stack PRIVATE -Wl,-z,execstack)
tare_fixture(facts ${CMAKE_SOURCE_DIR}/tests/plugin/facts.c)
tare_fixture(columns ${CMAKE_SOURCE_DIR}/tests/plugin/columns.c)
tare_fixture(steps ${CMAKE_SOURCE_DIR}/tests/plugin/steps.c)
tare_fixture(groups ${CMAKE_SOURCE_DIR}/tests/plugin/groups.c)
tare_fixture(answerless ${CMAKE_SOURCE_DIR}/tests/plugin/answerless.c)
tare_fixture(verdicts ${CMAKE_SOURCE_DIR}/tests/plugin/hostile/verdicts.c)
tare_fixture(tells_secret ${CMAKE_SOURCE_DIR}/tests/plugin/hostile/tells_secret.c)
tare_fixture(reaches ${CMAKE_SOURCE_DIR}/tests/plugin/hostile/reaches.c)
foreach(CASE skips_context counts_context reads_context spreads_context)
    tare_fixture(${CASE} ${CMAKE_SOURCE_DIR}/tests/plugin/hostile/context.c)
endforeach()
get_property(TARE_FIXTURES GLOBAL PROPERTY TARE_FIXTURES)
add_custom_target(fixtures ALL DEPENDS ${TARE_FIXTURES})
