// Questions that are answered and not stored: authentication, authorization. Metrics, which another component makes.
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

KindInfo review(std::string group, std::string kind, std::string plural, bool is_cluster = true) {
  Record out(std::move(group), "v1", std::move(kind), std::move(plural));
  if (is_cluster) out.cluster();
  return out.verbs({"create"}).not_stored().does(KindHooks::all_default());
}

}  // namespace

std::vector<KindInfo> authentication_group() {
  return {review("authentication.k8s.io", "SelfSubjectReview", "selfsubjectreviews"),
          review("authentication.k8s.io", "TokenReview", "tokenreviews")};
}

std::vector<KindInfo> authorization_group() {
  return {review("authorization.k8s.io", "LocalSubjectAccessReview", "localsubjectaccessreviews", false),
          review("authorization.k8s.io", "SelfSubjectAccessReview", "selfsubjectaccessreviews"),
          review("authorization.k8s.io", "SelfSubjectRulesReview", "selfsubjectrulesreviews"),
          review("authorization.k8s.io", "SubjectAccessReview", "subjectaccessreviews")};
}

std::vector<KindInfo> metrics_group() {
  const auto record = [](std::string kind, std::string plural) {
    Record out("metrics.k8s.io", "v1beta1", std::move(kind), std::move(plural));
    out.verbs({"get", "list"}).not_stored();
    return out;
  };
  return {record("NodeMetrics", "nodes").cluster().does(KindHooks::all_default()),
          record("PodMetrics", "pods").does(KindHooks::all_default())};
}

}  // namespace berth::model::kinds
