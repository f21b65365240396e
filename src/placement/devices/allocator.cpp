#include "placement/devices/allocator.h"

#include <fmt/format.h>

#include <algorithm>

#include "placement/devices/constraints.h"
#include "placement/devices/pools.h"
#include "placement/devices/results.h"
#include "placement/devices/taints.h"

namespace berth::placement::devices {
namespace {

using model::DeviceRequest;
using model::DeviceView;
using model::ResourceClaimView;
using model::ResourceSliceView;

constexpr std::size_t kMostResults = 32;

using Counters = std::map<std::string, std::map<std::string, model::Quantity, std::less<>>, std::less<>>;

/// One request, or one alternative of one.
struct RequestKey {
  std::size_t claim = 0, request = 0, sub = 0;
  friend auto operator<=>(const RequestKey&, const RequestKey&) = default;
};

struct Candidate {
  const DeviceView* device = nullptr;
  const ResourceSliceView* slice = nullptr;
  const Pool* pool = nullptr;
  DeviceId id;
};

struct RequestData {
  const DeviceRequest* request = nullptr;
  std::string parent;  ///< The request whose alternative it is; empty for exact requests.
  const model::DeviceClassView* device_class = nullptr;
  std::size_t devices = 0;
  std::size_t chosen = 0;      ///< Of the first alternative's entry: which of them was taken.
  std::vector<Candidate> all;  ///< For "all": those that match.
};

/// Where the search for the next device of the same request goes on: permutations of one choice are one choice.
struct Location {
  std::size_t pool = 0, slice = 0, device = 0;
};

}  // namespace

void AllocatedState::add(const model::Allocation& allocation) {
  for (const auto& one : allocation.devices) {
    if (one.admin_access) continue;
    DeviceId id{one.driver, one.pool, one.device};
    if (!one.share_id) {
      devices.insert(std::move(id));
      continue;
    }
    shared.insert(id);
    if (one.consumed_capacity.empty()) continue;
    Shares& sum = shares[std::move(id)];
    for (const auto& [name, amount] : one.consumed_capacity) sum[name] += amount;
  }
}

/// One node's search. Undone steps restore what they changed, with kube-scheduler's own exceptions: they decide which devices are found.
struct Allocator::Search {
  enum class Outcome : std::uint8_t { kDone, kNotHere, kTooMany };
  /// kTooMany: more devices than a claim can hold, whatever is chosen before.
  using Found = Expected<Outcome, AllocationError>;

  Allocator& owner;
  const model::NodeView& node;
  std::span<const ResourceClaimView* const> claims;
  std::vector<Pool> pools;
  std::map<RequestKey, RequestData> requests;
  std::map<std::pair<DeviceId, RequestKey>, bool> matches;
  std::vector<std::vector<Constraint>> constraints;
  std::map<DeviceId, std::set<std::size_t>> allocating;  ///< To the claims that get it.
  std::map<DeviceId, Shares> allocating_shares;
  std::map<PoolId, Counters> available, consumed;
  std::vector<std::vector<ChosenDevice>> results;
  std::size_t steps = 0;

  static AllocationError fatal(std::string message) { return {AllocationError::Kind::kFatal, std::move(message)}; }
  [[nodiscard]] std::string claim_name(std::size_t index) const { return claims[index]->meta.key(); }

  std::optional<AllocationError> prepare();
  Expected<std::size_t, AllocationError> prepare_request(const DeviceRequest& request, const std::string& parent, RequestKey key);
  Expected<bool, AllocationError> collect_all(RequestData& data, RequestKey key);
  Expected<bool, AllocationError> is_selectable(RequestKey key, const RequestData& data, const ResourceSliceView& slice,
                                                const DeviceView& device);
  Expected<bool, AllocationError> selectors_match(const std::vector<std::string>& selectors, const std::string& whose,
                                                  const std::string& driver, const DeviceView& device);
  Found next(std::size_t claim, std::size_t request);
  Found first_available(RequestKey key);
  Found next_device(RequestKey key, std::size_t index, Location start);
  Found try_candidate(RequestKey key, std::size_t index, const Candidate& candidate, Location next_start);
  Expected<bool, AllocationError> take(RequestKey key, const Candidate& candidate, bool must);
  void give_back(RequestKey key, const Candidate& candidate);
  bool take_counters(const Candidate& candidate);
  void give_back_counters(const Candidate& candidate);
  Counters free_counters(const Pool& pool) const;
  [[nodiscard]] bool fits(const DeviceRequest& request, const Candidate& candidate) const;
  [[nodiscard]] bool is_tainted(const DeviceRequest& request, const Candidate& candidate) const;

