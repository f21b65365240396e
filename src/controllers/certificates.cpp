// Requests for certificates: who approves them by itself, who signs them, when they go.
#include "controllers/certificates.h"

#include "base/base64.h"
#include "controllers/common.h"

namespace berth::controllers {
namespace {

constexpr std::string_view kClientSigner = "kubernetes.io/kube-apiserver-client";
constexpr std::string_view kKubeletClientSigner = "kubernetes.io/kube-apiserver-client-kubelet";
constexpr std::string_view kKubeletServingSigner = "kubernetes.io/kubelet-serving";
constexpr Duration kBackdate = std::chrono::minutes(5), kShort = std::chrono::hours(8), kLeast = std::chrono::minutes(10);

using Usages = std::vector<std::string>;

bool is_one_of(const Usages& usages, std::initializer_list<std::set<std::string>> sets) {
  const std::set<std::string> given(usages.begin(), usages.end());
  return std::ranges::find(sets, given) != sets.end();
}

std::vector<std::string> usages_of(const json::Value& request) {
  Usages out;
  for (const json::Value& usage : json::get_array(request, {"spec", "usages"}))
    if (usage.is_string()) out.emplace_back(json::as_view(usage));
  return out;
}

bool is_true(const json::Value& request, std::string_view type) {
  const json::Value* condition = find_condition(request, type);
  return condition != nullptr && json::get_string(*condition, {"status"}) == "True";
}

bool is_node_subject(const net::CertificateRequestFacts& request, std::string& why) {
  if (request.organizations != std::vector<std::string>{"system:nodes"}) why = "subject organization is not system:nodes";
  return why.empty();
}

Result<net::CertificateRequestFacts> facts_of(const json::Value& request) {
  return net::read_certificate_request(base64_decode(json::get_string(request, {"spec", "request"})).value_or(""));
}

Write change_request(const Object& object, json::Object status, std::string_view subresource) {
  Write write = patch_object(kinds().certificate_signing_request, object, {{"status", std::move(status)}});
  write.subresource = subresource;
  return write;
}

/// The list with one more; a merge patch replaces it whole, so it goes with the revision that was seen.
json::Array with_condition(const json::Value& request, json::Object condition) {
  json::Array all = json::get_array(request, {"status", "conditions"});
  all.push_back(std::move(condition));
  return all;
}

class SigningController final : public Controller {
 public:
  explicit SigningController(SigningOptions options) : options_(std::move(options)) {}
  [[nodiscard]] std::string_view name() const override { return "certificatesigningrequest-signing-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().certificate_signing_request}; }
  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    if (event.after) sink.add(event.after->name());
  }
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override;

