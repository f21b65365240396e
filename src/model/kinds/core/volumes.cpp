// PersistentVolumes and their claims.
#include "model/kinds/record.h"
#include "model/pods/pod_warnings.h"

namespace berth::model::kinds {
namespace {

void default_volume(Object& doc) {
  Object& spec = make_child(doc, "spec");
  put_string(spec, "persistentVolumeReclaimPolicy", "Retain");
  put(spec, "volumeMode", "Filesystem");
  if (Object* host = child(spec, "hostPath")) put(*host, "type", "");
  defaults::disks(spec);
  put_string(make_child(doc, "status"), "phase", "Pending");
}

/// A volume's status says since when it has its phase.
void note_phase(const Value& old, std::string_view now, Value& volume) {
  const bool is_same = json::get_string(old, {"status", "phase"}) == json::get_string(volume, {"status", "phase"});
  const Value* before = json::find(old, {"status", "lastPhaseTransitionTime"});
  if (is_same && json::find(volume, {"status", "lastPhaseTransitionTime"}) == nullptr && before != nullptr)
    json::set(volume, {"status", "lastPhaseTransitionTime"}, *before);
  const Value* given = json::find(volume, {"status", "lastPhaseTransitionTime"});
  const bool was_given = given != nullptr && (before == nullptr || !json::equal(*given, *before));
  if (!is_same && !was_given && !now.empty()) json::set(volume, {"status", "lastPhaseTransitionTime"}, Value(now));
}

/// What a claim starts from, by its older name and by its newer one (pkg/api/persistentvolumeclaim). The older one never took other
/// things than claims and snapshots; of the newer one, another namespace is a feature that is off.
void agree_on_source(const Value* old, Value& claim) {
  Value* spec = json::find(claim, "spec");
  if (spec == nullptr || !spec->is_object()) return;
  Object& fields = spec->get_object();
  const auto had = [&](std::string_view key) { return old != nullptr && json::find(*old, {"spec", key}) != nullptr; };
  if (!json::get_string(*spec, {"dataSourceRef", "namespace"}).empty() && !had("dataSourceRef")) fields.erase("dataSourceRef");
  const std::string_view kind = json::get_string(*spec, {"dataSource", "kind"}),
                         group = json::get_string(*spec, {"dataSource", "apiGroup"});
  const bool is_known =
      (kind == "PersistentVolumeClaim" && group.empty()) || (kind == "VolumeSnapshot" && group == "snapshot.storage.k8s.io");
  if (!had("dataSource") && !fields.contains("dataSourceRef") && !is_known) fields.erase("dataSource");
  const auto copy = [&](std::string_view from, std::string_view to) {
    Object source;
    for (const char* key : {"apiGroup", "kind", "name"})
      if (const Value* value = fields.at(from).get_object().if_contains(key)) source[key] = *value;
    fields[to] = std::move(source);
  };
  const bool has_source = fields.contains("dataSource"), has_reference = fields.contains("dataSourceRef");
  if (has_source && !has_reference) copy("dataSource", "dataSourceRef");
  if (has_reference && !has_source && json::get_string(*spec, {"dataSourceRef", "namespace"}).empty()) copy("dataSourceRef", "dataSource");
}

/// What a claim's status may count: its storage, and what has a domain of its own.
bool claim_resource_name(std::string_view name, const Path& at, Errors& errors) {
  if (const std::string why = validation::check_qualified_name(name); !why.empty()) {
    errors.invalid(at, name, why);
    return false;
  }
  const bool is_native = name.find('/') == std::string_view::npos || name.find("kubernetes.io/") != std::string_view::npos;
  if (is_native && name != "storage") errors.not_supported(at, name, {"storage"});
  return !is_native || name == "storage";
}

void check_claim_status(const Value& doc, Errors& errors) {
  static const std::vector<std::string_view> kStates = {"ControllerResizeInProgress", "ControllerResizeInfeasible", "NodeResizeInProgress",
                                                        "NodeResizeInfeasible", "NodeResizePending"};
  const Path status("status");
  const Path capacity = status / "capacity", states = status / "allocatedResourceStatuses", allocated = status / "allocatedResources";
  const auto amount = [&](const Value& value, const Path& at) {
    const auto quantity = value.is_string() ? Quantity::parse(json::as_view(value)) : std::nullopt;
    if (quantity && quantity->value() < 0) errors.invalid(at, Value(quantity->value()), "must be a valid resource quantity");
  };
  for (const auto& [key, value] : get_object(doc, {"status", "capacity"})) amount(value, Path::map_key(capacity, {key.data(), key.size()}));
  for (const auto& [key, value] : get_object(doc, {"status", "allocatedResourceStatuses"})) {
    const std::string_view name(key.data(), key.size());
    claim_resource_name(name, states, errors);
    const std::string_view state = value.is_string() ? json::as_view(value) : "";
    if (std::ranges::find(kStates, state) == kStates.end()) errors.not_supported(states, name, kStates);
  }
  for (const auto& [key, value] : get_object(doc, {"status", "allocatedResources"})) {
    const std::string_view name(key.data(), key.size());
    if (claim_resource_name(name, allocated, errors)) amount(value, Path::map_key(allocated, name));
  }
}

std::string access_modes(const Array& modes) {
  std::vector<std::string> parts;
  for (const Value& mode : modes) {
    const std::string_view text = mode.is_string() ? json::as_view(mode) : "";
    parts.emplace_back(text == "ReadWriteOnce"      ? "RWO"
                       : text == "ReadOnlyMany"     ? "ROX"
                       : text == "ReadWriteMany"    ? "RWX"
                       : text == "ReadWriteOncePod" ? "RWOP"
                                                    : text);
  }
  return join(parts);
}

constexpr std::string_view kOldStorageClass = "volume.beta.kubernetes.io/storage-class";

/// The class of a volume or a claim: the old annotation goes before the field.
std::string_view class_of(const Value& o) {
  const Value* old = json::find(o, {"metadata", "annotations", kOldStorageClass});
  return old != nullptr && old->is_string() ? json::as_view(*old) : get_string(o, {"spec", "storageClassName"});
}

Array volume_cells(const Value& o, TimePoint now) {
  const std::string_view claim = get_string(o, {"spec", "claimRef", "name"});
  const std::string_view phase =
      json::find(o, {"metadata", "deletionTimestamp"}) != nullptr ? "Terminating" : get_string(o, {"status", "phase"});
  return {name_of(o),
          Value(get_string(o, {"spec", "capacity", "storage"})),
          access_modes(get_array(o, {"spec", "accessModes"})),
          Value(get_string(o, {"spec", "persistentVolumeReclaimPolicy"})),
          Value(phase),
          claim.empty() ? "" : fmt::format("{}/{}", get_string(o, {"spec", "claimRef", "namespace"}), claim),
          Value(class_of(o)),
          or_unset(get_string(o, {"spec", "volumeAttributesClassName"})),
          Value(get_string(o, {"status", "reason"})),
          age_of(o, now),
          or_unset(get_string(o, {"spec", "volumeMode"}))};
}

Array claim_cells(const Value& o, TimePoint now) {
  const bool bound = !get_string(o, {"spec", "volumeName"}).empty();
  const std::string_view phase =
      json::find(o, {"metadata", "deletionTimestamp"}) != nullptr ? "Terminating" : get_string(o, {"status", "phase"});
  return {name_of(o),
          Value(phase),
          Value(get_string(o, {"spec", "volumeName"})),
          bound ? Value(get_string(o, {"status", "capacity", "storage"}, "0")) : Value(""),
          bound ? access_modes(get_array(o, {"status", "accessModes"})) : "",
          Value(class_of(o)),
          or_unset(get_string(o, {"spec", "volumeAttributesClassName"})),
          age_of(o, now),
          or_unset(get_string(o, {"spec", "volumeMode"}))};
}

void warn_of_volume(const Value& doc, Sentences& out) {
  for (const auto& [annotation, instead] :
       {std::pair(kOldStorageClass, "deprecated since v1.8; use \"storageClassName\" attribute instead"),
        std::pair(std::string_view("volume.beta.kubernetes.io/mount-options"),
                  "deprecated since v1.31; use \"mountOptions\" attribute instead")})
    if (json::find(doc, {"metadata", "annotations", annotation}) != nullptr)
      out.push_back(fmt::format("metadata.annotations[{}]: {}", annotation, instead));
  if (get_string(doc, {"spec", "persistentVolumeReclaimPolicy"}) == "Recycle")
    out.emplace_back(
        "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic "
        "provisioning.");
  if (const Value* selector = json::find(doc, {"spec", "nodeAffinity", "required"})) {
    const Path spec("spec");
    const Path affinity = spec / "nodeAffinity";
    const Path required = affinity / "required";
    node_terms_warnings(*selector, required / "nodeSelectorTerms", out);
  }
  for (const auto& [source, since] : {std::pair("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
                                      std::pair("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
                                      std::pair("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
                                      std::pair("storageos", "deprecated in v1.22, non-functional in v1.25+"),
                                      std::pair("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
                                      std::pair("rbd", "deprecated in v1.28, non-functional in v1.31+")})
    if (json::find(doc, {"spec", source}) != nullptr)
      out.push_back(fmt::format("spec.{}: {}", std::string_view(source) == "storageos" ? "storageOS" : source, since));
}

void warn_of_claim(const Value& doc, Sentences& out) {
  if (json::find(doc, {"metadata", "annotations", kOldStorageClass}) != nullptr)
    out.push_back(
        fmt::format("metadata.annotations[{}]: deprecated since v1.8; use \"storageClassName\" attribute instead", kOldStorageClass));
  if (const Value* spec = json::find(doc, "spec")) claim_warnings(*spec, Path("spec"), out);
}

/// What is allocated counts while it is more than what is asked: a growth that failed and was taken back may be held by the driver yet.
void add_claim(const json::Value& claim, ResourceAmounts& usage) {
  usage["persistentvolumeclaims"] = Quantity::from_value(1);
  auto storage = Quantity::parse(json::get_string(claim, {"spec", "resources", "requests", "storage"}));
  const auto allocated = Quantity::parse(json::get_string(claim, {"status", "allocatedResources", "storage"}));
  if (storage && allocated && *storage < *allocated) storage = allocated;
  if (storage) usage["requests.storage"] = *storage;
  std::string storage_class(class_of(claim));
  if (storage_class.empty()) return;
  storage_class += ".storageclass.storage.k8s.io/";
  usage[storage_class + "persistentvolumeclaims"] = Quantity::from_value(1);
  if (storage) usage[storage_class + "requests.storage"] = *storage;
}

/// The classes that a claim has, has had until now, or is on its way to (pkg/quota/v1/evaluator/core/persistent_volume_claims.go).
bool matches_attributes_class(const json::Value& claim, std::string_view op, const json::Array& values) {
  std::set<std::string_view> names = {json::get_string(claim, {"spec", "volumeAttributesClassName"}),
                                      json::get_string(claim, {"status", "currentVolumeAttributesClassName"}),
                                      json::get_string(claim, {"status", "modifyVolumeStatus", "targetVolumeAttributesClassName"})};
  names.erase("");
  const auto is_listed = [&](std::string_view name) {
    return std::ranges::any_of(values, [&](const auto& v) { return v.is_string() && json::as_view(v) == name; });
  };
  if (op == "DoesNotExist") return names.empty();
  if (op == "In") return std::ranges::any_of(names, is_listed);
  if (op == "NotIn") return names.empty() || !std::ranges::all_of(names, is_listed);
  return !names.empty();
}

bool claim_in_scope(std::string_view scope, std::string_view op, const Array& values, const Value& claim) {
  return scope == "VolumeAttributesClass" && matches_attributes_class(claim, op, values);
}

void check_claim(const Value& doc, Errors& errors) { validation::claim_spec(doc, Path("spec"), errors); }

Value pending() { return {{"phase", "Pending"}}; }

}  // namespace

KindInfo persistent_volume_claim() {
  return Record("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")
      .shorts({"pvc"})
      .subs({"status"})
      .does({.form = Form{.defaults = defaults::persistent_volume_claim},
             .strategy = Strategy{.initial_status = pending,
                                  .prepare_create = [](Value& doc) { agree_on_source(nullptr, doc); },
                                  .prepare_update = [](const Value& old, Value& doc, std::string_view) { agree_on_source(&old, doc); }},
             .rules = Rules{.metadata_looks = kLooksAtBothAgain,
                            .create = check_claim,
                            .update = in_turn(check_claim, validation::claim_update),
                            .status = [](const Value&, const Value& doc, Errors& errors) { check_claim_status(doc, errors); },
                            .status_reads_rest = reads_status_alone,
                            .warnings = [](const Value*, const Value& doc, Sentences& out) { warn_of_claim(doc, out); }},
             .printer = Printer{{{"Name"},
                                 {"Status"},
                                 {"Volume"},
                                 {"Capacity"},
                                 {"Access Modes"},
                                 {"StorageClass"},
                                 {"VolumeAttributesClass"},
                                 {"Age"},
                                 {"VolumeMode", 1}},
                                claim_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.is_answered_when_deleted = true},
             .counted = Counted{.usage = add_claim, .is_in_scope = claim_in_scope}});
}

KindInfo persistent_volume() {
  return Record("", "v1", "PersistentVolume", "persistentvolumes")
      .shorts({"pv"})
      .cluster()
      .subs({"status"})
      .does({.form = Form{.defaults = default_volume},
             .strategy = Strategy{.initial_status = pending,
                                  .prepare_create =
                                      [](Value& doc) {
                                        json::set(doc, {"status", "lastPhaseTransitionTime"}, Value(strategy::created_at(doc)));
                                      },
                                  .prepare_status = [](const Value& old, Value& doc, std::string_view now) { note_phase(old, now, doc); }},
             .rules = Rules{.metadata_looks = kLooksAtAllAgain,
                            .create = validation::volume,
                            .update = in_turn(validation::volume, validation::volume_update),
                            .status_reads_rest = reads_status_alone,
                            .warnings = [](const Value*, const Value& doc, Sentences& out) { warn_of_volume(doc, out); }},
             .printer = Printer{{{"Name"},
                                 {"Capacity"},
                                 {"Access Modes"},
                                 {"Reclaim Policy"},
                                 {"Status"},
                                 {"Claim"},
                                 {"StorageClass"},
                                 {"VolumeAttributesClass"},
                                 {"Reason"},
                                 {"Age"},
                                 {"VolumeMode", 1}},
                                volume_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.is_answered_when_deleted = true},
             .counted = kDefault});
}

}  // namespace berth::model::kinds
