// PodWorker: the devices that its containers have, by device plugins and by resource claims (kubelet cm/devicemanager, cm/dra).
#include "base/log.h"
#include "node/agent/container_devices.h"
#include "node/agent/pod_claims.h"
#include "node/agent/pod_worker.h"
#include "node/cpus/cpu_manager.h"
#include "node/devices/cdi.h"
#include "node/devices/claim_drivers.h"

namespace berth::node::agent {
namespace {

json::Value resource_status(std::string name, json::Array resources) {
  return json::Object{{"name", std::move(name)}, {"resources", std::move(resources)}};
}

}  // namespace

/// Before the sandbox: the drivers of its claims have prepared what it was given.
Result<void> PodWorker::prepare_claims() {
  const auto wrong = [](const std::string& why) { return fail(ErrorCode::kUnavailable, "prepare dynamic resources: " + why); };
  const auto claims = claims_of_pod(pod_, environment_.objects);
  if (!claims) return wrong(claims.error().message);
  if (claims->empty()) return {};
  if (environment_.claims == nullptr) return wrong(fmt::format("DRA driver {} is not registered", *claims->front().drivers.begin()));
  const auto prepared = environment_.claims->prepare(uid_, *claims, interrupt_);
  return prepared ? prepared : wrong(prepared.error().message);
}

/// Once nothing of the pod runs any more. False: a driver has not taken its devices back, and is to be asked again.
bool PodWorker::release_claims() {
  if (environment_.claims == nullptr) return true;
  const auto released = environment_.claims->release(uid_, interrupt_);
  if (released) return true;
  if (interrupt_) return false;
  emit("Warning", "FailedUnprepareDynamicResources", "Failed to unprepare dynamic resources: " + released.error().message,
       containers_.size());
  return false;
}

/// What device plugins and drivers give a container. The error of a plugin fails the pod; that of a claim is tried again.
PodWorker::Given PodWorker::give_devices(std::size_t i, json::Object& config, std::string& why) {
  if (environment_.devices) {
    const auto grant = environment_.devices(uid_, spec_.containers[i].name);
    if (!grant) {
      fail_pod("UnexpectedAdmissionError",
               fmt::format("Pod was rejected: Allocate failed due to {}, which is unexpected", grant.error().message), Duration::zero(),
               false);
      return Given::kNever;
    }
    if (auto added = add_grant(*grant, config); !added) return why = added.error().message, Given::kNotYet;
  }
  const auto uses = devices::container_claims(pod_, container_spec(pod_, i));
  if (uses.empty() || environment_.claims == nullptr) return Given::kAll;
  // An agent that lost its checkpoint, or a machine that was started anew under a sandbox that is there still.
  const bool is_prepared = std::ranges::all_of(uses, [&](const auto& use) {
    const auto claim = environment_.claims->claim(use.ns, use.claim);
    return claim && claim->is_prepared() && claim->pods.contains(uid_);
  });
  if (!is_prepared)
    if (const auto prepared = prepare_claims(); !prepared) return why = prepared.error().message, Given::kNotYet;
  devices::DeviceGrant grant;
  grant.cdi_devices = environment_.claims->cdi_devices(uses);
  if (auto added = add_grant(grant, config); !added) return why = added.error().message, Given::kNotYet;
  return Given::kAll;
}

/// A runtime whose CRI has no CDI devices is told what they come to.
Result<void> PodWorker::add_grant(const devices::DeviceGrant& grant, json::Object& config) const {
  if (grant.cdi_devices.empty() || environment_.runtime.has_field("ContainerConfig", "CDI_devices")) {
    add_devices(grant, config);
    return {};
  }
  const auto edits = devices::cdi_edits(devices::read_cdi_specs(environment_.cdi_folders), grant.cdi_devices);
  if (!edits) return std::unexpected(edits.error());
  devices::DeviceGrant rest = grant;
  rest.cdi_devices.clear();
  add_devices(rest, config);
  add_devices(*edits, config);
  return {};
}

/// How healthy the devices of its containers are, for the status (KEP-4680).
void PodWorker::look_at_devices() {
  for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
    if (spec_.containers[i].role == ContainerRole::kEphemeral) continue;
    json::Array out;
    if (environment_.held_devices)
      for (const auto& [resource, held] : environment_.held_devices(uid_, spec_.containers[i].name)) {
        json::Array resources;
        for (const auto& [id, device] : held)
          resources.push_back(json::Object{{"resourceID", id},
                                           {"health", !device.is_listed   ? "Unknown"
                                                      : device.is_healthy ? "Healthy"
                                                                          : "Unhealthy"}});
        out.push_back(resource_status(resource, std::move(resources)));
      }
    if (environment_.claims != nullptr)
      for (const auto& use : devices::container_claims(pod_, container_spec(pod_, i))) {
        json::Array resources;
        for (const auto& one : environment_.claims->health(use)) {
          json::Object entry{{"resourceID", one.id}, {"health", one.health.state}};
          if (!one.health.message.empty()) entry["message"] = one.health.message;
          resources.push_back(std::move(entry));
        }
        if (use.entry.empty() || resources.empty()) continue;
        out.push_back(
            resource_status(fmt::format("claim:{}{}{}", use.entry, use.request.empty() ? "" : "/", use.request), std::move(resources)));
      }
    state_.containers[i].allocated_devices = std::move(out);
  }
}

/// Containers that run are put on the processors that are theirs now, or shared.
void PodWorker::keep_on_cpus(PodContext& context) {
  if (environment_.cpus == nullptr) return;
  for (std::size_t i = 0; i < spec_.containers.size(); ++i) {
    if (state_.containers[i].state.kind != ContainerState::Kind::kRunning) continue;
    std::string wanted = environment_.cpus->cpus_of(uid_, spec_.containers[i].name);
    if (containers_[i].cpus == wanted) continue;
    json::Object resources = container_resources(context, container_spec(pod_, i));
    resources["cpuset_cpus"] = wanted;
    const auto moved = environment_.runtime.call("RuntimeService/UpdateContainerResources",
                                                 json::Object{{"container_id", containers_[i].id}, {"linux", std::move(resources)}});
    if (moved)
      containers_[i].cpus = std::move(wanted);
    else
      log::warning("node", "pod {}/{}: container {} cannot be put on processors {}: {}", spec_.ns, spec_.name, spec_.containers[i].name,
                   wanted, moved.error().message);
  }
}

}  // namespace berth::node::agent
