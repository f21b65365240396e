// A test double of the API server for controllers: objects in memory, writes applied on the loop, every change observed by the engine.
#pragma once
#include <gtest/gtest.h>

#include "controllers/common.h"
#include "controllers/engine.h"

namespace berth::controllers::testing {

inline json::Value yaml(std::string_view text) {
  auto parsed = json::parse_yaml("---\n" + std::string(text));
  EXPECT_TRUE(parsed) << parsed.error().message;
  return parsed ? *parsed : json::Value();
}

/// Finalizers hold deletions back; pods with a node end at once. Patches of conditions merge by type, as the strategic patch does.
class FakeApi final : public Api {
 public:
  explicit FakeApi(VirtualLoop& loop) : loop_(loop), engine(loop, *this, {}, nullptr) {}

  void send(const Write& write, std::function<void(ApiResult<json::Value>)> done) override {
    loop_.post([this, write, done = std::move(done)] { done(apply(write)); });
  }
  void note(std::string_view, const EventNote& note) override { events.push_back(note.reason + ": " + note.message); }

  json::Value put(Kind kind, json::Value document) {
    const std::string ns(kind->namespaced ? json::get_string(document, {"metadata", "namespace"}, "default") : "");
    if (kind->namespaced) json::set(document, {"metadata", "namespace"}, json::Value(ns));
    json::Value& slot = objects[{kind, ns, std::string(json::get_string(document, {"metadata", "name"}))}];
    if (json::get_string(document, {"metadata", "uid"}).empty())
      json::set(document, {"metadata", "uid"}, json::Value(fmt::format("uid-{}", ++last_uid_)));
    if (json::get_string(document, {"metadata", "creationTimestamp"}).empty())
      json::set(document, {"metadata", "creationTimestamp"}, json::Value(format_rfc3339(loop_.now())));
    json::set(document, {"metadata", "resourceVersion"}, json::Value(std::to_string(++revision_)));
    slot = document;
    observe(kind, document, false);
    return document;
  }
  void erase(Kind kind, const std::string& ns, const std::string& name) {
    const auto it = objects.find({kind, ns, name});
    if (it == objects.end()) return;
    json::Value last = it->second;
    json::set(last, {"metadata", "resourceVersion"}, json::Value(std::to_string(++revision_)));
    objects.erase(it);
    observe(kind, last, true);
  }
  json::Value get(Kind kind, const std::string& name) const {
    const auto it = objects.find({kind, kind->namespaced ? "default" : "", name});
    return it == objects.end() ? json::Value() : it->second;
  }
  std::vector<json::Value> all(Kind kind) const {
    std::vector<json::Value> found;
    for (const auto& [key, document] : objects)
      if (std::get<0>(key) == kind) found.push_back(document);
    return found;
  }
  /// Gives every pod without one a node and makes it Running and Ready.
  void run_pods(const std::string& node = "n1") {
    for (json::Value pod : all(kinds().pod)) {
      if (!json::get_string(pod, {"status", "phase"}).empty()) continue;
      json::set(pod, {"spec", "nodeName"}, json::Value(node));
      json::set(
          pod, {"status"},
          json::Object{{"phase", "Running"},
                       {"conditions", json::Array{json::Object{
                                          {"type", "Ready"}, {"status", "True"}, {"lastTransitionTime", format_rfc3339(loop_.now())}}}}});
      put(kinds().pod, std::move(pod));
    }
  }
  [[nodiscard]] bool saw(const std::string& event) const { return std::find(events.begin(), events.end(), event) != events.end(); }

  std::map<std::tuple<Kind, std::string, std::string>, json::Value> objects;
  std::vector<std::string> events;
  std::function<std::optional<ApiStatus>(const Write&)> refuse;  ///< A fault to inject.
  std::function<json::Value(const Write&)> answer_list;          ///< What a list is answered with.
  int writes = 0;
  /// The watch of this kind shows nothing until it is let go on.
  void hold_back(Kind kind) { held_kind_ = kind; }
  void let_go_on() {
    held_kind_ = nullptr;
    for (const auto& change : std::exchange(held_back_, {})) change();
  }

 private:
  VirtualLoop& loop_;
  std::int64_t revision_ = 0;
  int last_uid_ = 0;
  Kind held_kind_ = nullptr;
  std::vector<std::function<void()>> held_back_;

 public:
  Engine engine;  ///< Last: it uses everything above.

 private:
  void observe(Kind kind, const json::Value& document, bool is_delete) {
    if (kind == held_kind_)
      held_back_.push_back(
          [this, kind, object = std::make_shared<Object>(document), is_delete] { engine.observe(kind, object, is_delete); });
    else
      engine.observe(kind, std::make_shared<Object>(document), is_delete);
  }

