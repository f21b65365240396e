#include "controllers/cache.h"

#include "base/json_scan.h"
#include "client/heartbeats.h"

namespace berth::controllers {
namespace {

const ObjectSet kNothing;

template <typename Map>
void erase_from(Map& map, std::string_view group, const KnownObject& known) {
  const auto it = map.find(group);
  if (it == map.end()) return;
  it->second.erase(&known);
  if (it->second.empty()) map.erase(it);
}

/// Lists come in order of names: then without a search.
void insert(ObjectSet& set, const KnownObject& known) { set.insert(set.end(), &known); }

/// spec.selector as it stands in the bytes.
std::string selector_text(const Object& object) {
  static const json::PathScanner scanner({"spec.selector"});
  std::string_view value;
  const HeldText text = object.text();
  return scanner.scan(*text, {&value, 1}) ? std::string(value) : std::string();
}

template <typename Map>
const ObjectSet& find_set(const Map& map, std::string_view group) {
  const auto it = map.find(group);
  return it == map.end() ? kNothing : it->second;
}

std::vector<ObjectRef> objects_of(const ObjectSet& set) {
  std::vector<ObjectRef> objects;
  objects.reserve(set.size());
  for (const KnownObject* known : set) objects.push_back(known->object);
  return objects;
}

}  // namespace

std::string spec_text(const Object& object) {
  static const json::PathScanner scanner({"spec"});
  std::string_view value;
  const HeldText text = object.text();
  return scanner.scan(*text, {&value, 1}) ? std::string(value) : std::string();
}

model::Selector selector_of(Kind kind, const json::Value& document) {
  const json::Value* selector = json::find(document, {"spec", "selector"});
  if (kind != kinds().service && kind != kinds().replication_controller)
    return model::Selector::from_label_selector(selector).value_or(model::Selector::nothing());
  if (selector == nullptr || !selector->is_object() || selector->get_object().empty()) return model::Selector::nothing();
  return model::Selector::from_map(selector);
}

KnownObject* Cache::Store::find(std::string_view ns, std::string_view name) const {
  const auto it = all.find(ObjectName{ns, name});
  return it == all.end() ? nullptr : it->get();
}

const Cache::Store* Cache::store_of(Kind kind) const {
  const auto it = stores_.find(kind);
  return it == stores_.end() ? nullptr : &it->second;
}

const KnownObject* Cache::find(Kind kind, std::string_view ns, std::string_view name) const {
  const Store* store = store_of(kind);
  return store == nullptr ? nullptr : store->find(ns, name);
}

Event Cache::apply(Kind kind, ObjectRef after, bool is_delete) {
  Store& store = stores_[kind];
  store.revision = std::max(store.revision, after->revision());
  KnownObject* const known = store.find(after->ns(), after->name());
  Event event{kind, nullptr, is_delete ? nullptr : after, nullptr, nullptr};
  if (known != nullptr) {
    event.before = known->object;
    event.pod_before = known->pod;
    if (!is_delete && event.before->revision() == after->revision() && event.before->uid() == after->uid()) {
      event.after = event.before;
      event.pod_after = event.pod_before;
      return event;
    }
  } else if (is_delete) {
    return event;
  }
  event.is_heartbeat = kind == kinds().node && event.before && event.after && client::is_heartbeat(*event.before, *event.after);
  if (!is_delete && kind == kinds().pod) event.pod_after = make_pod_info(event.after);
  index_selector(kind, event.before, event.after);
  if (known == nullptr)
    enter(store, event.after, event.pod_after);
  else if (is_delete)
    leave(store, *known);
  else
    replace(store, *known, event.after, event.pod_after);
  return event;
}

void Cache::enter_owner(Store& store, const KnownObject& known) {
  const std::string& owner = known.object->controller_uid();
  insert(owner.empty() ? store.orphans[known.object->ns()] : store.by_controller[owner], known);
}

void Cache::leave_owner(Store& store, const KnownObject& known) {
  const std::string& owner = known.object->controller_uid();
  if (owner.empty())
    erase_from(store.orphans, known.object->ns(), known);
  else
    erase_from(store.by_controller, owner, known);
}

void Cache::enter(Store& store, ObjectRef object, PodRef pod) {
  const KnownObject& known = **store.all.insert(std::make_unique<KnownObject>(std::move(object), std::move(pod))).first;
  insert(store.by_ns[known.object->ns()], known);
  enter_owner(store, known);
  if (!known.pod) return;
  pods_by_node_[known.pod->node].insert(&known);
  pods_by_label_.update(known, nullptr, &known.pod->labels());
}

void Cache::replace(Store& store, KnownObject& known, ObjectRef object, PodRef pod) {
  const bool moves_owner = known.object->controller_uid() != object->controller_uid();
  const bool moves_node = pod && known.pod->node != pod->node;
  if (moves_owner) leave_owner(store, known);
  if (moves_node) erase_from(pods_by_node_, known.pod->node, known);
  if (pod) pods_by_label_.update(known, &known.pod->labels(), &pod->labels());
  known.object = std::move(object);
  known.pod = std::move(pod);
  if (moves_owner) enter_owner(store, known);
  if (moves_node) pods_by_node_[known.pod->node].insert(&known);
}

void Cache::leave(Store& store, const KnownObject& known) {
  const std::string ns = known.object->ns();
  leave_owner(store, known);
  if (known.pod) {
    erase_from(pods_by_node_, known.pod->node, known);
    pods_by_label_.update(known, &known.pod->labels(), nullptr);
  }
  erase_from(store.by_ns, ns, known);
  if (known.pod && !store.by_ns.contains(ns)) pods_by_label_.forget(ns);
  store.all.erase(store.all.find(ObjectName{ns, known.object->name()}));
}

void Cache::index_selector(Kind kind, const ObjectRef& before, const ObjectRef& after) {
  const auto index = selectors_.find(kind);
  if (index == selectors_.end()) return;
  if (!after) return index->second.erase(before->ns(), before->name());
  // Status changes often, selectors hardly ever.
  if (before && selector_text(*before) == selector_text(*after)) return;
  index->second.set(after->ns(), after->name(), selector_of(kind, *after->parsed()));
}

std::vector<ObjectRef> Cache::selecting(Kind kind, std::string_view ns, const model::Labels& labels) const {
  const auto [index, is_new] = selectors_.try_emplace(kind);
  if (is_new) for_each(kind, [&](const ObjectRef& one) { index->second.set(one->ns(), one->name(), selector_of(kind, *one->parsed())); });
  std::vector<ObjectRef> out;
  for (const std::string& name : index->second.matching(ns, labels)) out.push_back(get(kind, ns, name));
  return out;
}

ObjectRef Cache::get(Kind kind, std::string_view ns, std::string_view name) const {
  const KnownObject* known = find(kind, ns, name);
  return known == nullptr ? nullptr : known->object;
}

void Cache::for_each(Kind kind, const std::function<void(const ObjectRef&)>& each) const {
  const Store* store = store_of(kind);
  if (store == nullptr) return;
  for (const auto& [ns, objects] : store->by_ns)
    for (const KnownObject* known : objects) each(known->object);
}

void Cache::for_each_in(Kind kind, std::string_view ns, const std::function<void(const ObjectRef&)>& each) const {
  const Store* store = store_of(kind);
  if (store == nullptr) return;
  for (const KnownObject* known : find_set(store->by_ns, ns)) each(known->object);
}

std::size_t Cache::size(Kind kind) const {
  const Store* store = store_of(kind);
  return store == nullptr ? 0 : store->all.size();
}

std::size_t Cache::size_in(Kind kind, std::string_view ns) const {
  const Store* store = store_of(kind);
  return store == nullptr ? 0 : find_set(store->by_ns, ns).size();
}

std::vector<ObjectRef> Cache::controlled(Kind kind, std::string_view owner_uid) const {
  const Store* store = store_of(kind);
  return store == nullptr ? std::vector<ObjectRef>() : objects_of(find_set(store->by_controller, owner_uid));
}

std::vector<ObjectRef> Cache::uncontrolled(Kind kind, std::string_view ns) const {
  const Store* store = store_of(kind);
  return store == nullptr ? std::vector<ObjectRef>() : objects_of(find_set(store->orphans, ns));
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
  const Store* store = store_of(kind);
  return store == nullptr ? 0 : store->revision;
}

PodRef Cache::pod(std::string_view ns, std::string_view name) const {
  const KnownObject* known = find(kinds().pod, ns, name);
  return known == nullptr ? nullptr : known->pod;
}

void Cache::for_each_matching(std::string_view ns, const model::Selector& selector, const std::function<void(const PodRef&)>& each) const {
  const Store* pods = store_of(kinds().pod);
  if (pods != nullptr) pods_by_label_.for_each(ns, find_set(pods->by_ns, ns), selector, each);
}

PodRange Cache::pods_in(std::string_view ns) const {
  const Store* pods = store_of(kinds().pod);
  return pods_of(pods == nullptr ? kNothing : find_set(pods->by_ns, ns));
}
PodRange Cache::pods_controlled(std::string_view owner_uid) const {
  const Store* pods = store_of(kinds().pod);
  return pods_of(pods == nullptr ? kNothing : find_set(pods->by_controller, owner_uid));
}
PodRange Cache::orphan_pods(std::string_view ns) const {
  const Store* pods = store_of(kinds().pod);
  return pods_of(pods == nullptr ? kNothing : find_set(pods->orphans, ns));
}
PodRange Cache::pods_on(std::string_view node) const { return pods_of(find_set(pods_by_node_, node)); }

void Cache::for_each_pod(const std::function<void(const PodRef&)>& each) const {
  const Store* pods = store_of(kinds().pod);
  if (pods == nullptr) return;
  for (const auto& [ns, set] : pods->by_ns)
    for (const PodRef& pod : pods_of(set)) each(pod);
}

}  // namespace berth::controllers
