// The Pod Security Standards in the words of the real plugin.
#include "model/pods/pod_security.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

std::string judge(PodSecurityLevel level, std::string_view spec) {
  return pod_security_violations(level, json::Value(json::Object()), json::parse(spec).value());
}
constexpr auto kBaseline = PodSecurityLevel::kBaseline;
constexpr auto kRestricted = PodSecurityLevel::kRestricted;

TEST(PodSecurityTest, PlainPodKeepsTheBaselineAndBreaksTheRestrictedLevel) {
  const std::string_view plain = R"({"containers":[{"name":"nginx","image":"nginx"}]})";
  EXPECT_EQ(judge(kBaseline, plain), "");
  EXPECT_EQ(judge(kRestricted, plain),
            "allowPrivilegeEscalation != false (container \"nginx\" must set securityContext.allowPrivilegeEscalation=false), "
            "unrestricted capabilities (container \"nginx\" must set securityContext.capabilities.drop=[\"ALL\"]), "
            "runAsNonRoot != true (pod or container \"nginx\" must set securityContext.runAsNonRoot=true), "
            "seccompProfile (pod or container \"nginx\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or "
            "\"Localhost\")");
}

TEST(PodSecurityTest, CarefulPodKeepsTheRestrictedLevel) {
  EXPECT_EQ(judge(kRestricted, R"({"securityContext":{"runAsNonRoot":true,"seccompProfile":{"type":"RuntimeDefault"}},
    "volumes":[{"name":"c","configMap":{"name":"c"}},{"name":"e","emptyDir":{}}],
    "containers":[{"name":"a","securityContext":{"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"],"add":["NET_BIND_SERVICE"]}}}]})"),
            "");
}

TEST(PodSecurityTest, EveryRuleOfTheBaselineIsTold) {
  EXPECT_EQ(
      judge(kBaseline,
            R"({"hostNetwork":true,"hostPID":true,"volumes":[{"name":"a","hostPath":{"path":"/"}},{"name":"b","hostPath":{"path":"/"}}],
    "securityContext":{"sysctls":[{"name":"kernel.msgmax","value":"1"}],"seccompProfile":{"type":"Unconfined"},"seLinuxOptions":{"user":"u","type":"t"}},
    "initContainers":[{"name":"i","securityContext":{"capabilities":{"add":["SYS_TIME","CHOWN"]}}}],
    "containers":[{"name":"x","ports":[{"containerPort":1,"hostPort":80}],"securityContext":{"privileged":true,"procMount":"Unmasked"}},
                  {"name":"y","ports":[{"containerPort":1,"hostPort":81}],"securityContext":{"windowsOptions":{"hostProcess":true}}}]})"),
      "non-default capabilities (container \"i\" must not include \"SYS_TIME\" in securityContext.capabilities.add), "
      "host namespaces (hostNetwork=true, hostPID=true), hostPath volumes (volumes \"a\", \"b\"), "
      "hostPort (containers \"x\", \"y\" use hostPorts 80, 81), "
      "privileged (container \"x\" must not set securityContext.privileged=true), "
      "procMount (container \"x\" must not set securityContext.procMount to \"Unmasked\"), "
      "seLinuxOptions (pod set forbidden securityContext.seLinuxOptions: type \"t\"; user may not be set), "
      "seccompProfile (pod must not set securityContext.seccompProfile.type to \"Unconfined\"), "
      "forbidden sysctls (kernel.msgmax), "
      "hostProcess (container \"y\" must not set securityContext.windowsOptions.hostProcess=true)");
}

TEST(PodSecurityTest, RestrictedFormsStandInForTheBaselines) {
  EXPECT_EQ(judge(kRestricted, R"({"securityContext":{"runAsNonRoot":true,"runAsUser":0,"seccompProfile":{"type":"Localhost"}},
    "volumes":[{"name":"a","hostPath":{"path":"/"}}],
    "containers":[{"name":"a","securityContext":{"runAsNonRoot":false,"allowPrivilegeEscalation":false,"capabilities":{"drop":["ALL"],"add":["CHOWN"]}}}]})"),
            "unrestricted capabilities (container \"a\" must not include \"CHOWN\" in securityContext.capabilities.add), "
            "restricted volume types (volume \"a\" uses restricted volume type \"hostPath\"), "
            "runAsNonRoot != true (container \"a\" must not set securityContext.runAsNonRoot=false), "
            "runAsUser=0 (pod must not set runAsUser=0)");
}

TEST(PodSecurityTest, RulesChangeWithTheirVersion) {
  const auto of_version = [](int minor, PodSecurityLevel level, std::string_view spec) {
    return pod_security_findings(level, minor, json::Value(json::Object()), json::parse(spec).value()).details;
  };
  const std::string_view probe = R"({"containers":[{"name":"c","livenessProbe":{"httpGet":{"port":80,"host":"1.2.3.4"}},
      "lifecycle":{"preStop":{"tcpSocket":{"port":1,"host":"a"}}}}]})";
  EXPECT_EQ(of_version(33, kBaseline, probe), "");
  EXPECT_EQ(of_version(34, kBaseline, probe), "probe or lifecycle host (container \"c\" uses probe or lifecycle hosts \"1.2.3.4\", \"a\")");
  const std::string_view unmasked = R"({"hostUsers":false,"containers":[{"name":"c","securityContext":{"procMount":"Unmasked"}}]})";
  EXPECT_EQ(of_version(35, kBaseline, unmasked), "");
  EXPECT_EQ(of_version(34, kBaseline, unmasked), "procMount (container \"c\" must not set securityContext.procMount to \"Unmasked\")");
  const std::string_view sysctl =
      R"({"securityContext":{"sysctls":[{"name":"net.ipv4.tcp_rmem","value":"1"}]},"containers":[{"name":"c"}]})";
  EXPECT_EQ(of_version(31, kBaseline, sysctl), "forbidden sysctls (net.ipv4.tcp_rmem)");
  EXPECT_EQ(of_version(32, kBaseline, sysctl), "");
  EXPECT_EQ(of_version(18, kRestricted,
                       R"({"containers":[{"name":"c","securityContext":{"runAsNonRoot":true,"allowPrivilegeEscalation":false}}]})"),
            "");
}

TEST(PodSecurityTest, EverythingGoesWherePrivilegesAreGiven) {
  EXPECT_EQ(judge(PodSecurityLevel::kPrivileged, R"({"hostNetwork":true,"containers":[{"name":"x"}]})"), "");
  EXPECT_EQ(parse_pod_security_level("baseline"), kBaseline);
  EXPECT_EQ(parse_pod_security_level("bogus"), std::nullopt);
}

}  // namespace
}  // namespace berth::model
