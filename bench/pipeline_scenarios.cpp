// The request pipeline alone: what one request costs the server besides TLS and the disk (memory store, everything on one thread).
#include "apiserver/server.h"
#include "bench/api_load.h"
#include "model/protobuf/protobuf.h"

namespace berth::bench {
namespace {

using namespace apiserver;

/// Keeps the last answer's status; everything else is thrown away.
class Sink final : public net::ResponseWriter {
 public:
  void respond(net::HttpResponse response) override {
    status = response.status;
    bytes += response.body.size();
    if (status >= 400) error = response.body;
  }
  void respond_shared(int code, net::Headers, std::vector<Bytes> parts) override {
    status = code;
    for (const auto& part : parts) bytes += part->size();
  }
  void start_stream(int code, net::Headers) override { status = code; }
  bool write(Bytes chunk) override {
    bytes += chunk->size();
    return true;
  }
  [[nodiscard]] std::size_t queued_bytes() const override { return 0; }
  void on_drain(std::function<void()> more) override { more(); }
  void finish() override {}
  void on_close(std::function<void()>) override {}
  std::unique_ptr<net::RawStream> upgrade(net::Headers) override { return nullptr; }
  int status = 0;
  std::size_t bytes = 0;
  std::string error;
};

std::string pod_body(std::size_t i) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"web-{0:07}","generateName":"web-","namespace":"default","labels":{{"app":"web","pod-template-hash":"6d4cf56db6"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-6d4cf56db6","uid":"0c9e2c4e-7b0a-4f0e-8d0e-2f6b8f3d2a11","controller":true,"blockOwnerDeletion":true}}]}},"spec":{{"containers":[{{"name":"web","image":"registry.example.com/team/web:1.27.3","ports":[{{"containerPort":8080}}],"env":[{{"name":"LOG_LEVEL","value":"info"}}],"resources":{{"requests":{{"cpu":"100m","memory":"200Mi"}},"limits":{{"cpu":"500m","memory":"512Mi"}}}}}}]}}}})",
      i);
}

/// Like none before, by its environment.
std::string unlike_pod_body(std::size_t i) {
  auto body = pod_body(1'000'000 + i);
  const std::string_view level = R"("info")";
  return body.replace(body.find(level), level.size(), fmt::format("\"{}\"", i));
}

/// As a scheduler reports a binding.
std::string event_body(std::size_t i) {
  return fmt::format(
      R"({{"kind":"Event","apiVersion":"events.k8s.io/v1","metadata":{{"name":"web-{0:07}.18a","namespace":"default"}},"eventTime":"2026-01-02T03:04:05.{1:06}Z","reportingController":"default-scheduler","reportingInstance":"default-scheduler-a","action":"Binding","reason":"Scheduled","regarding":{{"kind":"Pod","namespace":"default","name":"web-{0:07}","uid":"0c9e2c4e-7b0a-4f0e-8d0e-{0:012}","apiVersion":"v1","resourceVersion":"{0}"}},"note":"Successfully assigned default/web-{0:07} to node-{2}","type":"Normal"}})",
      i, i % 1'000'000, i % 1000);
}

/// As a kubelet reports that a pod runs.
std::string report_body(std::size_t i) {
  return fmt::format(
      R"({{"status":{{"$setElementOrder/conditions":[{{"type":"PodReadyToStartContainers"}},{{"type":"Initialized"}},{{"type":"Ready"}},{{"type":"ContainersReady"}},{{"type":"PodScheduled"}}],"$setElementOrder/podIPs":[{{"ip":"10.{0}.{1}.{2}"}}],"conditions":[{{"lastTransitionTime":"2026-01-02T03:04:06Z","status":"True","type":"PodReadyToStartContainers"}},{{"lastTransitionTime":"2026-01-02T03:04:05Z","status":"True","type":"Initialized"}},{{"lastTransitionTime":"2026-01-02T03:04:06Z","message":null,"reason":null,"status":"True","type":"Ready"}},{{"lastTransitionTime":"2026-01-02T03:04:06Z","message":null,"reason":null,"status":"True","type":"ContainersReady"}}],"containerStatuses":[{{"containerID":"containerd://{3:064x}","image":"registry.example.com/team/web:1.27.3","imageID":"registry.example.com/team/web@sha256:0d17b565c37bcbd895e9d92315a05c1c3c9a29f762b011a10c54a66cd53c9b31","lastState":{{}},"name":"web","ready":true,"restartCount":0,"started":true,"state":{{"running":{{"startedAt":"2026-01-02T03:04:06Z"}}}},"volumeMounts":[{{"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount","name":"kube-api-access-{3:05x}","readOnly":true,"recursiveReadOnly":"Disabled"}}]}}],"hostIP":"172.16.{0}.{1}","hostIPs":[{{"ip":"172.16.{0}.{1}"}}],"phase":"Running","podIP":"10.{0}.{1}.{2}","podIPs":[{{"ip":"10.{0}.{1}.{2}"}}],"startTime":"2026-01-02T03:04:05Z"}}}})",
      i % 7, i % 249, i % 253, i);
}

std::string lease_body(std::size_t i) {
  return fmt::format(
      R"({{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{{"name":"node-{0}","namespace":"default","ownerReferences":[{{"apiVersion":"v1","kind":"Node","name":"node-{0}","uid":"0c9e2c4e-7b0a-4f0e-8d0e-{0:012}"}}]}},"spec":{{"holderIdentity":"node-{0}","leaseDurationSeconds":40,"renewTime":"2026-01-02T03:04:05.000000Z"}}}})",
      i);
}

/// As a fleet makes its nodes.
std::string node_body(std::size_t i) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"node-{0}","labels":{{"kubernetes.io/hostname":"node-{0}","kubernetes.io/os":"linux","kubernetes.io/arch":"amd64","node.kubernetes.io/instance-type":"m","topology.kubernetes.io/zone":"zone-{1}"}},"annotations":{{"berth.io/index":"{0}"}}}},"spec":{{"podCIDR":"10.{2}.{1}.0/24","podCIDRs":["10.{2}.{1}.0/24"],"providerID":"simulated://node-{0}"}},"status":{{"capacity":{{"cpu":"8","memory":"32Gi","pods":"110"}},"allocatable":{{"cpu":"8","memory":"32Gi","pods":"110"}}}}}})",
      i, i % 3, i % 250);
}

