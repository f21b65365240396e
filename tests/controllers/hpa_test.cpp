#include "controllers/hpa_model.h"
#include "tests/controllers/fake_api.h"

namespace berth::controllers {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using testing::FakeApi;
using testing::yaml;

const TimePoint kNow = *parse_rfc3339("2026-01-05T10:00:00Z");
const HorizontalPodAutoscalerOptions kOptions;
constexpr hpa::Tolerance kTolerance;

/// Old, ready pods, each asking for 1 CPU, with these uses in milli-CPU; a negative use: not measured.
hpa::Load load_of(const std::vector<std::int64_t>& uses, std::int64_t target_percent) {
  hpa::Load load{.resource = "cpu", .pods = {}, .samples = {}, .target_utilization_percent = target_percent};
  for (std::size_t i = 0; i < uses.size(); ++i) {
    hpa::Pod pod{.name = fmt::format("p{}", i),
                 .has_ready_condition = true,
                 .is_ready = true,
                 .ready_changed = kNow - minutes(30),
                 .started = kNow - minutes(30),
                 .request_milli = 1000,
                 .container_without_request = {}};
    if (uses[i] >= 0) load.samples[pod.name] = {uses[i], kNow, seconds(30)};
    load.pods.push_back(std::move(pod));
  }
  return load;
}

std::int64_t replicas_for(const hpa::Load& load) {
  const auto proposal = hpa::propose(load, static_cast<std::int64_t>(load.pods.size()), kTolerance, kOptions, kNow);
  EXPECT_TRUE(proposal) << proposal.error().message;
  return proposal ? proposal->replicas : -1;
}

TEST(HpaModel, ScalesByTheRatioOfUseToTarget) {
  EXPECT_EQ(replicas_for(load_of({900, 900, 900}, 30)), 9);
  EXPECT_EQ(replicas_for(load_of({100, 100, 100}, 30)), 1);
  EXPECT_EQ(replicas_for(load_of({301, 299, 320}, 30)), 3) << "within the tolerance of a tenth nothing changes";
}

TEST(HpaModel, UnmeasuredPodsSpeakAgainstTheChange) {
  EXPECT_EQ(replicas_for(load_of({100, 100, -1}, 50)), 3) << "shrinking: the missing pod counts as fully used";
  EXPECT_EQ(replicas_for(load_of({1000, 1000, -1}, 50)), 4) << "growing: the missing pod counts as idle";
  EXPECT_EQ(replicas_for(load_of({800, 800, -1, -1}, 60)), 4) << "never turned round by the assumption";
}

TEST(HpaModel, YoungPodsDoNotGrowTheSet) {
  hpa::Load load = load_of({900, 900, 900}, 50);
  load.pods[2].started = kNow - seconds(20);
  load.pods[2].ready_changed = kNow - seconds(10);
  EXPECT_EQ(replicas_for(load), 4) << "two measured pods at 900 and one counted as idle";
  load.pods[2].is_pending = true;
  EXPECT_EQ(replicas_for(load), 4);
}

TEST(HpaModel, FailedAndDeletedPodsDoNotCount) {
  hpa::Load load = load_of({500, 500, 5000, 5000}, 50);
  load.pods[2].is_failed = load.pods[3].is_deleting = true;
  EXPECT_EQ(replicas_for(load), 4);  // the ratio is 1: nothing changes
}

TEST(HpaModel, AverageValueNeedsNoRequests) {
  hpa::Load load = load_of({900, 900}, 0);
  load.target_utilization_percent.reset();
  load.target_average_milli = 300;
  for (hpa::Pod& pod : load.pods) pod.request_milli.reset();
  EXPECT_EQ(replicas_for(load), 6);
}

TEST(HpaModel, SaysWhatIsMissing) {
  hpa::Load load = load_of({900}, 50);
  load.pods[0].request_milli.reset();
  load.pods[0].container_without_request = "c";
  EXPECT_EQ(hpa::propose(load, 1, kTolerance, kOptions, kNow).error().message, "missing request for cpu in container c of Pod p0");
  EXPECT_EQ(hpa::propose(load_of({-1}, 50), 1, kTolerance, kOptions, kNow).error().message,
            "did not receive metrics for targeted pods (pods might be unready)");
  EXPECT_EQ(hpa::propose(load_of({}, 50), 1, kTolerance, kOptions, kNow).error().message,
            "no pods returned by selector while calculating replica count");
}

TEST(HpaModel, WithoutBehaviorItDoublesAtMostAndShrinksToTheRecentHighest) {
  const json::Value spec = yaml("{minReplicas: 2, maxReplicas: 100}");
  hpa::History history;
  hpa::Limited limited = hpa::limit(spec, 10, 90, history, kOptions, kNow);
  EXPECT_EQ(limited.replicas, 20);
  EXPECT_EQ(limited.limit_reason, "ScaleUpLimit");
  limited = hpa::limit(spec, 10, 4, history, kOptions, kNow + minutes(2));
  EXPECT_EQ(limited.stable_reason, "ScaleDownStabilized");
  EXPECT_EQ(limited.replicas, 20) << "90 was recommended two minutes ago";
  limited = hpa::limit(spec, 10, 1, history, kOptions, kNow + minutes(20));
  EXPECT_EQ(limited.replicas, 2);
  EXPECT_EQ(limited.limit_reason, "TooFewReplicas");
  EXPECT_FALSE(limited.is_stabilized);
}

TEST(HpaModel, BehaviorLimitsTheRates) {
  const json::Value spec = yaml(
      "{minReplicas: 1, maxReplicas: 100, behavior: {scaleUp: {stabilizationWindowSeconds: 0, selectPolicy: Max, policies: [{type: Pods, "
      "value: 4, periodSeconds: 60}, {type: Percent, value: 10, periodSeconds: 60}]}, "
      "scaleDown: {stabilizationWindowSeconds: 0, selectPolicy: Min, policies: [{type: Pods, value: 5, periodSeconds: 60}, {type: Percent, "
      "value: 50, periodSeconds: 60}]}}}");
  hpa::History history;
  hpa::Limited limited = hpa::limit(spec, 10, 50, history, kOptions, kNow);
  EXPECT_EQ(limited.replicas, 14);
  EXPECT_EQ(limited.limit_reason, "ScaleUpLimit");
  hpa::record_change(spec, 10, 14, history, kNow);
  EXPECT_EQ(hpa::limit(spec, 14, 50, history, kOptions, kNow + seconds(30)).replicas, 14) << "the period's four pods are used up";
  EXPECT_EQ(hpa::limit(spec, 14, 50, history, kOptions, kNow + seconds(61)).replicas, 18);
  hpa::History calm;
  limited = hpa::limit(spec, 40, 1, calm, kOptions, kNow);
  EXPECT_EQ(limited.replicas, 35) << "Min takes the smaller change";
  EXPECT_EQ(limited.limit_reason, "ScaleDownLimit");
}

TEST(HpaModel, DisabledPolicyKeepsTheCount) {
  const json::Value spec = yaml(
      "{maxReplicas: 100, behavior: {scaleDown: {stabilizationWindowSeconds: 0, selectPolicy: Disabled, policies: [{type: Percent, value: "
      "100, periodSeconds: 15}]}}}");
  hpa::History history;
  EXPECT_EQ(hpa::limit(spec, 10, 2, history, kOptions, kNow).replicas, 10);
}

class HpaControllerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    api.engine.add(make_horizontal_pod_autoscaler_controller(kOptions));
    api.engine.start();
    api.answer_list = [this](const Write&) {
      json::Array items;
      for (const json::Value& pod : api.all(kinds().pod))
        items.push_back(json::Object{{"metadata", json::Object{{"name", json::get_string(pod, {"metadata", "name"})}}},
                                     {"timestamp", format_rfc3339(loop.now())},
                                     {"window", "10s"},
                                     {"containers", json::Array{json::Object{{"name", "c"}, {"usage", json::Object{{"cpu", usage}}}}}}});
      return json::Value(json::Object{{"items", std::move(items)}});
    };
    api.put(kinds().deployment, yaml("metadata: {name: web}\nspec: {replicas: 2, selector: {matchLabels: {app: web}}}\n"));
    api.put(kinds().horizontal_pod_autoscaler,
            yaml("metadata: {name: web}\nspec: {minReplicas: 1, maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, "
                 "name: web}, "
                 "metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]}\n"));
    for (int i = 0; i < 2; ++i)
      api.put(
          kinds().pod,
          yaml(fmt::format(
              "metadata: {{name: p{}, labels: {{app: web}}}}\nspec: {{containers: [{{name: c, resources: {{requests: {{cpu: 100m}}}}}}]}}\n"
              "status: {{phase: Running, startTime: '2026-01-05T08:00:00Z', conditions: [{{type: Ready, status: 'True', "
              "lastTransitionTime: '2026-01-05T08:00:00Z'}}]}}\n",
              i)));
  }
  json::Value status() { return *json::find(api.get(kinds().horizontal_pod_autoscaler, "web"), "status"); }
  std::int64_t replicas() { return json::get_int(api.get(kinds().deployment, "web"), {"spec", "replicas"}); }
  std::string condition(const char* type) {
    const json::Value object = api.get(kinds().horizontal_pod_autoscaler, "web");
    const json::Value* found = find_condition(object, type);
    return found == nullptr ? "" : fmt::format("{} {}", json::get_string(*found, {"status"}), json::get_string(*found, {"reason"}));
  }

  VirtualLoop loop{kNow};
  FakeApi api{loop};
  std::string usage = "100m";
};

