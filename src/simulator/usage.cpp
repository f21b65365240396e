#include "simulator/usage.h"

#include <fmt/format.h>

#include <cmath>

#include "model/api_status.h"
#include "model/selector.h"

namespace berth::simulator {
namespace {

using node::simulated::PodSimulation;

/// The workload's name of a pod of a Deployment: "web-7c9d-x2x4" is of "web".
std::string_view workload_of(std::string_view pod) {
  const std::size_t last = pod.rfind('-');
  const std::size_t before = last == std::string_view::npos || last == 0 ? std::string_view::npos : pod.rfind('-', last - 1);
  return before == std::string_view::npos ? std::string_view() : pod.substr(0, before);
}

void answer(net::ResponseWriter& writer, int status, std::string body) {
  net::HttpResponse response;
  response.status = status;
  response.headers.add("Content-Type", "application/json");
  response.body = std::move(body);
  writer.respond(std::move(response));
}

}  // namespace

Usage::Usage(const Census& census, TimePoint start, const std::vector<Workload>& workloads) : census_(census), start_(start) {
  for (const Workload& workload : workloads)
    if (!workload.load.empty()) loads_.emplace(workload.ns + "/" + workload.name, workload.load);
}

std::pair<double, double> Usage::of(const PodSimulation& pod, std::size_t container, Share& share) const {
  const TimePoint now = cluster_->loop().now();
  double cores = pod.usage(container, "cpu", now);
  const double bytes = pod.usage(container, "memory", now);
  if (loads_.empty() || bytes + cores == 0) return {cores, bytes};
  const std::string_view workload = workload_of(pod.spec().name);
  if (share.workload != workload || share.ns != pod.spec().ns) {
    share = {pod.spec().ns, std::string(workload), std::nullopt};
    const std::string key = share.ns + "/" + share.workload;
    if (const auto load = loads_.find(key); load != loads_.end()) {
      const auto running = std::max<std::int64_t>(census_.running_of(key), 1);
      const Duration time_of_day = now.time_since_epoch() % Duration(std::chrono::hours(24));
      share.cores = curve_at(load->second, time_of_day) / static_cast<double>(running);
    }
  }
  if (share.cores) cores = *share.cores / static_cast<double>(std::max<std::size_t>(pod.spec().containers.size(), 1));
  return {cores, bytes};
}

Amounts Usage::total() const {
  Amounts out{};
  if (cluster_ == nullptr || cluster_->nodes() == nullptr) return out;
  Share share;
  // Whole thousandths and bytes: a sum in any order is the same.
  cluster_->nodes()->fleet().for_each_pod("", [&](const PodSimulation& pod) {
    if (loads_.empty() && !pod.behaviour().has_usage) {
      const PodSimulation::SteadyUse& use = pod.steady_use();
      out[kCpu] += use.cpu_milli;
      out[kMemory] += use.memory_bytes;
      return;
    }
    if (pod.phase() != node::PodPhase::kRunning) return;
    for (std::size_t i = 0; i < pod.spec().containers.size(); ++i) {
      const auto [cores, bytes] = of(pod, i, share);
      out[kCpu] += std::llround(cores * 1000);
      out[kMemory] += std::llround(bytes);
    }
  });
  return out;
}

std::vector<std::string> Usage::pods(const std::string& ns, const std::string& name, const std::string& selector) const {
  apiserver::WatchFilter filter;
  filter.prefix = apiserver::make_prefix("", "pods", ns);
  if (!name.empty()) filter.name = name;
  if (auto parsed = model::Selector::parse(selector)) filter.labels = std::move(*parsed);
  std::vector<std::string> out;
  const std::string now = format_rfc3339(cluster_->loop().now());
  Share share;
  for (const apiserver::ObjectPtr& object : cluster_->cache()->list(filter, "", 0).items) {
    const PodSimulation* pod = cluster_->nodes()->fleet().find_pod(object->meta.uid);
    if (pod == nullptr || pod->phase() != node::PodPhase::kRunning) continue;
    // Names and labels of what was admitted need no quoting. Said anew for every pod in every period: put together by hand.
    std::string& text = out.emplace_back();
    text.reserve(320 + 120 * pod->spec().containers.size());
    const auto add = [&text](auto... parts) { (text.append(parts), ...); };
    add(R"({"kind":"PodMetrics","apiVersion":"metrics.k8s.io/v1beta1","metadata":{"name":")", std::string_view(object->meta.name),
        R"(","namespace":")", std::string_view(object->meta.ns), R"(","labels":{)");
    const char* comma = "";
    for (const auto& [key, value] : object->meta.labels().pairs())
      add(std::exchange(comma, ","), "\"", std::string_view(key), R"(":")", std::string_view(value), "\"");
    add(R"(}},"timestamp":")", std::string_view(now), R"(","window":"10s","containers":[)");
    for (std::size_t i = 0; i < pod->spec().containers.size(); ++i) {
      const auto [cores, bytes] = of(*pod, i, share);
      const fmt::format_int nano(std::llround(cores * 1e9)), kibi(std::llround(bytes) / 1024);
      add(i == 0 ? "" : ",", R"({"name":")", std::string_view(pod->spec().containers[i].name), R"(","usage":{"cpu":")",
          std::string_view(nano.data(), nano.size()), R"(n","memory":")", std::string_view(kibi.data(), kibi.size()), R"(Ki"}})");
    }
    text += "]}";
  }
  return out;
}

