#include "apiserver/auth/default_roles.h"

#include "base/split.h"
#include "model/features.h"

namespace berth::apiserver {

/// auth/default_roles.txt, which says what its lines mean.
std::string_view default_roles_text();

namespace auth {
namespace {

using Words = std::vector<std::string_view>;

struct Entry {
  Words words;
  std::vector<Words> rules;
};

/// What there is with these features.
std::vector<Entry> entries(model::Features features) {
  constexpr std::string_view kIf = "if=";
  std::vector<Entry> out;
  bool lost_rules = false;
  const auto close = [&] {
    if (lost_rules && out.back().rules.empty()) out.pop_back();
    lost_rules = false;
  };
  for (const auto line : words(default_roles_text(), '\n')) {
    auto said = words(line).list();
    if (line.front() == '#') continue;
    if (line.front() != ' ') {
      close();
      out.push_back({std::move(said), {}});
      continue;
    }
    if (said[0].starts_with(kIf)) {
      const bool is_on = model::has(features, *model::feature_named(said[0].substr(kIf.size())));
      lost_rules |= !is_on;
      if (!is_on) continue;
      said.erase(said.begin());
    }
    out.back().rules.push_back(std::move(said));
  }
  close();
  return out;
}

json::Array list(std::string_view text) {
  constexpr std::string_view kVerbLists[][2] = {
      {"READ", "get,list,watch"},
      {"WRITE", "create,delete,deletecollection,patch,update"},
      {"ALL", "create,delete,deletecollection,get,list,patch,update,watch"},
      {"EVENTS", "create,patch,update"},
  };
  for (const auto& [name, verbs] : kVerbLists)
    if (text == name) text = verbs;
  json::Array out;
  for (const auto one : split(text, ',')) out.emplace_back(one == "core" ? std::string_view() : one);
  return out;
}

json::Object rule(const Words& words) {
  if (words[1] == "url") return {{"nonResourceURLs", list(words[2])}, {"verbs", list(words[0])}};
  json::Object out{{"apiGroups", list(words[1])}, {"resources", list(words[2])}, {"verbs", list(words[0])}};
  if (words.size() > 3) out["resourceNames"] = list(words[3]);
  return out;
}

/// Document with the metadata all defaults have; `name` may carry a namespace in front.
json::Object document(std::string_view kind, std::string_view name) {
  json::Object metadata{{"annotations", {{"rbac.authorization.kubernetes.io/autoupdate", "true"}}},
                        {"labels", {{"kubernetes.io/bootstrapping", "rbac-defaults"}}}};
  auto slash = name.find('/');
  metadata["name"] = name.substr(slash == std::string_view::npos ? 0 : slash + 1);
  if (slash != std::string_view::npos) metadata["namespace"] = name.substr(0, slash);
  return {{"apiVersion", "rbac.authorization.k8s.io/v1"}, {"kind", kind}, {"metadata", std::move(metadata)}};
}

json::Value role(const Entry& entry, std::string_view name) {
  json::Object object = document(name.find('/') == std::string_view::npos ? "ClusterRole" : "Role", name);
  constexpr std::string_view kAggregate = "rbac.authorization.k8s.io/aggregate-to-", kTo = "to=", kGathers = "gathers=";
  for (const auto word : entry.words) {
    if (word.starts_with(kTo))
      object["metadata"].get_object()["labels"].get_object()[fmt::format("{}{}", kAggregate, word.substr(kTo.size()))] = "true";
    if (!word.starts_with(kGathers)) continue;
    json::Object labels{{fmt::format("{}{}", kAggregate, word.substr(kGathers.size())), "true"}};
    object["aggregationRule"] = json::Object{{"clusterRoleSelectors", json::Array{json::Object{{"matchLabels", std::move(labels)}}}}};
  }
  json::Array rules;
  for (const auto& words : entry.rules) rules.emplace_back(rule(words));
  object["rules"] = std::move(rules);
  return object;
}

json::Value binding(std::string_view of, std::string_view role, std::span<const std::string_view> to) {
  const bool cluster = of.find('/') == std::string_view::npos;
  json::Object object = document(cluster ? "ClusterRoleBinding" : "RoleBinding", of);
  object["roleRef"] = json::Object{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", cluster ? "ClusterRole" : "Role"}, {"name", role}};
  json::Array subjects;
  for (std::string_view text : to) {
    std::string_view name = text.substr(2);
    if (text.front() == 's') {
      auto slash = name.find('/');
      subjects.push_back(json::Object{{"kind", "ServiceAccount"}, {"name", name.substr(slash + 1)}, {"namespace", name.substr(0, slash)}});
    } else {
      subjects.push_back(
          json::Object{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", text.front() == 'g' ? "Group" : "User"}, {"name", name}});
    }
  }
  if (!subjects.empty()) object["subjects"] = std::move(subjects);
  return object;
}

}  // namespace

std::vector<json::Value> default_rbac_objects(model::Features features) {
  std::vector<json::Value> objects, of_controllers;
  for (const Entry& entry : entries(features)) {
    const auto word = entry.words[0], name = entry.words[1];
    if (word == "role") {
      objects.push_back(role(entry, name));
    } else if (word == "bind") {
      objects.push_back(binding(name, entry.words[2], std::span(entry.words).subspan(3)));
    } else {
      const std::string own = fmt::format("system:controller:{}", name), account = fmt::format("s:kube-system/{}", name);
      objects.push_back(role(entry, own));
      of_controllers.push_back(binding(own, own, std::array{std::string_view(account)}));
    }
  }
  std::ranges::move(of_controllers, std::back_inserter(objects));
  return objects;
}

}  // namespace auth
}  // namespace berth::apiserver
