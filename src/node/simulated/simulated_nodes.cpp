#include "node/simulated/simulated_nodes.h"

#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <unordered_set>

#include "base/check.h"
#include "base/json_scan.h"
#include "base/lifeline.h"
#include "base/log.h"
#include "base/mutex.h"
#include "client/heartbeats.h"
#include "client/informer.h"
#include "net/tracing/tracer.h"
#include "node/numa/topology_report.h"
#include "node/simulated/devices.h"
#include "node/simulated/kubelet_endpoints.h"

namespace berth::node::simulated {
namespace {

const model::Gvr kNodes{"", "v1", "nodes"};
const model::Gvr kPods{"", "v1", "pods"};
const model::Gvr kLeases{"coordination.k8s.io", "v1", "leases"};
const model::Gvr kEvents{"", "v1", "events"};
const model::Gvr kSlices{"resource.k8s.io", "v1", "resourceslices"};

client::Call to_call(const Write& write) {
  using Kind = Write::Kind;
  static constexpr const char* kStrategic = "application/strategic-merge-patch+json";
  switch (write.kind) {
    case Kind::kCreateNode:
      return {.verb = "create", .gvr = kNodes, .body = write.body};
    case Kind::kNodeLabels:
      return {.verb = "patch", .gvr = kNodes, .name = write.name, .body = write.body, .content_type = kStrategic};
    case Kind::kNodeStatus:
      return {.verb = "patch", .gvr = kNodes, .name = write.name, .subresource = "status", .body = write.body, .content_type = kStrategic};
    case Kind::kNodeTopology:
      return {.verb = "patch",
              .gvr = numa::kNodeTopologies,
              .name = write.name,
              .query = "fieldManager=berth-nodes&force=true",
              .body = write.body,
              .content_type = "application/apply-patch+yaml"};
    case Kind::kCreateLease:
      return {.verb = "create", .gvr = kLeases, .ns = write.ns, .body = write.body};
    case Kind::kRenewLease:
      return {.verb = "patch",
              .gvr = kLeases,
              .ns = write.ns,
              .name = write.name,
              .body = write.body,
              .content_type = "application/merge-patch+json"};
    case Kind::kPodStatus:
      return {.verb = "patch",
              .gvr = kPods,
              .ns = write.ns,
              .name = write.name,
              .subresource = "status",
              .body = write.body,
              .content_type = kStrategic};
    case Kind::kDeletePod:
      return {.verb = "delete",
              .gvr = kPods,
              .ns = write.ns,
              .name = write.name,
              .body = fmt::format(R"({{"apiVersion":"v1","kind":"DeleteOptions","gracePeriodSeconds":0,"preconditions":{{"uid":"{}"}}}})",
                                  write.uid)};
    case Kind::kEvent:
      return {.verb = "create", .gvr = kEvents, .ns = write.ns, .body = write.body};
  }
  return {};
}

std::string pod_node_name(const client::Object& pod) {
  static const json::PathScanner scanner({"spec.nodeName"});
  std::string_view value;
  const HeldText text = pod.text();
  return scanner.scan(*text, {&value, 1}) ? json::unquote(value) : std::string();
}

/// std::string::find stops wherever the word's first character stands, a quote at every other word.
bool mentions(const std::string& bytes, std::string_view word) {
  return ::memmem(bytes.data(), bytes.size(), word.data(), word.size()) != nullptr;
}

/// Its status says that it runs and is not ready: perhaps a node controller's word, against which the node's own stands.
bool says_unready(const std::string& pod) {
  if (!mentions(pod, R"("phase":"Running")")) return false;
  static const json::PathScanner scanner({"status.conditions"});
  std::string_view conditions;
  bool out = false;
  if (scanner.scan(pod, {&conditions, 1}))
    json::for_each_element(conditions, [&](std::string_view one) {
      if (one.find(R"("type":"Ready")") != one.npos) out = one.find(R"("status":"True")") == one.npos;
    });
  return out;
}

/// What is asked of the pod: another generation is another spec.
std::string generation_of(const client::Object& pod) {
  static const json::PathScanner scanner({"metadata.generation"});
  std::string_view value;
  const HeldText text = pod.text();
  return scanner.scan(*text, {&value, 1}) ? std::string(value) : std::string();
}

/// Later revisions of a pod matter only when they can change what its simulation does.
bool is_worth_reading(const client::Object& before, const client::Object& pod) {
  constexpr std::string_view kRunFor = "sim.berth.dev/run-for";
  if (pod.is_deleting()) return true;
  const HeldText now = pod.text();
  return (mentions(*now, kRunFor) && !mentions(before.text().here(), kRunFor)) || mentions(*now, "sim.berth.dev/ready") ||
         mentions(*now, "\"readinessGates\"") || says_unready(*now) || generation_of(before) != generation_of(pod);
}

bool says_address(const client::Object& pod) {
  static const json::PathScanner scanner({"status.podIP"});
  std::string_view value;
  const HeldText text = pod.text();
  return scanner.scan(*text, {&value, 1}) && !json::unquote(value).empty();
}

bool is_pending(const client::Object& pod) {
  static const json::PathScanner scanner({"status.phase"});
  std::string_view value;
  const HeldText text = pod.text();
  return !scanner.scan(*text, {&value, 1}) || value.empty() || json::unquote(value) == "Pending";
}

constexpr std::size_t kPodsATurn = 256;

FleetOptions with_programs(const SimulatedNodesOptions& options) {
  FleetOptions out = options.fleet;
  out.runs_programs = options.programs != nullptr;
  return out;
}
}  // namespace

struct SimulatedNodes::Impl : Guarded<Impl> {
  Impl(client::Client& c, SimulatedNodesOptions o)
      : client(c),
        loop(*c.loop()),
        options(std::move(o)),
        fleet(with_programs(options)),
        nodes(c, kNodes),
        pods(c, kPods, {.field_selector = "spec.nodeName!="}) {}

