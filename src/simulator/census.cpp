#include "simulator/census.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/json_scan.h"
#include "model/pods/pod_resources.h"
#include "pools/ledger.h"
#include "pools/requirements.h"

namespace berth::simulator {
namespace {

enum PodField : std::size_t { kNodeName, kPhase, kConditions, kDeletion, kCreated, kContainers, kOwners, kPodFields };

const json::PathScanner& pod_scanner() {
  static const json::PathScanner scanner({"spec.nodeName", "status.phase", "status.conditions", "metadata.deletionTimestamp",
                                          "metadata.creationTimestamp", "spec.containers", "metadata.ownerReferences"});
  return scanner;
}

bool has(std::string_view raw) { return !raw.empty() && raw != "null"; }

std::string_view plain(std::string_view raw) {
  return raw.size() >= 2 && raw.front() == '"' ? raw.substr(1, raw.size() - 2) : std::string_view();
}

/// Figures with six digits behind the point: what machines could differ in is behind them.
double rounded(double value) { return std::floor(value * 1e6 + 0.5) / 1e6; }

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? rounded(static_cast<double>(part) / static_cast<double>(whole)) : 0;
}

/// Adds a resource's amount to those that are counted.
void add_amount(Amounts& amounts, std::string_view resource, const model::Quantity& amount) {
  if (resource == "cpu") amounts[kCpu] += amount.milli_value();
  if (resource == "memory") amounts[kMemory] += amount.value();
  if (resource.ends_with("/gpu")) amounts[kGpu] += amount.milli_value();
}

/// What keeps most nodes from taking a pod, out of the scheduler's sentence
/// "0/6 nodes are available: 4 Insufficient cpu, 2 node(s) had untolerated taint {…}. preemption: …". The condition is the API's, in which
/// there is no more than that; in a cluster that was dumped it is kube-scheduler's own.
std::string main_reason(std::string_view message) {
  const std::size_t colon = message.find(": ");
  if (!message.starts_with("0/") || colon == std::string_view::npos) return std::string(message.substr(0, message.find_first_of(".:")));
  std::string_view rest = message.substr(colon + 2);
  if (const std::size_t end = rest.find(". "); end != std::string_view::npos) rest = rest.substr(0, end);
  if (rest.ends_with('.')) rest.remove_suffix(1);
  std::int64_t most = -1;
  std::string_view reason;
  while (!rest.empty()) {
    // A part begins with its count; a comma inside a reason is followed by none.
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    std::size_t stop = rest.size();
    for (std::size_t comma = rest.find(", "); comma != std::string_view::npos; comma = rest.find(", ", comma + 2))
      if (comma + 2 < rest.size() && rest[comma + 2] >= '0' && rest[comma + 2] <= '9') {
        stop = comma;
        break;
      }
    const auto digits = static_cast<std::size_t>(end - rest.data());
    if (error == std::errc() && number > most) {
      most = number;
      reason = rest.substr(digits, stop - digits);
    }
    rest = stop < rest.size() ? rest.substr(stop + 2) : std::string_view();
  }
  while (reason.starts_with(' ')) reason.remove_prefix(1);
  return reason.empty() ? "no node fits" : std::string(reason);
}

/// The condition DisruptionTarget's reason in a word; empty: not one that moves pods.
std::string_view cause_of(std::string_view reason) {
  if (reason == "EvictionByEvictionAPI") return "api";
  if (reason == "PreemptionByScheduler") return "preemption";
  if (reason == "DeletionByTaintManager") return "taint";
  if (reason == "TerminationByKubelet") return "pressure";
  if (reason == "DeletionByPodGC") return "lostNode";
  return {};
}

}  // namespace

struct Census::Pod {
  enum class Phase : std::uint8_t { kPending, kRunning, kSucceeded, kFailed };
  Phase phase = Phase::kPending;
  bool is_bound = false, is_deleting = false, is_disrupted = false;
  std::uint32_t reason = 0, app = 0;
  TimePoint created{};
  std::string node, owner;
  std::int64_t moved_at = -1, troubles_at = -1;  ///< In place of an evicted pod: the changes from outside at that time.
  std::shared_ptr<const Amounts> requests;
  [[nodiscard]] bool is_over() const { return phase == Phase::kSucceeded || phase == Phase::kFailed; }
};

