#include "node/agent/agent.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "base/lifeline.h"
#include "base/log.h"
#include "client/event_recorder.h"
#include "net/server.h"
#include "node/agent/api_lookups.h"
#include "node/agent/container_metrics.h"
#include "node/agent/garbage_collector.h"
#include "node/agent/image_volumes.h"
#include "node/agent/images.h"
#include "node/agent/leftovers.h"
#include "node/agent/node_drivers.h"
#include "node/agent/node_metrics.h"
#include "node/agent/node_pods.h"
#include "node/agent/node_reporter.h"
#include "node/agent/oom_watch.h"
#include "node/agent/pressure.h"
#include "node/agent/runtime_monitor.h"
#include "node/csi/csi_volumes.h"
#include "node/devices/device_plugins.h"
#include "node/eviction/policies.h"
#include "node/sysctls.h"

namespace berth::node::agent {
namespace {

constexpr Duration kManifestPeriod = std::chrono::seconds(1);
constexpr int kFullManifestRead = 5;  // Looks between readings without a visible change.
constexpr int kServerGraceMs = 500;

Result<json::Value> to_result(model::ApiResult<json::Value> result) {
  if (result) return std::move(*result);
  const int code = result.error().code;
  return fail(code == 404 ? ErrorCode::kNotFound : code == 409 ? ErrorCode::kConflict : ErrorCode::kUnavailable, result.error().message);
}

class AgentImpl final : public Agent {
 public:
  AgentImpl(client::Client& client, client::Client& blocking, AgentOptions options, std::unique_ptr<cri::Channel> runtime, Cgroups cgroups)
      : client_(client),
        blocking_(blocking),
        loop_(*client.loop()),
        options_(std::move(options)),
        runtime_(measured(std::move(runtime), metrics_)),
        cgroups_(std::move(cgroups)) {}

  Result<void> show_certificate(const std::string& certificate_pem, const std::string& private_key_pem) override {
    return server_->set_tls(tls_with(certificate_pem, private_key_pem));
  }

  /// In order: no new requests, no threads that look at pods, nothing on the loop, then the workers.
  ~AgentImpl() override {
    if (server_) server_->stop(kServerGraceMs);
    if (handler_) handler_->finish();
    drivers_.stop_watching();
    monitor_.reset();
    oom_watch_.reset();
    pressure_.reset();
    collector_.reset();
    std::promise<void> done;
    loop_.post([this, &done] {
      if (pods_) pods_->stop();
      reporter_.reset();
      drivers_.stop_publishing();
      node_informer_.reset();
      recorder_.reset();
      loop_.cancel(manifest_timer_);
      lifeline_.end();
      done.set_value();
    });
    done.get_future().wait();
    server_.reset();
    pods_.reset();
    if (environment_) environment_->tasks.wait();
    drivers_.stop_csi();
    // Of a node without containers nothing stays; groups with processes in them cannot be removed, and are there for the next agent.
    if (const std::string marker = options_.root + "/" + kCgroupMarker; std::filesystem::exists(marker))
      if (cgroups_.remove(paths_.pods_cgroup)) std::filesystem::remove(marker);
  }