  client::Client& client;
  EventLoop& loop;
  SimulatedNodesOptions options;
  Fleet fleet;
  client::Informer nodes, pods;
  int in_flight = 0;
  bool pumping = false;
  TimerId timer = TimerId::kNone;
  TimePoint timer_at{};
  Mutex names_mutex;
  std::unordered_set<std::string> names BERTH_GUARDED_BY(names_mutex);  ///< The fleet's nodes, for other threads.
  std::atomic<std::size_t> ready{0}, count{0};
  std::vector<std::string> without_number;                   ///< Nodes to be met once those with one are.
  std::deque<client::ObjectRef> newcomers, without_address;  ///< To be met; the second once there are none of the first.
  /// By node: what its slices were made of, and their names.
  std::map<std::string, std::pair<std::string, std::set<std::string>>> published;

  void start() {
    fleet.set_document_source([this](const std::string& ns, const std::string& name) -> std::optional<json::Value> {
      const client::ObjectRef object = pods.get(ns, name);
      if (!object) return std::nullopt;
      return object->document();
    });
    nodes.add_handler({.on_add = [this](const client::ObjectRef& object) { node_seen(*object); },
                       .on_update =
                           [this](const client::ObjectRef& before, const client::ObjectRef& after) {
                             if (!client::is_heartbeat(*before, *after)) node_seen(*after);
                           },
                       .on_delete = [this](const client::ObjectRef& object) { node_gone(*object); }});
    pods.add_handler({.on_add =
                          [this](const client::ObjectRef& object) {
                            if (!pods.has_synced()) return;  // All that are there are taken over then.
                            if (fleet.knows_pod(object->uid())) return pod_seen(*object);
                            if (is_bound_here(*object)) meet({object});
                          },
                      .on_update =
                          [this](const client::ObjectRef& before, const client::ObjectRef& after) {
                            if (before->uid() != after->uid()) fleet.forget_pod(before->uid());
                            if (!fleet.knows_pod(after->uid())) return is_bound_here(*after) ? meet({after}) : void();
                            if (is_worth_reading(*before, *after)) pod_seen(*after);
                          },
                      .on_delete =
                          [this](const client::ObjectRef& object) {
                            fleet.forget_pod(object->uid());
                            pump();
                          }});
    pods.add_index("node", [](const client::Object& pod) { return std::vector<std::string>{pod_node_name(pod)}; });
    pods.on_synced([this] {
      std::vector<client::ObjectRef> here;
      {
        const MutexLock lock(names_mutex);
        for (const std::string& name : names) std::ranges::move(pods.by_index("node", name), std::back_inserter(here));
      }
      meet(std::move(here));
    });
    nodes.on_synced([this] {
      for (const std::string& name : std::exchange(without_number, {}))
        if (const client::ObjectRef node = nodes.get("", name)) node_seen(*node);
      make_missing_nodes();
    });
    nodes.start();
  }

  void make_missing_nodes() {
    for (int i = 0; i < options.nodes; ++i) {
      const std::string name = options.prefix + std::to_string(i + 1);
      if (fleet.has_node(name)) continue;
      if (nodes.get("", name)) {
        log::warning("nodes", "node {} exists and is not simulated by fleet \"{}\": left alone", name, options.fleet.name);
        continue;
      }
      const int zone = i % std::max(options.zones, 1);
      const std::string zone_name = zone < 26 ? fmt::format("zone-{}", static_cast<char>('a' + zone)) : fmt::format("zone-{}", zone + 1);
      fleet.add_node({name, zone_name, options.region, i, options.node_template}, loop.now());
      add_name(name);
    }
    pods.start();
    pump();
  }

