#include "pools/runner.h"

#include <fmt/format.h>

#include <algorithm>

#include "autoscaler/external/external_provider.h"
#include "autoscaler/machine_api.h"
#include "autoscaler/own_writes.h"
#include "autoscaler/provider.h"
#include "autoscaler/scale_up.h"
#include "base/lifeline.h"
#include "base/log.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "pools/crds.h"
#include "pools/pool_metrics.h"

namespace berth::pools {
namespace {

using client::ApiResult;
using client::ObjectRef;

const model::Gvr kDefinitions{"apiextensions.k8s.io", "v1", "customresourcedefinitions"};

struct Watched {
  std::string_view kind;
  model::Gvr gvr;
};

/// What placement and drains look at, groups with their machines, and the kinds of ours.
std::vector<Watched> watched() {
  std::vector<Watched> out;
  for (const autoscaler::WatchedKind& one : autoscaler::watched_kinds())
    if (one.kind != "ProvisioningRequest" && one.kind != "PodTemplate") out.push_back({one.kind, one.gvr});
  for (const OwnKind& one : own_kinds()) out.push_back({one.kind, one.gvr});
  return out;
}

bool may_do_without(std::string_view kind) {
  return kind != "Node" && kind != "Pod" && kind != "NodePool" && kind != "NodeClaim" && kind != "PodDisruptionBudget";
}

}  // namespace

struct Runner::Impl : Guarded<Impl> {
  Impl(client::Client& c, RunnerOptions o)
      : options(std::move(o)),
        leadership(options.leader_elect ? seek_leadership(c) : nullptr),
        client(leadership ? leadership->transport() : c.transport(), c.loop(), c.user_agent()),
        keeper(options.catalogue, options.keeper),
        events(client, {.component = "karpenter"}) {
    if (options.metrics != nullptr) counts.emplace(*options.metrics);
  }

  RunnerOptions options;
  std::unique_ptr<client::Leadership> leadership;  ///< Null: nobody competes.
  client::Client client;
  Keeper keeper;
  client::EventRecorder events;
  std::optional<PoolMetrics> counts;
  autoscaler::OwnWrites own_writes;
  autoscaler::MachineApi machine_api{
      client, keeper.cache().cluster(),
      autoscaler::WriteCallbacks{
          .write_started = [this](const std::string& resource) { own_writes.started(resource); },
          .write_ended = [this](const std::string& resource, std::int64_t revision) { own_writes.ended(resource, revision); }}};
  std::shared_ptr<autoscaler::Provider> provider;  ///< The external one; null: there is none.
  TimePoint ask_at{};                              ///< When it is asked next.
  bool is_asking = false;
  std::uint64_t asked_of_it = 0;  ///< Machines that were wanted and given back.
  std::vector<std::unique_ptr<client::Informer>> informers;
  std::map<std::string, const client::Informer*> informer_of;  ///< By resource.
  std::map<std::string, std::string> told;                     ///< Failures by what was written: said once.
  std::function<void()> lost;
  std::size_t probes_open = 0, definitions_open = 0;
  bool leading = false, has_synced = false, is_defined = false;

  void later(Duration delay, std::function<void(Impl&)> f) { client.loop()->schedule_after(delay, guarded(std::move(f))); }

  /// Whoever stands by watches what there is. The definitions are written by who leads, as all else is: without them there are no pools to
  /// watch yet.
  void start() {
    if (options.external) {
      if (auto made = autoscaler::connect_external_provider(*options.external, *client.loop(), keeper.cache().cluster()))
        provider = std::move(*made);
      else
        log::error("pools", "the external provider: {}", made.error().message);
    }
    watch_all();
    if (leadership)
      leadership->start();
    else
      lead();
  }
  void lead() {
    leading = true;
    definitions_open = definitions().size();
    for (const json::Value& definition : definitions()) apply(definition);
  }
  /// By server-side apply, so that an older one is brought up to date and a foreign field of it stays.
  void apply(const json::Value& definition) {
    const std::string name(json::get_string(definition, {"metadata", "name"}));
    client.patch(kDefinitions, "", name, client::PatchType::kApply, definition,
                 guarded([&definition, name](Impl& self, const ApiResult<json::Value>& result) {
                   if (!result) {
                     self.say("CustomResourceDefinition " + name, result.error().message);
                     return self.later(std::chrono::seconds(2), [&definition](Impl& again) { again.apply(definition); });
                   }
                   if (--self.definitions_open > 0) return;
                   self.is_defined = true;
                   self.begin();
                 }));
  }

