// Volumes, claims, storage classes and CSI objects (pkg/apis/core/validation, pkg/apis/storage/validation).
#include <fmt/format.h>

#include "model/quantity.h"
#include "model/validation/volume_sources.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;
using Strings = std::vector<std::string_view>;

void access_modes(const Value& spec, const Path& at, std::string_view why_required, Errors& errors) {
  static const Strings kModes = {"ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"};
  const json::Array& modes = get_array(spec, {"accessModes"});
  if (modes.empty()) errors.required(at / "accessModes", why_required);
  bool is_one_pod = false, is_other = false;
  for (const Value& mode : modes) {
    const std::string_view text = mode.is_string() ? json::as_view(mode) : "";
    if (std::find(kModes.begin(), kModes.end(), text) == kModes.end()) errors.not_supported(at / "accessModes", text, kModes);
    is_one_pod = is_one_pod || text == "ReadWriteOncePod";
    is_other = is_other || (text != "ReadWriteOncePod" && std::find(kModes.begin(), kModes.end(), text) != kModes.end());
  }
  if (is_one_pod && is_other) errors.forbidden(at / "accessModes", "may not use ReadWriteOncePod with other access modes");
}

/// Topologies that a class is limited to: each term has distinct keys with distinct values, and no two terms are the same.
void allowed_topologies(const Value& doc, Errors& errors) {
  const Path at("allowedTopologies");
  std::vector<Value> terms;
  std::size_t i = 0;
  for (const Value& term : get_array(doc, {"allowedTopologies"})) {
    const Path one = at[i++];
    const Path expressions = one / "matchLabelExpressions";
    const Value list = get_array(term, {"matchLabelExpressions"});
    if (list.get_array().empty() || std::ranges::any_of(terms, [&](const Value& before) { return json::equal(before, list); }))
      errors.duplicate(expressions, Value(""));
    terms.push_back(list);
    std::set<std::string_view> keys;
    std::size_t k = 0;
    for (const Value& expression : list.get_array()) {
      const Path here = expressions[k++];
      const std::string_view key = get_string(expression, {"key"});
      if (const std::string why = check_qualified_name(key); !why.empty()) errors.invalid(here / "key", key, why);
      if (!keys.insert(key).second) errors.duplicate(here / "key", Value(key));
      const json::Array& values = get_array(expression, {"values"});
      if (values.empty()) errors.required(here / "values");
      const Path values_at = here / "values";
      std::set<std::string_view> seen;
      for (std::size_t v = 0; v < values.size(); ++v)
        if (!seen.insert(values[v].is_string() ? json::as_view(values[v]) : "").second) errors.duplicate(values_at[v], values[v]);
    }
  }
}

/// What a volume can be of.
constexpr std::string_view kSources[] = {"hostPath",
                                         "gcePersistentDisk",
                                         "awsElasticBlockStore",
                                         "glusterfs",
                                         "nfs",
                                         "iscsi",
                                         "rbd",
                                         "quobyte",
                                         "cephfs",
                                         "cinder",
                                         "fc",
                                         "flocker",
                                         "flexVolume",
                                         "azureFile",
                                         "vsphereVolume",
                                         "azureDisk",
                                         "portworxVolume",
                                         "scaleIO",
                                         "local",
                                         "storageos",
                                         "csi",
                                         "photonPersistentDisk"};

}  // namespace

void storage_class(const Value& doc, Errors& errors) {
  const Path root("");
  const std::string_view provisioner = get_string(doc, {"provisioner"});
  std::string lower(provisioner);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (provisioner.empty())
    errors.required(Path("provisioner"));
  else if (const std::string why = check_qualified_name(lower); !why.empty())
    errors.invalid(Path("provisioner"), provisioner, why);
  supported_value(doc, "reclaimPolicy", root, {"Delete", "Retain"}, errors);
  supported_value(doc, "volumeBindingMode", root, {"Immediate", "WaitForFirstConsumer"}, errors, true);
  allowed_topologies(doc, errors);
}

