// Volume attributes classes in use outlive their deletion (pkg/controller/volume/vacprotection): every class gets a finalizer, which falls
// when no volume and no claim names the class any more.
#include "controllers/common.h"
#include "controllers/services.h"

namespace berth::controllers {
namespace {

constexpr std::string_view kClassFinalizer = "kubernetes.io/vac-protection";

/// The classes that a claim or a volume names: the one it asks for, the one it has, the one it is being changed to.
std::set<std::string> classes_named_by(const ObjectRef& object) {
  std::set<std::string> out;
  if (!object) return out;
  const auto parsed = object->parsed();
  for (const std::string_view name : {json::get_string(*parsed, {"spec", "volumeAttributesClassName"}),
                                      json::get_string(*parsed, {"status", "currentVolumeAttributesClassName"}),
                                      json::get_string(*parsed, {"status", "modifyVolumeStatus", "targetVolumeAttributesClassName"})})
    if (!name.empty()) out.emplace(name);
  return out;
}

/// Keys: names of classes.
class AttributesClassProtection final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "volumeattributesclass-protection-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override {
    return {kinds().volume_attributes_class, kinds().persistent_volume, kinds().persistent_volume_claim};
  }

  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().volume_attributes_class) {
      if (event.after) sink.add(std::string(event.after->name()));
      return;
    }
    if (!event.before && !event.after) return;
    const std::string user = fmt::format("{} {}", event.kind->kind, event.object().key());
    for (const std::string& one : classes_named_by(event.before)) {
      const auto users = users_.find(one);
      if (users == users_.end()) continue;
      users->second.erase(user);
      if (users->second.empty()) users_.erase(users);
      sink.add(one);
    }
    for (const std::string& one : classes_named_by(event.after)) users_[one].insert(user);
  }

  Plan reconcile(const std::string& key, TimePoint, const Cache& cache) override {
    Plan plan;
    const ObjectRef object = cache.get(kinds().volume_attributes_class, "", key);
    if (!object) return plan;
    const auto parsed = object->parsed();
    const bool has = has_finalizer(*parsed, kClassFinalizer);
    if (!object->is_deleting()) {
      if (!has) plan.writes.push_back(add_finalizer(kinds().volume_attributes_class, *object, *parsed, kClassFinalizer));
    } else if (has && !users_.contains(key)) {
      plan.writes.push_back(remove_finalizer(kinds().volume_attributes_class, *object, *parsed, kClassFinalizer));
    }
    return plan;
  }

 private:
  std::map<std::string, std::set<std::string>> users_;  ///< By class: "KIND KEY" of what names it.
};

}  // namespace

ControllerPtr make_attributes_class_protection_controller() { return std::make_unique<AttributesClassProtection>(); }

}  // namespace berth::controllers
