// Volumes, claims, storage classes and CSI objects (pkg/apis/core/validation, pkg/apis/storage/validation).
#include <fmt/format.h>

#include <set>

#include "base/json_canonical.h"
#include "model/internal_form.h"
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
  std::unordered_map<std::string, std::size_t> terms;  ///< How often each was there.
  std::size_t i = 0;
  for (const Value& term : get_array(doc, {"allowedTopologies"})) {
    const Path one = at[i++];
    const Path expressions = one / "matchLabelExpressions";
    const Value list = get_array(term, {"matchLabelExpressions"});
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
    // An empty term is told once for every term that there is.
    const std::size_t same = terms[json::canonical_text(list)]++;
    const std::size_t count = list.get_array().empty() ? get_array(doc, {"allowedTopologies"}).size() : 0;
    for (std::size_t n = 0; n < count + same && !errors.is_full(); ++n) errors.duplicate(expressions, Value(""));
  }
}

/// What a volume can be of.
constexpr std::string_view kPersistentSourceNames[] = {"hostPath",
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

/// A volume's affinity with the names that its labels have today.
Value with_ga_labels(Value affinity) {
  static constexpr std::pair<std::string_view, std::string_view> kRenamed[] = {
      {"beta.kubernetes.io/arch", "kubernetes.io/arch"},
      {"beta.kubernetes.io/os", "kubernetes.io/os"},
      {"failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"},
      {"failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"},
      {"beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"}};
  Value* terms = json::find(affinity, {"required", "nodeSelectorTerms"});
  if (terms == nullptr || !terms->is_array()) return affinity;
  for (Value& term : terms->get_array()) {
    Value* list = json::find(term, {"matchExpressions"});
    if (list == nullptr || !list->is_array()) continue;
    for (Value& expression : list->get_array())
      for (const auto& [before, after] : kRenamed)
        if (get_string(expression, {"key"}) == before) json::set(expression, {"key"}, Value(after));
  }
  return affinity;
}

}  // namespace

void storage_class(const Value& doc, Errors& errors) {
  const Path root("");
  const std::string_view provisioner = get_string(doc, {"provisioner"});
  std::string lower(provisioner);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (provisioner.empty())
    errors.required(Path("provisioner"));
  else if (const std::string why = check_qualified_name(lower); !why.empty())
    errors.invalid(Path("provisioner"), lower, why);
  supported_value(doc, "reclaimPolicy", root, {"Delete", "Retain"}, errors);
  supported_value(doc, "volumeBindingMode", root, {"Immediate", "WaitForFirstConsumer"}, errors, true);
  allowed_topologies(doc, errors);
}

namespace {

constexpr std::string_view kNotInline = "may not be specified in the context of inline volumes";

void volume_capacity(const Value& spec, const Path& at, Errors& errors) {
  const json::Object& capacity = get_object(spec, {"capacity"});
  const Path capacity_at = at / "capacity";
  if (capacity.empty()) errors.required(capacity_at);
  if (capacity.size() != 1 || !capacity.contains("storage"))
    errors.not_supported_value(capacity_at, json::find(spec, "capacity") == nullptr ? Value(nullptr) : sorted_map(capacity), {"storage"});
  for (const auto& [key, value] : capacity) {
    const auto amount = value.is_string() ? Quantity::parse(json::as_view(value)) : std::nullopt;
    const Path one = Path::map_key(capacity_at, {key.data(), key.size()});
    if (!amount) continue;
    if (amount->value() < 0) errors.invalid(one, Value(amount->value()), "must be a valid resource quantity");
    if (amount->sign() <= 0) errors.invalid(one, value, "must be greater than zero");
  }
}

/// What only a volume of its own has.
void volume_policies(const Value& spec, bool is_inline, const Path& at, Errors& errors) {
  if (!is_inline) {
    supported_value(spec, "persistentVolumeReclaimPolicy", at, {"Delete", "Recycle", "Retain"}, errors);
  } else if (const std::string_view policy = get_string(spec, {"persistentVolumeReclaimPolicy"}); !policy.empty() && policy != "Retain") {
    errors.forbidden(at / "persistentVolumeReclaimPolicy", "may only be Retain in the context of inline volumes");
  }
  const Value* affinity = json::find(spec, "nodeAffinity");
  if (affinity == nullptr) return;
  const Path here = at / "nodeAffinity";
  if (is_inline)
    errors.forbidden(here, kNotInline);
  else if (const Value* required = json::find(*affinity, "required"))
    node_selector(*required, here / "required", errors);
  else
    errors.required(here / "required", "must specify required node constraints");
}

void volume_classes(const Value& spec, bool is_inline, const Path& at, Errors& errors) {
  if (const std::string_view name = get_string(spec, {"storageClassName"}); !name.empty()) {
    if (is_inline)
      errors.forbidden(at / "storageClassName", kNotInline);
    else if (const std::string why = check_dns1123_subdomain(name); !why.empty())
      errors.invalid(at / "storageClassName", name, why);
  }
  if (!is_inline)
    supported_value(spec, "volumeMode", at, {"Block", "Filesystem"}, errors, true);
  else if (const Value* mode = json::find(spec, "volumeMode"); mode != nullptr && *mode != Value("Filesystem"))
    errors.forbidden(at / "volumeMode", "may not specify volumeMode other than Filesystem in the context of inline volumes");
  const Value* attributes = json::find(spec, "volumeAttributesClassName");
  if (is_inline || attributes == nullptr || !attributes->is_string()) return;
  if (attributes->get_string().empty())
    errors.required(at / "volumeAttributesClassName", "an empty string is disallowed");
  else if (const std::string why = check_dns1123_subdomain(json::as_view(*attributes)); !why.empty())
    errors.invalid(at / "volumeAttributesClassName", *attributes, why);
  if (json::find(spec, "csi") == nullptr) errors.required(at / "csi", "has to be specified when using volumeAttributesClassName");
}

}  // namespace

