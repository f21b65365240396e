// Files that volumes make of secrets, config maps, tokens and the pod itself (validateProjectionSources, validateDownwardAPIVolumeSource).
#include <set>

#include "model/validation/volume_sources.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_int;
using json::get_string;
using Strings = std::vector<std::string_view>;

void downward_items(const Value& source, const Path& at, Errors& errors) {
  static const Strings kFields = {"metadata.annotations", "metadata.labels", "metadata.name", "metadata.namespace", "metadata.uid"};
  for (const Value& item : get_array(source, {"items"})) {  // Kubernetes names the source, not the item.
    const std::string_view path = get_string(item, {"path"});
    if (path.empty()) errors.required(at / "path");
    local_path(path, at / "path", errors);
    const Value* field = json::find(item, "fieldRef");
    const Value* resource = json::find(item, "resourceFieldRef");
    if (field != nullptr) {
      field_reference(*field, kFields, at / "fieldRef", errors);
      if (resource != nullptr) errors.invalid(at, "resource", "fieldRef and resourceFieldRef can not be specified simultaneously");
    } else if (resource != nullptr) {
      resource_field_reference(*resource, at / "resourceFieldRef", errors, true);
    } else {
      errors.required(at, "one of fieldRef and resourceFieldRef is required");
    }
    file_mode(item, "mode", at, errors);
  }
}

/// Tells of every file that two projections write; `shown` is what Kubernetes shows of it.
class Files {
 public:
  Files(const Path& at, Errors& errors) : at_(at), errors_(errors) {}
  void add(std::string_view path, std::string_view shown) {
    if (!path.empty() && !paths_.insert(path).second) errors_.invalid(at_, shown, "conflicting duplicate paths");
  }

 private:
  const Path& at_;
  Errors& errors_;
  std::set<std::string_view> paths_;
};

void token(const Value& source, const Path& volume_at, const Path& at, Errors& errors) {
  if (const Value* seconds = json::find(source, "expirationSeconds")) {
    if (get_int(source, {"expirationSeconds"}) < 600)
      errors.invalid(at / "expirationSeconds", *seconds, "may not specify a duration less than 10 minutes");
    if (get_int(source, {"expirationSeconds"}) > (std::int64_t{1} << 32))
      errors.invalid(at / "expirationSeconds", *seconds, "may not specify a duration larger than 2^32 seconds");
  }
  // Kubernetes names the volume, not the projection.
  if (const std::string_view path = get_string(source, {"path"}); path.empty())
    errors.required(volume_at / "path");
  else
    local_path(path, volume_at / "path", errors);
}

}  // namespace

void downward_api_volume(const Value& source, const Path& at, Errors& errors) {
  file_mode(source, "defaultMode", at, errors);
  downward_items(source, at, errors);
}

void projected_volume(const Value& source, const Path& at, Errors& errors) {
  file_mode(source, "defaultMode", at, errors);
  Files files(at, errors);
  const Path sources = at / "sources";
  std::size_t i = 0;
  for (const Value& projection : get_array(source, {"sources"})) {
    const Path one = sources[i++];
    int count = 0;
    for (const char* key : {"secret", "configMap"})
      if (const Value* map = json::find(projection, key)) {
        ++count;
        const Path here = one / key;
        const std::string_view name = get_string(*map, {"name"});
        if (name.empty()) errors.required(here / "name");
        key_items(*map, here, errors);
        for (const Value& item : get_array(*map, {"items"})) files.add(get_string(item, {"path"}), name);
      }
    if (const Value* downward = json::find(projection, "downwardAPI")) {
      ++count;
      downward_items(*downward, one / "downwardAPI", errors);
      for (const Value& item : get_array(*downward, {"items"})) files.add(get_string(item, {"path"}), get_string(item, {"path"}));
    }
    if (const Value* account = json::find(projection, "serviceAccountToken")) {
      ++count;
      token(*account, at, one / "serviceAccountToken", errors);
    }
    if (count > 1) errors.forbidden(one, "may not specify more than 1 volume type per source");
  }
}

}  // namespace berth::model::validation