  Result<void> prepare() {
    if (const auto checked = check_settings(); !checked) return checked;
    if (auto snapshots = cri::Snapshots::open(options_.runtime.socket))
      image_volumes_ = std::make_unique<ImageVolumes>(*runtime_, std::move(*snapshots));
    if (const auto version = runtime_->call("RuntimeService/Version", json::Object{}, 5000)) {
      runtime_name_ = json::get_string(*version, {"runtime_name"});
      runtime_version_ = fmt::format("{}://{}", runtime_name_, plain_version(json::get_string(*version, {"runtime_version"})));
    } else {
      return fail(ErrorCode::kUnavailable, fmt::format("the container runtime does not answer at {}: {}; is it running?",
                                                       options_.runtime.socket, version.error().message));
    }
    std::error_code error;
    std::filesystem::create_directories(options_.root + "/pods", error);
    if (error) return fail(ErrorCode::kInternal, fmt::format("{}: {}", options_.root, error.message()));
    // Mount points are known by their real names.
    options_.root = std::filesystem::canonical(options_.root, error);
    paths_.node_fs = options_.root;
    find_image_filesystems();
    paths_.node_cgroup = options_.node_cgroup;
    paths_.pods_cgroup = options_.node_cgroup + "/kubepods";
    if (!options_.node_cgroup.empty())
      if (const auto made = cgroups_.create(options_.node_cgroup, {}); !made) return made;
    machine_ = read_machine(cgroups_, paths_);
    if (const auto computed = compute_resources(); !computed) return computed;
    if (const auto made = make_cgroups(); !made) return made;
    lower_own_oom_score();
    if (const auto managed = drivers_.manage_numa(options_.settings, resources_, options_.root, [this] { show_devices(""); }); !managed)
      return managed;
    drivers_.take_device_plugins(options_.device_plugins, options_.root + "/devices.json", [this] {
      report_soon();
      show_devices("");
    });
    if (!options_.plugins_registry.empty())
      drivers_.take_claim_drivers(blocking_, options_.node_name, options_.root + "/claims.json",
                                  [this](const std::string& uid) { show_devices(uid); });
    make_environment();
    serve_csi();
    pods_.emplace(client_, *environment_, [this](const json::Value& pod, const std::vector<json::Value>& active, const json::Value* node) {
      return refuse(pod, active, node);
    });
    make_pressure_manager();
    return start_server();
  }

  void start() {
    std::promise<void> ready;
    post([this, &ready] {
      recorder_ = std::make_unique<client::EventRecorder>(client_,
                                                          client::EventRecorderOptions{.component = "kubelet", .host = options_.node_name});
      NodeReporterOptions reporting{.node_name = options_.node_name, .labels = options_.labels, .taints = options_.taints};
      reporting.take(options_.settings);
      reporter_ = std::make_unique<NodeReporter>(
          client_, clock_, std::move(reporting), [this] { return node_facts(); }, [this] { registered(); },
          [this](const std::string& type, const std::string& reason, const std::string& message) { node_event(type, reason, message); });
      drivers_.publish_topology(client_, options_.node_name);
      watch_own_node();
      read_manifests();
      reporter_->start();
      ready.set_value();
    });
    ready.get_future().wait();
    MonitorEnvironment monitored{*runtime_,
                                 image_volumes_.get(),
                                 drivers_.csi(),
                                 cgroups_,
                                 *pods_,
                                 options_.root,
                                 paths_.pods_cgroup,
                                 model::Quantity::parse(options_.settings.container_log_max_size)->value(),
                                 options_.settings.container_log_max_files,
                                 clock_,
                                 {}};
    monitored.health_changed = [this](std::vector<std::string> troubles) {
      post([this, troubles = std::move(troubles)] {
        troubles_ = troubles;
        reporter_->report_now();
      });
    };
    monitor_.emplace(std::move(monitored));
    monitor_->start();
    drivers_.watch(options_.plugins_registry, *pods_);
    drivers_.tell_of_pods(options_.pod_resources, *pods_);
    collector_->start();
    pressure_->start();
    OomWatch::Options watching;
    watching.node_cgroup = options_.node_cgroup;
    watching.system_oom = [this](const OomKill& kill) { node_event("Warning", "SystemOOM", system_oom_message(kill)); };
    oom_watch_.emplace(cgroups_, std::move(watching));
  }

 private:
  // ---- what the node is made of

  Result<void> check_settings() {
    if (const auto wrong = eviction::validate(options_.settings)) return invalid(*wrong);
    for (const std::string& warning : options_.settings.warnings) log::warning("node", "{}", warning);
    if (options_.settings.swap_behavior == "LimitedSwap" && !cgroups_.is_v2())
      log::warning("node", "memorySwap.swapBehavior LimitedSwap needs cgroup version 2: containers get no swap");
    if (!is_swap_on()) return {};
    if (options_.settings.fail_swap_on)
      return invalid("running with swap on is not supported, please disable swap or set --fail-swap-on flag to false");
    log::warning("node", "swap is on: memory pressure is seen late or not at all");
    return {};
  }