struct Census::Node {
  bool is_there = false, is_ready = false, is_cordoned = false;
  bool was_ready = false;  ///< Ever.
  Amounts allocatable{}, requested{};
  TimePoint made{};
  double price = 0;
  std::string pool;  ///< Or its instance type.
  [[nodiscard]] bool is_over() const {
    return is_there &&
           (requested[kCpu] > allocatable[kCpu] || requested[kMemory] > allocatable[kMemory] || requested[kGpu] > allocatable[kGpu]);
  }
};

class Census::Sink final : public apiserver::WatchSink {
 public:
  Sink(Census& census, void (Census::*see)(const apiserver::WatchEvent&)) : census_(census), see_(see) {}
  bool deliver(const apiserver::WatchEvent& event) override {
    if (event.object) (census_.*see_)(event);
    return true;
  }

 private:
  Census& census_;
  void (Census::*see_)(const apiserver::WatchEvent&);
};

Census::Census(const Clock& clock, TimePoint start, std::map<std::string, double> prices)
    : clock_(clock), start_(start), prices_(std::move(prices)), ledger_(std::make_unique<pools::Ledger>(start)), paid_until_(start) {
  intern("");
}
Census::~Census() = default;

void Census::attach(apiserver::ObjectCache* cache) {
  watches_.clear();
  if (cache == nullptr) return;
  is_replacing_ = !nodes_.empty();
  // A server that is back has everything again; objects cannot have gone meanwhile.
  for (const auto& [plural, see] : {std::pair("nodes", &Census::see_node), std::pair("pods", &Census::see_pod)}) {
    apiserver::WatchFilter filter;
    filter.prefix = apiserver::make_prefix("", plural);
    watches_.push_back(cache->watch(filter, 0, true, std::make_shared<Sink>(*this, see)));
  }
  is_replacing_ = false;
}

std::uint32_t Census::intern(std::string_view text) {
  const auto [found, is_new] = text_numbers_.try_emplace(std::string(text), static_cast<std::uint32_t>(texts_.size()));
  if (is_new) texts_.emplace_back(text);
  return found->second;
}

double Census::price_of(const model::Labels& labels) const {
  const auto label = [&](std::string_view key) {
    const std::string* value = labels.get(key);
    return value == nullptr ? std::string() : *value;
  };
  const std::string type = label(pools::kInstanceTypeLabel);
  auto found = prices_.find(fmt::format("{}/{}/{}", type, label(pools::kZoneLabel), label(pools::kCapacityTypeLabel)));
  if (found == prices_.end() || labels.get(pools::kPoolLabel) == nullptr) found = prices_.find(type);
  return found == prices_.end() ? 0 : found->second;
}

void Census::pay() {
  const TimePoint now = clock_.now();
  if (now <= start_) return;  // What was bought before is paid from the start on.
  now_.cost += now_.price_per_hour * static_cast<double>((now - paid_until_).count()) / 3.6e9;
  paid_until_ = now;
}

void Census::count(const Pod& pod, int sign) {
  if (!pod.is_over()) {
    if (!pod.is_bound) {
      now_.pending += sign;
      pending_by_reason_[pod.reason] += sign;
    } else {
      (pod.phase == Pod::Phase::kRunning ? now_.running : now_.starting) += sign;
    }
    auto& app = apps_[pod.app];
    app[0] += sign;
    if (pod.phase == Pod::Phase::kRunning && !pod.is_deleting) app[1] += sign;
  } else {
    (pod.phase == Pod::Phase::kSucceeded ? now_.succeeded : now_.failed) += sign;
  }
  if (pod.is_deleting) now_.terminating += sign;
  if (!pod.is_bound || pod.is_over()) return;
  auto& node = nodes_[pod.node];
  if (!node) node = std::make_unique<Node>();
  const bool was_over = node->is_over();
  for (std::size_t i = 0; i < kResources; ++i) {
    node->requested[i] += sign * (*pod.requests)[i];
    if (node->is_there) now_.requested[i] += sign * (*pod.requests)[i];
  }
  now_.overcommitted_nodes += node->is_over() - was_over;
  if (!prices_.empty()) ledger_->load(pod.node, texts_[pod.app], *pod.requests, sign, clock_.now());
}