void volume_spec(const Value& spec, bool is_inline, const Path& at, Errors& errors) {
  if (is_inline) {
    if (json::find(spec, "claimRef") != nullptr) errors.forbidden(at / "claimRef", kNotInline);
    if (!get_object(spec, {"capacity"}).empty()) errors.forbidden(at / "capacity", kNotInline);
    if (json::find(spec, "csi") == nullptr) errors.required(at / "csi", "has to be specified in the context of inline volumes");
  }
  access_modes(spec, at, {}, errors);
  if (!is_inline) volume_capacity(spec, at, errors);
  volume_policies(spec, is_inline, at, errors);
  persistent_volume_source(spec, at, errors);
  volume_classes(spec, is_inline, at, errors);
}

void volume(const Value& doc, Errors& errors) {
  const Value* found = json::find(doc, "spec");
  volume_spec(found == nullptr ? Value(json::Object()) : *found, false, Path("spec"), errors);
}

void volume_update(const Value& old, const Value& doc, Errors& errors) {
  volume(doc, errors);  // Checked twice, as Kubernetes does.
  const Path at("spec");
  // The secret for growing may come later.
  Value now = get_object(doc, {"spec"});
  if (json::find(old, {"spec", "csi"}) != nullptr && json::find(old, {"spec", "csi", "controllerExpandSecretRef"}) == nullptr)
    json::erase(now, {"csi", "controllerExpandSecretRef"});
  const bool same_source = std::ranges::all_of(kPersistentSourceNames, [&](std::string_view source) {
    const Value *before = json::find(old, {"spec", source}), *after = json::find(now, source);
    return before == nullptr ? after == nullptr : after != nullptr && json::equal(*before, *after);
  });
  if (!same_source) {
    const Value before = get_object(old, {"spec"});
    const auto shown = [](const Value& spec) {
      return internal_form("core.v1.PersistentVolumeSpec", &spec, "core.v1.PersistentVolumeSource");
    };
    errors.forbidden(at / "persistentvolumesource",
                     "spec.persistentvolumesource is immutable after creation\n" + difference(shown(before), shown(now)));
  }
  immutable(old, doc, {"spec", "volumeMode"}, Path("volumeMode"), errors);
  if (const Value* before = json::find(old, {"spec", "nodeAffinity"})) {
    const Value* after = json::find(doc, {"spec", "nodeAffinity"});
    if (after == nullptr || !json::equal(with_ga_labels(*before), with_ga_labels(*after)))
      errors.invalid(Path("nodeAffinity"), internal_form("core.v1.VolumeNodeAffinity", after),
                     "field is immutable, except for updating from beta label to GA");
  }
  if (json::find(old, {"spec", "volumeAttributesClassName"}) != nullptr &&
      json::find(doc, {"spec", "volumeAttributesClassName"}) == nullptr)
    errors.forbidden(at / "volumeAttributesClassName", "update from non-nil value to nil is forbidden");
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
  if (const std::string_view from = get_string(*source, {"namespace"}); key == "dataSourceRef" && !from.empty())
    if (const std::string why = check_dns1123_label(from); !why.empty()) errors.invalid(at / "namespace", from, why);
}

