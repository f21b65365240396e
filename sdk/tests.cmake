# The tests of what sdk.cmake makes; after tests/.
target_link_libraries(test_placement PRIVATE berth_plugin_testing)

# The example plugin, with its own test.
add_executable(test_gpu_share examples/plugin/gpu_share.cpp examples/plugin/gpu_share_test.cpp)
target_link_libraries(test_gpu_share PRIVATE berth_plugin_testing GTest::gtest GTest::gtest_main)
set_target_properties(test_gpu_share PROPERTIES BERTH_PCH pch_tests.h)
if(TARGET berth_pch_tests)
  add_dependencies(test_gpu_share berth_pch_tests)
endif()
add_test(NAME gpu_share COMMAND test_gpu_share --gtest_brief=1)
