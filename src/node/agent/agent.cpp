#include "node/agent/agent.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <future>

#include "base/log.h"
#include "client/event_recorder.h"
#include "client/informer.h"
#include "net/server.h"
#include "node/agent/kubelet_server.h"
#include "node/agent/node_stats.h"
#include "node/eviction/manager.h"

namespace berth::node::agent {
namespace {

const model::Gvr kNodes{"", "v1", "nodes"};
const model::Gvr kPods{"", "v1", "pods"};
const model::Gvr kLeases{"coordination.k8s.io", "v1", "leases"};
constexpr Duration kMonitoringInterval = std::chrono::seconds(10);  // Document 000 §21.2.4; cannot be changed.
constexpr Duration kMemoryPoll = std::chrono::milliseconds(200);

Result<json::Value> to_result(model::ApiResult<json::Value> result) {
  if (result) return std::move(*result);
  return fail(result.error().code == 404 ? ErrorCode::kNotFound : ErrorCode::kUnavailable, result.error().message);
}

class AgentImpl final : public Agent {
 public:
  AgentImpl(client::Client& client, client::Client& blocking, AgentOptions options, std::unique_ptr<cri::Channel> runtime, Cgroups cgroups)
      : client_(client), blocking_(blocking), loop_(*client.loop()), options_(std::move(options)), runtime_(std::move(runtime)), cgroups_(std::move(cgroups)) {}

  ~AgentImpl() override {
    stopping_ = true;
    if (server_) server_->stop(500);
    for (std::thread* thread : {&relist_, &eviction_})
      if (thread->joinable()) thread->join();
    std::promise<void> done;
    loop_.post([this, &done] {
      pods_informer_.reset();
      recorder_.reset();
      for (const TimerId timer : {lease_timer_, status_timer_}) loop_.cancel(timer);
      alive_.reset();
      done.set_value();
    });
    done.get_future().wait();
    server_.reset();
    std::map<std::string, std::shared_ptr<Pod>> pods;
    {
      std::lock_guard lock(mutex_);
      pods.swap(pods_);
    }
  }

  Result<void> prepare() {
    if (const auto wrong = eviction::validate(options_.settings)) return invalid(*wrong);
    if (is_swap_on()) {
      if (options_.settings.fail_swap_on) return invalid("running with swap on is not supported, please disable swap or set --fail-swap-on=false");
      log::warning("node", "swap is on: memory pressure is seen late or not at all");
    }
    if (const auto version = runtime_->call("RuntimeService/Version", json::Object{}, 5000)) {
      runtime_version_ = fmt::format("{}://{}", json::get_string(*version, {"runtime_name"}), json::get_string(*version, {"runtime_version"}));
    } else {
      return fail(ErrorCode::kUnavailable, fmt::format("the container runtime does not answer at {}: {}; is it running?", options_.runtime.socket, version.error().message));
    }
    std::error_code error;
    std::filesystem::create_directories(options_.root + "/pods", error);
    if (error) return fail(ErrorCode::kInternal, fmt::format("{}: {}", options_.root, error.message()));
    paths_.node_fs = options_.root;
    paths_.image_fs = options_.runtime_root.empty() ? image_fs_path() : options_.runtime_root;
    paths_.node_cgroup = options_.node_cgroup;
    paths_.pods_cgroup = options_.node_cgroup + "/kubepods";
    if (!options_.node_cgroup.empty())
      if (const auto made = cgroups_.create(options_.node_cgroup, {}); !made) return made;
    machine_ = read_machine(cgroups_, paths_);
    eviction::ReservationSettings reservation;
    reservation.kube_reserved = options_.settings.kube_reserved;
    reservation.system_reserved = options_.settings.system_reserved;
    reservation.eviction_hard = options_.settings.eviction_hard.value_or(eviction::StatementMap{});
    reservation.local_storage_capacity_isolation = options_.settings.local_storage_capacity_isolation;
    reservation.max_pods = options_.settings.max_pods;
    reservation.pods_per_core = options_.settings.pods_per_core;
    auto resources = eviction::compute_node_resources(machine_, reservation);
    if (!resources) return invalid(resources.error());
    if (!resources->invalid.empty())
      return invalid(fmt::format("invalid Node Allocatable configuration: more of {} is reserved than the node has", fmt::join(resources->invalid, ", ")));
    resources_ = std::move(*resources);
    if (const auto made = make_cgroups(); !made) return made;
    eviction::ManagerConfig config;
    const eviction::EvictionSettings eviction = options_.settings.eviction();
    config.thresholds = *eviction::parse_thresholds(eviction);
    config.spare_places = eviction::thresholds_spare_places(eviction);
    config.max_pod_grace_period_seconds = options_.settings.eviction_max_pod_grace_period_seconds;
    config.pressure_transition_period_ns = options_.settings.eviction_pressure_transition_period_ns;
    config.local_storage_capacity_isolation = options_.settings.local_storage_capacity_isolation;
    manager_.emplace(std::move(config));
    const bool separate = is_separate_filesystem(paths_.node_fs, paths_.image_fs);
    if (const std::string warning = manager_->set_layout({separate, false}); !warning.empty()) log::warning("node", "eviction: {}", warning);
    return start_server();
  }

