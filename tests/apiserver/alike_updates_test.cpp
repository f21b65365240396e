// Updates by pattern: to the last byte what the long way makes of them, whatever lies between two that are alike.
#include <malloc.h>

#include <random>

#include "tests/apiserver/played.h"

namespace berth::apiserver::testing {
namespace {

TEST(AlikeUpdates, ReportsOfPodsAreTheSameAsPlainOnes) {
  EXPECT_EQ(play_updates([](Played& at) {
              const auto uids = run_pods(at, 8);
              for (int i = 0; i < 8; ++i)
                at.update(status_of(i),
                          report(uids[i], {.ip = fmt::format("10.0.0.{}", i), .container = fmt::format("containerd://{}", i)}));
            }),
            5)
      << "the first was bound at the very time that is reported, the second is the first of the others, the third leaves the pattern";
  // Whatever differs in another way, and whatever is the same by accident.
  EXPECT_GE(
      play_updates([](Played& at) {
        const std::vector<Report> reports = {
            {},
            {.ip = "10.0.0.2"},
            {.ip = "10.0.0.3", .host = "10.0.0.3"},
            {.ip = "10.0.0.10", .started = "2026-01-02T03:04:05Z"},
            {.ip = "fd00::1"},
            {.ip = "fd00::2", .since = "2026-02-29T03:04:05Z"},
            {.ip = "10.0.0.256"},
            {.ip = "::ffff:10.0.0.1"},
            {.since = "2026-01-02T03:04:05+01:00"},
            {.since = "2026-01-02T03:04:05.5Z"},
            {.started = "yesterday"},
            {.container = ""},
            {.container = "\\u0041"},
            {.volume = "10.0.0.1"},
            {.more = R"(,"reason":"R","podIP":"10.0.0.9")"},
            {.more = R"(,"unheardOf":1)"},
            {.more = R"(,"qosClass":"BestEffort")"},
            {.more = R"(,"nominatedNodeName":"n")"},
            {.more = R"(,"pod\u0049P":"10.0.0.9")"},
            {.more =
                 R"(,"initContainerStatuses":[{"name":"i","state":{"terminated":{"exitCode":0,"startedAt":"2026-01-02T03:04:05Z","finishedAt":"2026-01-02T03:04:06Z","containerID":"containerd://b"}},"restartCount":0,"image":"i","imageID":"i","ready":true}])"},
        };
        int from = 0;
        for (const auto& one : reports) {
          const auto uids = run_pods(at, 5, from);
          for (int i = 0; i < 5; ++i) at.update(status_of(from + i), report(uids[i], one));
          for (int i = 0; i < 5; ++i) at.update(status_of(from + i), report(uids[i], {.ip = one.ip, .started = "2026-01-02T03:04:07Z"}));
          from += 5;
        }
      }),
      40);
}

TEST(AlikeUpdates, ReportsOfPodsWhoseTextsWerePackedAreTheSame) {
  ::mallopt(M_PERTURB, 0x5a);  // What is read after its end shows.
  EXPECT_GE(play_updates([](Played& at) {
              const auto uids = run_pods(at, 8);
              for (const char* started : {"2026-01-02T03:04:05Z", "2026-01-02T03:04:07Z", "2026-01-02T03:04:09Z"}) {
                at.pack_pods();
                for (int i = 0; i < 8; ++i)
                  at.update(status_of(i), report(uids[i], {.ip = fmt::format("10.0.0.{}", i), .started = started}));
              }
            }),
            12);
  ::mallopt(M_PERTURB, 0);
}

TEST(AlikeUpdates, WhatAReportChangesDependsOnWhatIsThere) {
  EXPECT_GE(play_updates([](Played& at) {
              const auto uids = run_pods(at, 10);
              const auto all = [&](const std::function<void(int)>& does) {
                for (int i = 0; i < 10; ++i) does(i);
              };
              const auto say = [&](Report what) {
                all([&](int i) {
                  what.ip = fmt::format("10.0.0.{}", i);
                  at.update(status_of(i), report(uids[i], what));
                });
              };
              say({});
              say({});  // Nothing changes.
              say({.since = "2026-01-02T03:05:05Z"});
              all([&](int i) { at.update(status_of(i), report(uids[(i + 1) % 10])); });  // Another's uid.
              all([&](int i) { at.update(status_of(i), report(uids[i], {.ip = fmt::format("10.0.1.{}", i % 3)})); });
              all([&](int i) {
                at.update(status_of(i),
                          R"({"status":{"podIPs":[{"$patch":"delete","ip":"10.0.1.1"},{"ip":"10.0.1.0"}],"podIP":"10.0.1.0"}})");
              });
              all([&](int i) { at.update(status_of(i), R"({"status":{"phase":"Succeeded"}})", "merge-patch+json"); });
              all([&](int i) { at.update(status_of(i), R"({"status":{"conditions":null}})", "merge-patch+json"); });
              all([&](int i) { at.update(status_of(i), R"({"metadata":{"labels":{"a":"b"}},"status":{"phase":"Running"}})"); });
              all([&](int i) { at.update(status_of(i) + "?fieldManager=other", report(uids[i])); });
              all([&](int i) { at.update(status_of(i) + "?dryRun=All", report(uids[i], {.ip = "10.9.9.9"})); });
              all([&](int i) {
                at.update(fmt::format("{}/p{}", kPodsPath, i),
                          fmt::format(R"({{"metadata":{{"annotations":{{"a":"{}","b":"x\"y"}},"finalizers":["x.io/f"]}}}})",
                                      i % 3 == 0 ? "x" : uids[i]),
                          "merge-patch+json");
              });
              say({.started = "2026-01-02T03:06:05Z"});
              all([&](int i) { at.other("DELETE", fmt::format("{}/p{}", kPodsPath, i)); });
              say({.started = "2026-01-02T03:07:05Z"});
              all([&](int i) { at.update(status_of(i), R"({"metadata":{"finalizers":null}})", "merge-patch+json"); });
              say({.started = "2026-01-02T03:08:05Z"});
            }),
            50);
}

