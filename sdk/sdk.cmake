# What scheduler plugins are built with, in the tree and out of it: the stamp, the checks, and what `cmake --install` puts where find_package(berth)
# finds it.
file(GLOB_RECURSE sdk_headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/base/*.h ${CMAKE_SOURCE_DIR}/src/model/*.h ${CMAKE_SOURCE_DIR}/src/cel/*.h
     ${CMAKE_SOURCE_DIR}/src/placement/*.h ${CMAKE_SOURCE_DIR}/sdk/include/*.h)
set(BERTH_SDK_GENERATED ${CMAKE_BINARY_DIR}/sdk/include)
add_custom_command(
  OUTPUT ${BERTH_SDK_GENERATED}/berth/plugin_abi.h
  COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} -DOUT=${BERTH_SDK_GENERATED}/berth/plugin_abi.h -DVERSION=${PROJECT_VERSION} -P
          ${CMAKE_SOURCE_DIR}/sdk/cmake/stamp.cmake
  DEPENDS ${sdk_headers} ${CMAKE_SOURCE_DIR}/sdk/cmake/stamp.cmake
  VERBATIM)
add_custom_target(berth_plugin_abi DEPENDS ${BERTH_SDK_GENERATED}/berth/plugin_abi.h)
target_include_directories(berth_cli PRIVATE ${CMAKE_SOURCE_DIR}/sdk/include ${BERTH_SDK_GENERATED})
add_dependencies(berth_cli berth_plugin_abi)

# Plugins find the engine in the executable that loads them.
set_target_properties(berth PROPERTIES ENABLE_EXPORTS ON)

file(GLOB sdk_testing CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/sdk/testing/*.cpp)
add_library(berth_plugin_testing STATIC ${sdk_testing})
target_include_directories(berth_plugin_testing PUBLIC ${CMAKE_SOURCE_DIR}/sdk/include ${BERTH_SDK_GENERATED})
target_link_libraries(berth_plugin_testing PUBLIC berth_placement)
add_dependencies(berth_plugin_testing berth_plugin_abi)
if(TARGET berth_pch)
  add_dependencies(berth_plugin_testing berth_pch)
endif()

# The example's replay of a GPU trace (examples/simulate/openb/run): the plugin's own file, on the engine.
add_executable(openb examples/simulate/openb/openb.cpp examples/simulate/openb/trace.cpp examples/plugin/gpu_share.cpp)
target_link_libraries(openb PRIVATE berth_plugin_testing berth_stored_pods ZLIB::ZLIB jemalloc)

add_custom_target(sdk DEPENDS berth berth_plugin_testing berth_placement berth_cel berth_model berth_base)

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(BERTH_INCLUDE ${CMAKE_INSTALL_INCLUDEDIR})
set(BERTH_BIN ${CMAKE_INSTALL_BINDIR})
set(BERTH_LIBRARIES ${CMAKE_INSTALL_LIBDIR}/berth)
set(BERTH_SDK_OPTIONS "")
set(BERTH_SDK_LINK_OPTIONS "")
if(BERTH_SANITIZE)
  set(BERTH_SDK_OPTIONS -fsanitize=${BERTH_SANITIZE})
  set(BERTH_SDK_LINK_OPTIONS -fsanitize=${BERTH_SANITIZE})
endif()
configure_package_config_file(${CMAKE_SOURCE_DIR}/sdk/cmake/berthConfig.cmake.in ${CMAKE_BINARY_DIR}/sdk/berthConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/berth PATH_VARS BERTH_INCLUDE BERTH_BIN BERTH_LIBRARIES)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/sdk/berthConfigVersion.cmake COMPATIBILITY ExactVersion)
install(TARGETS berth RUNTIME DESTINATION ${BERTH_BIN})
install(DIRECTORY src/base src/model src/cel src/placement DESTINATION ${BERTH_INCLUDE}/berth FILES_MATCHING PATTERN "*.h")
install(DIRECTORY sdk/include/berth DESTINATION ${BERTH_INCLUDE})
install(FILES ${BERTH_SDK_GENERATED}/berth/plugin_abi.h DESTINATION ${BERTH_INCLUDE}/berth)
install(TARGETS berth_plugin_testing berth_placement berth_cel berth_model berth_base ARCHIVE DESTINATION ${BERTH_LIBRARIES})
install(FILES ${CMAKE_BINARY_DIR}/sdk/berthConfig.cmake ${CMAKE_BINARY_DIR}/sdk/berthConfigVersion.cmake DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/berth)