void Census::tell(PodStage stage, const apiserver::StoredObject& object, const Pod& pod) const {
  if (on_pod_stage) on_pod_stage(stage, object.meta.ns, object.meta.name, *pod.requests);
}

void Census::see_pod(const apiserver::WatchEvent& event) {
  const apiserver::StoredObject& object = *event.object;
  const std::string key = fmt::format("{}/{}", object.meta.ns, object.meta.name);
  if (event.type == apiserver::WatchEventType::kDeleted) {
    const auto found = pods_.find(key);
    if (found == pods_.end()) return;
    count(*found->second, -1);
    // Scaled down, ended, taken away by somebody: that makes room.
    if (!found->second->is_disrupted) change_from_outside();
    tell(PodStage::kGone, object, *found->second);
    pods_.erase(found);
    return;
  }
  auto& slot = pods_[key];
  const bool is_new = slot == nullptr;
  if (is_new)
    slot = std::make_unique<Pod>();
  else
    count(*slot, -1);
  read_pod(*slot, object, is_new);
  count(*slot, 1);
}

void Census::read_pod(Pod& pod, const apiserver::StoredObject& object, bool is_new) {
  std::array<std::string_view, kPodFields> raw;
  const HeldText held = object.text();
  const std::string_view text = *held;
  if (!pod_scanner().scan(text, raw)) return;
  const TimePoint now = clock_.now();
  if (is_new) {
    ++now_.created;
    pod.created = now;
    const std::string* app = object.meta.labels().get("app");
    if (app == nullptr) app = object.meta.labels().get("app.kubernetes.io/name");
    if (app == nullptr) app = object.meta.labels().get("job-name");
    pod.app = intern(fmt::format("{}/{}", object.meta.ns, app == nullptr ? std::string_view("other") : std::string_view(*app)));
    pod.requests = amounts_of(raw[kContainers], object);
    take_place(pod, raw[kOwners]);
  }
  const std::string_view node = plain(raw[kNodeName]);
  if (!pod.is_bound && !node.empty()) {
    pod.is_bound = true;
    pod.node = node;
    ++now_.bound;
    // Who comes with a node has not waited for one.
    note_binding(pod);
    tell(PodStage::kBound, object, pod);
    if (now >= start_ && !is_new) waits_.push_back(static_cast<float>(static_cast<double>((now - pod.created).count()) / 1e6));
  }
  const std::string_view phase = plain(raw[kPhase]);
  const bool was_over = pod.is_over(), was_running = pod.phase == Pod::Phase::kRunning;
  pod.phase = phase == "Running"     ? Pod::Phase::kRunning
              : phase == "Succeeded" ? Pod::Phase::kSucceeded
              : phase == "Failed"    ? Pod::Phase::kFailed
                                     : Pod::Phase::kPending;
  if (pod.phase == Pod::Phase::kRunning && !was_running) tell(PodStage::kRunning, object, pod);
  if (pod.is_over() && !was_over) {
    tell(PodStage::kOver, object, pod);
    ++now_.finished;
    change_from_outside();
    if (on_pod_over) on_pod_over(object.meta.ns, object.meta.name);
  }
  pod.is_deleting = has(raw[kDeletion]);
  if (!pod.is_bound || (!pod.is_disrupted && raw[kConditions].find("DisruptionTarget") != std::string_view::npos))
    read_conditions(pod, object, raw[kConditions]);
}

