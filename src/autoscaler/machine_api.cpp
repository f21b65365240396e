#include "autoscaler/machine_api.h"

#include <fmt/format.h>

#include "autoscaler/cluster_cache.h"
#include "autoscaler/own_writes.h"
#include "autoscaler/scale_up.h"
#include "base/lifeline.h"
#include "base/log.h"
#include "client/response.h"

namespace berth::autoscaler {
namespace {

using client::ApiResult;
using client::Call;

constexpr const char* kMachinePatch = "application/merge-patch+json";
/// Between two attempts to take a machine's mark back that must not stay.
constexpr Duration kUnmarkPause = std::chrono::seconds(10);

/// The resourceVersion that a write made; 0 when it failed.
std::int64_t revision_of(const ApiResult<json::Value>& result) { return result ? revision_in(*result) : 0; }

std::string error_of(const ApiResult<json::Value>& result) { return result ? "" : result.error().message; }

}  // namespace

struct MachineApi::Impl : Guarded<Impl> {
  Impl(client::Client& c, const ClusterCache& w, WriteCallbacks cb) : client(c), cache(w), callbacks(std::move(cb)) {}

  client::Client& client;
  const ClusterCache& cache;
  WriteCallbacks callbacks;

  /// Calls back only while this object lives.
  void later(Duration delay, std::function<void(Impl&)> f) { client.loop()->schedule_after(delay, guarded(std::move(f))); }

  using Done = std::function<void(Impl&, ApiResult<json::Value>)>;

  /// The next pass must see what comes of this: it waits from now until `done` was called and the watch has come that far.
  Done awaited(const model::Gvr& gvr, Done done) {
    const std::string resource = resource_name(gvr);
    if (callbacks.write_started) callbacks.write_started(resource);
    return [resource, done = std::move(done)](Impl& self, ApiResult<json::Value> result) {
      if (self.callbacks.write_ended) self.callbacks.write_ended(resource, revision_of(result));
      done(self, std::move(result));
    };
  }

  /// What a write of replicas whose answer was lost would have made of the MachineSet.
  struct Unanswered {
    std::string revision_before;
    std::int64_t replicas = 0;
  };

  /// `wanted` turns the replicas that the MachineSet has into those it should have; nullopt leaves it alone.
  void set_replicas(const std::string& group, std::function<std::optional<std::int64_t>(std::int64_t)> wanted, Done done) {
    try_set_replicas(group, std::move(wanted), awaited(cache.place_of(group).scalable, std::move(done)), 20, std::nullopt);
  }
  void try_set_replicas(const std::string& group, std::function<std::optional<std::int64_t>(std::int64_t)> wanted, Done done, int tries,
                        std::optional<Unanswered> unanswered) {
    const GroupPlace place = cache.place_of(group);
    const auto again = [=](std::optional<Unanswered> open, Duration pause) {
      return [=](Impl& self) { self.later(pause, [=](Impl& retry) { retry.try_set_replicas(group, wanted, done, tries - 1, open); }); };
    };
    Call get{.verb = "get", .gvr = place.scalable, .ns = place.ns, .name = place.name};
    client.call(std::move(get), guarded([=](Impl& self, ApiResult<json::Value> found) {
                  if (!found && client::is_uncertain(found.error()) && tries > 1) return again(unanswered, std::chrono::seconds(1))(self);
                  if (!found) return done(self, std::move(found));
                  const std::int64_t there = json::get_int(*found, {"spec", "replicas"}, 1);
                  const std::string revision(json::get_string(*found, {"metadata", "resourceVersion"}));
                  if (unanswered && revision != unanswered->revision_before && there == unanswered->replicas)
                    return done(self, std::move(found));
                  const auto replicas = wanted(there);
                  if (!replicas) return done(self, std::move(found));
                  const json::Value body = json::Object{{"metadata", json::Object{{"resourceVersion", revision}}},
                                                        {"spec", json::Object{{"replicas", *replicas}}}};
                  Call patch{.verb = "patch",
                             .gvr = place.scalable,
                             .ns = place.ns,
                             .name = place.name,
                             .body = json::serialize(body),
                             .content_type = kMachinePatch};
                  patch.answer = client::Answer::kIdentity;
                  self.client.call(std::move(patch), self.guarded([=](Impl& patched, ApiResult<json::Value> result) {
                    if (!result && result.error().code == 409 && tries > 1)
                      return again(std::nullopt, std::chrono::milliseconds(50))(patched);
                    if (!result && client::is_uncertain(result.error()) && tries > 1)
                      return again(Unanswered{revision, *replicas}, std::chrono::seconds(1))(patched);
                    done(patched, std::move(result));
                  }));
                }));
  }

