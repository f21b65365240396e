# Flags, the precompiled header, and the two functions by which every folder becomes a target.
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(fmt REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)

add_compile_options(-Wall -Wextra -Werror -Wno-unused-parameter -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # False positives of g++ 12 inside its own and Boost's headers at -O2.
  add_compile_options(-Wno-restrict -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-array-bounds -Wno-dangling-pointer -Wno-free-nonheap-object -Wno-stringop-overread)
endif()
if(BERTH_SANITIZE)
  add_compile_options(-fsanitize=${BERTH_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${BERTH_SANITIZE})
  if(BERTH_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-tsan)  # The one fence orders a reference count that TSan knows by itself.
  endif()
endif()

if(BERTH_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -Wno-error -Wno-everything)
  add_link_options(-fsanitize=address,undefined)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      CCACHE_PCH_EXTSUM=true CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=true ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_link_options(-fuse-ld=mold)
endif()

# One precompiled header for everything, made by hand so that ccache can key on its preprocessed text (.sum): two checkouts then share objects.
set(BERTH_PCH_DIR ${CMAKE_BINARY_DIR}/pch)
set(BERTH_PCH_FLAGS "${CMAKE_CXX_FLAGS}")
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type_upper)
separate_arguments(BERTH_PCH_FLAGS UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type_upper}}")
if(BERTH_SANITIZE)
  list(APPEND BERTH_PCH_FLAGS -fsanitize=${BERTH_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  file(MAKE_DIRECTORY ${BERTH_PCH_DIR})
  file(COPY_FILE ${CMAKE_SOURCE_DIR}/cmake/pch.h ${BERTH_PCH_DIR}/pch.h ONLY_IF_DIFFERENT)
  add_custom_command(
    OUTPUT ${BERTH_PCH_DIR}/pch.h.gch
    COMMAND ${CMAKE_COMMAND} -E copy_if_different ${CMAKE_SOURCE_DIR}/cmake/pch.h ${BERTH_PCH_DIR}/pch.h
    COMMAND ${CMAKE_CXX_COMPILER} -std=c++23 ${BERTH_PCH_FLAGS} -DFMT_SHARED -DBOOST_CONTAINER_DYN_LINK -DBOOST_CONTAINER_NO_LIB -DBOOST_JSON_DYN_LINK -DBOOST_JSON_NO_LIB -x c++-header pch.h -w -o pch.h.gch
    COMMAND sh -c "sha256sum pch.h | cut -c1-64 > pch.h.gch.sum"
    DEPENDS ${CMAKE_SOURCE_DIR}/cmake/pch.h
    WORKING_DIRECTORY ${BERTH_PCH_DIR} VERBATIM)
  add_custom_target(berth_pch DEPENDS ${BERTH_PCH_DIR}/pch.h.gch)
endif()

add_library(berth_flags INTERFACE)
target_include_directories(berth_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(berth_flags INTERFACE Boost::json fmt::fmt Threads::Threads)
if(TARGET berth_pch)
  target_compile_options(berth_flags INTERFACE -include ${BERTH_PCH_DIR}/pch.h -fpch-preprocess -Winvalid-pch)
else()
  target_compile_options(berth_flags INTERFACE -include ${CMAKE_SOURCE_DIR}/cmake/pch.h)
endif()

# berth_library(NAME DEPS...): every .cpp below src/NAME, one static library, linking only the named folders.
function(berth_library name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  list(TRANSFORM ARGN PREPEND berth_ OUTPUT_VARIABLE deps)
  if(sources)
    add_library(berth_${name} STATIC ${sources})
    target_link_libraries(berth_${name} PUBLIC berth_flags ${deps})
    if(TARGET berth_pch)
      add_dependencies(berth_${name} berth_pch)
    endif()
  else()
    add_library(berth_${name} INTERFACE)
    target_link_libraries(berth_${name} INTERFACE berth_flags ${deps})
  endif()
  if(EXISTS ${CMAKE_SOURCE_DIR}/src/${name}/extra.cmake)
    include(${CMAKE_SOURCE_DIR}/src/${name}/extra.cmake)
  endif()
endfunction()

# berth_test(FOLDER DEPS...): every .cpp below tests/FOLDER as one GoogleTest binary, registered whole with CTest.
function(berth_test name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${name}/*.cpp)
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources})
  target_link_libraries(test_${name} PRIVATE ${ARGN} berth_test_support GTest::gtest GTest::gtest_main)
  target_include_directories(test_${name} PRIVATE ${CMAKE_SOURCE_DIR})
  if(TARGET berth_pch)
    add_dependencies(test_${name} berth_pch)
  endif()
  add_test(NAME ${name} COMMAND test_${name} --gtest_brief=1)
endfunction()
