// Files of authentication, authorization, encryption and audit policies, and the --oidc-… flags: what is said of each, word for word
// (configs_told.txt beside this). After an audit policy and the line "asked:" stands a request a line, "USER,GROUP… VERB GROUP:RESOURCE
// [NAMESPACE [NAME]]" or "USER VERB /PATH": how much of it is written down.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <sstream>

#include "apiserver/audit/policy.h"
#include "apiserver/auth/authorization_config.h"
#include "apiserver/auth/oidc_config.h"
#include "apiserver/encryption/config.h"
#include "tests/support/told.h"

namespace berth::apiserver {
namespace {

std::string of(const auth::ClaimMapping& mapping) {
  return fmt::format("claim={} prefix={} expression={}", mapping.claim, mapping.prefix, mapping.expression ? mapping.text : "");
}

std::string of(const auth::IssuerConfig& issuer) {
  std::string out = fmt::format("issuer {} discovery={} ca={} audiences={} algorithms={}\nusername {}\ngroups {}\nuid {}\n", issuer.url,
                                issuer.discovery_url, !issuer.ca_pem.empty(), issuer.audiences, issuer.algorithms, of(issuer.username),
                                of(issuer.groups), of(issuer.uid));
  for (const auto& rule : issuer.claim_rules)
    out += fmt::format("rule claim={} value={} expression={} message={}\n", rule.claim, rule.required_value,
                       rule.expression ? rule.text : "", rule.message);
  for (const auto& rule : issuer.user_rules)
    out += fmt::format("user rule {} {} {}\n", rule.text, rule.expression.has_value(), rule.message);
  for (const auto& one : issuer.extra) out += fmt::format("extra {} {}\n", one.key, one.text);
  return out;
}

std::string authentication(const std::string& text) {
  const auto read = auth::parse_authentication_config(text, "f");
  if (!read) return read.error().message + "\n";
  std::string out;
  for (const auto& issuer : read->issuers) out += of(issuer);
  if (read->anonymous) out += fmt::format("anonymous {} {}\n", read->anonymous->enabled, read->anonymous->paths);
  return out.empty() ? "nothing\n" : out;
}

std::string authorization(const std::string& text) {
  const auto read = auth::parse_authorization_config(text, "f");
  if (!read) return read.error().message + "\n";
  std::string out;
  for (const auto& one : *read) {
    const auto ms = [](Duration time) { return std::chrono::duration_cast<std::chrono::milliseconds>(time).count(); };
    out += fmt::format("{} {} file={} timeout={} yes={} no={} denies={}\n", static_cast<int>(one.type), one.name, one.kubeconfig_file,
                       ms(one.timeout), ms(one.authorized_ttl), ms(one.unauthorized_ttl), one.failure_denies);
    for (const auto& [condition, program] : one.conditions) out += "when " + condition + "\n";
  }
  return out;
}

std::string encryption(const std::string& text) {
  const auto read = encryption::parse_configuration(text, "f");
  if (!read) return read.error().message + "\n";
  std::string out;
  for (const auto& rule : read->rules) out += fmt::format("{} by {}\n", rule.resources, rule.providers.size());
  for (const auto& service : read->key_services) out += "kms " + service->name() + "\n";
  for (const auto& [group, plural] : {std::pair("", "secrets"), std::pair("apps", "deployments"), std::pair("", "events")}) {
    const auto* rule = read->rule_of(group, plural);
    out += fmt::format("{}.{}: {}\n", plural, group, rule == nullptr ? -1 : rule - read->rules.data());
  }
  return out;
}

std::string audited(const audit::Policy& policy, const std::string& line) {
  std::istringstream words(line);
  std::string who, verb, what, group;
  words >> who >> verb >> what;
  UserInfo user{who.substr(0, who.find(',')), "", {}, {}};
  std::istringstream groups(who);
  for (std::getline(groups, group, ','); std::getline(groups, group, ',');) user.groups.push_back(group);
  Attributes asked;
  asked.verb = verb;
  asked.is_resource = !what.starts_with('/');
  if (asked.is_resource) {
    const std::size_t colon = what.find(':'), slash = what.find('/');
    asked.group = what.substr(0, colon);
    asked.resource = what.substr(colon + 1, slash == std::string::npos ? slash : slash - colon - 1);
    if (slash != std::string::npos) asked.subresource = what.substr(slash + 1);
    words >> asked.ns >> asked.name;
  } else {
    asked.path = what;
  }
  const audit::Decision decision = policy.decide(user, asked);
  std::string out(to_string(decision.level));
  for (const audit::Stage stage : decision.omit_stages) out += fmt::format(" -{}", to_string(stage));
  return out + (decision.omit_managed_fields ? " -managedFields" : "") + "\n";
}

std::string audit_policy(const std::string& text) {
  const std::size_t asked = text.find("asked:\n");
  const auto read = audit::parse_policy(text.substr(0, asked), "f");
  if (!read) return read.error().message + "\n";
  std::string out;
  std::istringstream lines(asked == std::string::npos ? "" : text.substr(asked + 7));
  for (std::string line; std::getline(lines, line);) out += audited(*read, line);
  return out;
}

std::string oidc_flags(std::string text) {
  auth::OidcFlags flags;
  for (const auto& [name, value] : testing::take_flags(text)) {
    const std::string given = value.value_or("");
    if (name == "required-claim")
      flags.required_claims.push_back(given);
    else if (name == "signing-algs")
      flags.signing_algs.push_back(given);
    else
      (name == "issuer-url"        ? flags.issuer_url
       : name == "client-id"       ? flags.client_id
       : name == "ca-file"         ? flags.ca_file
       : name == "username-claim"  ? flags.username_claim
       : name == "username-prefix" ? flags.username_prefix
       : name == "groups-claim"    ? flags.groups_claim
                                   : flags.groups_prefix) = given;
  }
  const auto issuer = auth::issuer_of_flags(flags);
  return issuer ? of(*issuer) : issuer.error().message + "\n";
}

TEST(ConfigurationFiles, WhatBecomesOfEachIsWrittenDown) {
  testing::expect_told("tests/apiserver/configs_told.txt", [](const std::string& text) {
    if (text.starts_with("flags:\n")) return oidc_flags(text);
    return text.starts_with("# authentication")  ? authentication(text)
           : text.starts_with("# authorization") ? authorization(text)
           : text.starts_with("# audit")         ? audit_policy(text)
                                                 : encryption(text);
  });
}

}  // namespace
}  // namespace berth::apiserver