TEST_F(HpaControllerTest, GrowsWithTheLoadAndShrinksAfterTheWindow) {
  loop.run_for(seconds(1));
  EXPECT_EQ(replicas(), 4);
  EXPECT_TRUE(api.saw("SuccessfulRescale: New size: 4; reason: cpu resource utilization (percentage of request) above target"));
  EXPECT_EQ(condition("AbleToScale"), "True SucceededRescale");
  EXPECT_EQ(condition("ScalingActive"), "True ValidMetricFound");
  EXPECT_EQ(json::get_int(json::get_array(status(), {"currentMetrics"})[0], {"resource", "current", "averageUtilization"}), 100);
  usage = "1m";
  loop.run_for(minutes(4));
  EXPECT_EQ(replicas(), 4) << "recent recommendations were higher";
  EXPECT_EQ(condition("AbleToScale"), "True ScaleDownStabilized");
  loop.run_for(minutes(2));
  EXPECT_EQ(replicas(), 1);
  EXPECT_TRUE(api.saw("SuccessfulRescale: New size: 1; reason: All metrics below target"));
}

TEST_F(HpaControllerTest, OneThatIsMadeAnewRemembersNothing) {
  loop.run_for(seconds(1));
  ASSERT_EQ(replicas(), 4);
  usage = "1m";
  json::Value again = api.get(kinds().horizontal_pod_autoscaler, "web");
  api.erase(kinds().horizontal_pod_autoscaler, "default", "web");
  json::erase(again, {"metadata", "uid"});
  json::erase(again, {"status"});
  api.put(kinds().horizontal_pod_autoscaler, again);
  loop.run_for(seconds(20));
  EXPECT_EQ(replicas(), 1) << "nobody recommended more to this one";
}

