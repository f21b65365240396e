// CertificateApproval, CertificateSigning, CertificateSubjectRestriction (plugin/pkg/admission/certificates).
#include "net/certificates.h"

#include "apiserver/admission/plugins.h"
#include "base/base64.h"

namespace berth::apiserver {
namespace {

constexpr std::string_view kCertificateGroup = "certificates.k8s.io", kRequests = "certificatesigningrequests";

/// By the signer's own name, or by "example.com/*" for all of a domain.
bool may_with_signer(Authorizer& authorizer, const UserInfo& user, std::string_view verb, std::string_view signer) {
  Attributes attributes;
  attributes.verb = verb;
  attributes.group = kCertificateGroup;
  attributes.version = "*";
  attributes.resource = "signers";
  attributes.name = signer;
  if (authorizer.authorize(user, attributes).allowed) return true;
  attributes.name = std::string(signer.substr(0, signer.find('/'))) + "/*";
  return authorizer.authorize(user, attributes).allowed;
}

class CertificateApproval final : public AdmissionPlugin {
 public:
  explicit CertificateApproval(const AdmissionContext& context) : authorizer_(context.authorizer) {}
  [[nodiscard]] std::string_view name() const override { return "CertificateApproval"; }
  Admitted validate(const AdmissionRequest& request) override {
    if (request.operation != Operation::kUpdate || !request.is(kCertificateGroup, kRequests, "approval")) return {};
    // By the stored object: nobody approves for a signer by naming another one.
    const auto signer = json::get_string(request.old_object, {"spec", "signerName"});
    if (may_with_signer(authorizer_, *request.user, "approve", signer)) return {};
    return std::unexpected(request.forbidden(fmt::format("user not permitted to approve requests with signerName \"{}\"", signer)));
  }

 private:
  Authorizer& authorizer_;
};

class CertificateSigning final : public AdmissionPlugin {
 public:
  explicit CertificateSigning(const AdmissionContext& context) : authorizer_(context.authorizer) {}
  [[nodiscard]] std::string_view name() const override { return "CertificateSigning"; }
  [[nodiscard]] bool wants_whole(const AdmissionRequest& request) override { return request.is(kCertificateGroup, kRequests, "status"); }
  Admitted validate(const AdmissionRequest& request) override {
    if (request.operation != Operation::kUpdate || !request.is(kCertificateGroup, kRequests, "status")) return {};
    const auto same = [&](std::string_view field) {
      const json::Value* before = json::find(request.old_object, {"status", field});
      const json::Value* after = json::find(request.object, {"status", field});
      return before == nullptr || after == nullptr ? before == after : json::equal(*before, *after);
    };
    if (same("certificate") && same("conditions")) return {};
    const auto signer = json::get_string(request.old_object, {"spec", "signerName"});
    if (may_with_signer(authorizer_, *request.user, "sign", signer)) return {};
    return std::unexpected(request.forbidden(fmt::format("user not permitted to sign requests with signerName \"{}\"", signer)));
  }

 private:
  Authorizer& authorizer_;
};

class CertificateSubjectRestriction final : public AdmissionPlugin {
 public:
  [[nodiscard]] std::string_view name() const override { return "CertificateSubjectRestriction"; }
  Admitted validate(const AdmissionRequest& request) override {
    if (request.operation != Operation::kCreate || !request.is(kCertificateGroup, kRequests)) return {};
    const auto signer = json::get_string(request.object, {"spec", "signerName"});
    if (signer != "kubernetes.io/kube-apiserver-client") return {};
    const auto read = net::read_certificate_request(base64_decode(json::get_string(request.object, {"spec", "request"})).value_or(""));
    if (!read) return std::unexpected(request.forbidden(fmt::format("unable to parse CSR: {}", read.error().message)));
    if (std::ranges::find(read->organizations, "system:masters") == read->organizations.end()) return {};
    return std::unexpected(request.forbidden(fmt::format("use of {} signer with system:masters group is not allowed", signer)));
  }
};

}  // namespace

PluginResult make_certificate_approval(const AdmissionContext& context) { return std::make_unique<CertificateApproval>(context); }
PluginResult make_certificate_signing(const AdmissionContext& context) { return std::make_unique<CertificateSigning>(context); }
PluginResult make_certificate_subject_restriction(const AdmissionContext&) { return std::make_unique<CertificateSubjectRestriction>(); }

}  // namespace berth::apiserver