  void start() {
    environment_.emplace(PodEnvironment{*runtime_, cgroups_, clock_, options_.root, paths_.pods_cgroup, options_.node_name, options_.address, machine_.memory_bytes, {}, {}, {}, {}});
    environment_->objects.config_map = [this](const std::string& ns, const std::string& name) { return to_result(blocking_.get_and_wait({"", "v1", "configmaps"}, ns, name)); };
    environment_->objects.secret = [this](const std::string& ns, const std::string& name) { return to_result(blocking_.get_and_wait({"", "v1", "secrets"}, ns, name)); };
    environment_->tokens = [this](const std::string& ns, const std::string& account, const std::string& audience, std::int64_t seconds) { return request_token(ns, account, audience, seconds); };
    environment_->changed = [this](const std::string& uid) { post([this, uid] { push_status(uid); }); };
    environment_->event = [this](const json::Value& pod, const std::string& type, const std::string& reason, const std::string& message, const std::string& container) {
      client::ObjectReference about = client::reference_to(pod);
      about.api_version = "v1";
      about.kind = "Pod";
      if (!container.empty()) about.field_path = fmt::format("spec.containers{{{}}}", container);
      post([this, about, type, reason, message] { recorder_->event(about, type, reason, message); });
    };
    post([this] {
      recorder_ = std::make_unique<client::EventRecorder>(client_, client::EventRecorderOptions{.component = "kubelet", .host = options_.node_name});
      register_node();
    });
    relist_ = std::thread([this] { relist(); });
    eviction_ = std::thread([this] { watch_pressure(); });
  }

 private:
  /// A pod with what is known of its reports. The worker is shared with threads that look at all pods.
  struct Pod {
    std::shared_ptr<PodWorker> worker;
    json::Value reported;
    bool is_writing = false, is_deleting = false, is_stale = false;
  };

  /// Runs a task on the loop unless the agent is gone by then.
  void post(Task task) {
    loop_.post([weak = std::weak_ptr<int>(alive_), task = std::move(task)] {
      if (weak.lock()) task();
    });
  }

  std::string image_fs_path() {
    if (const auto info = runtime_->call("ImageService/ImageFsInfo", json::Object{}))
      for (const json::Value& fs : json::get_array(*info, {"image_filesystems"}))
        if (const std::string path(json::get_string(fs, {"fs_id", "mountpoint"})); !path.empty()) return path;
    return options_.root;
  }

  Result<void> make_cgroups() {
    CgroupLimits limits;
    const auto amount = [&](std::string_view name) {
      const auto found = resources_.cgroup.find(name);
      return found == resources_.cgroup.end() ? model::Quantity{} : found->second;
    };
    if (std::ranges::find(options_.settings.enforce_node_allocatable, "pods") != options_.settings.enforce_node_allocatable.end()) limits.memory_bytes = amount("memory").value();
    limits.cpu_shares = static_cast<std::uint64_t>(std::clamp<std::int64_t>(amount("cpu").milli_value() * 1024 / 1000, 2, 262144));
    if (const auto made = cgroups_.create(paths_.pods_cgroup, limits); !made) return made;
    if (const auto made = cgroups_.create(paths_.pods_cgroup + "/burstable", {}); !made) return made;
    return cgroups_.create(paths_.pods_cgroup + "/besteffort", {.cpu_shares = 2});
  }