  Result<void> compute_resources() {
    auto resources = eviction::compute_node_resources(machine_, eviction::reservation_settings(options_.settings));
    if (!resources) return invalid(resources.error());
    if (!resources->invalid.empty())
      return invalid(fmt::format("invalid Node Allocatable configuration: more of {} is reserved than the node has",
                                 fmt::join(resources->invalid, ", ")));
    resources_ = std::move(*resources);
    return {};
  }

  /// Where the runtime keeps images, and, if elsewhere, writable layers.
  void find_image_filesystems() {
    paths_.image_fs = options_.runtime_root.empty() ? options_.root : options_.runtime_root;
    if (!options_.runtime_root.empty()) return;
    const auto info = runtime_->call("ImageService/ImageFsInfo", json::Object{});
    if (!info) return;
    const auto first = [&](std::string_view list) {
      const json::Array& found = json::get_array(*info, {list});
      return found.empty() ? std::string() : std::string(json::get_string(found[0], {"fs_id", "mountpoint"}));
    };
    if (const std::string images = first("image_filesystems"); !images.empty()) paths_.image_fs = images;
    if (const std::string containers = first("container_filesystems");
        !containers.empty() && is_separate_filesystem(containers, paths_.image_fs))
      paths_.container_fs = containers;
  }

  /// The kubelet's own score. What the kernel refuses here it refuses containers as well: that is said once, not for each of them.
  static void lower_own_oom_score() {
    if (write_control_file("/proc/self/oom_score_adj", "-999")) return;
    log::warning("node",
                 "the kernel allows no lower OOM scores here (CAP_SYS_RESOURCE is missing): the runtime raises those of Guaranteed "
                 "containers (-998) to its own ({})",
                 first_line("/proc/self/oom_score_adj"));
  }

  Result<void> make_cgroups() {
    CgroupLimits limits;
    const auto amount = [&](std::string_view name) {
      const auto found = resources_.cgroup.find(name);
      return found == resources_.cgroup.end() ? model::Quantity{} : found->second;
    };
    if (std::ranges::find(options_.settings.enforce_node_allocatable, "pods") != options_.settings.enforce_node_allocatable.end())
      limits.memory_bytes = amount("memory").value();
    if (!cgroups_.exists(paths_.pods_cgroup)) std::ofstream(options_.root + "/" + kCgroupMarker) << paths_.pods_cgroup;
    limits.cpu_shares = static_cast<std::uint64_t>(std::clamp<std::int64_t>(amount("cpu").milli_value() * 1024 / 1000, 2, 262144));
    if (const auto made = cgroups_.create(paths_.pods_cgroup, limits); !made) return made;
    if (const auto made = cgroups_.create(paths_.pods_cgroup + "/burstable", {}); !made) return made;
    return cgroups_.create(paths_.pods_cgroup + "/besteffort", {.cpu_shares = 2});
  }

  /// Of one pod, or where it is empty of any. Pods' statuses tell of their devices.
  void show_devices(const std::string& uid) {
    post([this, uid] {
      for (const auto& worker : pods_->workers())
        if (uid.empty() || worker->uid() == uid) worker->show_devices();
    });
  }

