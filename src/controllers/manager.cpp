#include "controllers/manager.h"

#include "base/lifeline.h"
#include "base/log.h"
#include "client/event_recorder.h"
#include "client/leadership.h"
#include "controllers/custom_kinds.h"
#include "controllers/machines.h"
#include "controllers/services.h"
#include "model/features.h"

namespace berth::controllers {
namespace {

using client::Client;

const model::Gvr kDefinitions{"apiextensions.k8s.io", "v1", "customresourcedefinitions"};
constexpr const char* kName = "kube-controller-manager";  ///< As a client, and of the Lease.

/// Plans' writes as API calls, events through one recorder a controller. Of an object that was written only its identity and revision are
/// read from the answer; what reads (get, list, reviews, subresources such as token) comes whole. A creation that the server has no room
/// for now is answered at once: the engine knows better than a client's repetitions what is still wanted when there is room.
class ClientApi final : public Api {
 public:
  ClientApi(Client& client, std::uint64_t seed) : client_(client), seed_(seed) {}

  void send(const Write& write, std::function<void(ApiResult<json::Value>)> done) override {
    const model::Gvr gvr = write.kind->gvr();
    switch (write.verb) {
      case Write::Verb::kUpdate:
        return client_.update(gvr, write.ns, write.name, write.body, std::move(done), write.subresource, client::Answer::kIdentity);
      case Write::Verb::kPatch:
        return client_.patch(gvr, write.ns, write.name, write.patch_type, write.body, std::move(done), write.subresource,
                             client::Answer::kIdentity);
      case Write::Verb::kDelete:
        return client_.remove(gvr, write.ns, write.name, write.delete_options, std::move(done));
      case Write::Verb::kGet:
        if (write.subresource.empty() && write.query.empty()) return client_.get(gvr, write.ns, write.name, std::move(done));
        break;
      case Write::Verb::kCreate:
        if (write.subresource.empty() && !write.kind->is_virtual)
          return client_.create(gvr, write.ns, write.body, std::move(done), client::Answer::kIdentity, false);
        break;
      default:
        break;
    }
    client::Call call;
    call.gvr = gvr;
    call.ns = write.ns;
    call.query = write.query;
    if (write.verb == Write::Verb::kGet) {
      call.verb = "get";
      call.name = write.name;
      call.subresource = write.subresource;
    } else if (write.verb == Write::Verb::kList) {
      call.verb = "list";
    } else if (write.verb == Write::Verb::kDeleteCollection) {
      call.verb = "deletecollection";
      call.body = R"({"apiVersion":"v1","kind":"DeleteOptions","propagationPolicy":"Background"})";
    } else {
      call.verb = "create";
      call.name = write.name;
      call.subresource = write.subresource;
      call.body = json::serialize(write.body);
    }
    client_.call(std::move(call), std::move(done));
  }

  void note(std::string_view controller, const EventNote& note) override {
    auto& recorder = recorders_[std::string(controller)];
    if (!recorder) {
      client::EventRecorderOptions options;
      options.component = controller;
      options.seed = seed_;
      recorder = std::make_unique<client::EventRecorder>(client_, options);
    }
    recorder->event({note.api_version, note.kind, note.ns, note.name, note.uid, note.resource_version, ""}, note.type, note.reason,
                    note.message);
  }

 private:
  Client& client_;
  std::uint64_t seed_;
  std::map<std::string, std::unique_ptr<client::EventRecorder>, std::less<>> recorders_;
};

class Manager final : public ControllerManager {
 public:
  Manager(std::shared_ptr<client::Transport> transport, EventLoop& loop, ManagerOptions options, metrics::Registry* metrics)
      : loop_(loop),
        options_(std::move(options)),
        leadership_(options_.leader_elect ? seek_leadership(transport) : nullptr),
        client_(leadership_ ? leadership_->transport() : std::move(transport), &loop, kName),
        api_(client_, options_.seed),
        informers_(client_) {
    loop_.assert_on_loop();
    EngineOptions engine;
    engine.trace = options_.trace;
    engine_ = std::make_unique<Engine>(loop_, api_, engine, metrics);
    for (ControllerPtr& controller : make_controllers(options_)) engine_->add(std::move(controller));
    if (engine_->wants_custom_kinds()) custom_ = std::make_unique<CustomKinds>(client_, *engine_);
  }
  ~Manager() override {
    loop_.assert_on_loop();
    lifeline_.end();
    leadership_.reset();  // Its callbacks use everything below.
  }

