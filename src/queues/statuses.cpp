// What ClusterQueues, LocalQueues, cohorts and flavors show of themselves, and what holds them while they are used.
#include <fmt/format.h>

#include <algorithm>

#include "queues/core_impl.h"

namespace berth::queues {
namespace {

using json::Array;
using json::Object;
using json::Value;

/// By flavor and resource, of the quotas of a queue, in their order.
Array usage_document(const ClusterQueue& queue, const FlavorAmounts& used, bool with_borrowed) {
  Array out;
  for (const ResourceGroup& group : queue.groups)
    for (const std::string& flavor : group.flavors) {
      Array resources;
      for (const std::string& resource : group.resources) {
        const auto found = used.find({flavor, resource});
        const Amount total = found == used.end() ? 0 : found->second;
        Object one{{"name", resource}, {"total", amount_text(resource, total)}};
        const auto quota = queue.quotas.find({flavor, resource});
        const Amount nominal = quota == queue.quotas.end() ? 0 : quota->second.nominal;
        // Without a cohort nobody lends.
        const Amount over = queue.cohort.empty() ? 0 : std::max<Amount>(0, total - nominal);
        if (with_borrowed) one["borrowed"] = amount_text(resource, over);
        resources.push_back(std::move(one));
      }
      out.push_back(Object{{"name", flavor}, {"resources", std::move(resources)}});
    }
  return out;
}

struct Figures {
  FlavorAmounts reserved, used;
  std::int64_t reserving = 0, admitted = 0;
  void add(const Reservation& reservation) {
    ++reserving;
    admitted += reservation.is_admitted ? 1 : 0;
    for (const auto& [what, amount] : reservation.usage) {
      reserved[what] = plus(reserved[what], amount);
      if (reservation.is_admitted) used[what] = plus(used[what], amount);
    }
  }
};

bool has_finalizer(const Value& document) {
  return std::ranges::any_of(json::get_array(document, {"metadata", "finalizers"}),
                             [](const Value& one) { return one.is_string() && json::as_view(one) == kInUseFinalizer; });
}

void set_finalizer(Value& document, bool is_wanted) {
  Array kept = json::get_array(document, {"metadata", "finalizers"});
  drop_if(kept, [](const Value& one) { return one.is_string() && json::as_view(one) == kInUseFinalizer; });
  if (is_wanted) kept.emplace_back(kInUseFinalizer);
  json::set(document, {"metadata", "finalizers"}, std::move(kept));
}

class StatusWriter {
 public:
  explicit StatusWriter(CoreState& impl) : impl_(impl) {}

  void cluster_queue(const std::string& name) {
    const ObjectKey key{Kind::kClusterQueue, "", name};
    const Value* known = impl_.document(key);
    const auto found = impl_.queues.find(name);
    if (known == nullptr || found == impl_.queues.end() || !impl_.may_write(key)) return;
    const ClusterQueue& queue = found->second;
    if (hold(key, *known, queue.is_deleting, !impl_.books.of_queue(name).empty())) return;
    Figures figures;
    for (const auto& [workload, reservation] : impl_.books.of_queue(name)) figures.add(*reservation);
    Value changed = *known;
    Object& status = json::ensure_object(changed, {"status"});
    status["flavorsReservation"] = usage_document(queue, figures.reserved, true);
    status["flavorsUsage"] = usage_document(queue, figures.used, true);
    status["pendingWorkloads"] = pending(name);
    status["reservingWorkloads"] = figures.reserving;
    status["admittedWorkloads"] = figures.admitted;
    if (impl_.settings.fair_sharing)
      status["fairSharing"] = Object{{"weightedShare", impl_.books.tree().share(impl_.books.tree().queue(name))}};
    else
      status.erase("fairSharing");
    const Inactivity& why = impl_.inactive[name];
    if (why.reason.empty())
      set_condition(changed, "Active", true, "Ready", "Can admit new workloads", impl_.now);
    else
      set_condition(changed, "Active", false, why.reason, why.message, impl_.now);
    write(key, *known, std::move(changed));
  }

  void local_queue(const WorkloadKey& name) {
    const ObjectKey key{Kind::kLocalQueue, name.first, name.second};
    const Value* known = impl_.document(key);
    const auto found = impl_.local_queues.find(name);
    if (known == nullptr || found == impl_.local_queues.end() || !impl_.may_write(key)) return;
    const LocalQueue& local = found->second;
    Figures figures;
    std::int64_t waiting = 0;
    if (const auto mine = impl_.by_local_queue.find(name); mine != impl_.by_local_queue.end())
      for (const WorkloadKey& workload : mine->second) {
        if (const Reservation* held = impl_.books.find(workload)) figures.add(*held);
        waiting += impl_.workloads[workload].place ? 1 : 0;
      }
    Value changed = *known;
    Object& status = json::ensure_object(changed, {"status"});
    const auto queue = impl_.queues.find(local.cluster_queue);
    const ClusterQueue none;
    status["flavorsReservation"] = usage_document(queue == impl_.queues.end() ? none : queue->second, figures.reserved, false);
    status["flavorUsage"] = usage_document(queue == impl_.queues.end() ? none : queue->second, figures.used, false);
    status["pendingWorkloads"] = waiting;
    status["reservingWorkloads"] = figures.reserving;
    status["admittedWorkloads"] = figures.admitted;
    constexpr std::string_view kNoQueue = "Can't submit new workloads to clusterQueue";
    if (local.stop != StopPolicy::kNone)
      set_condition(changed, "Active", false, "Stopped", "LocalQueue is stopped", impl_.now);
    else if (queue == impl_.queues.end())
      set_condition(changed, "Active", false, "ClusterQueueDoesNotExist", kNoQueue, impl_.now);
    else if (!impl_.inactive[local.cluster_queue].reason.empty())
      set_condition(changed, "Active", false, "ClusterQueueIsInactive", kNoQueue, impl_.now);
    else
      set_condition(changed, "Active", true, "Ready", "Can submit new workloads to localQueue", impl_.now);
    write(key, *known, std::move(changed));
  }

