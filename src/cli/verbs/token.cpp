// berth token: what machines join with.
#include <CLI/CLI.hpp>
#include <cstdio>

#include "base/base64.h"
#include "base/split.h"
#include "cli/command/parse.h"
#include "cli/command/process.h"
#include "cli/command/session.h"
#include "cli/nodes/join_documents.h"
#include "cli/verbs/verbs.h"
#include "model/tables/tables.h"
#include "net/certificates.h"
#include "security/bootstrap_token.h"

namespace berth::cli {
namespace {

const model::Gvr kSecrets{"", "v1", "secrets"};

struct CreateFlags {
  std::string token, ttl = "24h", groups = std::string(security::kNodeTokenGroup), usages = "signing,authentication", description;
  bool print_join_command = false;
};

Result<security::BootstrapToken> token_of(const CreateFlags& flags, TimePoint now) {
  security::BootstrapToken out;
  const auto parts = flags.token.empty() ? security::random_bootstrap_token() : security::split_bootstrap_token(flags.token);
  if (!parts)
    return invalid(fmt::format("\"{}\" is not of a token's form: six characters, a dot and sixteen more, of a-z and 0-9", flags.token));
  out.id = parts->id;
  out.secret = parts->secret;
  const auto ttl = parse_go_duration(flags.ttl);
  if (!ttl || *ttl < Duration::zero())
    return invalid(fmt::format("--ttl: \"{}\" is not a duration (like \"2h\" or \"30m\"; 0 for a token that never ends)", flags.ttl));
  if (*ttl > Duration::zero()) out.expiration = now + *ttl;
  for (const auto usage : words(flags.usages, ',')) {
    if (usage != "signing" && usage != "authentication")
      return invalid(fmt::format("--usages: \"{}\" is neither signing nor authentication", usage));
    (usage == "signing" ? out.signs : out.authenticates) = true;
  }
  out.extra_groups = words(flags.groups, ',').list<std::string>();
  for (const std::string& group : out.extra_groups)
    if (!security::is_bootstrap_group(group))
      return invalid(fmt::format("--groups: \"{}\" is not a group below system:bootstrappers: (a-z, 0-9, : and -)", group));
  if (!out.authenticates && !out.extra_groups.empty() && flags.groups != security::kNodeTokenGroup)
    return invalid("--groups: a token that does not authenticate has no groups");
  if (!out.authenticates) out.extra_groups.clear();
  out.description = flags.description;
  return out;
}

/// Where a machine reaches the cluster and whom it trusts: what the cluster tells everybody, or else what this kubeconfig says.
Result<JoinFacts> facts_of(Session& session) {
  const auto info = session.client().get_and_wait({"", "v1", "configmaps"}, "kube-public", "cluster-info");
  if (info) {
    auto facts = read_cluster_info(json::get_string(*info, {"data", "kubeconfig"}));
    if (!facts) return invalid("ConfigMap kube-public/cluster-info: " + facts.error().message);
    return facts;
  }
  const auto& http = session.connection().http;
  if (http.ca_pem.empty())
    return invalid("there is no ConfigMap kube-public/cluster-info, and the kubeconfig names no certificate authority to tell by its hash");
  return JoinFacts{http.url, http.ca_pem, {}};
}

int print_join_command(Session& session, const std::string& token) {
  const auto facts = facts_of(session);
  if (!facts) return report(facts.error());
  const auto hash = net::public_key_hash(facts->ca_pem);
  if (!hash) return report(hash.error());
  std::printf("%s node join %s --token %s --ca-hash %s\n", program_name().c_str(), facts->url.c_str(), token.c_str(), hash->c_str());
  std::fprintf(stderr, "note: to be typed as root; with --own-runtime where no container runtime runs\n");
  const std::string host = facts->url.substr(facts->url.find("://") + 3);
  if (host.starts_with("127.") || host.starts_with("localhost") || host.starts_with("[::1]"))
    std::fprintf(stderr,
                 "note: the API server can be reached from this machine alone; for others start it with --listen 0.0.0.0:6443 (and "
                 "--advertise-address, when it has several addresses)\n");
  return 0;
}

int run_token_create(const std::vector<std::string>& args) {
  CLI::App app("Makes a token that machines can join with, and prints it", "berth token create");
  ConnectionFlags connection;
  connection.add_to(app);
  CreateFlags flags;
  app.add_option("token", flags.token, "ID.SECRET; random when not given");
  app.add_option("--ttl", flags.ttl, "How long it is good for; 0: for ever")->capture_default_str();
  app.add_option("--groups", flags.groups, "Groups of who comes with it, below system:bootstrappers:, comma separated")
      ->capture_default_str();
  app.add_option("--usages", flags.usages, "What it is good for: signing, authentication, or both")->capture_default_str();
  app.add_option("--description", flags.description, "For people");
  app.add_flag("--print-join-command", flags.print_join_command, "Prints the whole command for the machine that is to join");
  if (const auto code = parse_args(app, args)) return *code;
  const auto token = token_of(flags, SystemClock().now());
  if (!token) return report(token.error());
  auto session = Session::open(connection);
  if (!session) return report(session.error());
  const auto made = (*session)->client().create_and_wait(kSecrets, std::string(security::kBootstrapTokenNamespace),
                                                         security::make_bootstrap_secret(*token));
  if (!made && made.error().code == 409)
    return report(fail(ErrorCode::kConflict,
                       fmt::format("there is a token {} already: `{} token delete {}` ends it", token->id, program_name(), token->id))
                      .error());
  if (!made) return report(made.error());
  const std::string text = token->id + "." + token->secret;
  if (flags.print_join_command) return print_join_command(**session, text);
  std::printf("%s\n", text.c_str());
  return 0;
}

int run_token_list(const std::vector<std::string>& args) {
  CLI::App app("Lists the tokens that machines can join with", "berth token list");
  ConnectionFlags connection;
  connection.add_to(app);
  if (const auto code = parse_args(app, args)) return *code;
  auto session = Session::open(connection);
  if (!session) return report(session.error());
  const auto secrets = (*session)->client().list_and_wait(kSecrets, std::string(security::kBootstrapTokenNamespace),
                                                          {.field_selector = fmt::format("type={}", security::kBootstrapTokenType)});
  if (!secrets) return report(secrets.error());
  const TimePoint now = SystemClock().now();
  constexpr const char* kFormat = "%-25s %-11s %-22s %-24s %-30s %s\n";
  if (!secrets->items.empty()) std::printf(kFormat, "TOKEN", "TTL", "EXPIRES", "USAGES", "DESCRIPTION", "EXTRA GROUPS");
  for (const json::Value& secret : secrets->items) {
    const auto token = security::read_bootstrap_secret(secret);
    if (!token) continue;
    const std::string ttl = !token->trouble.empty()  ? "<invalid>"
                            : token->is_expired(now) ? "<expired>"
                            : token->expiration      ? model::human_duration(*token->expiration - now)
                                                     : "<forever>";
    const std::string usages = token->authenticates && token->signs ? "authentication,signing"
                               : token->authenticates               ? "authentication"
                               : token->signs                       ? "signing"
                                                                    : "<none>";
    const std::string expires = token->expiration ? format_rfc3339(*token->expiration) : "<never>";
    const std::string groups = fmt::format("{}", fmt::join(token->extra_groups, ","));
    std::printf(kFormat, (token->id + "." + token->secret).c_str(), ttl.c_str(), expires.c_str(), usages.c_str(),
                token->description.empty() ? "<none>" : token->description.c_str(), groups.empty() ? "<none>" : groups.c_str());
    if (!token->trouble.empty())
      std::fprintf(stderr, "warning: Secret %s: %s\n", std::string(json::get_string(secret, {"metadata", "name"})).c_str(),
                   token->trouble.c_str());
  }
  return 0;
}

int run_token_delete(const std::vector<std::string>& args) {
  CLI::App app("Ends tokens: nobody joins with them any more. Machines that did go on", "berth token delete");
  ConnectionFlags connection;
  connection.add_to(app);
  std::vector<std::string> names;
  app.add_option("token", names, "IDs, or whole tokens")->required();
  if (const auto code = parse_args(app, args)) return *code;
  auto session = Session::open(connection);
  if (!session) return report(session.error());
  int code = 0;
  for (const std::string& name : names) {
    const std::string id = name.substr(0, name.find('.'));
    if (!security::split_bootstrap_token(id + ".0123456789abcdef")) {
      code = report(invalid(fmt::format("\"{}\" is neither a token's id (six characters of a-z and 0-9) nor a token", name)).error());
      continue;
    }
    client::Call call{.verb = "delete",
                      .gvr = kSecrets,
                      .ns = std::string(security::kBootstrapTokenNamespace),
                      .name = std::string(security::kBootstrapTokenPrefix) + id};
    const auto gone = (*session)->client().call_and_wait(std::move(call));
    if (gone)
      std::printf("token \"%s\" deleted\n", id.c_str());
    else if (gone.error().code == 404)
      code = report(
          fail(ErrorCode::kNotFound, fmt::format("there is no token {}; `{} token list` tells those that are there", id, program_name()))
              .error());
    else
      code = report(gone.error());
  }
  return code;
}

}  // namespace

int run_token(const std::vector<std::string>& args) {
  const std::string verb = args.empty() ? "" : args[0];
  const std::vector<std::string> rest(args.empty() ? args.begin() : args.begin() + 1, args.end());
  if (verb == "create") return run_token_create(rest);
  if (verb == "list") return run_token_list(rest);
  if (verb == "delete") return run_token_delete(rest);
  const bool help = verb == "--help" || verb == "-h";
  if (!help && !verb.empty())
    std::fprintf(stderr, "error: unknown command \"%s\" for \"%s token\"\n", verb.c_str(), program_name().c_str());
  std::fprintf(help ? stdout : stderr,
               "Usage: %s token VERB\n"
               "  create [TOKEN]  make a token that machines can join with; --print-join-command prints what to type there\n"
               "  list            list the tokens\n"
               "  delete ID…      end tokens\n",
               program_name().c_str());
  return help ? 0 : 2;
}

}  // namespace berth::cli
