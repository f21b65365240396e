# The kinds and policies that the component installs, as a string literal; deploy/ and `berth queues --definitions` show the same text.
set(definitions "")
foreach(part kinds policies)
  set(definitions_file ${CMAKE_SOURCE_DIR}/src/queues/definitions/${part}.yaml)
  file(READ ${definitions_file} content)
  # A literal of more than 64 kB is not portable: one for each document.
  string(REGEX REPLACE "\n---\n" ")yaml\" \"\\\\n---\\\\n\" R\"yaml(" content "${content}")
  string(APPEND definitions "std::string_view berth::queues::${part}_text() { return R\"yaml(${content})yaml\"; }\n")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${definitions_file})
endforeach()
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/queues_definitions.cpp @ONLY CONTENT "#include \"queues/definitions.h\"\n\n${definitions}")
target_sources(berth_queues PRIVATE ${CMAKE_BINARY_DIR}/generated/queues_definitions.cpp)
