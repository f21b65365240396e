find_library(YAML_LIBRARY yaml REQUIRED)
target_link_libraries(berth_base PUBLIC ${YAML_LIBRARY})
