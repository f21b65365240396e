// adm policy: OpenShift's words for role bindings. add-role-to-user admin alice is a RoleBinding named admin with alice in it.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/command/kubectl_words.h"
#include "cli/command/parse.h"
#include "cli/command/session.h"
#include "cli/verbs/adm.h"
#include "cli/verbs/manifests.h"

namespace berth::cli {
namespace {

constexpr const char* kRbac = "rbac.authorization.k8s.io";

struct Verb {
  const char* name;
  const char* summary;
  bool is_cluster_wide, is_group, removes;
};
constexpr Verb kVerbs[] = {
    {"add-role-to-user", "give users a role in a namespace", false, false, false},
    {"add-role-to-group", "give groups a role in a namespace", false, true, false},
    {"add-cluster-role-to-user", "give users a role everywhere", true, false, false},
    {"add-cluster-role-to-group", "give groups a role everywhere", true, true, false},
    {"remove-role-from-user", "take a role in a namespace from users", false, false, true},
    {"remove-role-from-group", "take a role in a namespace from groups", false, true, true},
    {"remove-cluster-role-from-user", "take a role everywhere from users", true, false, true},
    {"remove-cluster-role-from-group", "take a role everywhere from groups", true, true, true},
};
constexpr const char* kSccVerbs[] = {"add-scc-to-user", "add-scc-to-group", "remove-scc-from-user", "remove-scc-from-group"};

json::Value subject_of(const std::string& name, bool is_group) {
  constexpr std::string_view kAccount = "system:serviceaccount:";
  if (!is_group && name.starts_with(kAccount)) {
    const std::string rest = name.substr(kAccount.size());
    const std::size_t colon = rest.find(':');
    if (colon != std::string::npos)
      return json::Object{{"kind", "ServiceAccount"}, {"namespace", rest.substr(0, colon)}, {"name", rest.substr(colon + 1)}};
  }
  return json::Object{{"apiGroup", kRbac}, {"kind", is_group ? "Group" : "User"}, {"name", name}};
}

/// Kind, namespace and name; "" and the default API group are the same.
bool is_same_subject(const json::Value& a, const json::Value& b) {
  return json::get_string(a, {"kind"}) == json::get_string(b, {"kind"}) && json::get_string(a, {"name"}) == json::get_string(b, {"name"}) &&
         json::get_string(a, {"namespace"}) == json::get_string(b, {"namespace"});
}

struct Request {
  Verb verb;
  std::string role, binding_name, role_namespace, ns;
  std::vector<json::Value> subjects;
  std::vector<std::string> names;  ///< As typed.

