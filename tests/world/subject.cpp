#include "tests/world/subject.h"

#include <algorithm>
#include <array>

#include "tests/world/builds.h"

namespace berth::world {
namespace {

const json::Value kNothing;
constexpr int kNone = -1;  // Of statuses that say that it is so already.

/// Whose writes are read at all: those that somebody judges.
constexpr std::array<std::string_view, 18> kRead = {
    "pods",        "nodes",       "services",     "resourcequotas", "configmaps",           "persistentvolumes", "persistentvolumeclaims",
    "deployments", "replicasets", "statefulsets", "jobs",           "poddisruptionbudgets", "resourceclaims",    "resourceslices",
    "secrets",     "nodeclaims",  "machines",     "machinesets"};

/// What a wish is about.
std::string about(const model::Gvr& gvr, const std::string& ns, std::string_view name) {
  return fmt::format("{}/{}/{}", gvr.resource, ns, name);
}

}  // namespace

Chronicle::Chronicle(World& world) : world_(world) {
  for (const auto& record : world.held().whole_history()) see(record);
  world.held().on_write = [this](const store::SharedRecord& record) { see(record); };
}

void Chronicle::see(const store::SharedRecord& record) {
  const auto key = all_forms().cache_key(record.key);
  if (!key) return;
  // "/GROUP/RESOURCE/NAMESPACE/NAME"
  const std::size_t from = key->find('/', 1) + 1;
  const std::string path = key->substr(from);
  const std::size_t ns_at = path.find('/') + 1, name_at = path.find('/', ns_at) + 1;
  const std::string_view view = path, resource = view.substr(0, ns_at - 1);
  if (std::ranges::find(kRead, resource) == kRead.end()) return;
  json::Value now;
  if (record.value != nullptr)
    if (const auto text = all_forms().to_text(*key, record.key, *record.value)) now = *json::parse(text->value);
  json::Value& entry = present_[path];
  const json::Value before = std::exchange(entry, std::move(now));
  if (on_seen)
    on_seen({resource, view.substr(ns_at, name_at - 1 - ns_at), view.substr(name_at), record.revision, world_.loop().now(), before, entry});
  if (record.value == nullptr) present_.erase(path);
}

const json::Value& Chronicle::find(std::string_view resource, std::string_view ns, std::string_view name) const {
  const auto found = present_.find(fmt::format("{}/{}/{}", resource, ns, name));
  return found == present_.end() ? kNothing : found->second;
}

void Chronicle::for_each(std::string_view resource, std::string_view ns,
                         const std::function<void(const std::string&, const json::Value&)>& each) const {
  const std::string prefix = fmt::format("{}/{}/", resource, ns);
  for (auto at = present_.lower_bound(prefix); at != present_.end() && at->first.starts_with(prefix); ++at)
    if (!at->second.is_null()) each(at->first.substr(prefix.size()), at->second);
}

std::vector<std::string> Chronicle::names(std::string_view resource, std::string_view ns) const {
  std::vector<std::string> out;
  for_each(resource, ns, [&](const std::string& name, const json::Value&) { out.push_back(name); });
  return out;
}

Hand::Hand(World& world, const std::string& name) : client(world.process(name).wire, world.process(name).loop.get(), name), world_(world) {}

void Hand::wish(const std::string& about, Wish wish) {
  Wish& entry = wishes_[about];
  if (entry.is_open) in_doubt_.insert(about);
  entry = std::move(wish);
  entry.is_open = true;
  entry.number = ++last_wish_;
  ask(about, last_wish_);
}

void Hand::ask(const std::string& about, int number) {
  const Wish& wish = wishes_[about];
  if (wish.number != number) return;
  client.call(wish.call, [this, about, number, good = wish.good_enough](client::ApiResult<json::Value> answer) {
    Wish& answered = wishes_[about];
    if (answered.number != number) return;
    if (!answer && answer.error().code != good) return again(about, number);
    if (!answered.edit) {
      answered.is_open = false;
      return;
    }
    answered.edit(*answer);
    client.update(answered.call.gvr, answered.call.ns, answered.call.name, *answer, [this, about, number](const auto& written) {
      if (!written) return again(about, number);
      if (wishes_[about].number == number) wishes_[about].is_open = false;
    });
  });
}

void Hand::again(const std::string& about, int number) {
  in_doubt_.insert(about);
  world_.loop().schedule_after(std::chrono::seconds(1), [this, about, number] { ask(about, number); });
}

bool Hand::is_in_doubt(const model::Gvr& gvr, const std::string& ns, const std::string& name) const {
  return in_doubt_.contains(about(gvr, ns, name));
}

void Hand::edit(const model::Gvr& gvr, const std::string& ns, const std::string& name, Edit edit) {
  wish(about(gvr, ns, name), {.call = {.verb = "get", .gvr = gvr, .ns = ns, .name = name}, .good_enough = kNone, .edit = std::move(edit)});
}

void Hand::make(const model::Gvr& gvr, const std::string& ns, json::Value body) {
  const std::string name(json::get_string(body, {"metadata", "name"}));
  wish(about(gvr, ns, name), {.call = {.verb = "create", .gvr = gvr, .ns = ns, .body = json::serialize(body)}, .good_enough = 409});
}

void Hand::apply(const model::Gvr& gvr, const std::string& ns, const std::string& name, json::Value body) {
  change(gvr, ns, name, client::PatchType::kApply, std::move(body));
}

void Hand::change(const model::Gvr& gvr, const std::string& ns, const std::string& name, client::PatchType type, json::Value patch) {
  client::Call call{.verb = "patch", .gvr = gvr, .ns = ns, .name = name, .body = json::serialize(patch)};
  call.content_type = type == client::PatchType::kApply   ? "application/apply-patch+yaml"
                      : type == client::PatchType::kMerge ? "application/merge-patch+json"
                                                          : "application/strategic-merge-patch+json";
  if (type == client::PatchType::kApply) call.query = fmt::format("fieldManager={}&force=true", client.user_agent());
  wish(about(gvr, ns, name), {.call = std::move(call), .good_enough = kNone});
}

void Hand::remove(const model::Gvr& gvr, const std::string& ns, const std::string& name) {
  wish(about(gvr, ns, name), {.call = {.verb = "delete", .gvr = gvr, .ns = ns, .name = name}, .good_enough = 404});
}

void Hand::try_make(const model::Gvr& gvr, const std::string& ns, const json::Value& body) {
  client.create(gvr, ns, body, [](const auto&) {});
}

void Hand::try_remove(const model::Gvr& gvr, const std::string& ns, const std::string& name) {
  client.remove(gvr, ns, name, {}, [](const auto&) {});
}

json::Value document(std::string_view text) { return json::parse(text).value(); }

json::Value make_namespace(const std::string& name) {
  return json::Object{{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", json::Object{{"name", name}}}};
}

json::Value pod_spec(std::string_view cpu) {
  json::Value container = document(R"({"name":"c","image":"nginx"})");
  if (!cpu.empty()) json::set(container, {"resources", "requests", "cpu"}, json::Value(cpu));
  return json::Object{{"terminationGracePeriodSeconds", 1}, {"containers", json::Array{std::move(container)}}};
}

const json::Value* condition_of(const json::Value& object, std::string_view type) {
  for (const auto& condition : json::get_array(object, {"status", "conditions"}))
    if (json::get_string(condition, {"type"}) == type) return &condition;
  return nullptr;
}

bool is_ready(const json::Value& pod) {
  const json::Value* ready = condition_of(pod, "Ready");
  return ready != nullptr && json::get_string(*ready, {"status"}) == "True";
}

bool is_leaving(const json::Value& object) { return json::find(object, {"metadata", "deletionTimestamp"}) != nullptr; }

bool is_done(const json::Value& pod) {
  const auto phase = json::get_string(pod, {"status", "phase"});
  return phase == "Succeeded" || phase == "Failed";
}

bool is_active(const json::Value& pod) { return !is_done(pod) && !is_leaving(pod); }

std::string_view controller_of(const json::Value& object) {
  for (const auto& owner : json::get_array(object, {"metadata", "ownerReferences"}))
    if (json::get_bool(owner, {"controller"})) return json::get_string(owner, {"uid"});
  return {};
}

}  // namespace berth::world