TEST_F(HpaControllerTest, AChangeThatIsRefusedIsNoneAndIsTriedAgain) {
  json::Value object = api.get(kinds().horizontal_pod_autoscaler, "web");
  json::set(object, {"spec", "behavior"},
            yaml("{scaleUp: {stabilizationWindowSeconds: 0, policies: [{type: Pods, value: 1, periodSeconds: 600}]}}"));
  api.put(kinds().horizontal_pod_autoscaler, object);
  int refused = 0;
  api.refuse = [&](const Write& write) -> std::optional<ApiStatus> {
    if (write.subresource != "scale" || refused == 2) return std::nullopt;
    ++refused;
    return model::internal_error("not now");
  };
  loop.run_for(minutes(2));
  EXPECT_EQ(refused, 2);
  EXPECT_EQ(replicas(), 3) << "one more in ten minutes, and the refused ones were none";
  loop.run_for(minutes(5));
  EXPECT_EQ(replicas(), 3);
}

TEST_F(HpaControllerTest, ATargetThatIsNotToBeScaledIsToldAndAskedOnceAPeriod) {
  api.refuse = [&](const Write& write) -> std::optional<ApiStatus> {
    if (write.subresource != "scale") return std::nullopt;
    return ApiStatus{.code = 403, .reason = "Forbidden", .message = "denied by policy"};
  };
  loop.run_for(seconds(16));
  EXPECT_EQ(condition("AbleToScale"), "False FailedUpdateScale");
  EXPECT_EQ(condition("ScalingActive"), "True ValidMetricFound");
  EXPECT_EQ(json::get_int(status(), {"currentReplicas"}), 2);
  EXPECT_EQ(json::get_int(status(), {"desiredReplicas"}), 0);
  EXPECT_EQ(json::find(status(), "lastScaleTime"), nullptr);
  EXPECT_EQ(std::ranges::count_if(api.events, [](const std::string& event) { return event.starts_with("FailedRescale"); }), 2);
  EXPECT_TRUE(
      api.saw("FailedRescale: New size: 4; reason: cpu resource utilization (percentage of request) above target; error: denied by "
              "policy"));
  api.refuse = nullptr;
  loop.run_for(seconds(16));
  EXPECT_EQ(replicas(), 4);
  EXPECT_EQ(condition("AbleToScale"), "True SucceededRescale");
  EXPECT_EQ(json::get_int(status(), {"desiredReplicas"}), 4);
  EXPECT_NE(json::find(status(), "lastScaleTime"), nullptr);
}

