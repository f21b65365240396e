// Bootstrap tokens: expired ones go, and the others sign what a machine that wants to join reads first.
#include "controllers/certificates.h"
#include "controllers/common.h"
#include "security/bootstrap_token.h"

namespace berth::controllers {
namespace {

constexpr std::string_view kInfoNamespace = "kube-public", kInfoName = "cluster-info", kSignaturePrefix = "jws-kubeconfig-";

/// Of a Secret, without parsing it: those that may be bootstrap tokens.
bool may_be_token(const Object& secret) {
  return secret.ns() == security::kBootstrapTokenNamespace && secret.text()->find(security::kBootstrapTokenType) != std::string::npos;
}

class TokenCleaner final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "token-cleaner-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().secret}; }
  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    if (event.after && may_be_token(*event.after)) sink.add(event.after->key());
  }
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override {
    Plan plan;
    const auto [ns, name] = split_key(key);
    const ObjectRef secret = cache.get(kinds().secret, ns, name);
    if (!secret || secret->is_deleting()) return plan;
    const auto token = security::read_bootstrap_secret(*secret->parsed());
    if (!token) return plan;
    if (token->is_expired(now))
      plan.writes.push_back(delete_object(kinds().secret, *secret));
    else if (token->expiration)
      plan.requeue_after = *token->expiration - now;
    return plan;
  }
};

class BootstrapSigner final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "bootstrap-signer-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().secret, kinds().config_map}; }
  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    const Object& object = event.object();
    const bool is_info = event.kind == kinds().config_map && object.ns() == kInfoNamespace && object.name() == kInfoName;
    const bool is_token = event.kind == kinds().secret && (may_be_token(object) || (event.before && may_be_token(*event.before)));
    if (is_info || is_token) sink.add(std::string(kInfoName));
  }
  Plan reconcile(const std::string&, TimePoint now, const Cache& cache) override {
    Plan plan;
    const ObjectRef info = cache.get(kinds().config_map, kInfoNamespace, kInfoName);
    if (!info || info->is_deleting()) return plan;
    const auto parsed = info->parsed();
    const json::Value& document = *parsed;
    const std::string_view content = json::get_string(document, {"data", "kubeconfig"});
    json::Object wanted;
    cache.for_each_in(kinds().secret, security::kBootstrapTokenNamespace, [&](const ObjectRef& secret) {
      if (!may_be_token(*secret) || secret->is_deleting()) return;
      const auto token = security::read_bootstrap_secret(*secret->parsed());
      if (token && token->trouble.empty() && token->signs && !token->is_expired(now) && !content.empty())
        wanted[std::string(kSignaturePrefix) + token->id] = security::detached_signature(content, {token->id, token->secret});
    });
    json::Object present;
    for (const auto& [key, value] : json::get_object(document, {"data"}))
      if (std::string_view(key.data(), key.size()).starts_with(kSignaturePrefix)) present[key] = value;
    json::Object diff = merge_diff(present, wanted);
    if (!diff.empty()) plan.writes.push_back(patch_object(kinds().config_map, *info, {{"data", std::move(diff)}}));
    return plan;
  }
};

}  // namespace

ControllerPtr make_token_cleaner_controller() { return std::make_unique<TokenCleaner>(); }
ControllerPtr make_bootstrap_signer_controller() { return std::make_unique<BootstrapSigner>(); }

}  // namespace berth::controllers
