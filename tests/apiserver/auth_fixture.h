// A cache with the default roles, and users to ask for.
#pragma once
#include <gtest/gtest.h>

#include "apiserver/auth/auth.h"
#include "apiserver/auth/rbac.h"
#include "apiserver/cache/object_codec.h"
#include "tests/apiserver/object_cache_fixture.h"
#include "tests/store/store_fixture.h"

namespace berth::apiserver::auth {

/// One document of YAML, flow style too (which at the very beginning would be taken for JSON).
inline json::Value doc(const std::string& yaml) {
  auto parsed = json::parse_yaml("--- " + yaml);
  EXPECT_TRUE(parsed.has_value()) << parsed.error().message;
  return parsed.value_or(json::Value(json::Object{}));
}

class AuthFixture : public CacheFixture {
 protected:
  void SetUp() override {
    open();
    auto pki = security::Pki::open({.directory = directory_.file("pki"), .names = {"berth.example", "192.0.2.7"}}, clock_.now());
    ASSERT_TRUE(pki.has_value()) << pki.error().message;
    pki_.emplace(std::move(*pki));
    auto parts = make_auth(
        {.cache = cache_.get(), .clock = &clock_, .service_account_key_pem = pki_->service_account_key_pem(), .issuer = "https://issuer"});
    ASSERT_TRUE(parts.has_value()) << parts.error().message;
    parts_ = std::move(*parts);
  }
  void TearDown() override { parts_ = {}; }

  static Proposal proposal_of_rbac(const json::Value& document) {
    return proposal_of(*model::find_kind("rbac.authorization.k8s.io", "v1", json::get_string(document, {"kind"})), document);
  }
  /// Writes an RBAC document given as YAML.
  void write_rbac(const char* yaml) {
    auto documents = json::parse_yaml_stream(std::string(yaml[0] == '{' ? "--- " : "") + yaml);
    ASSERT_TRUE(documents.has_value()) << documents.error().message;
    for (auto& document : *documents) {
      ASSERT_TRUE(propose_and_wait(*cache_, proposal_of_rbac(document)).has_value());
    }
  }
  /// Stores any core object so that lookups find it.
  void write_core(std::string_view plural, const json::Value& document) {
    json::Value copy = document;
    json::set(copy, {"metadata", "resourceVersion"}, json::Value(""));
    Proposal proposal;
    proposal.key = make_key("", plural, json::get_string(copy, {"metadata", "namespace"}), json::get_string(copy, {"metadata", "name"}));
    proposal.value = json::serialize(copy);
    proposal.revision_offset = proposal.value.find(R"("resourceVersion":"")") + 19;
    proposal.meta = meta_of_json({}, proposal.value);
    ASSERT_TRUE(propose_and_wait(*cache_, std::move(proposal)).has_value());
  }
  void remove_core(std::string_view plural, std::string_view ns, std::string_view name) {
    Proposal proposal;
    proposal.key = make_key("", plural, ns, name);
    proposal.is_delete = true;
    ASSERT_TRUE(propose_and_wait(*cache_, std::move(proposal)).has_value());
  }
  static UserInfo user(std::string name, std::vector<std::string> groups = {}) {
    groups.emplace_back("system:authenticated");
    return {std::move(name), "", std::move(groups), {}};
  }
  /// "get pods", "create apps:deployments", "get pods/log", "get pods web" (a name), or "get /metrics".
  static Attributes ask(const std::string& text, std::string ns = {}) {
    Attributes attributes;
    attributes.version = "v1";
    attributes.ns = std::move(ns);
    auto space = text.find(' ');
    attributes.verb = text.substr(0, space);
    std::string what = text.substr(space + 1);
    if (what.starts_with('/')) {
      attributes.is_resource = false;
      attributes.path = what;
      return attributes;
    }
    if (auto name = what.find(' '); name != std::string::npos) {
      attributes.name = what.substr(name + 1);
      what.resize(name);
    }
    if (auto colon = what.find(':'); colon != std::string::npos) {
      attributes.group = what.substr(0, colon);
      what.erase(0, colon + 1);
    }
    auto slash = what.find('/');
    attributes.resource = what.substr(0, slash);
    if (slash != std::string::npos) attributes.subresource = what.substr(slash + 1);
    return attributes;
  }
  bool may(const UserInfo& who, const std::string& text, const std::string& ns = {}) {
    return parts_.authorizer->authorize(who, ask(text, ns)).allowed;
  }

  store::TemporaryDirectory directory_;
  std::optional<security::Pki> pki_;
  AuthParts parts_;
};

}  // namespace berth::apiserver::auth