TEST_F(HpaControllerTest, WhatIsAskedWhileItScalesDoesNotWaitForThePeriod) {
  bool is_first = true;
  api.refuse = [&](const Write& write) -> std::optional<ApiStatus> {
    if (write.subresource == "scale" && std::exchange(is_first, false)) {
      json::Value object = api.get(kinds().horizontal_pod_autoscaler, "web");
      json::set(object, {"spec", "maxReplicas"}, 3);
      api.put(kinds().horizontal_pod_autoscaler, object);
    }
    return std::nullopt;
  };
  loop.run_for(seconds(5));
  EXPECT_EQ(replicas(), 3);
  EXPECT_EQ(json::get_int(status(), {"desiredReplicas"}), 3);
}

TEST_F(HpaControllerTest, TakesItsTargetIntoItsBounds) {
  json::Value target = api.get(kinds().deployment, "web");
  json::set(target, {"spec", "replicas"}, 9);
  api.put(kinds().deployment, target);
  loop.run_for(seconds(30));
  EXPECT_TRUE(api.saw("SuccessfulRescale: New size: 5; reason: Current number of replicas above Spec.MaxReplicas"));
}

TEST_F(HpaControllerTest, ATargetOfZeroIsLeftAlone) {
  loop.run_for(seconds(1));
  json::Value target = api.get(kinds().deployment, "web");
  json::set(target, {"spec", "replicas"}, 0);
  api.put(kinds().deployment, target);
  loop.run_for(seconds(30));
  EXPECT_EQ(replicas(), 0);
  EXPECT_EQ(condition("ScalingActive"), "False ScalingDisabled");
}

TEST_F(HpaControllerTest, SaysThatItsTargetIsMissing) {
  api.erase(kinds().deployment, "default", "web");
  loop.run_for(seconds(1));
  EXPECT_EQ(condition("AbleToScale"), "False FailedGetScale");
  EXPECT_TRUE(api.saw("FailedGetScale: deployments.apps \"web\" not found"));
}

TEST_F(HpaControllerTest, WithoutMetricsNothingChangesAndItSaysSo) {
  api.answer_list = [](const Write&) { return json::Value(json::Object{{"items", json::Array()}}); };
  loop.run_for(seconds(1));
  EXPECT_EQ(replicas(), 2);
  EXPECT_EQ(condition("ScalingActive"), "False FailedGetResourceMetric");
  EXPECT_TRUE(
      api.saw("FailedComputeMetricsReplicas: invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric "
              "value: failed to get cpu utilization: "
              "unable to get metrics for resource cpu: no metrics returned from resource metrics API"));
}

