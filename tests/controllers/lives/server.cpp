// The server of controllers' lives.
#include "tests/controllers/lives/world.h"

namespace berth::controllers::lives {

using json::get_array;
using json::get_string;
using json::Value;

void merge(Value& target, const Value& patch, bool strategic) {
  if (!patch.is_object()) {
    target = patch;
    return;
  }
  if (!target.is_object()) target = json::Object{};
  for (const auto& field : patch.get_object()) {
    const std::string_view key_of = field.key() == "conditions" ? "type" : field.key() == "resourceClaimStatuses" ? "name" : "";
    if (field.value().is_null()) {
      target.get_object().erase(field.key());
    } else if (strategic && !key_of.empty()) {
      json::Array merged = get_array(target, {field.key()});
      for (const Value& one : field.value().get_array()) {
        const auto same =
            std::ranges::find_if(merged, [&](const Value& old) { return get_string(old, {key_of}) == get_string(one, {key_of}); });
        if (same == merged.end())
          merged.push_back(one);
        else
          merge(*same, one, strategic);
      }
      target.get_object()[field.key()] = std::move(merged);
    } else {
      merge(target.get_object()[field.key()], field.value(), strategic);
    }
  }
}

/// As the server keeps it: with uid, times, revision and generation.
void World::store(Kind kind, const Value& given) {
  Value document = given;
  const std::string ns(get_string(document, {"metadata", "namespace"})), name(get_string(document, {"metadata", "name"}));
  const auto before = objects_.find({kind->kind, ns, name});
  if (get_string(document, {"metadata", "uid"}).empty()) json::set(document, {"metadata", "uid"}, Value(fmt::format("u{}", ++last_uid_)));
  if (get_string(document, {"metadata", "creationTimestamp"}).empty())
    json::set(document, {"metadata", "creationTimestamp"}, Value(format_rfc3339(now)));
  json::set(document, {"metadata", "resourceVersion"}, Value(std::to_string(++revision_)));
  std::int64_t generation = json::get_int(document, {"metadata", "generation"});
  if (before == objects_.end())
    generation = 1;
  else if (const Value* was = json::find(before->second.second, "spec"), *is = json::find(document, "spec");
           was != nullptr && is != nullptr && !json::equal(*was, *is))
    ++generation;
  json::set(document, {"metadata", "generation"}, Value(generation));
  objects_[{kind->kind, ns, name}] = {kind, document};
  show(kind, document, false);
}

void World::erase(Kind kind, const std::string& key, const std::string& said) {
  const auto [ns, name] = names_of(kind, key);
  const auto it = objects_.find({kind->kind, ns, name});
  if (it == objects_.end()) return;
  if (!said.empty()) life.tell(fmt::format("[{}] {}", at(), said));
  Value last = std::move(it->second.second);
  json::set(last, {"metadata", "resourceVersion"}, Value(std::to_string(++revision_)));
  objects_.erase(it);
  show(kind, last, true);
}

void World::remove(Kind kind, const std::string& key, const DeleteOptions& options, const std::string& said) {
  Value* found = find(kind, key);
  if (found == nullptr) return;
  if (!said.empty()) life.tell(fmt::format("[{}] {}", at(), said));
  Value document = *found;
  json::Array finalizers = get_array(document, {"metadata", "finalizers"});
  const bool was_going = !get_string(document, {"metadata", "deletionTimestamp"}).empty();
  if (!was_going && options.propagation == Propagation::kForeground) finalizers.push_back("foregroundDeletion");
  if (!was_going && options.propagation == Propagation::kOrphan) finalizers.push_back("orphan");
  const std::string_view phase = get_string(document, {"status", "phase"});
  const bool lingers = kind == kinds().pod && !get_string(document, {"spec", "nodeName"}).empty() && phase != "Succeeded" &&
                       phase != "Failed" && options.grace_period_seconds != 0 && pods_linger(document);
  const bool is_namespace = kind == kinds().namespace_ && !get_array(document, {"spec", "finalizers"}).empty();
  if (finalizers.empty() && !lingers && !is_namespace) return erase(kind, key, "");
  if (was_going && (lingers || !finalizers.empty()) && options.grace_period_seconds != 0) return;
  if (!finalizers.empty()) json::set(document, {"metadata", "finalizers"}, std::move(finalizers));
  if (!was_going)
    json::set(document, {"metadata", "deletionTimestamp"}, Value(format_rfc3339(now + std::chrono::seconds(lingers ? 30 : 0))));
  json::set(document, {"metadata", "deletionGracePeriodSeconds"}, Value(lingers ? 30 : 0));
  if (is_namespace) json::set(document, {"status", "phase"}, Value("Terminating"));
  store(kind, document);
}

ApiResult<Value> World::serve(const Write& write, std::string& said) {
  const bool is_read = write.verb == Write::Verb::kGet || write.verb == Write::Verb::kList;
  const int trouble = refuses_ ? life.dice.below(100) : 99;
  if (trouble < settings_.refused_percent * 2) {
    static const auto kAnswers = [](const Write& of, int which) {
      const auto &group = of.kind->group, &plural = of.kind->plural;
      return which == 0   ? model::modified_conflict(group, plural, of.name)
             : which == 1 ? model::forbidden(group, plural, of.name, "no")
             : which == 2 ? model::internal_error("broken")
             : which == 3 ? model::not_found(group, plural, of.name)
                          : model::too_many_requests("later", 1);
    };
    const ApiStatus status = kAnswers(write, life.dice.below(5));
    said = fmt::format("refused, {}", status.code);
    return std::unexpected(status);
  }
  ApiResult<Value> result = [&]() -> ApiResult<Value> {
    switch (write.verb) {
      case Write::Verb::kCreate:
        return serve_create(write);
      case Write::Verb::kUpdate:
      case Write::Verb::kPatch:
        return serve_change(write);
      case Write::Verb::kDelete:
      case Write::Verb::kDeleteCollection:
        return serve_delete(write);
      case Write::Verb::kGet:
      case Write::Verb::kList:
        break;
    }
    if (answer)
      if (Value told = answer(write); !told.is_null()) {
        if (json::get_int(told, {"code"}) == 0) return told;
        ApiStatus status = model::internal_error(get_string(told, {"message"}));
        status.code = static_cast<int>(json::get_int(told, {"code"}));
        return std::unexpected(status);
      }
    if (write.verb == Write::Verb::kGet) {
      const Value* found = find(write.kind, write.ns.empty() ? write.name : write.ns + "/" + write.name);
      if (found == nullptr) return std::unexpected(model::not_found(write.kind->group, write.kind->plural, write.name));
      return *found;
    }
    json::Array items;
    for (const auto& [name, object] : objects_)
      if (object.first == write.kind && std::get<1>(name) == write.ns) items.push_back(object.second);
    return json::Object{{"items", std::move(items)}};
  }();
  if (!result) said = fmt::format("{}", result.error().code);
  if (result && !is_read && trouble < settings_.refused_percent * 3) {
    said = "done, but the answer is lost";
    ApiStatus lost = model::internal_error("lost");
    lost.code = 0;
    return std::unexpected(lost);
  }
  return result;
}

ApiResult<Value> World::serve_create(const Write& write) {
  if (answer)
    if (Value told = answer(write); !told.is_null()) return told;
  Value document = write.body;
  if (get_string(document, {"metadata", "name"}).empty())
    json::set(document, {"metadata", "name"}, Value(fmt::format("{}{}", get_string(document, {"metadata", "generateName"}), ++last_name_)));
  const std::string name(get_string(document, {"metadata", "name"}));
  if (write.kind->namespaced) json::set(document, {"metadata", "namespace"}, Value(write.ns));
  if (objects_.contains({write.kind->kind, write.ns, name}))
    return std::unexpected(model::already_exists(write.kind->group, write.kind->plural, name));
  store(write.kind, document);
  return objects_.at({write.kind->kind, write.ns, name}).second;
}

ApiResult<Value> World::serve_change(const Write& write) {
  const std::string key = write.ns.empty() ? write.name : write.ns + "/" + write.name;
  const Value* found = find(write.kind, key);
  if (found == nullptr) return std::unexpected(model::not_found(write.kind->group, write.kind->plural, write.name));
  Value document = *found;
  const std::string_view locked = get_string(write.body, {"metadata", "resourceVersion"}),
                         meant = get_string(write.body, {"metadata", "uid"});
  if (!locked.empty() && locked != get_string(document, {"metadata", "resourceVersion"}))
    return std::unexpected(model::modified_conflict(write.kind->group, write.kind->plural, write.name));
  if (!meant.empty() && meant != get_string(document, {"metadata", "uid"}))
    return std::unexpected(model::conflict(write.kind->group, write.kind->plural, write.name, "uid"));
  const Value before = document;
  if (write.verb == Write::Verb::kUpdate)
    document = write.body;
  else
    merge(document, write.body, write.patch_type == PatchType::kStrategicMerge);
  if (json::equal(before, document)) return document;
  const bool is_going = !get_string(document, {"metadata", "deletionTimestamp"}).empty();
  const bool lingers = write.kind == kinds().pod && !get_string(document, {"spec", "nodeName"}).empty() &&
                       json::get_int(document, {"metadata", "deletionGracePeriodSeconds"}) > 0 &&
                       get_string(document, {"status", "phase"}) != "Failed" && get_string(document, {"status", "phase"}) != "Succeeded";
  if (is_going && !lingers && get_array(document, {"metadata", "finalizers"}).empty() &&
      (write.kind != kinds().namespace_ || get_array(document, {"spec", "finalizers"}).empty())) {
    erase(write.kind, key, "");
    return document;
  }
  store(write.kind, document);
  return *find(write.kind, key);
}

ApiResult<Value> World::serve_delete(const Write& write) {
  if (write.verb == Write::Verb::kDeleteCollection) {
    std::vector<std::string> all;
    for (const auto& [name, object] : objects_)
      if (object.first == write.kind && std::get<1>(name) == write.ns) all.push_back(write.ns + "/" + std::get<2>(name));
    for (const std::string& key : all) remove(write.kind, key, write.delete_options, "");
    return Value(json::Object{});
  }
  const std::string key = write.ns.empty() ? write.name : write.ns + "/" + write.name;
  const Value* found = find(write.kind, key);
  if (found == nullptr) return std::unexpected(model::not_found(write.kind->group, write.kind->plural, write.name));
  const Value document = *found;
  const auto& options = write.delete_options;
  if (!options.precondition_uid.empty() && options.precondition_uid != get_string(document, {"metadata", "uid"}))
    return std::unexpected(model::conflict(write.kind->group, write.kind->plural, write.name, "uid"));
  if (!options.precondition_resource_version.empty() &&
      options.precondition_resource_version != get_string(document, {"metadata", "resourceVersion"}))
    return std::unexpected(model::modified_conflict(write.kind->group, write.kind->plural, write.name));
  remove(write.kind, key, options, "");
  return document;
}

}  // namespace berth::controllers::lives
