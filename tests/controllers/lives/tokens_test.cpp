// Bootstrap tokens that end and sign; pods that no scheduler takes.
#include "base/base64.h"
#include "controllers/certificates.h"
#include "controllers/cluster.h"
#include "tests/controllers/lives/world.h"

namespace berth::controllers::lives {
namespace {

using std::chrono::seconds;

TEST(TokenLives, AreAsRecorded) {
  World world(
      {.file = "tests/controllers/lives/bootstrap_tokens.txt", .seed = 52, .edits = 260, .readable = 16'000, .longest = seconds(40)});
  world.add([] { return make_token_cleaner_controller(); });
  world.add([] { return make_bootstrap_signer_controller(); });
  const Kind secret = kinds().secret, map = kinds().config_map;
  const auto coded = [](std::string_view text) { return base64_encode(text); };
  const auto token = [&](std::string_view id, std::string_view expires, const char* signs) {
    return fmt::format(
        "{{token-id: {}, token-secret: {}, usage-bootstrap-signing: {}, "
        "usage-bootstrap-authentication: {}{}}}",
        coded(id), coded("0123456789abcdef"), coded(signs), coded("true"),
        expires.empty() ? "" : fmt::format(", expiration: {}", coded(expires)));
  };
  world.sorts = {{secret,
                  {"kube-system/bootstrap-token-abcdef", "kube-system/bootstrap-token-zzzzzz", "default/bootstrap-token-abcdef"},
                  "{apiVersion: v1, kind: Secret, metadata: {}, type: "
                  "bootstrap.kubernetes.io/token, data: " +
                      token("abcdef", "", "true") + "}"},
                 {map,
                  {"kube-public/cluster-info", "default/cluster-info"},
                  "{apiVersion: v1, kind: ConfigMap, metadata: {}, data: {kubeconfig: "
                  "text}}"}};
  world.fields = {
      {secret,
       "data",
       {token("abcdef", "", "true"), token("zzzzzz", "", "true"), token("abcdef", "", "false"),
        token("abcdef", "2026-01-05T10:30:00Z", "true"), token("zzzzzz", "2026-01-05T11:00:00Z", "true"),
        token("abcdef", "2026-01-05T09:00:00Z", "true"), token("abcdef", "x", "true"), "{}"}},
      {secret, "data", {token("abcdef", "", "true"), token("zzzzzz", "", "true"), token("abcdef", "2026-01-05T12:00:00Z", "true")}},
      {secret, "type", {"bootstrap.kubernetes.io/token", "Opaque"}},
      {secret, "metadata finalizers", {"[x]", ""}},
      {map, "data", {"{kubeconfig: text}", "{kubeconfig: other}", "{}", "{kubeconfig: text, jws-kubeconfig-zzzzzz: old, more: x}"}}};
  world.live();
}

TEST(UnclaimedLives, AreAsRecorded) {
  World world({.file = "tests/controllers/lives/unclaimed.txt",
               .seed = 53,
               .edits = 300,
               .has_memory = true,
               .readable = 14'000,
               .longest = seconds(50)});
  world.add([] { return make_unclaimed_pod_controller(); });
  const Kind pod = kinds().pod;
  const std::vector<std::string> pods = {"default/p", "default/q", "default/r"};
  world.sorts = {{pod, pods,
                  "{apiVersion: v1, kind: Pod, metadata: {}, spec: {schedulerName: "
                  "mine}}"},
                 {pod, pods, "{apiVersion: v1, kind: Pod, metadata: {}, spec: {}}"},
                 {pod, pods,
                  "{apiVersion: v1, kind: Pod, metadata: {}, spec: {schedulerName: "
                  "default-schedular}}"}};
  world.fields = {{pod, "spec nodeName", {"n", ""}},
                  {pod, "status conditions", {"[{type: PodScheduled, status: 'False'}]", "[{type: PodScheduled, status: 'True'}]", ""}},
                  {pod, "status phase", {"Pending", "Failed"}},
                  {pod, "spec schedulerName", {"mine", "''", "\"a\\\\b\""}},
                  {pod, "metadata finalizers", {"[x]", ""}}};
  world.live();
}

}  // namespace
}  // namespace berth::controllers::lives
