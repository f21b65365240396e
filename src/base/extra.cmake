find_library(YAML_LIBRARY yaml REQUIRED)
find_library(ZSTD_LIBRARY zstd REQUIRED)
target_link_libraries(berth_base PUBLIC ${YAML_LIBRARY} ${ZSTD_LIBRARY})