void claim_sources(const Value& spec, const Path& at, Errors& errors) {
  data_source(spec, "dataSource", at, errors);
  data_source(spec, "dataSourceRef", at, errors);
  const Value *source = json::find(spec, "dataSource"), *reference = json::find(spec, "dataSourceRef");
  if (source == nullptr || reference == nullptr) return;
  if (!get_string(*reference, {"namespace"}).empty())
    return errors.invalid(at, Value(json::Object()), "may not be specified when dataSourceRef.namespace is specified");
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
  if (const Value* selector = json::find(spec, "selector"); selector != nullptr && get_array(spec, {"accessModes"}).empty()) {
    errors.required(at / "accessModes", "at least 1 access mode is required");
    label_selector(*selector, at / "selector", errors);
  } else {
    if (selector != nullptr) label_selector(*selector, at / "selector", errors);
    access_modes(spec, at, "at least 1 access mode is required", errors);
  }
  const Path storage_at = at / "resources";
  const Path storage = Path::map_key(storage_at, "storage");
  const std::string_view text = get_string(spec, {"resources", "requests", "storage"});
  if (text.empty())
    errors.required(storage);
  else if (const auto quantity = Quantity::parse(text); quantity && quantity->sign() <= 0)
    errors.invalid(storage, text, "must be greater than zero");
  if (const std::string_view name = get_string(spec, {"storageClassName"}); !name.empty())
    if (const std::string why = check_dns1123_subdomain(name); !why.empty()) errors.invalid(at / "storageClassName", name, why);
  supported_value(spec, "volumeMode", at, {"Block", "Filesystem"}, errors, true);
  claim_sources(spec, at, errors);
  if (const std::string_view name = get_string(spec, {"volumeAttributesClassName"}); !name.empty())
    if (const std::string why = check_dns1123_subdomain(name); !why.empty()) errors.invalid(at / "volumeAttributesClassName", name, why);
}

void claim_update(const Value& old, const Value& doc, Errors& errors) {
  const Path at("spec");
  Value before = get_object(old, {"spec"}), after = get_object(doc, {"spec"});
  const auto follow = [](const Value& from, Value& to, std::string_view key) {
    if (const Value* value = json::find(from, key))
      json::set(to, {key}, Value(*value));
    else
      json::erase(to, {key});
  };
  // The volume's name is said once; a class may be named where none was.
  if (get_string(before, {"volumeName"}).empty()) follow(after, before, "volumeName");
  if (json::find(before, "storageClassName") == nullptr) follow(before, after, "storageClassName");
  const bool is_bound = get_string(doc, {"status", "phase"}) == "Bound";
  if (is_bound) {
    if (const Value* size = json::find(before, {"resources", "requests", "storage"});
        size != nullptr && json::find(after, {"resources", "requests"}) != nullptr)
      json::set(after, {"resources", "requests", "storage"}, Value(*size));
    follow(before, after, "volumeAttributesClassName");
  }
  if (!json::equal(before, after))
    errors.forbidden(at, "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims\n" +
                             difference(internal_form("core.v1.PersistentVolumeClaimSpec", &before),
                                        internal_form("core.v1.PersistentVolumeClaimSpec", &after)));
  const auto size_in = [](const Value& claim, json::Path where) {
    return Quantity::parse(get_string(claim, where, "0")).value_or(Quantity());
  };
  const Quantity had = size_in(old, {"spec", "resources", "requests", "storage"}),
                 asks = size_in(doc, {"spec", "resources", "requests", "storage"});
  const Path resources = at / "resources";
  const Path requests = resources / "requests";
  // Who asked for more than there is may ask for less, but not for less than there is already.
  if (asks < had && asks <= size_in(old, {"status", "capacity", "storage"}))
    errors.forbidden(requests / "storage", "field can not be less than status.capacity");
  immutable(old, doc, {"spec", "volumeMode"}, Path("volumeMode"), errors);
  const Value* attributes = json::find(doc, {"spec", "volumeAttributesClassName"});
  if (json::find(old, {"status", "currentVolumeAttributesClassName"}) == nullptr) return;
  if (attributes == nullptr)
    errors.forbidden(at / "volumeAttributesClassName",
                     "update to nil is forbidden when status.currentVolumeAttributesClassName is not nil");
  else if (*attributes == Value(""))
    errors.forbidden(at / "volumeAttributesClassName",
                     "update to empty string is forbidden when status.currentVolumeAttributesClassName is not nil");
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