  [[nodiscard]] bool is_allocating(const DeviceId& id) const {
    const auto at = allocating.find(id);
    return at != allocating.end() && !at->second.empty();
  }
  [[nodiscard]] bool is_allocating(const DeviceId& id, std::size_t claim) const {
    const auto at = allocating.find(id);
    return at != allocating.end() && at->second.contains(claim);
  }
  [[nodiscard]] bool is_in_use(const DeviceId& id) const { return owner.inventory_.allocated.devices.contains(id) || is_allocating(id); }
};

Allocator::Allocator(Inventory inventory, Matcher& matcher) : inventory_(std::move(inventory)), matcher_(matcher) {
  for (const auto* slice : inventory_.slices) {
    if (slice->node_name && !slice->node_name->empty() && slice->counter_sets.empty())
      slices_of_node_[*slice->node_name].push_back(slice);
    else
      shared_slices_.push_back(slice);
  }
}

Allocator::~Allocator() = default;

AllocationAnswer Allocator::allocate(const model::NodeView& node, std::span<const ResourceClaimView* const> claims) {
  Search search{*this, node, claims};
  std::vector<const ResourceSliceView*> candidates;
  if (const auto own = slices_of_node_.find(node.name()); own != slices_of_node_.end()) candidates = own->second;
  candidates.insert(candidates.end(), shared_slices_.begin(), shared_slices_.end());
  search.pools = gather_pools(candidates, node, inventory_.slices);
  if (auto error = search.prepare()) return std::unexpected(std::move(*error));
  const auto found = search.next(0, 0);
  if (!found) return std::unexpected(found.error());
  if (*found != Search::Outcome::kDone) {
    if (std::ranges::any_of(search.pools, &Pool::is_invalid))
      return std::unexpected(AllocationError{AllocationError::Kind::kThisNode, "invalid resource pools were encountered"});
    return std::nullopt;
  }
  std::vector<std::shared_ptr<const model::Allocation>> out;
  for (std::size_t i = 0; i < claims.size(); ++i) {
    std::vector<ChosenRequest> chosen;
    for (std::size_t k = 0; k < claims[i]->requests.size(); ++k) {
      const RequestData* data = &search.requests.at({i, k, 0});
      std::string sub;
      if (!data->parent.empty()) {
        data = &search.requests.at({i, k, data->chosen});
        sub = data->request->name;
      }
      chosen.push_back({claims[i]->requests[k].name, std::move(sub), data->device_class});
    }
    out.push_back(make_allocation(*claims[i], search.results[i], chosen, node.name()));
  }
  return out;
}

std::optional<AllocationError> Allocator::Search::prepare() {
  results.resize(claims.size());
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const ResourceClaimView& claim = *claims[i];
    std::size_t least = 0;
    for (std::size_t k = 0; k < claim.requests.size(); ++k) {
      const auto& group = claim.requests[k];
      if (group.first_available.empty()) {
        static const DeviceRequest kNone;
        const auto devices = prepare_request(group.exactly ? *group.exactly : kNone, "", {i, k, 0});
        if (!devices) return devices.error();
        least += *devices;
        continue;
      }
      std::size_t fewest = SIZE_MAX;
      for (std::size_t sub = 0; sub < group.first_available.size(); ++sub) {
        const auto devices = prepare_request(group.first_available[sub], group.name, {i, k, sub});
        if (!devices) return devices.error();
        fewest = std::min(fewest, *devices);
      }
      least += fewest;
    }
    if (least > kMostResults)
      return fatal(
          fmt::format("claim {}: number of requested devices {} exceeds the claim limit of {}", claim_name(i), least, kMostResults));
    auto& list = constraints.emplace_back();
    for (std::size_t k = 0; k < claim.constraints.size(); ++k) {
      list.emplace_back(claim.constraints[k]);
      if (!list.back().is_known())
        return fatal(fmt::format("claim {}, constraint #{}: empty constraint (unsupported constraint type?)", claim_name(i), k));
    }
  }
  return std::nullopt;
}

