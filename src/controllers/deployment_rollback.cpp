// Rollbacks asked for by annotation, as clients of extensions/v1beta1 did (pkg/controller/deployment/rollback.go).
#include "controllers/deployment_model.h"

namespace berth::controllers::deployment {
namespace {

/// The second highest revision; 0 when there is only one.
std::int64_t last_but_one(const std::vector<Set>& sets) {
  std::int64_t highest = 0, second = 0;
  for (const Set& set : sets) {
    if (set.revision >= highest)
      second = std::exchange(highest, set.revision);
    else
      second = std::max(second, set.revision);
  }
  return second;
}

void take_over(json::Value& document, const Set& set) {
  json::Value pod_template = json::get_object(set.document, {"spec", "template"});
  json::erase(pod_template, {"metadata", "labels", kHashLabel});
  json::set(document, {"spec", "template"}, std::move(pod_template));
  json::Object annotations;
  const auto is_own = [](std::string_view key) { return std::ranges::find(kOwnAnnotations, key) != kOwnAnnotations.end(); };
  for (const auto& field : json::get_object(document, {"metadata", "annotations"}))
    if (is_own(field.key())) annotations[field.key()] = field.value();
  for (const auto& field : json::get_object(set.document, {"metadata", "annotations"}))
    if (!is_own(field.key())) annotations[field.key()] = field.value();
  json::set(document, {"metadata", "annotations"}, std::move(annotations));
}

}  // namespace

bool roll_back(Plan& plan, View& view) {
  const std::string_view text = json::get_string(view.document, {"metadata", "annotations", kRollbackTo});
  std::int64_t revision = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), revision);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return false;

  json::Value document = view.object->document();
  EventNote note = note_about(kinds().deployment, *view.object, "Warning", "DeploymentRollbackRevisionNotFound", "");
  if (revision == 0) revision = last_but_one(view.sets);
  const auto set = std::ranges::find(view.sets, revision, &Set::revision);
  if (revision == 0) {
    note.message = "Unable to find last revision.";
  } else if (set == view.sets.end()) {
    note.message = "Unable to find the revision to rollback to.";
  } else if (&*set == view.newest) {
    note.reason = "DeploymentRollbackTemplateUnchanged";
    note.message = fmt::format("The rollback revision contains the same template as current deployment \"{}\"", view.object->name());
  } else {
    take_over(document, *set);
    note.type = "Normal";
    note.reason = "DeploymentRollback";
    note.message = fmt::format("Rolled back deployment \"{}\" to revision {}", view.object->name(), revision);
  }
  json::erase(document, {"metadata", "annotations", kRollbackTo});
  Write write;
  write.verb = Write::Verb::kUpdate;
  write.kind = kinds().deployment;
  write.ns = view.object->ns();
  write.name = view.object->name();
  write.uid = view.object->uid();
  write.body = std::move(document);
  write.on_success = std::move(note);
  plan.writes.push_back(std::move(write));
  return true;
}

}  // namespace berth::controllers::deployment
