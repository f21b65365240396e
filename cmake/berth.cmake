# Flags, the precompiled header, and the two functions by which every folder becomes a target.
find_package(Threads REQUIRED)
find_package(OpenSSL REQUIRED)
find_package(Boost 1.81 REQUIRED COMPONENTS json)
find_package(fmt REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)

# g++ 12 takes a member that a designated initializer leaves out, because its default is meant, for a forgotten one. `make tidy` asks clang, which
# knows the difference.
add_compile_options(-Wall -Wextra -Werror -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # What g++ 12 finds by following values at -O2 comes from inside its own headers (strings that are put together, optionals) and is wrong.
  add_compile_options(-Wno-array-bounds -Wno-maybe-uninitialized -Wno-stringop-overflow -Wno-stringop-overread -Wno-restrict
                      -Wno-dangling-pointer -Wno-free-nonheap-object)
endif()
if(BERTH_SANITIZE)
  add_compile_options(-fsanitize=${BERTH_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${BERTH_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-nonnull)  # As above, through instrumented code.
  endif()
  if(BERTH_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-Wno-tsan)  # The one fence orders a reference count that TSan knows by itself.
  endif()
endif()

if(BERTH_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -Wno-error -Wno-everything)
  add_link_options(-fsanitize=address,undefined)
endif()

# The compiler's own garbage collection costs a sixth of its time, and a compilation of ours stays below a gigabyte without it.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options("SHELL:--param ggc-min-heapsize=1048576" "SHELL:--param ggc-min-expand=200")
endif()

# Several sources of a folder in one compilation: a third of the processor time of a build from nothing.
option(BERTH_UNITY "Compile several sources of a folder at once" ON)
set(BERTH_UNITY_BATCH 8)

find_program(CCACHE ccache)
if(CCACHE)
  # Not include_file_mtime: a header that is edited while it is compiled would leave the old object under the new header's name.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_PCH_EXTSUM=true
      CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=true ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_link_options(-fuse-ld=mold)
endif()

# Precompiled headers, one for the product and one for tests, made by hand so that ccache can key on their preprocessed text (.sum): two checkouts
# then share objects.
set(BERTH_PCH_DIR ${CMAKE_BINARY_DIR}/pch)
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type_upper)
separate_arguments(BERTH_PCH_FLAGS UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type_upper}}")
if(BERTH_SANITIZE)
  list(APPEND BERTH_PCH_FLAGS -fsanitize=${BERTH_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
endif()
list(APPEND BERTH_PCH_FLAGS -DFMT_SHARED -DBOOST_CONTAINER_DYN_LINK -DBOOST_CONTAINER_NO_LIB -DBOOST_JSON_DYN_LINK -DBOOST_JSON_NO_LIB)
# Further arguments: definitions with which the header is used.
function(berth_precompile header)
  # Copied here: the commands of both headers would copy the same file at the same time.
  configure_file(${CMAKE_SOURCE_DIR}/cmake/${header} ${BERTH_PCH_DIR}/${header} COPYONLY)
  add_custom_command(
    OUTPUT ${BERTH_PCH_DIR}/${header}.gch
    COMMAND ${CMAKE_CXX_COMPILER} -std=c++23 ${BERTH_PCH_FLAGS} ${ARGN} -x c++-header ${header} -w -o ${header}.gch
    COMMAND sh -c "cat pch.h ${header} | sha256sum | cut -c1-64 > ${header}.gch.sum"
    DEPENDS ${BERTH_PCH_DIR}/pch.h ${BERTH_PCH_DIR}/${header}
    WORKING_DIRECTORY ${BERTH_PCH_DIR} VERBATIM)
  string(REPLACE ".h" "" name ${header})
  add_custom_target(berth_${name} DEPENDS ${BERTH_PCH_DIR}/${header}.gch)
endfunction()

add_library(berth_flags INTERFACE)
target_include_directories(berth_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(berth_flags INTERFACE Boost::json fmt::fmt Threads::Threads)
# A target's own property BERTH_PCH names its header.
set(chosen_pch "$<IF:$<BOOL:$<TARGET_PROPERTY:BERTH_PCH>>,$<TARGET_PROPERTY:BERTH_PCH>,pch.h>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  file(MAKE_DIRECTORY ${BERTH_PCH_DIR})
  berth_precompile(pch.h)
  berth_precompile(pch_tests.h -DGTEST_HAS_PTHREAD=1)
  target_compile_options(berth_flags INTERFACE -include ${BERTH_PCH_DIR}/${chosen_pch} -fpch-preprocess -Winvalid-pch)
else()
  target_compile_options(berth_flags INTERFACE -include ${CMAKE_SOURCE_DIR}/cmake/${chosen_pch})
endif()

# A folder whose code waits for people, not for pods, is compiled faster.
set(BERTH_COLD_FOLDERS cli whatif dashboard)

# berth_unite(NAME LIST): replaces the sources in LIST by files that include up to BERTH_UNITY_BATCH of them, each of one subfolder, so that a new
# file moves few others. They name sources relative to src/ (CMake's own unity build writes absolute paths, which ccache cannot share).
# What a folder lists in BERTH_ALONE_<NAME> (paths below src/) stays alone.
function(berth_unite name list)
  set(united "")
  set(folders "")
  foreach(source IN LISTS ${list})
    file(RELATIVE_PATH path ${CMAKE_SOURCE_DIR}/src ${source})
    if(path IN_LIST BERTH_ALONE_${name})
      list(APPEND united ${source})
    else()
      get_filename_component(folder ${path} DIRECTORY)
      list(APPEND folders ${folder})
      list(APPEND paths_in_${folder} ${path})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    list(SORT paths_in_${folder})
    set(number 0)
    while(paths_in_${folder})
      list(SUBLIST paths_in_${folder} 0 ${BERTH_UNITY_BATCH} batch)
      list(REMOVE_ITEM paths_in_${folder} ${batch})
      list(TRANSFORM batch REPLACE "(.+)" "#include \"\\1\"\n")
      # A file's own types are "of an anonymous namespace of an included file" to this warning.
      string(JOIN "" content "#pragma GCC diagnostic ignored \"-Wsubobject-linkage\"\n" ${batch})
      string(REPLACE "/" "_" file_name "${folder}_${number}.cpp")
      file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/unity/${file_name} CONTENT "${content}" @ONLY)
      list(APPEND united ${CMAKE_BINARY_DIR}/unity/${file_name})
      math(EXPR number "${number} + 1")
    endwhile()
  endforeach()
  set(${list} ${united} PARENT_SCOPE)
endfunction()

# berth_library(NAME DEPS...): every .cpp below src/NAME, one static library, linking only the named folders.
function(berth_library name)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  list(TRANSFORM ARGN PREPEND berth_ OUTPUT_VARIABLE deps)
  if(sources)
    if(BERTH_UNITY)
      berth_unite(${name} sources)
    endif()
    add_library(berth_${name} STATIC ${sources})
    target_link_libraries(berth_${name} PUBLIC berth_flags ${deps})
    if(name IN_LIST BERTH_COLD_FOLDERS AND CMAKE_BUILD_TYPE STREQUAL "Release")
      target_compile_options(berth_${name} PRIVATE -O1)
    endif()
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

# berth_text(FOLDER FUNCTION FILE): the text of src/FOLDER/FILE, as what berth::FOLDER::FUNCTION() gives: the binary needs no files, the
# build no tools.
function(berth_text name function file)
  set(path ${CMAKE_SOURCE_DIR}/src/${name}/${file})
  file(READ ${path} content)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${path})
  # A literal of more than 64 kB is not portable: one for each document.
  string(REGEX REPLACE "\n---\n" ")text\" \"\\\\n---\\\\n\" R\"text(" content "${content}")
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/${name}_${function}.cpp @ONLY CONTENT
"#include <string_view>

namespace berth::${name} {
std::string_view ${function}();
std::string_view ${function}() { return R\"text(${content})text\"; }
}  // namespace berth::${name}
")
  target_sources(berth_${name} PRIVATE ${CMAKE_BINARY_DIR}/generated/${name}_${function}.cpp)
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
  set_target_properties(test_${name} PROPERTIES BERTH_PCH pch_tests.h)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(test_${name} PRIVATE -O1)
  endif()
  if(TARGET berth_pch_tests)
    add_dependencies(test_${name} berth_pch_tests)
  endif()
  add_test(NAME ${name} COMMAND test_${name} --gtest_brief=1)
endfunction()
