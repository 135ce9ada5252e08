target_link_libraries(${PLUGIN} PRIVATE pcre2-8 jansson utf8proc)