  [[nodiscard]] const model::KindInfo& kind() const {
    return *model::find_resource(kRbac, verb.is_cluster_wide ? "clusterrolebindings" : "rolebindings");
  }
  [[nodiscard]] json::Value role_ref() const {
    return json::Object{{"apiGroup", kRbac}, {"kind", role_namespace.empty() ? "ClusterRole" : "Role"}, {"name", role}};
  }
  [[nodiscard]] bool is_of_role(const json::Value& binding) const {
    return json::get_string(binding, {"roleRef", "name"}) == role &&
           json::get_string(binding, {"roleRef", "kind"}) == (role_namespace.empty() ? "ClusterRole" : "Role");
  }
  [[nodiscard]] std::string role_text() const {
    return fmt::format("{}.{}/{}", role_namespace.empty() ? "clusterrole" : "role", kRbac, role);
  }
};

int write_subjects(Session& session, const Request& request, const json::Value& binding, const json::Array& subjects) {
  client::Call call;
  call.verb = "patch";
  call.gvr = request.kind().gvr();
  call.ns = request.ns;
  call.name = json::get_string(binding, {"metadata", "name"});
  call.content_type = "application/merge-patch+json";
  call.body = json::serialize(json::Object{
      {"metadata", json::Object{{"resourceVersion", json::get_string(binding, {"metadata", "resourceVersion"})}}}, {"subjects", subjects}});
  auto done = session.client().call_and_wait(call);
  return done ? 0 : report(done.error());
}

/// Into the role's binding of the wanted name, or a new one whose name is free (admin, admin-0, admin-1, …).
int add(Session& session, const Request& request, const std::vector<json::Value>& bindings) {
  std::string name = request.binding_name.empty() ? request.role : request.binding_name;
  const json::Value* into = nullptr;
  std::vector<std::string> taken;
  for (const json::Value& binding : bindings) {
    const std::string_view its = json::get_string(binding, {"metadata", "name"});
    taken.emplace_back(its);
    if (!request.is_of_role(binding)) continue;
    if (request.binding_name.empty() ? into == nullptr || its == request.role : its == request.binding_name) into = &binding;
  }
  json::Array subjects = into != nullptr ? json::get_array(*into, {"subjects"}) : json::Array();
  for (const json::Value& subject : request.subjects)
    if (std::ranges::none_of(subjects, [&](const json::Value& one) { return is_same_subject(one, subject); })) subjects.push_back(subject);
  if (into != nullptr) return write_subjects(session, request, *into, subjects);
  if (std::ranges::find(taken, name) != taken.end()) {
    if (!request.binding_name.empty())
      return report(Error{ErrorCode::kConflict, fmt::format("rolebinding {} is there and grants another role", name)});
    for (int i = 0; std::ranges::find(taken, name) != taken.end(); ++i) name = fmt::format("{}-{}", request.role, i);
  }
  json::Value binding = {{"apiVersion", std::string(kRbac) + "/v1"}, {"kind", request.kind().kind}, {"metadata", {{"name", name}}}};
  binding.get_object()["roleRef"] = request.role_ref();
  binding.get_object()["subjects"] = std::move(subjects);
  if (!request.verb.is_cluster_wide) json::set(binding, {"metadata", "namespace"}, json::Value(request.ns));
  auto created = create_object(session, request.kind(), binding);
  return created ? 0 : report(created.error());
}

/// Out of every binding of the role; a binding that nobody is left in goes.
int remove(Session& session, const Request& request, const std::vector<json::Value>& bindings) {
  int code = 0;
  bool found = false;
  for (const json::Value& binding : bindings) {
    if (!request.is_of_role(binding)) continue;
    const json::Array& old = json::get_array(binding, {"subjects"});
    json::Array kept;
    for (const json::Value& one : old)
      if (std::ranges::none_of(request.subjects, [&](const json::Value& subject) { return is_same_subject(one, subject); }))
        kept.push_back(one);
    if (kept.size() == old.size()) continue;
    found = true;
    if (!kept.empty()) {
      code = std::max(code, write_subjects(session, request, binding, kept));
      continue;
    }
    client::Call call;
    call.verb = "delete";
    call.gvr = request.kind().gvr();
    call.ns = request.ns;
    call.name = json::get_string(binding, {"metadata", "name"});
    auto done = session.client().call_and_wait(call);
    if (!done) code = report(done.error());
  }
  if (!found)
    return report(
        Error{ErrorCode::kNotFound, fmt::format("{} has none of {} in any binding", request.role_text(), fmt::join(request.names, ", "))});
  return code;
}

int run_binding(const Verb& verb, const std::vector<std::string>& args) {
  CLI::App app(fmt::format("{}; as OpenShift's, by RBAC bindings", verb.summary), std::string("berth adm policy ") + verb.name);
  ConnectionFlags flags;
  flags.add_to(app);
  Request request{verb, {}, {}, {}, {}, {}, {}};
  std::vector<std::string> accounts;
  app.add_option("role", request.role, "The role")->required();
  app.add_option("names", request.names, verb.is_group ? "Groups" : "Users");
  if (!verb.is_group) app.add_option("-z,--serviceaccount", accounts, "Service accounts of the namespace");
  if (!verb.is_cluster_wide) {
    app.add_option("--rolebinding-name", request.binding_name, "The binding to change or make");
    app.add_option("--role-namespace", request.role_namespace, "The role is a Role of this namespace; default: a ClusterRole");
  } else {
    app.add_option("--clusterrolebinding-name,--rolebinding-name", request.binding_name, "The binding to change or make");
  }
  if (const auto code = parse_args(app, args)) return *code;
  auto session = Session::open(flags);
  if (!session) return report(session.error());
  const std::string here = (*session)->ns();
  if (!verb.is_cluster_wide) request.ns = here;
  for (const std::string& name : request.names) request.subjects.push_back(subject_of(name, verb.is_group));
  for (const std::string& account : accounts) {
    request.subjects.push_back(subject_of(fmt::format("system:serviceaccount:{}:{}", here, account), false));
    request.names.push_back(account);
  }
  if (request.subjects.empty())
    return report(Error{ErrorCode::kInvalid, verb.is_group ? "name the groups" : "name the users, or service accounts with -z"});
  auto page = (*session)->client().list_and_wait(request.kind().gvr(), request.ns);
  if (!page) return report(page.error());
  // OpenShift calls it a warning: the binding is made all the same, and grants nothing until the role is there.
  if (!verb.removes) {
    const client::Gvr roles{kRbac, "v1", request.role_namespace.empty() ? "clusterroles" : "roles"};
    const auto role = (*session)->client().get_and_wait(roles, request.role_namespace, request.role);
    if (!role && role.error().is("NotFound")) std::fprintf(stderr, "Warning: role '%s' not found\n", request.role.c_str());
  }
  const int code = verb.removes ? remove(**session, request, page->items) : add(**session, request, page->items);
  if (code == 0)
    std::printf("%s %s: \"%s\"\n", request.role_text().c_str(), verb.removes ? "removed" : "added",
                fmt::format("{}", fmt::join(request.names, "\", \"")).c_str());
  return code;
}

/// The pod security level that lets pods do what the constraints would.
std::string_view level_of(std::string_view scc) {
  if (scc.starts_with("restricted")) return "restricted";
  if (scc == "anyuid" || scc.starts_with("nonroot")) return "baseline";
  return "privileged";
}

int run_scc(const char* verb, const std::vector<std::string>& args) {
  CLI::App app("There are no SecurityContextConstraints: tells whether the namespace lets its pods do the same, and what would",
               std::string("berth adm policy ") + verb);
  ConnectionFlags flags;
  flags.add_to(app);
  std::string scc;
  std::vector<std::string> names, accounts;
  app.add_option("scc", scc, "privileged, anyuid, restricted, …")->required();
  app.add_option("names", names, "Users or groups");
  app.add_option("-z,--serviceaccount", accounts, "Service accounts of the namespace");
  if (const auto code = parse_args(app, args)) return *code;
  auto session = Session::open(flags);
  if (!session) return report(session.error());
  auto ns = (*session)->client().get_and_wait({"", "v1", "namespaces"}, "", (*session)->ns());
  if (!ns) return report(ns.error());
  constexpr const char* kLabel = "pod-security.kubernetes.io/enforce";
  const std::string level(json::get_string(*ns, {"metadata", "labels", kLabel}, "privileged"));
  const auto rank = [](std::string_view one) { return one == "restricted" ? 0 : one == "baseline" ? 1 : 2; };
  const std::string wanted(level_of(scc));
  std::printf("There are no SecurityContextConstraints here: what pods may ask for is the namespace's, by its label %s.\n", kLabel);
  if (std::string_view(verb).starts_with("remove")) {
    std::printf(
        "Namespace %s lets its pods do what %s allows; to let them do less:\n  kubectl label namespace %s %s=restricted --overwrite\n",
        (*session)->ns().c_str(), level.c_str(), (*session)->ns().c_str(), kLabel);
    return 0;
  }
  if (rank(level) >= rank(wanted)) {
    std::printf("Namespace %s lets its pods do what %s allows, and so all that \"%s\" would: nothing is to be done.\n",
                (*session)->ns().c_str(), level.c_str(), scc.c_str());
    return 0;
  }
  std::fprintf(stderr, "error: namespace %s allows only %s; for what \"%s\" allows:\n  kubectl label namespace %s %s=%s --overwrite\n",
               (*session)->ns().c_str(), level.c_str(), scc.c_str(), (*session)->ns().c_str(), kLabel, wanted.c_str());
  return 1;
}

}  // namespace

std::vector<std::string> policy_verbs() {
  std::vector<std::string> out;
  for (const Verb& verb : kVerbs) out.emplace_back(verb.name);
  for (const char* verb : kSccVerbs) out.emplace_back(verb);
  return out;
}

int run_policy(const std::vector<std::string>& args) {
  const std::string word = args.empty() ? "" : args[0];
  const std::vector<std::string> rest(args.empty() ? args.begin() : args.begin() + 1, args.end());
  for (const Verb& verb : kVerbs)
    if (word == verb.name) return run_binding(verb, rest);
  for (const char* verb : kSccVerbs)
    if (word == verb) return run_scc(verb, rest);
  const bool help = word == "--help" || word == "-h";
  if (word == "who-can") {
    std::fprintf(stderr, "error: berth adm policy has no \"who-can\". Use kubectl, the same kubeconfig works:\n  %s --as=USER\n",
                 kubectl_line("auth can-i", rest).c_str());
    return 2;
  }
  if (!help && !word.empty()) {
    std::fprintf(stderr, "error: unknown command \"%s\" for \"%s adm policy\"%s\n", word.c_str(), program_name().c_str(),
                 did_you_mean(word, policy_verbs()).c_str());
    return 2;
  }
  std::FILE* out = help ? stdout : stderr;
  std::fprintf(out, "Usage: %s adm policy VERB\n", program_name().c_str());
  for (const Verb& verb : kVerbs) std::fprintf(out, "  %-31s %s\n", verb.name, verb.summary);
  std::fprintf(out, "  %-31s %s\n", "add-scc-to-user, -to-group", "there are none: tells what stands for SecurityContextConstraints");
  return help ? 0 : 2;
}

}  // namespace berth::cli
