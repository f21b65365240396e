// Which requests for certificates are signed, and which of nodes are approved by themselves: each thing that may be wrong with one.
#include "controllers/certificates.h"

#include <gtest/gtest.h>

#include "controllers/common.h"
#include "tests/controllers/fake_api.h"

namespace berth::controllers {
namespace {

using net::CertificateRequestFacts;
using Texts = std::vector<std::string>;

CertificateRequestFacts node_request() { return {.common_name = "system:node:n1", .organizations = {"system:nodes"}}; }

const Texts kClient = {"digital signature", "client auth"}, kServer = {"digital signature", "server auth"};

TEST(CertificateRequests, OfKubeletsAsClients) {
  const auto check = [](const std::function<void(CertificateRequestFacts&)>& change, const Texts& usages = kClient) {
    CertificateRequestFacts request = node_request();
    change(request);
    return check_kubelet_client_request(request, usages);
  };
  const auto nothing = [](CertificateRequestFacts&) {};
  const char* usages = "usages did not match [client auth digital signature key encipherment]";
  EXPECT_EQ(check(nothing), "");
  EXPECT_EQ(check(nothing, {"client auth", "key encipherment", "digital signature"}), "");
  EXPECT_EQ(check(nothing, {"client auth"}), usages);
  EXPECT_EQ(check(nothing, {"client auth", "digital signature", "server auth"}), usages);
  EXPECT_EQ(check(nothing, kServer), usages);
  const char* organization = "subject organization is not system:nodes";
  EXPECT_EQ(check([](auto& one) { one.organizations = {}; }), organization);
  EXPECT_EQ(check([](auto& one) { one.organizations = {"system:masters"}; }), organization);
  EXPECT_EQ(check([](auto& one) { one.organizations = {"system:nodes", "system:masters"}; }), organization);
  EXPECT_EQ(check([](auto& one) { one.common_name = "n1"; }), "subject common name does not begin with system:node:");
  EXPECT_EQ(check([](auto& one) { one.dns_names = {"n1"}; }), "DNS subjectAltNames are not allowed");
  EXPECT_EQ(check([](auto& one) { one.emails = {"n1@example.org"}; }), "Email subjectAltNames are not allowed");
  EXPECT_EQ(check([](auto& one) { one.ip_addresses = {"10.0.0.1"}; }), "IP subjectAltNames are not allowed");
  EXPECT_EQ(check([](auto& one) { one.uris = {"spiffe://n1"}; }), "URI subjectAltNames are not allowed");
  EXPECT_EQ(check([](auto& one) { one.has_other_names = true; }), "subjectAltNames of other kinds are not allowed");
}

TEST(CertificateRequests, OfKubeletsAsServers) {
  const auto check = [](const std::function<void(CertificateRequestFacts&)>& change, const Texts& usages = kServer) {
    CertificateRequestFacts request = node_request();
    request.dns_names = {"n1"};
    change(request);
    return check_kubelet_serving_request(request, usages);
  };
  const auto nothing = [](CertificateRequestFacts&) {};
  const char* usages = "usages did not match [digital signature key encipherment server auth]";
  EXPECT_EQ(check(nothing), "");
  EXPECT_EQ(check(nothing, {"server auth", "key encipherment", "digital signature"}), "");
  EXPECT_EQ(check(nothing, kClient), usages);
  EXPECT_EQ(check(nothing, {"digital signature", "server auth", "client auth"}), usages);
  EXPECT_EQ(check([](auto& one) { one.organizations = {"system:masters"}; }), "subject organization is not system:nodes");
  EXPECT_EQ(check([](auto& one) { one.common_name = "n1"; }), "subject common name does not begin with system:node:");
  EXPECT_EQ(check([](auto& one) { one.dns_names = {}; }), "DNS or IP subjectAltName is required");
  EXPECT_EQ(check([](auto& one) {
              one.dns_names = {};
              one.ip_addresses = {"10.0.0.1"};
            }),
            "");
  EXPECT_EQ(check([](auto& one) { one.emails = {"n1@example.org"}; }), "Email subjectAltNames are not allowed");
  EXPECT_EQ(check([](auto& one) { one.uris = {"spiffe://n1"}; }), "URI subjectAltNames are not allowed");
  EXPECT_EQ(check([](auto& one) { one.has_other_names = true; }), "subjectAltNames of other kinds are not allowed");
}

TEST(CertificateRequests, NodesNameTheirOwnAddressesAlone) {
  const json::Value node = testing::yaml(
      "{metadata: {name: n1}, status: {addresses: [{type: Hostname, address: n1.example.org}, {type: InternalIP, address: 10.0.0.1}]}}");
  const auto check = [&](Texts dns_names, Texts addresses, const std::set<std::string>& taken = {}) {
    CertificateRequestFacts request = node_request();
    request.dns_names = std::move(dns_names);
    request.ip_addresses = std::move(addresses);
    return check_own_addresses(request, node, taken);
  };
  EXPECT_EQ(check({"n1"}, {}), "");
  EXPECT_EQ(check({"n1", "n1.example.org"}, {"10.0.0.1"}), "");
  EXPECT_EQ(check({"n2"}, {"10.0.0.1"}), "n2 is not in the node's status.addresses");
  EXPECT_EQ(check({"n1", "kubernetes.default"}, {}), "kubernetes.default is not in the node's status.addresses");
  EXPECT_EQ(check({"n1"}, {"10.0.0.2"}), "10.0.0.2 is not in the node's status.addresses");
  EXPECT_EQ(check({"n1"}, {"10.0.0.1"}, {"10.0.0.1"}), "10.0.0.1 is somebody else's address, too");
  EXPECT_EQ(check({"n1"}, {"10.0.0.1"}, {"n1"}), "n1 is somebody else's address, too");
  EXPECT_EQ(check({"n1"}, {"10.0.0.1"}, {"10.0.0.2"}), "");
}

TEST(CertificateRequests, OfClients) {
  EXPECT_EQ(check_client_request({"client auth"}), "");
  EXPECT_EQ(check_client_request({"digital signature", "key encipherment", "client auth"}), "");
  EXPECT_EQ(check_client_request({"client auth", "server auth"}), "invalid usage for client certificate: server auth");
  EXPECT_EQ(check_client_request({"digital signature"}), "missing required usage for client certificate: client auth");
  EXPECT_EQ(check_client_request({}), "missing required usage for client certificate: client auth");
}

/// What an event says that it is about.
TEST(EventNotes, NameTheObjectAndTheRevisionThatWasSeen) {
  const Object object(
      testing::yaml("{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: shop, uid: u, resourceVersion: '42'}}"));
  const EventNote note = note_about(kinds().deployment, object, "Warning", "Why", "because");
  EXPECT_EQ((Texts{note.api_version, note.kind, note.ns, note.name, note.uid, note.resource_version, note.type, note.reason, note.message}),
            (Texts{"apps/v1", "Deployment", "shop", "web", "u", "42", "Warning", "Why", "because"}));
}

}  // namespace
}  // namespace berth::controllers
