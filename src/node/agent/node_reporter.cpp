#include "node/agent/node_reporter.h"

#include "base/log.h"
#include "placement/resource.h"

namespace berth::node::agent {
namespace {

const model::Gvr kNodes{"", "v1", "nodes"};
const model::Gvr kLeases{"coordination.k8s.io", "v1", "leases"};

}  // namespace

void NodeReporterOptions::take(const eviction::KubeletSettings& settings) {
  status_period = Duration(settings.node_status_update_frequency_ns / 1000);
  full_report_period = Duration(settings.node_status_report_frequency_ns / 1000);
  lease_duration_seconds = settings.node_lease_duration_seconds;
}

NodeReporter::NodeReporter(client::Client& client, const Clock& clock, NodeReporterOptions options, std::function<NodeFacts()> facts,
                           std::function<void()> registered,
                           std::function<void(const std::string& type, const std::string& reason, const std::string& message)> event)
    : client_(client),
      loop_(*client.loop()),
      clock_(clock),
      options_(std::move(options)),
      facts_(std::move(facts)),
      registered_(std::move(registered)),
      event_(std::move(event)) {}

NodeReporter::~NodeReporter() {
  for (const TimerId timer : {register_timer_, lease_timer_, status_timer_}) loop_.cancel(timer);
}

void NodeReporter::start() { register_node(); }

void NodeReporter::later(Duration after, TimerId& timer, std::function<void()> task) {
  loop_.cancel(timer);
  timer = loop_.schedule_after(after, lifeline_.guard(std::move(task)));
}

void NodeReporter::register_node() {
  json::Object spec;
  if (!options_.taints.empty()) spec["taints"] = options_.taints;
  json::Object node{
      {"apiVersion", "v1"},
      {"kind", "Node"},
      {"metadata", json::Object{{"name", options_.node_name},
                                {"labels", node_labels(options_.node_name, options_.labels)},
                                {"annotations", json::Object{{"volumes.kubernetes.io/controller-managed-attach-detach", "true"}}}}},
      {"spec", std::move(spec)}};
  const auto known = [this](model::ApiResult<json::Value> result) {
    if (!result) {
      log::warning("node", "registering: {}", result.error().message);
      return later(std::chrono::seconds(1), register_timer_, [this] { register_node(); });
    }
    uid_ = json::get_string(*result, {"metadata", "uid"});
    is_registered_ = true;
    const std::string boot = facts_().machine.boot_id, before(json::get_string(*result, {"status", "nodeInfo", "bootID"}));
    if (!before.empty() && before != boot)
      event_("Warning", "Rebooted", fmt::format("Node {} has been rebooted, boot id: {}", options_.node_name, boot));
    report_status(true);
    renew_lease();
    registered_();
  };
  client_.create(kNodes, "", json::Value(node), lifeline_.guard([this, known](model::ApiResult<json::Value> result) {
    if (result || result.error().code != 409) return known(std::move(result));
    // Taken over: labels that this configuration gives are brought up to date, others stay.
    client_.patch(kNodes, "", options_.node_name, client::PatchType::kMerge,
                  json::Object{{"metadata", json::Object{{"labels", node_labels(options_.node_name, options_.labels)}}}},
                  lifeline_.guard(known));
  }));
}

/// Every status period when something changed, every full report period in any case, at once when asked.
void NodeReporter::report_status(bool now) {
  if (!is_registered_) return;
  client_.get(kNodes, "", options_.node_name, lifeline_.guard([this, now](model::ApiResult<json::Value> known) {
    send_status(now, known ? extended_resources(*known) : json::Object());
  }));
  later(options_.status_period, status_timer_, [this] { report_status(false); });
}

/// What somebody gave the node by its capacity is allocatable, and nothing that is not in its capacity (kubelet's nodestatus.MachineInfo).
json::Object NodeReporter::extended_resources(const json::Value& node) {
  json::Object out;
  for (const auto& [name, amount] : json::get_object(node, {"status", "capacity"}))
    if (placement::is_extended_resource_name(std::string_view(name))) out[name] = amount;
  for (const auto& [name, amount] : json::get_object(node, {"status", "allocatable"}))
    if (placement::is_extended_resource_name(std::string_view(name)) && !out.contains(name)) out[name] = nullptr;
  return out;
}

void NodeReporter::send_status(bool now, const json::Object& extended) {
  const ConditionTimes before = condition_times_;
  json::Value status = make_node_status(facts_(), condition_times_, clock_.now());
  for (const std::string& reason : condition_events(before, condition_times_))
    event_("Normal", reason, fmt::format("Node {} status is now: {}", options_.node_name, reason));
  // What the node itself says of a resource (a device plugin's) is right.
  for (const auto& [name, amount] : extended)
    if (json::find(status, {"capacity", name}) == nullptr) json::ensure_object(status, {"allocatable"})[name] = amount;
  json::Value plain = status;
  for (json::Value& condition : plain.as_object()["conditions"].as_array()) condition.as_object().erase("lastHeartbeatTime");
  if (now || !json::equal(plain, reported_status_) || clock_.now() - status_reported_ >= options_.full_report_period) {
    client_.patch(kNodes, "", options_.node_name, client::PatchType::kStrategicMerge, json::Object{{"status", std::move(status)}},
                  lifeline_.guard([this, plain](model::ApiResult<json::Value> result) {
                    if (result)
                      reported_status_ = plain;
                    else
                      log::warning("node", "reporting status: {}", result.error().message);
                  }),
                  "status");
    status_reported_ = clock_.now();
  }
}

void NodeReporter::renew_lease() {
  const json::Object spec{{"holderIdentity", options_.node_name},
                          {"leaseDurationSeconds", options_.lease_duration_seconds},
                          {"renewTime", format_rfc3339_micro(clock_.now())}};
  client_.patch(
      kLeases, "kube-node-lease", options_.node_name, client::PatchType::kMerge, json::Object{{"spec", spec}},
      lifeline_.guard([this, spec](model::ApiResult<json::Value> result) {
        if (result || result.error().code != 404) return;
        json::Object metadata{{"name", options_.node_name}, {"namespace", "kube-node-lease"}};
        // The lease goes with its node.
        if (!uid_.empty())
          metadata["ownerReferences"] =
              json::Array{json::Object{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", options_.node_name}, {"uid", uid_}}};
        client_.create(
            kLeases, "kube-node-lease",
            json::Object{{"apiVersion", "coordination.k8s.io/v1"}, {"kind", "Lease"}, {"metadata", std::move(metadata)}, {"spec", spec}},
            [](model::ApiResult<json::Value>) {});
      }));
  later(std::chrono::seconds(options_.lease_duration_seconds) / 4, lease_timer_, [this] { renew_lease(); });
}

}  // namespace berth::node::agent
