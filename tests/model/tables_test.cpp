// The lines that `kubectl get` prints.
#include "model/tables/tables.h"

#include <gtest/gtest.h>

namespace berth::model {
namespace {

using json::Value;

const TimePoint kNow = *parse_rfc3339("2026-01-01T12:00:00Z");

/// The first cells of an object's line, joined by " | "; columns of a lower priority are left out.
std::string line(const char* group, const char* version, const char* kind_name, std::string_view object) {
  const KindInfo& kind = *find_kind(group, version, kind_name);
  const json::Array columns = table_columns(kind);
  const Value row = table_row(kind, json::parse(object).value(), kNow, IncludeObject::kNone);
  const json::Array& cells = json::get_array(row, {"cells"});
  EXPECT_EQ(cells.size(), columns.size()) << kind_name;
  std::string out;
  for (std::size_t i = 0; i < std::min(cells.size(), columns.size()); ++i) {
    if (json::get_int(columns[i], {"priority"}) != 0) continue;
    if (!out.empty()) out += " | ";
    out += cells[i].is_string() ? std::string(json::as_view(cells[i])) : json::serialize(cells[i]);
  }
  return out;
}

std::string pod(std::string_view spec, std::string_view status, std::string_view meta = "") {
  return line("", "v1", "Pod",
              fmt::format(R"({{"metadata":{{"name":"p","creationTimestamp":"2026-01-01T11:55:00Z"{}}},"spec":{},"status":{}}})", meta, spec,
                          status));
}

TEST(Table, Ages) {
  const auto age = [](std::int64_t seconds) { return human_duration(std::chrono::seconds(seconds)); };
  EXPECT_EQ(age(0), "0s");
  EXPECT_EQ(age(119), "119s");
  EXPECT_EQ(age(120), "2m");
  EXPECT_EQ(age(200), "3m20s");
  EXPECT_EQ(age(600), "10m");
  EXPECT_EQ(age(3 * 3600), "3h");
  EXPECT_EQ(age(3 * 3600 + 600), "3h10m");
  EXPECT_EQ(age(8 * 3600 + 600), "8h");
  EXPECT_EQ(age(49 * 3600), "2d1h");
  EXPECT_EQ(age(9 * 86400), "9d");
  EXPECT_EQ(age(800 * 86400), "2y70d");
  EXPECT_EQ(human_age("", kNow), "<unknown>");
}

TEST(Table, APodsStates) {
  const char* two = R"({"containers":[{"name":"a"},{"name":"b"}]})";
  EXPECT_EQ(pod(two, R"({"phase":"Pending"})"), "p | 0/2 | Pending | 0 | 5m");
  EXPECT_EQ(pod(two, R"({"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"SchedulingGated"}]})"),
            "p | 0/2 | SchedulingGated | 0 | 5m");
  EXPECT_EQ(pod(two, R"({"phase":"Pending","containerStatuses":[{"name":"a","state":{"waiting":{"reason":"ContainerCreating"}}}]})"),
            "p | 0/2 | ContainerCreating | 0 | 5m");
  EXPECT_EQ(
      pod(two,
          R"({"phase":"Running","containerStatuses":[{"name":"a","ready":true,"state":{"running":{}}},{"name":"b","ready":true,"restartCount":3,"state":{"running":{}},"lastState":{"terminated":{"finishedAt":"2026-01-01T11:58:00Z"}}}]})"),
      "p | 2/2 | Running | 3 (2m ago) | 5m");
  EXPECT_EQ(
      pod(two,
          R"({"phase":"Running","containerStatuses":[{"name":"a","ready":true,"state":{"running":{}}},{"name":"b","restartCount":1,"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]})"),
      "p | 1/2 | CrashLoopBackOff | 1 | 5m");
  EXPECT_EQ(pod(two, R"({"phase":"Succeeded","containerStatuses":[{"name":"a","state":{"terminated":{"reason":"Completed"}}}]})"),
            "p | 0/2 | Completed | 0 | 5m");
  EXPECT_EQ(pod(two, R"({"phase":"Failed","containerStatuses":[{"name":"a","state":{"terminated":{"exitCode":3}}}]})"),
            "p | 0/2 | ExitCode:3 | 0 | 5m");
  EXPECT_EQ(pod(two, R"({"phase":"Failed","reason":"Evicted"})"), "p | 0/2 | Evicted | 0 | 5m");
  EXPECT_EQ(pod(two, R"({"phase":"Running"})", R"(,"deletionTimestamp":"2026-01-01T12:00:00Z")"), "p | 0/2 | Terminating | 0 | 5m");
  EXPECT_EQ(pod(two, R"({"phase":"Running","reason":"NodeLost"})", R"(,"deletionTimestamp":"2026-01-01T12:00:00Z")"),
            "p | 0/2 | Unknown | 0 | 5m");
}

