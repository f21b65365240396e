// What is said about objects that are taken although they are hardly meant so.
#include "model/warnings.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

using Sentences = std::vector<std::string>;

Sentences warned(const char* group, const char* version, const char* kind, const char* object, const char* old = nullptr) {
  const json::Value doc = json::parse(object).value();
  const json::Value before = old == nullptr ? json::Value() : json::parse(old).value();
  return write_warnings(*find_kind(group, version, kind), old == nullptr ? nullptr : &before, doc);
}

TEST(Warnings, OfPodsAndTemplates) {
  constexpr const char* kPod =
      R"({"metadata":{"name":"p"},"spec":{"nodeSelector":{"beta.kubernetes.io/os":"linux"},"imagePullSecrets":[{}],
          "containers":[{"name":"c","env":[{"name":"A","value":"1"},{"name":"A","value":"2"},{"name":"A","value":"$(A)3"}],
          "resources":{"limits":{"memory":"1500m"}},"ports":[{"containerPort":80,"protocol":"TCP"},{"containerPort":80,"protocol":"TCP"}]}]}})";
  EXPECT_EQ(warned("", "v1", "Pod", kPod),
            (Sentences{"spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use \"kubernetes.io/os\" instead",
                       "spec.imagePullSecrets[0].name: invalid empty name \"\"",
                       "spec.containers[0].resources.limits[memory]: fractional byte value \"1500m\" is invalid, must be an integer",
                       "spec.containers[0].env[1]: hides previous definition of \"A\", which may be dropped when using apply",
                       "spec.containers[0].ports[1]: duplicate port definition with spec.containers[0].ports[0]"}));
  EXPECT_EQ(warned("", "v1", "Pod", kPod, kPod), Sentences{}) << "programs update pods";
  constexpr const char* kDeployment =
      R"({"metadata":{"name":"a.b","generation":1},"spec":{"template":{"spec":{"terminationGracePeriodSeconds":-1,"containers":[]}}}})";
  EXPECT_EQ(
      warned("apps", "v1", "Deployment", kDeployment),
      (Sentences{"metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; a DNS label is "
                 "recommended: [must not contain dots]",
                 "spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1"}));
  EXPECT_EQ(warned("apps", "v1", "Deployment", kDeployment, kDeployment), Sentences{}) << "nothing of the spec changed";
}

TEST(Warnings, OfOtherKinds) {
  EXPECT_EQ(warned("networking.k8s.io", "v1", "Ingress", R"({"metadata":{"annotations":{"kubernetes.io/ingress.class":"n"}}})"),
            Sentences{"annotation \"kubernetes.io/ingress.class\" is deprecated, please use 'spec.ingressClassName' instead"});
  EXPECT_EQ(warned("", "v1", "Service", R"({"spec":{"type":"ClusterIP","externalIPs":["1.2.3.4"],"trafficDistribution":"PreferClose"}})"),
            (Sentences{"spec.externalIPs is deprecated and may no longer be implemented in some clusters",
                       "spec.trafficDistribution: \"PreferClose\" is deprecated; use \"PreferSameZone\""}));
  EXPECT_EQ(warned("", "v1", "Secret", R"({"type":"kubernetes.io/tls","data":{"tls.crt":"YQ==","tls.key":"YQ=="}})"),
            Sentences{"tls: failed to find any PEM data in certificate input"});
  EXPECT_EQ(kind_warning(*find_kind("", "v1", "Endpoints")), "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice");
  EXPECT_EQ(kind_warning(*find_kind("", "v1", "Pod")), "");
}

}  // namespace
}  // namespace berth::model