  void watch_all() {
    const std::vector<Watched> all = watched();
    probes_open = all.size();
    for (const Watched& one : all) probe(one);
  }
  /// A kind that is not served (yet) is asked for again if it is needed, and left out if it is not.
  void probe(const Watched& one) {
    client::Call call{.verb = "list", .gvr = one.gvr, .query = "limit=1"};
    call.answer = client::Answer::kNone;
    client.call(std::move(call), guarded([one](Impl& self, const ApiResult<json::Value>& result) {
                  const bool is_ours = std::ranges::any_of(own_kinds(), [&](const OwnKind& own) { return own.gvr.group == one.gvr.group; });
                  const bool goes_without =
                      !result && !is_ours && may_do_without(one.kind) && (result.error().code == 404 || result.error().code == 403);
                  if (!result && !goes_without) {
                    if (result.error().code != 404) self.say(one.gvr.resource, result.error().message);
                    return self.later(std::chrono::milliseconds(300), [one](Impl& again) { again.probe(one); });
                  }
                  if (result) {
                    self.informers.push_back(std::make_unique<client::Informer>(self.client, one.gvr));
                    self.informer_of[autoscaler::resource_name(one.gvr)] = self.informers.back().get();
                    self.subscribe(*self.informers.back(), one);
                    self.informers.back()->start();
                  }
                  if (--self.probes_open == 0) self.wait_for_sync();
                }));
  }
  void subscribe(client::Informer& informer, const Watched& one) {
    const auto put = [kind = one.kind, gvr = one.gvr](Impl& self, const ObjectRef& object) {
      if (kind == "Pod") return self.keeper.cache().upsert_pod(object);
      json::Value document = *object->parsed();
      if (!document.is_object()) return;
      // The items of a list leave out what the list says.
      document.get_object()["kind"] = kind;
      document.get_object()["apiVersion"] = gvr.group.empty() ? gvr.version : gvr.group + "/" + gvr.version;
      self.keeper.cache().upsert(document);
    };
    informer.add_handler({.on_add = guarded(put),
                          .on_update = guarded([put](Impl& self, const ObjectRef&, const ObjectRef& after) { put(self, after); }),
                          .on_delete = guarded([kind = one.kind](Impl& self, const ObjectRef& object) {
                            self.keeper.cache().remove(kind, object->ns(), object->name());
                          })});
  }
  void wait_for_sync() {
    for (const auto& informer : informers)
      if (!informer->has_synced()) return later(std::chrono::milliseconds(50), [](Impl& self) { self.wait_for_sync(); });
    has_synced = true;
    begin();
  }
  std::unique_ptr<client::Leadership> seek_leadership(client::Client& plain) {
    return client::seek_leadership(
        plain, {.ns = options.ns, .name = "berth-node-pools", .identity = options.identity}, [this] { lead(); },
        [this] {
          leading = false;
          if (lost) lost();
        },
        [this](std::function<void()> done) { client::catch_up(informers, std::move(done)); }, options.election_loop);
  }

  void begin() {
    if (!leading || !is_defined || !has_synced) return;
    publish();
    log::info("pools", "nodes of NodePools are made and given up here: {} instance types{}", options.catalogue.types.size(),
              options.catalogue.priced.empty() ? "" : ", prices as of " + options.catalogue.priced);
    tick();
  }
  /// What an API server takes in one object at most.
  void publish() {
    constexpr std::size_t kMost = 900'000;
    if (options.catalogue.text.empty() || options.catalogue.text.size() > kMost) return;
    const json::Value body = json::Object{{"apiVersion", "v1"},
                                          {"kind", "ConfigMap"},
                                          {"metadata", json::Object{{"name", kPublishedTypes}, {"namespace", "kube-system"}}},
                                          {"data", json::Object{{kPublishedKey, options.catalogue.text}}}};
    client.patch({"", "v1", "configmaps"}, "kube-system", std::string(kPublishedTypes), client::PatchType::kApply, body,
                 guarded([](Impl& self, const ApiResult<json::Value>& result) {
                   if (!result) self.say("ConfigMap " + std::string(kPublishedTypes), result.error().message);
                 }));
  }
  void tick() {
    if (!leading) return;
    const auto outstanding = own_writes.outstanding([this](const std::string& resource) {
      const auto found = informer_of.find(resource);
      return found == informer_of.end() ? INT64_MAX : found->second->revision();
    });
    // A pass before its own writes are seen would ask for the same again.
    if (!outstanding.empty()) return later(std::chrono::milliseconds(50), [](Impl& self) { self.tick(); });
    ask_provider();
    std::function<bool()> is_over;
    if (options.steady_clock)
      is_over = [clock = options.steady_clock, end = options.steady_clock() + options.most_of_a_pass] { return clock() > end; };
    const PassResult result = keeper.step(client.loop()->now(), std::move(is_over));
    for (const Write& write : result.writes) carry_out(write);
    for (const MachineWrite& write : result.machines) carry_out(write);
    if (counts) counts->see(result, keeper.cache(), keeper.catalogue(), client.loop()->now());
    for (const Told& one : result.events) tell(one);
    later(options.interval, [](Impl& self) { self.tick(); });
  }
  void tell(const Told& one) {
    const std::string_view version = one.kind == "Pod" || one.kind == "Node" ? "v1" : "karpenter.sh/v1";
    log::info("pools", "{} {}: {}: {}", one.kind, one.ns.empty() ? one.name : one.ns + "/" + one.name, one.reason, one.message);
    events.event({.api_version = std::string(version), .kind = one.kind, .ns = one.ns, .name = one.name, .uid = one.uid},
                 one.is_warning ? "Warning" : "Normal", one.reason, one.message);
  }
  void say(const std::string& what, const std::string& message) {
    if (std::exchange(told[what], message) != message) log::warning("pools", "{}: {}", what, message);
  }

