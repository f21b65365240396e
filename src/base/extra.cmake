target_link_libraries(berth_base PUBLIC yaml-cpp)