std::string node_report_body(std::size_t i) {
  std::string conditions;
  for (const auto& [type, is] :
       {std::pair("MemoryPressure", "False"), {"DiskPressure", "False"}, {"PIDPressure", "False"}, {"Ready", "True"}})
    conditions += fmt::format(
        R"({}{{"type":"{}","status":"{}","reason":"KubeletSays","message":"kubelet has said so","lastHeartbeatTime":"2026-01-02T03:04:{:02}Z","lastTransitionTime":"2026-01-02T03:04:05Z"}})",
        conditions.empty() ? "" : ",", type, is, i % 60);
  return fmt::format(
      R"({{"status":{{"capacity":{{"cpu":"8","memory":"32Gi","pods":"110"}},"allocatable":{{"cpu":"8","memory":"32Gi","pods":"110"}},"conditions":[{4}],"addresses":[{{"type":"InternalIP","address":"172.16.{0}.{1}"}},{{"type":"Hostname","address":"node-{3}"}}],"nodeInfo":{{"machineID":"{2:032x}","systemUUID":"{2:032x}","bootID":"{2:032x}","kernelVersion":"6.1.0","osImage":"o","containerRuntimeVersion":"c://1","kubeletVersion":"v1.36.0","kubeProxyVersion":"v1.36.0","operatingSystem":"linux","architecture":"amd64"}}}}}})",
      i % 250, i % 249, i * 7919, i, conditions);
}

std::string set_body(std::size_t i) {
  return fmt::format(
      R"({{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{{"name":"web-{0}","labels":{{"app":"web-{0}"}},"annotations":{{"deployment.kubernetes.io/revision":"1"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"Deployment","name":"web-{0}","uid":"0c9e2c4e-7b0a-4f0e-8d0e-{0:012}","controller":true}}]}},"spec":{{"replicas":{1},"selector":{{"matchLabels":{{"app":"web-{0}"}}}},"template":{{"metadata":{{"labels":{{"app":"web-{0}"}}}},"spec":{{"containers":[{{"name":"web","image":"registry.example.com/team/web:1.27.3","resources":{{"requests":{{"cpu":"100m","memory":"200Mi"}}}}}}]}}}}}}}})",
      i, i % 90 + 1);
}