  /// What it has, with prices: each second while machines come or go, else every ten.
  void ask_provider() {
    if (!provider || is_asking || client.loop()->now() < ask_at) return;
    is_asking = true;
    autoscaler::Options wanted;
    wanted.expanders = {autoscaler::Expander::kPrice};
    provider->refresh(wanted, guarded([before = asked_of_it](Impl& self, std::optional<autoscaler::ProviderState> state) {
                        self.is_asking = false;
                        if (!state || before != self.asked_of_it) return;  // Older than what was wanted since.
                        for (const std::string& problem : state->problems) self.say(problem.substr(0, problem.rfind(':')), problem);
                        self.keeper.cache().see_provider(std::move(*state));
                        self.ask_at = self.client.loop()->now() + std::chrono::seconds(self.keeper.waits_for_machines() ? 1 : 10);
                      }));
  }
  void carry_out(const MachineWrite& write) {
    const auto done = guarded([write](Impl& self, const std::string& error) {
      if (write.is_external) self.ask_at = {}, ++self.asked_of_it;
      if (error.empty()) return;
      self.say(write.group, error);
      self.keeper.machine_write_failed(write, error);
    });
    if (write.is_external) {
      ++asked_of_it;
      keeper.cache().outdate_provider();
      if (!provider) return;
    }
    autoscaler::Provider& whose = write.is_external ? *provider : static_cast<autoscaler::Provider&>(machine_api);
    const autoscaler::Resize resize{write.group, write.from, write.to, write.max};
    switch (write.kind) {
      case MachineWrite::Kind::kGrow:
        return whose.grow(resize, done);
      case MachineWrite::Kind::kGiveUp:
        return whose.give_up(resize, done);
      case MachineWrite::Kind::kRemove:
        return whose.remove(write.group, write.instance, write.node, done);
    }
  }

  void carry_out(const Write& write) {
    const std::string resource = autoscaler::resource_name(write.gvr);
    own_writes.started(resource);
    const auto done = guarded([resource, kind = write.kind, what = fmt::format("{} {}", write.gvr.resource, write.name)](
                                  Impl& self, const ApiResult<json::Value>& result) {
      self.own_writes.ended(resource,
                            result && kind != Write::Kind::kEvict && kind != Write::Kind::kDelete ? autoscaler::revision_in(*result) : 0);
      // Gone already, changed meanwhile, or a budget that says not yet: the next pass looks again.
      if (!result && result.error().code != 404 && result.error().code != 409 && result.error().code != 429)
        self.say(what, result.error().message);
    });
    switch (write.kind) {
      case Write::Kind::kCreate:
        return client.create(write.gvr, write.ns, write.body, done, client::Answer::kIdentity);
      case Write::Kind::kPatch:
        return client.patch(write.gvr, write.ns, write.name, client::PatchType::kMerge, write.body, done, "", client::Answer::kIdentity);
      case Write::Kind::kPatchStatus:
        return client.patch(write.gvr, write.ns, write.name, client::PatchType::kMerge, write.body, done, "status",
                            client::Answer::kIdentity);
      case Write::Kind::kDelete: {
        client::DeleteOptions wanted;
        wanted.precondition_uid = write.uid;
        wanted.grace_period_seconds = write.grace_seconds;
        return client.remove(write.gvr, write.ns, write.name, wanted, done);
      }
      case Write::Kind::kEvict: {
        client::Call call{.verb = "create", .gvr = write.gvr, .ns = write.ns, .name = write.name, .subresource = "eviction"};
        call.body = json::serialize(json::Object{{"apiVersion", "policy/v1"},
                                                 {"kind", "Eviction"},
                                                 {"metadata", json::Object{{"name", write.name}, {"namespace", write.ns}}},
                                                 {"deleteOptions", json::Object{{"preconditions", json::Object{{"uid", write.uid}}}}}});
        call.answer = client::Answer::kNone;
        call.comes_again = false;
        return client.call(std::move(call), done);
      }
    }
  }
};

Runner::Runner(client::Client& client, RunnerOptions options) : impl_(std::make_shared<Impl>(client, std::move(options))) {}
Runner::~Runner() { impl_->end(); }
void Runner::start() { impl_->start(); }
void Runner::on_lost_leadership(std::function<void()> lost) { impl_->lost = std::move(lost); }

}  // namespace berth::pools