void volume(const Value& doc, Errors& errors) {
  const Path at("spec");
  static const Value kEmpty = json::Object();
  const Value* found = json::find(doc, "spec");
  const Value& spec = found == nullptr ? kEmpty : *found;
  access_modes(spec, at, {}, errors);
  const json::Object& capacity = get_object(spec, {"capacity"});
  if (capacity.empty()) errors.required(at / "capacity");
  const Path capacity_at = at / "capacity";
  if (capacity.size() != 1 || !capacity.contains("storage"))
    errors.not_supported_value(capacity_at, json::find(spec, "capacity") == nullptr ? Value(nullptr) : Value(capacity), {"storage"});
  for (const auto& [key, value] : capacity) {
    const auto amount = value.is_string() ? Quantity::parse(json::as_view(value)) : std::nullopt;
    const Path one = Path::map_key(capacity_at, {key.data(), key.size()});
    if (!amount) continue;
    if (amount->value() < 0) errors.invalid(one, Value(amount->value()), "must be a valid resource quantity");
    if (amount->sign() <= 0) errors.invalid(one, value, "must be greater than zero");
  }
  supported_value(spec, "persistentVolumeReclaimPolicy", at, {"Delete", "Recycle", "Retain"}, errors);
  persistent_volume_source(spec, at, errors);
  supported_value(spec, "volumeMode", at, {"Block", "Filesystem"}, errors, true);
  if (const std::string_view name = get_string(spec, {"storageClassName"}); !name.empty())
    if (const std::string why = check_dns1123_subdomain(name); !why.empty()) errors.invalid(at / "storageClassName", name, why);
  if (const Value* affinity = json::find(spec, "nodeAffinity")) {
    const Path here = at / "nodeAffinity";
    if (const Value* required = json::find(*affinity, "required"))
      node_selector(*required, here / "required", errors);
    else
      errors.required(here / "required", "must specify required node constraints");
  }
  const Value* attributes = json::find(spec, "volumeAttributesClassName");
  if (attributes == nullptr || !attributes->is_string()) return;
  if (attributes->get_string().empty())
    errors.required(at / "volumeAttributesClassName", "an empty string is disallowed");
  else if (const std::string why = check_dns1123_subdomain(json::as_view(*attributes)); !why.empty())
    errors.invalid(at / "volumeAttributesClassName", *attributes, why);
  if (json::find(spec, "csi") == nullptr) errors.required(at / "csi", "has to be specified when using volumeAttributesClassName");
}

void volume_update(const Value& old, const Value& doc, Errors& errors) {
  const Path at("spec");
  const bool same_source = std::ranges::all_of(kSources, [&](std::string_view source) {
    const Value *before = json::find(old, {"spec", source}), *after = json::find(doc, {"spec", source});
    return before == nullptr ? after == nullptr : after != nullptr && json::equal(*before, *after);
  });
  if (!same_source) errors.forbidden(at / "persistentvolumesource", "spec.persistentvolumesource is immutable after creation");
  immutable(old, doc, {"spec", "volumeMode"}, Path("volumeMode"), errors);
  if (json::find(old, {"spec", "nodeAffinity"}) != nullptr) immutable(old, doc, {"spec", "nodeAffinity"}, Path("nodeAffinity"), errors);
}

namespace {

/// dataSource or dataSourceRef.
void data_source(const Value& spec, std::string_view key, const Path& spec_at, Errors& errors) {
  const Value* source = json::find(spec, key);
  if (source == nullptr) return;
  const Path at = spec_at / key;
  const std::string_view kind = get_string(*source, {"kind"}), group = get_string(*source, {"apiGroup"});
  for (const char* name : {"name", "kind"})
    if (get_string(*source, {name}).empty()) errors.required(at / name);
  if (group.empty() && kind != "PersistentVolumeClaim")
    errors.invalid(at, kind, "must be 'PersistentVolumeClaim' when referencing the default apiGroup");
  if (const std::string why = group.empty() ? std::string() : check_dns1123_subdomain(group); !why.empty())
    errors.invalid(at / "apiGroup", group, why);
}

void claim_sources(const Value& spec, const Path& at, Errors& errors) {
  data_source(spec, "dataSource", at, errors);
  data_source(spec, "dataSourceRef", at, errors);
  const Value *source = json::find(spec, "dataSource"), *reference = json::find(spec, "dataSourceRef");
  if (source == nullptr || reference == nullptr) return;
  for (const char* key : {"apiGroup", "kind", "name"})
    if (get_string(*source, {key}) != get_string(*reference, {key})) {
      errors.invalid(at, Value(json::Object()), "must match dataSourceRef");
      break;
    }
}

}  // namespace

