#include "client/kubeconfig.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/base64.h"
#include "base/clock.h"
#include "base/config_reader.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mutex.h"
#include "client/hooked_transport.h"
#include "security/file_owner.h"
#include "security/validity.h"

namespace berth::client {
namespace {

namespace fs = std::filesystem;

Result<std::string> read_file(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return fail(ErrorCode::kInvalid, "it is a directory");
  std::ifstream file(path, std::ios::binary);
  if (!file) return fail(errno == ENOENT ? ErrorCode::kNotFound : ErrorCode::kInvalid, std::generic_category().message(errno));
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string trimmed(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  return text;
}

/// A cluster, user or context with the file it came from: relative paths mean that file's folder.
struct Entry {
  json::Value value;
  std::string file;
  std::string where;  ///< `clusters[name=kind].cluster`

  [[nodiscard]] std::string_view text(std::string_view field) const { return json::get_string(value, {field}); }
  [[nodiscard]] std::unexpected<Error> bad(std::string_view field, std::string_view problem) const {
    return invalid(fmt::format("{}: {}.{}: {}", file, where, field, problem));
  }
  [[nodiscard]] std::string resolve(std::string_view path) const {
    return fs::path(path).is_absolute() ? std::string(path) : (fs::absolute(fs::path(file)).parent_path() / path).string();
  }
  /// The PEM text of `FIELD-data` (base64) or of the file that FIELD names; empty when neither is there.
  [[nodiscard]] Result<std::string> content(const std::string& field) const {
    if (const auto data = text(field + "-data"); !data.empty()) {
      auto decoded = base64_decode(data);
      if (!decoded) return bad(field + "-data", "it is not valid base64");
      return std::move(*decoded);
    }
    const auto path = text(field);
    if (path.empty()) return std::string();
    auto read = read_file(resolve(path));
    if (!read) return bad(field, fmt::format("cannot read {}: {}", resolve(path), read.error().message));
    return read;
  }
};

/// All files laid over each other.
struct Merged {
  std::string current_context, current_context_file;
  std::map<std::string, Entry> clusters, users, contexts;
};

Result<void> merge_section(const json::Value& root, const std::string& file, std::string_view section, std::string_view inner,
                           std::map<std::string, Entry>& into) {
  const auto* list = json::find(root, section);
  if (list == nullptr) return {};
  if (!list->is_array()) return invalid(fmt::format("{}: {}: it must be a list", file, section));
  for (const auto& item : list->get_array()) {
    const std::string name(json::get_string(item, {"name"}));
    const auto* value = json::find(item, inner);
    if (value != nullptr && !value->is_object())
      return invalid(fmt::format("{}: {}[name={}].{}: it must be a mapping", file, section, name, inner));
    into.try_emplace(
        name, Entry{value != nullptr ? *value : json::Value(json::Object{}), file, fmt::format("{}[name={}].{}", section, name, inner)});
  }
  return {};
}

/// Programs that keep things of their own in these files are many: what nothing here knows is told, not refused. What is known and does not
/// act is refused where it is used (use_user).
void check_fields(const config::Reader& root) {
  using config::Refusal;
  const auto take = [](const config::Reader& at, std::initializer_list<std::string_view> fields) {
    at.only(fields, Refusal::kOfBerth);
    at.skip();
  };
  take(root, {"kind", "apiVersion", "preferences", "clusters", "users", "contexts", "current-context", "extensions"});
  const auto take_items = [&](std::string_view list, std::string_view inner, std::initializer_list<std::string_view> fields) {
    if (!root.has(list) || !root.field(list).value()->is_array()) return;
    for (const config::Reader& item : root.field(list).items()) {
      take(item, {"name", inner});
      take(item.field(inner), fields);
    }
  };
  take_items("clusters", "cluster",
             {"server", "tls-server-name", "insecure-skip-tls-verify", "certificate-authority", "certificate-authority-data", "proxy-url",
              "disable-compression", "extensions"});
  take_items("users", "user",
             {"client-certificate", "client-certificate-data", "client-key", "client-key-data", "token", "tokenFile", "as", "as-uid",
              "as-groups", "as-user-extra", "username", "password", "auth-provider", "exec", "extensions"});
  take_items("contexts", "context", {"cluster", "user", "namespace", "extensions"});
}

Result<void> merge_file(const std::string& file, Merged& into) {
  auto text = read_file(file);
  if (!text) return fail(text.error().code, fmt::format("{}: {}", file, text.error().message));
  if (trimmed(*text).empty()) return {};
  json::Value document;
  std::vector<std::string> notes;
  const auto checked = config::read_text(*text, {.file = file, .as_kubernetes = true, .notes = &notes}, [&](const config::Reader& root) {
    document = *root.value();
    check_fields(root);
  });
  if (!checked) return checked;
  // A program that looks at the file twice says it once.
  static Mutex mutex;
  static std::set<std::string> said BERTH_GUARDED_BY(mutex);
  const MutexLock lock(mutex);
  for (const std::string& note : notes)
    if (said.insert(note).second) log::warning("kubeconfig", "{}", note);
  const json::Value* root = &document;
  if (!root->is_object()) return invalid(fmt::format("{}: it is not a kubeconfig (a mapping was expected)", file));
  if (const auto kind = json::get_string(*root, {"kind"}); !kind.empty() && kind != "Config") {
    return invalid(fmt::format("{}: kind: \"{}\" is not Config", file, kind));
  }
  if (into.current_context.empty()) {
    into.current_context = json::get_string(*root, {"current-context"});
    into.current_context_file = file;
  }
  for (const auto& [section, inner, entries] : {std::tuple("clusters", "cluster", &into.clusters), std::tuple("users", "user", &into.users),
                                                std::tuple("contexts", "context", &into.contexts)}) {
    if (auto merged = merge_section(*root, file, section, inner, *entries); !merged) return merged;
  }
  return {};
}

Result<void> use_cluster(const Entry& cluster, Connection& out) {
  const auto server = cluster.text("server");
  if (server.empty()) return cluster.bad("server", "it is required");
  if (!server.starts_with("https://") && !server.starts_with("http://"))
    return cluster.bad("server", "it must begin with https:// or http://");
  if (!cluster.text("proxy-url").empty()) return cluster.bad("proxy-url", "proxies are not supported");
  out.http.url = server;
  auto ca = cluster.content("certificate-authority");
  if (!ca) return std::unexpected(ca.error());
  out.http.ca_pem = std::move(*ca);
  if (!out.http.ca_pem.empty() && out.http.ca_pem.find("-----BEGIN CERTIFICATE-----") == std::string::npos) {
    return cluster.bad(cluster.text("certificate-authority-data").empty() ? "certificate-authority" : "certificate-authority-data",
                       "it holds no PEM certificate");
  }
  if (auto good = security::check_authorities(out.http.ca_pem, SystemClock().now()); !good)
    out.trouble = cluster.bad("certificate-authority", good.error().message).error().message;
  out.http.insecure_skip_verify = json::get_bool(cluster.value, {"insecure-skip-tls-verify"});
  if (out.http.insecure_skip_verify && !out.http.ca_pem.empty()) {
    return cluster.bad("insecure-skip-tls-verify", "a certificate authority together with it is not allowed");
  }
  out.http.server_name = cluster.text("tls-server-name");
  return {};
}

Result<void> use_user(const Entry& user, Connection& out) {
  for (const char* plugin : {"exec", "auth-provider"}) {
    if (json::find(user.value, plugin) != nullptr) {
      return user.bad(
          plugin, "credential plugins are not supported; use a client certificate, token or tokenFile (`kubectl create token` makes one)");
    }
  }
  for (const char* field : {"username", "password", "as-uid", "as-user-extra"}) {
    if (json::find(user.value, field) != nullptr)
      return user.bad(field, "it is not supported; use a client certificate, token or tokenFile");
  }
  out.as_user = user.text("as");
  for (const json::Value& group : json::get_array(user.value, {"as-groups"})) out.as_groups.emplace_back(json::as_view(group));
  if (out.as_user.empty() && !out.as_groups.empty()) return user.bad("as-groups", "groups are acted as only together with `as`");
  auto certificate = user.content("client-certificate");
  if (!certificate) return std::unexpected(certificate.error());
  auto key = user.content("client-key");
  if (!key) return std::unexpected(key.error());
  if (certificate->empty() != key->empty()) {
    return user.bad(certificate->empty() ? "client-certificate" : "client-key",
                    "client-certificate and client-key belong together; this one is missing");
  }
  if (auto good = security::check_identity(*certificate, *key, SystemClock().now()); !good)
    out.trouble = user.bad("client-certificate", good.error().message).error().message;
  out.http.certificate_pem = std::move(*certificate);
  out.http.private_key_pem = std::move(*key);
  out.bearer_token = user.text("token");
  if (const auto path = user.text("tokenFile"); !path.empty()) {
    out.token_file = user.resolve(path);
    auto token = read_file(out.token_file);
    if (!token) return user.bad("tokenFile", fmt::format("cannot read {}: {}", out.token_file, token.error().message));
    if (out.bearer_token.empty()) out.bearer_token = trimmed(std::move(*token));
  }
  return {};
}

Result<Connection> choose(const Merged& merged, const std::string& wanted, const std::string& files) {
  Connection out;
  out.context = wanted.empty() ? merged.current_context : wanted;
  if (out.context.empty()) return invalid(fmt::format("{}: current-context: it is not set; name a context", files));
  const auto context = merged.contexts.find(out.context);
  if (context == merged.contexts.end()) return invalid(fmt::format("{}: context \"{}\" does not exist", files, out.context));
  out.cluster = context->second.text("cluster");
  out.user = context->second.text("user");
  out.ns = context->second.text("namespace");
  const auto cluster = merged.clusters.find(out.cluster);
  if (cluster == merged.clusters.end()) return context->second.bad("cluster", fmt::format("cluster \"{}\" does not exist", out.cluster));
  if (auto used = use_cluster(cluster->second, out); !used) return std::unexpected(used.error());
  if (out.user.empty()) return out;
  const auto user = merged.users.find(out.user);
  if (user == merged.users.end()) return context->second.bad("user", fmt::format("user \"{}\" does not exist", out.user));
  if (auto used = use_user(user->second, out); !used) return std::unexpected(used.error());
  return out;
}

Result<Connection> in_cluster(const Surroundings& surroundings) {
  const auto& dir = surroundings.service_account_dir;
  Connection out;
  out.token_file = dir + "/token";
  auto token = read_file(out.token_file);
  if (!token) return fail(token.error().code, fmt::format("{}: {}", out.token_file, token.error().message));
  auto ca = read_file(dir + "/ca.crt");
  if (!ca) return fail(ca.error().code, fmt::format("{}/ca.crt: {}", dir, ca.error().message));
  const bool is_v6 = surroundings.service_host.find(':') != std::string::npos;
  const auto host = is_v6 ? "[" + surroundings.service_host + "]" : surroundings.service_host;
  out.http.url = fmt::format("https://{}:{}", host, surroundings.service_port);
  out.http.ca_pem = std::move(*ca);
  out.bearer_token = trimmed(std::move(*token));
  if (auto ns = read_file(dir + "/namespace")) out.ns = trimmed(std::move(*ns));
  out.context = out.cluster = out.user = "in-cluster";
  return out;
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

Surroundings Surroundings::of_process() {
  Surroundings out;
  out.kubeconfig = variable("KUBECONFIG");
  out.home = variable("HOME");
  out.service_host = variable("KUBERNETES_SERVICE_HOST");
  out.service_port = variable("KUBERNETES_SERVICE_PORT");
  return out;
}

std::string kubeconfig_to_change(const std::string& path, const Surroundings& surroundings) {
  if (!path.empty()) return path;
  std::istringstream list(surroundings.kubeconfig);
  for (std::string file; std::getline(list, file, ':');)
    if (!file.empty()) return file;
  return surroundings.home.empty() ? "" : surroundings.home + "/.kube/config";
}

Result<Connection> load_kubeconfig(const std::string& path, const std::string& context, const Surroundings& surroundings) {
  std::vector<std::string> files;
  bool may_be_missing = true;
  if (!path.empty()) {
    files.push_back(path);
    may_be_missing = false;
  } else if (!surroundings.kubeconfig.empty()) {
    std::istringstream list(surroundings.kubeconfig);
    for (std::string file; std::getline(list, file, ':');) {
      if (!file.empty()) files.push_back(file);
    }
  } else if (!surroundings.home.empty()) {
    files.push_back(surroundings.home + "/.kube/config");
  }
  Merged merged;
  std::string read;
  for (const auto& file : files) {
    if (auto done = merge_file(file, merged); !done) {
      if (may_be_missing && done.error().code == ErrorCode::kNotFound) continue;
      return std::unexpected(done.error());
    }
    read += (read.empty() ? "" : ":") + file;
  }
  if (!read.empty()) return choose(merged, context, read);
  if (!surroundings.service_host.empty()) return in_cluster(surroundings);
  std::string tried;
  for (const auto& file : files) tried += (tried.empty() ? "" : ", ") + file;
  return fail(ErrorCode::kNotFound, fmt::format("no kubeconfig found (looked for {}): name one with --kubeconfig or $KUBECONFIG", tried));
}

Result<std::shared_ptr<Transport>> transport_for(const Connection& connection) {
  if (!connection.trouble.empty()) return invalid(connection.trouble);
  TokenSource token;
  if (!connection.token_file.empty()) {
    struct Cached {
      Mutex mutex;
      std::string token BERTH_GUARDED_BY(mutex);
      std::chrono::steady_clock::time_point read_at BERTH_GUARDED_BY(mutex) = std::chrono::steady_clock::now();

      explicit Cached(std::string first) : token(std::move(first)) {}
    };
    auto cached = std::make_shared<Cached>(connection.bearer_token);
    token = [cached, file = connection.token_file] {
      MutexLock lock(cached->mutex);
      const auto now = std::chrono::steady_clock::now();
      // Service account tokens are renewed in place, an hour before they end; client-go reads them every minute, too.
      if (now - cached->read_at > std::chrono::minutes(1)) {
        cached->read_at = now;
        if (auto fresh = read_file(file); fresh && !trimmed(*fresh).empty()) cached->token = trimmed(std::move(*fresh));
      }
      return cached->token;
    };
  } else if (!connection.bearer_token.empty()) {
    token = [bearer = connection.bearer_token] { return bearer; };
  }
  auto transport = make_https_transport(connection.http, std::move(token));
  if (!transport) {
    return fail(transport.error().code, fmt::format("context \"{}\" (cluster \"{}\", user \"{}\"): {}", connection.context,
                                                    connection.cluster, connection.user, transport.error().message));
  }
  if (connection.as_user.empty()) return transport;
  return with_hooks(std::move(*transport), {[user = connection.as_user, groups = connection.as_groups](net::HttpRequest& request) {
                                              request.headers.set("Impersonate-User", user);
                                              // Not a literal: g++ 12 takes its copy for one that reads beyond it (-Warray-bounds).
                                              static const std::string name = "Impersonate-Group";
                                              for (const std::string& group : groups) request.headers.add(name, group);
                                            },
                                            {}});
}

Result<std::shared_ptr<Transport>> transport_from_kubeconfig(const std::string& path, const std::string& context) {
  auto connection = load_kubeconfig(path, context);
  if (!connection) return std::unexpected(connection.error());
  return transport_for(*connection);
}

std::string render_kubeconfig(const KubeconfigEntry& entry) {
  json::Object cluster{{"server", entry.server}};
  if (!entry.ca_pem.empty()) cluster["certificate-authority-data"] = base64_encode(entry.ca_pem);
  if (!entry.tls_server_name.empty()) cluster["tls-server-name"] = entry.tls_server_name;
  json::Object user;
  if (!entry.certificate_pem.empty()) {
    user["client-certificate-data"] = base64_encode(entry.certificate_pem);
    user["client-key-data"] = base64_encode(entry.private_key_pem);
  }
  if (!entry.token.empty()) user["token"] = entry.token;
  json::Object context{{"cluster", entry.name}, {"user", entry.user}};
  if (!entry.ns.empty()) context["namespace"] = entry.ns;
  const auto named = [](const std::string& name, const char* inner, json::Object value) {
    return json::Array{json::Object{{"name", name}, {inner, std::move(value)}}};
  };
  return json::to_yaml(json::Object{{"apiVersion", "v1"},
                                    {"kind", "Config"},
                                    {"current-context", entry.name},
                                    {"clusters", named(entry.name, "cluster", std::move(cluster))},
                                    {"users", named(entry.user, "user", std::move(user))},
                                    {"contexts", named(entry.name, "context", std::move(context))}});
}

Result<void> write_kubeconfig(const std::string& path, const KubeconfigEntry& entry) {
  return security::write_file(path, render_kubeconfig(entry), 0600);
}

}  // namespace berth::client
