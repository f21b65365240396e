// Attachments, capacities and attribute classes of storage (pkg/apis/storage/validation).
#include <fmt/format.h>

#include "model/quantity.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;

constexpr std::size_t kMaxParameters = 512, kMaxParameterBytes = 256 * 1024, kMaxErrorBytes = 1024;

std::size_t bytes_of(const json::Object& map) {
  std::size_t bytes = 0;
  for (const auto& [key, value] : map) bytes += key.size() + (value.is_string() ? value.get_string().size() : 0);
  return bytes;
}

void volume_error(const Value& doc, const char* key, const Path& status, Errors& errors) {
  const Value* error = json::find(doc, {"status", key});
  if (error == nullptr) return;
  const Path at = status / key;
  if (get_string(*error, {"message"}).size() > kMaxErrorBytes) errors.too_long(at / "message", kMaxParameterBytes);
  if (const Value* code = json::find(*error, "errorCode"); code != nullptr && get_int(*error, {"errorCode"}) < 0)
    errors.invalid(at / "errorCode", *code, fmt::format("must be between 0 and {}, inclusive", INT32_MAX));
}

}  // namespace

void storage_parameters(const Value& doc, bool may_be_empty, Errors& errors) {
  const Path at("parameters");
  const json::Object& map = get_object(doc, {"parameters"});
  if (map.size() > kMaxParameters) return errors.too_long(at, kMaxParameters);
  for (const auto& [key, value] : map)
    if (key.empty()) errors.invalid(at, "", "field can not be empty.");
  if (bytes_of(map) > kMaxParameterBytes) errors.too_long(at, kMaxParameterBytes);
  if (!may_be_empty && map.empty()) errors.required(at, "must contain at least one key/value pair");
}

void provisioner(const Value& doc, std::string_view field, Errors& errors) {
  std::string name(get_string(doc, {field}));
  if (name.empty()) return errors.required(Path(field));
  for (char& c : name) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (const std::string why = check_qualified_name(name); !why.empty()) errors.invalid(Path(field), name, why);
}

void volume_attachment(const Value& doc, Errors& errors) {
  const Path at("spec"), status("status");
  const Path source = at / "source";
  csi_driver_name(get_string(doc, {"spec", "attacher"}), at / "attacher", errors);
  const Value *in_line = json::find(doc, {"spec", "source", "inlineVolumeSpec"}),
              *name = json::find(doc, {"spec", "source", "persistentVolumeName"});
  if ((in_line == nullptr) == (name == nullptr)) {
    constexpr std::string_view kOne = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    if (name == nullptr)
      errors.required(source, kOne);
    else
      errors.forbidden(source, kOne);
  } else if (name != nullptr && *name == "") {
    errors.required(source / "persistentVolumeName", "must specify non empty persistentVolumeName");
  } else if (in_line != nullptr) {
    volume_spec(*in_line, true, source / "inlineVolumeSpec", errors);
  }
  const std::string_view node = get_string(doc, {"spec", "nodeName"});
  if (const std::string why = check_dns1123_subdomain(node); !why.empty()) errors.invalid(at / "nodeName", node, why);
  if (bytes_of(get_object(doc, {"status", "attachmentMetadata"})) > kMaxParameterBytes)
    errors.too_long(status / "attachmentMetadata", kMaxParameterBytes);
  for (const char* key : {"attachError", "detachError"}) volume_error(doc, key, status, errors);
  if (name != nullptr && name->is_string())
    if (const std::string why = check_dns1123_subdomain(json::as_view(*name)); !why.empty())
      errors.invalid(source / "persistentVolumeName", *name, why);
}

void storage_capacity(const Value& doc, Errors& errors) {
  if (const Value* topology = json::find(doc, "nodeTopology")) label_selector(*topology, Path("nodeTopology"), errors);
  const std::string_view name = get_string(doc, {"storageClassName"});
  if (const std::string why = check_dns1123_subdomain(name); !why.empty()) errors.invalid(Path("storageClassName"), name, why);
  if (const auto quantity = Quantity::parse(get_string(doc, {"capacity"})); quantity && quantity->sign() < 0)
    errors.invalid(Path("capacity"), get_string(doc, {"capacity"}), kNegative);
}

