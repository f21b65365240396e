# The language's matches() is RE2's by definition.
find_library(RE2_LIBRARY re2 REQUIRED)
target_link_libraries(berth_cel PUBLIC ${RE2_LIBRARY})