  void node_seen(const client::Object& object) {
    const auto parsed = object.parsed();
    const json::Value& document = *parsed;
    if (!nodes.has_synced() && !Fleet::has_number(document)) return without_number.push_back(object.name());
    if (fleet.has_node(object.name())) {
      fleet.observe_node(document, loop.now());
    } else if (fleet.adopt_node(document, options.node_template, loop.now())) {
      add_name(object.name());
      // A pod may have been seen bound to this node before the node itself was seen.
      meet(pods.by_index("node", object.name()));
    }
    if (!fleet.has_node(object.name())) fleet.observe_stranger(document);
    publish_devices(document);
    pump();
  }

  /// Publishes what the node's annotation says of its devices, whenever that changes.
  void publish_devices(const json::Value& node) {
    const std::string name(json::get_string(node, {"metadata", "name"}));
    if (!fleet.has_node(name)) return;
    const std::string text(json::get_string(node, {"metadata", "annotations", kDevicesAnnotation}));
    const std::string key = fmt::format("{}/{}", json::get_string(node, {"metadata", "uid"}), text);
    const auto known = published.find(name);
    if (known == published.end() ? text.empty() : known->second.first == key) return;
    const auto groups = parse_devices(text);
    if (!groups) log::warning("nodes", "node {}: {}: {}", name, kDevicesAnnotation, groups.error().message);
    const auto slices = groups ? make_slices(node, *groups) : std::vector<json::Value>();
    std::set<std::string> names_now;
    for (const json::Value& slice : slices) {
      const std::string slice_name(json::get_string(slice, {"metadata", "name"}));
      names_now.insert(slice_name);
      client.patch(kSlices, "", slice_name, client::PatchType::kApply, slice, log_failure(slice_name), "", client::Answer::kIdentity);
    }
    if (known != published.end())
      for (const std::string& old : known->second.second)
        if (!names_now.contains(old)) client.remove(kSlices, "", old, {}, log_failure(old));
    published[name] = {key, std::move(names_now)};
  }

  static std::function<void(client::ApiResult<json::Value>)> log_failure(const std::string& name) {
    return [name](const client::ApiResult<json::Value>& result) {
      if (!result) log::warning("nodes", "resource slice {}: {}", name, result.error().message);
    };
  }

  void add_name(const std::string& name) {
    MutexLock lock(names_mutex);
    names.insert(name);
  }

  void node_gone(const client::Object& object) {
    published.erase(object.name());  // Its slices go with it: they are owned by it.
    fleet.remove_node(object.name());
    fleet.forget_stranger(object.name());
    {
      MutexLock lock(names_mutex);
      names.erase(object.name());
    }
    pump();
  }

  /// Pods that wait for a node, or run on nodes that are not simulated here, need not be read.
  [[nodiscard]] bool is_bound_here(const client::Object& pod) const { return fleet.has_node(pod_node_name(pod)); }

  /// Pods that the fleet does not know. Who has an address keeps it: the others get theirs of what is left, once all are seen.
  void meet(std::vector<client::ObjectRef> strangers) {
    const bool is_meeting = !newcomers.empty() || !without_address.empty();
    if (!is_meeting && strangers.size() == 1) return pod_seen(*strangers.front());
    std::ranges::move(strangers, std::back_inserter(newcomers));
    if (!is_meeting) meet_some();
  }

  /// Of very many at a start some at a time: the nodes tell that they live meanwhile.
  void meet_some() {
    for (std::size_t i = 0; i < kPodsATurn && !(newcomers.empty() && without_address.empty()); ++i) {
      auto& from = newcomers.empty() ? without_address : newcomers;
      const client::ObjectRef pod = pods.get(from.front()->ns(), from.front()->name());
      const bool is_there = pod && pod->uid() == from.front()->uid() && !fleet.knows_pod(pod->uid());
      const bool waits = is_there && &from == &newcomers && !says_address(*pod);
      from.pop_front();
      if (waits)
        without_address.push_back(pod);
      else if (is_there)
        pod_seen(*pod);
    }
    if (!newcomers.empty() || !without_address.empty()) loop.post(guarded(&Impl::meet_some));
  }

  void pod_seen(const client::Object& object) {
    const auto parsed = object.parsed();
    const json::Value& document = *parsed;
    fleet.observe_pod(document, loop.now());
    pump();
  }

  /// News of a pod that does not run yet belong to the trace of its way.
  [[nodiscard]] std::optional<net::tracing::SpanContext> way_of(const Write& write) {
    if (options.tracer == nullptr || write.kind != Write::Kind::kPodStatus) return std::nullopt;
    const client::ObjectRef pod = pods.get(write.ns, write.name);
    if (!pod || pod->uid() != write.uid || !is_pending(*pod)) return std::nullopt;
    const auto way = options.tracer->way_of(write.uid);
    return way && way->is_sampled ? way : std::nullopt;
  }

