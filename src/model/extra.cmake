# The field tables become string literals: the binary needs no files, the build no tools.
file(GLOB schema_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/model/schema/*.schema)
set(schema_literals "")
foreach(schema_file ${schema_files})
  file(READ ${schema_file} schema_content)
  string(APPEND schema_literals "      R\"schema(${schema_content})schema\",\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${schema_file})
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/schema_text.cpp @ONLY CONTENT
"#include \"model/schema_text.h\"

namespace berth::model {

const std::vector<std::string_view>& schema_texts() {
  static const std::vector<std::string_view> texts = {
${schema_literals}  };
  return texts;
}

}  // namespace berth::model
")
target_sources(berth_model PRIVATE ${CMAKE_BINARY_DIR}/generated/schema_text.cpp)