TEST(AlikeUpdates, NodesReportTheirOwnPods) {
  net::PeerCertificate node;
  node.organizations = {"system:nodes"};
  EXPECT_GE(play_updates([&](Played& at) {
              const auto uids = run_pods(at, 8);
              for (const char* name : {"system:node:n0", "system:node:n1", "system:node:none"}) {
                node.common_name = name;
                at.act_as(node);
                for (int i = 0; i < 8; ++i) at.update(status_of(i), report(uids[i], {.ip = fmt::format("10.0.0.{}", i)}));
              }
              at.act_as(std::nullopt);
            }),
            3);
}

TEST(AlikeUpdates, WhoeverJudgesReportsIsAsked) {
  const std::string admission = "/apis/admissionregistration.k8s.io/v1/";
  play_updates([&](Played& at) {
    const auto uids = run_pods(at, 8);
    const auto say = [&](const std::string& since) {
      for (int i = 0; i < 8; ++i) at.update(status_of(i), report(uids[i], {.ip = fmt::format("10.0.0.{}", i), .since = since}));
    };
    say("2026-01-02T03:04:01Z");
    at.other(
        "POST", admission + "validatingadmissionpolicies",
        R"({"metadata":{"name":"p"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["UPDATE"],"resources":["pods/status"],"resourceNames":["p5"]}]},"validations":[{"expression":"false"}]}})");
    say("2026-01-02T03:04:02Z");
    at.other("POST", admission + "validatingadmissionpolicybindings",
             R"({"metadata":{"name":"b"},"spec":{"policyName":"p","validationActions":["Deny"]}})");
    say("2026-01-02T03:04:03Z");
    at.other("DELETE", admission + "validatingadmissionpolicybindings/b");
    say("2026-01-02T03:04:04Z");
  });
}