TEST(Table, InitContainersAndSidecars) {
  const char* spec = R"({"initContainers":[{"name":"i"},{"name":"s","restartPolicy":"Always"}],"containers":[{"name":"a"}]})";
  EXPECT_EQ(pod(spec, R"({"phase":"Pending","initContainerStatuses":[{"name":"i","state":{"running":{}}}]})"),
            "p | 0/2 | Init:0/2 | 0 | 5m");
  EXPECT_EQ(pod(spec, R"({"phase":"Pending","initContainerStatuses":[{"name":"i","state":{"waiting":{"reason":"ImagePullBackOff"}}}]})"),
            "p | 0/2 | Init:ImagePullBackOff | 0 | 5m");
  EXPECT_EQ(
      pod(spec, R"({"phase":"Pending","initContainerStatuses":[{"name":"i","state":{"terminated":{"exitCode":1,"reason":"Error"}}}]})"),
      "p | 0/2 | Init:Error | 0 | 5m");
  EXPECT_EQ(
      pod(spec,
          R"({"phase":"Running","initContainerStatuses":[{"name":"i","state":{"terminated":{"exitCode":0}}},{"name":"s","started":true,"ready":true,"state":{"running":{}}}],
                         "containerStatuses":[{"name":"a","ready":true,"state":{"running":{}}}]})"),
      "p | 2/2 | Running | 0 | 5m");
}

TEST(Table, Nodes) {
  EXPECT_EQ(
      line(
          "", "v1", "Node",
          R"({"metadata":{"name":"n","labels":{"node-role.kubernetes.io/worker":"","node-role.kubernetes.io/infra":""}},"spec":{"unschedulable":true},
      "status":{"conditions":[{"type":"Ready","status":"True"}],"nodeInfo":{"kubeletVersion":"v1.32.0"}}})"),
      "n | Ready,SchedulingDisabled | infra,worker | <unknown> | v1.32.0");
  EXPECT_EQ(line("", "v1", "Node", R"({"metadata":{"name":"n"},"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}})"),
            "n | NotReady | <none> | <unknown> | ");
  EXPECT_EQ(line("", "v1", "Node", R"({"metadata":{"name":"n"}})"), "n | Unknown | <none> | <unknown> | ");
}

