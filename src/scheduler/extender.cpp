#include "scheduler/extender.h"

#include <algorithm>
#include <fstream>
#include <future>
#include <set>
#include <sstream>

#include <fmt/format.h>

#include "net/client.h"

namespace berth::scheduler {
namespace {

/// Extenders score 0–10 where plugins score 0–100.
constexpr std::int64_t kScoreScale = 10;

Result<std::string> file_or_data(const std::string& file, const std::string& data) {
  if (!data.empty() || file.empty()) return data;
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) return fail(ErrorCode::kNotFound, file + ": cannot be read");
  return text.str();
}

json::Value arguments(const config::Extender& extender, const json::Value& pod, const std::vector<std::string>& names,
                      const std::function<json::Value(const std::string&)>& node_document) {
  json::Object out = {{"Pod", pod}, {"Nodes", nullptr}, {"NodeNames", nullptr}};
  json::Array list;
  for (const auto& name : names) list.push_back(extender.node_cache_capable ? json::Value(name) : node_document(name));
  if (extender.node_cache_capable) {
    out["NodeNames"] = std::move(list);
  } else {
    out["Nodes"] = json::Object{{"kind", "NodeList"}, {"apiVersion", "v1"}, {"metadata", json::Object()}, {"items", std::move(list)}};
  }
  return out;
}

}  // namespace

struct Extenders::Narrowing {
  std::vector<std::string> names;
  std::map<std::string, std::int64_t> scores;
  std::map<std::string, std::size_t> reasons;
};

Result<std::unique_ptr<Extenders>> Extenders::create(const std::vector<config::Extender>& configs) {
  std::vector<std::shared_ptr<net::HttpClient>> clients;
  for (const auto& extender : configs) {
    net::ClientConfig config;
    config.url = extender.url_prefix;
    config.insecure_skip_verify = extender.insecure_skip_verify;
    config.server_name = extender.server_name;
    config.timeout_ms = static_cast<int>(std::min<std::int64_t>(extender.http_timeout_ms, 3'600'000));
    for (const auto& [file, data, target] : {std::tuple{&extender.ca_file, &extender.ca_data, &config.ca_pem},
                                             std::tuple{&extender.cert_file, &extender.cert_data, &config.certificate_pem},
                                             std::tuple{&extender.key_file, &extender.key_data, &config.private_key_pem}}) {
      auto pem = file_or_data(*file, *data);
      if (!pem) return std::unexpected(pem.error());
      *target = std::move(*pem);
    }
    auto client = net::HttpClient::create(std::move(config));
    if (!client) return invalid(fmt::format("extender {}: {}", extender.url_prefix, client.error().message));
    clients.push_back(std::move(*client));
  }
  const Post post = [clients, configs](std::size_t extender, const std::string& verb, const std::string& body) -> Result<std::string> {
    net::HttpRequest request;
    request.method = "POST";
    request.path = "/" + verb;
    request.headers.add("Content-Type", "application/json");
    request.body = body;
    std::promise<net::HttpResponse> answer;
    clients[extender]->send(std::move(request), [&](net::HttpResponse response) { answer.set_value(std::move(response)); });
    net::HttpResponse response = answer.get_future().get();
    if (response.status == 0) return fail(ErrorCode::kUnavailable, fmt::format("extender {}: {}", configs[extender].url_prefix, response.body));
    if (response.status != 200)
      return fail(ErrorCode::kUnavailable, fmt::format("failed {} with extender at URL {}, code {}", verb, configs[extender].url_prefix, response.status));
    return std::move(response.body);
  };
  return std::make_unique<Extenders>(configs, post);
}

bool Extenders::is_interested(const config::Extender& extender, const model::PodView& pod) const {
  if (extender.managed_resources.empty()) return true;
  const auto manages = [&](const model::ResourceList& list) {
    return std::ranges::any_of(extender.managed_resources, [&](const auto& resource) { return model::find_resource(list, resource.name) != nullptr; });
  };
  for (const auto* containers : {&pod.containers, &pod.init_containers})
    for (const auto& container : *containers)
      if (manages(container.requests) || manages(container.limits)) return true;
  return false;
}

bool Extenders::are_interested(const model::PodView& pod) const {
  return std::ranges::any_of(configs_, [&](const auto& one) { return (!one.filter_verb.empty() || !one.prioritize_verb.empty()) && is_interested(one, pod); });
}

bool Extenders::bind_for(const model::PodView& pod) const {
  return std::ranges::any_of(configs_, [&](const auto& one) { return !one.bind_verb.empty() && is_interested(one, pod); });
}

