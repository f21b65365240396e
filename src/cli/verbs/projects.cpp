// new-project, project, projects, adm new-project: OpenShift's projects are namespaces; the kubeconfig's context says which one is used.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/command/kubeconfig_file.h"
#include "cli/command/parse.h"
#include "cli/command/session.h"
#include "cli/verbs/adm.h"
#include "cli/verbs/identity.h"
#include "cli/verbs/verbs.h"

namespace berth::cli {
namespace {

const client::Gvr kNamespaces{"", "v1", "namespaces"};

struct ProjectFlags {
  std::string name, node_selector, description, display_name, admin;
  CLI::Option* selector_option = nullptr;

  void add_to(CLI::App& app, bool is_admins) {
    app.add_option("name", name, "Project name")->required();
    app.add_option("--description", description, "Description");
    app.add_option("--display-name", display_name, "Display name");
    if (!is_admins) return;
    selector_option = app.add_option("--node-selector", node_selector,
                                     "Pods of the project go only to nodes with these labels; \"\" overrides the default");
    app.add_option("--admin", admin, "User who gets the admin role in it");
  }
};

/// The namespace, and the role of whoever administers it. Returns the exit code.
int create_project(Session& session, const ProjectFlags& flags, const std::string& requester) {
  json::Object annotations;
  if (flags.selector_option != nullptr && flags.selector_option->count() > 0)
    annotations["openshift.io/node-selector"] = flags.node_selector;
  if (!flags.description.empty()) annotations["openshift.io/description"] = flags.description;
  if (!flags.display_name.empty()) annotations["openshift.io/display-name"] = flags.display_name;
  if (!requester.empty()) annotations["openshift.io/requester"] = requester;
  json::Value project = {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", flags.name}}}};
  if (!annotations.empty()) json::set(project, {"metadata", "annotations"}, annotations);
  auto created = session.client().create_and_wait(kNamespaces, "", project);
  if (!created) return report(created.error());
  const std::string& admin = flags.admin.empty() ? requester : flags.admin;
  if (admin.empty()) return 0;
  const json::Value binding = {{"apiVersion", "rbac.authorization.k8s.io/v1"},
                               {"kind", "RoleBinding"},
                               {"metadata", {{"name", "admin"}, {"namespace", flags.name}}},
                               {"roleRef", {{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "ClusterRole"}, {"name", "admin"}}},
                               {"subjects", json::Array{{{"apiGroup", "rbac.authorization.k8s.io"}, {"kind", "User"}, {"name", admin}}}}};
  auto bound = session.client().create_and_wait({"rbac.authorization.k8s.io", "v1", "rolebindings"}, flags.name, binding);
  return bound ? 0 : report(bound.error());
}

/// Makes the namespace the one that the context uses.
Result<void> use_project(const ConnectionFlags& flags, const client::Connection& connection, const std::string& name) {
  auto file = KubeconfigFile::open(flags);
  if (!file) return std::unexpected(file.error());
  const json::Value* context = file->find("contexts", connection.context);
  if (context == nullptr || !context->is_object())
    return invalid(fmt::format("{}: it has no context \"{}\" to note the project in", file->path(), connection.context));
  json::Object changed = context->get_object();
  changed["namespace"] = name;
  file->put("contexts", connection.context, std::move(changed));
  return file->save();
}

Result<std::vector<std::string>> names_of_projects(Session& session) {
  auto page = session.client().list_and_wait(kNamespaces, "");
  if (!page) return fail(ErrorCode::kUnavailable, page.error().message);
  std::vector<std::string> out;
  for (const json::Value& one : page->items) out.emplace_back(json::get_string(one, {"metadata", "name"}));
  std::ranges::sort(out);
  return out;
}

}  // namespace

int run_adm_new_project(const std::vector<std::string>& args) {
  CLI::App app("Makes a namespace with a project node selector (openshift.io/node-selector)", "berth adm new-project");
  ConnectionFlags connection;
  connection.add_to(app);
  ProjectFlags flags;
  flags.add_to(app, true);
  if (const auto code = parse_args(app, args)) return *code;
  auto session = Session::open(connection);
  if (!session) return report(session.error());
  if (const int code = create_project(**session, flags, "")) return code;
  std::printf("Created project %s\n", flags.name.c_str());
  return 0;
}

int run_new_project(const std::vector<std::string>& args) {
  CLI::App app("Makes a project (a namespace) that you administer, and uses it from now on", "berth new-project");
  ConnectionFlags connection;
  connection.add_to(app);
  ProjectFlags flags;
  flags.add_to(app, false);
  bool keeps_config = false;
  app.add_flag("--skip-config-write", keeps_config, "Do not use it from now on");
  if (const auto code = parse_args(app, args)) return *code;
  auto session = Session::open(connection);
  if (!session) return report(session.error());
  auto user = who_am_i((*session)->client());
  if (!user) return report(user.error());
  if (const int code = create_project(**session, flags, *user)) return code;
  const std::string& url = (*session)->connection().http.url;
  if (keeps_config) {
    std::printf("Created project \"%s\" on server \"%s\".\n", flags.name.c_str(), url.c_str());
    return 0;
  }
  if (auto used = use_project(connection, (*session)->connection(), flags.name); !used) return report(used.error());
  std::printf("Now using project \"%s\" on server \"%s\".\n", flags.name.c_str(), url.c_str());
  return 0;
}

int run_project(const std::vector<std::string>& args) {
  CLI::App app("Tells which project (namespace) is used, or uses another one from now on", "berth project");
  ConnectionFlags flags;
  flags.add_to(app);
  std::string name;
  bool is_short = false;
  app.add_option("name", name, "The project to use");
  app.add_flag("-q,--short", is_short, "Only the name");
  if (const auto code = parse_args(app, args)) return *code;
  auto session = Session::open(flags);
  if (!session) return report(session.error());
  const std::string now = (*session)->ns();
  const std::string& url = (*session)->connection().http.url;
  if (name.empty() && is_short) {
    std::printf("%s\n", now.c_str());
    return 0;
  }
  if (name.empty()) {
    std::printf("Using project \"%s\" on server \"%s\".\n", now.c_str(), url.c_str());
    return 0;
  }
  if (auto found = (*session)->client().get_and_wait(kNamespaces, "", name); !found) {
    if (!found.error().is("NotFound")) return report(found.error());
    std::string known;
    if (auto names = names_of_projects(**session))
      for (const std::string& one : *names) known += "\n    * " + one;
    return report(Error{ErrorCode::kNotFound, fmt::format("A project named \"{}\" does not exist on \"{}\".{}{}", name, url,
                                                          known.empty() ? "" : "\nYour projects are:", known)});
  }
  if (auto used = use_project(flags, (*session)->connection(), name); !used) return report(used.error());
  std::printf("%s project \"%s\" on server \"%s\".\n", name == now ? "Already on" : "Now using", name.c_str(), url.c_str());
  return 0;
}

int run_projects(const std::vector<std::string>& args) {
  CLI::App app("Lists the projects (namespaces); the one in use has a star", "berth projects");
  ConnectionFlags flags;
  flags.add_to(app);
  bool is_short = false;
  app.add_flag("-q,--short", is_short, "Only the names");
  if (const auto code = parse_args(app, args)) return *code;
  auto session = Session::open(flags);
  if (!session) return report(session.error());
  auto names = names_of_projects(**session);
  if (!names) return report(names.error());
  const std::string& now = (*session)->ns();
  if (!is_short)
    std::printf("You have access to the following projects and can switch between them with '%s project <projectname>':\n\n",
                program_name().c_str());
  for (const std::string& name : *names) std::printf("%s%s\n", is_short ? "" : name == now ? "  * " : "    ", name.c_str());
  if (!is_short) std::printf("\nUsing project \"%s\" on server \"%s\".\n", now.c_str(), (*session)->connection().http.url.c_str());
  return 0;
}

}  // namespace berth::cli