/// How many devices it takes.
Expected<std::size_t, AllocationError> Allocator::Search::prepare_request(const DeviceRequest& request, const std::string& parent,
                                                                          RequestKey key) {
  const std::string what = fmt::format("claim {}, request {}", claim_name(key.claim), request.name);
  if (request.unknown_selector)
    return std::unexpected(
        fatal(fmt::format("{}, selector #{}: CEL expression empty (unsupported selector type?)", what, *request.unknown_selector)));
  if (request.class_name.empty())
    return std::unexpected(fatal(fmt::format("{}: missing device class name (unsupported request type?)", what)));
  RequestData data{&request, parent};
  data.device_class = owner.inventory_.find_class(request.class_name);
  if (data.device_class == nullptr)
    return std::unexpected(fatal(fmt::format("{}: could not retrieve device class {}: deviceclass.resource.k8s.io \"{}\" not found", what,
                                             request.class_name, request.class_name)));
  if (request.is_all) {
    if (auto collected = collect_all(data, key); !collected) return std::unexpected(collected.error());
    data.devices = data.all.size();
  } else if (request.mode == "ExactCount") {
    data.devices = static_cast<std::size_t>(std::max<std::int64_t>(request.count, 0));
  } else {
    return std::unexpected(fatal(fmt::format("{}: unsupported count mode {}", what, request.mode)));
  }
  const std::size_t devices = data.devices;
  requests.emplace(key, std::move(data));
  return devices;
}

Expected<bool, AllocationError> Allocator::Search::collect_all(RequestData& data, RequestKey key) {
  for (const Pool& pool : pools) {
    if (pool.is_incomplete || pool.is_invalid)
      return std::unexpected(
          fatal(fmt::format("claim {}, request {}: asks for all devices, but resource pool {} is currently {}", claim_name(key.claim),
                            data.request->name, pool.id.text(), pool.is_incomplete ? "being updated" : "invalid")));
    for (const auto* slice : pool.slices)
      for (const auto& device : slice->devices) {
        const auto selectable = is_selectable(key, data, *slice, device);
        if (!selectable) return std::unexpected(selectable.error());
        if (!*selectable) continue;
        Candidate candidate{&device, slice, &pool, {slice->driver, slice->pool, device.name}};
        if (fits(*data.request, candidate)) data.all.push_back(std::move(candidate));
      }
  }
  return true;
}

Expected<bool, AllocationError> Allocator::Search::selectors_match(const std::vector<std::string>& selectors, const std::string& whose,
                                                                   const std::string& driver, const DeviceView& device) {
  for (std::size_t i = 0; i < selectors.size(); ++i) {
    const auto matched = owner.matcher_.matches(selectors[i], driver, device);
    if (!matched) return std::unexpected(fatal(fmt::format("{}: selector #{}: {}", whose, i, matched.error())));
    if (!*matched) return false;
  }
  return true;
}

/// Whether the device is one that the request's class and its own selectors mean, and that the node reaches.
Expected<bool, AllocationError> Allocator::Search::is_selectable(RequestKey key, const RequestData& data, const ResourceSliceView& slice,
                                                                 const DeviceView& device) {
  const auto [at, is_new] = matches.try_emplace({{slice.driver, slice.pool, device.name}, key}, false);
  if (!is_new) return at->second;
  auto matched = selectors_match(data.device_class->selectors, "class " + data.device_class->meta.name, slice.driver, device);
  if (matched && *matched) matched = selectors_match(data.request->selectors, "claim " + claim_name(key.claim), slice.driver, device);
  if (!matched) {
    matches.erase(at);
    return matched;
  }
  at->second = *matched && (!slice.per_device || reaches(node, device.node_name, device.all_nodes, device.node_selector));
  return at->second;
}

bool Allocator::Search::fits(const DeviceRequest& request, const Candidate& candidate) const {
  const auto& taken = owner.inventory_.allocated.shares;
  const auto before = taken.find(candidate.id), now = allocating_shares.find(candidate.id);
  return has_capacity(*candidate.device, request.capacity, before == taken.end() ? nullptr : &before->second,
                      now == allocating_shares.end() ? nullptr : &now->second);
}

