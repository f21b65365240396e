// create: from files, or one object described by flags as the documents do it (sa, configmap, clusterrolebinding, …).
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cli/parse.h"
#include "cli/verbs/manifests.h"
#include "cli/verbs/verbs.h"

namespace berth::cli {

std::string namespace_of(const Session& session, const model::KindInfo& kind, const json::Value& document) {
  if (!kind.namespaced) return "";
  return std::string(json::get_string(document, {"metadata", "namespace"}, session.ns()));
}

int for_each_manifest(const ConnectionFlags& flags, const std::vector<std::string>& files,
                      const std::function<int(Session&, const model::KindInfo&, json::Value&)>& each) {
  auto manifests = read_manifests(files);
  if (!manifests) return report(manifests.error());
  if (manifests->empty()) return report(Error{ErrorCode::kInvalid, "no objects passed"});
  auto session = Session::open(flags);
  if (!session) return report(session.error());
  int code = 0;
  for (Manifest& manifest : *manifests) code = std::max(code, each(**session, *manifest.kind, manifest.document));
  return code;
}

namespace {

/// Creates one object and says so.
int create_one(Session& session, const json::Value& document) {
  auto kind = kind_of(document);
  if (!kind) return report(kind.error());
  auto created = session.client().create_and_wait((*kind)->gvr(), namespace_of(session, **kind, document), document);
  if (!created) return report(created.error());
  std::printf("%s created\n", qualified_name(**kind, json::get_string(*created, {"metadata", "name"})).c_str());
  return 0;
}

json::Value object_of(const char* api_version, const char* kind, const std::string& name) {
  return json::Object{{"apiVersion", api_version}, {"kind", kind}, {"metadata", json::Object{{"name", name}}}};
}

/// Adds a file (or every file of a directory) to a ConfigMap's data: `PATH` under the file's name, or `KEY=PATH`.
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

int create_named(const std::string& type, const std::vector<std::string>& args) {
  const bool is_account = type == "sa" || type == "serviceaccount";
  const bool is_map = type == "configmap" || type == "cm";
  const bool is_cluster_binding = type == "clusterrolebinding", is_binding = type == "rolebinding";
  CLI::App app(fmt::format("Creates a {}", type), "berth create " + type);
  ConnectionFlags flags;
  flags.add_to(app);
  std::string name, cluster_role, role;
  std::vector<std::string> from_file, from_literal, accounts, users, groups;
  app.add_option("name", name, "Its name")->required();
  if (is_map) {
    app.add_option("--from-file", from_file, "[KEY=]FILE or a directory; may be repeated");
    app.add_option("--from-literal", from_literal, "KEY=VALUE; may be repeated");
  }
  if (is_cluster_binding || is_binding) {
    app.add_option("--clusterrole", cluster_role, "The ClusterRole it grants");
    if (is_binding) app.add_option("--role", role, "The Role it grants");
    app.add_option("--serviceaccount", accounts, "NAMESPACE:NAME it grants it to; may be repeated");
    app.add_option("--user", users, "User it grants it to; may be repeated");
    app.add_option("--group", groups, "Group it grants it to; may be repeated");
  }
  if (const auto code = parse_args(app, args)) return *code;
  json::Value document;
  if (is_account) {
    document = object_of("v1", "ServiceAccount", name);
  } else if (is_map) {
    document = object_of("v1", "ConfigMap", name);
    json::Object data;
    for (const std::string& spec : from_file)
      if (auto added = add_file(data, spec); !added) return report(added.error());
    for (const std::string& literal : from_literal) {
      const std::size_t equals = literal.find('=');
      if (equals == std::string::npos || equals == 0)
        return report(Error{ErrorCode::kInvalid, fmt::format("invalid literal source {}, expected key=value", literal)});
      data[literal.substr(0, equals)] = literal.substr(equals + 1);
    }
    if (!data.empty()) document.get_object()["data"] = std::move(data);
  } else if (is_cluster_binding || is_binding) {
    if (cluster_role.empty() == role.empty())
      return report(Error{ErrorCode::kInvalid,
                          is_binding ? "exactly one of clusterrole or role must be specified" : "clusterrole must be specified"});
    document = object_of("rbac.authorization.k8s.io/v1", is_binding ? "RoleBinding" : "ClusterRoleBinding", name);
    document.get_object()["roleRef"] = json::Object{{"apiGroup", "rbac.authorization.k8s.io"},
                                                    {"kind", role.empty() ? "ClusterRole" : "Role"},
                                                    {"name", role.empty() ? cluster_role : role}};
    json::Array subjects;
    for (const std::string& user : users)
      subjects.push_back(json::Object{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "User"}, {"name", user}});
    for (const std::string& group : groups)
      subjects.push_back(json::Object{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "Group"}, {"name", group}});
    for (const std::string& account : accounts) {
      const std::size_t colon = account.find(':');
      if (colon == std::string::npos || colon == 0 || colon + 1 == account.size())
        return report(Error{ErrorCode::kInvalid, "serviceaccount must be <namespace>:<name>"});
      subjects.push_back(
          json::Object{{"kind", "ServiceAccount"}, {"name", account.substr(colon + 1)}, {"namespace", account.substr(0, colon)}});
    }
    document.get_object()["subjects"] = std::move(subjects);
  } else {
    document = object_of("v1", "Namespace", name);
  }
  auto session = Session::open(flags);
  if (!session) return report(session.error());
  return create_one(**session, document);
}

}  // namespace

int run_create(const std::vector<std::string>& args) {
  for (const char* type : {"sa", "serviceaccount", "configmap", "cm", "clusterrolebinding", "rolebinding", "namespace", "ns"})
    if (!args.empty() && args[0] == type) return create_named(type, {args.begin() + 1, args.end()});
  CLI::App app(
      "Creates the objects of files (JSON or YAML, '-' for standard input), or one by its flags:\n"
      "berth create sa|configmap|clusterrolebinding|rolebinding|namespace NAME …",
      "berth create");
  ConnectionFlags flags;
  flags.add_to(app);
  std::vector<std::string> files;
  app.add_option("-f,--filename", files, "File or directory; may be repeated")->required();
  if (const auto code = parse_args(app, args)) return *code;
  return for_each_manifest(flags, files,
                           [](Session& session, const model::KindInfo&, json::Value& document) { return create_one(session, document); });
}

}  // namespace berth::cli
