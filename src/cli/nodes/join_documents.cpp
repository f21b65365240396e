#include "cli/nodes/join_documents.h"

#include "base/base64.h"
#include "base/version.h"

namespace berth::cli {
namespace {

const model::Gvr kConfigMaps{"", "v1", "configmaps"};

/// The tenth address of the range, where kubeadm puts the cluster's DNS.
std::string dns_address(const std::string& cidr) {
  const std::string first = cidr.substr(0, cidr.find('/'));
  const auto dot = first.rfind('.');
  return dot == std::string::npos ? std::string() : first.substr(0, dot + 1) + "10";
}

std::string cluster_configuration(const JoinFacts& facts) {
  const std::string address = facts.url.substr(facts.url.find("://") + 3);
  return json::to_yaml(json::Object{{"apiVersion", "kubeadm.k8s.io/v1beta4"},
                                    {"kind", "ClusterConfiguration"},
                                    {"certificatesDir", "/etc/kubernetes/pki"},
                                    {"clusterName", "berth"},
                                    {"controlPlaneEndpoint", address},
                                    {"etcd", json::Object{{"local", json::Object{{"dataDir", "/var/lib/etcd"}}}}},
                                    {"kubernetesVersion", kBuildVersion},
                                    {"networking", json::Object{{"dnsDomain", "cluster.local"}, {"serviceSubnet", facts.service_cidr}}}});
}

std::string kubelet_configuration(const JoinFacts& facts) {
  json::Object authentication{{"anonymous", json::Object{{"enabled", false}}},
                              {"webhook", json::Object{{"enabled", true}}},
                              {"x509", json::Object{{"clientCAFile", "/etc/kubernetes/pki/ca.crt"}}}};
  json::Array dns;
  if (const std::string address = dns_address(facts.service_cidr); !address.empty()) dns.emplace_back(address);
  return json::to_yaml(json::Object{{"apiVersion", "kubelet.config.k8s.io/v1beta1"},
                                    {"kind", "KubeletConfiguration"},
                                    {"authentication", std::move(authentication)},
                                    {"authorization", json::Object{{"mode", "Webhook"}}},
                                    {"clusterDNS", std::move(dns)},
                                    {"clusterDomain", "cluster.local"},
                                    {"rotateCertificates", true}});
}

json::Value config_map_of(std::string_view ns, std::string_view name, std::string_view key, const std::string& text) {
  return json::Object{{"apiVersion", "v1"},
                      {"kind", "ConfigMap"},
                      {"metadata", json::Object{{"name", name}, {"namespace", ns}}},
                      {"data", json::Object{{key, text}}}};
}

Result<void> make_once(client::Client& client, const json::Value& document) {
  const std::string ns(json::get_string(document, {"metadata", "namespace"}));
  const auto made = client.create_and_wait(kConfigMaps, ns, document);
  if (made || made.error().code == 409) return {};
  return fail(ErrorCode::kInternal, fmt::format("ConfigMap {}/{} could not be written: {}", ns,
                                                json::get_string(document, {"metadata", "name"}), made.error().message));
}

}  // namespace

std::string cluster_info_kubeconfig(const JoinFacts& facts) {
  json::Object cluster{{"certificate-authority-data", base64_encode(facts.ca_pem)}, {"server", facts.url}};
  return json::to_yaml(json::Object{{"apiVersion", "v1"},
                                    {"clusters", json::Array{json::Object{{"cluster", std::move(cluster)}, {"name", ""}}}},
                                    {"contexts", nullptr},
                                    {"current-context", ""},
                                    {"kind", "Config"},
                                    {"preferences", json::Object{}},
                                    {"users", nullptr}});
}

Result<JoinFacts> read_cluster_info(std::string_view kubeconfig) {
  const auto document = json::parse_yaml(kubeconfig);
  if (!document) return invalid("its kubeconfig is not YAML: " + document.error().message);
  const json::Array& clusters = json::get_array(*document, {"clusters"});
  if (clusters.empty()) return invalid("its kubeconfig names no cluster");
  JoinFacts out;
  out.url = json::get_string(clusters[0], {"cluster", "server"});
  out.ca_pem = base64_decode(json::get_string(clusters[0], {"cluster", "certificate-authority-data"})).value_or("");
  if (!out.url.starts_with("https://")) return invalid("its kubeconfig names no https:// server");
  if (out.ca_pem.empty()) return invalid("its kubeconfig has no certificate authority");
  return out;
}

Result<void> publish_join_documents(client::Client& client, const JoinFacts& facts) {
  const std::string wanted = cluster_info_kubeconfig(facts);
  const auto present = client.get_and_wait(kConfigMaps, "kube-public", "cluster-info");
  if (!present && present.error().code != 404)
    return fail(ErrorCode::kInternal, "ConfigMap kube-public/cluster-info could not be read: " + present.error().message);
  if (!present) {
    if (auto made = make_once(client, config_map_of("kube-public", "cluster-info", "kubeconfig", wanted)); !made) return made;
  } else if (json::get_string(*present, {"data", "kubeconfig"}) != wanted) {
    client::Call patch{.verb = "patch", .gvr = kConfigMaps, .ns = "kube-public", .name = "cluster-info"};
    patch.content_type = "application/merge-patch+json";
    patch.body = json::serialize(json::Object{{"data", json::Object{{"kubeconfig", wanted}}}});
    if (const auto patched = client.call_and_wait(std::move(patch)); !patched)
      return fail(ErrorCode::kInternal, "ConfigMap kube-public/cluster-info could not be written: " + patched.error().message);
  }
  if (auto made = make_once(client, config_map_of("kube-system", "kubeadm-config", "ClusterConfiguration", cluster_configuration(facts)));
      !made)
    return made;
  return make_once(client, config_map_of("kube-system", "kubelet-config", "kubelet", kubelet_configuration(facts)));
}

}  // namespace berth::cli
