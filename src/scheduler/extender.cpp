#include "scheduler/extender.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <future>
#include <set>
#include <sstream>

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

/// Where the verb is asked (extender.go, send).
std::string address(const config::Extender& extender, const std::string& verb) {
  const std::size_t end = extender.url_prefix.find_last_not_of('/');
  return extender.url_prefix.substr(0, end == std::string::npos ? 0 : end + 1) + "/" + verb;
}

/// A connection's failure in the words that Go's HTTP client has for it, where there are such.
std::string connection_words(const std::string& why) {
  constexpr std::string_view kCannot = "cannot connect to ";
  if (why.find("timeout awaiting") != std::string::npos || why.find("timed out") != std::string::npos)
    return "context deadline exceeded (Client.Timeout exceeded while awaiting headers)";
  const std::size_t colon = why.find(": ");
  if (!why.starts_with(kCannot) || colon == std::string::npos) return why;
  std::string reason = why.substr(colon + 2);
  if (!reason.empty()) reason.front() = static_cast<char>(std::tolower(static_cast<unsigned char>(reason.front())));
  return fmt::format("dial tcp {}: connect: {}", why.substr(kCannot.size(), colon - kCannot.size()), reason);
}

/// What Go's decoder says of an answer that cannot be one.
std::string decoding_words(const std::string& body, const Result<json::Value>& parsed, std::string_view type) {
  const std::size_t first = body.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return "EOF";
  if (!parsed) {
    if (std::string_view("{[\"-0123456789tfn").find(body[first]) == std::string_view::npos)
      return fmt::format("invalid character '{}' looking for beginning of value", body[first]);
    return parsed.error().message;
  }
  const char* what = parsed->is_string()   ? "string"
                     : parsed->is_array()  ? "array"
                     : parsed->is_bool()   ? "bool"
                     : parsed->is_object() ? "object"
                                           : "number";
  return fmt::format("json: cannot unmarshal {} into Go value of type v1.{}", what, type);
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
  std::map<std::string, placement::Status> refused;
};

Result<std::unique_ptr<Extenders>> Extenders::create(const std::vector<config::Extender>& configs) {
  std::vector<std::shared_ptr<net::HttpClient>> clients;
  for (const auto& extender : configs) {
    if (extender.insecure_skip_verify && (!extender.ca_file.empty() || !extender.ca_data.empty()))
      return invalid(
          fmt::format("extender {}: specifying a root certificates file with the insecure flag is not allowed", extender.url_prefix));
    net::ClientConfig config;
    config.url = extender.url_prefix;
    // enableHTTPS without a certificate authority means an unverified server.
    config.insecure_skip_verify =
        extender.insecure_skip_verify || (extender.enable_https && extender.ca_file.empty() && extender.ca_data.empty());
    config.server_name = extender.server_name;
    // Of what it was sent it gives back a part: names where it keeps nodes itself, otherwise whole nodes.
    config.max_answer_bytes = std::size_t{extender.node_cache_capable ? 16U : 256U} << 20;
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
    const std::string url = address(configs[extender], verb);
    if (response.status == 0) return fail(ErrorCode::kUnavailable, fmt::format("Post \"{}\": {}", url, connection_words(response.body)));
    if (response.status != 200)
      return fail(ErrorCode::kUnavailable, fmt::format("failed {} with extender at URL {}, code {}", verb, url, response.status));
    return std::move(response.body);
  };
  return std::make_unique<Extenders>(configs, post);
}

bool Extenders::is_interested(const config::Extender& extender, const model::PodView& pod) const {
  if (extender.managed_resources.empty()) return true;
  const auto manages = [&](const model::ResourceList& list) {
    return std::ranges::any_of(extender.managed_resources,
                               [&](const auto& resource) { return model::find_resource(list, resource.name) != nullptr; });
  };
  for (const auto* containers : {&pod.containers, &pod.init_containers})
    for (const auto& container : *containers)
      if (manages(container.requests) || manages(container.limits)) return true;
  return false;
}

bool Extenders::are_interested(const model::PodView& pod) const {
  return std::ranges::any_of(
      configs_, [&](const auto& one) { return (!one.filter_verb.empty() || !one.prioritize_verb.empty()) && is_interested(one, pod); });
}

bool Extenders::preempt_for(const model::PodView& pod) const {
  return std::ranges::any_of(configs_, [&](const auto& one) { return !one.preempt_verb.empty() && is_interested(one, pod); });
}