/// A new pod of a controller that has lost one by eviction is the lost one, moved; any other is news.
void Census::take_place(Pod& pod, std::string_view owners) {
  static const json::PathScanner scanner({"controller", "uid"});
  json::for_each_element(owners, [&](std::string_view owner) {
    std::array<std::string_view, 2> fields;
    if (scanner.scan(owner, fields) && fields[0] == "true") pod.owner = plain(fields[1]);
  });
  const auto lost = pod.owner.empty() ? homeless_.end() : homeless_.find(pod.owner);
  if (lost == homeless_.end()) {
    ++arrivals_;
    return change_from_outside();
  }
  pod.moved_at = outside_;
  // A Job lets its pods wait before it makes them anew: who came meanwhile may have their places.
  if (lost->second.front().arrivals == arrivals_) pod.troubles_at = lost->second.front().troubles;
  lost->second.pop_front();
  if (lost->second.empty()) homeless_.erase(lost);
}

void Census::note_eviction(const Pod& pod, std::string_view cause) {
  last_move_ = clock_.now();
  if (cause != "api") return trouble_from_outside();
  if (!pod.owner.empty()) homeless_[pod.owner].push_back({troubles_, arrivals_});
  if (pod.moved_at == outside_) ++now_.moved_again;
}

void Census::note_binding(const Pod& pod) {
  const auto node = nodes_.find(pod.node);
  if (pod.troubles_at == troubles_ && node != nodes_.end() && node->second->made > pod.created) ++now_.moved_to_new_nodes;
}

void Census::read_conditions(Pod& pod, const apiserver::StoredObject& object, std::string_view raw) {
  static const json::PathScanner scanner({"type", "status", "reason", "message"});
  std::string_view reason = "not tried yet";
  std::string kept;
  json::for_each_element(raw, [&](std::string_view condition) {
    std::array<std::string_view, 4> fields;
    if (!scanner.scan(condition, fields)) return;
    const std::string_view type = plain(fields[0]), status = plain(fields[1]);
    if (type == "PodScheduled" && status == "False") {
      kept = plain(fields[2]) == "SchedulingGated" ? std::string("held by a scheduling gate") : main_reason(json::unquote(fields[3]));
      reason = kept;
    } else if (type == "DisruptionTarget" && status == "True" && !pod.is_disrupted) {
      const std::string_view cause = cause_of(plain(fields[2]));
      if (cause.empty()) return;
      pod.is_disrupted = true;
      ++evictions_[std::string(cause)];
      note_eviction(pod, cause);
      if (on_happening && !is_replacing_)
        on_happening({std::chrono::duration_cast<Duration>(clock_.now() - start_), "eviction",
                      fmt::format("{}/{} leaves {} ({})", object.meta.ns, object.meta.name, pod.node, cause)});
    }
  });
  if (!pod.is_bound) pod.reason = intern(reason);
}

std::shared_ptr<const Amounts> Census::amounts_of(std::string_view containers, const apiserver::StoredObject& object) {
  // Pods of one template differ in their volumes' mounts alone: what stands before them is the key.
  constexpr std::size_t kMostShapes = 10'000;
  std::string key(containers);
  for (std::size_t at = key.find("kube-api-access-"); at != std::string::npos; at = key.find("kube-api-access-", at + 1))
    if (at + 21 <= key.size()) key.replace(at + 16, 5, 5, '-');
  if (const auto found = shapes_.find(key); found != shapes_.end()) return found->second;
  auto out = std::make_shared<Amounts>();
  if (const auto document = json::parse(object.text().here()))
    for (const auto& [name, amount] : model::pod_total(*document, "requests")) add_amount(*out, name, amount);
  if (shapes_.size() >= kMostShapes) shapes_.clear();
  shapes_.emplace(std::move(key), out);
  return out;
}