  void make_environment() {
    environment_.emplace(*runtime_, cgroups_, clock_);
    environment_->root = options_.root;
    environment_->pods_cgroup = paths_.pods_cgroup;
    environment_->node_name = options_.node_name;
    environment_->host_ip = options_.address;
    environment_->runtime_name = runtime_name_;
    environment_->image_volumes = image_volumes_.get();
    environment_->tracer = options_.tracer;
    environment_->metrics = &metrics_;
    environment_->node_memory_bytes = machine_.memory_bytes;
    environment_->allocatable = resources_.allocatable;
    environment_->swap.is_counted = cgroups_.counts_swap(paths_.pods_cgroup);
    if (options_.settings.swap_behavior == "LimitedSwap" && cgroups_.is_v2() && environment_->swap.is_counted)
      environment_->swap.capacity_bytes = swap_space().capacity_bytes;
    if (options_.settings.pod_pids_limit > 0) environment_->pids_limit = options_.settings.pod_pids_limit;
    environment_->max_restart_backoff = Duration(options_.settings.max_restart_backoff_ns / 1000);
    environment_->host_dns = parse_resolv_conf(read_small_file("/etc/resolv.conf").value_or(""));
    environment_->cluster_dns = options_.settings.cluster_dns;
    if (!options_.settings.cluster_domain.empty()) environment_->cluster_domain = options_.settings.cluster_domain;
    const auto lookup = [this](model::Gvr gvr) {
      return [this, gvr](const std::string& ns, const std::string& name) { return to_result(blocking_.get_and_wait(gvr, ns, name)); };
    };
    environment_->objects.config_map = lookup({"", "v1", "configmaps"});
    environment_->objects.secret = lookup({"", "v1", "secrets"});
    environment_->objects.claim = lookup({"", "v1", "persistentvolumeclaims"});
    environment_->objects.resource_claim = lookup({"resource.k8s.io", "v1", "resourceclaims"});
    environment_->objects.persistent_volume = [this](const std::string& name) {
      return to_result(blocking_.get_and_wait({"", "v1", "persistentvolumes"}, "", name));
    };
    environment_->objects.services = [this](const std::string& ns, bool with_namespace) {
      return services_for_variables(blocking_, ns, with_namespace);
    };
    environment_->refuse_resize = [this](const json::Value& pod) { return refuse_resize(pod); };
    environment_->tokens = [this](const TokenRequest& request) { return request_token(blocking_, clock_, request); };
    environment_->changed = [this](const std::string& uid) { post([this, uid] { pods_->push_status(uid); }); };
    environment_->event = [this](const json::Value& pod, const std::string& type, const std::string& reason, const std::string& message,
                                 const std::string& field_path) {
      client::ObjectReference about = client::reference_to(pod);
      about.api_version = "v1";
      about.kind = "Pod";
      about.field_path = field_path;
      post([this, about, type, reason, message] { recorder_->event(about, type, reason, message); });
    };
    drivers_.give_to(*environment_);
    environment_->node_uid = [this] { return reporter_ ? reporter_->uid() : std::string(); };
  }

  void serve_csi() {
    csi::CsiOptions options{.root = options_.root, .node = options_.node_name};
    options.api = [this](client::Call call) { return to_result(blocking_.call_and_wait(std::move(call))); };
    options.tokens = environment_->tokens;
    options.changed = [this](const std::string& uid) {
      post([this, uid] {
        if (const auto worker = pods_->worker(uid)) worker->wake();
      });
    };
    options.in_use_changed = [this] { report_soon(); };
    options.event = [this](const json::Value& pod, const std::string& type, const std::string& reason, const std::string& message) {
      environment_->event(pod, type, reason, message, "");
    };
    drivers_.serve_csi(std::move(options));
    environment_->csi = drivers_.csi();
  }

  void make_pressure_manager() {
    eviction::EvictionManager manager(*eviction::manager_config(options_.settings));
    const bool separate = is_separate_filesystem(paths_.node_fs, paths_.image_fs),
               split = !paths_.container_fs.empty() && is_separate_filesystem(paths_.container_fs, paths_.image_fs);
    if (const std::string warning = manager.set_layout({separate, split}); !warning.empty()) log::warning("node", "eviction: {}", warning);
    make_collector();
    PressureEnvironment environment{*runtime_, cgroups_, clock_, paths_, machine_, cpu_rates_, *collector_, {}, {}, {}, {}, {}};
    environment.workers = [this] { return pods_->workers(); };
    environment.conditions_changed = [this] { report_soon(); };
    environment.node_event = [this](const std::string& type, const std::string& reason, const std::string& message) {
      node_event(type, reason, message);
    };
    environment.evicted = [this](const std::string& signal) { metrics_.evicted(signal); };
    environment.pod_event = [this](const json::Value& pod, const std::string& type, const std::string& reason, const std::string& message) {
      environment_->event(pod, type, reason, message, "");
    };
    pressure_.emplace(std::move(environment), std::move(manager));
  }