  void start() override {
    loop_.post(lifeline_.guard([this] { begin(); }));
  }
  [[nodiscard]] bool is_running() const override { return running_; }
  void on_lost_leadership(std::function<void()> lost) override { lost_ = std::move(lost); }

 private:
  /// Who stands by holds the caches and nothing else: whoever comes to lead need not ask for what is there, and no controller remembers
  /// what went by before it led.
  void begin() {
    informers_.on_behind([this](bool is_behind) {
      is_behind_ = is_behind;
      go_on_if_all_is_well();
    });
    for (const Kind kind : engine_->watched_kinds()) informers_.get(kind->gvr());
    if (custom_) custom_->follow(informers_.get(kDefinitions, true));
    informers_.start();
    if (leadership_)
      leadership_->start();
    else
      lead();
  }

  std::unique_ptr<client::Leadership> seek_leadership(std::shared_ptr<client::Transport> transport) {
    client::LeadershipOptions options;
    options.election.name = kName;
    options.election.identity = options_.identity;
    options.election.seed = options_.seed;
    options.election.lease_duration = options_.election.lease_duration;
    options.election.renew_deadline = options_.election.renew_deadline;
    options.election.retry_period = options_.election.retry_period;
    options.user_agent = kName;
    options.transport = options_.election_transport;
    options.election_loop = options_.election_loop;
    options.stands_again = options_.stands_again;
    options.catch_up = [this](std::function<void()> done) { informers_.catch_up(std::move(done)); };
    client::LeaderCallbacks callbacks;
    callbacks.on_started_leading = [this] {
      if (has_led_) return end();
      set_led(true);  // An earlier leadership may have been lost before it was told of.
      lead();
    };
    callbacks.on_resumed_leading = [this] {
      log::info("controllers", "nobody else has led meanwhile: going on");
      running_ = has_started_;
      set_led(true);
    };
    callbacks.on_stopped_leading = [this] {
      log::warning("controllers", "lost the lease kube-system/{}", kName);
      if (!options_.stands_again) return end();
      running_ = false;
      set_led(false);
    };
    return std::make_unique<client::Leadership>(std::move(transport), std::move(options), &loop_, std::move(callbacks));
  }

  void set_led(bool now) {
    is_led_ = now;
    go_on_if_all_is_well();
  }

  /// Nobody decides by what he knows to be old, a quota's use by pods of before, say.
  void go_on_if_all_is_well() { is_led_ && !is_behind_ ? engine_->resume() : engine_->pause(); }

  void end() {
    engine_->stop();
    running_ = false;
    if (lost_) lost_();
  }

  void lead() {
    has_led_ = true;
    for (const Kind kind : engine_->watched_kinds()) {
      client::InformerHandler handler;
      handler.on_add = [this, kind](const ObjectRef& object) { engine_->observe(kind, object, false); };
      handler.on_update = [this, kind](const ObjectRef&, const ObjectRef& after) { engine_->observe(kind, after, false); };
      handler.on_delete = [this, kind](const ObjectRef& object) { engine_->observe(kind, object, true); };
      informers_.get(kind->gvr()).add_handler(std::move(handler));
    }
    if (custom_) custom_->show();
    informers_.on_synced([this] {
      if (!custom_) return run();
      custom_->on_synced([this] { run(); });
    });
  }

  void run() {
    if (std::exchange(has_started_, true)) return;
    running_ = !leadership_ || leadership_->holds();
    engine_->start();
  }