  void flavor(const std::string& name, const Flavor& flavor) {
    const ObjectKey key{Kind::kResourceFlavor, "", name};
    const Value* known = impl_.document(key);
    if (known == nullptr || !impl_.may_write(key)) return;
    const bool is_used = std::ranges::any_of(impl_.queues, [&](const auto& queue) {
      return std::ranges::any_of(queue.second.groups,
                                 [&](const ResourceGroup& group) { return std::ranges::find(group.flavors, name) != group.flavors.end(); });
    });
    static_cast<void>(hold(key, *known, flavor.is_deleting, is_used));
  }

 private:
  [[nodiscard]] std::int64_t pending(const std::string& queue) const {
    const auto found = impl_.waiting.find(queue);
    if (found == impl_.waiting.end()) return 0;
    return static_cast<std::int64_t>(found->second.active.size() + found->second.inadmissible.size());
  }
  /// True: its finalizers are being written.
  bool hold(const ObjectKey& key, const Value& known, bool is_deleting, bool is_used) {
    const bool is_held = has_finalizer(known);
    const bool is_wanted = is_deleting ? is_held && is_used : true;
    if (is_held == is_wanted) return false;
    Value changed = known;
    set_finalizer(changed, is_wanted);
    impl_.update(key, std::move(changed), false);
    return true;
  }
  void write(const ObjectKey& key, const Value& known, Value changed) {
    if (!json::equal(known, changed)) impl_.update(key, std::move(changed), true);
  }
  CoreState& impl_;
};

Inactivity why_inactive(const CoreState& impl, const ClusterQueue& queue) {
  if (queue.is_deleting) return {"Terminating", "Can't admit new workloads; clusterQueue is terminating"};
  std::vector<std::string> reasons, messages;
  const auto because = [&](std::string_view reason, std::string message) {
    reasons.emplace_back(reason);
    messages.push_back(std::move(message));
  };
  if (queue.stop != StopPolicy::kNone) because("Stopped", "is stopped");
  std::vector<std::string> missing;
  for (const ResourceGroup& group : queue.groups)
    for (const std::string& flavor : group.flavors)
      if (!impl.flavors.contains(flavor)) missing.push_back(flavor);
  if (!missing.empty()) because("FlavorNotFound", fmt::format("references missing ResourceFlavor(s): {}", fmt::join(missing, ",")));
  if (!queue.admission_checks.empty())
    because("AdmissionCheckNotFound", fmt::format("references missing AdmissionCheck(s): {}", fmt::join(queue.admission_checks, ",")));
  for (const ResourceGroup& group : queue.groups)
    for (const std::string& name : group.flavors)
      if (const auto flavor = impl.flavors.find(name); flavor != impl.flavors.end() && !flavor->second.topology.empty())
        because("TopologyNotFound", fmt::format("there is no Topology \"{}\" for TAS flavor \"{}\"", flavor->second.topology, name));
  if (const QuotaNode node = impl.books.tree().queue(queue.name); node != QuotaNode::kNone && impl.books.tree().is_circular(node))
    because("CohortHasCycle", fmt::format("cohort {} is, or is below, a parent of its own", queue.cohort));
  if (reasons.empty()) return {};
  return {reasons.front(), fmt::format("Can't admit new workloads: {}.", fmt::join(messages, ", "))};
}

}  // namespace

void CoreState::judge_queues() {
  for (const auto& [name, queue] : queues) inactive[name] = why_inactive(*this, queue);
}

void CoreState::write_statuses() {
  StatusWriter writer(*this);
  // A finalizer that is written changes no queue; what it dirties is looked at in the next step.
  for (const std::string& name : std::exchange(dirty_queues, {})) writer.cluster_queue(name);
  for (const WorkloadKey& name : std::exchange(dirty_local_queues, {})) writer.local_queue(name);
  for (const auto& [name, flavor] : std::map<std::string, Flavor>(flavors)) writer.flavor(name, flavor);
}

std::vector<QueueFigures> Core::figures() const {
  std::vector<QueueFigures> out;
  for (const auto& [name, queue] : impl_->queues) {
    Figures sums;
    for (const auto& [workload, reservation] : impl_->books.of_queue(name)) sums.add(*reservation);
    QueueFigures one{.queue = name, .cohort = queue.cohort, .reserving = sums.reserving, .admitted = sums.admitted};
    const auto why = impl_->inactive.find(name);
    one.is_active = why != impl_->inactive.end() && why->second.reason.empty();
    if (const auto found = impl_->waiting.find(name); found != impl_->waiting.end()) {
      one.pending_active = static_cast<std::int64_t>(found->second.active.size());
      one.pending_inadmissible = static_cast<std::int64_t>(found->second.inadmissible.size());
    }
    if (const QuotaNode node = impl_->books.tree().queue(name); node != QuotaNode::kNone)
      one.weighted_share = impl_->books.tree().share(node);
    for (const auto& [what, quota] : queue.quotas)
      one.resources.push_back({.flavor = what.flavor,
                               .resource = what.resource,
                               .nominal = quantity_of(what.resource, quota.nominal).as_double(),
                               .reserved = quantity_of(what.resource, sums.reserved[what]).as_double(),
                               .used = quantity_of(what.resource, sums.used[what]).as_double()});
    out.push_back(std::move(one));
  }
  return out;
}

}  // namespace berth::queues
