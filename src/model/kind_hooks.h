// What one kind does of its own where all kinds are handled alike: the other half of a kind's record (kinds.h has its names). The API's
// own kinds stand in model/kinds/<group>; kinds that come and go at run time bring hooks with state of their own.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/json.h"
#include "model/kinds.h"
#include "model/pods/pod_resources.h"
#include "model/schema.h"

namespace berth::model {

namespace validation {
class Errors;
}

/// Said in a record where a kind does what all do.
struct Default {};
inline constexpr Default kDefault;

/// A part of a record. It has no value of its own accord: a record that forgets one does not compile.
template <typename T>
class Stated {
 public:
  Stated() = delete;
  Stated(Default) {}                                                 // NOLINT: read as `.strategy = kDefault`.
  Stated(T value) : value_(std::move(value)), is_default_(false) {}  // NOLINT
  const T& operator*() const { return value_; }
  const T* operator->() const { return &value_; }
  [[nodiscard]] bool is_default() const { return is_default_; }

 private:
  T value_;
  bool is_default_ = true;
};

/// A text in which objects differ that are otherwise created alike: it is stored to the letter, and nothing else in the object depends on
/// it.
struct FreeText {
  std::string path;            ///< "metadata.name".
  std::string stored_at = {};  ///< Its path in the stored version; empty: the same.
  /// Whether no rule has anything to say about this one. Asked of printable ASCII without quotes and backslashes, never empty, at most
  /// 1,024 bytes. Null: none ever has.
  bool (*fits)(std::string_view text) = nullptr;
};

/// How a document of the kind is read and what it has without being told. Where a function is empty the kind's field table decides.
struct Form {
  /// Of a kind without a table in model/kinds; null there as well: unstructured.
  std::shared_ptr<const TypeDef> type;
  /// Stored as JSON, which keeps lists and maps that are empty: kinds of the servers inside Kubernetes' own.
  bool keeps_empty = false;
  std::function<Expected<void, DecodeError>(json::Value& doc, DecodeReport& report, bool fills)> decode;
  std::function<void(json::Value& doc)> fill_always_written;
  /// As model/unknown_fields.h has them.
  std::function<std::vector<std::string>(const json::Value& doc, const json::Value* kept)> unknown_fields;
  std::function<void(json::Value& doc, const json::Value* kept)> drop_unknown_fields;
  /// Given an object only. Idempotent.
  std::function<void(json::Object& doc)> defaults;
  /// Between this version and the one that is stored; apiVersion and kind are set by the caller. Given an object only.
  std::function<void(json::Value&doc)> to_storage, from_storage;
  /// Where there are any, what was made of one creation may be made of the next that differs in nothing else (apiserver/writes/stencil.h):
  /// what becomes of it depends on nothing but the request and what admission knows.
  std::vector<FreeText> free_texts = {};
};

/// When metadata.generation is counted (KindInfo::generation).
enum class GenerationFrom {
  kCreation,     ///< 1 at first.
  kFirstChange,  ///< At first whatever was given, mostly nothing.
};

/// What the registry's strategy does around a write.
struct Strategy {
  /// Of kinds with the subresource "status". Empty: {}.
  std::function<json::Value()> initial_status;
  bool keeps_given_status = false;  ///< Whoever creates it may say its status as well.
  /// The last step at creation: the status is dropped or initialised, the generation is set.
  std::function<void(json::Value& doc)> prepare_create;
  /// Does the whole of merging what was sent into what is stored, where it gives true; else the caller keeps the old status, or, for a
  /// status update, everything but status.
  std::function<bool(const json::Value& old, json::Value& doc, std::string_view subresource, std::string_view now)> merge_update;
  /// After merging, for everything but a status update; the generation is counted afterwards.
  std::function<void(const json::Value& old, json::Value& doc, std::string_view subresource)> prepare_update;
  /// After merging a status update.
  std::function<void(const json::Value& old, json::Value& doc, std::string_view now)> prepare_status;
  /// Of labels, annotations, finalizers, ownerReferences: what a status update does not move.
  std::vector<std::string_view> kept_in_status_update;
  GenerationFrom generation_from = GenerationFrom::kCreation;
  /// Is the change a new generation? Empty: anything but metadata and status changed.
  std::function<bool(const json::Value& old, const json::Value& doc, std::string_view subresource)> is_new_generation;
};

/// How often an update tells what is wrong with an object's metadata. Kubernetes looks once for every kind (rest.BeforeUpdate), and most
/// kinds look again in their own rules. The sentence is told once all the same, the causes as often as somebody looked.
struct MetadataLooks {
  int whole = 1;    ///< At everything in it, as at a creation.
  int changes = 2;  ///< At what may not change, at labels, annotations and owners.
};
inline constexpr MetadataLooks kLooksAtAllAgain{.whole = 2, .changes = 1}, kLooksAtBothAgain{.whole = 2, .changes = 2},
    kLooksNoMore{.whole = 1, .changes = 1};

/// What a document must be. Metadata is checked by the caller.
struct Rules {
  /// Kubernetes' sentences about a name, a line each. Empty function: a DNS subdomain.
  std::function<std::string(std::string_view name)> name;
  bool has_foreign_finalizers = false;  ///< Finalizers need no domain: custom kinds, and groups that do not ask core's rules.
  /// Kubernetes' own rules of the kind pass metadata over: only what all objects need is asked of it, and that when nothing else is wrong.
  bool looks_at_metadata_last = false;
  MetadataLooks metadata_looks = {};
  std::function<void(const json::Value& doc, validation::Errors& errors)> create;
  /// `subresource`: "" or one of its own, never "status" or "finalize".
  std::function<void(const json::Value& old, const json::Value& doc, std::string_view subresource, validation::Errors& errors)> update;
  std::function<void(const json::Value& old, const json::Value& doc, validation::Errors& errors)> status;
  /// Whether `status`, and what the strategy does around a write of the status, look at more than metadata and status. Asked with documents
  /// that may lack the spec, which such a write leaves as it is. Empty: nobody knows, so that both get the whole.
  std::function<bool(const json::Value& old, const json::Value& doc)> status_reads_rest = {};
  /// Sentences about a write that is in order; `old` is null at creation. Status and other subresources are never warned of.
  std::function<void(const json::Value* old, const json::Value& doc, std::vector<std::string>& sentences)> warnings;
  std::string_view deprecation;  ///< What every request to the kind is told.
};

/// A status_reads_rest of rules that look at nothing else.
inline bool reads_status_alone(const json::Value&, const json::Value&) { return false; }

/// A column of a table.
struct Column {
  std::string name;
  int priority = 0;  ///< 1: shown with -o wide.
  std::string type = "string";
  std::string format = {}, description = {};
};

/// Columns and cells. Missing or odd fields never fail.
struct Printer {
  std::vector<Column> columns;
  std::function<json::Array(const json::Value& object, TimePoint now)> cells;
};

/// A field of KindInfo::field_selectors that is not simply read at its path.
struct SelectedField {
  std::string name;
  std::string path = {};                      ///< Where it is read; empty: at its name.
  std::string absent = {};                    ///< What is selected when nothing is there.
  std::string instead = {};                   ///< Another selected field, whose value counts when nothing is there.
  std::optional<std::string> stored_as = {};  ///< Its name in the stored version; "": cannot be selected by.
};

/// The scale subresource: paths as "spec.replicas".
struct Scale {
  enum class Selector { kLabelSelector, kMap, kText };
  std::string spec_replicas = "spec.replicas", status_replicas = "status.replicas";
  std::string selector = "spec.selector";  ///< Empty: none is shown.
  Selector selector_form = Selector::kLabelSelector;
  std::int64_t absent_replicas = 1;
};

/// From creation to deletion, beyond what all kinds do.
struct Life {
  bool is_created_by_update = false;      ///< A PUT to a name that is free creates.
  bool may_be_nameless = false;           ///< Sent without a name it gets a UUID as one.
  bool update_needs_revision = false;     ///< A PUT without a resourceVersion is refused.
  bool expires = false;                   ///< Goes after --event-ttl.
  bool may_be_lost = false;               ///< Written without waiting for the disk, where the server is told so.
  bool orphans_by_default = false;        ///< Deleting it leaves what it owns.
  std::string_view orphans_warning = {};  ///< What is said to somebody who deletes it without saying what becomes of that.
  bool is_answered_when_deleted = false;  ///< The answer to a deletion is the object, not a Status.
  /// Of namespaces alone: what others are in. It ends when spec.finalizers is empty, is told so by a phase, and a request about one has its
  /// name as the namespace.
  bool is_namespace = false;
  /// Why the one of this name cannot be deleted; empty: it can.
  std::function<std::string(std::string_view name)> undeletable;
  std::string_view etcd_prefix;  ///< Where kube-apiserver keeps it, as some messages show; empty: under its plural.
  /// Seconds between being told to end and going; `options`: DeleteOptions. Empty: none.
  std::function<std::int64_t(const json::Value& options, const json::Value& doc)> grace_seconds;
};

/// What a ResourceQuota counts of it beside "count/<plural>.<group>".
struct Counted {
  bool by_plural = false;  ///< One of "<plural>".
  std::function<void(const json::Value& doc, ResourceAmounts& usage)> usage;
  bool is_of_devices = false;  ///< What it uses counts by the names of device classes.
  /// Empty: no scope selects it.
  std::function<bool(std::string_view scope, std::string_view op, const json::Array& values, const json::Value& doc)> is_in_scope;
  /// From when on an object that is being deleted uses nothing but its own number, though it is still there. Empty: never.
  std::function<std::optional<TimePoint>(const json::Value& doc)> stops_counting;
};

/// The record's second half. Every record states every part.
struct KindHooks {
  Stated<Form> form;
  Stated<Strategy> strategy;
  Stated<Rules> rules;
  Stated<Printer> printer;  ///< Default: name and age.
  Stated<std::vector<SelectedField>> selected;
  Stated<Scale> scale;
  Stated<Life> life;
  Stated<Counted> counted;

  /// All default: where a kind of run time starts from.
  static KindHooks all_default() { return {kDefault, kDefault, kDefault, kDefault, kDefault, kDefault, kDefault, kDefault}; }
};

/// The kind's own, or those of a kind that states nothing.
const KindHooks& hooks_of(const KindInfo& kind);
/// The kind's printer, or that of name and age.
const Printer& printer_of(const KindInfo& kind);

}  // namespace berth::model
