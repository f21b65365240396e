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

/// Boost.JSON 1.81 reads long fractions to within one unit in the last place: what is printed shortest may come back as a neighbour.
bool has_double(const json::Value& value) {
  if (const auto* object = value.if_object())
    return std::any_of(object->begin(), object->end(), [](const auto& member) { return has_double(member.value()); });
  if (const auto* array = value.if_array()) return std::any_of(array->begin(), array->end(), has_double);
  return value.is_double();
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
  if (has_double(*parsed)) return 0;
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
