#include "cli/verbs/create_named.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "base/base64.h"
#include "base/split.h"
#include "cli/command/kubectl_words.h"
#include "cli/command/parse.h"
#include "cli/verbs/manifests.h"
#include "cli/verbs/output.h"

namespace berth::cli {
namespace {

/// All that the flags of any type can say. A list takes one value each time its flag stands: what follows `--` is the command.
struct Description {
  std::string name, cluster_role, role, description, min_available, max_unavailable, selector, hard,
      preemption_policy = "PreemptLowerPriority";
  std::vector<std::string> from_file, from_literal, accounts, users, groups, images, command, verbs, resources, resource_names;
  std::int64_t replicas = 1, port = 0, value = 0;
  bool is_global_default = false;
};

struct Type {
  std::vector<std::string> names;  ///< The first is shown.
  const char* summary;
  void (*add_flags)(CLI::App& app, Description& into);
  Result<json::Value> (*build)(const Description& said);
};

json::Value object_of(const char* api_version, const char* kind, const std::string& name) {
  return json::Object{{"apiVersion", api_version}, {"kind", kind}, {"metadata", json::Object{{"name", name}}}};
}

/// "a=b,c=d" as an object.
Result<json::Object> pairs_of(std::string_view text, const char* flag) {
  json::Object out;
  for (const std::string_view pair : words(text, ',')) {
    const std::size_t equals = pair.find('=');
    if (equals == std::string::npos || equals == 0) return invalid(fmt::format("{}: \"{}\": key=value is wanted", flag, pair));
    out[pair.substr(0, equals)] = pair.substr(equals + 1);
  }
  return out;
}

/// Adds a file (or every file of a directory) to the data: `PATH` under the file's name, or `KEY=PATH`.
Result<void> add_file(json::Object& data, const std::string& spec) {
  const std::size_t equals = spec.find('=');
  const std::string path = equals == std::string::npos ? spec : spec.substr(equals + 1);
  std::error_code none;
  if (std::filesystem::is_directory(path, none)) {
    if (equals != std::string::npos) return invalid("cannot give a key name for a directory path");
    for (const auto& entry : std::filesystem::directory_iterator(path, none))
      if (entry.is_regular_file(none))
        if (auto added = add_file(data, entry.path()); !added) return added;
    return {};
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) return invalid(fmt::format("error reading {}: {}", path, std::strerror(errno)));
  std::ostringstream text;
  text << in.rdbuf();
  data[equals == std::string::npos ? std::filesystem::path(path).filename().string() : spec.substr(0, equals)] = text.str();
  return {};
}

Result<json::Object> data_of(const Description& said) {
  json::Object data;
  for (const std::string& spec : said.from_file)
    if (auto added = add_file(data, spec); !added) return std::unexpected(added.error());
  for (const std::string& literal : said.from_literal) {
    const std::size_t equals = literal.find('=');
    if (equals == std::string::npos || equals == 0) return invalid(fmt::format("invalid literal source {}, expected key=value", literal));
    data[literal.substr(0, equals)] = literal.substr(equals + 1);
  }
  return data;
}

Result<json::Value> binding(const Description& said, bool is_cluster_wide) {
  if (said.cluster_role.empty() == said.role.empty())
    return invalid(is_cluster_wide ? "clusterrole must be specified" : "exactly one of clusterrole or role must be specified");
  json::Value out = object_of("rbac.authorization.k8s.io/v1", is_cluster_wide ? "ClusterRoleBinding" : "RoleBinding", said.name);
  out.get_object()["roleRef"] = json::Object{{"apiGroup", "rbac.authorization.k8s.io"},
                                             {"kind", said.role.empty() ? "ClusterRole" : "Role"},
                                             {"name", said.role.empty() ? said.cluster_role : said.role}};
  json::Array subjects;
  for (const std::string& user : said.users)
    subjects.push_back(json::Object{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "User"}, {"name", user}});
  for (const std::string& group : said.groups)
    subjects.push_back(json::Object{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Group"}, {"name", group}});
  for (const std::string& account : said.accounts) {
    const std::size_t colon = account.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 1 == account.size())
      return invalid("serviceaccount must be <namespace>:<name>");
    subjects.push_back(
        json::Object{{"kind", "ServiceAccount"}, {"name", account.substr(colon + 1)}, {"namespace", account.substr(0, colon)}});
  }
  out.get_object()["subjects"] = std::move(subjects);
  return out;
}

Result<json::Value> role(const Description& said, bool is_cluster_wide) {
  if (said.verbs.empty()) return invalid("at least one verb must be specified");
  if (said.resources.empty()) return invalid("at least one resource must be specified");
  const auto strings = [](const std::vector<std::string>& list) {
    json::Array out;
    for (const std::string& given : list)
      for (const std::string_view one : words(given, ',')) out.emplace_back(one);
    return out;
  };
  json::Array rules;
  for (const std::string& given : said.resources)
    for (const std::string& word : words(given, ',').list<std::string>()) {
      const std::size_t slash = word.find('/');
      auto kind = resolve_resource(word.substr(0, slash));
      if (!kind && word != "*") return std::unexpected(kind.error());
      const std::string group = word == "*" ? "*" : (*kind)->group;
      const std::string plural = word == "*" ? word : (*kind)->plural + (slash == std::string::npos ? "" : word.substr(slash));
      const auto same = std::ranges::find_if(
          rules, [&](const json::Value& rule) { return json::as_view(json::get_array(rule, {"apiGroups"})[0]) == group; });
      if (same != rules.end()) {
        same->get_object()["resources"].get_array().emplace_back(plural);
        continue;
      }
      json::Object rule{{"apiGroups", json::Array{group}}, {"resources", json::Array{plural}}, {"verbs", strings(said.verbs)}};
      if (!said.resource_names.empty()) rule["resourceNames"] = strings(said.resource_names);
      rules.push_back(std::move(rule));
    }
  json::Value out = object_of("rbac.authorization.k8s.io/v1", is_cluster_wide ? "ClusterRole" : "Role", said.name);
  out.get_object()["rules"] = std::move(rules);
  return out;
}

/// "quay.io/team/web:1" → "web"
std::string container_name(std::string image) {
  image = image.substr(image.rfind('/') == std::string::npos ? 0 : image.rfind('/') + 1);
  return image.substr(0, image.find_first_of(":@"));
}

json::Value pod_spec(const Description& said) {
  json::Array containers;
  for (const std::string& image : said.images) {
    json::Object container{{"name", container_name(image)}, {"image", image}};
    if (said.port > 0) container["ports"] = json::Array{json::Object{{"containerPort", said.port}}};
    if (!said.command.empty()) {
      json::Array words;
      for (const std::string& word : said.command) words.emplace_back(word);
      container["command"] = std::move(words);
    }
    containers.push_back(std::move(container));
  }
  return json::Object{{"containers", std::move(containers)}};
}

Result<json::Value> deployment(const Description& said) {
  if (said.images.empty()) return invalid("--image: name the image");
  json::Value out = object_of("apps/v1", "Deployment", said.name);
  const json::Object labels{{"app", said.name}};
  json::set(out, {"metadata", "labels"}, labels);
  json::set(out, {"spec", "replicas"}, said.replicas);
  json::set(out, {"spec", "selector", "matchLabels"}, labels);
  json::set(out, {"spec", "template", "metadata", "labels"}, labels);
  json::set(out, {"spec", "template", "spec"}, pod_spec(said));
  return out;
}

Result<json::Value> job(const Description& said) {
  if (said.images.size() != 1) return invalid("--image: name one image");
  json::Value out = object_of("batch/v1", "Job", said.name);
  json::set(out, {"spec", "template", "spec"}, pod_spec(said));
  json::set(out, {"spec", "template", "spec", "restartPolicy"}, json::Value("Never"));
  return out;
}

Result<json::Value> disruption_budget(const Description& said) {
  if (said.selector.empty()) return invalid("a selector must be specified");
  if (said.min_available.empty() == said.max_unavailable.empty())
    return invalid("exactly one of min-available and max-unavailable must be specified");
  auto labels = pairs_of(said.selector, "--selector");
  if (!labels) return std::unexpected(labels.error());
  const std::string& text = said.min_available.empty() ? said.max_unavailable : said.min_available;
  const bool is_number = text.find_first_not_of("0123456789") == std::string::npos;
  json::Value out = object_of("policy/v1", "PodDisruptionBudget", said.name);
  json::set(out, {"spec", said.min_available.empty() ? "maxUnavailable" : "minAvailable"},
            is_number ? json::Value(static_cast<std::int64_t>(std::strtoll(text.c_str(), nullptr, 10))) : json::Value(text));
  json::set(out, {"spec", "selector", "matchLabels"}, std::move(*labels));
  return out;
}

void data_flags(CLI::App& app, Description& into) {
  app.add_option("--from-file", into.from_file, "[KEY=]FILE or a directory; may be repeated")->allow_extra_args(false);
  app.add_option("--from-literal", into.from_literal, "KEY=VALUE; may be repeated")->allow_extra_args(false);
}
void subject_flags(CLI::App& app, Description& into) {
  app.add_option("--clusterrole", into.cluster_role, "The ClusterRole it grants");
  app.add_option("--serviceaccount", into.accounts, "NAMESPACE:NAME it grants it to; may be repeated")->allow_extra_args(false);
  app.add_option("--user", into.users, "User it grants it to; may be repeated")->allow_extra_args(false);
  app.add_option("--group", into.groups, "Group it grants it to; may be repeated")->allow_extra_args(false);
}
void rule_flags(CLI::App& app, Description& into) {
  app.add_option("--verb", into.verbs, "get,list,…; may be repeated")->allow_extra_args(false);
  app.add_option("--resource", into.resources, "pods,deployments.apps,pods/log,…; may be repeated")->allow_extra_args(false);
  app.add_option("--resource-name", into.resource_names, "Only objects of these names")->allow_extra_args(false);
}
void image_flags(CLI::App& app, Description& into) {
  app.add_option("--image", into.images, "The container's image; may be repeated")->allow_extra_args(false);
  app.add_option("command", into.command, "-- COMMAND [ARGS…] to run instead of the image's");
}
void no_flags(CLI::App&, Description&) {}

// Longer than a screen: a table of what `create` makes by name.
const std::vector<Type>& types() {
  static const std::vector<Type> table = {
      {{"sa", "serviceaccount"},
       "an account for pods",
       no_flags,
       [](const Description& said) -> Result<json::Value> { return object_of("v1", "ServiceAccount", said.name); }},
      {{"configmap", "cm"},
       "data for pods",
       data_flags,
       [](const Description& said) -> Result<json::Value> {
         auto data = data_of(said);
         if (!data) return std::unexpected(data.error());
         json::Value out = object_of("v1", "ConfigMap", said.name);
         if (!data->empty()) out.get_object()["data"] = std::move(*data);
         return out;
       }},
      {{"secret"},
       "secret data for pods: create secret generic NAME",
       data_flags,
       [](const Description& said) -> Result<json::Value> {
         auto data = data_of(said);
         if (!data) return std::unexpected(data.error());
         for (auto& [key, value] : *data) value = base64_encode(json::as_view(value));
         json::Value out = object_of("v1", "Secret", said.name);
         out.get_object()["type"] = "Opaque";
         if (!data->empty()) out.get_object()["data"] = std::move(*data);
         return out;
       }},
      {{"clusterrolebinding"},
       "who has a ClusterRole everywhere",
       subject_flags,
       [](const Description& said) { return binding(said, true); }},
      {{"rolebinding"},
       "who has a role in a namespace",
       [](CLI::App& app, Description& into) {
         subject_flags(app, into);
         app.add_option("--role", into.role, "The Role it grants");
       },
       [](const Description& said) { return binding(said, false); }},
      {{"clusterrole"}, "rights to resources", rule_flags, [](const Description& said) { return role(said, true); }},
      {{"role"}, "rights to resources of a namespace", rule_flags, [](const Description& said) { return role(said, false); }},
      {{"namespace", "ns"},
       "a namespace (new-project makes one with a node selector)",
       no_flags,
       [](const Description& said) -> Result<json::Value> { return object_of("v1", "Namespace", said.name); }},
      {{"deployment", "deploy"},
       "pods of an image, replaced when they go",
       [](CLI::App& app, Description& into) {
         image_flags(app, into);
         app.add_option("-r,--replicas", into.replicas, "How many")->capture_default_str();
         app.add_option("--port", into.port, "The port that the container listens on");
       },
       deployment},
      {{"job"}, "a pod that runs to its end", image_flags, job},
      {{"priorityclass", "pc"},
       "a name for a priority of pods",
       [](CLI::App& app, Description& into) {
         app.add_option("--value", into.value, "The priority, at most 1000000000")->capture_default_str();
         app.add_flag("--global-default", into.is_global_default, "Of pods that name no class");
         app.add_option("--description", into.description, "When to use it");
         app.add_option("--preemption-policy", into.preemption_policy, "PreemptLowerPriority or Never")->capture_default_str();
       },
       [](const Description& said) -> Result<json::Value> {
         json::Value out = object_of("scheduling.k8s.io/v1", "PriorityClass", said.name);
         json::Object& fields = out.get_object();
         fields["value"] = said.value;
         fields["globalDefault"] = said.is_global_default;
         fields["description"] = said.description;
         fields["preemptionPolicy"] = said.preemption_policy;
         return out;
       }},
      {{"poddisruptionbudget", "pdb"},
       "how many pods may be away at once",
       [](CLI::App& app, Description& into) {
         app.add_option("--selector", into.selector, "Labels of the pods: key=value,…");
         app.add_option("--min-available", into.min_available, "A number or a percentage");
         app.add_option("--max-unavailable", into.max_unavailable, "A number or a percentage");
       },
       disruption_budget},
      {{"quota", "resourcequota"},
       "limits of a namespace",
       [](CLI::App& app, Description& into) { app.add_option("--hard", into.hard, "resource=quantity,…"); },
       [](const Description& said) -> Result<json::Value> {
         auto hard = pairs_of(said.hard, "--hard");
         if (!hard) return std::unexpected(hard.error());
         json::Value out = object_of("v1", "ResourceQuota", said.name);
         json::set(out, {"spec", "hard"}, std::move(*hard));
         return out;
       }},
  };
  return table;
}

int unknown_type(const std::vector<std::string>& args) {
  const std::vector<std::string> known = creatable_types();
  if (args[0] == "pod" || args[0] == "pods" || args[0] == "po") {
    const std::vector<std::string> rest(args.begin() + 1, args.end());
    std::fprintf(stderr, "error: a pod is made from a file (berth create -f FILE), or by kubectl, which takes the same kubeconfig:\n  %s\n",
                 kubectl_line("run", rest).c_str());
    return 2;
  }
  std::fprintf(stderr, "error: berth create makes no \"%s\" by flags%s\n", args[0].c_str(), did_you_mean(args[0], known).c_str());
  std::fprintf(
      stderr, "By flags: %s. Everything else from a file (berth create -f FILE), or with kubectl, which takes the same kubeconfig:\n  %s\n",
      fmt::format("{}", fmt::join(known, ", ")).c_str(), kubectl_line("create", args).c_str());
  return 2;
}

}  // namespace

std::vector<std::string> creatable_types() {
  std::vector<std::string> out;
  for (const Type& type : types()) out.push_back(type.names[0]);
  return out;
}

int run_create_named(const std::vector<std::string>& args) {
  const auto type =
      std::ranges::find_if(types(), [&](const Type& one) { return std::ranges::find(one.names, args[0]) != one.names.end(); });
  if (type == types().end()) return unknown_type(args);
  std::vector<std::string> rest(args.begin() + 1, args.end());
  if (type->names[0] == "secret" && !rest.empty() && !rest[0].starts_with('-')) {
    if (rest[0] != "generic") return unknown_type(args);
    rest.erase(rest.begin());
  }
  CLI::App app(fmt::format("Creates {}", type->summary), "berth create " + args[0]);
  ConnectionFlags flags;
  flags.add_to(app);
  Description said;
  ChangeFlags change;
  app.add_option("name", said.name, "Its name")->required();
  type->add_flags(app, said);
  change.add_to(app);
  if (const auto code = parse_args(app, rest)) return *code;
  if (said.name.ends_with(".yaml") || said.name.ends_with(".yml") || said.name.ends_with(".json"))
    std::fprintf(stderr, "warning: \"%s\" is taken as the name; the objects of a file are created by `berth create -f %s`\n",
                 said.name.c_str(), said.name.c_str());
  auto document = type->build(said);
  if (!document) return report(document.error());
  const auto kind = kind_of(*document);
  if (!kind) return report(kind.error());
  if (change.is_client_run()) {
    change.print(**kind, *document, "created");
    return 0;
  }
  auto session = Session::open(flags);
  if (!session) return report(session.error());
  auto created = create_object(**session, **kind, *document,
                               joined_query({fmt::format("fieldManager={}", kCreator), change.query(), "fieldValidation=Strict"}));
  if (!created) return report(created.error());
  change.print(**kind, *created, "created");
  return 0;
}

}  // namespace berth::cli