bool Extenders::bind_for(const model::PodView& pod) const {
  return std::ranges::any_of(configs_, [&](const auto& one) { return !one.bind_verb.empty() && is_interested(one, pod); });
}

Result<json::Value> Extenders::ask(std::size_t i, const std::string& verb, const json::Value& body) const {
  auto answer = post_(i, verb, json::serialize(body));
  if (!answer) return std::unexpected(answer.error());
  auto result = json::parse(*answer);
  if (!result || !result->is_object())
    return invalid(decoding_words(*answer, result, verb == configs_[i].preempt_verb ? "ExtenderPreemptionResult" : "ExtenderFilterResult"));
  return std::move(*result);
}

Result<void> Extenders::filter(std::size_t i, const json::Value& pod, const std::function<json::Value(const std::string&)>& node_document,
                               Narrowing& out) const {
  const auto& extender = configs_[i];
  const auto result = ask(i, extender.filter_verb, arguments(extender, pod, out.names, node_document));
  if (!result) return std::unexpected(result.error());
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
      return invalid(fmt::format("extender \"{}\" claims a filtered node \"{}\" which is not found in the input node list",
                                 extender.url_prefix, name));
  std::vector<std::string> left;
  for (auto& name : out.names) {
    if (kept.contains(name)) {
      left.push_back(std::move(name));
      continue;
    }
    // A node in both lists counts as unresolvable.
    const json::Value* unresolvable = json::find(*result, {"FailedAndUnresolvableNodes", name});
    std::string reason(json::get_string(*result, {unresolvable != nullptr ? "FailedAndUnresolvableNodes" : "FailedNodes", name}));
    if (reason.empty()) reason = fmt::format("node(s) were refused by the extender {}", extender.url_prefix);
    out.refused[name] =
        unresolvable != nullptr ? placement::Status::unresolvable(std::move(reason)) : placement::Status::unschedulable(std::move(reason));
  }
  out.names = std::move(left);
  return {};
}

Result<void> Extenders::prioritize(std::size_t i, const json::Value& pod,
                                   const std::function<json::Value(const std::string&)>& node_document, Narrowing& out) const {
  const auto& extender = configs_[i];
  auto body = post_(i, extender.prioritize_verb, json::serialize(arguments(extender, pod, out.names, node_document)));
  if (!body) return std::unexpected(body.error());
  const auto result = json::parse(*body);
  if (!result || !result->is_array()) return invalid(decoding_words(*body, result, "HostPriorityList"));
  for (const auto& entry : result->get_array()) {
    const std::string host(json::get_string(entry, {"Host"}));
    // Scores outside 0 to 10 count as they are.
    std::int64_t weighted = 0;
    if (__builtin_mul_overflow(json::get_int(entry, {"Score"}), extender.weight, &weighted) ||
        __builtin_mul_overflow(weighted, kScoreScale, &weighted))
      continue;
    out.scores[host] = placement::saturating_add(out.scores[host], weighted);
  }
  return {};
}

