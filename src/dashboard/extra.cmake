# The page, built from web/ and embedded: with npm, and with the packages that web/package-lock.json names. Without npm berth is built without it.
find_program(BERTH_NPM npm)
set(page_files ${CMAKE_BINARY_DIR}/web/page_files.cpp)
if(BERTH_NPM)
  file(GLOB_RECURSE web_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/web/src/*)
  list(FILTER web_sources EXCLUDE REGEX "\\.test\\.ts$")
  add_custom_command(
    OUTPUT ${page_files}
    COMMAND ${CMAKE_SOURCE_DIR}/web/build.sh ${page_files}
    DEPENDS ${web_sources} ${CMAKE_SOURCE_DIR}/web/build.sh ${CMAKE_SOURCE_DIR}/web/build.mjs ${CMAKE_SOURCE_DIR}/web/package-lock.json
    COMMENT "Building the dashboard's page" VERBATIM)
else()
  message(STATUS "npm is not there: berth is built without the dashboard's page")
  file(CONFIGURE OUTPUT ${page_files} CONTENT "#include \"dashboard/page.h\"\n\nstd::span<const berth::dashboard::PageFile> berth::dashboard::page_files() { return {}; }\n" @ONLY)
endif()
target_sources(berth_dashboard PRIVATE ${page_files})
