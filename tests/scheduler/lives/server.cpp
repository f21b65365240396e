#include "tests/scheduler/lives/server.h"

#include <fmt/format.h>

namespace berth::scheduler::lives {
namespace {

std::string key_of(const std::string& ns, const std::string& name) { return ns.empty() ? name : ns + "/" + name; }

Answered refused(int code, std::string message) {
  model::ApiStatus status;
  status.code = code;
  status.message = std::move(message);
  return std::unexpected(status);
}

/// Lists that strategic patches merge: by which member.
const char* merge_key_of(std::string_view list) { return list == "conditions" ? "type" : list == "reservedFor" ? "uid" : nullptr; }

void merge_list(json::Value& into, const json::Array& patch, const char* key) {
  if (!into.is_array()) into = json::Array();
  json::Array& list = into.get_array();
  for (const json::Value& one : patch) {
    const auto id = json::get_string(one, {key});
    std::size_t at = 0;
    while (at < list.size() && json::get_string(list[at], {key}) != id) ++at;
    if (json::get_string(one, {"$patch"}) == "delete") {
      if (at < list.size()) list.erase(list.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (at < list.size()) {
      for (const auto& [name, value] : one.get_object()) list[at].get_object()[name] = value;
    } else {
      list.push_back(one);
    }
  }
}

void merge(json::Value& into, const json::Object& patch, bool is_strategic) {
  if (!into.is_object()) into = json::Object();
  json::Object& object = into.get_object();
  constexpr std::string_view kDelete = "$deleteFromPrimitiveList/";
  for (const auto& [name, value] : patch) {
    const std::string_view word(name.data(), name.size());
    const char* key = is_strategic ? merge_key_of(word) : nullptr;
    if (word.starts_with(kDelete)) {
      auto* list = object.if_contains(word.substr(kDelete.size()));
      if (list == nullptr) continue;
      json::Array left;
      for (const json::Value& one : list->get_array())
        if (std::ranges::find(value.get_array(), one) == value.get_array().end()) left.push_back(one);
      *list = std::move(left);
    } else if (value.is_null()) {
      object.erase(name);
    } else if (value.is_object()) {
      merge(object[name], value.get_object(), is_strategic);
    } else if (key != nullptr && value.is_array()) {
      merge_list(object[name], value.get_array(), key);
    } else {
      object[name] = value;
    }
  }
}

}  // namespace

const json::Value* Server::find(const std::string& resource, const std::string& ns, const std::string& name) const {
  const auto all = stored_.find(resource);
  if (all == stored_.end()) return nullptr;
  const auto found = all->second.find(key_of(ns, name));
  return found != all->second.end() ? &found->second : nullptr;
}

std::vector<std::string> Server::names(const std::string& resource) const {
  std::vector<std::string> out;
  if (const auto all = stored_.find(resource); all != stored_.end())
    for (const auto& [key, object] : all->second) out.push_back(key);
  return out;
}

json::Value Server::store(const std::string& resource, const std::string& key, json::Value document) {
  json::set(document, {"metadata", "resourceVersion"}, json::Value(std::to_string(++revision_)));
  news_[resource].push_back({key, std::make_shared<client::Object>(document)});
  return stored_[resource][key] = std::move(document);
}

const json::Value& Server::put(const std::string& resource, json::Value document) {
  const std::string name(json::get_string(document, {"metadata", "name"}));
  const std::string key = key_of(std::string(json::get_string(document, {"metadata", "namespace"})), name);
  auto& all = stored_[resource];
  const auto found = all.find(key);
  if (json::find(document, {"metadata", "uid"}) == nullptr)
    json::set(document, {"metadata", "uid"}, json::Value(fmt::format("{}-{}", name, ++uids_)));
  if (resource == "pods") {
    std::int64_t generation = 1;
    if (found != all.end())
      generation = json::get_int(found->second, {"metadata", "generation"}) +
                   (json::equal(*json::find(found->second, "spec"), *json::find(document, "spec")) ? 0 : 1);
    json::set(document, {"metadata", "generation"}, json::Value(generation));
  }
  store(resource, key, std::move(document));
  return all[key];
}

void Server::erase(const std::string& resource, const std::string& ns, const std::string& name) {
  const std::string key = key_of(ns, name);
  if (stored_[resource].erase(key) != 0) news_[resource].push_back({key, nullptr});
}

bool Server::remove(const std::string& resource, const std::string& ns, const std::string& name) {
  const json::Value* there = find(resource, ns, name);
  if (there == nullptr) return false;
  const bool stays =
      !json::get_string(*there, {"spec", "nodeName"}).empty() || !json::get_array(*there, {"metadata", "finalizers"}).empty();
  if (!stays) {
    erase(resource, ns, name);
  } else if (json::find(*there, {"metadata", "deletionTimestamp"}) == nullptr) {
    json::Value marked = *there;
    json::set(marked, {"metadata", "deletionTimestamp"}, json::Value("2026-01-01T00:00:00Z"));
    put(resource, std::move(marked));
  }
  return true;
}

Answered Server::bind(const std::string& key, const json::Value& binding) {
  json::Value pod = stored_["pods"].at(key);
  if (json::get_string(binding, {"metadata", "uid"}) != json::get_string(pod, {"metadata", "uid"}))
    return refused(409, "Precondition failed: UID in precondition");
  if (json::find(pod, {"metadata", "deletionTimestamp"}) != nullptr)
    return refused(409, "pod is being deleted, cannot be assigned to a host");
  if (!json::get_string(pod, {"spec", "nodeName"}).empty())
    return refused(409, fmt::format("pod is already assigned to node \"{}\"", json::get_string(pod, {"spec", "nodeName"})));
  json::set(pod, {"spec", "nodeName"}, *json::find(binding, {"target", "name"}));
  json::erase(pod, {"status", "nominatedNodeName"});
  for (const auto& [name, value] : json::get_object(binding, {"metadata", "annotations"}))
    json::set(pod, {"metadata", "annotations", std::string_view(name.data(), name.size())}, value);
  put("pods", std::move(pod));
  return json::Value(json::Object());
}

Answered Server::update(const client::Call& call, const std::string& key, json::Value body) {
  json::Value now = stored_[call.gvr.resource].at(key);
  if (json::get_string(body, {"metadata", "resourceVersion"}) != json::get_string(now, {"metadata", "resourceVersion"}))
    return refused(409, "the object has been modified");
  const char* part = "status";
  if (call.subresource == "status") {
    if (const json::Value* status = json::find(body, part)) json::set(now, {part}, *status);
    body = std::move(now);
  } else if (const json::Value* status = json::find(now, part)) {
    json::set(body, {part}, *status);
  }
  return put(call.gvr.resource, std::move(body));
}

Answered Server::carry_out(const client::Call& call) {
  const std::string& resource = call.gvr.resource;
  const auto body = call.body.empty() ? Result<json::Value>(json::Value()) : json::parse(call.body);
  std::string name = call.name;
  if (call.verb == "create" && name.empty()) {
    json::Value made = *body;
    if (const auto start = json::get_string(made, {"metadata", "generateName"}); !start.empty())
      json::set(made, {"metadata", "name"}, json::Value(fmt::format("{}{}", start, ++uids_)));
    json::set(made, {"metadata", "namespace"}, json::Value(call.ns));
    return put(resource, std::move(made));
  }
  const json::Value* there = find(resource, call.ns, name);
  if (there == nullptr) return refused(404, fmt::format("{} \"{}\" not found", resource, name));
  if (call.verb == "get") return *there;
  const std::string key = key_of(call.ns, name);
  if (call.subresource == "binding") return bind(key, *body);
  if (call.verb == "update") return update(call, key, *body);
  const std::string_view uid = json::get_string(*body, {call.verb == "delete" ? "preconditions" : "metadata", "uid"});
  if (!uid.empty() && uid != json::get_string(*there, {"metadata", "uid"})) return refused(409, "Precondition failed: UID in precondition");
  if (call.verb == "delete") {
    remove(resource, call.ns, name);
    return json::Value(json::Object());
  }
  const std::string_view revision = json::get_string(*body, {"metadata", "resourceVersion"});
  if (!revision.empty() && revision != json::get_string(*there, {"metadata", "resourceVersion"}))
    return refused(409, "the object has been modified");
  json::Value after = *there;
  merge(after, body->get_object(), call.content_type.find("strategic") != std::string::npos);
  if (json::find(after, {"metadata", "deletionTimestamp"}) != nullptr && json::get_array(after, {"metadata", "finalizers"}).empty() &&
      resource != "pods") {
    erase(resource, call.ns, name);
    return after;
  }
  return put(resource, std::move(after));
}

bool Server::has_news(const std::string& resource) const {
  const auto found = news_.find(resource);
  return found != news_.end() && !found->second.empty();
}

std::vector<std::string> Server::news() const {
  std::vector<std::string> out;
  for (const auto& [resource, news] : news_)
    if (!news.empty()) out.push_back(resource);
  return out;
}

Server::Shown Server::show(const std::string& resource, bool skips) {
  auto& news = news_.at(resource);
  News next = std::move(news.front());
  news.pop_front();
  while (skips && !news.empty() && news.front().key == next.key && next.object != nullptr && news.front().object != nullptr &&
         news.front().object->uid() == next.object->uid()) {
    next = std::move(news.front());
    news.pop_front();
  }
  auto& known = shown_[resource];
  const auto found = known.find(next.key);
  Shown out{found != known.end() ? found->second : nullptr, next.object};
  if (next.object != nullptr)
    known[next.key] = next.object;
  else
    known.erase(next.key);
  return out;
}

client::ObjectRef Server::known(const std::string& resource, const std::string& ns, const std::string& name) const {
  const auto all = shown_.find(resource);
  if (all == shown_.end()) return nullptr;
  const auto found = all->second.find(key_of(ns, name));
  return found != all->second.end() ? found->second : nullptr;
}

std::vector<client::ObjectRef> Server::all_known(const std::string& resource) const {
  std::vector<client::ObjectRef> out;
  if (const auto all = shown_.find(resource); all != shown_.end())
    for (const auto& [key, object] : all->second) out.push_back(object);
  return out;
}

}  // namespace berth::scheduler::lives