 private:
  /// Empty: signed here, and in order. A foreign signer's request gives nullopt.
  [[nodiscard]] static std::optional<std::string> check(std::string_view signer, const net::CertificateRequestFacts& facts,
                                                        const Usages& usages);
  /// Who signs for a signer; null: nobody.
  [[nodiscard]] const AuthoritySource& authority_of(std::string_view signer) const;
  SigningOptions options_;
};

const AuthoritySource& SigningController::authority_of(std::string_view signer) const {
  const std::string_view own = signer == kClientSigner          ? "kube-apiserver-client"
                               : signer == kKubeletClientSigner ? "kubelet-client"
                                                                : "kubelet-serving";
  const auto found = options_.own_authorities.find(own);
  return found == options_.own_authorities.end() ? options_.authority : found->second.source;
}

std::optional<std::string> SigningController::check(std::string_view signer, const net::CertificateRequestFacts& facts,
                                                    const Usages& usages) {
  if (signer == kClientSigner) return check_client_request(usages);
  if (signer == kKubeletClientSigner) return check_kubelet_client_request(facts, usages);
  if (signer == kKubeletServingSigner) return check_kubelet_serving_request(facts, usages);
  return std::nullopt;
}

Plan SigningController::reconcile(const std::string& key, TimePoint now, const Cache& cache) {
  Plan plan;
  const ObjectRef object = cache.get(kinds().certificate_signing_request, "", key);
  if (!object || object->is_deleting()) return plan;
  const auto request_parsed = object->parsed();
  const json::Value& request = *request_parsed;
  if (!json::get_string(request, {"status", "certificate"}).empty() || !is_true(request, "Approved") || is_true(request, "Denied") ||
      is_true(request, "Failed"))
    return plan;
  const Usages usages = usages_of(request);
  const auto facts = facts_of(request);
  if (!facts) {
    plan.error = fmt::format("unable to parse csr \"{}\": {}", key, facts.error().message);
    return plan;
  }
  const auto why = check(json::get_string(request, {"spec", "signerName"}), *facts, usages);
  if (!why) return plan;
  const auto refuse = [&](const std::string& message) {
    json::Object condition{{"type", "Failed"}, {"status", "True"}, {"reason", "SignerValidationFailure"}, {"message", message}};
    plan.writes.push_back(change_request(*object, {{"conditions", with_condition(request, std::move(condition))}}, "status"));
  };
  if (!why->empty()) {
    refuse(*why);
    return plan;
  }
  const AuthoritySource& source = authority_of(json::get_string(request, {"spec", "signerName"}));
  if (!source) return plan;
  const auto authority = source();
  if (!authority) {
    plan.error = fmt::format("error auto signing csr: {}", authority.error().message);
    return plan;
  }
  const Duration asked = seconds_at(request, {"spec", "expirationSeconds"});
  const Duration life = asked == Duration::zero() ? options_.duration : std::clamp(asked, kLeast, std::max(kLeast, options_.duration));
  // Short lives are given whole, longer ones begin in the past at their own cost.
  const net::SigningTerms terms{usages, now - kBackdate, life < kShort ? now + life : now + life - kBackdate};
  const auto certificate = net::sign_certificate(*authority, *facts, terms);
  if (!certificate) {
    if (certificate.error().code == ErrorCode::kInvalid)
      refuse(certificate.error().message);
    else
      plan.error = fmt::format("error auto signing csr: {}", certificate.error().message);
    return plan;
  }
  plan.writes.push_back(change_request(*object, {{"certificate", base64_encode(*certificate)}}, "status"));
  return plan;
}

class ApprovingController final : public Controller {
 public:
  explicit ApprovingController(bool kubelet_serving) : kubelet_serving_(kubelet_serving) {}
  [[nodiscard]] std::string_view name() const override { return "certificatesigningrequest-approving-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override {
    if (!kubelet_serving_) return {kinds().certificate_signing_request};
    return {kinds().certificate_signing_request, kinds().node, kinds().endpoints};
  }
  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    if (event.kind != kinds().certificate_signing_request) return;
    if (event.after)
      sink.add(event.after->name());
    else
      answers_.erase(event.before->name());
  }
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override;
  void on_result(const std::string& key, const Write& write, const ApiResult<json::Value>& result, TimePoint) override {
    if (write.tag.empty()) return;
    if (result) answers_[key][write.tag] = json::get_bool(*result, {"status", "allowed"});
  }