  static void merge(json::Value& target, const json::Value& patch, bool strategic) {
    if (!patch.is_object()) {
      target = patch;
      return;
    }
    if (!target.is_object()) target = json::Object{};
    for (const auto& field : patch.get_object()) {
      if (field.value().is_null()) {
        target.get_object().erase(field.key());
      } else if (strategic && field.key() == "conditions") {
        json::Array merged = json::get_array(target, {"conditions"});
        for (const json::Value& condition : field.value().get_array()) {
          remove_condition(merged, json::get_string(condition, {"type"}));
          merged.push_back(condition);
        }
        target.get_object()["conditions"] = std::move(merged);
      } else {
        merge(target.get_object()[field.key()], field.value(), strategic);
      }
    }
  }

  ApiResult<json::Value> apply(const Write& write) {
    ++writes;
    if (refuse)
      if (auto status = refuse(write)) return std::unexpected(*status);
    const bool is_metric = write.verb == Write::Verb::kGet && write.kind->group.ends_with(".metrics.k8s.io");
    if ((write.verb == Write::Verb::kList || is_metric) && answer_list) return answer_list(write);
    if (write.verb == Write::Verb::kDeleteCollection || write.verb == Write::Verb::kList) return collection(write);
    if (write.verb == Write::Verb::kCreate) {
      json::Value document = write.body;
      if (json::get_string(document, {"metadata", "name"}).empty())
        json::set(document, {"metadata", "name"},
                  json::Value(fmt::format("{}{:05}", json::get_string(document, {"metadata", "generateName"}), ++last_uid_)));
      const std::string name(json::get_string(document, {"metadata", "name"}));
      if (objects.contains({write.kind, write.ns, name}))
        return std::unexpected(model::already_exists(write.kind->group, write.kind->plural, name));
      return put(write.kind, std::move(document));
    }
    const auto it = objects.find({write.kind, write.ns, write.name});
    if (it == objects.end()) return std::unexpected(model::not_found(write.kind->group, write.kind->plural, write.name));
    json::Value document = it->second;
    if (write.verb == Write::Verb::kGet) return document;
    if (write.verb == Write::Verb::kPatch || write.verb == Write::Verb::kUpdate) {
      const std::string_view locked = json::get_string(write.body, {"metadata", "resourceVersion"});
      if (!locked.empty() && locked != json::get_string(document, {"metadata", "resourceVersion"}))
        return std::unexpected(model::modified_conflict(write.kind->group, write.kind->plural, write.name));
      const std::string_view meant = json::get_string(write.body, {"metadata", "uid"});
      if (!meant.empty() && meant != json::get_string(document, {"metadata", "uid"}))
        return std::unexpected(model::conflict(write.kind->group, write.kind->plural, write.name, "uid"));
      if (write.verb == Write::Verb::kUpdate)
        document = write.body;
      else
        merge(document, write.body, write.patch_type == PatchType::kStrategicMerge);
      if (!json::get_string(document, {"metadata", "deletionTimestamp"}).empty() &&
          json::get_array(document, {"metadata", "finalizers"}).empty() &&
          (write.kind != kinds().namespace_ || json::get_array(document, {"spec", "finalizers"}).empty())) {
        erase(write.kind, write.ns, write.name);
        return document;
      }
      return put(write.kind, std::move(document));
    }
    if (!write.uid.empty() && write.uid != json::get_string(document, {"metadata", "uid"}))
      return std::unexpected(model::conflict(write.kind->group, write.kind->plural, write.name, "uid"));
    return remove(write, std::move(document));
  }

  ApiResult<json::Value> collection(const Write& write) {
    json::Array items;
    for (const json::Value& one : all(write.kind))
      if (json::get_string(one, {"metadata", "namespace"}) == write.ns) items.push_back(one);
    if (write.verb == Write::Verb::kDeleteCollection)
      for (const json::Value& one : items) {
        Write each = write;
        each.name = json::get_string(one, {"metadata", "name"});
        (void)remove(each, one);
      }
    return json::Object{{"items", std::move(items)}};
  }

  ApiResult<json::Value> remove(const Write& write, json::Value document) {
    json::Array finalizers = json::get_array(document, {"metadata", "finalizers"});
    if (write.delete_options.propagation == Propagation::kForeground) finalizers.push_back("foregroundDeletion");
    if (finalizers.empty()) {
      erase(write.kind, write.ns, write.name);
      return document;
    }
    json::set(document, {"metadata", "finalizers"}, std::move(finalizers));
    json::set(document, {"metadata", "deletionTimestamp"}, json::Value(format_rfc3339(loop_.now())));
    return put(write.kind, std::move(document));
  }
};

}  // namespace berth::controllers::testing
