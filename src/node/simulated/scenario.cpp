#include "node/simulated/scenario.h"

#include "node/simulated/behaviour.h"

namespace berth::node::simulated {
namespace {

constexpr std::array<std::string_view, 15> kKeys = {"start-delay", "run-for",        "exit-code",  "ready-after", "ready", "liveness-after",
                                                    "init-for",    "init-exit-code", "stop-after", "image-pull",  "cpu",   "memory",
                                                    "disk",        "inodes",         "pids"};

bool is_known(std::string_view key) { return !key.empty() && std::ranges::find(kKeys, key.substr(0, key.find('.'))) != kKeys.end(); }

}  // namespace

bool matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, retry = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      retry = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++retry;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

Result<Scenario> Scenario::parse(std::string_view text, const std::string& file, std::vector<std::string>* notes) {
  Scenario out;
  const auto read = config::read_text(text, {.file = file, .notes = notes}, [&](const config::Reader& root) {
    out = {};
    if (!root.expect_object()) return root.problem("a scenario is a map with kubelet and pods");
    root.only({"kubelet", "pods"});
    if (const auto kubelet = root.field("kubelet"); kubelet.is_present()) {
      out.kubelet_ = eviction::read_kubelet_fields(kubelet);
      if (root.problems().empty())
        for (const std::string& wrong : eviction::start_errors(*out.kubelet_)) kubelet.problem(wrong);
    }
    for (const config::Reader& item : root.field("pods").items()) out.rules_.push_back(read_rule(item));
  });
  if (!read) return std::unexpected(read.error());
  return out;
}

Scenario::Rule Scenario::read_rule(const config::Reader& at) {
  Rule rule;
  if (!at.expect_object()) return rule;
  at.only({"namespace", "name", "node", "selector", "set"});
  rule.ns = at.string("namespace", "*");
  rule.name = at.string("name", "*");
  rule.node = at.string("node", "*");
  if (at.has("selector")) {
    if (auto selector = model::Selector::parse(at.string("selector")))
      rule.selector = std::move(*selector);
    else
      at.problem("selector", selector.error().message);
  }
  const config::Reader set = at.field("set");
  if (!set.is_present()) {
    at.problem("set", "required: what the pods of this rule do");
    return rule;
  }
  for (const auto& [name, value] : set.members()) {
    if (!is_known(name)) {
      value.problem(fmt::format("there is no sim.berth.dev/{}{}", name, config::suggestion(name, kKeys)));
      continue;
    }
    const auto texts = value.texts();
    if (texts.size() != 1) continue;
    rule.set.emplace_back(fmt::format("{}{}", kAnnotationPrefix, name), texts[0]);
    // What pods would complain of one by one is said once, here.
    const std::string plain = fmt::format("{}{}", kAnnotationPrefix, name.substr(0, name.find('.')));
    const json::Value probe = json::Object{{"metadata", json::Object{{"annotations", json::Object{{plain, texts[0]}}}}},
                                           {"spec", json::Object{{"initContainers", json::Array{json::Object{{"name", "init"}}}},
                                                                 {"containers", json::Array{json::Object{{"name", "main"}}}}}}};
    if (const PodBehaviour behaviour = read_behaviour(probe); !behaviour.problems.empty()) value.problem(behaviour.problems.front());
  }
  return rule;
}

json::Value Scenario::apply(json::Value pod) const {
  for (const Rule& rule : rules_) {
    if (!matches(rule.ns, json::get_string(pod, {"metadata", "namespace"})) ||
        !matches(rule.name, json::get_string(pod, {"metadata", "name"})) ||
        !matches(rule.node, json::get_string(pod, {"spec", "nodeName"})))
      continue;
    if (rule.selector && !rule.selector->matches(model::Labels::from_json(json::find(pod, {"metadata", "labels"})))) continue;
    for (const auto& [key, text] : rule.set) {
      json::Value* annotations = json::find(pod, {"metadata", "annotations"});
      if (annotations && annotations->is_object()) {
        if (!annotations->get_object().contains(key)) annotations->get_object()[key] = text;
      } else if (json::Value* metadata = json::find(pod, {"metadata"}); metadata && metadata->is_object()) {
        metadata->get_object()["annotations"] = json::Object{{key, text}};
      }
    }
  }
  return pod;
}

}  // namespace berth::node::simulated
