// Namespaces.
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

void default_namespace(Object& doc) {
  put_string(make_child(doc, "status"), "phase", "Active");
  // The label that selectors of namespaces rely on is the server's, whatever the client says.
  Object& meta = make_child(doc, "metadata");
  if (const std::string name(string_at(meta, "name")); !name.empty()) make_child(meta, "labels")["kubernetes.io/metadata.name"] = name;
}

void check_namespace(const Value& doc, Errors& errors) {
  const Path spec("spec");
  for (const Value& finalizer : get_array(doc, {"spec", "finalizers"}))
    validation::finalizer_name(finalizer.is_string() ? json::as_view(finalizer) : "", spec / "finalizers", spec / "finalizers", errors);
}

Array namespace_cells(const Value& o, TimePoint now) { return {name_of(o), Value(get_string(o, {"status", "phase"})), age_of(o, now)}; }

/// Whatever is in it goes before it does.
void prepare_namespace(Value& doc) {
  Value* finalizers = find_array(doc, {"spec", "finalizers"});
  if (finalizers == nullptr) {
    finalizers = &json::ensure_object(doc, {"spec"})["finalizers"];
    finalizers->emplace_array();
  }
  if (std::ranges::none_of(finalizers->get_array(), [](const Value& f) { return f == "kubernetes"; }))
    finalizers->get_array().emplace_back("kubernetes");
}

/// Its finalizers change by the subresource "finalize" alone.
void keep_finalizers(const Value& old, Value& doc, std::string_view subresource) {
  if (!subresource.empty()) return;
  if (const Value* finalizers = json::find(old, {"spec", "finalizers"})) json::set(doc, {"spec", "finalizers"}, *finalizers);
}

void check_namespace_status(const Value&, const Value& doc, Errors& errors) {
  const Path status("status");
  const bool is_going = json::find(doc, {"metadata", "deletionTimestamp"}) != nullptr;
  const std::string_view phase = get_string(doc, {"status", "phase"});
  if (!is_going && phase != "Active") errors.invalid(status / "Phase", phase, "may only be 'Active' if `deletionTimestamp` is empty");
  if (is_going && phase != "Terminating")
    errors.invalid(status / "Phase", phase, "may only be 'Terminating' if `deletionTimestamp` is not empty");
}

}  // namespace

KindInfo namespace_record() {
  return Record("", "v1", "Namespace", "namespaces")
      .shorts({"ns"})
      .cluster()
      .subs({"finalize", "status"})
      .fields({"status.phase"})
      .verbs({"create", "delete", "get", "list", "patch", "update", "watch"})
      .does({.form = Form{.defaults = default_namespace},
             .strategy = Strategy{.initial_status =
                                      [] {
                                        return Value{{"phase", "Active"}};
                                      },
                                  .prepare_create = prepare_namespace,
                                  .prepare_update = keep_finalizers},
             .rules = Rules{.name = validation::check_dns1123_label, .create = check_namespace, .status = check_namespace_status},
             .printer = Printer{{{"Name"}, {"Status"}, {"Age"}}, namespace_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.is_answered_when_deleted = true, .is_namespace = true},
             .counted = kDefault});
}

}  // namespace berth::model::kinds