  EventLoop& loop_;
  ManagerOptions options_;
  std::unique_ptr<client::Leadership> leadership_;  ///< Null: nobody competes.
  Client client_;
  ClientApi api_;
  client::InformerFactory informers_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<CustomKinds> custom_;  ///< Null: no controller wants them.
  std::function<void()> lost_;
  bool has_led_ = false, has_started_ = false;
  bool is_led_ = true;      ///< By us; false: the Lease was lost, and may come back.
  bool is_behind_ = false;  ///< Watches were lost, and what happened since is not known yet.
  std::atomic<bool> running_ = false;
  Lifeline lifeline_;
};

}  // namespace

std::vector<ControllerPtr> make_controllers(const ManagerOptions& options) {
  std::vector<ControllerPtr> all;
  // Node health first: what it decides is what the others see.
  all.push_back(make_node_lifecycle_controller(options.node_lifecycle));
  all.push_back(make_taint_eviction_controller());
  all.push_back(make_pod_garbage_collector(options.pod_gc));
  all.push_back(make_unclaimed_pod_controller());
  all.push_back(make_node_ttl_controller());
  all.push_back(make_namespace_controller());
  all.push_back(make_serviceaccount_controller());
  if (!options.root_ca_pem.empty()) all.push_back(make_root_ca_publisher(options.root_ca_pem));
  all.push_back(make_serviceaccount_token_controller(options.root_ca_pem));
  if (options.signing.authority || !options.signing.own_authorities.empty())
    all.push_back(make_certificate_signing_controller(options.signing));
  all.push_back(make_certificate_approving_controller(options.signing.approves_kubelet_serving));
  all.push_back(make_certificate_cleaner_controller());
  all.push_back(make_token_cleaner_controller());
  all.push_back(make_bootstrap_signer_controller());
  all.push_back(make_garbage_collector());
  all.push_back(make_replicaset_controller(options.replica_set));
  all.push_back(make_replication_controller(options.replica_set));
  all.push_back(make_deployment_controller());
  all.push_back(make_statefulset_controller());
  all.push_back(make_daemonset_controller());
  all.push_back(make_job_controller({.makes_groups = model::has(options.features, model::Feature::kWorkloadWithJob)}));
  all.push_back(make_ttl_after_finished_controller());
  all.push_back(make_cronjob_controller());
  all.push_back(make_disruption_controller());
  all.push_back(make_endpoints_controller());
  all.push_back(make_endpoint_slice_controller());
  all.push_back(make_endpoint_slice_mirroring_controller());
  all.push_back(make_resource_quota_controller());
  all.push_back(make_horizontal_pod_autoscaler_controller(options.horizontal_pod_autoscaler));
  all.push_back(make_volume_binder());
  all.push_back(make_attach_detach_controller());
  all.push_back(make_volume_expander());
  all.push_back(make_volume_protection_controller());
  all.push_back(make_attributes_class_protection_controller());
  all.push_back(make_pod_group_protection_controller());
  all.push_back(make_ephemeral_volume_controller());
  all.push_back(make_resource_claim_controller({.knows_groups = model::has(options.features, model::Feature::kDRAWorkloadResourceClaims)}));
  all.push_back(make_device_taint_eviction_controller());
  all.push_back(make_service_cidr_controller());
  all.push_back(make_ip_address_controller());
  if (options.simulated_machines) {
    all.push_back(make_machine_set_controller());
    all.push_back(make_simulated_machine_controller());
    all.push_back(make_machine_autoscaler_controller());
  }
  std::erase_if(all, [&](const ControllerPtr& controller) {
    return options.disabled.contains(controller->name()) ||
           (!options.enabled_only.empty() && !options.enabled_only.contains(controller->name()));
  });
  return all;
}

std::unique_ptr<ControllerManager> make_controller_manager(std::shared_ptr<client::Transport> transport, EventLoop& loop,
                                                           ManagerOptions options, metrics::Registry* metrics) {
  return std::make_unique<Manager>(std::move(transport), loop, std::move(options), metrics);
}

}  // namespace berth::controllers
