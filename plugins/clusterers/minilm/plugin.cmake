target_sources(${PLUGIN} PRIVATE ${CMAKE_SOURCE_DIR}/plugins/clusterers/kmeans/safetensors.c)
target_link_libraries(${PLUGIN} PRIVATE jansson utf8proc)
