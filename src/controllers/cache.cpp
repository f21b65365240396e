#include "controllers/cache.h"

#include "base/json_scan.h"

namespace berth::controllers {
namespace {

const PodMap kNoPods;

template <typename Map>
void erase_from(Map& map, std::string_view group, const std::string& key) {
  const auto it = map.find(group);
  if (it == map.end()) return;
  it->second.erase(key);
  if (it->second.empty()) map.erase(it);
}

/// spec.selector as it stands in the bytes.
std::string_view selector_text(const Object& object) {
  static const json::PathScanner scanner({"spec.selector"});
  std::string_view value;
  return scanner.scan(object.bytes(), {&value, 1}) ? value : std::string_view();
}

template <typename Map>
const PodMap& find_pods(const Map& map, std::string_view key) {
  const auto it = map.find(key);
  return it == map.end() ? kNoPods : it->second;
}

}  // namespace

std::string_view spec_text(const Object& object) {
  static const json::PathScanner scanner({"spec"});
  std::string_view value;
  return scanner.scan(object.bytes(), {&value, 1}) ? value : std::string_view();
}

model::Selector selector_of(Kind kind, const json::Value& document) {
  const json::Value* selector = json::find(document, {"spec", "selector"});
  if (kind != kinds().service && kind != kinds().replication_controller)
    return model::Selector::from_label_selector(selector).value_or(model::Selector::nothing());
  if (selector == nullptr || !selector->is_object() || selector->get_object().empty()) return model::Selector::nothing();
  return model::Selector::from_map(selector);
}

Event Cache::apply(Kind kind, ObjectRef after, bool is_delete) {
  Store& store = stores_[kind];
  store.revision = std::max(store.revision, after->revision());
  ObjectRef before = get(kind, after->ns(), after->name());
  const bool is_pod = kind == kinds().pod;
  Event event{kind, before, is_delete ? nullptr : after, nullptr, nullptr};
  if (is_pod && before) event.pod_before = pod(after->ns(), after->name());
  if (is_delete) {
    if (!before) return event;
    index_object(store, before, nullptr);
    if (const auto index = selectors_.find(kind); index != selectors_.end()) index_selector(index->second, kind, before, nullptr);
    if (is_pod) index_pod(event.pod_before, nullptr);
    return event;
  }
  if (before && before->revision() == after->revision() && before->uid() == after->uid()) {
    event.after = before;
    event.pod_after = event.pod_before;
    return event;
  }
  if (is_pod) event.pod_after = make_pod_info(event.after);
  index_object(store, before, event.after);
  if (const auto index = selectors_.find(kind); index != selectors_.end()) index_selector(index->second, kind, before, event.after);
  if (is_pod) index_pod(event.pod_before, event.pod_after);
  return event;
}

void Cache::index_object(Store& store, const ObjectRef& before, const ObjectRef& after) {
  // Pods have their own indexes by owner; keeping both would double the cost of the most frequent kind.
  const bool by_owner = &store != &stores_[kinds().pod];
  const auto unindex = [&](const Object& object) {
    if (object.controller_uid().empty())
      erase_from(store.orphans, object.ns(), object.name());
    else
      erase_from(store.by_controller, object.controller_uid(), object.key());
  };
  if (by_owner && before && (!after || before->controller_uid() != after->controller_uid())) unindex(*before);
  if (!after) {
    erase_from(store.by_ns, before->ns(), before->name());
    --store.size;
    return;
  }
  store.by_ns[after->ns()][after->name()] = after;
  if (!before) ++store.size;
  if (!by_owner) return;
  if (after->controller_uid().empty())
    store.orphans[after->ns()][after->name()] = after;
  else
    store.by_controller[after->controller_uid()][after->key()] = after;
}

void Cache::index_selector(SelectorIndex& index, Kind kind, const ObjectRef& before, const ObjectRef& after) const {
  if (!after) return index.erase(before->ns(), before->name());
  // Status changes often, selectors hardly ever.
  if (before && selector_text(*before) == selector_text(*after)) return;
  index.set(after->ns(), after->name(), selector_of(kind, *after->parsed()));
}

std::vector<ObjectRef> Cache::selecting(Kind kind, std::string_view ns, const model::Labels& labels) const {
  const auto [index, is_new] = selectors_.try_emplace(kind);
  if (is_new) for_each(kind, [&](const ObjectRef& object) { index_selector(index->second, kind, nullptr, object); });
  std::vector<ObjectRef> out;
  for (const std::string& name : index->second.matching(ns, labels)) out.push_back(get(kind, ns, name));
  return out;
}

void Cache::index_pod(const PodRef& before, const PodRef& after) {
  pods_by_label_.update(before, after);
  if (before) {
    const Object& old = *before->object;
    if (!after || before->node != after->node) erase_from(pods_by_node_, before->node, old.key());
    if (!after || old.controller_uid() != after->object->controller_uid()) {
      if (old.controller_uid().empty())
        erase_from(orphan_pods_, old.ns(), old.name());
      else
        erase_from(pods_by_controller_, old.controller_uid(), old.name());
    }
    if (!after) {
      erase_from(pods_by_ns_, old.ns(), old.name());
      if (!pods_by_ns_.contains(old.ns())) pods_by_label_.forget(old.ns());
    }
  }
  if (!after) return;
  const Object& object = *after->object;
  pods_by_ns_[object.ns()][object.name()] = after;
  pods_by_node_[after->node][object.key()] = after;
  if (object.controller_uid().empty())
    orphan_pods_[object.ns()][object.name()] = after;
  else
    pods_by_controller_[object.controller_uid()][object.name()] = after;
}

ObjectRef Cache::get(Kind kind, std::string_view ns, std::string_view name) const {
  const auto store = stores_.find(kind);
  if (store == stores_.end()) return nullptr;
  const auto group = store->second.by_ns.find(ns);
  if (group == store->second.by_ns.end()) return nullptr;
  const auto it = group->second.find(name);
  return it == group->second.end() ? nullptr : it->second;
}

void Cache::for_each(Kind kind, const std::function<void(const ObjectRef&)>& each) const {
  const auto store = stores_.find(kind);
  if (store == stores_.end()) return;
  for (const auto& [ns, objects] : store->second.by_ns)
    for (const auto& [name, object] : objects) each(object);
}

void Cache::for_each_in(Kind kind, std::string_view ns, const std::function<void(const ObjectRef&)>& each) const {
  const auto store = stores_.find(kind);
  if (store == stores_.end()) return;
  const auto group = store->second.by_ns.find(ns);
  if (group == store->second.by_ns.end()) return;
  for (const auto& [name, object] : group->second) each(object);
}

std::size_t Cache::size(Kind kind) const {
  const auto store = stores_.find(kind);
  return store == stores_.end() ? 0 : store->second.size;
}

std::size_t Cache::size_in(Kind kind, std::string_view ns) const {
  const auto store = stores_.find(kind);
  if (store == stores_.end()) return 0;
  const auto group = store->second.by_ns.find(ns);
  return group == store->second.by_ns.end() ? 0 : group->second.size();
}

std::vector<ObjectRef> Cache::controlled(Kind kind, std::string_view owner_uid) const {
  std::vector<ObjectRef> found;
  const auto store = stores_.find(kind);
  if (store == stores_.end()) return found;
  const auto it = store->second.by_controller.find(owner_uid);
  if (it == store->second.by_controller.end()) return found;
  for (const auto& [key, object] : it->second) found.push_back(object);
  return found;
}

std::vector<ObjectRef> Cache::uncontrolled(Kind kind, std::string_view ns) const {
  std::vector<ObjectRef> found;
  const auto store = stores_.find(kind);
  if (store == stores_.end()) return found;
  const auto it = store->second.orphans.find(ns);
  if (it == store->second.orphans.end()) return found;
  for (const auto& [name, object] : it->second) found.push_back(object);
  return found;
}

void Cache::drop_custom_kind(Kind kind) {
  std::erase(custom_, kind);
  stores_.erase(kind);
  selectors_.erase(kind);
}

std::vector<Kind> Cache::all_collectable() const {
  std::vector<Kind> all = collectable_kinds();
  all.insert(all.end(), custom_.begin(), custom_.end());
  return all;
}

Kind Cache::find_reference(std::string_view api_version, std::string_view kind) const {
  if (const Kind own = kind_of_reference(api_version, kind)) return own;
  const std::size_t slash = api_version.find('/');
  const std::string_view group = api_version.substr(0, slash == std::string_view::npos ? 0 : slash);
  const auto it = std::ranges::find_if(custom_, [&](Kind one) { return one->kind == kind && one->group == group; });
  return it == custom_.end() ? nullptr : *it;
}

std::int64_t Cache::revision(Kind kind) const {
  const auto store = stores_.find(kind);
  return store == stores_.end() ? 0 : store->second.revision;
}

PodRef Cache::pod(std::string_view ns, std::string_view name) const {
  const PodMap& pods = pods_in(ns);
  const auto it = pods.find(name);
  return it == pods.end() ? nullptr : it->second;
}

void Cache::for_each_matching(std::string_view ns, const model::Selector& selector, const std::function<void(const PodRef&)>& each) const {
  pods_by_label_.for_each(ns, pods_in(ns), selector, each);
}

const PodMap& Cache::pods_in(std::string_view ns) const { return find_pods(pods_by_ns_, ns); }
const PodMap& Cache::pods_controlled(std::string_view owner_uid) const { return find_pods(pods_by_controller_, owner_uid); }
const PodMap& Cache::orphan_pods(std::string_view ns) const { return find_pods(orphan_pods_, ns); }
const PodMap& Cache::pods_on(std::string_view node) const { return find_pods(pods_by_node_, node); }

void Cache::for_each_pod(const std::function<void(const PodRef&)>& each) const {
  for (const auto& [ns, pods] : pods_by_ns_)
    for (const auto& [name, pod] : pods) each(pod);
}

}  // namespace berth::controllers