  Result<void> start_server() {
    KubeletBackend backend{*runtime_, [this](const std::string& ns, const std::string& name) { return find_pod(ns, name); }, [this] { return pod_list(); },
                           [this] { return summary(); },
                           [this] { return resource_metrics(observe_machine(cgroups_, paths_, clock_.now()), measure_pods(*runtime_, cgroups_, workers(), false, clock_.now()), cgroups_, paths_); }};
    handler_ = make_kubelet_handler(std::move(backend));
    net::ServerConfig config;
    config.address = "0.0.0.0";
    config.port = options_.port;
    config.tls = net::TlsServerConfig{options_.certificate_pem, options_.private_key_pem, options_.client_ca_pem};
    auto server = net::Server::start(config, *handler_);
    if (!server) return std::unexpected(server.error());
    server_ = std::move(*server);
    return {};
  }

  std::optional<KubeletBackend::Pod> find_pod(const std::string& ns, const std::string& name) {
    std::lock_guard lock(mutex_);
    for (const auto& [uid, pod] : pods_) {
      const json::Value document = pod->worker->pod();
      if (json::get_string(document, {"metadata", "name"}) == name && json::get_string(document, {"metadata", "namespace"}) == ns)
        return KubeletBackend::Pod{read_pod_spec(document), pod->worker->state(), pod->worker->log_directory(), pod->worker->sandbox_id()};
    }
    return std::nullopt;
  }

  json::Value summary() {
    const TimePoint now = clock_.now();
    return summary_json(options_.node_name, observe_machine(cgroups_, paths_, now), measure_pods(*runtime_, cgroups_, workers(), true, now), cgroups_, paths_, cpu_rates_, now);
  }

  json::Value pod_list() {
    json::Array items;
    for (const auto& worker : workers()) {
      json::Value pod = worker->pod();
      pod.as_object()["status"] = worker->status();
      items.push_back(std::move(pod));
    }
    return json::Object{{"kind", "PodList"}, {"apiVersion", "v1"}, {"metadata", json::Object{}}, {"items", std::move(items)}};
  }

  std::vector<std::shared_ptr<PodWorker>> workers() {
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<PodWorker>> out;
    for (const auto& [uid, pod] : pods_) out.push_back(pod->worker);
    return out;
  }