  void pump() {
    if (has_ended() || pumping) return;
    pumping = true;  // A synchronous transport may answer within call().
    while (in_flight < options.max_writes_in_flight) {
      std::optional<Write> write = fleet.next_write(loop.now());
      if (!write) break;
      ++in_flight;
      client::Call call = to_call(*write);
      // Of what is written over and over only the outcome counts.
      call.answer = write->kind == Write::Kind::kCreateNode ? client::Answer::kIdentity : client::Answer::kNone;
      std::optional<net::tracing::Scope> scope;
      if (const auto way = way_of(*write)) scope.emplace(*way);
      client.call(std::move(call), guarded([write = std::move(*write)](Impl& self, const client::ApiResult<json::Value>& result) {
                    self.finished(write, result);
                  }));
    }
    pumping = false;
    while (const auto order = fleet.next_program()) carry_out(*order);
    ready = fleet.ready_count();
    count = fleet.node_count();
    arm();
  }

  void carry_out(const ProgramOrder& order) {
    if (!order.is_start) return options.programs->stop(order);
    const client::ObjectRef pod = pods.get(order.ns, order.pod);
    if (!pod || pod->uid() != order.uid) return;
    options.programs->start(
        order, pod->document(), [&loop = loop, wrote = guarded([order](Impl& self, const std::string& text) {
                                                 self.fleet.program_wrote(order, text);
                                               })](std::string text) { loop.post([wrote, text = std::move(text)] { wrote(text); }); },
        [&loop = loop, ended = guarded([order](Impl& self, int exit_code) {
                         self.fleet.program_ended(order, exit_code, self.loop.now());
                         self.pump();
                       })](int exit_code) { loop.post([ended, exit_code] { ended(exit_code); }); });
  }

  void finished(const Write& write, const client::ApiResult<json::Value>& result) {
    BERTH_CHECK(--in_flight >= 0, "writing {} {}: answered more often than asked", write.ns, write.name);
    WriteOutcome outcome;
    if (result) {
      outcome.uid = json::get_string(*result, {"metadata", "uid"});
    } else {
      outcome.code = result.error().code;
      if (outcome.code != 404 && outcome.code != 409)
        log::warning("nodes", "writing {} {}: {} ({})", write.ns, write.name, result.error().message, outcome.code);
    }
    fleet.finish_write(write, outcome, loop.now());
    pump();
  }

  void arm() {
    if (in_flight >= options.max_writes_in_flight) return;  // What is due waits for an answer, which comes by here.
    const std::optional<TimePoint> next = fleet.next_wake();
    if (!next || (timer != TimerId::kNone && timer_at <= *next)) return;
    if (timer != TimerId::kNone) loop.cancel(timer);
    timer_at = *next;
    timer = loop.schedule_at(*next, guarded([](Impl& self) {
      self.timer = TimerId::kNone;
      self.fleet.advance(self.loop.now());
      self.pump();
    }));
  }
};

SimulatedNodes::SimulatedNodes(client::Client& client, SimulatedNodesOptions options)
    : impl_(std::make_shared<Impl>(client, std::move(options))) {}

SimulatedNodes::~SimulatedNodes() {
  impl_->end();
  if (impl_->timer != TimerId::kNone) impl_->loop.cancel(impl_->timer);
}

void SimulatedNodes::start() { impl_->start(); }
void SimulatedNodes::set_steady_heartbeats(bool steady) {
  impl_->loop.assert_on_loop();
  impl_->fleet.set_steady_heartbeats(steady, impl_->loop.now());
  impl_->pump();
}
const Fleet& SimulatedNodes::fleet() const {
  impl_->loop.assert_on_loop();
  return impl_->fleet;
}
std::size_t SimulatedNodes::ready_nodes() const { return impl_->ready; }
std::size_t SimulatedNodes::node_count() const { return impl_->count; }

SimulatedNodes::Backend SimulatedNodes::backend() {
  return [weak = std::weak_ptr<Impl>(impl_)](const std::string& node, net::HttpRequest& request,
                                             std::shared_ptr<net::ResponseWriter>& writer) {
    const auto impl = weak.lock();
    if (!impl || impl->has_ended()) return false;
    {
      MutexLock lock(impl->names_mutex);
      if (!impl->names.contains(node)) return false;
    }
    impl->loop.post([weak = std::weak_ptr<Impl>(impl), node, request = std::make_shared<net::HttpRequest>(std::move(request)),
                     writer = std::move(writer)] {
      const auto impl = weak.lock();
      if (!impl || impl->has_ended() || !impl->fleet.has_node(node))
        return writer->respond({404, {}, fmt::format("node {} is not simulated here\n", node)});
      answer_kubelet_request(impl->fleet, node, *request, *writer, impl->loop.now());
    });
    return true;
  };
}

}  // namespace berth::node::simulated