/// By its driver's word, or by a rule.
bool Allocator::Search::is_tainted(const DeviceRequest& request, const Candidate& candidate) const {
  return std::ranges::any_of(candidate.device->taints, [&](const model::Taint& one) { return !is_tolerated(one, request); }) ||
         std::ranges::any_of(owner.inventory_.taint_rules, [&](const model::DeviceTaintRuleView* rule) {
           return rule->matches(candidate.id.driver, candidate.id.pool, candidate.id.device) && !is_tolerated(rule->taint, request);
         });
}

/// Everything from this request on.
Allocator::Search::Found Allocator::Search::next(std::size_t claim, std::size_t request) {
  if (++steps > kMaxSteps) return std::unexpected(AllocationError{AllocationError::Kind::kExhausted, {}});
  if (claim >= claims.size()) return Outcome::kDone;
  if (request >= claims[claim]->requests.size()) {
    const Found found = next(claim + 1, 0);
    // Another choice here may leave the next claim an alternative with fewer devices.
    if (found && *found == Outcome::kTooMany) return Outcome::kNotHere;
    return found;
  }
  const RequestKey key{claim, request, 0};
  return requests.at(key).parent.empty() ? next_device(key, 0, {}) : first_available(key);
}

Allocator::Search::Found Allocator::Search::first_available(RequestKey key) {
  const RequestKey first = key;
  bool all_too_many = true;
  for (; requests.contains(key); ++key.sub) {
    const Found found = next_device(key, 0, {});
    if (found && *found == Outcome::kTooMany) continue;
    all_too_many = false;
    if (!found) return found;
    if (*found == Outcome::kDone) {
      requests.at(first).chosen = key.sub;
      return Outcome::kDone;
    }
  }
  return all_too_many ? Outcome::kTooMany : Outcome::kNotHere;
}

/// The request's device number `index`, and all that comes after it.
Allocator::Search::Found Allocator::Search::next_device(RequestKey key, std::size_t index, Location start) {
  if (++steps > kMaxSteps) return std::unexpected(AllocationError{AllocationError::Kind::kExhausted, {}});
  const RequestData& data = requests.at(key);
  const DeviceRequest& request = *data.request;
  if (request.is_all && data.all.empty()) return Outcome::kNotHere;
  if (index >= data.devices) return next(key.claim, key.request + 1);
  if (results[key.claim].size() + data.devices - index > kMostResults) return Outcome::kTooMany;
  if (request.is_all) {
    const Candidate& candidate = data.all[index];
    const auto taken = take(key, candidate, true);
    if (!taken) return std::unexpected(taken.error());
    return *taken ? try_candidate(key, index, candidate, {}) : Found(Outcome::kNotHere);
  }
  for (std::size_t p = start.pool; p < pools.size(); ++p) {
    const Pool& pool = pools[p];
    if (pool.is_incomplete || pool.is_invalid) continue;
    for (std::size_t s = p == start.pool ? start.slice : 0; s < pool.slices.size(); ++s) {
      const ResourceSliceView& slice = *pool.slices[s];
      for (std::size_t d = p == start.pool && s == start.slice ? start.device : 0; d < slice.devices.size(); ++d) {
        const DeviceView& device = slice.devices[d];
        const Candidate candidate{&device, &slice, &pool, {pool.id.driver, pool.id.pool, device.name}};
        if (request.admin_access ? is_allocating(candidate.id, key.claim) : is_in_use(candidate.id)) continue;
        const auto selectable = is_selectable(key, data, slice, device);
        if (!selectable) return std::unexpected(selectable.error());
        if (!*selectable || !fits(request, candidate)) continue;
        const auto taken = take(key, candidate, false);
        if (!taken) return std::unexpected(taken.error());
        if (!*taken) continue;
        const Found found = try_candidate(key, index, candidate, {p, s, d + 1});
        if (!found || *found != Outcome::kNotHere) return found;
      }
    }
  }
  return Outcome::kNotHere;
}

/// With the candidate taken: the rest of the request and of the claims. Given back unless that works out.
Allocator::Search::Found Allocator::Search::try_candidate(RequestKey key, std::size_t index, const Candidate& candidate,
                                                          Location next_start) {
  Found found = next_device(key, index + 1, next_start);
  if (!found || *found != Outcome::kDone) give_back(key, candidate);
  return found;
}