  void make_collector() {
    CollectorEnvironment environment{*runtime_, clock_, paths_.image_fs, {}, {}, {}, {}};
    environment.is_synced = [this] { return pods_->is_synced(); };
    environment.pod = [this](const std::string& uid) {
      const std::shared_ptr<PodWorker> worker = pods_->worker(uid);
      if (!worker) return eviction::PodExistence::kGone;
      const auto phase = parse_phase(json::get_string(worker->status(), {"phase"}));
      const bool over = worker->is_stopped() && (phase == PodPhase::kFailed || phase == PodPhase::kSucceeded);
      return over ? eviction::PodExistence::kTerminated : eviction::PodExistence::kLive;
    };
    environment.node_event = [this](const std::string& type, const std::string& reason, const std::string& message) {
      node_event(type, reason, message);
    };
    environment.volume_images = [this] {
      std::vector<std::string> out;
      for (const auto& worker : pods_->workers())
        if (!worker->is_stopped())
          for (const json::Value& volume : json::get_array(worker->pod(), {"spec", "volumes"}))
            if (json::find(volume, "image")) out.push_back(canonical_image(json::get_string(volume, {"image", "reference"})));
      return out;
    };
    collector_.emplace(std::move(environment), eviction::container_gc_policy(options_.settings),
                       eviction::image_gc_policy(options_.settings));
  }

  void node_event(const std::string& type, const std::string& reason, const std::string& message) {
    post([this, type, reason, message] {
      recorder_->event({.api_version = "v1", .kind = "Node", .name = options_.node_name, .uid = options_.node_name}, type, reason, message);
    });
  }

  Result<void> start_server() {
    access_.emplace(blocking_, clock_, options_.node_name);
    KubeletBackend backend{.runtime = *runtime_};
    backend.refuse = [this](const net::HttpRequest& request) { return access_->check(request); };
    backend.find_pod = [this](const std::string& ns, const std::string& name) { return pods_->find_pod(ns, name); };
    backend.pods = [this] { return pods_->pod_list(); };
    backend.summary = [this] { return summary(); };
    backend.metrics = [this] {
      const auto workers = pods_->workers();
      std::vector<eviction::VolumeUsage> volumes;
      for (const auto& worker : workers) std::ranges::move(drivers_.volume_usage(worker->uid()), std::back_inserter(volumes));
      return kubelet_metrics(options_.node_name, workers) + metrics_.expose() + volume_metrics(volumes);
    };
    backend.probe_metrics = [this] { return metrics_.expose_probes(); };
    backend.configuration = [this] { return json::Value(eviction::kubelet_configuration(options_.settings)); };
    backend.counts = &metrics_;
    backend.checkpoints = options_.root + "/checkpoints";
    backend.resource_metrics = [this] {
      const TimePoint now = clock_.now();
      return resource_metrics(observe_machine(cgroups_, paths_, now), measure_pods(*runtime_, cgroups_, pods_->workers(), false, now),
                              cgroups_, paths_, now);
    };
    backend.cadvisor_metrics = [this] {
      const TimePoint now = clock_.now();
      return cadvisor_metrics(machine_, measure_pods(*runtime_, cgroups_, pods_->workers(), false, now), cgroups_, paths_, now);
    };
    handler_ = make_kubelet_handler(std::move(backend));
    net::ServerConfig config;
    config.address = "0.0.0.0";
    config.port = options_.port;
    config.tls = tls_with(options_.certificate_pem, options_.private_key_pem);
    auto server = net::Server::start(config, *handler_);
    if (!server) return std::unexpected(server.error());
    server_ = std::move(*server);
    return {};
  }

  [[nodiscard]] net::TlsServerConfig tls_with(const std::string& certificate_pem, const std::string& private_key_pem) const {
    return net::TlsServerConfig{certificate_pem, private_key_pem, options_.client_ca_pem};
  }

  // ---- at work

  /// Runs a task on the loop unless the agent is gone by then.
  void post(Task task) { loop_.post(lifeline_.guard(std::move(task))); }

  void report_soon() {
    post([this] {
      if (reporter_) reporter_->report_now();
    });
  }