placement::Decision Extenders::choose(const placement::Cluster& cluster, const placement::PodInfo& pod, const json::Value& pod_document,
                                      placement::Evaluation& evaluation,
                                      const std::function<json::Value(const std::string&)>& node_document) const {
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
    for (const auto& [name, one] : by_name) evaluation.rejected.push_back({one->node, narrowing.refused[name], {}});
    evaluation.feasible.clear();
    auto diagnosis = std::make_shared<placement::Diagnosis>();
    diagnosis->node_count = cluster.node_count();
    std::map<std::string, std::size_t> reasons;
    std::set<std::string_view> plugins;
    for (const auto& rejected : evaluation.rejected) {
      diagnosis->resolvable_nodes += rejected.status.code == placement::Code::kUnschedulable;
      plugins.insert(rejected.status.plugin);
      for (const auto& reason : rejected.status.reasons) ++reasons[reason];
    }
    diagnosis->reasons.assign(reasons.begin(), reasons.end());
    // Which events would please an extender nobody knows: with its rejection (no plugin's), any may.
    if (!plugins.contains("")) diagnosis->plugins.assign(plugins.begin(), plugins.end());
    out.outcome = placement::Decision::Outcome::kUnschedulable;
    out.diagnosis = std::move(diagnosis);
    return out;
  }
  // One node alone is not scored.
  for (std::size_t i = 0; i < configs_.size() && narrowing.names.size() > 1; ++i) {
    // What an extender thinks of nodes is advice: its failure costs its votes, not the pod.
    if (!configs_[i].prioritize_verb.empty() && is_interested(configs_[i], pod.view()))
      (void)prioritize(i, pod_document, node_document, narrowing);
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

Result<std::vector<placement::Candidate>> Extenders::ask_preemption(std::size_t i, const placement::Cluster& cluster,
                                                                    const json::Value& pod_document,
                                                                    const std::vector<placement::Candidate>& candidates,
                                                                    const Documents& documents) const {
  const auto& extender = configs_[i];
  json::Object by_node;
  for (const auto& candidate : candidates) {
    json::Array pods;
    for (const auto& victim : candidate.victims)
      pods.push_back(extender.node_cache_capable ? json::Value(json::Object{{"UID", victim->view().meta.uid}}) : documents.pod(*victim));
    by_node[cluster.node(candidate.node)->name] =
        json::Object{{"Pods", std::move(pods)}, {"NumPDBViolations", static_cast<std::int64_t>(candidate.budget_violations)}};
  }
  json::Object body = {{"Pod", pod_document}, {"NodeNameToVictims", nullptr}, {"NodeNameToMetaVictims", nullptr}};
  body[extender.node_cache_capable ? "NodeNameToMetaVictims" : "NodeNameToVictims"] = std::move(by_node);
  const auto result = ask(i, extender.preempt_verb, json::Value(std::move(body)));
  if (!result) return std::unexpected(result.error());

  // Whatever form the question had, the answer is by uids.
  std::vector<placement::Candidate> out;
  const json::Value* nodes = json::find(*result, "NodeNameToMetaVictims");
  if (nodes == nullptr || !nodes->is_object()) return out;
  for (const auto& [name, answer] : nodes->get_object()) {
    const placement::NodeInfo* node = cluster.find_node(std::string_view(name.data(), name.size()));
    if (node == nullptr || node->node == nullptr)
      return invalid(fmt::format("extender {}: there is no node \"{}\"", extender.url_prefix, std::string_view(name.data(), name.size())));
    placement::Candidate candidate{
        node->index, {}, static_cast<std::size_t>(std::max<std::int64_t>(0, json::get_int(answer, {"NumPDBViolations"})))};
    for (const json::Value& one : json::get_array(answer, {"Pods"})) {
      const auto uid = json::get_string(one, {"UID"});
      const auto victim = std::ranges::find_if(node->pods, [&](const auto& pod) { return pod->view().meta.uid == uid; });
      if (victim == node->pods.end())
        return invalid(fmt::format("extender: {} claims to preempt pod (UID: {}) on node: {}, but the pod is not found on that node",
                                   extender.url_prefix, uid, node->name));
      candidate.victims.push_back(*victim);
    }
    if (candidate.victims.empty() && !extender.ignorable)
      return invalid(fmt::format("expected at least one victim pod on node \"{}\"", node->name));
    if (candidate.victims.empty()) continue;
    std::ranges::stable_sort(candidate.victims, [](const auto& a, const auto& b) { return placement::is_more_important(*a, *b); });
    out.push_back(std::move(candidate));
  }
  std::ranges::sort(out, {}, &placement::Candidate::node);
  return out;
}

Result<std::vector<placement::Candidate>> Extenders::process_preemption(const placement::Cluster& cluster, const placement::PodInfo& pod,
                                                                        const json::Value& pod_document,
                                                                        std::vector<placement::Candidate> candidates,
                                                                        const Documents& documents) const {
  for (std::size_t i = 0; i < configs_.size() && !candidates.empty(); ++i) {
    if (configs_[i].preempt_verb.empty() || !is_interested(configs_[i], pod.view())) continue;
    auto left = ask_preemption(i, cluster, pod_document, candidates, documents);
    if (left)
      candidates = std::move(*left);
    else if (!configs_[i].ignorable)
      return std::unexpected(left.error());
  }
  return candidates;
}

Result<bool> Extenders::bind(const model::PodView& pod, const std::string& node) const {
  for (std::size_t i = 0; i < configs_.size(); ++i) {
    if (configs_[i].bind_verb.empty() || !is_interested(configs_[i], pod)) continue;
    const json::Value body = {{"PodName", pod.name()}, {"PodNamespace", pod.ns()}, {"PodUID", pod.meta.uid}, {"Node", node}};
    auto answer = post_(i, configs_[i].bind_verb, json::serialize(body));
    std::string error = answer ? "" : answer.error().message;
    if (answer)
      if (const auto result = json::parse(*answer)) error = json::get_string(*result, {"Error"});
    if (error.empty()) return true;
    if (!configs_[i].ignorable) return invalid(error);
  }
  return false;
}

}  // namespace berth::scheduler