TEST(AlikeUpdates, LeasesAreRenewedAsByPlainWrites) {
  const auto lease = [](int i, const std::string& renewed, const std::string& metadata = "") {
    return fmt::format(
        R"({{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{{"name":"n{0}","namespace":"default","ownerReferences":[{{"apiVersion":"v1","kind":"Node","name":"n{0}","uid":"u-{0}"}}]{2}}},"spec":{{"holderIdentity":"n{0}","leaseDurationSeconds":40,"renewTime":"{1}"}}}})",
        i, renewed, metadata);
  };
  EXPECT_GE(play_updates([&](Played& at) {
              for (int i = 0; i < 6; ++i) at.other("POST", kLeases, lease(i, "2026-01-02T03:04:05.000001Z"));
              for (const char* time : {"2026-01-02T03:04:05.000001Z", "2026-01-02T03:04:15.000001Z", "2026-01-02T03:04:25.000001Z", "soon"})
                for (int i = 0; i < 6; ++i) {
                  const auto path = fmt::format("{}/n{}", kLeases, i);
                  at.update(path, fmt::format(R"({{"spec":{{"renewTime":"{}"}}}})", time), "merge-patch+json");
                  at.other("GET", path);
                  const auto& stored = at.answers.back();
                  const auto from = stored.find(R"("resourceVersion":")") + 19;
                  const auto revision = stored.substr(from, stored.find('"', from) - from);
                  for (const std::string& named : {revision, std::string("1"), std::string()})
                    at.update(
                        path,
                        lease(i, "2026-01-02T03:05:05.00000" + std::to_string(i) + "Z", fmt::format(R"(,"resourceVersion":"{}")", named)),
                        "json");
                  at.update(path, lease(i + 1, "2026-01-02T03:05:05.000009Z"), "json");
                }
            }),
            20);
}

/// As a fleet's nodes, each with what is its own.
void make_nodes(Played& at, int count) {
  for (int i = 0; i < count; ++i)
    at.other(
        "POST", kNodes,
        fmt::format(
            R"({{"apiVersion":"v1","kind":"Node","metadata":{{"name":"n{0}","labels":{{"kubernetes.io/hostname":"n{0}","node-role.kubernetes.io/worker":"","rack":"r{1}"}},"annotations":{{"berth.io/index":"{0}"}}}},"spec":{{"podCIDR":"10.{0}.0.0/24","podCIDRs":["10.{0}.0.0/24"],"providerID":"simulated://n{0}"}},"status":{{"capacity":{{"cpu":"4"}},"allocatable":{{"cpu":"4"}}}}}})",
            i, i % 2));
}

struct NodeReport {
  std::string beat = "2026-01-02T03:04:05Z", since = "2026-01-02T03:04:05Z", address = "172.16.0.1", machine = "m", more = {};
};

std::string node_report(const std::string& name, const NodeReport& of) {
  return fmt::format(
      R"({{"status":{{"capacity":{{"cpu":"4","pods":"110"}},"conditions":[{{"type":"Ready","status":"True","reason":"KubeletReady","message":"kubelet is posting ready status","lastHeartbeatTime":"{1}","lastTransitionTime":"{2}"}}],"addresses":[{{"type":"InternalIP","address":"{3}"}},{{"type":"Hostname","address":"{0}"}}],"nodeInfo":{{"machineID":"{4}","systemUUID":"{4}","bootID":"{4}","kernelVersion":"6.1","osImage":"o","containerRuntimeVersion":"c","kubeletVersion":"v1.36.0","kubeProxyVersion":"","operatingSystem":"linux","architecture":"amd64"}}{5}}}}})",
      name, of.beat, of.since, of.address, of.machine, of.more);
}