/// Metrics of other servers: a share of each pod, a value of an object, a value from outside.
TEST_F(HpaControllerTest, MetricsOfOtherServersCount) {
  std::string length = "45";
  std::vector<std::string> asked;
  api.answer_list = [&](const Write& write) {
    asked.push_back(fmt::format("{}/{} {} {} {}", write.kind->group, write.kind->plural, write.name, write.subresource, write.query));
    json::Array items;
    if (write.name == "*")
      for (const char* pod : {"p0", "p1"})
        items.push_back(json::Object{{"describedObject", json::Object{{"kind", "Pod"}, {"name", pod}}},
                                     {"timestamp", format_rfc3339(loop.now())},
                                     {"value", "1500m"}});
    else
      items.push_back(json::Object{{"metricName", "x"}, {"timestamp", format_rfc3339(loop.now())}, {"value", length}});
    return json::Value(json::Object{{"items", std::move(items)}});
  };
  json::Value document = api.get(kinds().horizontal_pod_autoscaler, "web");
  const auto metrics = [&](const std::string& text) {
    json::set(document, {"spec", "metrics"}, yaml(text));
    api.put(kinds().horizontal_pod_autoscaler, document);
    loop.run_for(seconds(20));
    document = api.get(kinds().horizontal_pod_autoscaler, "web");
  };
  metrics("[{type: Pods, pods: {metric: {name: hits}, target: {type: AverageValue, averageValue: '1'}}}]");
  EXPECT_EQ(replicas(), 3);
  EXPECT_TRUE(api.saw("SuccessfulRescale: New size: 3; reason: pods metric hits above target"));
  EXPECT_EQ(asked.back(), "custom.metrics.k8s.io/pods * hits labelSelector=app%3Dweb");
  EXPECT_EQ(json::serialize(status().at("currentMetrics")),
            R"([{"type":"Pods","pods":{"metric":{"name":"hits"},"current":{"averageValue":"1500m"}}}])");
  metrics(
      "[{type: Object, object: {describedObject: {apiVersion: networking.k8s.io/v1, kind: Ingress, name: door}, metric: {name: requests}, "
      "target: {type: Value, value: '20'}}}]");
  EXPECT_EQ(asked.back(), "custom.metrics.k8s.io/ingresses.networking.k8s.io door requests ");
  EXPECT_EQ(replicas(), 5) << "45 of 20, by two pods that are ready";
  EXPECT_TRUE(api.saw("SuccessfulRescale: New size: 5; reason: Ingress metric requests above target"));
  length = "30";
  metrics(
      "[{type: External, external: {metric: {name: queue, selector: {matchLabels: {q: a}}}, target: {type: AverageValue, averageValue: "
      "'30'}}}]");
  EXPECT_EQ(asked.back(), "external.metrics.k8s.io/queue   labelSelector=q%3Da");
  EXPECT_EQ(
      json::serialize(status().at("currentMetrics")),
      R"([{"type":"External","external":{"metric":{"name":"queue","selector":{"matchLabels":{"q":"a"}}},"current":{"averageValue":"6"}}}])");
  loop.run_for(minutes(6));
  EXPECT_EQ(replicas(), 1);
}

