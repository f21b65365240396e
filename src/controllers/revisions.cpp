#include "controllers/revisions.h"

#include "controllers/pod_template_hash.h"
#include "model/internal_form.h"

namespace berth::controllers {
namespace {

/// The template that a ControllerRevision keeps, to compare: by its fields, so that what another release wrote of it (a null, an empty
/// list) counts as the same.
std::string template_text(const json::Value& revision) {
  const json::Value* kept = json::find(revision, {"data", "spec", "template"});
  return dump_pod_template(kept == nullptr ? json::Value(json::Object{}) : *kept);
}

}  // namespace

const Revision* Revisions::find(std::string_view name) const {
  for (const Revision& revision : all)
    if (revision.name() == name) return &revision;
  return nullptr;
}

Revisions sync_revisions(Plan& plan, Kind owner_kind, const Object& owner, const json::Value& document, const Cache& cache) {
  // DaemonSets and StatefulSets label their revisions differently (pkg/controller/daemon/update.go, pkg/controller/history).
  const char* hash_label = owner_kind == kinds().daemon_set ? "controller-revision-hash" : "controller.kubernetes.io/hash";
  Revisions revisions;
  // A set made anew over pods that its predecessor left behind takes the history over as well: with the old hash the pods stay as they are.
  ObjectClaim claim = claim_objects(owner_kind, owner, label_selector_of(document), kinds().controller_revision, cache);
  std::ranges::move(claim.writes, std::back_inserter(plan.writes));
  for (const ObjectRef& object : claim.objects) {
    Revision revision{object, object->document(), 0};
    revision.number = json::get_int(revision.document, {"revision"});
    revisions.all.push_back(std::move(revision));
  }
  std::sort(revisions.all.begin(), revisions.all.end(),
            [](const Revision& a, const Revision& b) { return std::tie(a.number, a.name()) < std::tie(b.number, b.name()); });
  json::Value pod_template = json::get_object(document, {"spec", "template"});
  const std::string text = dump_pod_template(pod_template);
  const std::int64_t newest = revisions.all.empty() ? 0 : revisions.all.back().number;
  for (const Revision& revision : revisions.all) {
    if (template_text(revision.document) != text) continue;
    revisions.update_name = revision.name();
    const std::string* hash = revision.object->labels().get(hash_label);
    revisions.update_hash = hash == nullptr ? revision.name().substr(std::min(revision.name().size(), owner.name().size() + 1)) : *hash;
    // A rollback: the old template becomes the newest revision again. One that somebody made with the same template is no newer one: the
    // two would pass each other for ever.
    std::int64_t newest_other = 0;
    for (const Revision& other : revisions.all)
      if (template_text(other.document) != text) newest_other = std::max(newest_other, other.number);
    if (revision.number < newest_other)
      plan.writes.push_back(patch_object(kinds().controller_revision, *revision.object, {{"revision", newest + 1}}));
    return revisions;
  }
  pod_template.get_object()["$patch"] = "replace";
  // Byte for byte what Go writes of a map: clients compare a template with its revision so (pkg/controller/daemon Match).
  json::Object data{{"spec", json::Object{{"template", model::sorted_members(pod_template)}}}};
  std::optional<std::int64_t> collisions = collision_count(document);
  const auto hashed = [&] {
    return owner_kind == kinds().daemon_set ? pod_template_hash(pod_template, collisions)
                                            : revision_data_hash(model::escape_html(json::serialize(data)), collisions.value_or(0));
  };
  std::string hash = hashed();
  while (const ObjectRef taken = cache.get(kinds().controller_revision, owner.ns(), owner.name() + "-" + hash)) {
    revisions.update_hash = hash;
    revisions.update_name = taken->name();
    // Another owner's that is being let go of: it can be adopted in a moment.
    if (template_text(*taken->parsed()) == text) return revisions;
    collisions = collisions.value_or(0) + 1;
    hash = hashed();
  }
  revisions.update_hash = hash;
  revisions.update_name = owner.name() + "-" + hash;
  json::Object labels = json::get_object(document, {"spec", "template", "metadata", "labels"});
  labels[hash_label] = hash;
  json::Object metadata{{"name", revisions.update_name},
                        {"namespace", owner.ns()},
                        {"labels", std::move(labels)},
                        {"ownerReferences", json::Array{owner_reference(owner_kind, owner)}}};
  if (const json::Value* annotations = json::find(document, {"metadata", "annotations"})) metadata["annotations"] = *annotations;
  plan.writes.push_back(create_object(kinds().controller_revision, owner.ns(),
                                      json::Object{{"apiVersion", "apps/v1"},
                                                   {"kind", "ControllerRevision"},
                                                   {"metadata", std::move(metadata)},
                                                   {"data", std::move(data)},
                                                   {"revision", newest + 1}}));
  return revisions;
}

void truncate_history(Plan& plan, const json::Value& document, const Revisions& revisions, const std::set<std::string>& live) {
  std::vector<const Revision*> old;
  for (const Revision& revision : revisions.all)
    if (!live.contains(revision.name())) old.push_back(&revision);
  old.resize(surplus_over(old.size(), json::get_int(document, {"spec", "revisionHistoryLimit"}, 10)));
  for (const Revision* revision : old) plan.writes.push_back(delete_object(kinds().controller_revision, *revision->object));
}

}  // namespace berth::controllers