 private:
  [[nodiscard]] Plan look_at_serving(const Object& object, const json::Value& request, const Cache& cache) const;
  const bool kubelet_serving_;
  std::map<std::string, std::map<std::string, bool>> answers_;  ///< Of one step: by request, then by permission.
};

/// May the requestor create certificatesigningrequests/PERMISSION?
Write ask_permission(const json::Value& request, const std::string& permission) {
  json::Object spec{
      {"resourceAttributes",
       json::Object{
           {"group", "certificates.k8s.io"}, {"resource", "certificatesigningrequests"}, {"verb", "create"}, {"subresource", permission}}}};
  const json::Value* about = json::find(request, "spec");
  for (const auto& [from, to] :
       {std::pair("username", "user"), std::pair("uid", "uid"), std::pair("groups", "groups"), std::pair("extra", "extra")})
    if (const json::Value* value = json::find(*about, from)) spec[to] = *value;
  Write write =
      create_object(kinds().subject_access_review, "",
                    json::Object{{"apiVersion", "authorization.k8s.io/v1"}, {"kind", "SubjectAccessReview"}, {"spec", std::move(spec)}});
  write.tag = permission;
  return write;
}

Plan ApprovingController::reconcile(const std::string& key, TimePoint, const Cache& cache) {
  Plan plan;
  const auto answers = std::exchange(answers_[key], {});
  answers_.erase(key);
  const ObjectRef object = cache.get(kinds().certificate_signing_request, "", key);
  if (!object || object->is_deleting()) return plan;
  const auto request_parsed = object->parsed();
  const json::Value& request = *request_parsed;
  if (!json::get_string(request, {"status", "certificate"}).empty() || find_condition(request, "Approved") != nullptr ||
      find_condition(request, "Denied") != nullptr)
    return plan;
  if (kubelet_serving_ && json::get_string(request, {"spec", "signerName"}) == kKubeletServingSigner)
    return look_at_serving(*object, request, cache);
  if (json::get_string(request, {"spec", "signerName"}) != kKubeletClientSigner) return plan;
  const auto facts = facts_of(request);
  if (!facts || !check_kubelet_client_request(*facts, usages_of(request)).empty()) return plan;
  std::vector<std::pair<std::string, std::string>> ways;
  if (json::get_string(request, {"spec", "username"}) == facts->common_name)
    ways.emplace_back("selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview.");
  ways.emplace_back("nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview.");
  for (const auto& [permission, message] : ways) {
    const auto answer = answers.find(permission);
    if (answer == answers.end()) {
      for (const auto& [known, allowed] : answers) answers_[key][known] = allowed;
      plan.writes.push_back(ask_permission(request, permission));
      plan.requeue_after = std::chrono::milliseconds(1);
      return plan;
    }
    if (!answer->second) continue;
    json::Object condition{{"type", "Approved"}, {"status", "True"}, {"reason", "AutoApproved"}, {"message", message}};
    plan.writes.push_back(change_request(*object, {{"conditions", with_condition(request, std::move(condition))}}, "approval"));
    return plan;
  }
  // Who has no right to it now may get it, or somebody approves by hand: another look is cheap.
  plan.requeue_after = std::chrono::minutes(2);
  return plan;
}

std::set<std::string> addresses_of(const json::Value& node) {
  std::set<std::string> out;
  for (const json::Value& one : json::get_array(node, {"status", "addresses"})) out.emplace(json::get_string(one, {"address"}));
  return out;
}

Plan ApprovingController::look_at_serving(const Object& object, const json::Value& request, const Cache& cache) const {
  constexpr std::string_view kNodePrefix = "system:node:";
  Plan plan;
  const auto facts = facts_of(request);
  const auto user = json::get_string(request, {"spec", "username"});
  if (!facts || user != facts->common_name || !check_kubelet_serving_request(*facts, usages_of(request)).empty()) return plan;
  const std::string name(user.substr(kNodePrefix.size()));
  const ObjectRef node = cache.get(kinds().node, "", name);
  std::set<std::string> taken;
  cache.for_each(kinds().node, [&](const ObjectRef& other) {
    if (other->name() != name) taken.merge(addresses_of(other->document()));
  });
  if (const ObjectRef server = cache.get(kinds().endpoints, "default", "kubernetes")) {
    const auto parsed = server->parsed();
    for (const json::Value& subset : json::get_array(*parsed, {"subsets"}))
      for (const json::Value& one : json::get_array(subset, {"addresses"})) taken.emplace(json::get_string(one, {"ip"}));
  }
  if (!node || !check_own_addresses(*facts, node->document(), taken).empty()) {
    // The node may be about to say where it is; an administrator may approve in the meantime.
    plan.requeue_after = std::chrono::seconds(10);
    return plan;
  }
  json::Object condition{{"type", "Approved"},
                         {"status", "True"},
                         {"reason", "AutoApproved"},
                         {"message", "Auto approving kubelet serving certificate: its names and addresses are the node's own."}};
  plan.writes.push_back(change_request(object, {{"conditions", with_condition(request, std::move(condition))}}, "approval"));
  return plan;
}

class CertificateCleaner final : public Controller {
 public:
  [[nodiscard]] std::string_view name() const override { return "certificatesigningrequest-cleaner-controller"; }
  [[nodiscard]] std::vector<Kind> watches() const override { return {kinds().certificate_signing_request}; }
  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    if (event.after) sink.add(event.after->name());
  }
  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override {
    Plan plan;
    const ObjectRef object = cache.get(kinds().certificate_signing_request, "", key);
    if (!object || object->is_deleting()) return plan;
    const auto end = end_of(*object->parsed());
    if (!end) return plan;
    if (*end > now)
      plan.requeue_after = *end - now;
    else
      plan.writes.push_back(delete_object(kinds().certificate_signing_request, *object));
    return plan;
  }

