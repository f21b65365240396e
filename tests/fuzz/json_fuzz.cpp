// Fuzz target: JSON documents. What parses must survive a round trip, and the scanner must agree with the parser.
#include <cstdio>
#include <cstdlib>

#include "base/json.h"
#include "base/json_scan.h"

namespace {

using namespace berth;

void check(bool claim, const char* what) {
  if (claim) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  static const json::PathScanner scanner({"a", "b.c", "metadata.name"});
  std::array<std::string_view, 3> values;
  const bool scanned = scanner.scan(text, values);
  std::vector<std::string> duplicates;
  const auto parsed = json::parse(text, {.max_depth = 100, .duplicates = &duplicates});
  if (!parsed) return 0;
  const auto again = json::parse(json::serialize(*parsed));
  check(again && json::equal(*again, *parsed), "a serialised document reads differently");
  check(json::serialize(*again) == json::serialize(*parsed), "serialising is not stable");
  if (!parsed->is_object()) return 0;
  check(scanned, "the scanner refuses what the parser reads");
  if (!duplicates.empty()) return 0;
  const auto* name = json::find(*parsed, {"metadata", "name"});
  if (name != nullptr && name->is_string()) check(json::unquote(values[2]) == json::as_view(*name), "the scanner reads another string");
  const auto* a = json::find(*parsed, "a");
  if (a != nullptr) {
    const auto slice = json::parse(values[0]);
    check(slice && json::equal(*slice, *a), "the scanner reads another value");
  }
  return 0;
}
