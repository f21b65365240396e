target_link_libraries(berth_store PRIVATE SQLite::SQLite3)