TEST_F(HpaControllerTest, MetricsOfAnApiThatIsNotThereHaveTheirPlaceAndReason) {
  api.refuse = [](const Write& write) -> std::optional<ApiStatus> {
    if (!write.kind->group.ends_with(".metrics.k8s.io")) return std::nullopt;
    ApiStatus status;
    status.code = 404;
    status.message = "the server could not find the requested resource";
    return status;
  };
  json::Value document = api.get(kinds().horizontal_pod_autoscaler, "web");
  json::set(
      document, {"spec", "metrics"},
      yaml("[{type: External, external: {metric: {name: queue, selector: {matchLabels: {q: a}}}, target: {type: Value, value: '20'}}}]"));
  api.put(kinds().horizontal_pod_autoscaler, document);
  loop.run_for(seconds(20));
  EXPECT_EQ(condition("ScalingActive"), "False FailedGetExternalMetric");
  EXPECT_TRUE(api.saw(
      "FailedGetExternalMetric: unable to get external metric "
      "default/queue/&LabelSelector{MatchLabels:map[string]string{q: a,},MatchExpressions:[]LabelSelectorRequirement{},}: unable to fetch "
      "metrics from external metrics API: the server could not find the requested resource (get queue.external.metrics.k8s.io)"));
  const json::Value status = api.get(kinds().horizontal_pod_autoscaler, "web").at("status");
  EXPECT_EQ(json::serialize(status.at("currentMetrics")), R"([{"type":""}])");
}

TEST_F(HpaControllerTest, TwoForTheSamePodsAreTooMany) {
  json::Value second = api.get(kinds().horizontal_pod_autoscaler, "web");
  json::set(second, {"metadata", "name"}, "more");
  json::set(second, {"metadata", "uid"}, "");
  api.put(kinds().horizontal_pod_autoscaler, second);
  loop.run_for(seconds(20));
  EXPECT_EQ(condition("ScalingActive"), "False AmbiguousSelector");
  EXPECT_TRUE(api.saw("AmbiguousSelector: pods by selector app=web are controlled by multiple HPAs: [default/more default/web]"));
}

TEST(HpaModel, GrowthWaitsForTheLowestOfItsWindowAndShrinkingForTheHighest) {
  const json::Value spec = yaml(
      "{minReplicas: 1, maxReplicas: 100, behavior: {scaleUp: {stabilizationWindowSeconds: 60, policies: [{type: Pods, value: 100, "
      "periodSeconds: 60}]}, scaleDown: {stabilizationWindowSeconds: 120, policies: [{type: Pods, value: 100, periodSeconds: 60}]}}}");
  hpa::History history;
  EXPECT_EQ(hpa::limit(spec, 10, 12, history, kOptions, kNow).replicas, 12);
  hpa::Limited limited = hpa::limit(spec, 10, 30, history, kOptions, kNow + seconds(30));
  EXPECT_EQ(limited.replicas, 12) << "twelve were enough half a minute ago";
  EXPECT_EQ(limited.stable_reason, "ScaleUpStabilized");
  EXPECT_TRUE(limited.is_stabilized);
  limited = hpa::limit(spec, 10, 30, history, kOptions, kNow + seconds(61));
  EXPECT_EQ(limited.replicas, 30);
  EXPECT_FALSE(limited.is_stabilized);
  limited = hpa::limit(spec, 40, 5, history, kOptions, kNow + seconds(180));
  EXPECT_EQ(limited.replicas, 30) << "thirty were wanted two minutes ago, and not quite";
  EXPECT_EQ(limited.stable_reason, "ScaleDownStabilized");
  EXPECT_EQ(hpa::limit(spec, 40, 5, history, kOptions, kNow + seconds(182)).replicas, 5);
}

TEST_F(HpaControllerTest, AnAverageValueIsShownAsThatAlone) {
  json::Value object = api.get(kinds().horizontal_pod_autoscaler, "web");
  json::set(object, {"spec", "metrics"},
            yaml("[{type: Resource, resource: {name: cpu, target: {type: AverageValue, averageValue: 50m}}}]"));
  api.put(kinds().horizontal_pod_autoscaler, object);
  loop.run_for(seconds(1));
  EXPECT_EQ(replicas(), 4);
  const json::Value shown = status();
  const json::Value* current = json::find(json::get_array(shown, {"currentMetrics"})[0], {"resource", "current"});
  ASSERT_NE(current, nullptr);
  EXPECT_EQ(json::get_string(*current, {"averageValue"}), "100m");
  EXPECT_EQ(json::find(*current, {"averageUtilization"}), nullptr);
}

}  // namespace
}  // namespace berth::controllers