Expected<bool, AllocationError> Allocator::Search::take(RequestKey key, const Candidate& candidate, bool must) {
  const RequestData& data = requests.at(key);
  const DeviceRequest& request = *data.request;
  const DeviceView& device = *candidate.device;
  const bool is_shared = device.allows_sharing;
  if (!is_shared && request.admin_access && is_allocating(candidate.id, key.claim)) return false;
  if (!request.admin_access && is_in_use(candidate.id)) return false;
  const bool has_shares = owner.inventory_.allocated.shares.contains(candidate.id) || allocating_shares.contains(candidate.id);
  // The first share of a device takes its counters, the others find them taken.
  if (!(is_shared && has_shares) && !device.consumes.empty() && !take_counters(candidate)) return false;
  if (is_tainted(request, candidate)) return false;
  const std::string& base = data.parent.empty() ? request.name : data.parent;
  const std::string sub = data.parent.empty() ? std::string() : request.name;
  auto& list = constraints[key.claim];
  for (std::size_t i = 0; i < list.size(); ++i) {
    if (list[i].add(base, sub, device, candidate.id.driver)) continue;
    if (must)
      return std::unexpected(
          fatal(fmt::format("claim {}, request {}: cannot add device {} because a claim constraint would not be satisfied",
                            claim_name(key.claim), request.name, candidate.id.text())));
    for (std::size_t k = 0; k < i; ++k) list[k].remove(base, sub);
    return false;
  }
  if (!is_shared) allocating[candidate.id].insert(key.claim);
  if (!fits(request, candidate)) return false;
  ChosenDevice chosen{&request, data.parent, &device, candidate.slice, candidate.id, is_shared, {}};
  if (is_shared) {
    chosen.consumed = shares_of(device, request.capacity);
    add(allocating_shares[candidate.id], chosen.consumed);
  }
  results[key.claim].push_back(std::move(chosen));
  return true;
}

void Allocator::Search::give_back(RequestKey key, const Candidate& candidate) {
  const RequestData& data = requests.at(key);
  for (auto& one : constraints[key.claim])
    one.remove(data.parent.empty() ? data.request->name : data.parent, data.parent.empty() ? std::string() : data.request->name);
  auto& list = results[key.claim];
  if (candidate.device->allows_sharing) {
    const auto at = allocating_shares.find(candidate.id);
    if (!list.back().consumed.empty() && at != allocating_shares.end()) {
      subtract(at->second, list.back().consumed);
      if (is_empty(at->second)) allocating_shares.erase(at);
    }
  } else {
    allocating[candidate.id].erase(key.claim);
    if (!candidate.device->consumes.empty()) give_back_counters(candidate);
  }
  list.pop_back();
}

/// What of the pool's counters the devices given away have left.
Counters Allocator::Search::free_counters(const Pool& pool) const {
  Counters out;
  for (const auto* set : pool.counter_sets)
    for (const auto& [name, amount] : set->counters) out[set->name][name] = amount;
  for (const auto* list : {&pool.slices, &pool.others})
    for (const auto* slice : *list)
      for (const auto& device : slice->devices) {
        if (device.consumes.empty() || !owner.inventory_.allocated.is_allocated({slice->driver, slice->pool, device.name})) continue;
        for (const auto& one : device.consumes)
          for (const auto& [name, amount] : one.counters)
            if (auto& set = out[one.counter_set]; set.contains(name)) set[name] -= amount;
      }
  return out;
}

bool Allocator::Search::take_counters(const Candidate& candidate) {
  const PoolId& id = candidate.pool->id;
  auto at = available.find(id);
  if (at == available.end()) at = available.emplace(id, free_counters(*candidate.pool)).first;
  Counters& taken = consumed[id];
  for (const auto& one : candidate.device->consumes)
    for (const auto& [name, amount] : one.counters) taken[one.counter_set][name] += amount;
  for (const auto& [set, counters] : at->second)
    for (const auto& [name, amount] : counters) {
      const auto in_set = taken.find(set);
      if (amount < (in_set == taken.end() ? model::Quantity() : in_set->second[name])) {
        give_back_counters(candidate);
        return false;
      }
    }
  return true;
}

void Allocator::Search::give_back_counters(const Candidate& candidate) {
  Counters& taken = consumed[candidate.pool->id];
  for (const auto& one : candidate.device->consumes)
    for (const auto& [name, amount] : one.counters) taken[one.counter_set][name] -= amount;
}

}  // namespace berth::placement::devices