// Longer than a screen: one scenario, from its requests to its figures.
json::Object run(const Options& options) {
  VirtualLoop loop(*parse_rfc3339("2026-01-02T03:04:05Z"));
  const double memory_before = rss_mb();
  CacheOptions cache_options;
  cache_options.history_events = 1000;
  auto cache = open_object_cache(store::make_memory_store(), loop, cache_options, true);
  if (!cache) return {{"error", cache.error().message}};
  ServerOptions server_options;
  server_options.cache = std::move(*cache);
  server_options.loop = &loop;
  auto trusting = std::make_shared<TrustingAuth>();
  server_options.authenticator = trusting;
  server_options.authorizer = trusting;
  server_options.seed = options.seed;
  server_options.single_threaded = true;
  auto server = ApiServer::create(std::move(server_options));
  if (!server) return {{"error", server.error().message}};

  const auto pods = static_cast<std::size_t>(50'000 * options.scale);
  std::string error;
  const auto measure = [&](const std::function<net::HttpRequest(std::size_t)>& make) {
    std::vector<net::HttpRequest> requests;
    requests.reserve(pods);
    for (std::size_t i = 0; i < pods; ++i) requests.push_back(make(i));
    auto sink = std::make_shared<Sink>();
    const double start = own_cpu_seconds();  // Others may be using the machine.
    for (auto& request : requests) {
      (*server)->handle(std::move(request), sink);
      if (sink->status >= 400 && error.empty()) error = sink->error;
    }
    return (own_cpu_seconds() - start) / static_cast<double>(pods) * 1e6;
  };
  const auto request = [](std::string method, std::string path, std::string body, std::string type, bool takes_protobuf = false) {
    net::HttpRequest out;
    out.method = std::move(method);
    out.path = std::move(path);
    out.body = std::move(body);
    out.headers.add("Content-Type", std::move(type));
    out.headers.add("Accept", takes_protobuf ? "application/vnd.kubernetes.protobuf,application/json" : "application/json");
    out.headers.add("User-Agent", "berth-bench/1");
    return out;
  };
  const auto pod_path = [](std::size_t i) { return fmt::format("/api/v1/namespaces/default/pods/web-{:07}", i); };
  const double create_us =
      measure([&](std::size_t i) { return request("POST", "/api/v1/namespaces/default/pods", pod_body(i), "application/json"); });
  const double bytes_per_pod = (rss_mb() - memory_before) * 1048576 / static_cast<double>(pods);
  // As PodTopologyLabels makes of every scheduler's: with the zone of the node.
  const double bind_us = measure([&](std::size_t i) {
    return request(
        "POST", pod_path(i) + "/binding",
        fmt::format(
            R"({{"apiVersion":"v1","kind":"Binding","metadata":{{"name":"web-{:07}","labels":{{"topology.kubernetes.io/zone":"a"}}}},"target":{{"kind":"Node","name":"node-{}"}}}})",
            i, i % 1000),
        "application/json");
  });
  const double status_us = measure([&](std::size_t i) {
    return request(
        "PATCH", pod_path(i) + "/status",
        R"({"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True","lastTransitionTime":"2026-01-02T03:04:05Z"}],"podIP":"10.1.2.3","podIPs":[{"ip":"10.1.2.3"}],"startTime":"2026-01-02T03:04:05Z"}})",
        "application/strategic-merge-patch+json");
  });
  const std::string leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
  measure([&](std::size_t i) { return request("POST", leases, lease_body(i), "application/json"); });
  const double renew_us = measure([&](std::size_t i) {
    return request("PATCH", fmt::format("{}/node-{}", leases, i),
                   fmt::format(R"({{"spec":{{"renewTime":"2026-01-02T03:04:15.{:06}Z"}}}})", i), "application/merge-patch+json");
  });
  const double get_us = measure([&](std::size_t i) { return request("GET", pod_path(i), "", ""); });
  const double get_protobuf_us = measure([&](std::size_t i) { return request("GET", pod_path(i), "", "", true); });
  const auto list = [&](bool takes_protobuf) {
    auto sink = std::make_shared<Sink>();
    const double start = own_cpu_seconds();
    (*server)->handle(request("GET", "/api/v1/pods", "", "", takes_protobuf), sink);
    return std::pair(own_cpu_seconds() - start, sink->bytes / 1048576.0);
  };
  const auto [list_s, list_mb] = list(false);
  const auto [list_protobuf_s, list_protobuf_mb] = list(true);
  const double unlike_us =
      measure([&](std::size_t i) { return request("POST", "/api/v1/namespaces/default/pods", unlike_pod_body(i), "application/json"); });
  const double report_us = measure([&](std::size_t i) {
    return request("PATCH", pod_path(1'000'000 + i) + "/status", report_body(i), "application/strategic-merge-patch+json");
  });
  const double create_protobuf_us = measure([&](std::size_t i) {
    return request("POST", "/api/v1/namespaces/default/pods", *model::encode_protobuf(*json::parse(pod_body(2'000'000 + i))),
                   "application/vnd.kubernetes.protobuf", true);
  });
  const double event_us = measure([&](std::size_t i) {
    return request("POST", "/apis/events.k8s.io/v1/namespaces/default/events", event_body(i), "application/json");
  });
  const auto node_path = [](std::size_t i) { return fmt::format("/api/v1/nodes/node-{}", i); };
  constexpr const char* kStrategic = "application/strategic-merge-patch+json";
  measure([&](std::size_t i) { return request("POST", "/api/v1/nodes", node_body(i), "application/json"); });
  const double node_report_us =
      measure([&](std::size_t i) { return request("PATCH", node_path(i) + "/status", node_report_body(i), kStrategic); });
  const double node_label_us = measure([&](std::size_t i) {
    return request("PATCH", node_path(i), R"({"metadata":{"labels":{"example.com/rack":"a"}}})", "application/merge-patch+json");
  });
  const double pod_label_us = measure(
      [&](std::size_t i) { return request("PATCH", pod_path(i), R"({"metadata":{"labels":{"example.com/rack":"a"}}})", kStrategic); });
  const auto set_path = [](std::size_t i) { return fmt::format("/apis/apps/v1/namespaces/default/replicasets/web-{}", i); };
  constexpr const char* kMerge = "application/merge-patch+json";
  measure([&](std::size_t i) { return request("POST", "/apis/apps/v1/namespaces/default/replicasets", set_body(i), "application/json"); });
  // As its controller counts its pods: others of each set.
  const double count_us = measure([&](std::size_t i) {
    return request("PATCH", set_path(i) + "/status",
                   fmt::format(R"({{"status":{{"replicas":{0},"fullyLabeledReplicas":{0},"readyReplicas":{1},"observedGeneration":1}}}})",
                               i % 90 + 3, i % 90 + 2),
                   kMerge);
  });
  const double scale_us = measure([&](std::size_t i) {
    return request("PATCH", set_path(i) + "/scale", fmt::format(R"({{"spec":{{"replicas":{}}}}})", i % 90 + 5), kMerge);
  });
  const double get_scale_us = measure([&](std::size_t i) { return request("GET", set_path(i) + "/scale", "", ""); });
  // To end in its grace, then, as its node says, at once.
  const double mark_deleted_us = measure([&](std::size_t i) { return request("DELETE", pod_path(i), "", "application/json"); });
  const double delete_us = measure([&](std::size_t i) {
    return request("DELETE", pod_path(i), R"({"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0})", "application/json");
  });
  json::Object out{{"pods", pods},
                   {"create_us", create_us},
                   {"bind_us", bind_us},
                   {"status_patch_us", status_us},
                   {"report_us", report_us},
                   {"renew_us", renew_us},
                   {"create_unlike_us", unlike_us},
                   {"create_protobuf_us", create_protobuf_us},
                   {"node_report_us", node_report_us},
                   {"node_label_us", node_label_us},
                   {"pod_label_us", pod_label_us},
                   {"count_us", count_us},
                   {"scale_us", scale_us},
                   {"get_scale_us", get_scale_us},
                   {"mark_deleted_us", mark_deleted_us},
                   {"delete_us", delete_us},
                   {"event_us", event_us},
                   {"get_us", get_us},
                   {"get_protobuf_us", get_protobuf_us},
                   {"list_all_s", list_s},
                   {"list_mb", list_mb},
                   {"list_protobuf_s", list_protobuf_s},
                   {"list_protobuf_mb", list_protobuf_mb},
                   {"stored_bytes_per_pod", bytes_per_pod}};
  if (!error.empty()) out["error"] = error;
  return out;
}

const Register kPipeline({"ApiPipeline",
                          "Server CPU per request in process: create, bind, status patch, report, get and list of pods, renewal of leases, "
                          "create of events, reports and labels of nodes, labels and deletion of pods, counts and scale of "
                          "ReplicaSets; without TLS and disk",
                          run});

}  // namespace
}  // namespace berth::bench
