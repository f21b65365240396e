#include "apiserver/auth/documents.h"

#include <array>
#include <future>

#include "base/json_scan.h"
#include "security/uuid.h"

namespace berth::apiserver::auth {

std::string rbac_key(const json::Value& document) {
  auto kind = json::get_string(document, {"kind"});
  std::string_view plural = kind == "ClusterRole"          ? "clusterroles"
                            : kind == "ClusterRoleBinding" ? "clusterrolebindings"
                            : kind == "RoleBinding"        ? "rolebindings"
                                                           : "roles";
  return make_key("rbac.authorization.k8s.io", plural, json::get_string(document, {"metadata", "namespace"}),
                  json::get_string(document, {"metadata", "name"}));
}

Proposal make_proposal(json::Value document, std::optional<Revision> expected, TimePoint now) {
  if (json::get_string(document, {"metadata", "uid"}).empty())
    json::set(document, {"metadata", "uid"}, json::Value(security::random_uuid()));
  if (json::find(document, {"metadata", "creationTimestamp"}) == nullptr)
    json::set(document, {"metadata", "creationTimestamp"}, json::Value(format_rfc3339(now)));
  json::set(document, {"metadata", "resourceVersion"}, json::Value(""));
  Proposal proposal;
  proposal.key = rbac_key(document);
  proposal.expected = expected;
  proposal.meta.ns = json::get_string(document, {"metadata", "namespace"});
  proposal.meta.name = json::get_string(document, {"metadata", "name"});
  proposal.meta.uid = json::get_string(document, {"metadata", "uid"});
  proposal.meta.labels = model::Labels::from_json(json::find(document, {"metadata", "labels"}));
  proposal.value = json::serialize(document);
  static const json::PathScanner scanner({"metadata.resourceVersion"});
  std::array<std::string_view, 1> raw;
  scanner.scan(proposal.value, raw);
  proposal.revision_offset = static_cast<std::size_t>(raw[0].data() - proposal.value.data()) + 1;
  return proposal;
}

ProposeResult propose_and_wait(ObjectCache& cache, Proposal proposal) {
  std::promise<ProposeResult> answer;
  auto future = answer.get_future();
  cache.propose(std::move(proposal), [&](ProposeResult result) { answer.set_value(std::move(result)); });
  return future.get();
}

}  // namespace berth::apiserver::auth