Result<void> Extenders::filter(std::size_t i, const json::Value& pod, const std::function<json::Value(const std::string&)>& node_document, Narrowing& out) const {
  const auto& extender = configs_[i];
  auto body = post_(i, extender.filter_verb, json::serialize(arguments(extender, pod, out.names, node_document)));
  if (!body) return std::unexpected(body.error());
  const auto result = json::parse(*body);
  if (!result || !result->is_object()) return invalid(fmt::format("extender {}: the answer to {} is not a JSON object", extender.url_prefix, extender.filter_verb));
  if (const auto error = json::get_string(*result, {"Error"}); !error.empty()) return invalid(std::string(error));
  std::set<std::string> kept;
  if (const auto* names = json::find(*result, "NodeNames"); names != nullptr && names->is_array()) {
    for (const auto& name : names->get_array())
      if (name.is_string()) kept.emplace(json::as_view(name));
  } else {
    for (const auto& node : json::get_array(*result, {"Nodes", "items"})) kept.emplace(json::get_string(node, {"metadata", "name"}));
  }
  for (const auto& name : kept)
    if (std::ranges::find(out.names, name) == out.names.end())
      return invalid(fmt::format("extender \"{}\" claims a filtered node \"{}\" which is not found in the input node list", extender.url_prefix, name));
  std::vector<std::string> left;
  for (auto& name : out.names) {
    if (kept.contains(name)) {
      left.push_back(std::move(name));
      continue;
    }
    std::string reason;
    for (const auto failed : {"FailedNodes", "FailedAndUnresolvableNodes"})
      if (const auto text = json::get_string(*result, {failed, name}); !text.empty()) reason = text;
    ++out.reasons[reason.empty() ? "node(s) were refused by an extender" : reason];
  }
  out.names = std::move(left);
  return {};
}

Result<void> Extenders::prioritize(std::size_t i, const json::Value& pod, const std::function<json::Value(const std::string&)>& node_document, Narrowing& out) const {
  const auto& extender = configs_[i];
  auto body = post_(i, extender.prioritize_verb, json::serialize(arguments(extender, pod, out.names, node_document)));
  if (!body) return std::unexpected(body.error());
  const auto result = json::parse(*body);
  if (!result || !result->is_array()) return invalid(fmt::format("extender {}: the answer to {} is not a JSON list", extender.url_prefix, extender.prioritize_verb));
  for (const auto& entry : result->get_array()) {
    const std::string host(json::get_string(entry, {"Host"}));
    const std::int64_t score = std::clamp<std::int64_t>(json::get_int(entry, {"Score"}), 0, 10);
    out.scores[host] = placement::saturating_add(out.scores[host], score * std::min<std::int64_t>(extender.weight, INT64_MAX / 1000) * kScoreScale);
  }
  return {};
}

placement::Decision Extenders::choose(const placement::Cluster& cluster, const placement::PodInfo& pod, const json::Value& pod_document,
                                      const placement::Evaluation& evaluation, const std::function<json::Value(const std::string&)>& node_document) const {
  placement::Decision out;
  Narrowing narrowing;
  std::map<std::string, const placement::Evaluation::Feasible*> by_name;
  for (const auto& one : evaluation.feasible) by_name.emplace(cluster.node(one.node)->name, &one);
  for (const auto& [name, one] : by_name) narrowing.names.push_back(name);
  for (std::size_t i = 0; i < configs_.size() && !narrowing.names.empty(); ++i) {
    if (configs_[i].filter_verb.empty() || !is_interested(configs_[i], pod.view())) continue;
    const auto done = filter(i, pod_document, node_document, narrowing);
    if (done || configs_[i].ignorable) continue;
    out.outcome = placement::Decision::Outcome::kError;
    out.error = done.error().message;
    return out;
  }
  if (narrowing.names.empty()) {
    auto diagnosis = std::make_shared<placement::Diagnosis>();
    diagnosis->node_count = cluster.node_count();
    for (const auto& rejected : evaluation.rejected)
      for (const auto& reason : rejected.status.reasons) ++narrowing.reasons[reason];
    diagnosis->reasons.assign(narrowing.reasons.begin(), narrowing.reasons.end());
    out.outcome = placement::Decision::Outcome::kUnschedulable;
    out.diagnosis = std::move(diagnosis);
    return out;
  }
  for (std::size_t i = 0; i < configs_.size(); ++i) {
    // What an extender thinks of nodes is advice: its failure costs its votes, not the pod.
    if (!configs_[i].prioritize_verb.empty() && is_interested(configs_[i], pod.view())) (void)prioritize(i, pod_document, node_document, narrowing);
  }
  out.outcome = placement::Decision::Outcome::kScheduled;
  out.feasible_nodes = narrowing.names.size();
  out.score = INT64_MIN;
  for (const auto& name : narrowing.names) {
    const auto& one = *by_name.at(name);
    const std::int64_t total = placement::saturating_add(one.total, narrowing.scores[name]);
    out.tied_nodes = total > out.score ? 1 : out.tied_nodes + (total == out.score);
    if (total <= out.score) continue;
    out.score = total;
    out.node = one.node;
    out.node_name = cluster.node(one.node)->name;
  }
  return out;
}

Result<void> Extenders::bind(const model::PodView& pod, const std::string& node) const {
  for (std::size_t i = 0; i < configs_.size(); ++i) {
    if (configs_[i].bind_verb.empty() || !is_interested(configs_[i], pod)) continue;
    const json::Value body = {{"PodName", pod.name()}, {"PodNamespace", pod.ns()}, {"PodUID", pod.meta.uid}, {"Node", node}};
    auto answer = post_(i, configs_[i].bind_verb, json::serialize(body));
    if (!answer) return std::unexpected(answer.error());
    const auto result = json::parse(*answer);
    if (result)
      if (const auto error = json::get_string(*result, {"Error"}); !error.empty()) return invalid(std::string(error));
    return {};
  }
  return invalid("no extender binds this pod");
}

}  // namespace berth::scheduler
