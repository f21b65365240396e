// Fuzz target: the scanner that reads metadata out of stored objects. On every text that the parser takes it must find what the document
// has; on all others it must end without reading beyond the text.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/json.h"
#include "base/json_scan.h"

namespace {

using namespace berth;

void check(bool claim, const char* what) {
  if (claim) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

void compare(std::string_view raw, const json::Value* value, const char* what) {
  if (value == nullptr) {
    // The document's reader counts null as missing.
    check(raw.empty() || raw == "null", what);
    return;
  }
  auto parsed = json::parse(raw);
  check(parsed.has_value() && json::equal(*parsed, *value), what);
  if (value->is_string()) check(json::unquote(raw) == json::as_view(*value), "unquoting");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // A copy of the exact size, so that a read behind the end is noticed.
  std::unique_ptr<char[]> copy(new char[size]);
  std::copy(data, data + size, copy.get());
  std::string_view text(copy.get(), size);
  static const json::PathScanner scanner({"a", "a.b", "metadata.name", "metadata"});
  std::array<std::string_view, 4> raw;
  bool scanned = scanner.scan(text, raw);
  std::vector<std::string> duplicates;
  auto document = json::parse(text, {.duplicates = &duplicates});
  if (!document || !document->is_object()) return 0;
  check(scanned, "a good text was refused");
  if (!duplicates.empty()) return 0;
  compare(raw[0], json::find(*document, "a"), "a");
  compare(raw[1], json::find(*document, {"a", "b"}), "a.b");
  compare(raw[2], json::find(*document, {"metadata", "name"}), "metadata.name");
  compare(raw[3], json::find(*document, "metadata"), "metadata");
  std::size_t members = 0;
  check(json::for_each_member(text, [&](std::string_view, std::string_view) { ++members; }), "members");
  check(members == document->get_object().size(), "the number of members");
  return 0;
}