TEST(Table, Workloads) {
  EXPECT_EQ(
      line("apps", "v1", "Deployment",
           R"({"metadata":{"name":"d"},"spec":{"replicas":3},"status":{"readyReplicas":1,"updatedReplicas":2,"availableReplicas":1}})"),
      "d | 1/3 | 2 | 1 | <unknown>");
  EXPECT_EQ(line("batch", "v1", "Job",
                 R"({"metadata":{"name":"j"},"spec":{"completions":2},"status":{"succeeded":1,"startTime":"2026-01-01T11:59:00Z"}})"),
            "j | Running | 1/2 | 60s | <unknown>");
  EXPECT_EQ(line("batch", "v1", "CronJob",
                 R"({"metadata":{"name":"c"},"spec":{"schedule":"* * * * *"},"status":{"lastScheduleTime":"2026-01-01T11:59:00Z"}})"),
            "c | * * * * * | <none> | False | 0 | 60s | <unknown>");
  EXPECT_EQ(
      line(
          "", "v1", "Service",
          R"({"metadata":{"name":"s"},"spec":{"type":"NodePort","clusterIP":"10.0.0.1","ports":[{"port":80,"nodePort":30000,"protocol":"TCP"}]}})"),
      "s | NodePort | 10.0.0.1 | <none> | 80:30000/TCP | <unknown>");
  EXPECT_EQ(line("policy", "v1", "PodDisruptionBudget",
                 R"({"metadata":{"name":"b"},"spec":{"minAvailable":"50%"},"status":{"disruptionsAllowed":1}})"),
            "b | 50% | N/A | 1 | <unknown>");
  EXPECT_EQ(line("autoscaling", "v2", "HorizontalPodAutoscaler",
                 R"({"metadata":{"name":"h"},"spec":{"minReplicas":1,"maxReplicas":4,"scaleTargetRef":{"kind":"Deployment","name":"d"},
      "metrics":[{"type":"Resource","resource":{"name":"cpu","target":{"averageUtilization":80}}}]},"status":{"currentReplicas":2}})"),
            "h | Deployment/d | cpu: <unknown>/80% | 1 | 4 | 2 | <unknown>");
}

TEST(Table, WhatABeginningTookNoLongerCounts) {
  EXPECT_EQ(pod(R"({"initContainers":[{"name":"i"},{"name":"s","restartPolicy":"Always"}],"containers":[{"name":"c"}]})",
                R"({"phase":"Running","initContainerStatuses":[{"name":"i","restartCount":4,"state":{"terminated":{"exitCode":0}}},
                {"name":"s","restartCount":2,"started":true,"ready":true,"state":{"running":{}}}],
                "containerStatuses":[{"name":"c","restartCount":1,"ready":true,"state":{"running":{}}}]})"),
            "p | 2/2 | Running | 3 | 5m");
}

TEST(Table, AnEmptyVolumeAndTheKernelsMachine) {
  EXPECT_EQ(
      line("", "v1", "PersistentVolumeClaim",
           R"({"metadata":{"name":"c","creationTimestamp":"2026-01-01T11:55:00Z"},"spec":{"volumeName":"v"},"status":{"phase":"Bound"}})"),
      "c | Bound | v | 0 |  |  | <unset> | 5m");
  const Value node =
      json::parse(R"({"metadata":{"name":"n"},"status":{"nodeInfo":{"kernelVersion":"6.1","architecture":"arm64"}}})").value();
  const std::string row = json::serialize(table_row(*find_kind("", "v1", "Node"), node, kNow, IncludeObject::kNone));
  EXPECT_NE(row.find("\"6.1 (arm64)\""), std::string::npos) << row;
}

TEST(Table, EveryKindHasAsManyCellsAsColumns) {
  for (const KindInfo& kind : all_kinds()) {
    const Value row = table_row(kind, json::parse(R"({"metadata":{"name":"x"}})").value(), kNow, IncludeObject::kNone);
    EXPECT_EQ(json::get_array(row, {"cells"}).size(), table_columns(kind).size()) << kind.kind;
  }
}

TEST(Table, ObjectsAsAskedFor) {
  const KindInfo& kind = *find_kind("", "v1", "Pod");
  const Value object = json::parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{}})").value();
  EXPECT_EQ(json::find(table_row(kind, object, kNow, IncludeObject::kNone), "object"), nullptr);
  EXPECT_EQ(json::get_string(table_row(kind, object, kNow, IncludeObject::kMetadata), {"object", "kind"}), "PartialObjectMetadata");
  EXPECT_EQ(json::get_string(table_row(kind, object, kNow, IncludeObject::kObject), {"object", "kind"}), "Pod");
}

}  // namespace
}  // namespace berth::model