  void registered() {
    pods_->start();
    if (auto* volumes = drivers_.csi())
      environment_->tasks.run([volumes] {
        if (const auto made = volumes->ensure_csi_node(); !made) log::warning("node", "CSINode: {}", made.error().message);
      });
    node_event("Normal", "Starting", "Starting kubelet.");
    if (!cgroups_.is_v2())
      node_event(
          "Warning", "CgroupV1",
          "cgroup v1 detected. cgroup v1 support is deprecated and will be removed in a future release. Please migrate to cgroup v2. "
          "More information at https://git.k8s.io/enhancements/keps/sig-node/5573-remove-cgroup-v1");
    const auto& enforced = options_.settings.enforce_node_allocatable;
    if (std::ranges::find(enforced, "pods") != enforced.end())
      node_event("Normal", "NodeAllocatableEnforced", "Updated Node Allocatable limit across pods");
  }

  /// Labels and taints that others give the node decide which pods it takes.
  void watch_own_node() {
    node_informer_ = std::make_unique<client::Informer>(client_, model::Gvr{"", "v1", "nodes"},
                                                        client::InformerOptions{.field_selector = "metadata.name=" + options_.node_name});
    node_informer_->start();
  }

  json::Value summary() {
    const TimePoint now = clock_.now();
    MachinePaths paths = paths_;
    paths.runtime_pid = pid_behind(options_.runtime.socket);  // It may have been started anew.
    auto pods = measure_pods(*runtime_, cgroups_, pods_->workers(), true, now);
    for (PodFigures& pod : pods) std::ranges::move(drivers_.volume_usage(pod.uid), std::back_inserter(pod.usage.volumes));
    return summary_json(options_.node_name, observe_machine(cgroups_, paths, now), pods, cgroups_, paths, cpu_rates_, now);
  }

  NodeFacts node_facts() {
    NodeFacts facts;
    facts.address = options_.address;
    facts.hostname = options_.node_name;
    facts.port = server_->port();
    facts.capacity = resources_.capacity;
    facts.allocatable = resources_.allocatable;
    if (auto* plugins = drivers_.devices()) {
      const auto inventory = plugins->inventory();
      for (const auto& [name, count] : inventory.capacity) facts.capacity[name] = *model::Quantity::parse(std::to_string(count));
      for (const auto& [name, count] : inventory.allocatable) facts.allocatable[name] = *model::Quantity::parse(std::to_string(count));
    }
    if (const auto* volumes = drivers_.csi()) facts.volumes_in_use = volumes->in_use();
    facts.pressure = pressure_->conditions();
    facts.not_ready = troubles_;
    facts.machine = read_machine_identity();
    facts.swap_bytes = swap_space().capacity_bytes;
    facts.runtime_version = runtime_version_;
    facts.kubelet_version = options_.kubelet_version;
    facts.images = images();
    tell_topology();
    return facts;
  }

  /// As last told. Asked at most once a minute: images change seldom, and the list is long. A runtime may take its time to answer; the
  /// loop, which renews the node's lease, does not wait for it.
  json::Array images() {
    if (clock_.now() - images_listed_ < std::chrono::minutes(1)) return images_;
    images_listed_ = clock_.now();
    environment_->tasks.run([this] {
      const auto listed = runtime_->call("ImageService/ListImages", json::Object{});
      if (!listed) return;
      post([this, found = node_images(*listed)]() mutable {
        if (json::equal(json::Value(found), json::Value(images_))) return;
        images_ = std::move(found);
        reporter_->report_now();
      });
    });
    return images_;
  }