bool Census::read_node(Node& node, const apiserver::StoredObject& object) {
  static const json::PathScanner scanner({"status.conditions", "spec.unschedulable", "status.allocatable"});
  static const json::PathScanner condition_scanner({"type", "status"});
  std::array<std::string_view, 3> raw;
  const HeldText text = object.text();
  if (!scanner.scan(*text, raw)) return false;
  node.is_ready = false;
  json::for_each_element(raw[0], [&](std::string_view condition) {
    std::array<std::string_view, 2> fields;
    if (condition_scanner.scan(condition, fields) && fields[0] == R"("Ready")") node.is_ready = fields[1] == R"("True")";
  });
  node.is_cordoned = raw[1] == "true";
  // Nodes of one kind offer the same.
  auto [offers, is_new] = offers_.try_emplace(std::string(raw[2]));
  if (is_new)
    if (const auto allocatable = json::parse(raw[2]))
      for (const auto& [resource, amount] : model::amounts_of(&*allocatable)) add_amount(offers->second, resource, amount);
  node.allocatable = offers->second;
  const model::Labels& labels = object.meta.labels();
  node.price = price_of(labels);
  const std::string* pool = labels.get(pools::kPoolLabel);
  if (pool == nullptr) pool = labels.get(pools::kInstanceTypeLabel);
  node.pool = pool == nullptr ? "(none)" : *pool;
  return true;
}

void Census::see_node(const apiserver::WatchEvent& event) {
  const std::string name(event.object->meta.name);
  auto& slot = nodes_[name];
  if (!slot) slot = std::make_unique<Node>();
  Node& node = *slot;
  pay();
  const bool was_over = node.is_over(), was_there = node.is_there, was_ready = node.is_ready;
  const auto count_node = [&](int sign) {
    if (!node.is_there) return;
    now_.nodes += sign;
    now_.ready_nodes += node.is_ready ? sign : 0;
    now_.cordoned_nodes += node.is_cordoned ? sign : 0;
    now_.price_per_hour += sign * node.price;
    for (std::size_t i = 0; i < kResources; ++i) {
      now_.allocatable[i] += sign * node.allocatable[i];
      now_.requested[i] += sign * node.requested[i];
    }
  };
  count_node(-1);
  node.is_there = event.type != apiserver::WatchEventType::kDeleted;
  if (node.is_there) {
    if (!read_node(node, *event.object)) return;
  }
  count_node(1);
  if (node.is_there)
    ledger_->put(name, {node.pool, node.price, node.allocatable}, clock_.now());
  else
    ledger_->drop(name, clock_.now());
  if (node.is_there != was_there) last_move_ = clock_.now();
  if (node.is_there && !was_there) node.made = clock_.now();
  // A fault is seen later than it happened. Who boots has not failed.
  if (node.is_there && was_there && was_ready && !node.is_ready) trouble_from_outside();
  if (node.is_there && was_there && !was_ready && node.is_ready && node.was_ready) change_from_outside();
  node.was_ready = node.is_there && (node.was_ready || node.is_ready);
  now_.overcommitted_nodes += node.is_over() - was_over;
  if (!on_happening || is_replacing_) return;
  const Duration at = std::chrono::duration_cast<Duration>(clock_.now() - start_);
  if (!node.is_there)
    on_happening({at, "node", name + " is gone"});
  else if (!was_there && at > Duration(0))
    on_happening({at, "node", name + " is new"});
  else if (was_ready != node.is_ready && at > Duration(0))
    on_happening({at, "node", name + (node.is_ready ? " is ready" : " is not ready")});
}

std::string Census::overcommitted() const {
  std::vector<std::string> names;
  for (const auto& [name, node] : nodes_)
    if (node->is_over()) names.push_back(name);
  std::ranges::sort(names);
  const std::size_t count = names.size();
  if (count > 5) names.resize(5);
  return count == 0 ? std::string() : fmt::format("{}{}", fmt::join(names, ", "), count > 5 ? ", …" : "");
}

std::int64_t Census::running_of(const std::string& ns_and_app) const {
  const auto number = text_numbers_.find(ns_and_app);
  if (number == text_numbers_.end()) return 0;
  const auto found = apps_.find(number->second);
  return found == apps_.end() ? 0 : found->second[1];
}

