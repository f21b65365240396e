# Patterns are RE2's, linear in the text: those of validation, and matches() of CEL by definition.
find_library(RE2_LIBRARY re2 REQUIRED)
target_link_libraries(berth_model PUBLIC ${RE2_LIBRARY})
# The facts of the kinds' fields, text files beside the records, become string literals: the binary needs no files, the build no tools.
set(facts_functions "")
foreach(fact schema zeros named shapes enums descriptions)
  file(GLOB fact_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/model/kinds/*/*.${fact} ${CMAKE_SOURCE_DIR}/src/model/schema/*.${fact})
  set(literals "")
  foreach(fact_file ${fact_files})
    file(READ ${fact_file} content)
    string(APPEND literals "      R\"fact(${content})fact\",\n")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${fact_file})
  endforeach()
  string(APPEND facts_functions "
const std::vector<std::string_view>& ${fact}_texts() {
  static const std::vector<std::string_view> texts = {
${literals}  };
  return texts;
}
")
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/schema_text.cpp @ONLY CONTENT
"#include \"model/schema_text.h\"

namespace berth::model {
${facts_functions}
}  // namespace berth::model
")
target_sources(berth_model PRIVATE ${CMAKE_BINARY_DIR}/generated/schema_text.cpp)
