// RuntimeClasses.
#include "model/kinds/record.h"
#include "model/pods/pod_warnings.h"

namespace berth::model::kinds {
namespace {

void warn_of_runtime_class(const Value& doc, Sentences& out) {
  for (const auto& [key, value] : get_object(doc, {"scheduling", "nodeSelector"}))
    if (const auto why = old_node_label({key.data(), key.size()}); !why.empty())
      out.push_back(fmt::format("scheduling.nodeSelector: {}", why));
}

Array runtime_class_cells(const Value& o, TimePoint now) { return {name_of(o), Value(get_string(o, {"handler"})), age_of(o, now)}; }

void same_handler(const Value& old, const Value& doc, Errors& errors) { immutable(old, doc, {"handler"}, Path("handler"), errors); }

}  // namespace

std::vector<KindInfo> node_group() {
  return {Record("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses")
              .cluster()
              .does({.form = kDefault,
                     .strategy = kDefault,
                     .rules = Rules{.has_foreign_finalizers = true,
                                    .create = validation::runtime_class,
                                    .update = in_turn(validation::runtime_class, same_handler),
                                    .warnings = [](const Value*, const Value& doc, Sentences& out) { warn_of_runtime_class(doc, out); }},
                     .printer = Printer{{{"Name"}, {"Handler"}, {"Age"}}, runtime_class_cells},
                     .selected = kDefault,
                     .scale = kDefault,
                     .life = Life{.is_created_by_update = true, .update_needs_revision = true},
                     .counted = kDefault})};
}

}  // namespace berth::model::kinds
