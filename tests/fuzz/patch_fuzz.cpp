// Fuzz target: the three patches. Input: a document, a newline, a patch. Whatever happens to the document, it stays one that prints and
// parses; a merge patch applied twice is the same as once.
#include <cstdio>
#include <cstdlib>

#include "apiserver/patch/json_patch.h"
#include "apiserver/patch/strategic_merge.h"
#include "model/kinds.h"

namespace {

void check(bool claim, const char* what) {
  if (claim) return;
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* bytes, std::size_t size) {
  using namespace berth;
  using namespace berth::apiserver;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);
  const auto newline = text.find('\n');
  if (newline == std::string_view::npos) return 0;
  auto target = json::parse(text.substr(0, newline));
  auto patch = json::parse(text.substr(newline + 1));
  if (!target || !patch) return 0;
  if (auto operations = patch::parse_json_patch(*patch)) {
    json::Value copy = *target;
    if (patch::apply_json_patch(copy, *operations))
      check(json::parse(json::serialize(copy)).has_value(), "a patched document does not print as JSON");
  }
  json::Value once = *target;
  patch::apply_merge_patch(once, *patch);
  json::Value twice = once;
  patch::apply_merge_patch(twice, *patch);
  check(json::equal(once, twice), "a merge patch applied again changes something");
  static const Shape pod = Shape::of(*model::find_kind("", "v1", "Pod"));
  json::Value merged = *target;
  if (target->is_object() && patch->is_object() && patch::apply_strategic_merge(pod, merged, *patch))
    check(json::parse(json::serialize(merged)).has_value(), "a merged document does not print as JSON");
  return 0;
}
