// Fuzz target: YAML documents. What parses must survive being printed and read again.
#include <cstdio>
#include <cstdlib>

#include "base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  using namespace berth;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto documents = json::parse_yaml_stream(text);
  if (!documents) return 0;
  for (const auto& document : *documents) {
    if (!document.is_object()) continue;  // what is printed is always an API object
    const auto printed = json::to_yaml(document);
    const auto again = json::parse_yaml(printed);
    if (again && json::equal(*again, document)) continue;
    std::fprintf(stderr, "broken: %s prints as\n%s\n%s\n", json::serialize(document).c_str(), printed.c_str(),
                 again ? json::serialize(*again).c_str() : again.error().message.c_str());
    std::abort();
  }
  return 0;
}