  std::optional<Refusal> refuse(const json::Value& pod, const std::vector<json::Value>& active, const json::Value* read) {
    if (const auto refusal = pressure_->refuse(eviction::read_pod_facts(pod)))
      return Refusal{std::string(eviction::kEvictedReason), *refusal};
    if (auto refusal = refuse_sysctls(pod, options_.settings.allowed_unsafe_sysctls)) return refusal;
    AdmissionNode node{options_.node_name, resources_.allocatable, {}, {}};
    if (auto* plugins = drivers_.devices())
      for (const auto& [name, count] : plugins->inventory().allocatable)
        node.allocatable[name] = *model::Quantity::parse(std::to_string(count));
    const json::Value own = json::Value(node_labels(options_.node_name, options_.labels));
    node.labels = model::Labels::from_json(&own);
    const client::ObjectRef known = node_informer_ ? node_informer_->get("", options_.node_name) : nullptr;
    const auto take = [&](const json::Value& document) {
      node.labels = model::Labels::from_json(json::find(document, {"metadata", "labels"}));
      for (const json::Value& taint : json::get_array(document, {"spec", "taints"})) node.taints.push_back(model::parse_taint(taint));
    };
    if (read != nullptr && read->is_object())
      take(*read);
    else if (known)
      take(known->document());
    if (auto refusal = refuse_pod(node, pod, active)) return refusal;
    post([this] { tell_topology(); });
    return drivers_.refuse(pod, active);
  }
  void tell_topology() { drivers_.tell_topology(*pods_, reporter_ ? reporter_->uid() : ""); }

  /// The kubelet has one reason for all that may fit later, and nothing here can never fit.
  std::optional<Refusal> refuse_resize(const json::Value& pod) {
    const std::string_view uid = json::get_string(pod, {"metadata", "uid"});
    std::vector<PodDemand> others;
    for (const auto& worker : pods_->workers())
      if (worker->uid() != uid && !worker->is_over()) others.push_back(PodDemand::of(worker->granted()));
    std::vector<const PodDemand*> active;
    for (const PodDemand& other : others) active.push_back(&other);
    return refuse_resources({options_.node_name, resources_.allocatable, {}, {}}, PodDemand::of(pod), active);
  }

  /// Looks at the manifests once a second, and reads them when a name, time or size differs.
  void read_manifests() {
    const std::string& path = options_.settings.static_pod_path;
    if (path.empty()) return;
    const std::string look = manifest_signature(path);
    // A changed pod starts when the one before it has gone: then once more.
    if (look != manifests_seen_ || ++manifest_looks_ % kFullManifestRead == 0) {
      std::vector<std::string> problems;
      pods_->set_static_pods(read_static_pods(path, options_.node_name, clock_.now(), problems));
      if (problems != manifest_problems_)
        for (const std::string& problem : problems) log::warning("node", "static pod: {}", problem);
      manifest_problems_ = std::move(problems);
      manifests_seen_ = look;
    }
    manifest_timer_ = loop_.schedule_after(kManifestPeriod, lifeline_.guard([this] { read_manifests(); }));
  }

  client::Client& client_;
  client::Client& blocking_;
  EventLoop& loop_;
  AgentOptions options_;
  NodeMetrics metrics_;
  std::unique_ptr<cri::Channel> runtime_;
  std::unique_ptr<ImageVolumes> image_volumes_;
  Cgroups cgroups_;
  SystemClock clock_;
  MachinePaths paths_;
  eviction::Machine machine_;
  eviction::NodeResources resources_;
  std::string runtime_name_, runtime_version_;
  CpuRates cpu_rates_;
  NodeDrivers drivers_{clock_};
  std::optional<PodEnvironment> environment_;
  std::optional<NodePods> pods_;
  std::optional<GarbageCollector> collector_;
  std::optional<PressureManager> pressure_;
  std::optional<OomWatch> oom_watch_;
  std::optional<RuntimeMonitor> monitor_;
  std::optional<EndpointAccess> access_;
  std::unique_ptr<KubeletHandler> handler_;
  std::unique_ptr<net::Server> server_;
  Lifeline lifeline_;  ///< Ends on the loop.

  // On the loop:
  std::unique_ptr<NodeReporter> reporter_;
  std::unique_ptr<client::Informer> node_informer_;
  std::unique_ptr<client::EventRecorder> recorder_;
  TimerId manifest_timer_ = TimerId::kNone;
  std::vector<std::string> troubles_;  ///< Of the runtime.
  std::vector<std::string> manifest_problems_;
  std::string manifests_seen_;
  int manifest_looks_ = 0;
  json::Array images_;
  TimePoint images_listed_{};
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
