// login and whoami. There are no passwords: a login is a token, a certificate of the kubeconfig, or acting as somebody (impersonation).
#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/command/kubeconfig_file.h"
#include "cli/command/parse.h"
#include "cli/command/session.h"
#include "cli/verbs/identity.h"
#include "cli/verbs/verbs.h"

namespace berth::cli {

model::ApiResult<std::string> who_am_i(client::Client& client) {
  const json::Value review = {{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "SelfSubjectReview"}};
  auto answer = client.create_and_wait({"authentication.k8s.io", "v1", "selfsubjectreviews"}, "", review);
  if (!answer) return std::unexpected(answer.error());
  return std::string(json::get_string(*answer, {"status", "userInfo", "username"}));
}

namespace {

struct LoginFlags {
  ConnectionFlags connection;
  std::string url, user, password, token, ca_file;
  bool is_insecure = false;
};

/// "https://127.0.0.1:6443" → "127-0-0-1:6443", as oc names clusters.
std::string cluster_name(const std::string& url) {
  std::string out = url.substr(url.find("://") == std::string::npos ? 0 : url.find("://") + 3);
  out = out.substr(0, out.find('/'));
  std::ranges::replace(out, '.', '-');
  return out;
}

/// The entry of a cluster that is known already, or the name and content of a new one.
std::pair<std::string, json::Object> cluster_of(const KubeconfigFile& file, const LoginFlags& flags, const std::string& url) {
  if (flags.ca_file.empty() && !flags.is_insecure)
    for (const std::string& name : file.names("clusters"))
      if (const json::Value* cluster = file.find("clusters", name); cluster != nullptr && json::get_string(*cluster, {"server"}) == url)
        return {name, cluster->get_object()};
  json::Object cluster{{"server", url}};
  if (!flags.ca_file.empty()) cluster["certificate-authority"] = flags.ca_file;
  if (flags.is_insecure) cluster["insecure-skip-tls-verify"] = true;
  return {cluster_name(url), std::move(cluster)};
}

/// Writes cluster, user and context, asks the server who that is, and takes it all back when it is not `wanted` (any, when empty).
Result<std::string> try_login(const LoginFlags& flags, const KubeconfigFile& before, const std::string& url, const std::string& wanted,
                              const std::string& user_entry, json::Object user) {
  KubeconfigFile file = before;
  auto [cluster, cluster_fields] = cluster_of(file, flags, url);
  const std::string name = fmt::format("{}/{}", user_entry, cluster);
  const std::string ns = flags.connection.ns.empty() ? "default" : flags.connection.ns;
  file.put("clusters", cluster, std::move(cluster_fields));
  file.put("users", name, std::move(user));
  const std::string context = fmt::format("{}/{}/{}", ns, cluster, user_entry);
  file.put("contexts", context, json::Object{{"cluster", cluster}, {"user", name}, {"namespace", ns}});
  file.use_context(context);
  if (auto saved = file.save(); !saved) return std::unexpected(saved.error());
  const auto back = [&](std::string why) -> Result<std::string> {
    if (auto restored = before.save(); !restored) why += "; and " + restored.error().message;
    return fail(ErrorCode::kInvalid, std::move(why));
  };
  ConnectionFlags as = flags.connection;
  as.kubeconfig = file.path();
  as.context = context;
  auto session = Session::open(as);
  if (!session) return back(session.error().message);
  auto who = who_am_i((*session)->client());
  if (!who) return back(who.error().code == 401 ? "The token provided is invalid or expired." : who.error().message);
  if (!wanted.empty() && *who != wanted) return back(fmt::format("the server takes it for \"{}\", not \"{}\"", *who, wanted));
  return *who;
}

/// The context of the file whose user is this one: an entry of its name, or, for OpenShift's system:admin, the first with a certificate of
/// its own.
std::string context_of_user(const KubeconfigFile& file, const std::string& user, const std::string& url) {
  for (const std::string& name : file.names("contexts")) {
    const json::Value* context = file.find("contexts", name);
    if (context == nullptr) continue;
    const json::Value* cluster = file.find("clusters", json::get_string(*context, {"cluster"}));
    if (cluster == nullptr || json::get_string(*cluster, {"server"}) != url) continue;
    const std::string entry(json::get_string(*context, {"user"}));
    const json::Value* fields = file.find("users", entry);
    const bool is_own =
        fields != nullptr && json::get_string(*fields, {"as"}).empty() &&
        (!json::get_string(*fields, {"client-certificate-data"}).empty() || !json::get_string(*fields, {"client-certificate"}).empty());
    if (entry == user || entry.starts_with(user + "/") || (user == "system:admin" && is_own)) return name;
  }
  return {};
}

int login_as_user(const LoginFlags& flags, KubeconfigFile& file, const std::string& url) {
  if (!flags.password.empty()) std::fprintf(stderr, "warning: the password is not looked at: this server knows none\n");
  if (const std::string context = context_of_user(file, flags.user, url); !context.empty()) {
    file.use_context(context);
    if (auto saved = file.save(); !saved) return report(saved.error());
    std::printf("Logged into \"%s\" as \"%s\" using existing credentials.\n", url.c_str(), flags.user.c_str());
    return 0;
  }
  // Whoever may act for others needs no other credential.
  const json::Value* context = file.find("contexts", flags.connection.context.empty() ? file.current_context() : flags.connection.context);
  const std::string entry(context == nullptr ? "" : json::get_string(*context, {"user"}));
  const json::Value* now = file.find("users", entry);
  if (now == nullptr || !now->is_object())
    return report(
        Error{ErrorCode::kInvalid, fmt::format("{}: nobody is logged in who could act as \"{}\"; use --token", file.path(), flags.user)});
  json::Object user = now->get_object();
  user["as"] = flags.user;
  user.erase("as-groups");
  auto who = try_login(flags, file, url, flags.user, flags.user, std::move(user));
  if (!who)
    return report(
        Error{ErrorCode::kInvalid,
              fmt::format("\"{}\" has no credentials in {}, and you may not act for others: {}\nUsers have no passwords here. Log in "
                          "with a token (`kubectl create token ACCOUNT` makes one):\n  berth login {} --token=TOKEN",
                          flags.user, file.path(), who.error().message, url)});
  std::printf(
      "Logged into \"%s\" as \"%s\".\nThe server has no passwords: your own credentials (%s) act as \"%s\" (impersonation), for kubectl, "
      "too.\n",
      url.c_str(), who->c_str(), entry.c_str(), who->c_str());
  return 0;
}

}  // namespace

int run_login(const std::vector<std::string>& args) {
  CLI::App app(
      "Writes a login to the kubeconfig, for kubectl, too: a token, or a user of the kubeconfig, or any other user when you may act for\n"
      "others (there are no passwords).\n"
      "  berth login https://127.0.0.1:6443 --token=TOKEN\n"
      "  berth login -u alice",
      "berth login");
  LoginFlags flags;
  flags.connection.add_to(app);
  app.add_option("url", flags.url, "The server; default: the current context's");
  app.add_option("-u,--username", flags.user, "Who to be");
  app.add_option("-p,--password", flags.password, "Not looked at");
  app.add_option("-t,--token", flags.token, "A bearer token");
  app.add_option("--certificate-authority", flags.ca_file, "The certificate of the server's authority");
  app.add_flag("--insecure-skip-tls-verify", flags.is_insecure, "Do not check whose server it is");
  if (const auto code = parse_args(app, args)) return *code;
  if (flags.token.empty() == flags.user.empty()) return report(Error{ErrorCode::kInvalid, "say who: --token=TOKEN, or -u USER"});
  auto file = KubeconfigFile::open(flags.connection);
  if (!file) return report(file.error());
  std::string url = flags.url;
  if (url.empty()) {
    auto current = client::load_kubeconfig(flags.connection.kubeconfig, flags.connection.context);
    if (!current) return report(Error{ErrorCode::kInvalid, "which server? " + current.error().message});
    url = current->http.url;
  } else if (url.find("://") == std::string::npos) {
    url = "https://" + url;
  }
  if (url.ends_with('/')) url.pop_back();
  if (!flags.user.empty()) return login_as_user(flags, *file, url);
  // Under the name that the server gives it; that is known only once it is asked.
  auto who = try_login(flags, *file, url, "", "token", json::Object{{"token", flags.token}});
  if (!who) return report(who.error());
  if (auto kept = try_login(flags, *file, url, *who, *who, json::Object{{"token", flags.token}}); !kept) return report(kept.error());
  std::printf("Logged into \"%s\" as \"%s\" using the token provided.\n\nUsing project \"%s\".\n", url.c_str(), who->c_str(),
              flags.connection.ns.empty() ? "default" : flags.connection.ns.c_str());
  return 0;
}

int run_whoami(const std::vector<std::string>& args) {
  CLI::App app("Tells who you are, as the server sees it", "berth whoami");
  ConnectionFlags flags;
  flags.add_to(app);
  bool shows_token = false, shows_context = false, shows_server = false;
  app.add_flag("-t,--show-token", shows_token, "Your bearer token instead");
  app.add_flag("-c,--show-context", shows_context, "The kubeconfig's context instead");
  app.add_flag("--show-server", shows_server, "The server's URL instead");
  if (const auto code = parse_args(app, args)) return *code;
  auto session = Session::open(flags);
  if (!session) return report(session.error());
  const client::Connection& connection = (*session)->connection();
  if (shows_token && connection.bearer_token.empty())
    return report(Error{ErrorCode::kNotFound, "no token is currently in use for this session"});
  if (shows_token || shows_context || shows_server) {
    std::printf("%s\n", (shows_token ? connection.bearer_token : shows_context ? connection.context : connection.http.url).c_str());
    return 0;
  }
  auto who = who_am_i((*session)->client());
  if (!who) return report(who.error());
  std::printf("%s\n", who->c_str());
  return 0;
}

}  // namespace berth::cli
