#include "node/devices/device_ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <ranges>

namespace berth::node::devices {
namespace {

/// 0: it does not say.
numa::NodeSet nodes_near(const DeviceLedger::Device& device) {
  numa::NodeSet out = 0;
  for (const std::int64_t node : device.numa_nodes)
    if (node >= 0 && node < numa::kMostNodes) out |= numa::NodeSet{1} << node;
  return out;
}

json::Array as_array(const std::set<std::string>& ids) { return json::Array(ids.begin(), ids.end()); }

std::set<std::string> as_set(const json::Array& ids) {
  std::set<std::string> out;
  for (const auto& id : ids)
    if (id.is_string()) out.emplace(json::as_view(id));
  return out;
}

template <typename Map>
void add_texts(const json::Value& answer, std::string_view field, Map& out) {
  for (const auto& [name, value] : json::get_object(answer, {field}))
    if (value.is_string()) out.emplace(std::string(name), std::string(json::as_view(value)));
}

/// Those whose container_path is not there yet.
void add_paths(const json::Value& answer, std::string_view field, json::Array& out) {
  for (const auto& one : json::get_array(answer, {field}))
    if (std::ranges::none_of(out, [&](const json::Value& other) {
          return json::get_string(other, {"container_path"}) == json::get_string(one, {"container_path"});
        }))
      out.push_back(one);
}

}  // namespace

bool DeviceLedger::report(const std::string& resource, Devices devices) {
  auto& known = resources_[resource];
  const bool was_lost = known.lost_at.has_value();
  const bool is_other = was_lost || known.devices != devices;
  known = {std::move(devices), std::nullopt};
  return is_other;
}

void DeviceLedger::lose(const std::string& resource, TimePoint now) {
  const auto known = resources_.find(resource);
  if (known == resources_.end() || known->second.lost_at) return;
  known->second.lost_at = now;
  for (auto& [id, device] : known->second.devices) device.is_healthy = false;
}

DeviceLedger::Inventory DeviceLedger::inventory(TimePoint now) const {
  Inventory out;
  for (const auto& [name, resource] : resources_) {
    const bool is_gone = resource.lost_at && now - *resource.lost_at >= kPluginPatience;
    out.capacity[name] = is_gone ? 0 : static_cast<std::int64_t>(resource.devices.size());
    out.allocatable[name] = is_gone ? 0 : std::ranges::count_if(resource.devices, [](const auto& one) { return one.second.is_healthy; });
  }
  return out;
}

std::set<std::string> DeviceLedger::taken(std::string_view resource) const {
  std::set<std::string> out;
  for (const auto& [uid, pod] : pods_)
    for (const auto& [name, container] : pod)
      if (const auto hold = container.find(std::string(resource)); hold != container.end())
        out.insert(hold->second.ids.begin(), hold->second.ids.end());
  return out;
}

std::set<std::string> DeviceLedger::free(const std::string& resource) const {
  std::set<std::string> out;
  const auto known = resources_.find(resource);
  if (known == resources_.end()) return out;
  const auto others = taken(resource);
  for (const auto& [id, device] : known->second.devices)
    if (device.is_healthy && !others.contains(id)) out.insert(id);
  return out;
}

std::set<std::string> DeviceLedger::lent(const std::string& uid, const std::string& resource) const {
  const auto found = lent_.find(resource);
  return uid != lender_ || found == lent_.end() ? std::set<std::string>{} : found->second;
}

/// Unset: no plugin says where its devices are.
numa::Hints DeviceLedger::possible(const std::string& uid, const std::string& resource, std::int64_t count, numa::NodeSet machine) const {
  const Devices& devices = resources_.find(resource)->second.devices;
  if (std::ranges::all_of(devices, [](const auto& one) { return nodes_near(one.second) == 0; })) return std::nullopt;
  const auto available = free(resource), borrowed = lent(uid, resource);
  const auto near = [&](const std::string& id, numa::NodeSet nodes) {
    const auto device = devices.find(id);
    return device != devices.end() && (nodes_near(device->second) & nodes) != 0;
  };
  const auto count_near = [&](const auto& ids, numa::NodeSet nodes) {
    return std::ranges::count_if(ids, [&](const auto& id) { return near(id, nodes); });
  };
  const auto could = [&](numa::NodeSet nodes) { return count_near(std::views::keys(devices), nodes) >= count; };
  return numa::hints_where(machine, could, [&](numa::NodeSet nodes) {
    const auto of_borrowed = count_near(borrowed, nodes);
    return of_borrowed == static_cast<std::int64_t>(borrowed.size()) && of_borrowed + count_near(available, nodes) >= count;
  });
}

numa::HintsByResource DeviceLedger::hints(const numa::PodWishes& pod, const numa::Wish& container, numa::NodeSet machine) const {
  numa::HintsByResource out;
  for (const auto& [resource, count] : container.devices)
    if (knows(resource) && hold(pod.uid, container.name, resource) == nullptr) out[resource] = possible(pod.uid, resource, count, machine);
  return out;
}

numa::HintsByResource DeviceLedger::pod_hints(const numa::PodWishes& pod, numa::NodeSet machine) const {
  numa::HintsByResource out;
  if (pods_.contains(pod.uid)) return out;
  for (const auto& [resource, count] : pod.most_at_a_time())
    if (knows(resource)) out[resource] = possible(pod.uid, resource, count, machine);
  return out;
}

std::optional<Refusal> DeviceLedger::give(const numa::PodWishes& pod, const numa::Wish& container, const numa::Hint& near) {
  const std::string &uid = pod.uid, &name = container.name;
  if (lender_ != uid) {
    lender_ = uid;
    lent_.clear();
  }
  Container given;
  for (const auto& [resource, count] : container.devices) {
    if (!knows(resource) || hold(uid, name, resource) != nullptr) continue;
    const Devices& devices = resources_.find(resource)->second.devices;
    const auto borrowed = lent(uid, resource), available = free(resource);
    if (static_cast<std::int64_t>(available.size() + borrowed.size()) < count)
      return numa::too_few_devices(resource, count, static_cast<std::int64_t>(available.size() + borrowed.size()));
    // Near the nodes first, then those that say that they are elsewhere, then those that say nothing.
    std::vector<std::string> in_order(available.begin(), available.end());
    if (near.nodes)
      std::ranges::stable_sort(in_order, {}, [&](const std::string& id) {
        const numa::NodeSet own = nodes_near(devices.at(id));
        return (own & *near.nodes) != 0 ? 0 : own != 0 ? 1 : 2;
      });
    in_order.insert(in_order.begin(), borrowed.begin(), borrowed.end());
    const bool are_placed = std::ranges::any_of(devices, [](const auto& one) { return nodes_near(one.second) != 0; });
    given[resource] = {{in_order.begin(), in_order.begin() + count}, json::Value(), are_placed ? near.nodes : std::nullopt};
  }
  for (const auto& [resource, hold] : given)
    for (const std::string& id : hold.ids) {
      if (container.lends())
        lent_[resource].insert(id);
      else
        lent_[resource].erase(id);
    }
  if (!given.empty()) pods_[uid][name].merge(given);
  return std::nullopt;
}

void DeviceLedger::keep_only(const std::set<std::string>& uids) {
  std::erase_if(pods_, [&](const auto& entry) { return !uids.contains(entry.first); });
}

const DeviceLedger::Hold* DeviceLedger::hold(const std::string& uid, const std::string& container, const std::string& resource) const {
  const auto pod = pods_.find(uid);
  if (pod == pods_.end()) return nullptr;
  const auto of = pod->second.find(container);
  if (of == pod->second.end()) return nullptr;
  const auto found = of->second.find(resource);
  return found == of->second.end() ? nullptr : &found->second;
}

DeviceLedger::Held DeviceLedger::held(const std::string& uid, const std::string& container) const {
  Held out;
  const auto pod = pods_.find(uid);
  if (pod == pods_.end()) return out;
  if (const auto of = pod->second.find(container); of != pod->second.end())
    for (const auto& [resource, hold] : of->second) out.emplace(resource, hold.ids);
  return out;
}

DeviceLedger::ByResource DeviceLedger::held_devices(const std::string& uid, const std::string& container) const {
  ByResource out;
  for (const auto& [resource, ids] : held(uid, container)) {
    const auto known = resources_.find(resource);
    for (const std::string& id : ids) {
      const auto device = known == resources_.end() ? Devices::const_iterator() : known->second.devices.find(id);
      const bool is_listed = known != resources_.end() && device != known->second.devices.end();
      out[resource].emplace(id, is_listed ? device->second : Device{.is_healthy = false, .is_listed = false});
    }
  }
  return out;
}

DeviceLedger::ByResource DeviceLedger::healthy_devices() const {
  ByResource out;
  for (const auto& [name, resource] : resources_)
    for (const auto& [id, device] : resource.devices)
      if (device.is_healthy) out[name].emplace(id, device);
  return out;
}

std::set<std::string> DeviceLedger::choice(const std::string& uid, const std::string& container, const std::string& resource) const {
  std::set<std::string> out;
  const Hold* own = hold(uid, container, resource);
  const auto known = resources_.find(resource);
  if (own == nullptr || known == resources_.end()) return out;
  for (const std::string& id : own->ids)
    if (known->second.devices.contains(id)) out.insert(id);
  for (const std::string& id : free(resource))
    if (!own->near || (nodes_near(known->second.devices.at(id)) & *own->near) != 0) out.insert(id);
  return out;
}

bool DeviceLedger::exchange(const std::string& uid, const std::string& container, const std::string& resource,
                            const std::set<std::string>& ids) {
  const Hold* own = hold(uid, container, resource);
  if (own == nullptr || own->ids.size() != ids.size() || !std::ranges::includes(choice(uid, container, resource), ids)) return false;
  // What it lent or borrowed is another container's as well: those stay what they are.
  for (const auto& [name, of] : pods_.at(uid))
    if (const auto other = of.find(resource); name != container && other != of.end())
      for (const auto& id : own->ids)
        if (other->second.ids.contains(id)) return false;
  pods_.at(uid).at(container).at(resource).ids = ids;
  return true;
}

void DeviceLedger::note_grant(const std::string& uid, const std::string& container, const std::string& resource, json::Value answer) {
  if (hold(uid, container, resource) != nullptr) pods_.at(uid).at(container).at(resource).answer = std::move(answer);
}

const json::Value* DeviceLedger::granted(const std::string& uid, const std::string& container, const std::string& resource) const {
  const Hold* own = hold(uid, container, resource);
  return own == nullptr || own->answer.is_null() ? nullptr : &own->answer;
}

DeviceGrant DeviceLedger::grant(const std::string& uid, const std::string& container) const {
  DeviceGrant out;
  for (const auto& [resource, ids] : held(uid, container)) {
    const json::Value* answer = granted(uid, container, resource);
    if (answer == nullptr) continue;
    add_texts(*answer, "envs", out.environment);
    add_texts(*answer, "annotations", out.annotations);
    add_paths(*answer, "mounts", out.mounts);
    add_paths(*answer, "devices", out.devices);
    for (const auto& one : json::get_array(*answer, {"cdi_devices"}))
      if (const std::string name(json::get_string(one, {"name"})); std::ranges::find(out.cdi_devices, name) == out.cdi_devices.end())
        out.cdi_devices.push_back(name);
  }
  return out;
}

void DeviceLedger::tell(numa::Offer& offer) const {
  for (const auto& [name, resource] : resources_) {
    const auto open = free(name);
    for (const auto& [id, device] : resource.devices)
      for (const int node : numa::numbers_of(nodes_near(device))) {
        numa::Offer::Amount& amount = offer.amounts[name][node];
        ++amount.capacity;
        amount.allocatable += device.is_healthy;
        amount.available += open.contains(id);
      }
  }
  for (const auto& [uid, pod] : pods_) {
    std::map<std::pair<std::string, numa::NodeSet>, std::set<std::string>> theirs;
    for (const auto& [name, container] : pod)
      for (const auto& [resource, devices] : held_devices(uid, name))
        for (const auto& [id, device] : devices)
          if (const numa::NodeSet near = nodes_near(device); near != 0) theirs[{resource, near}].insert(id);
    for (const auto& [what, ids] : theirs) offer.holders[uid].push_back({what.second, what.first, static_cast<std::int64_t>(ids.size())});
  }
}

json::Value DeviceLedger::checkpoint() const {
  json::Array entries;
  for (const auto& [uid, pod] : pods_)
    for (const auto& [name, container] : pod)
      for (const auto& [resource, hold] : container)
        entries.push_back(json::Object{{"podUID", uid},
                                       {"containerName", name},
                                       {"resourceName", resource},
                                       {"deviceIDs", as_array(hold.ids)},
                                       {"allocResp", hold.answer}});
  json::Array registered;
  for (const auto& [name, resource] : resources_) registered.push_back(json::Value(name));
  return json::Object{{"podDeviceEntries", std::move(entries)}, {"registeredDevices", std::move(registered)}};
}

bool DeviceLedger::restore(const json::Value& checkpoint) {
  const json::Value* entries = json::find(checkpoint, "podDeviceEntries");
  if (entries == nullptr || !entries->is_array()) return false;
  for (const auto& entry : entries->get_array()) {
    const std::string uid(json::get_string(entry, {"podUID"})), name(json::get_string(entry, {"containerName"})),
        resource(json::get_string(entry, {"resourceName"}));
    if (uid.empty() || name.empty() || resource.empty()) continue;
    const json::Value* answer = json::find(entry, "allocResp");
    pods_[uid][name][resource] = {as_set(json::get_array(entry, {"deviceIDs"})), answer == nullptr ? json::Value() : *answer};
  }
  // Until its plugin is back a resource has nothing, and is not forgotten.
  for (const auto& name : json::get_array(checkpoint, {"registeredDevices"}))
    if (name.is_string()) resources_[std::string(json::as_view(name))].lost_at = TimePoint{};
  return true;
}

}  // namespace berth::node::devices