void claim_spec(const Value& holder, const Path& at, Errors& errors) {
  static const Value kEmpty = json::Object();
  const Value* found = json::find(holder, "spec");
  const Value& spec = found == nullptr ? kEmpty : *found;
  access_modes(spec, at, "at least 1 access mode is required", errors);
  const Path storage_at = at / "resources";
  const Path storage = Path::map_key(storage_at, "storage");
  const std::string_view text = get_string(spec, {"resources", "requests", "storage"});
  claim_sources(spec, at, errors);
  if (const std::string_view name = get_string(spec, {"volumeAttributesClassName"}); !name.empty())
    if (const std::string why = check_dns1123_subdomain(name); !why.empty()) errors.invalid(at / "volumeAttributesClassName", name, why);
  if (text.empty())
    errors.required(storage);
  else if (const auto quantity = Quantity::parse(text); quantity && quantity->sign() <= 0)
    errors.invalid(storage, text, "must be greater than zero");
  if (const Value* selector = json::find(spec, "selector")) label_selector(*selector, at / "selector", errors);
  if (const std::string_view name = get_string(spec, {"storageClassName"}); !name.empty())
    if (const std::string why = check_dns1123_subdomain(name); !why.empty()) errors.invalid(at / "storageClassName", name, why);
  supported_value(spec, "volumeMode", at, {"Block", "Filesystem"}, errors, true);
}

void claim_update(const Value& old, const Value& doc, Errors& errors) {
  Value a = get_object(old, {"spec"}), b = get_object(doc, {"spec"});
  for (Value* spec : {&a, &b}) {
    json::erase(*spec, {"resources"});
    json::erase(*spec, {"volumeAttributesClassName"});
  }
  if (get_string(old, {"spec", "volumeName"}).empty()) json::erase(b, {"volumeName"});
  if (get_string(old, {"spec", "storageClassName"}).empty()) json::erase(b, {"storageClassName"}), json::erase(a, {"storageClassName"});
  const Path at("spec");
  if (!json::equal(a, b))
    errors.forbidden(at, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims");
}

/// Plugins of nodes are named, and name the node in their own words.
void csi_node(const Value& doc, Errors& errors) {
  const Path spec("spec");
  const Path at = spec / "drivers";
  std::set<std::string_view> names;
  std::size_t i = 0;
  for (const Value& driver : get_array(doc, {"spec", "drivers"})) {
    const Path one = at[i++];
    const std::string_view name = get_string(driver, {"name"});
    csi_driver_name(name, one / "name", errors);
    if (!names.insert(name).second) errors.duplicate(one / "name", Value(name));
    const std::string_view id = get_string(driver, {"nodeID"});
    if (id.empty())
      errors.required(one / "nodeID");
    else if (id.size() > 256)
      errors.invalid(one / "nodeID", id, "must be 256 characters or less");
    std::set<std::string_view> keys;
    for (const Value& entry : get_array(driver, {"topologyKeys"})) {
      const std::string_view key = entry.is_string() ? json::as_view(entry) : "";
      if (key.empty()) errors.required(one);
      if (!keys.insert(key).second) errors.duplicate(one, entry);
      if (const std::string why = check_qualified_name(key); !why.empty()) errors.invalid(one, entry, why);
    }
    if (const Value* count = json::find(driver, {"allocatable", "count"});
        count != nullptr && get_int(driver, {"allocatable", "count"}) < 0)
      errors.invalid(one / "allocatable" / "count", *count, kNegative);
  }
}

}  // namespace berth::model::validation