Sample Census::sample() {
  pay();
  Sample out = now_;
  // Whole seconds: by how many milliseconds a taint comes later is nobody's matter.
  out.quiet_seconds = std::round(static_cast<double>((clock_.now() - std::max(last_move_, start_)).count()) / 1e6);
  out.at = std::chrono::duration_cast<Duration>(clock_.now() - start_);
  for (const auto& [reason, count] : pending_by_reason_)
    if (count > 0) out.pending_by_reason[texts_[reason]] += count;
  out.evictions = evictions_;
  // Few are told even when they have no pods any more; of many that come and go only those that have some.
  constexpr std::size_t kFew = 200;
  for (const auto& [app, counts] : apps_)
    if (apps_.size() <= kFew || counts[0] != 0) out.workloads[texts_[app]] = counts;
  out.cost_by_pool = ledger_->by_pool(clock_.now());
  out.cost_by_workload = ledger_->by_workload(clock_.now());
  std::vector<float> recent(waits_.begin() + static_cast<std::ptrdiff_t>(waits_before_), waits_.end());
  waits_before_ = waits_.size();
  std::ranges::sort(recent);
  if (!recent.empty()) {
    out.wait_p50 = recent[recent.size() / 2];
    out.wait_p99 = recent[std::min(recent.size() - 1, recent.size() * 99 / 100)];
    out.wait_max = recent.back();
  }
  return out;
}

namespace {

/// To a hundredth of a cent: what is less says more of the moment at which it was looked at than of the cluster.
json::Object costs_json(const std::map<std::string, double>& costs) {
  json::Object out;
  for (const auto& [name, cost] : costs) out[name] = std::floor(cost * 1e4 + 0.5) / 1e4;
  return out;
}

}  // namespace

json::Value Sample::to_json() const {
  json::Object pending_reasons, evicted, apps;
  std::int64_t all_evictions = 0;
  for (const auto& [reason, count] : pending_by_reason) pending_reasons[reason] = count;
  for (const char* cause : {"api", "preemption", "taint", "pressure", "lostNode"}) {
    const auto found = evictions.find(cause);
    const std::int64_t count = found == evictions.end() ? 0 : found->second;
    evicted[cause] = count;
    all_evictions += count;
  }
  evicted["total"] = all_evictions;
  for (const auto& [app, counts] : workloads) apps[app] = json::Object{{"pods", counts[0]}, {"running", counts[1]}};
  const auto shares = [&](const Amounts& amounts) {
    json::Object out{{"cpu", share(amounts[kCpu], allocatable[kCpu])}, {"memory", share(amounts[kMemory], allocatable[kMemory])}};
    if (allocatable[kGpu] > 0) out["gpu"] = share(amounts[kGpu], allocatable[kGpu]);
    return out;
  };
  return json::Object{{"time", rounded(static_cast<double>(at.count()) / 1e6)},
                      {"nodes", json::Object{{"total", nodes},
                                             {"ready", ready_nodes},
                                             {"notReady", nodes - ready_nodes},
                                             {"cordoned", cordoned_nodes},
                                             {"overcommitted", overcommitted_nodes}}},
                      {"pods", json::Object{{"pending", pending},
                                            {"starting", starting},
                                            {"running", running},
                                            {"succeeded", succeeded},
                                            {"failed", failed},
                                            {"terminating", terminating},
                                            {"created", created},
                                            {"bound", bound},
                                            {"finished", finished}}},
                      {"pending", std::move(pending_reasons)},
                      {"requested", shares(requested)},
                      {"used", shares(used)},
                      {"evictions", std::move(evicted)},
                      {"moved", json::Object{{"again", moved_again}, {"toNewNodes", moved_to_new_nodes}}},
                      {"quiet", rounded(quiet_seconds)},
                      {"cost", json::Object{{"perHour", rounded(price_per_hour)},
                                            {"total", rounded(cost)},
                                            {"byPool", costs_json(cost_by_pool)},
                                            {"byWorkload", costs_json(cost_by_workload)}}},
                      {"wait", json::Object{{"p50", rounded(wait_p50)}, {"p99", rounded(wait_p99)}, {"max", rounded(wait_max)}}},
                      {"workloads", std::move(apps)}};
}

}  // namespace berth::simulator
