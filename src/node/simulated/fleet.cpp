#include "node/simulated/fleet.h"

#include "model/quantity.h"
#include "node/pod_addresses.h"
#include "node/simulated/fleet_state.h"
#include "node/sysctls.h"
#include "placement/resource.h"

namespace berth::node::simulated {
namespace {

constexpr Duration kRetry = std::chrono::seconds(1);
constexpr Duration kShortestReport = std::chrono::seconds(1);
constexpr Duration kSecondLook = std::chrono::seconds(1);
constexpr std::size_t kMaxQueuedEvents = 10'000;

bool should_retry(int code) { return code == 0 || code == 409 || code == 429 || code >= 500; }

/// Which of an event's kinds a fleet reports.
bool is_wanted(FleetOptions::Events events, std::string_view type) {
  return events == FleetOptions::Events::kAll || (events == FleetOptions::Events::kWarnings && type == "Warning");
}

}  // namespace

Fleet::Fleet(FleetOptions options) : options_(std::move(options)) {}
Fleet::~Fleet() = default;

bool Fleet::owns(const json::Value& node) const {
  return json::get_string(node, {"metadata", "annotations", kFleetAnnotation}) == options_.name;
}

Duration Fleet::lease_period() const {
  return options_.lease_period.value_or(std::chrono::seconds(options_.kubelet.node_lease_duration_seconds) / 4);
}

Duration Fleet::status_period() const {
  return options_.status_period.value_or(std::max(Duration(options_.kubelet.node_status_report_frequency_ns / 1000), kShortestReport));
}

void Fleet::start_node(NodeRef node, TimePoint now) {
  offer(*node);
  take_index(node->spec.index, 1);
  last_index_ = node->spec.index;
  // Heartbeats are spread over their period, so that thousands of nodes make an even load.
  node->next_lease = now + lease_period() * (node->spec.index % 997) / 997;
  node->next_status = now + status_period() * (node->spec.index % 991) / 991 + lease_period();
  nodes_.emplace(node->spec.name, node);
  enqueue(node);
}

void Fleet::remove_node(std::string_view name) {
  const auto found = nodes_.find(std::string(name));
  if (found == nodes_.end()) return;
  const NodeRef node = found->second;
  node->is_removed = true;
  node->queue = Node::Queue::kNone;
  while (!renewals_.empty() && renewals_.begin()->second->queue != Node::Queue::kRenewals) renewals_.erase(renewals_.begin());
  node_wakes_.erase({node->wake, node->arrival});
  if (node->is_counted) --ready_count_;
  for (const std::string& uid : std::vector<std::string>(node->pods.begin(), node->pods.end())) forget_pod(uid);
  take_index(node->spec.index, -1);
  nodes_.erase(found);
}

void Fleet::observe_node(const json::Value& document, TimePoint now) {
  const auto found = nodes_.find(std::string(json::get_string(document, {"metadata", "name"})));
  if (found == nodes_.end()) return;
  const NodeRef node = found->second;
  const std::string_view uid = json::get_string(document, {"metadata", "uid"});
  if (!owns(document)) {
    // Somebody made a node of this name before ours could be: it is theirs.
    if (node->uid != uid) remove_node(std::string(node->spec.name));
    return;
  }
  if (node->uid != uid) {  // Deleted and made again, or our own creation whose answer was lost.
    node->uid = uid;
    node->needs_create = node->is_foreign = false;
    node->needs_status = node->needs_lease = true;
    enqueue(node);
  }
  see_labels(*node, document);
  if (see_extended_resources(*node, document)) report_again(node);
  see_numa(node, document);
  set_dead(node, is_marked_dead(document), now);
  for (const json::Value& condition : json::get_array(document, {"status", "conditions"})) {
    if (json::get_string(condition, {"type"}) != "Ready") continue;
    const bool is_ready = json::get_string(condition, {"status"}) == "True";
    // The node controller marked it Unknown while it was away (or its process was): report again.
    node->was_taken_for_lost |= !is_ready && node->is_ready_seen;
    if (!is_ready && node->is_ready_seen && !node->is_dead) report_again(node);
    node->is_ready_seen = is_ready;
  }
}

void Fleet::see_labels(Node& node, const json::Value& document) {
  node.admission.reset();
  node.labels = model::Labels::from_json(json::find(document, {"metadata", "labels"}));
  node.taints.clear();
  for (const json::Value& taint : json::get_array(document, {"spec", "taints"})) node.taints.push_back(model::parse_taint(taint));
}

bool Fleet::see_extended_resources(Node& node, const json::Value& document) {
  NodeTemplate t = *node.spec.node_template;
  bool is_new = false;
  for (const auto& [key, value] : json::get_object(document, {"status", "capacity"})) {
    const std::string name(key);
    if (!value.is_string() || !placement::is_extended_resource_name(name)) continue;
    const std::string amount(json::as_view(value));
    if (const auto known = t.capacity.find(name); known != t.capacity.end() && known->second == amount) continue;
    if (t.allocatable.empty()) t.allocatable = t.capacity;
    t.capacity[name] = t.allocatable[name] = amount;
    node.admission.reset();
    is_new = true;
  }
  if (is_new) node.spec.node_template = std::move(t);
  return is_new;
}

void Fleet::set_dead(const NodeRef& node, bool dead, TimePoint now) {
  if (node->is_dead == dead) return;
  node->is_dead = dead;
  if (dead) end_steadiness(node, now);
  if (!dead) report_again(node);
}

void Fleet::set_steady_heartbeats(bool steady, TimePoint now) {
  options_.steady_heartbeats = steady;
  std::vector<NodeRef> all;
  for (const auto& [name, node] : nodes_) all.push_back(node);
  std::ranges::sort(all, {}, [](const NodeRef& node) { return node->arrival; });
  for (const NodeRef& node : all) {
    if (!steady) end_steadiness(node, now);
    enqueue(node);
  }
}

/// The heartbeats that were not written are as if they had been: the last of them at its own time.
void Fleet::end_steadiness(const NodeRef& node, TimePoint now) {
  if (!node->is_steady) return;
  node->is_steady = false;
  while (node->next_lease <= now) node->next_lease += lease_period();
  while (node->next_status <= now) node->next_status += status_period();
  node->last_word = std::max(now - (node->next_lease - lease_period()), Duration(0));
  enqueue(node);
}

/// As a kubelet that is back: the control plane marked the node Unknown and its pods not Ready meanwhile.
void Fleet::report_again(const NodeRef& node) {
  node->needs_status = true;
  enqueue(node);
  for (const std::string_view uid : node->pods) {
    const auto pod = pods_.find(uid);
    if (pod == pods_.end()) continue;
    pod->second->is_dirty = true;
    enqueue(pod->second);
  }
}

namespace {

/// The node controller took a running pod for lost: its Ready condition alone says so, its containers are ready still.
bool was_taken_for_lost(const json::Value& document) {
  if (json::get_string(document, {"status", "phase"}) != "Running") return false;
  bool said_ready = true;
  for (const json::Value& condition : json::get_array(document, {"status", "conditions"}))
    if (json::get_string(condition, {"type"}) == "Ready") said_ready = json::get_string(condition, {"status"}) == "True";
  const json::Array& containers = json::get_array(document, {"status", "containerStatuses"});
  return !said_ready && !containers.empty() &&
         std::ranges::all_of(containers, [](const json::Value& container) { return json::get_bool(container, {"ready"}); });
}

}  // namespace

void Fleet::observe_pod(const json::Value& pod_document, TimePoint now) {
  const json::Value annotated = options_.scenario.empty() ? json::Value() : options_.scenario.apply(pod_document);
  const json::Value& document = options_.scenario.empty() ? pod_document : annotated;
  const std::string uid(json::get_string(document, {"metadata", "uid"}));
  const auto known = pods_.find(uid);
  if (known != pods_.end()) {
    const PodRef pod = known->second;
    pod->has_finalizers = !json::get_array(document, {"metadata", "finalizers"}).empty();
    if (json::find(document, {"metadata", "deletionTimestamp"}))
      stop_pod(pod, document, now);
    else if (pod->sim.update(document, now) || was_taken_for_lost(document))
      pod->is_dirty = true;
    touch(pod, now);
    return;
  }
  const auto node = nodes_.find(std::string(json::get_string(document, {"spec", "nodeName"})));
  if (node == nodes_.end() || uid.empty()) return;
  const int ip = json::get_bool(document, {"spec", "hostNetwork"}) ? 0 : [&] {
    const int claimed = node->second->claim_ip(json::get_string(document, {"status", "podIP"}));
    return claimed ? claimed : node->second->take_ip();
  }();
  const PodSimulationOptions options{options_.start_delay, options_.stop_delay, node->second->host_ip(),
                                     ip ? node->second->pod_ip(ip) : std::string()};
  const auto pod = std::make_shared<Pod>(document, options, now);
  pod->arrival = ++arrivals_;
  pod->node = node->second;
  pod->ip = ip;
  pod->has_finalizers = !json::get_array(document, {"metadata", "finalizers"}).empty();
  const std::string_view host = json::get_string(document, {"status", "hostIP"});
  pod->has_moved = !host.empty() && host != options.host_ip;
  node->second->pods.insert(pod->sim.spec().uid);
  if (pod->sim.behaviour().has_usage && node->second->pods_with_usage++ == 0) {
    node->second->next_check = now + kMonitoringInterval;
    enqueue(node->second);
  }
  pods_.emplace(pod->sim.spec().uid, pod);
  pod->demand = PodDemand::of(document);
  if (needs_admission(document))
    admit(pod, document, now);
  else
    (void)refuse_by_numa(*node->second, document);  // It was admitted, and has its own.
  numa_changed(node->second);
  // Of a node that was deleted and made again, or of a fleet that starts anew: what was lost is back, and says so.
  if (was_taken_for_lost(document)) pod->is_dirty = true;
  if (json::find(document, {"metadata", "deletionTimestamp"})) stop_pod(pod, document, now);
  touch(pod, now);
}

void Fleet::admit(const PodRef& pod, const json::Value& document, TimePoint now) {
  if (!pod->node->admission) {
    const NodeTemplate& t = *pod->node->spec.node_template;
    AdmissionNode& made =
        pod->node->admission.emplace(pod->node->spec.name, eviction::ResourceList{}, pod->node->labels, pod->node->taints);
    for (const auto& [name, text] : t.allocatable.empty() ? t.capacity : t.allocatable)
      if (const auto quantity = model::Quantity::parse(text)) made.allocatable.emplace(name, *quantity);
  }
  const AdmissionNode& node = *pod->node->admission;
  std::vector<const PodDemand*> active;
  for (const std::string_view uid : pod->node->pods)
    if (const auto other = pods_.find(uid); other != pods_.end() && other->second != pod && !other->second->sim.is_terminal())
      active.push_back(&other->second->demand);
  auto refusal = refuse_sysctls(document, {});
  if (!refusal) refusal = refuse_pod(node, document, pod->demand, active);
  if (!refusal) refusal = refuse_by_numa(*pod->node, document);
  if (!refusal) return;
  // Labels and taints may be older than the pod here: pods and nodes come by different watches. The kubelet asks again, this node waits.
  const bool may_be_stale = refusal->reason == "NodeAffinity" || refusal->reason == "TaintToleration";
  if (may_be_stale && documents_ && !pod->is_held) {
    pod->is_held = true;
    schedule(pod, now + kSecondLook);
    return;
  }
  pod->sim.reject(refusal->reason, "Pod was rejected: " + refusal->message);
  pod->is_dirty = true;
  add_event(pod->sim.spec(), {"Warning", refusal->reason, refusal->message, "", false}, now);
}

void Fleet::admit_held(const PodRef& pod, TimePoint now) {
  const auto document = documents_(pod->sim.spec().ns, pod->sim.spec().name);
  if (document && needs_admission(*document)) admit(pod, *document, now);
  pod->is_held = false;
}

void Fleet::stop_pod(const PodRef& pod, const json::Value& document, TimePoint now) {
  pod->is_deleting = true;
  const std::int64_t grace =
      std::clamp<std::int64_t>(json::get_int(document, {"metadata", "deletionGracePeriodSeconds"}, 30), 0, 1'000'000'000);
  pod->sim.stop(std::chrono::seconds(grace), now);
}

void Fleet::forget_pod(std::string_view uid) {
  const auto found = pods_.find(uid);
  if (found == pods_.end()) return;
  const PodRef pod = found->second;
  pod->is_gone = true;
  follow_programs(*pod);
  schedule(pod, std::nullopt);
  pod->node->pods.erase(found->first);
  if (pod->sim.behaviour().has_usage) --pod->node->pods_with_usage;
  if (pod->ip) pod->node->used_ips[static_cast<std::size_t>(pod->ip)] = false;
  pods_.erase(found);
  numa_changed(pod->node);
}

void Fleet::touch(const PodRef& pod, TimePoint now) {
  if (pod->is_gone) return;
  if (pod->is_held) {
    if (pod->wake && *pod->wake > now) return;
    admit_held(pod, now);
  }
  if (pod->sim.advance(now)) {
    pod->is_dirty = true;
    if (pod->sim.is_terminal()) numa_changed(pod->node);
  }
  collect_events(*pod, now);
  follow_programs(*pod);
  schedule(pod, pod->sim.next_change());
  if (pod->is_dirty || (pod->is_deleting && pod->sim.is_stopped())) enqueue(pod);
}

std::optional<Write> Fleet::node_write(Node& node, TimePoint now) {
  if (node.not_before > now) return std::nullopt;
  const std::string& name = node.spec.name;
  if (node.needs_create) return Write{Write::Kind::kCreateNode, "", name, "", node_body(node)};
  if (node.last_word) {
    const std::string body = lease_body(node, now - *node.last_word, fmt::format("ended {} ago", format_go_duration(*node.last_word)));
    node.last_word.reset();
    return Write{Write::Kind::kRenewLease, "kube-node-lease", name, "", body};
  }
  if (node.is_dead) {
    node.next_lease = now + lease_period();
    node.next_status = now + status_period();
    return std::nullopt;
  }
  if (!node.missing_labels.empty()) {
    const json::Object labels = std::exchange(node.missing_labels, {});
    return Write{Write::Kind::kNodeLabels, "", name, node.uid,
                 json::serialize(json::Object{{"metadata", json::Object{{"labels", labels}}}})};
  }
  if (node.needs_status || (node.next_status <= now && !node.is_steady)) {
    node.needs_status = false;
    while (node.next_status <= now) node.next_status += status_period();
    if (std::exchange(node.was_taken_for_lost, false)) {
      node.ready_since = now;
      node.pressure_since = {};
    }
    return Write{Write::Kind::kNodeStatus, "", name, node.uid, node_status_body(node, now)};
  }
  if (auto told = topology_write(node, now)) return told;
  const bool becomes_steady = options_.steady_heartbeats && !node.is_steady;
  if (node.needs_lease || becomes_steady || (node.next_lease <= now && !node.is_steady)) {
    while (node.next_lease <= now) node.next_lease += lease_period();
    const bool create = node.needs_lease;
    node.needs_lease = false;
    node.is_steady = options_.steady_heartbeats;
    node.was_steady |= node.is_steady;
    return Write{create ? Write::Kind::kCreateLease : Write::Kind::kRenewLease, "kube-node-lease", name, "",
                 lease_body(node, now, node.is_steady ? "steady" : "")};
  }
  return std::nullopt;
}

std::optional<Write> Fleet::pod_write(Pod& pod, TimePoint now) {
  const PodSpec& spec = pod.sim.spec();
  if (pod.is_deleting && pod.sim.is_stopped()) {
    // With finalizers the object stays, and its owner wants to see how the pod ended; without, the deletion says all there is.
    if (pod.has_finalizers && pod.is_dirty && !pod.wrote_final) {
      pod.wrote_final = true;
    } else {
      return Write{Write::Kind::kDeletePod, spec.ns, spec.name, spec.uid, ""};
    }
  } else if (!pod.is_dirty) {
    return std::nullopt;
  }
  pod.is_dirty = false;
  json::Object body;
  body["metadata"] = json::Object{{"uid", spec.uid}};
  json::Value status = pod.sim.status(now);
  if (pod.has_moved) replace_addresses(status);
  body["status"] = std::move(status);
  return Write{Write::Kind::kPodStatus, spec.ns, spec.name, spec.uid, json::serialize(body)};
}

void Fleet::finish_write(const Write& write, const WriteOutcome& outcome, TimePoint now) {
  switch (write.kind) {
    case Write::Kind::kCreateNode:
    case Write::Kind::kNodeLabels:
    case Write::Kind::kNodeStatus:
    case Write::Kind::kNodeTopology:
    case Write::Kind::kCreateLease:
    case Write::Kind::kRenewLease: {
      const auto found = nodes_.find(write.name);
      if (found == nodes_.end()) return;
      const NodeRef node = found->second;
      node->is_writing = false;
      finish_node_write(*node, write, outcome, now);
      if (const TimePoint next = next_due(*node); !has_news(*node) && next > now && next != TimePoint::max())
        schedule(node, next);
      else
        enqueue(node);
      return;
    }
    case Write::Kind::kPodStatus:
    case Write::Kind::kDeletePod:
      if (const auto found = pods_.find(write.uid); found != pods_.end()) finish_pod_write(PodRef(found->second), write, outcome, now);
      return;
    case Write::Kind::kEvent:
      return;
  }
}

void Fleet::finish_node_write(Node& node, const Write& write, const WriteOutcome& outcome, TimePoint now) {
  const bool ok = outcome.code >= 200 && outcome.code < 300;
  switch (write.kind) {
    case Write::Kind::kCreateNode:
      if (ok) {
        node.needs_create = false;
        node.uid = outcome.uid;
      } else if (outcome.code == 409) {
        node.is_foreign = true;  // Until its object is seen: then observe_node decides whose it is.
        node.needs_create = false;
      } else {
        node.not_before = now + kRetry;
      }
      return;
    case Write::Kind::kNodeStatus:
      if (!ok && should_retry(outcome.code)) {
        node.needs_status = true;
        node.not_before = now + kRetry;
      }
      return;
    case Write::Kind::kNodeTopology:
      if (ok) return;
      // The kind may be installed any time.
      node.numa.told.clear();
      node.numa.is_dirty = true;
      node.numa.not_before = now + std::chrono::minutes(1);
      return;
    case Write::Kind::kCreateLease:
    case Write::Kind::kRenewLease:
      if (ok || outcome.code == 409) {
        if (!ok) node.is_steady = false;  // The Lease of an earlier node of this name: it has to be told.
        if (!node.is_counted) {
          node.is_counted = true;
          ++ready_count_;
        }
        return;
      }
      node.is_steady = false;
      // A lost lease is made anew; a renewal that failed is repeated soon, as the kubelet does, or the node would be taken for dead.
      if (outcome.code == 404)
        node.needs_lease = true;
      else
        node.next_lease = now + kRetry;
      node.not_before = now + kRetry;
      return;
    default:
      return;
  }
}

void Fleet::finish_pod_write(const PodRef& pod, const Write& write, const WriteOutcome& outcome, TimePoint now) {
  pod->is_writing = false;
  const bool ok = outcome.code >= 200 && outcome.code < 300;
  if (!ok && (outcome.code == 404 || (outcome.code == 409 && write.kind == Write::Kind::kDeletePod))) return forget_pod(write.uid);
  if (!ok) {
    pod->is_dirty = pod->is_dirty || write.kind == Write::Kind::kPodStatus;
    if (write.kind == Write::Kind::kPodStatus) pod->wrote_final = false;
    // What the server will never take (4xx) is repeated rarely, what it could not take now soon.
    pod->not_before = now + (should_retry(outcome.code) ? kRetry : 30 * kRetry);
    schedule(pod, pod->not_before);
    return;
  }
  if (write.kind == Write::Kind::kDeletePod) {
    // Its DELETED event comes by the watch; a pod that waits for finalizers must not be deleted over and over.
    pod->is_deleting = false;
    return;
  }
  pod->has_moved = false;
  touch(pod, now);
}

const PodSimulation* Fleet::find_pod(std::string_view ns, std::string_view name) const {
  for (const auto& [uid, pod] : pods_)
    if (pod->sim.spec().name == name && pod->sim.spec().ns == ns) return &pod->sim;
  return nullptr;
}

const PodSimulation* Fleet::find_pod(std::string_view uid) const {
  const auto found = pods_.find(uid);
  return found == pods_.end() ? nullptr : &found->second->sim;
}

void Fleet::collect_events(Pod& pod, TimePoint now) {
  for (const PodEvent& event : pod.sim.take_events()) add_event(pod.sim.spec(), event, now);
}

void Fleet::add_event(const PodSpec& spec, const PodEvent& event, TimePoint now) {
  if (!is_wanted(options_.events, event.type) || events_.size() >= kMaxQueuedEvents) return;
  json::Object involved{{"apiVersion", "v1"}, {"kind", "Pod"}, {"namespace", spec.ns}, {"name", spec.name}, {"uid", spec.uid}};
  if (!event.container.empty())
    involved["fieldPath"] = fmt::format("spec.{}{{{}}}", event.is_init ? "initContainers" : "containers", event.container);
  json::Object body;
  body["apiVersion"] = "v1";
  body["kind"] = "Event";
  body["metadata"] = json::Object{
      {"namespace", spec.ns}, {"name", fmt::format("{}.{:x}{:04x}", spec.name, now.time_since_epoch().count(), event_number_++ & 0xffff)}};
  body["involvedObject"] = std::move(involved);
  body["reason"] = event.reason;
  body["message"] = event.message;
  body["type"] = event.type;
  body["source"] = json::Object{{"component", "kubelet"}, {"host", spec.node_name}};
  body["firstTimestamp"] = body["lastTimestamp"] = format_rfc3339(now);
  body["count"] = 1;
  body["reportingComponent"] = "kubelet";
  body["reportingInstance"] = spec.node_name;
  events_.push_back({Write::Kind::kEvent, spec.ns, "", "", json::serialize(body)});
}

}  // namespace berth::node::simulated
