// The objects of a file: as every YAML reader reads them; the documents' examples as they mean them, and told.
#include "cli/command/manifest_text.h"

#include <gtest/gtest.h>

namespace berth::cli {
namespace {

using Lines = std::vector<std::string>;

ManifestText read(std::string_view text) {
  auto out = read_manifest_text(text);
  EXPECT_TRUE(out) << text << out.error().message;
  return out ? std::move(*out) : ManifestText{};
}

std::string pod(std::string_view spec) {
  return "apiVersion: v1\nkind: Pod\nmetadata:\n  name: nginx\nspec:\n  containers:\n  - {name: nginx, image: nginx}\n" + std::string(spec);
}

TEST(ManifestText, ACalloutGoesWhereItsFieldCanNeverHoldIt) {
  const auto taken = read(pod("  schedulerName: custom-scheduler 1\n"));
  EXPECT_EQ(json::get_string(taken.documents.at(0), {"spec", "schedulerName"}), "custom-scheduler");
  EXPECT_EQ(taken.changes, Lines{"line 8: read without the callout \"1\""});
  EXPECT_EQ(json::get_string(read(pod("  priorityClassName: high-priority 1\n")).documents.at(0), {"spec", "priorityClassName"}),
            "high-priority");
  const auto tolerant =
      read(pod("  tolerations:\n  - key: a\n    operator: Exists\n    effect: NoExecute\n    tolerationSeconds: 300 (1)\n  - key: b\n    "
               "operator: Exists\n"));
  EXPECT_EQ(json::get_int(json::get_array(tolerant.documents.at(0), {"spec", "tolerations"}).at(0), {"tolerationSeconds"}), 300);
  EXPECT_EQ(tolerant.changes, Lines{"line 12: read without the callout \"(1)\""});
}

TEST(ManifestText, WhatItsFieldCanHoldStays) {
  for (const std::string& text :
       {pod("  tolerations:\n  - key: a\n    effect: NoExecute\n    operator: Exists\n    tolerationSeconds: 60\n  - key: b\n    operator: "
            "Exists\n"),
        pod("  nodeSelector:\n    shelf: row\n"), pod("  priorityClassName: \"high-priority 1\"\n"),
        pod("  priorityClassName: high-priority 7\n"),
        std::string("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c\ndata:\n  key: word 1\n  list: a (1)\n"),
        std::string("apiVersion: example.com/v1\nkind: Shelf\nmetadata:\n  name: c\nspec:\n  row: \n  size: 3 1\n")}) {
    const auto taken = read(text);
    ASSERT_EQ(taken.documents.size(), 1u);
    EXPECT_TRUE(json::equal(taken.documents[0], json::parse_yaml(text).value())) << text << json::serialize(taken.documents[0]);
    EXPECT_EQ(taken.changes, Lines()) << text;
    EXPECT_EQ(taken.text, text);
  }
}

TEST(ManifestText, LinesOfDotsDoNotCutAnObjectInTwo) {
  const auto node =
      read("apiVersion: v1\nkind: Node\nmetadata:\n  name: a\n...\nspec:\n  taints:\n  - effect: NoSchedule\n    key: k\n...\n");
  ASSERT_EQ(node.documents.size(), 1u);
  EXPECT_EQ(json::get_array(node.documents[0], {"spec", "taints"}).size(), 1u);
  EXPECT_EQ(node.changes, (Lines{"line 5: \"...\" is left out", "line 10: \"...\" is left out"}));
}

// What else is wrong with an object, or is made up only by the server, is no reason to give up: here a Job's selector.
TEST(ManifestText, TheDocumentsJobIsReadAsMeant) {
  const auto job = read(
      "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: descheduler-job\nspec:\n  template:\n    metadata:\n      name: descheduler-pod "
      "1\n"
      "      annotations:\n        scheduler.alpha.kubernetes.io/critical-pod: \"true\" 2\n    spec:\n        containers:\n        - name: "
      "descheduler\n"
      "          image: i\n          volumeMounts: 3\n          - mountPath: /policy-dir\n            name: policy-volume\n          "
      "command:\n"
      "          - \"/bin/sh\"\n          - |\n            /bin/descheduler --policy-config-file /policy-dir/policy.yaml 4\n"
      "        restartPolicy: \"Never\"\n        serviceAccountName: descheduler-sa 5\n        volumes:\n        - name: policy-volume\n"
      "          configMap:\n            name: descheduler-policy-configmap\n");
  ASSERT_EQ(job.documents.size(), 1u);
  const json::Value& spec = *json::find(job.documents[0], {"spec", "template", "spec"});
  EXPECT_EQ(json::get_string(spec, {"serviceAccountName"}), "descheduler-sa");
  EXPECT_EQ(json::get_array(json::get_array(spec, {"containers"}).at(0), {"command"}).at(1),
            "/bin/descheduler --policy-config-file /policy-dir/policy.yaml\n");
  EXPECT_EQ(job.changes.size(), 5u);
}

TEST(ManifestText, WhatIsMendedMustFitItsKind) {
  // A slip of the indentation is no callout, though the number could be one: the error is that of the text as it was given.
  const auto slip = read_manifest_text(
      "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: a\nspec:\n  replicas: 1\n    selector:\n      matchLabels: {a: b}\n");
  ASSERT_FALSE(slip);
  EXPECT_EQ(slip.error().message, "invalid YAML at line 7, column 13: mapping values are not allowed in this context");
  EXPECT_FALSE(read_manifest_text("apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n    namespace: b\n"));  // kubectl refuses it as well.
}

}  // namespace
}  // namespace berth::cli