  static Call mark_call(const model::Gvr& machines, const std::string& instance, const json::Value& mark) {
    const std::size_t slash = instance.find('/');
    const json::Value body = json::Object{
        {"metadata",
         json::Object{{"annotations", json::Object{{kDeleteMachine, mark}, {kOldDeleteMachine, mark}, {kClusterApiDeleteMachine, mark}}}}}};
    Call call{.verb = "patch",
              .gvr = machines,
              .ns = instance.substr(0, slash),
              .name = instance.substr(slash + 1),
              .body = json::serialize(body),
              .content_type = kMachinePatch};
    call.answer = client::Answer::kIdentity;
    return call;
  }

  /// Marks the machine and takes one replica away; the MachineSet's controller deletes the marked one. When that fails the mark goes
  /// again: the next machine to be deleted would be this one otherwise, whatever it was chosen for.
  void delete_machine(const std::string& group, const std::string& instance, std::function<void(Impl&, ApiResult<json::Value>)> done) {
    const model::Gvr machines = cache.place_of(group).machines;
    Done marked = awaited(machines, [=](Impl& self, ApiResult<json::Value> result) {
      if (!result) {
        if (client::is_uncertain(result.error())) self.unmark(machines, instance);
        return done(self, std::move(result));
      }
      self.set_replicas(
          group, [](std::int64_t replicas) { return replicas > 0 ? std::optional(replicas - 1) : std::nullopt; },
          [=](Impl& set, ApiResult<json::Value> lowered) {
            if (!lowered) set.unmark(machines, instance);
            done(set, std::move(lowered));
          });
    });
    client.call(mark_call(machines, instance, json::Value(format_rfc3339(client.loop()->now()))),
                guarded([marked = std::move(marked)](Impl& self, ApiResult<json::Value> result) { marked(self, std::move(result)); }));
  }

  void unmark(const model::Gvr& machines, const std::string& instance) {
    client.call(mark_call(machines, instance, json::Value(nullptr)), guarded([=](Impl& self, const ApiResult<json::Value>& result) {
                  if (result || result.error().code == 404) return;
                  log::warning("autoscaler", "machine {}: its mark for deletion is not removed: {}", instance, result.error().message);
                  self.later(kUnmarkPause, [=](Impl& again) { again.unmark(machines, instance); });
                }));
  }
};

MachineApi::MachineApi(client::Client& client, const ClusterCache& cache, WriteCallbacks callbacks)
    : impl_(std::make_shared<Impl>(client, cache, std::move(callbacks))) {}
MachineApi::~MachineApi() { impl_->end(); }

void MachineApi::refresh(const Options&, std::function<void(std::optional<ProviderState>)> done) { done(std::nullopt); }

void MachineApi::grow(const Resize& resize, Done done) {
  impl_->set_replicas(
      resize.group,
      [resize](std::int64_t replicas) {
        // Somebody scaled it meanwhile: what they want is kept where it is more.
        return replicas >= resize.to ? std::nullopt : std::optional(resize.to);
      },
      [done = std::move(done)](Impl&, const ApiResult<json::Value>& result) { done(error_of(result)); });
}

void MachineApi::give_up(const Resize& resize, Done done) {
  impl_->set_replicas(
      resize.group, [resize](std::int64_t replicas) { return replicas == resize.from ? std::optional(resize.to) : std::nullopt; },
      [done = std::move(done)](Impl&, const ApiResult<json::Value>& result) { done(error_of(result)); });
}

void MachineApi::remove(const std::string& group, const std::string& instance, const std::string&, Done done) {
  impl_->delete_machine(group, instance, [done = std::move(done)](Impl&, const ApiResult<json::Value>& result) { done(error_of(result)); });
}

}  // namespace berth::autoscaler