 private:
  static std::optional<TimePoint> end_of(const json::Value& request) {
    constexpr Duration kPending = std::chrono::hours(24), kDone = std::chrono::hours(1);
    const std::string certificate = base64_decode(json::get_string(request, {"status", "certificate"})).value_or("");
    std::optional<TimePoint> end;
    const auto at_most = [&](TimePoint when) { end = end ? std::min(*end, when) : when; };
    const json::Array& conditions = json::get_array(request, {"status", "conditions"});
    if (conditions.empty()) at_most(read_time(request, {"metadata", "creationTimestamp"}) + kPending);
    for (const json::Value& condition : conditions) {
      const std::string_view type = json::get_string(condition, {"type"});
      const TimePoint since = read_time(condition, {"lastUpdateTime"});
      if (since == TimePoint{}) continue;
      if (type == "Denied" || type == "Failed" || (type == "Approved" && !certificate.empty())) at_most(since + kDone);
      if (type != "Approved" || certificate.empty()) continue;
      if (const auto facts = net::read_certificate_facts(certificate)) at_most(facts->not_after);
    }
    return end;
  }
};

}  // namespace

std::string check_kubelet_client_request(const net::CertificateRequestFacts& request, const Usages& usages) {
  std::string why;
  if (!is_node_subject(request, why)) return why;
  if (!request.dns_names.empty()) return "DNS subjectAltNames are not allowed";
  if (!request.emails.empty()) return "Email subjectAltNames are not allowed";
  if (!request.ip_addresses.empty()) return "IP subjectAltNames are not allowed";
  if (!request.uris.empty()) return "URI subjectAltNames are not allowed";
  if (request.has_other_names) return "subjectAltNames of other kinds are not allowed";
  if (!request.common_name.starts_with("system:node:")) return "subject common name does not begin with system:node:";
  if (!is_one_of(usages, {{"digital signature", "client auth"}, {"digital signature", "key encipherment", "client auth"}}))
    return "usages did not match [client auth digital signature key encipherment]";
  return {};
}

std::string check_kubelet_serving_request(const net::CertificateRequestFacts& request, const Usages& usages) {
  std::string why;
  if (!is_node_subject(request, why)) return why;
  if (request.dns_names.empty() && request.ip_addresses.empty()) return "DNS or IP subjectAltName is required";
  if (!request.emails.empty()) return "Email subjectAltNames are not allowed";
  if (!request.uris.empty()) return "URI subjectAltNames are not allowed";
  if (request.has_other_names) return "subjectAltNames of other kinds are not allowed";
  if (!is_one_of(usages, {{"digital signature", "server auth"}, {"digital signature", "key encipherment", "server auth"}}))
    return "usages did not match [digital signature key encipherment server auth]";
  if (!request.common_name.starts_with("system:node:")) return "subject common name does not begin with system:node:";
  return {};
}

std::string check_own_addresses(const net::CertificateRequestFacts& request, const json::Value& node, const std::set<std::string>& taken) {
  const auto own = addresses_of(node);
  const auto node_name = json::get_string(node, {"metadata", "name"});
  for (const auto* names : {&request.dns_names, &request.ip_addresses})
    for (const std::string& name : *names) {
      if (!own.contains(name) && name != node_name) return fmt::format("{} is not in the node's status.addresses", name);
      if (taken.contains(name)) return fmt::format("{} is somebody else's address, too", name);
    }
  return {};
}

std::string check_client_request(const Usages& usages) {
  bool has_client_auth = false;
  for (const std::string& usage : usages) {
    if (usage == "client auth")
      has_client_auth = true;
    else if (usage != "digital signature" && usage != "key encipherment")
      return "invalid usage for client certificate: " + usage;
  }
  return has_client_auth ? "" : "missing required usage for client certificate: client auth";
}

ControllerPtr make_certificate_signing_controller(SigningOptions options) {
  return std::make_unique<SigningController>(std::move(options));
}
ControllerPtr make_certificate_approving_controller(bool kubelet_serving) { return std::make_unique<ApprovingController>(kubelet_serving); }
ControllerPtr make_certificate_cleaner_controller() { return std::make_unique<CertificateCleaner>(); }

}  // namespace berth::controllers
