// Fuzz target: label and field selectors. What parses must print as something that parses to the same.
#include <cstdio>
#include <cstdlib>

#include "model/selector.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  using namespace berth::model;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  (void)FieldSelector::parse(text);
  const auto selector = Selector::parse(text);
  if (!selector) return 0;
  const auto printed = selector->to_string();
  const auto again = Selector::parse(printed);
  if (again && *again == *selector) return 0;
  std::fprintf(stderr, "broken: prints as \"%s\"\n", printed.c_str());
  std::abort();
}
