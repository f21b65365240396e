// Service accounts: the default account and the CA bundle of every namespace, and the tokens of legacy secrets.
#include "base/base64.h"
#include "controllers/cluster.h"
#include "controllers/common.h"

namespace berth::controllers {
namespace {

constexpr const char* kRootCa = "kube-root-ca.crt";
constexpr const char* kAccountName = "kubernetes.io/service-account.name";
constexpr const char* kAccountUid = "kubernetes.io/service-account.uid";

bool is_active(const ObjectRef& ns) { return ns && !ns->is_deleting(); }

class ServiceAccountController final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "serviceaccount-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().namespace_, kinds().service_account}; }
  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().namespace_ && event.after) sink.add(event.after->name());
    if (event.kind == kinds().service_account && !event.after && event.before->name() == "default") sink.add(event.before->ns());
  }
  Plan reconcile(const std::string& key, TimePoint, const Cache& cache) override {
    Plan plan;
    if (!is_active(cache.get(kinds().namespace_, "", key)) || cache.get(kinds().service_account, key, "default")) return plan;
    plan.writes.push_back(create_object(
        kinds().service_account, key,
        json::Object{
            {"apiVersion", "v1"}, {"kind", "ServiceAccount"}, {"metadata", json::Object{{"name", "default"}, {"namespace", key}}}}));
    return plan;
  }
};

class RootCaPublisher final : public Controller {
 public:
  explicit RootCaPublisher(std::string pem) : pem_(std::move(pem)) {}
  [[nodiscard]] std::string_view name() const override { return "root-ca-certificate-publisher-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().namespace_, kinds().config_map}; }
  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().namespace_ && event.after) sink.add(event.after->name());
    if (event.kind == kinds().config_map && event.object().name() == kRootCa) sink.add(event.object().ns());
  }
  Plan reconcile(const std::string& key, TimePoint, const Cache& cache) override {
    Plan plan;
    if (!is_active(cache.get(kinds().namespace_, "", key))) return plan;
    json::Object data{{"ca.crt", pem_}};
    const ObjectRef present = cache.get(kinds().config_map, key, kRootCa);
    if (!present) {
      json::Object annotations{
          {"kubernetes.io/description",
           "Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the internal service "
           "IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters."}};
      plan.writes.push_back(create_object(
          kinds().config_map, key,
          json::Object{{"apiVersion", "v1"},
                       {"kind", "ConfigMap"},
                       {"metadata", json::Object{{"name", kRootCa}, {"namespace", key}, {"annotations", std::move(annotations)}}},
                       {"data", std::move(data)}}));
      return plan;
    }
    const auto parsed = present->parsed();
    const json::Value& document = *parsed;
    json::Object diff = merge_diff(json::get_object(document, {"data"}), data);
    if (!diff.empty()) plan.writes.push_back(patch_object(kinds().config_map, *present, {{"data", std::move(diff)}}));
    return plan;
  }

 private:
  std::string pem_;
};

class TokenController final : public Controller {
 public:
  explicit TokenController(std::string pem) : pem_(std::move(pem)) {}
  [[nodiscard]] std::string_view name() const override { return "serviceaccount-token-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().secret, kinds().service_account}; }
  void on_event(const Event& event, const Cache& cache, TimePoint, KeySink& sink) override {
    if (event.kind == kinds().secret) {
      if (event.object().text()->find("kubernetes.io/service-account-token") != std::string::npos) sink.add(event.object().key());
      return;
    }
    cache.for_each_in(kinds().secret, event.object().ns(), [&](const ObjectRef& secret) {
      if (secret->text()->find("kubernetes.io/service-account-token") != std::string::npos) sink.add(secret->key());
    });
  }
  Plan reconcile(const std::string& key, TimePoint, const Cache& cache) override;
  void on_result(const std::string& key, const Write& write, const ApiResult<json::Value>& result, TimePoint) override {
    if (write.tag == "token" && result) tokens_[key] = json::get_string(*result, {"status", "token"});
  }

 private:
  std::string pem_;
  std::map<std::string, std::string> tokens_;  ///< Issued, not yet in their secret.
};

Plan TokenController::reconcile(const std::string& key, TimePoint, const Cache& cache) {
  Plan plan;
  const auto [ns, name] = split_key(key);
  const ObjectRef secret = cache.get(kinds().secret, ns, name);
  if (!secret || secret->is_deleting()) {
    tokens_.erase(key);
    return plan;
  }
  const auto parsed = secret->parsed();
  const json::Value& document = *parsed;
  if (json::get_string(document, {"type"}) != "kubernetes.io/service-account-token") return plan;
  const ObjectRef account = cache.get(kinds().service_account, ns, json::get_string(document, {"metadata", "annotations", kAccountName}));
  const std::string_view uid = json::get_string(document, {"metadata", "annotations", kAccountUid});
  if (!account || (!uid.empty() && uid != account->uid())) {
    plan.writes.push_back(delete_object(kinds().secret, *secret));
    return plan;
  }
  json::Object data;
  if (json::find(document, {"data", "ca.crt"}) == nullptr && !pem_.empty()) data["ca.crt"] = base64_encode(pem_);
  if (json::find(document, {"data", "namespace"}) == nullptr) data["namespace"] = base64_encode(ns);
  if (json::find(document, {"data", "token"}) == nullptr) {
    const auto issued = tokens_.find(key);
    if (issued == tokens_.end()) {
      json::Object bound{{"apiVersion", "v1"}, {"kind", "Secret"}, {"name", name}, {"uid", secret->uid()}};
      json::Object spec{
          {"audiences", json::Array{}}, {"expirationSeconds", std::int64_t{10} * 365 * 24 * 3600}, {"boundObjectRef", std::move(bound)}};
      Write write =
          create_object(kinds().service_account, ns,
                        json::Object{{"apiVersion", "authentication.k8s.io/v1"}, {"kind", "TokenRequest"}, {"spec", std::move(spec)}});
      write.name = account->name();
      write.subresource = "token";
      write.tag = "token";
      plan.writes.push_back(std::move(write));
      plan.requeue_after = std::chrono::milliseconds(1);
      return plan;
    }
    data["token"] = base64_encode(issued->second);
    tokens_.erase(issued);
  }
  json::Object patch;
  if (!data.empty()) patch["data"] = std::move(data);
  if (uid.empty()) patch["metadata"] = json::Object{{"annotations", json::Object{{kAccountUid, account->uid()}}}};
  if (!patch.empty()) plan.writes.push_back(patch_object(kinds().secret, *secret, std::move(patch)));
  return plan;
}

}  // namespace

ControllerPtr make_serviceaccount_controller() { return std::make_unique<ServiceAccountController>(); }
ControllerPtr make_root_ca_publisher(std::string root_ca_pem) { return std::make_unique<RootCaPublisher>(std::move(root_ca_pem)); }
ControllerPtr make_serviceaccount_token_controller(std::string root_ca_pem) {
  return std::make_unique<TokenController>(std::move(root_ca_pem));
}

}  // namespace berth::controllers
