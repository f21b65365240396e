// What is known of every API kind's fields and behaviour: one place, used by the server, the client and explain
// (DESIGN "Objects: documents with typed views"; SPEC A1–A4).
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/json.h"
#include "model/api_status.h"
#include "model/decode_error.h"
#include "model/kinds.h"

namespace berth::model {

struct TypeDef;

/// The type of a field, a list's item or a map's value.
struct TypeRef {
  enum class Kind {
    kAny,
    kString,
    kInt32,
    kInt64,
    kDouble,
    kBool,
    kQuantity,
    kTime,
    kMicroTime,
    kBytes,
    kIntOrString,
    kStruct,
    kList,
    kMap
  };
  Kind kind = Kind::kAny;
  const TypeDef* type = nullptr;     ///< kStruct; kAny: what it has when it is an object, where that is known.
  const TypeRef* element = nullptr;  ///< kList, kMap.
  /// What else than an object of `type` may stand there: such a field has a decoder of its own in Go.
  enum class Either { kNothing, kBool, kList };
  Either either = Either::kNothing;
  std::string_view named = {};  ///< Go's own name of the type ("v1.JSONSchemaURL"); empty: that of its shape.
  /// Go's name of it, as in decoder errors: "string", "int32", "v1.PodSpec", "[]v1.Container", "map[string]string".
  [[nodiscard]] std::string go_name() const;
  /// In its struct, its items or values, or below: fields that are off.
  [[nodiscard]] bool holds_off_fields() const;
};

struct FieldDef {
  std::string name;
  TypeRef ref;
  bool required = false;
  // Strategic merge patch.
  bool patch_merge = false, patch_retain_keys = false, patch_replace = false;
  std::string patch_merge_key;
  // Server-side apply.
  enum class ListType { kAtomic, kSet, kMap };
  ListType list_type = ListType::kAtomic;
  std::vector<std::string> list_keys;                                 ///< kMap.
  std::map<std::string, json::Value, std::less<>> list_key_defaults;  ///< Of keys that an item may leave out (custom kinds).
  bool is_atomic = false;                                             ///< A map or struct that is owned as a whole.
  bool is_granular = false;        ///< A struct whose fields are owned one by one here, though its type is atomic elsewhere.
  bool omits_zero = false;         ///< Kubernetes never answers with it as "", 0, false, [] or {}: such a value says nothing.
  bool is_off = false;             ///< Of a feature that is off by default: what is given is dropped (drop_off_fields).
  bool is_always_written = false;  ///< Kubernetes answers with it even when nobody gave it: "", 0, false, {} or, for lists and times, null.
  bool is_pointer = false;         ///< Of those always written: null when nobody gave it.
  std::vector<int> proto;          ///< Field numbers from the type's message down; empty: not known in protobuf form.
};

struct TypeDef {
  std::string name;  ///< "core.v1.PodSpec"
  bool is_atomic = false;
  bool holds_off_fields = false;  ///< In itself or below: fields that are off.
  bool is_open = false;           ///< Other members are no mistake (custom kinds that preserve unknown fields).
  std::vector<FieldDef> fields;
  std::string embeds;  ///< The Go structs inside it that carry fields of the protobuf form "2.3": "RuleWithOperations.Rule".
  [[nodiscard]] const FieldDef* field(std::string_view name) const;
  /// "io.k8s.api.core.v1.PodSpec"
  [[nodiscard]] std::string openapi_name() const;

  std::unordered_map<std::string_view, const FieldDef*> by_name;
  std::vector<const FieldDef*> always_written;
};

/// The type of a kind's whole object; never null for a kind of all_kinds(), null for a custom kind whose hooks bring none.
const TypeDef* type_of(const KindInfo& kind);
/// Its objects have no type in Go: those of custom kinds.
bool is_unstructured(const KindInfo& kind);
/// By the name used in the tables ("meta.v1.LabelSelector"); null when unknown.
const TypeDef* find_type(std::string_view name);
/// All types, by name.
const std::vector<const TypeDef*>& all_types();

/// What decode saw that is not an error by itself.
struct DecodeReport {
  std::vector<std::string> unknown_fields;  ///< "spec.containers[0].foo"; as many as model/unknown_fields.h says.
  bool is_dropped = false;                  ///< They have been taken out.
};

/// Checks every known field's type as Go's decoder would, canonicalises quantities and times as a Go round trip does,
/// drops nulls and zeros that say nothing (FieldDef::omits_zero) and, with `fills`, adds those that are always written. Unknown fields are
/// kept (SPEC A3) and reported. `doc` is half-changed after an error.
Expected<void, DecodeError> decode(const KindInfo& kind, json::Value& doc, DecodeReport& report, bool fills = true);
/// Adds what is always written (FieldDef::is_always_written) and not there. For a document that passed decode.
void fill_always_written(const KindInfo& kind, json::Value& doc);
/// Between the versions that share one storage (HPA v1 and v2, core and events.k8s.io Events, PriorityClass v1beta1). Sets apiVersion and
/// kind.
void convert(const KindInfo& from, const KindInfo& to, json::Value& doc);

/// The API server's defaulting. Idempotent. `doc` must have passed decode.
void apply_defaults(const KindInfo& kind, json::Value& doc);
/// The storage strategy's part at creation: status dropped or initialised, generation 1, a Job's selector, a Pod's phase and QoS class, …
void prepare_for_create(const KindInfo& kind, json::Value& doc);
/// The strategy's part at update: a main-resource update keeps the old status, a status update everything but status; generation rises when
/// the spec changed. `subresource` is "", "status", "finalize", or a pod's "ephemeralcontainers" or "resize", which move just that part
/// (others write through their own code and use ""). `now`: the time, as stored times are written; where it is empty no time is noted.
void prepare_for_update(const KindInfo& kind, const json::Value& old, json::Value& doc, std::string_view subresource,
                        std::string_view now = {});

/// All findings in field order, in Kubernetes' words. Never crashes, whatever the document.
FieldErrors validate_create(const KindInfo& kind, const json::Value& doc);
/// `subresource` as above; also "binding", "ephemeralcontainers", "resize", "scale" where rules differ.
FieldErrors validate_update(const KindInfo& kind, const json::Value& old, const json::Value& doc, std::string_view subresource);

/// Guaranteed, Burstable or BestEffort (component-helpers qos).
std::string_view pod_qos_class(const json::Value& pod);

}  // namespace berth::model