  Result<std::string> request_token(const std::string& ns, const std::string& account, const std::string& audience, std::int64_t seconds) {
    json::Object spec{{"expirationSeconds", seconds}};
    if (!audience.empty()) spec["audiences"] = json::Array{json::Value(audience)};
    client::Call call{.verb = "create", .gvr = {"", "v1", "serviceaccounts"}, .ns = ns, .name = account, .subresource = "token"};
    call.body = json::serialize(json::Object{{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenRequest"}, {"spec", std::move(spec)}});
    const auto answer = to_result(blocking_.call_and_wait(std::move(call)));
    if (!answer) return std::unexpected(answer.error());
    return std::string(json::get_string(*answer, {"status", "token"}));
  }

  // ---- the node object (on the loop)

  json::Value node_status() {
    const TimePoint now = clock_.now();
    json::Array conditions;
    std::vector<eviction::NodeCondition> pressure;
    {
      std::lock_guard lock(mutex_);
      pressure = pressure_;
    }
    const auto add = [&](std::string_view type, bool is, std::string_view reason, std::string_view message) {
      auto& [status, transition] = conditions_[std::string(type)];
      const std::string text = is ? "True" : "False";
      if (status != text) status = text, transition = now;
      conditions.push_back(json::Object{{"type", type}, {"status", text}, {"reason", reason}, {"message", message}, {"lastHeartbeatTime", format_rfc3339(now)},
                                        {"lastTransitionTime", format_rfc3339(transition)}});
    };
    const auto under = [&](eviction::NodeCondition condition) { return std::ranges::find(pressure, condition) != pressure.end(); };
    const bool memory = under(eviction::NodeCondition::kMemoryPressure), disk = under(eviction::NodeCondition::kDiskPressure), pid = under(eviction::NodeCondition::kPidPressure);
    add("MemoryPressure", memory, memory ? "KubeletHasInsufficientMemory" : "KubeletHasSufficientMemory", memory ? "kubelet has insufficient memory available" : "kubelet has sufficient memory available");
    add("DiskPressure", disk, disk ? "KubeletHasDiskPressure" : "KubeletHasNoDiskPressure", disk ? "kubelet has disk pressure" : "kubelet has no disk pressure");
    add("PIDPressure", pid, pid ? "KubeletHasInsufficientPID" : "KubeletHasSufficientPID", pid ? "kubelet has insufficient PID available" : "kubelet has sufficient PID available");
    const bool ready = runtime_ok_;
    add("Ready", ready, ready ? "KubeletReady" : "KubeletNotReady", ready ? "kubelet is posting ready status" : "container runtime is down");
    const auto list = [](const eviction::ResourceList& resources) {
      json::Object out;
      for (const auto& [name, quantity] : resources) out[name] = quantity.to_string();
      return out;
    };
    json::Object status;
    status["capacity"] = list(resources_.capacity);
    status["allocatable"] = list(resources_.allocatable);
    status["conditions"] = std::move(conditions);
    status["addresses"] = json::Array{json::Object{{"type", "InternalIP"}, {"address", options_.address}}, json::Object{{"type", "Hostname"}, {"address", options_.node_name}}};
    status["daemonEndpoints"] = json::Object{{"kubeletEndpoint", json::Object{{"Port", server_->port()}}}};
    struct utsname name {};
    uname(&name);
    std::string machine_id = read_small_file("/etc/machine-id").value_or(""), boot_id = read_small_file("/proc/sys/kernel/random/boot_id").value_or("");
    while (machine_id.ends_with('\n')) machine_id.pop_back();
    while (boot_id.ends_with('\n')) boot_id.pop_back();
    status["nodeInfo"] = json::Object{{"machineID", machine_id}, {"systemUUID", machine_id}, {"bootID", boot_id}, {"kernelVersion", name.release}, {"osImage", "Linux"},
                                      {"containerRuntimeVersion", runtime_version_}, {"kubeletVersion", options_.kubelet_version}, {"kubeProxyVersion", options_.kubelet_version},
                                      {"operatingSystem", "linux"}, {"architecture", "amd64"}};
    return status;
  }

  void register_node() {
    json::Object labels{{"kubernetes.io/hostname", options_.node_name}, {"kubernetes.io/os", "linux"}, {"kubernetes.io/arch", "amd64"}, {"beta.kubernetes.io/os", "linux"}, {"beta.kubernetes.io/arch", "amd64"}};
    for (const auto& [key, value] : options_.labels) labels[key] = value;
    json::Object node{{"apiVersion", "v1"}, {"kind", "Node"}, {"metadata", json::Object{{"name", options_.node_name}, {"labels", std::move(labels)}}}, {"spec", json::Object{}}};
    client_.create(kNodes, "", json::Value(node), guarded([this](model::ApiResult<json::Value> result) {
                     if (!result && result.error().code != 409) {
                       log::warning("node", "registering: {}", result.error().message);
                       loop_.schedule_after(std::chrono::seconds(1), [weak = std::weak_ptr<int>(alive_), this] {
                         if (weak.lock()) register_node();
                       });
                       return;
                     }
                     report_status(true);
                     renew_lease();
                     watch_pods();
                   }));
  }

  client::Client::Done guarded(client::Client::Done done) {
    return [weak = std::weak_ptr<int>(alive_), done = std::move(done)](model::ApiResult<json::Value> result) {
      if (weak.lock()) done(std::move(result));
    };
  }

  /// Every 10 s when something changed, every 5 min in any case, at once when asked.
  void report_status(bool now) {
    json::Value status = node_status();
    json::Value plain = status;
    for (json::Value& condition : plain.as_object()["conditions"].as_array()) condition.as_object().erase("lastHeartbeatTime");
    if (now || !json::equal(plain, reported_status_) || clock_.now() - status_reported_ >= std::chrono::minutes(5)) {
      client_.patch(kNodes, "", options_.node_name, client::PatchType::kStrategicMerge, json::Object{{"status", std::move(status)}},
                    guarded([this, plain](model::ApiResult<json::Value> result) {
                      if (result) reported_status_ = plain;
                      else log::warning("node", "reporting status: {}", result.error().message);
                    }),
                    "status");
      status_reported_ = clock_.now();
    }
    loop_.cancel(status_timer_);
    status_timer_ = loop_.schedule_after(Duration(options_.settings.node_status_update_frequency_ns / 1000), [weak = std::weak_ptr<int>(alive_), this] {
      if (weak.lock()) report_status(false);
    });
  }

  void renew_lease() {
    const json::Object spec{{"holderIdentity", options_.node_name}, {"leaseDurationSeconds", options_.settings.node_lease_duration_seconds}, {"renewTime", format_rfc3339_micro(clock_.now())}};
    client_.patch(kLeases, "kube-node-lease", options_.node_name, client::PatchType::kMerge, json::Object{{"spec", spec}}, guarded([this, spec](model::ApiResult<json::Value> result) {
                    if (result || result.error().code != 404) return;
                    client_.create(kLeases, "kube-node-lease",
                                   json::Object{{"apiVersion", "coordination.k8s.io/v1"}, {"kind", "Lease"}, {"metadata", json::Object{{"name", options_.node_name}, {"namespace", "kube-node-lease"}}}, {"spec", spec}},
                                   [](model::ApiResult<json::Value>) {});
                  }));
    lease_timer_ = loop_.schedule_after(std::chrono::seconds(options_.settings.node_lease_duration_seconds) / 4, [weak = std::weak_ptr<int>(alive_), this] {
      if (weak.lock()) renew_lease();
    });
  }

  // ---- pods (on the loop)

  void watch_pods() {
    if (pods_informer_) return;
    pods_informer_ = std::make_unique<client::Informer>(client_, kPods, client::InformerOptions{.field_selector = "spec.nodeName=" + options_.node_name});
    pods_informer_->add_handler({.on_add = [this](const client::ObjectRef& object) { pod_seen(*object); },
                                 .on_update = [this](const client::ObjectRef& before, const client::ObjectRef& after) {
                                   if (before->uid() != after->uid()) pod_gone(before->uid());
                                   pod_seen(*after);
                                 },
                                 .on_delete = [this](const client::ObjectRef& object) { pod_gone(object->uid()); }});
    pods_informer_->on_synced([this] { pods_known_ = true; });
    pods_informer_->start();
  }

  void pod_seen(const client::Object& object) {
    json::Value document = object.document();
    std::shared_ptr<Pod> pod;
    bool is_new = false;
    {
      std::lock_guard lock(mutex_);
      auto& slot = pods_[object.uid()];
      if (!slot) {
        slot = std::make_shared<Pod>();
        slot->worker = std::make_shared<PodWorker>(*environment_, document);
        is_new = true;
      }
      pod = slot;
    }
    if (is_new) {
      if (json::get_string(document, {"status", "phase"}) == "Pending" || json::get_string(document, {"status", "phase"}).empty()) admit(*pod->worker, document);
    } else {
      pod->worker->update(document);
    }
    if (object.is_deleting()) {
      pod->is_deleting = true;
      pod->worker->terminate(std::chrono::seconds(std::clamp<std::int64_t>(json::get_int(document, {"metadata", "deletionGracePeriodSeconds"}, 30), 0, 1'000'000'000)));
      push_status(object.uid());
    }
  }

  void admit(PodWorker& worker, const json::Value& document) {
    const eviction::PodFacts facts = eviction::read_pod_facts(document);
    std::optional<std::string> refusal;
    {
      std::lock_guard lock(mutex_);
      refusal = manager_->refuse(facts);
    }
    if (refusal) worker.fail_pod(std::string(eviction::kEvictedReason), "Pod was rejected: " + *refusal, Duration::zero(), false);
  }

  /// The object is gone without us (forced deletion): its containers must go too.
  void pod_gone(const std::string& uid) {
    std::shared_ptr<Pod> pod;
    {
      std::lock_guard lock(mutex_);
      const auto found = pods_.find(uid);
      if (found == pods_.end()) return;
      pod = found->second;
      if (pod->worker->is_finished()) {
        graveyard_.push_back(pod);
        pods_.erase(found);
      }
    }
    if (!pod->worker->is_finished()) {
      pod->is_stale = true;
      pod->worker->terminate(Duration::zero());
    }
  }

  void push_status(const std::string& uid) {
    std::shared_ptr<Pod> pod;
    {
      std::lock_guard lock(mutex_);
      const auto found = pods_.find(uid);
      if (found == pods_.end()) return;
      pod = found->second;
    }
    if (pod->is_stale) {
      if (pod->worker->is_finished()) pod_gone(uid);
      return;
    }
    if (pod->is_writing) return;
    const json::Value document = pod->worker->pod();
    const std::string ns(json::get_string(document, {"metadata", "namespace"})), name(json::get_string(document, {"metadata", "name"}));
    json::Value status = pod->worker->status();
    const auto again = [this, uid, pod](bool ok, const json::Value& written) {
      pod->is_writing = false;
      if (ok) pod->reported = written;
      if (ok) return push_status(uid);
      loop_.schedule_after(std::chrono::seconds(1), [weak = std::weak_ptr<int>(alive_), this, uid] {
        if (weak.lock()) push_status(uid);
      });
    };
    if (!status.is_null() && !json::equal(status, pod->reported)) {
      pod->is_writing = true;
      client_.patch(kPods, ns, name, client::PatchType::kStrategicMerge, json::Object{{"metadata", json::Object{{"uid", uid}}}, {"status", status}},
                    guarded([again, status](model::ApiResult<json::Value> result) {
                      if (!result && result.error().code != 404 && result.error().code != 409) log::warning("node", "pod status: {}", result.error().message);
                      again(result || result.error().code == 404 || result.error().code == 409, status);
                    }),
                    "status");
    } else if (pod->is_deleting && pod->worker->is_finished()) {
      pod->is_writing = true;
      client_.remove(kPods, ns, name, {.grace_period_seconds = 0, .precondition_uid = uid}, guarded([again, status](model::ApiResult<json::Value> result) {
                       const bool gone = result || result.error().code == 404 || result.error().code == 409;
                       if (!gone) again(false, status);
                     }));
    }
  }

  // ---- the runtime (own thread)

  void relist() {
    std::map<std::string, std::string> before;
    while (!stopping_) {
      const auto sandboxes = runtime_->call("RuntimeService/ListPodSandbox", json::Object{}, 5000);
      const auto containers = runtime_->call("RuntimeService/ListContainers", json::Object{}, 5000);
      const bool ok = sandboxes && containers;
      if (ok != runtime_ok_.exchange(ok)) post([this] { report_status(true); });
      if (ok) {
        std::map<std::string, std::string> seen;
        const auto note = [&](const json::Value& entry) {
          seen[std::string(json::get_string(entry, {"labels", "io.kubernetes.pod.uid"}))] += fmt::format("{}{};", json::get_string(entry, {"id"}), json::get_string(entry, {"state"}));
        };
        for (const json::Value& entry : json::get_array(*sandboxes, {"items"})) note(entry);
        for (const json::Value& entry : json::get_array(*containers, {"containers"})) note(entry);
        for (const auto& worker : workers())
          if (seen[worker->uid()] != before[worker->uid()]) worker->wake();
        if (pods_known_) remove_orphans(*sandboxes);
        before = std::move(seen);
      }
      {
        std::vector<std::shared_ptr<Pod>> dead;
        std::lock_guard lock(mutex_);
        dead.swap(graveyard_);  // Their threads are joined here, off the loop.
      }
      for (int i = 0; i < 10 && !stopping_; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  /// Sandboxes of this node's pods that the API no longer has (deleted while the agent was away). Others' sandboxes are left alone.
  void remove_orphans(const json::Value& sandboxes) {
    for (const json::Value& sandbox : json::get_array(sandboxes, {"items"})) {
      const std::string uid(json::get_string(sandbox, {"labels", "io.kubernetes.pod.uid"}));
      {
        std::lock_guard lock(mutex_);
        if (uid.empty() || pods_.contains(uid)) continue;
      }
      if (!std::filesystem::exists(options_.root + "/pods/" + uid) && !std::filesystem::exists(fmt::format("{}/logs/{}_{}_{}", options_.root, json::get_string(sandbox, {"metadata", "namespace"}), json::get_string(sandbox, {"metadata", "name"}), uid))) continue;
      const json::Value id = json::Object{{"pod_sandbox_id", json::get_string(sandbox, {"id"})}};
      (void)runtime_->call("RuntimeService/StopPodSandbox", id, 60'000);
      (void)runtime_->call("RuntimeService/RemovePodSandbox", id, 60'000);
      (void)tear_down_volumes(options_.root + "/pods/" + uid);
      for (const char* qos : {"", "/burstable", "/besteffort"}) (void)cgroups_.remove(paths_.pods_cgroup + qos + "/pod" + uid);
      std::error_code error;
      std::filesystem::remove_all(fmt::format("{}/logs/{}_{}_{}", options_.root, json::get_string(sandbox, {"metadata", "namespace"}), json::get_string(sandbox, {"metadata", "name"}), uid), error);
    }
  }

  // ---- eviction (own thread)

  /// The amount of memory below which a pass must not wait for the interval.
  std::uint64_t memory_alarm_bytes() {
    std::uint64_t alarm = 0;
    for (const eviction::Threshold& threshold : manager_->thresholds())
      if (threshold.signal == eviction::Signal::kMemoryAvailable && threshold.has_operator && threshold.is_hard())
        alarm = std::max(alarm, static_cast<std::uint64_t>(std::max<std::int64_t>(0, threshold.value.of(model::Quantity::from_value(machine_.memory_bytes)).value())));
    return alarm;
  }

  void watch_pressure() {
    if (!manager_->has_work()) return;
    const std::uint64_t alarm = memory_alarm_bytes();
    TimePoint next = clock_.now();
    bool was_below = false;
    while (!stopping_) {
      const auto available = alarm > 0 ? memory_available(cgroups_, paths_) : std::nullopt;
      const bool below = available && *available < alarm;
      if (clock_.now() >= next || (below && !was_below)) {
        const bool evicted = pass();
        next = clock_.now() + (evicted ? Duration::zero() : kMonitoringInterval);
        was_below = below && !evicted;
      } else {
        was_below = below;
      }
      std::this_thread::sleep_for(kMemoryPoll);
    }
  }

  /// One pass of the eviction manager. True when a pod was evicted (and has stopped, or 30 s are over).
  bool pass() {
    std::vector<std::shared_ptr<PodWorker>> active;
    std::vector<eviction::PodFacts> facts;
    for (const auto& worker : workers()) {
      const auto phase = parse_phase(json::get_string(worker->status(), {"phase"}));
      if (worker->is_stopped() || phase == PodPhase::kFailed || phase == PodPhase::kSucceeded) continue;
      active.push_back(worker);
      facts.push_back(eviction::read_pod_facts(worker->pod()));
    }
    const TimePoint now = clock_.now();
    eviction::Summary summary;
    summary.node = observe_machine(cgroups_, paths_, now);
    std::vector<PodFigures> measured = measure_pods(*runtime_, cgroups_, active, true, now);
    (void)summary_json(options_.node_name, summary.node, measured, cgroups_, paths_, cpu_rates_, now);  // Keeps the rates going for who asks next.
    for (PodFigures& figures : measured) summary.pods.emplace(figures.uid, std::move(figures.usage));
    const eviction::Outcome* outcome;
    {
      std::lock_guard lock(mutex_);
      outcome = &manager_->begin(facts, summary, now);
    }
    set_conditions();
    if (outcome->attempt)
      node_event("Warning", "EvictionThresholdMet", fmt::format("Attempting to reclaim {}", eviction::to_string(*outcome->attempt)));
    if (!outcome->reclaim.empty()) {
      for (const eviction::Reclaim reclaim : outcome->reclaim) reclaim == eviction::Reclaim::kContainers ? remove_dead_containers() : remove_unused_images();
      const eviction::NodeUsage after = observe_machine(cgroups_, paths_, clock_.now());
      std::lock_guard lock(mutex_);
      outcome = &manager_->finish(&after);
    }
    for (const eviction::Eviction& eviction : outcome->evictions) {
      const auto& worker = active[eviction.pod];
      log::info("node", "evicting {}: {}", facts[eviction.pod].key(), eviction.message);
      environment_->event(worker->pod(), "Warning", std::string(eviction::kEvictedReason), eviction.message, "");
      worker->fail_pod(std::string(eviction::kEvictedReason), eviction.message, std::chrono::seconds(eviction.grace_period_seconds), eviction.is_disruption);
    }
    for (const eviction::Eviction& eviction : outcome->evictions)
      for (int i = 0; i < 300 && !stopping_ && !active[eviction.pod]->is_stopped(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return !outcome->evictions.empty();
  }

  void set_conditions() {
    std::lock_guard lock(mutex_);
    if (pressure_ == manager_->conditions()) return;
    pressure_ = manager_->conditions();
    post([this] { report_status(true); });
  }

  void node_event(std::string type, std::string reason, std::string message) {
    post([this, type, reason, message] { recorder_->event({.api_version = "v1", .kind = "Node", .name = options_.node_name, .uid = options_.node_name}, type, reason, message); });
  }

  void remove_dead_containers() {
    const auto containers = runtime_->call("RuntimeService/ListContainers", json::Object{{"filter", json::Object{{"state", json::Object{{"state", "CONTAINER_EXITED"}}}}}});
    if (!containers) return;
    for (const json::Value& container : json::get_array(*containers, {"containers"}))
      if (!json::get_string(container, {"labels", "io.kubernetes.pod.uid"}).empty())
        (void)runtime_->call("RuntimeService/RemoveContainer", json::Object{{"container_id", json::get_string(container, {"id"})}});
  }

  void remove_unused_images() {
    const auto images = runtime_->call("ImageService/ListImages", json::Object{});
    const auto containers = runtime_->call("RuntimeService/ListContainers", json::Object{});
    if (!images || !containers) return;
    std::set<std::string> used;
    for (const json::Value& container : json::get_array(*containers, {"containers"})) {
      used.emplace(json::get_string(container, {"image_ref"}));
      used.emplace(json::get_string(container, {"image", "image"}));
    }
    for (const json::Value& image : json::get_array(*images, {"images"})) {
      bool needed = used.contains(std::string(json::get_string(image, {"id"}))) || json::get_bool(image, {"pinned"});
      for (const json::Value& tag : json::get_array(image, {"repo_tags"})) needed = needed || used.contains(std::string(json::as_view(tag))) || json::as_view(tag).find("pause") != std::string_view::npos;
      if (!needed) (void)runtime_->call("ImageService/RemoveImage", json::Object{{"image", json::Object{{"image", json::get_string(image, {"id"})}}}});
    }
  }

  client::Client& client_;
  client::Client& blocking_;
  EventLoop& loop_;
  AgentOptions options_;
  std::unique_ptr<cri::Channel> runtime_;
  Cgroups cgroups_;
  SystemClock clock_;
  MachinePaths paths_;
  eviction::Machine machine_;
  eviction::NodeResources resources_;
  std::string runtime_version_;
  std::optional<PodEnvironment> environment_;
  std::unique_ptr<net::Handler> handler_;
  std::unique_ptr<net::Server> server_;
  std::shared_ptr<int> alive_ = std::make_shared<int>(0);
  std::atomic<bool> stopping_{false}, runtime_ok_{true}, pods_known_{false};

  // On the loop:
  std::unique_ptr<client::Informer> pods_informer_;
  std::unique_ptr<client::EventRecorder> recorder_;
  std::map<std::string, std::pair<std::string, TimePoint>> conditions_;
  json::Value reported_status_;
  TimePoint status_reported_{};
  TimerId lease_timer_ = TimerId::kNone, status_timer_ = TimerId::kNone;

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Pod>> pods_;
  std::vector<std::shared_ptr<Pod>> graveyard_;
  std::optional<eviction::EvictionManager> manager_;
  std::vector<eviction::NodeCondition> pressure_;
  CpuRates cpu_rates_;
  std::thread relist_, eviction_;
};

}  // namespace

Result<std::unique_ptr<Agent>> Agent::start(client::Client& client, client::Client& blocking, AgentOptions options) {
  if (geteuid() != 0) return fail(ErrorCode::kUnavailable, "the node agent must run as root: it makes cgroups and mounts");
  auto cgroups = Cgroups::detect();
  if (!cgroups) return std::unexpected(cgroups.error());
  auto runtime = cri::Channel::open(options.runtime);
  if (!runtime) return std::unexpected(runtime.error());
  auto agent = std::make_unique<AgentImpl>(client, blocking, std::move(options), std::move(*runtime), std::move(*cgroups));
  if (const auto ready = agent->prepare(); !ready) return std::unexpected(ready.error());
  agent->start();
  return agent;
}

}  // namespace berth::node::agent
