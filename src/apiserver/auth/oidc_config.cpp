#include "apiserver/auth/oidc_config.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/config_reader.h"
#include "net/certificates.h"

namespace berth::apiserver::auth {
namespace {

constexpr std::array<std::string_view, 3> kConfigVersions = {"apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v1beta1",
                                                             "apiserver.config.k8s.io/v1alpha1"};

cel::Environment claims_environment() {
  cel::Environment out;
  out.variables = {{"claims", cel::map_type(cel::string_type(), cel::dyn_type())}};
  return out;
}

cel::Environment user_environment() {
  const auto text = cel::string_type();
  const auto texts = cel::list_type(text);
  cel::Environment out;
  out.structs = {{"kubernetes.UserInfo", {{"username", text}, {"uid", text}, {"groups", texts}, {"extra", cel::map_type(text, texts)}}}};
  out.variables = {{"user", cel::struct_type("kubernetes.UserInfo")}};
  return out;
}

/// `types`: the names of what it may be; a value that is only known when it is evaluated is checked then.
std::optional<cel::Program> compile_here(const config::Reader& from, std::string_view field, const cel::Environment& environment,
                                         std::vector<std::string_view> types) {
  const std::string text = from.string(field);
  auto program = cel::compile(text, environment);
  if (!program) {
    from.problem(field, fmt::format("compilation failed: {}", program.error().text));
    return std::nullopt;
  }
  const auto shown = cel::declared_name(program->output_type());
  types.emplace_back("dyn");
  // "list(string)" is a list.
  if (std::ranges::find(types, std::string_view(shown).substr(0, shown.find('('))) == types.end()) {
    from.problem(field, fmt::format("must evaluate to {}, but is {}", fmt::join(types.begin(), types.end() - 1, " or "), shown));
    return std::nullopt;
  }
  return std::move(*program);
}

void check_https(const config::Reader& from, std::string_view field, const std::string& url) {
  if (!url.starts_with("https://") || url.size() == std::string_view("https://").size())
    from.problem(field, fmt::format("\"{}\" is no URL with https://", url));
  else if (url.find('@') != std::string::npos || url.find('?') != std::string::npos || url.find('#') != std::string::npos)
    from.problem(field, fmt::format("\"{}\" must have no user, query or fragment", url));
}

void read_issuer(const config::Reader& from, IssuerConfig& out) {
  if (!from.is_object()) return from.problem("missing; url and audiences of the issuer");
  from.only({"url", "discoveryURL", "certificateAuthority", "audiences", "audienceMatchPolicy", "egressSelectorType"});
  from.without_effect({"egressSelectorType"}, "there are no egress selectors here");
  out.url = from.string("url");
  out.discovery_url = from.string("discoveryURL");
  out.ca_pem = from.string("certificateAuthority");
  out.audiences = from.strings("audiences");
  check_https(from, "url", out.url);
  if (!out.discovery_url.empty()) check_https(from, "discoveryURL", out.discovery_url);
  if (!out.discovery_url.empty() && out.discovery_url == out.url) from.problem("discoveryURL", "must be another than url");
  if (!out.ca_pem.empty())
    if (const auto chain = net::check_certificate_chain(out.ca_pem); !chain) from.problem("certificateAuthority", chain.error().message);
  if (out.audiences.empty()) from.problem("audiences", "missing; whom the tokens are for (the client id)");
  const std::string policy = from.string("audienceMatchPolicy");
  if (!policy.empty() && policy != "MatchAny") from.problem("audienceMatchPolicy", fmt::format("\"{}\"; only MatchAny is there", policy));
  if (out.audiences.size() > 1 && policy.empty())
    from.problem("audienceMatchPolicy", "missing; MatchAny, where there are several audiences");
}

ClaimMapping read_mapping(const config::Reader& from, bool is_required, bool has_prefix, std::vector<std::string_view> types) {
  ClaimMapping out;
  if (!from.is_object()) {
    if (is_required) from.problem("missing; claim and prefix, or an expression");
    return out;
  }
  if (has_prefix)
    from.only({"claim", "prefix", "expression"});
  else
    from.only({"claim", "expression"});
  out.claim = from.string("claim");
  out.text = from.string("expression");
  if (has_prefix) out.prefix = from.string("prefix");
  if (!out.claim.empty() && !out.text.empty()) from.problem("claim and expression: give one of them");
  if (out.claim.empty() && out.text.empty() && is_required) from.problem("claim or expression is missing");
  if (has_prefix && !out.claim.empty() && !from.has("prefix"))
    from.problem("prefix", "missing; \"\" where names are to be taken as they are");
  if (has_prefix && !out.text.empty() && from.has("prefix")) from.problem("prefix", "goes with claim alone; an expression says the whole");
  if (!out.text.empty()) out.expression = compile_here(from, "expression", claims_environment(), std::move(types));
  return out;
}

std::vector<ClaimRule> read_claim_rules(const config::Reader& list) {
  std::vector<ClaimRule> out;
  for (const config::Reader& from : list.items()) {
    if (!from.expect_object()) continue;
    from.only({"claim", "requiredValue", "expression", "message"});
    ClaimRule rule{from.string("claim"), from.string("requiredValue"), {}, from.string("expression"), from.string("message")};
    if (rule.claim.empty() == rule.text.empty()) from.problem("claim and expression: give one of them");
    if (!rule.text.empty()) rule.expression = compile_here(from, "expression", claims_environment(), {"bool"});
    out.push_back(std::move(rule));
  }
  return out;
}

void read_extra(const config::Reader& list, IssuerConfig& out) {
  std::set<std::string> seen;
  for (const config::Reader& from : list.items()) {
    if (!from.expect_object()) continue;
    from.only({"key", "valueExpression"});
    const std::string key = from.string("key");
    const std::string domain = key.substr(0, key.find('/'));
    if (key.find('/') == std::string::npos || domain.find('.') == std::string::npos)
      from.problem("key", fmt::format("\"{}\" must be of the form example.com/name", key));
    if (std::ranges::any_of(key, [](unsigned char c) { return std::isupper(c) != 0; }))
      from.problem("key", fmt::format("\"{}\" must be lower case", key));
    if (domain == "kubernetes.io" || domain.ends_with(".kubernetes.io") || domain == "k8s.io" || domain.ends_with(".k8s.io"))
      from.problem("key", fmt::format("\"{}\" is Kubernetes' own", key));
    if (!seen.insert(key).second) from.problem("key", fmt::format("\"{}\" is there twice", key));
    if (auto program = compile_here(from, "valueExpression", claims_environment(), {"string", "list"}))
      out.extra.push_back({key, std::move(*program), from.string("valueExpression")});
  }
}

/// An address that nobody verified is nobody's name (apis/apiserver/validation, validateEmailUsage).
void check_email(const config::Reader& from, const IssuerConfig& issuer) {
  const auto uses = [](std::string_view text, std::string_view what) { return text.find(what) != std::string_view::npos; };
  if (!uses(issuer.username.text, "claims.email")) return;
  bool verified = uses(issuer.username.text, "claims.email_verified");
  for (const auto& rule : issuer.claim_rules) verified = verified || uses(rule.text, "claims.email_verified");
  for (const auto& one : issuer.extra) verified = verified || uses(one.text, "claims.email_verified");
  if (!verified)
    from.problem(
        "claims.email_verified must be used in claimMappings.username.expression, an extra mapping or a claimValidationRule when "
        "claims.email is");
}

IssuerConfig read_jwt(const config::Reader& from) {
  IssuerConfig out;
  if (!from.expect_object()) return out;
  from.only({"issuer", "claimValidationRules", "claimMappings", "userValidationRules"});
  read_issuer(from.field("issuer"), out);
  out.claim_rules = read_claim_rules(from.field("claimValidationRules"));
  const config::Reader mappings = from.field("claimMappings");
  mappings.only({"username", "groups", "uid", "extra"});
  out.username = read_mapping(mappings.field("username"), true, true, {"string"});
  out.groups = read_mapping(mappings.field("groups"), false, true, {"string", "list"});
  out.uid = read_mapping(mappings.field("uid"), false, false, {"string"});
  read_extra(mappings.field("extra"), out);
  check_email(mappings, out);
  for (const config::Reader& rule : from.field("userValidationRules").items()) {
    if (!rule.expect_object()) continue;
    rule.only({"expression", "message"});
    ClaimRule one;
    one.text = rule.string("expression");
    one.message = rule.string("message");
    if (one.text.empty())
      rule.problem("expression", "missing");
    else
      one.expression = compile_here(rule, "expression", user_environment(), {"bool"});
    out.user_rules.push_back(std::move(one));
  }
  return out;
}

AnonymousConfig read_anonymous(const config::Reader& from) {
  from.only({"enabled", "conditions"});
  AnonymousConfig out;
  out.enabled = from.boolean("enabled", false);
  for (const config::Reader& condition : from.field("conditions").items()) {
    condition.only({"path"});
    const std::string path = condition.string("path");
    if (!path.starts_with('/')) condition.problem("path", fmt::format("\"{}\" must begin with /", path));
    out.paths.push_back(path);
  }
  if (!out.enabled && !out.paths.empty()) from.problem("conditions", "say something only where enabled is true");
  return out;
}

}  // namespace

Result<AuthenticationConfig> parse_authentication_config(std::string_view text, const std::string& file) {
  AuthenticationConfig out;
  const auto read = config::read_text(text, {.file = file}, [&](const config::Reader& root) {
    out = {};
    if (!root.expect_object()) return;
    static constexpr std::array<std::string_view, 1> kKinds = {"AuthenticationConfiguration"};
    root.only({"apiVersion", "kind", "jwt", "anonymous"});
    root.expect_kind(kKinds, kConfigVersions);
    for (const char* field : {"apiVersion", "kind"})
      if (!root.has(field))
        root.problem(field, "missing; the file begins with apiVersion: apiserver.config.k8s.io/v1 and kind: AuthenticationConfiguration");
    std::set<std::string> urls;
    for (const config::Reader& one : root.field("jwt").items()) {
      out.issuers.push_back(read_jwt(one));
      if (!out.issuers.back().url.empty() && !urls.insert(out.issuers.back().url).second)
        one.problem("issuer.url", fmt::format("\"{}\" is there twice", out.issuers.back().url));
    }
    if (root.has("anonymous")) out.anonymous = read_anonymous(root.field("anonymous"));
  });
  if (!read) return std::unexpected(read.error());
  return out;
}

Result<IssuerConfig> issuer_of_flags(const OidcFlags& flags) {
  IssuerConfig out;
  if (flags.issuer_url.empty() || flags.client_id.empty()) return invalid("--oidc-issuer-url and --oidc-client-id: give both of them");
  if (!flags.issuer_url.starts_with("https://"))
    return invalid(fmt::format("--oidc-issuer-url: \"{}\" does not begin with https://", flags.issuer_url));
  out.url = flags.issuer_url;
  out.audiences = {flags.client_id};
  if (!flags.ca_file.empty()) {
    auto pem = config::read_whole_file(flags.ca_file);
    if (!pem) return invalid("--oidc-ca-file: " + pem.error().message);
    if (const auto chain = net::check_certificate_chain(*pem); !chain)
      return invalid(fmt::format("--oidc-ca-file: {}: {}", flags.ca_file, chain.error().message));
    out.ca_pem = std::move(*pem);
  }
  out.username.claim = flags.username_claim;
  // Names of others must not be taken for the cluster's own; an address is somebody's anyway.
  out.username.prefix = flags.username_prefix == "-"      ? ""
                        : !flags.username_prefix.empty()  ? flags.username_prefix
                        : flags.username_claim == "email" ? ""
                                                          : flags.issuer_url + "#";
  out.groups = {flags.groups_claim, flags.groups_prefix, {}, {}};
  for (const std::string& required : flags.required_claims) {
    const auto equals = required.find('=');
    if (equals == std::string::npos || equals == 0) return invalid(fmt::format("--oidc-required-claim: \"{}\" is not KEY=VALUE", required));
    out.claim_rules.push_back({required.substr(0, equals), required.substr(equals + 1), {}, {}, {}});
  }
  const std::vector<std::string> known = out.algorithms;
  out.algorithms = flags.signing_algs.empty() ? std::vector<std::string>{"RS256"} : flags.signing_algs;
  for (const std::string& algorithm : out.algorithms)
    if (std::ranges::find(known, algorithm) == known.end())
      return invalid(fmt::format("--oidc-signing-algs: \"{}\" is not one of {}", algorithm, fmt::join(known, ", ")));
  return out;
}

}  // namespace berth::apiserver::auth