TEST(AlikeUpdates, ReportsOfNodesAreTheSameAsPlainOnes) {
  EXPECT_EQ(play_updates([](Played& at) {
              make_nodes(at, 8);
              for (const char* beat : {"2026-01-02T03:04:05Z", "2026-01-02T03:05:05Z", "2026-01-02T03:05:06Z"})
                for (int i = 0; i < 8; ++i)
                  at.update(fmt::format("{}/n{}/status", kNodes, i),
                            node_report(fmt::format("n{}", i),
                                        {.beat = beat, .address = fmt::format("172.16.0.{}", i), .machine = fmt::format("m{}", i)}));
            }),
            18)
      << "the first two of each round go the long way";
  const std::vector<NodeReport> reports = {
      {},
      {.beat = "soon"},
      {.since = "2026-01-02T03:04:05.5Z"},
      {.address = "n1"},
      {.address = ""},
      {.machine = "\\u0041"},
      {.machine = "n2"},
      {.more = R"(,"images":[{"names":["i"],"sizeBytes":7}])"},
      {.more = R"(,"unheardOf":1)"},
      {.more = R"(,"allocatable":{"cpu":"-1"})"},
      {.more = R"(,"addresses":[{"type":"InternalIP","address":"a"},{"type":"InternalIP","address":"a"}])"},
      {.more = R"(,"declaredFeatures":["a"])"},
  };
  EXPECT_GE(play_updates([&](Played& at) {
              make_nodes(at, 5);
              for (const auto& one : reports)
                for (int round = 0; round < 2; ++round)
                  for (int i = 0; i < 5; ++i) at.update(fmt::format("{}/n{}/status", kNodes, i), node_report(fmt::format("n{}", i), one));
            }),
            12);
}

TEST(AlikeUpdates, NodesReportThemselves) {
  net::PeerCertificate node;
  node.organizations = {"system:nodes"};
  EXPECT_EQ(
      play_updates([&](Played& at) {
        make_nodes(at, 6);
        for (int i = 0; i < 6; ++i) {
          node.common_name = fmt::format("system:node:n{}", i);
          at.act_as(node);
          for (const int of : {i, (i + 1) % 6})
            at.update(fmt::format("{}/n{}/status", kNodes, of), node_report(fmt::format("n{}", of), {.machine = fmt::format("m{}", i)}));
          at.update(fmt::format("{}/n{}/status", kNodes, i),
                    R"({"metadata":{"labels":{"node-restriction.kubernetes.io/x":"y"}},"status":{"phase":"Running"}})");
          at.update(fmt::format("{}/n{}/status", kNodes, i), R"({"spec":{"taints":[{"key":"k","effect":"NoSchedule"}]}})");
          at.update(
              fmt::format("{}/n{}/status", kNodes, i),
              fmt::format(
                  R"({{"metadata":{{"name":"n{0}","labels":{{"kubernetes.io/hostname":"n{0}","node-role.kubernetes.io/worker":"","rack":"r{1}"}}}},"spec":{{"taints":[{{"key":"k","effect":"NoSchedule"}}]}}}})",
                  i, i % 2),
              "json");
          EXPECT_NE(at.answers.back().find("is not allowed to modify taints"), std::string::npos) << at.answers.back();
        }
        at.act_as(std::nullopt);
      }),
      4);
}

TEST(AlikeUpdates, NodesGetLabelsAndTaintsAsByPlainWrites) {
  EXPECT_GE(
      play_updates([](Played& at) {
        make_nodes(at, 6);
        const auto all = [&](const std::string& body, const std::string& language = "merge-patch+json") {
          for (int i = 0; i < 6; ++i) at.update(fmt::format("{}/n{}", kNodes, i), fmt::format(fmt::runtime(body), i), language);
        };
        all(R"({{"metadata":{{"labels":{{"zone":"a"}}}}}})");
        all(R"({{"metadata":{{"labels":{{"zone":"z{}"}}}}}})");
        all(R"({{"metadata":{{"labels":{{"zone":"not a zone","x":null}}}}}})");
        all(R"({{"metadata":{{"labels":{{"zone":"","rack":null}}}}}})");
        all(R"({{"spec":{{"unschedulable":true}}}})");
        all(R"({{"spec":{{"taints":[{{"key":"k","effect":"NoExecute","timeAdded":"2026-01-02T03:04:0{}Z"}}]}}}})",
            "strategic-merge-patch+json");
        all(R"({{"spec":{{"podCIDR":"10.{}.0.0/24"}}}})");
        all(R"({{"spec":{{"podCIDR":"10.99.0.0/24"}}}})");
        all(R"({{"spec":{{"podCIDRs":["fd00::/64","fd00::/128"]}}}})");
        all(R"({{"spec":{{"podCIDRs":["fd00::/64","10.0.0.0/33"]}}}})");
        all(R"({{"spec":{{"providerID":"other://n{}"}}}})");
        all(R"({{"metadata":{{"uid":"u{}"}},"spec":{{"unschedulable":null}}}})");
        for (const char* revision : {"", "0", "1"})
          all(fmt::format(
                  R"({{{{"metadata":{{{{"name":"n{{0}}","resourceVersion":"{}","labels":{{{{"kubernetes.io/hostname":"n{{0}}"}}}}}}}}}}}})",
                  revision),
              "json");
        for (int i = 0; i < 6; ++i) at.other("GET", fmt::format("{}?fieldSelector=spec.unschedulable%3Dtrue", kNodes));
      }),
      20);
}

/// As the pods of Jobs.
std::string task(int i) {
  return fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"name":"t{0}","generateName":"j{0}-","namespace":"default","finalizers":["batch.kubernetes.io/job-tracking"],"labels":{{"job-name":"j{0}","batch.kubernetes.io/controller-uid":"u-{0}"}},"ownerReferences":[{{"apiVersion":"batch/v1","kind":"Job","name":"j{0}","uid":"u-{0}","controller":true}}]}},"spec":{{"containers":[{{"name":"c","image":"i"}}],"restartPolicy":"Never"}}}})",
      i);
}

