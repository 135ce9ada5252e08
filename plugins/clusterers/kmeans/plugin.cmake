target_link_libraries(${PLUGIN} PRIVATE jansson xxhash)
