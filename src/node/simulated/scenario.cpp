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

Result<Scenario> Scenario::parse(std::string_view text) {
  const auto document = json::parse_yaml(text);
  if (!document) return std::unexpected(document.error());
  if (!document->is_object()) return invalid("a scenario is an object with the keys kubelet and pods");
  Scenario scenario;
  for (const auto& [key, value] : document->get_object()) {
    if (key == "kubelet") {
      auto settings = eviction::read_kubelet_configuration(value);
      if (!settings) return invalid("kubelet: " + settings.error());
      if (const auto wrong = eviction::validate(*settings)) return invalid("kubelet: " + *wrong);
      scenario.kubelet_ = std::move(*settings);
    } else if (key == "pods") {
      if (!value.is_array()) return invalid("pods: must be a list of rules");
      for (const json::Value& entry : value.get_array()) {
        auto rule = read_rule(entry);
        if (!rule) return invalid(fmt::format("pods[{}]: {}", scenario.rules_.size(), rule.error().message));
        scenario.rules_.push_back(std::move(*rule));
      }
    } else {
      return invalid(fmt::format("unknown key \"{}\"; a scenario has kubelet and pods", std::string_view(key)));
    }
  }
  return scenario;
}

Result<Scenario::Rule> Scenario::read_rule(const json::Value& value) {
  if (!value.is_object()) return invalid("must be an object");
  Rule rule;
  for (const auto& [key, field] : value.get_object()) {
    if (key == "set") {
      if (!field.is_object()) return invalid("set: must be an object");
      for (const auto& [name, setting] : field.get_object()) {
        if (!is_known(name)) return invalid(fmt::format("set: there is no sim.berth.dev/{}", std::string_view(name)));
        // Numbers and booleans as they would stand in an annotation.
        if (setting.is_object() || setting.is_array() || setting.is_null())
          return invalid(fmt::format("set.{}: must be a text", std::string_view(name)));
        rule.set.emplace_back(fmt::format("{}{}", kAnnotationPrefix, std::string_view(name)),
                              setting.is_string() ? std::string(json::as_view(setting)) : json::serialize(setting));
      }
      continue;
    }
    if (!field.is_string()) return invalid(fmt::format("{}: must be a text", std::string_view(key)));
    const std::string text(json::as_view(field));
    if (key == "namespace")
      rule.ns = text;
    else if (key == "name")
      rule.name = text;
    else if (key == "node")
      rule.node = text;
    else if (key == "selector") {
      auto selector = model::Selector::parse(text);
      if (!selector) return std::unexpected(selector.error());
      rule.selector = std::move(*selector);
    } else {
      return invalid(fmt::format("unknown key \"{}\"; a rule has namespace, name, node, selector and set", std::string_view(key)));
    }
  }
  // What pods would complain of one by one is said once, here.
  for (const auto& [key, text] : rule.set) {
    const std::string plain = key.substr(0, key.find('.', kAnnotationPrefix.size()));
    const json::Value probe = json::Object{{"metadata", json::Object{{"annotations", json::Object{{plain, text}}}}},
                                           {"spec", json::Object{{"initContainers", json::Array{json::Object{{"name", "init"}}}},
                                                                 {"containers", json::Array{json::Object{{"name", "main"}}}}}}};
    if (const PodBehaviour behaviour = read_behaviour(probe); !behaviour.problems.empty())
      return invalid("set: " + behaviour.problems.front());
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