TEST(AlikeUpdates, PodsOfManyJobsAreWrittenAsByPlainWrites) {
  EXPECT_GE(
      play_updates([](Played& at) {
        std::vector<std::string> uids;
        const auto all = [&](const std::function<void(int, const std::string&)>& does) {
          for (int i = 0; i < 7; ++i) does(i, fmt::format("{}/t{}", kPodsPath, i));
        };
        all([&](int i, const std::string& path) {
          at.create(kPodsPath, task(i));
          const auto& answer = at.answers.back();
          uids.push_back(answer.substr(answer.find(R"("uid":")", answer.find(R"("namespace":)")) + 7, 36));
          at.other("POST", path + "/binding",
                   fmt::format(R"({{"metadata":{{"name":"t{0}"}},"target":{{"kind":"Node","name":"n{0}"}}}})", i));
        });
        all([&](int i, const std::string& path) {
          at.update(path + "/status", report(uids[i], {.ip = fmt::format("10.0.0.{}", i), .container = fmt::format("containerd://{}", i)}));
        });
        all([&](int i, const std::string& path) { at.update(path, fmt::format(R"({{"metadata":{{"labels":{{"app":"a{}"}}}}}})", i)); });
        all([&](int, const std::string& path) { at.update(path, R"({"metadata":{"labels":{"app":"other"}}})"); });
        all([&](int i, const std::string& path) {
          at.update(path, fmt::format(
                              R"({{"metadata":{{"uid":"{}","$deleteFromPrimitiveList/finalizers":["batch.kubernetes.io/job-tracking"]}}}})",
                              uids[i == 6 ? 0 : i]));
        });
        all([&](int, const std::string& path) { at.update(path, R"({"spec":{"activeDeadlineSeconds":7}})"); });
        all([&](int, const std::string& path) { at.update(path, R"({"spec":{"nodeName":"n3"}})"); });
        all([&](int i, const std::string& path) {
          at.update(path, fmt::format(R"({{"metadata":{{"annotations":{{"controller.kubernetes.io/pod-deletion-cost":"{}"}}}}}})", i));
        });
        all([&](int i, const std::string& path) {
          at.update(path, fmt::format(R"({{"metadata":{{"annotations":{{"controller.kubernetes.io/pod-deletion-cost":"{}"}}}}}})",
                                      i < 4 ? "7" : "x"));
        });
        all([&](int, const std::string& path) { at.other("DELETE", path); });
        all([&](int, const std::string& path) { at.update(path, R"({"metadata":{"finalizers":null}})"); });
      }),
      16);
}

/// ReplicaSets r0, r1 and so on; their uids.
std::vector<std::string> make_sets(Played& at, int count, int from = 0) {
  std::vector<std::string> uids;
  for (int i = from; i < from + count; ++i) {
    at.other(
        "POST", kReplicaSets,
        fmt::format(
            R"({{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{{"name":"r{0}","labels":{{"app":"a{0}"}},"annotations":{{"deployment.kubernetes.io/revision":"{0}"}},"ownerReferences":[{{"apiVersion":"apps/v1","kind":"Deployment","name":"d{0}","uid":"u-{0}","controller":true}}]}},"spec":{{"replicas":{1},"selector":{{"matchLabels":{{"app":"a{0}"}}}},"template":{{"metadata":{{"labels":{{"app":"a{0}"}}}},"spec":{{"containers":[{{"name":"c","image":"i{0}"}}]}}}}}}}})",
            i, i + 2));
    const auto& answer = at.answers.back();
    uids.push_back(answer.substr(answer.find(R"("uid":")", answer.find(R"("namespace":)")) + 7, 36));
  }
  return uids;
}

std::string count_of(const std::string& uid, std::string_view status, std::string_view revision = "") {
  return fmt::format(R"({{"metadata":{{"uid":"{}"{}}},"status":{{{}}}}})", uid, revision, status);
}

TEST(AlikeUpdates, WorkloadsAreCountedAsByPlainWrites) {
  const std::string merge = "merge-patch+json";
  const auto path = [](int i) { return fmt::format("{}/r{}/status", kReplicaSets, i); };
  EXPECT_EQ(play_updates([&](Played& at) {
              const auto uids = make_sets(at, 8);
              for (int i = 0; i < 8; ++i)
                at.update(path(i),
                          count_of(uids[i], fmt::format(R"("replicas":{0},"fullyLabeledReplicas":{0},"observedGeneration":1)", i + 2)),
                          merge);
              for (int i = 0; i < 8; ++i)
                at.update(path(i), count_of(uids[i], fmt::format(R"("replicas":{},"readyReplicas":{})", i + 12, i + 2)), merge);
            }),
            12)
      << "the first two of each go the long way, whatever the numbers";
  // What is compared, what is none or no number, and what stands in another order.
  const std::vector<std::string> odd = {R"("replicas":9,"readyReplicas":10)",
                                        R"("replicas":9,"readyReplicas":9)",
                                        R"("replicas":0,"readyReplicas":0)",
                                        R"("replicas":1,"readyReplicas":0)",
                                        R"("replicas":-1)",
                                        R"("replicas":3.0)",
                                        R"("replicas":3e0)",
                                        R"("replicas":"3")",
                                        R"("replicas":null)",
                                        R"("replicas":12345678901)",
                                        R"("replicas":3,"conditions":[{"type":"ReplicaFailure","status":"True","message":"of "r""}])",
                                        R"("replicas":3,"unheardOf":{"replicas":4})"};
  EXPECT_GE(play_updates([&](Played& at) {
              const auto uids = make_sets(at, 6);
              for (const auto& one : odd)
                for (const std::string before : {R"("replicas":9,"readyReplicas":3)", R"("replicas":9,"readyReplicas":4)", one.c_str()})
                  for (int i = 0; i < 6; ++i) at.update(path(i), count_of(uids[i], before), merge);
            }),
            80);
  // Who names the state that he means is refused where it is another.
  EXPECT_GE(play_updates([&](Played& at) {
              const auto uids = make_sets(at, 6);
              for (int i = 0; i < 6; ++i) {
                const auto& list = at.answers[static_cast<std::size_t>(i)];
                const auto from = list.find(R"("resourceVersion":")") + 19;
                const auto revision = fmt::format(R"(,"resourceVersion":"{}")", list.substr(from, list.find('"', from) - from));
                at.update(path(i), count_of(uids[i], R"("replicas":3)", revision), merge);
                at.update(path(i), count_of(uids[i], R"("replicas":4)", revision), merge);
              }
            }),
            3);
}

TEST(AlikeUpdates, WorkloadsAreScaledAsByPlainWrites) {
  const auto scale_all = [](Played& at, const std::string& body, int more = 0) {
    for (int i = 0; i < 6; ++i)
      at.update(fmt::format("{}/r{}/scale", kReplicaSets, i), fmt::format(fmt::runtime(body), i + more), "merge-patch+json");
  };
  EXPECT_EQ(play_updates([&](Played& at) {
              make_sets(at, 6);
              for (const int more : {20, 10, 10, 5}) scale_all(at, R"({{"spec":{{"replicas":{}}}}})", more);
            }),
            12)
      << "the first two of each round go the long way, and all that change nothing";
  EXPECT_GE(
      play_updates([&](Played& at) {
        make_sets(at, 6);
        for (const char* body :
             {R"({{"spec":{{"replicas":3}}}})", R"({{"spec":{{"replicas":0}}}})", R"({{"spec":{{"replicas":{}}}}})",
              R"({{"spec":{{"replicas":-1}}}})", R"({{"spec":{{"replicas":"3"}}}})", R"({{"spec":{{"replicas":null}}}})",
              R"({{"spec":{{"replicas":3.5}}}})", R"({{"spec":{{"replicas":12345678901}}}})", R"({{"spec":{{"replicas":4,"x":1}}}})",
              R"({{"spec":{{"replicas":4}},"status":{{"replicas":"x"}}}})", R"({{"metadata":{{"name":"other"}},"spec":{{"replicas":5}}}})",
              R"({{"spec":{{"replicas":3,"replicas":4}}}})", R"({{"spec":3}})", R"({{"spec":{{"replicas":7}}}})"})
          for (int round = 0; round < 2; ++round) scale_all(at, body);
      }),
      10);
}

/// What changes is drawn from few words, so that much is alike, and much is the same by accident.
TEST(AlikeUpdates, DrawnWritesAreTheSameAsPlainOnes) {
  int followed = 0;
  for (unsigned seed = 1; seed <= 6; ++seed)
    followed += play_updates([seed](Played& at) {
      std::mt19937 random(seed);
      const auto one_of = [&](std::initializer_list<const char*> words) { return std::string(words.begin()[random() % words.size()]); };
      const auto time = [&] { return one_of({"2026-01-02T03:04:05Z", "2026-01-02T03:04:09Z", "2026-01-02T03:05:00Z", "soon"}); };
      make_nodes(at, 6);
      for (int i = 0; i < 6; ++i) {
        at.create(kPodsPath, task(i));
        at.other("POST", fmt::format("{}/t{}/binding", kPodsPath, i),
                 fmt::format(R"({{"metadata":{{"name":"t{}"}},"target":{{"kind":"Node","name":"n{}"}}}})", i, random() % 6));
      }
      for (int i = 0; i < 60; ++i) {
        const auto label = one_of({"a", "b", "n1", "j2", "", "not one"}), language = one_of({"merge", "strategic-merge"}) + "-patch+json";
        const auto query = one_of({"", "", "", "?fieldManager=other", "?dryRun=All"});
        const auto kind = random() % 7;
        const auto drawn = random();
        for (int k = 0; k < 6; ++k) {
          random.seed(drawn % 9 == 0 ? drawn + k : drawn);  // Mostly the same of all.
          const auto name = fmt::format("n{}", k), node = fmt::format("{}/{}", kNodes, name), pod = fmt::format("{}/t{}", kPodsPath, k);
          switch (kind) {
            case 0:
              at.update(node + "/status" + query, node_report(name, {.beat = time(), .since = time(), .address = label, .machine = label}));
              break;
            case 1:
              at.update(node + query, fmt::format(R"({{"metadata":{{"labels":{{"zone":"{}","rack":"{}"}}}}}})", label, one_of({"a", "r1"})),
                        language);
              break;
            case 2:
              at.update(node + query,
                        fmt::format(R"({{"spec":{{"unschedulable":{},"taints":[{{"key":"{}","effect":"NoExecute","timeAdded":"{}"}}]}}}})",
                                    one_of({"true", "null"}), one_of({"k", "l"}), time()),
                        language);
              break;
            case 3:
              at.update(pod + "/status" + query,
                        report("", {.ip = one_of({"10.0.0.1", "10.0.0.2", "fd00::1", "none"}), .since = time(), .started = time()})
                            .replace(0, std::string(R"({"metadata":{"uid":""},)").size(), "{"));
              break;
            case 4:
              at.update(pod + query,
                        fmt::format(R"({{"metadata":{{"labels":{{"job-name":"{}","app":"{}"}}}}}})", label, one_of({"a", "b"})), language);
              break;
            case 5:
              at.update(pod + query,
                        fmt::format(R"({{"metadata":{{"finalizers":{},"annotations":{{"x":"{}"}}}}}})",
                                    one_of({R"(["x.io/f"])", R"(["x.io/f","x.io/g"])", R"(["batch.kubernetes.io/job-tracking"])"}), label),
                        language);
              break;
            default:
              at.update(
                  node + query,
                  fmt::format(
                      R"({{"metadata":{{"name":"{0}","resourceVersion":"{1}","labels":{{"zone":"{2}"}}}},"spec":{{"podCIDR":"10.{3}.0.0/{4}","providerID":"simulated://{0}"}}}})",
                      name, std::array{"", "0", "1"}[k / 2], label, k, one_of({"24", "24", "24", "25", "33"})),
                  "json");
          }
        }
      }
    });
  EXPECT_GE(followed, 100);
}

TEST(AlikeUpdates, WhoChoosesByLabelsIsAskedOfThem) {
  const std::string admission = "/apis/admissionregistration.k8s.io/v1/";
  for (const char* what : {"policy", "webhook"}) {
    const bool is_policy = std::string_view(what) == "policy";
    play_updates([&](Played& at) {
      make_nodes(at, 8);
      const std::string rule = R"([{"apiGroups":[""],"apiVersions":["v1"],"operations":["UPDATE"],"resources":["nodes","nodes/status"]}])";
      const std::string chosen = R"({"matchLabels":{"kubernetes.io/hostname":"n5"}})";
      if (is_policy) {
        at.other(
            "POST", admission + "validatingadmissionpolicies",
            fmt::format(
                R"({{"metadata":{{"name":"p"}},"spec":{{"matchConstraints":{{"resourceRules":{},"objectSelector":{}}},"validations":[{{"expression":"false"}}]}}}})",
                rule, chosen));
        at.other("POST", admission + "validatingadmissionpolicybindings",
                 R"({"metadata":{"name":"b"},"spec":{"policyName":"p","validationActions":["Deny"]}})");
      } else {
        at.other(
            "POST", admission + "validatingwebhookconfigurations",
            fmt::format(
                R"({{"metadata":{{"name":"w"}},"webhooks":[{{"name":"w.x.io","admissionReviewVersions":["v1"],"sideEffects":"None","failurePolicy":"Fail","timeoutSeconds":1,"clientConfig":{{"url":"https://127.0.0.1:1/"}},"matchConditions":[{{"name":"error","expression":"object.none"}}],"objectSelector":{},"rules":{}}}]}})",
                chosen, rule));
      }
      for (int i = 0; i < 8; ++i) at.update(fmt::format("{}/n{}/status", kNodes, i), node_report(fmt::format("n{}", i), {}));
      for (int i = 0; i < 8; ++i) at.update(fmt::format("{}/n{}", kNodes, i), R"({"spec":{"unschedulable":true}})");
    });
  }
}

TEST(AlikeUpdates, NoRevisionIsNotAnyRevision) {
  play_updates([](Played& at) {
    int second = 10;
    for (int i = 0; i < 6; ++i) {
      at.other("POST", kLeases, fmt::format(R"({{"metadata":{{"name":"n{}","namespace":"default"}},"spec":{{"holderIdentity":"h"}}}})", i));
      for (const char* revision : {"", "0", "1", "00"})
        at.update(fmt::format("{}/n{}", kLeases, i),
                  fmt::format(R"({{"metadata":{{"resourceVersion":"{}"}},"spec":{{"renewTime":"2026-01-02T03:04:{}.000001Z"}}}})",
                              i < 3 ? "" : revision, second++),
                  "merge-patch+json");
    }
  });
}

}  // namespace
}  // namespace berth::apiserver::testing