std::vector<std::string> Usage::nodes(const std::string& name) const {
  std::vector<std::string> out;
  Share share;
  const std::string now = format_rfc3339(cluster_->loop().now());
  for (const std::string& node : cluster_->nodes()->fleet().node_names()) {
    if (!name.empty() && node != name) continue;
    std::int64_t nano = 0, bytes_used = 0;
    cluster_->nodes()->fleet().for_each_pod(node, [&](const PodSimulation& pod) {
      for (std::size_t i = 0; i < pod.spec().containers.size(); ++i) {
        const auto [cores, bytes] = of(pod, i, share);
        nano += std::llround(cores * 1e9);
        bytes_used += std::llround(bytes);
      }
    });
    out.push_back(fmt::format(
        R"({{"kind":"NodeMetrics","apiVersion":"metrics.k8s.io/v1beta1","metadata":{{"name":"{}"}},"timestamp":"{}","window":"10s","usage":{{"cpu":"{}n","memory":"{}Ki"}}}})",
        node, now, nano, bytes_used / 1024));
  }
  return out;
}

void Usage::handle(net::HttpRequest request, std::shared_ptr<net::ResponseWriter> writer) {
  // /apis/metrics.k8s.io/v1beta1/nodes[/NAME], …/pods, …/namespaces/NS/pods[/NAME]
  std::vector<std::string> path;
  for (std::size_t at = 1; at <= request.path.size();) {
    const std::size_t slash = std::min(request.path.find('/', at), request.path.size());
    path.push_back(request.path.substr(at, slash - at));
    at = slash + 1;
  }
  std::string selector;
  for (const auto& [key, value] : net::parse_query(request.query))
    if (key == "labelSelector") selector = value;
  const bool is_nodes = path.size() >= 4 && path[3] == "nodes";
  const bool is_in_ns = path.size() >= 6 && path[3] == "namespaces" && path[5] == "pods";
  if (cluster_ == nullptr || cluster_->nodes() == nullptr || cluster_->cache() == nullptr)
    return answer(*writer, 503, json::serialize(model::ApiStatus{503, "ServiceUnavailable", "no nodes are played"}.to_json()));
  const std::string name = is_nodes ? (path.size() > 4 ? path[4] : "") : is_in_ns && path.size() > 6 ? path[6] : "";
  const std::vector<std::string> items = is_nodes ? nodes(name) : pods(is_in_ns ? path[4] : "", name, selector);
  if (name.empty())
    return answer(*writer, 200,
                  fmt::format(R"({{"kind":"{}","apiVersion":"metrics.k8s.io/v1beta1","metadata":{{}},"items":[{}]}})",
                              is_nodes ? "NodeMetricsList" : "PodMetricsList", fmt::join(items, ",")));
  if (items.empty())
    return answer(*writer, 404, json::serialize(model::not_found("metrics.k8s.io", is_nodes ? "nodes" : "pods", name).to_json()));
  answer(*writer, 200, items[0]);
}

}  // namespace berth::simulator