void volume_attributes_class(const Value& doc, Errors& errors) {
  provisioner(doc, "driverName", errors);
  storage_parameters(doc, false, errors);
}

void csi_driver(const Value& doc, Errors& errors) {
  const Path at("spec");
  static const Value kNone = json::Object();
  const Value* found = json::find(doc, "spec");
  const Value& spec = found == nullptr ? kNone : *found;
  supported_value(spec, "fsGroupPolicy", at, {"File", "None", "ReadWriteOnceWithFSType"}, errors, true);
  const Path requests = at / "tokenRequests";
  std::set<std::string_view> audiences;
  std::size_t i = 0;
  for (const Value& request : get_array(spec, {"tokenRequests"})) {
    const Path one = requests[i++];
    const std::string_view audience = get_string(request, {"audience"});
    if (!audiences.insert(audience).second) {
      errors.duplicate(one / "audience", Value(audience));
      continue;
    }
    const Value* seconds = json::find(request, "expirationSeconds");
    if (seconds == nullptr) continue;
    const std::int64_t count = get_int(request, {"expirationSeconds"});
    if (count < 600) errors.invalid(one / "expirationSeconds", *seconds, "may not specify a duration less than 10 minutes");
    if (count > std::int64_t{1} << 32)
      errors.invalid(one / "expirationSeconds", *seconds, "may not specify a duration larger than 2^32 seconds");
  }
  for (const Value& mode : get_array(spec, {"volumeLifecycleModes"}))
    if (mode != "Persistent" && mode != "Ephemeral")
      errors.not_supported_value(at / "volumeLifecycleModes", mode, {"Persistent", "Ephemeral"});
  if (const Value* period = json::find(spec, "nodeAllocatableUpdatePeriodSeconds");
      period != nullptr && get_int(spec, {"nodeAllocatableUpdatePeriodSeconds"}) < 10)
    errors.invalid(at / "nodeAllocatableUpdatePeriodSeconds", *period, "must be greater than or equal to 10 seconds");
  if (const Value* in_secrets = json::find(spec, "serviceAccountTokenInSecrets"); in_secrets != nullptr && audiences.empty())
    errors.invalid(at / "serviceAccountTokenInSecrets", *in_secrets,
                   "serviceAccountTokenInSecrets is set but no tokenRequests are specified");
}

void csi_driver_update(const Value& old, const Value& doc, Errors& errors) {
  const Path at("spec");
  immutable(old, doc, {"spec", "attachRequired"}, at / "attachedRequired", errors);
  immutable(old, doc, {"spec", "volumeLifecycleModes"}, at / "volumeLifecycleModes", errors);
}

void csi_node_update(const Value& old, const Value& doc, Errors& errors) {
  const Path spec("spec");
  for (const Value& before : get_array(old, {"spec", "drivers"}))
    for (const Value& after : get_array(doc, {"spec", "drivers"})) {
      if (get_string(before, {"name"}) != get_string(after, {"name"})) continue;
      // How many volumes a node takes may be counted anew; who it is may not change.
      const auto shown = [](const Value& driver) {
        const Value* keys = json::find(driver, "topologyKeys");
        return Value(json::Object{{"Name", get_string(driver, {"name"})},
                                  {"NodeID", get_string(driver, {"nodeID"})},
                                  {"TopologyKeys", keys == nullptr ? Value(nullptr) : *keys},
                                  {"Allocatable", nullptr}});
      };
      const Value was = shown(before), is = shown(after);
      const bool both_empty = get_array(before, {"topologyKeys"}).empty() && get_array(after, {"topologyKeys"}).empty();
      if (was != is && !(both_empty && get_string(before, {"nodeID"}) == get_string(after, {"nodeID"})))
        errors.invalid(spec / "drivers", is, kImmutable);
    }
}

}  // namespace berth::model::validation
