// What comes of scenarios: the same from the same seed, and of each part what it is for.
#include <fmt/format.h>

#include <set>

#include "simulator/compare.h"
#include "simulator/in_force.h"
#include "simulator/page.h"
#include "tests/simulator/support.h"

namespace berth::simulator {
namespace {

constexpr const char* kShop = R"yaml(
duration: 6h
seed: 5
nodes:
- {name: worker, count: 6, cpu: "8", memory: 32Gi, price: 0.4/h}
workloads:
- name: web
  namespace: shop
  deployment: {replicas: 8}
  pod: {cpu: 500m, memory: 512Mi}
  budget: {minAvailable: 6}
- name: batch
  pod: {cpu: 1, memory: 1Gi}
  arrivals: {rate: 40/h}
  runFor: {mean: 20m}
- name: nightly
  job: {completions: 6, parallelism: 3}
  pod: {cpu: 500m, memory: 2Gi}
  arrivals: {at: [1h, 3h]}
  runFor: 20m
)yaml";

std::string everything() {
  return std::string(kShop) + R"yaml(
groups:
- {name: burst, min: 0, max: 4, cpu: "8", memory: 32Gi, bootDelay: 90s, price: 0.2/h}
autoscaler: {spec: {scaleDown: {enabled: true, delayAfterAdd: 5m, unneededTime: 5m}}}
descheduler:
  every: 30m
  policy: {apiVersion: descheduler/v1alpha1, kind: DeschedulerPolicy, strategies: {RemoveDuplicates: {enabled: true}}}
faults:
- {at: 2h, lose: {zone: b}, for: 30m}
- {rate: 1/h, lose: 1, for: {mean: 10m}}
- {at: 4h, restart: scheduler, for: 1m}
changes:
- {at: 5h, scale: {deployment: web, namespace: shop, replicas: 12}}
)yaml";
}

TEST(Simulation, TheSameSeedGivesTheSameBytes) {
  const std::string text = everything();
  const Outcome one = outcome_of(text), two = outcome_of(text);
  EXPECT_TRUE(json::serialize(to_json(one)) == json::serialize(to_json(two)));
  EXPECT_TRUE(to_html(one) == to_html(two));
  EXPECT_GT(evictions(one, "taint"), 0) << to_text(one);
  EXPECT_TRUE(one.failures.empty()) << to_text(one);
  EXPECT_TRUE(one.refusals.empty()) << to_text(one);
  Scenario other = scenario_of(text);
  other.seed = 6;
  EXPECT_FALSE(to_csv(*run(other)) == to_csv(one));
}

TEST(Simulation, CountsAreWhatTheScenarioAsksFor) {
  const Outcome outcome = outcome_of(kShop);
  const Sample& end = outcome.samples.back();
  EXPECT_EQ(end.workloads.at("shop/web")[1], 8);
  EXPECT_EQ(end.nodes, 6);
  EXPECT_EQ(end.ready_nodes, 6);
  EXPECT_EQ(end.pending, 0);
  EXPECT_NEAR(end.cost, 6 * 6 * 0.4, 1e-6);
  // Eight of the web, twelve of the Jobs, and about 240 of the batch.
  EXPECT_NEAR(static_cast<double>(end.created), 8 + 12 + 240, 60);
  EXPECT_EQ(end.created, end.bound);
  EXPECT_EQ(end.created, end.finished + end.running + end.starting);
}

TEST(Simulation, SilentHeartbeatsChangeNothing) {
  Scenario scenario = scenario_of(std::string(kShop) + R"yaml(
faults:
- {at: 1h, lose: 2, for: 20m}
- {at: 2h, lose: {zone: a}, for: 2h}
- {at: 2h30m, restart: controllers, for: 2m}
- {at: 5h, cut: nodes, for: 3m}
)yaml");
  log::set_level(log::Level::kError);
  const auto silent = run(scenario), written = run(scenario, {.on_progress = {}, .recording_file = {}, .writes_heartbeats = true});
  ASSERT_TRUE(silent && written);
  EXPECT_GT(evictions(*silent, "taint"), 0);
  ASSERT_EQ(silent->samples.size(), written->samples.size());
  // Who pays what counts from the moment at which a status is seen, and reports stand behind heartbeats: milliseconds of a day.
  const auto shown = [](json::Value sample) {
    json::erase(sample, {"cost", "byWorkload"});
    return json::serialize(sample);
  };
  for (std::size_t i = 0; i < silent->samples.size(); ++i)
    EXPECT_EQ(shown(silent->samples[i].to_json()), shown(written->samples[i].to_json())) << show_time(silent->samples[i].at);
}

TEST(Simulation, ALostZoneIsEvictedAndComesBack) {
  const Outcome outcome = outcome_of(std::string(kShop) + "faults: [{at: 2h, lose: {zone: b}, for: 30m}]\n");
  EXPECT_GT(evictions(outcome, "taint"), 0) << to_text(outcome);
  const auto ready_at = [&](Duration when) {
    for (const Sample& sample : outcome.samples)
      if (sample.at >= when) return sample.ready_nodes;
    return std::int64_t{-1};
  };
  EXPECT_EQ(ready_at(std::chrono::minutes(119)), 6);
  EXPECT_EQ(ready_at(std::chrono::minutes(125)), 4);
  EXPECT_EQ(ready_at(std::chrono::minutes(155)), 6);
  EXPECT_EQ(outcome.samples.back().workloads.at("shop/web")[1], 8);
}

TEST(Simulation, AfterEachFaultTheClusterHeals) {
  for (const char* fault :
       {"lose: 3, for: 20m", "delete: 1", "cordon: 2, for: 30m", "taint: {nodes: 3, key: storm}, for: 15m", "slowApi: 500ms, for: 20m",
        "failingApi: 30%, for: 20m", "restart: scheduler, for: 2m", "restart: controllers, for: 5m", "restart: nodes, for: 2m",
        "restart: server, for: 30s", "restart: autoscaler", "restart: descheduler", "cut: nodes, for: 10m", "cut: controllers, for: 10m",
        "cut: scheduler, for: 10m", "clock: {component: controllers, by: -5m}, for: 30m", "clock: {component: controllers, by: +5m}"}) {
    std::string text = fmt::format("{}faults: [{{at: 30m, {}}}]\n", kShop, fault);
    for (const auto& [from, to] :
         {std::pair("duration: 6h", "duration: 2h"), std::pair("at: [1h, 3h]", "at: 20m"), std::pair("rate: 40/h", "rate: 20/h")})
      text.replace(text.find(from), std::string_view(from).size(), to);
    const Outcome outcome = outcome_of(text);
    const Sample& end = outcome.samples.back();
    EXPECT_EQ(end.workloads.at("shop/web")[1], 8) << fault << "\n" << to_text(outcome);
    EXPECT_EQ(end.pending, 0) << fault;
    EXPECT_EQ(end.ready_nodes, std::string_view(fault) == "delete: 1" ? 5 : 6) << fault;
    EXPECT_EQ(end.cordoned_nodes, 0) << fault;
    EXPECT_TRUE(outcome.ok()) << fault << "\n" << to_text(outcome);
    EXPECT_TRUE(std::ranges::any_of(outcome.happenings, [](const Happening& one) { return one.kind == "fault"; })) << fault;
  }
}

/// When something is over that struck, from `began`.
std::vector<Duration> lengths(const Outcome& outcome, const std::string& begins, const std::string& ends) {
  std::vector<Duration> begun, out;
  for (const Happening& one : outcome.happenings)
    if (one.text.starts_with(ends) && out.size() < begun.size())
      out.push_back(one.at - begun[out.size()]);
    else if (one.text.starts_with(begins))
      begun.push_back(one.at);
  return out;
}

TEST(Simulation, EachTimeAFaultLastsAsLongAsIsDrawnAnew) {
  const struct {
    const char *fault, *begins, *ends;
  } cases[] = {{"restart: scheduler", "scheduler restarts", "scheduler is back"},
               {"slowApi: 100ms", "", ""},
               {"cut: nodes", "", ""},
               {"cordon: 1", "", ""}};
  for (const auto& [fault, begins, ends] : cases) {
    const Outcome outcome = outcome_of(fmt::format(
        "duration: 13h\nnodes: [{{name: worker, count: 2}}]\nfaults: [{{at: [1h, 3h, 5h, 7h, 9h, 11h], {}, for: {{min: 1m, max: 30m}}}}]\n",
        fault));
    std::string first, over;
    for (const Happening& one : outcome.happenings)
      if (one.kind == "fault" && first.empty()) first = one.text.substr(0, one.text.find(" ("));
    const auto drawn = lengths(outcome, *begins == 0 ? first : begins, *ends == 0 ? first + ": over" : ends);
    ASSERT_EQ(drawn.size(), 6U) << fault << "\n" << to_text(outcome);
    EXPECT_GT(std::set(drawn.begin(), drawn.end()).size(), 3U) << fault;
  }
}

TEST(Simulation, TheEndOfOneFaultLeavesAnotherThatLasts) {
  const auto at = [](const Outcome& outcome, Duration when) {
    for (const Sample& sample : outcome.samples)
      if (sample.at >= when) return sample;
    return outcome.samples.back();
  };
  using std::chrono::minutes;
  const std::string head = "duration: 3h\nnodes: [{name: worker, count: 2}]\n";
  const Outcome lost = outcome_of(head + R"(faults:
- {at: 10m, lose: worker-1, for: 30m}
- {at: 20m, lose: worker-1, for: 1h}
)");
  ASSERT_EQ(at(lost, minutes(5)).ready_nodes, 2) << to_text(lost);
  EXPECT_EQ(at(lost, minutes(60)).ready_nodes, 1) << to_text(lost);
  EXPECT_EQ(at(lost, minutes(100)).ready_nodes, 2);
  const Outcome cordoned = outcome_of(head + R"(faults:
- {at: 10m, cordon: worker-1, for: 30m}
- {at: 20m, cordon: worker-1, for: 1h}
)");
  EXPECT_EQ(at(cordoned, minutes(60)).cordoned_nodes, 1);
  EXPECT_EQ(at(cordoned, minutes(100)).cordoned_nodes, 0);
  const std::string work = R"(
workloads:
- {name: batch, pod: {cpu: 100m, memory: 64Mi}, arrivals: {at: [1h]}, runFor: 1h}
)";
  for (const char* fault : {"cut: scheduler", "restart: scheduler", "failingApi: 100%"}) {
    const Outcome outcome =
        outcome_of(fmt::format("{}faults:\n- {{at: 10m, {}, for: 30m}}\n- {{at: 20m, {}, for: 1h}}\n{}", head, fault, fault, work));
    EXPECT_EQ(at(outcome, minutes(70)).pending, 1) << fault << "\n" << to_text(outcome);
    EXPECT_EQ(at(outcome, minutes(100)).pending, 0) << fault;
  }
}

TEST(InForce, TheLastThatBeganHoldsUntilItEnds) {
  InForce<int> all;
  EXPECT_EQ(all.value(), 0);
  all.begin(1, 10);
  all.begin(2, 20);
  all.begin(3, 30);
  EXPECT_EQ(all.value(), 30);
  all.end(2);
  EXPECT_EQ(all.value(), 30);
  all.end(3);
  EXPECT_EQ(all.value(), 10);
  all.end(1);
  EXPECT_TRUE(all.empty());
}

TEST(Simulation, FaultsAtARateComeAsOftenAsTheySay) {
  const Outcome outcome = outcome_of("duration: 30h\nnodes: [{count: 2}]\nfaults: [{rate: 2/h, restart: scheduler}]\n");
  const auto count = std::ranges::count_if(outcome.happenings, [](const Happening& one) { return one.text == "scheduler restarts"; });
  EXPECT_NEAR(static_cast<double>(count), 60, 25);
}

TEST(Simulation, AssertionsThatFailSayWhenAndWhy) {
  const Outcome outcome = outcome_of(std::string(kShop) + R"yaml(
faults: [{at: 2h, lose: {zone: b}, for: 30m}]
assert:
- {name: all nodes, always: nodes.ready == 6}
- {name: at the end, that: pods.pending == 0}
- {that: nodes.total == 7}
- {that: nodes.total == 6, at: 3h}
- {always: evictions.taint == 0, after: 5h}
)yaml");
  ASSERT_EQ(outcome.failures.size(), 3U) << to_text(outcome);
  EXPECT_EQ(outcome.failures[0].name, "all nodes");
  EXPECT_GE(outcome.failures[0].at, Duration(std::chrono::hours(2)));
  EXPECT_LE(outcome.failures[0].at, Duration(std::chrono::minutes(125)));
  EXPECT_NE(outcome.failures[0].message.find("\"ready\":4"), std::string::npos) << outcome.failures[0].message;
  EXPECT_FALSE(outcome.ok());
}

TEST(Simulation, WhatTheServerRefusesIsSaid) {
  const Outcome outcome = outcome_of(
      "duration: 10m\nnodes: [{count: 1}]\nworkloads:\n- {name: Bad_Name, pod: {cpu: 1}}\n- {name: classy, pod: {priorityClassName: "
      "none}}\n");
  EXPECT_EQ(outcome.refusals.size(), 2U) << to_text(outcome);
  EXPECT_FALSE(outcome.ok());
}

TEST(Simulation, AnHpaFollowsTheDaysLoad) {
  const Outcome outcome = outcome_of(R"yaml(
duration: 24h
nodes: [{count: 4, cpu: "16", memory: 64Gi}]
workloads:
- name: web
  deployment: {replicas: 2}
  pod: {cpu: 500m, memory: 256Mi}
  hpa: {min: 2, max: 30, cpu: 70%}
  load: {0h: 500m, 6h: 500m, 12h: 8, 18h: 8, 23h: 500m}
assert:
- {name: night, that: 'workloads["default/web"].running <= 4', at: 6h}
- {name: day, that: 'workloads["default/web"].running >= 18', at: 15h}
)yaml");
  EXPECT_TRUE(outcome.ok()) << to_text(outcome);
}

TEST(Simulation, PodsThatGrowPutTheirNodeUnderPressure) {
  const Outcome outcome = outcome_of(R"yaml(
duration: 2h
nodes: [{count: 2, cpu: "8", memory: 8Gi}]
workloads:
- name: hog
  deployment: {replicas: 2}
  pod: {cpu: 100m, memory: 1Gi, usage: {memory: "0s=500Mi,20m=9Gi"}}
)yaml");
  EXPECT_GT(evictions(outcome, "pressure"), 0) << to_text(outcome);
}

TEST(Simulation, TheAutoscalerBringsNodesAndTakesThemAway) {
  const Outcome outcome = outcome_of(R"yaml(
duration: 6h
nodes: [{count: 1, cpu: "4", memory: 16Gi}]
groups: [{name: burst, min: 0, max: 5, cpu: "8", memory: 32Gi, bootDelay: 2m, price: 1/h}]
autoscaler: {spec: {scaleDown: {enabled: true, delayAfterAdd: 5m, unneededTime: 5m}}}
workloads:
- {name: night, job: {completions: 12, parallelism: 12}, pod: {cpu: 3, memory: 2Gi}, arrivals: {at: 1h}, runFor: 30m}
assert:
- {that: nodes.total == 1, at: 59m}
- {that: nodes.total >= 5, at: 70m}
- {that: nodes.total == 1}
- {that: 'pods.pending == 0 && cost.total > 1.0 && cost.perHour == 0.0'}
)yaml");
  EXPECT_TRUE(outcome.ok()) << to_text(outcome);
}

TEST(Simulation, TheDeschedulerMovesWhatStandsTogether) {
  const Outcome outcome = outcome_of(R"yaml(
duration: 2h
nodes: [{name: old, count: 1, cpu: "8", memory: 32Gi}]
workloads:
- {name: web, deployment: {replicas: 4}, pod: {cpu: 100m, memory: 128Mi}}
changes: [{at: 30m, addNodes: {name: new, count: 3, cpu: "8", memory: 32Gi}}]
descheduler:
  every: 10m
  policy: {apiVersion: descheduler/v1alpha1, kind: DeschedulerPolicy, strategies: {RemoveDuplicates: {enabled: true}}}
)yaml");
  EXPECT_GT(outcome.component_evictions.at("descheduler"), 0) << to_text(outcome);
  EXPECT_EQ(outcome.samples.back().workloads.at("default/web")[1], 4);
}

TEST(Simulation, ChangesAreCarriedOut) {
  const Outcome outcome = outcome_of(std::string(kShop) + R"yaml(
changes:
- {at: 1h, scale: {deployment: web, namespace: shop, replicas: 10}}
- {at: 2h, drain: worker-1}
- {at: 3h, patch: {kind: Deployment, namespace: shop, name: web, merge: {spec: {replicas: 4}}}}
- {at: 4h, uncordon: worker-1}
- {at: 4h, addNodes: {name: more, count: 2}}
- {at: 4h30m, removeNodes: more-1}
- {at: 5h, apply: {apiVersion: v1, kind: ConfigMap, metadata: {name: note}, data: {a: b}}}
- {at: 5h, delete: {kind: Deployment, namespace: shop, name: web}}
- {at: 5h, scheduler: {apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, profiles: [{schedulerName: default-scheduler}]}}
assert:
- {that: 'workloads["shop/web"].running == 10', at: 1h30m}
- {that: nodes.cordoned == 1 && evictions.api > 0, at: 2h30m}
- {that: 'workloads["shop/web"].running == 4 && nodes.cordoned == 1', at: 3h30m}
- {that: nodes.cordoned == 0 && nodes.total == 8, at: 4h15m}
- {that: 'nodes.total == 7 && workloads["shop/web"].pods == 0'}
)yaml");
  EXPECT_TRUE(outcome.ok()) << to_text(outcome);
}

TEST(Simulation, ADrainLeavesMirrorPodsAsKubectlDoes) {
  const Outcome outcome = outcome_of(R"yaml(
duration: 1h
nodes: [{name: worker, count: 2, cpu: "8", memory: 32Gi}]
changes:
- {at: 1m, apply: {apiVersion: v1, kind: Pod, metadata: {name: m, namespace: default, annotations: {kubernetes.io/config.mirror: x}}, spec: {nodeName: worker-1, containers: [{name: c, image: x}]}}}
- {at: 10m, drain: worker-1}
assert:
- {that: evictions.api == 0 && nodes.cordoned == 1}
)yaml");
  EXPECT_TRUE(outcome.ok()) << to_text(outcome);
}

TEST(Comparison, TwoConfigurationsOverSeeds) {
  log::set_level(log::Level::kError);
  const auto parsed = parse_scenario(std::string(kShop) + R"yaml(
compare:
- {name: spread}
- name: packed
  set:
    scheduler:
      apiVersion: kubescheduler.config.k8s.io/v1
      kind: KubeSchedulerConfiguration
      profiles:
      - schedulerName: default-scheduler
        pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}}]
- {name: half, set: {nodes: [{name: worker, count: 1, cpu: "8", memory: 32Gi, price: 0.4/h}]}}
)yaml",
                                     "s.yaml", "");
  ASSERT_TRUE(parsed) << parsed.error().message;
  const auto sides = compare(parsed->variants, 3, {});
  ASSERT_TRUE(sides);
  ASSERT_EQ(sides->size(), 3U);
  // The same came to all of them.
  for (std::size_t seed = 0; seed < 3; ++seed) EXPECT_EQ((*sides)[0].outcomes[seed].arrivals, (*sides)[2].outcomes[seed].arrivals);
  const auto figures = compared_figures(*sides);
  const auto cost = std::ranges::find(figures, "cost", &ComparedFigure::name);
  ASSERT_NE(cost, figures.end());
  EXPECT_EQ(cost->verdicts[1], "");
  EXPECT_EQ(cost->verdicts[2], "better");
  EXPECT_NE(to_text(*sides).find("packed - spread"), std::string::npos);
  EXPECT_NE(to_html(*sides).find("packed"), std::string::npos);
}

TEST(Comparison, WhatRunsAtOnceIsNobodysMatter) {
  log::set_level(log::Level::kError);
  const auto parsed = parse_scenario(R"yaml(
duration: 20m
nodes: [{name: box, count: 2, cpu: "4", memory: 8Gi}]
workloads: [{name: task, pod: {cpu: 1, memory: 1Gi}, arrivals: {rate: 60/h}, runFor: {mean: 5m}}]
compare: [{name: two}, {name: one, set: {nodes: [{name: box, count: 1, cpu: "4", memory: 8Gi}]}}]
)yaml",
                                     "s.yaml", "");
  ASSERT_TRUE(parsed) << parsed.error().message;
  std::vector<std::string> told;
  for (const std::size_t threads : {1, 3}) {
    const auto sides = compare(parsed->variants, 2, {.on_progress = {}, .threads = threads});
    ASSERT_TRUE(sides);
    told.push_back(json::serialize(to_json(*sides)));
  }
  EXPECT_EQ(told[0], told[1]);
}

TEST(Comparison, TheFirstRunThatCannotBeIsTold) {
  log::set_level(log::Level::kError);
  const auto parsed = parse_scenario("duration: 10m\nnodes: [{count: 1}]\n", "s.yaml", "");
  ASSERT_TRUE(parsed);
  std::vector<Variant> variants(3, parsed->variants.front());
  for (std::size_t i = 0; i < 3; ++i) variants[i].name = fmt::format("v{}", i);
  variants[1].scenario.replay = variants[2].scenario.replay = "/nowhere/day.jsonl";
  const auto sides = compare(variants, 2, {.on_progress = {}, .threads = 2});
  ASSERT_FALSE(sides);
  EXPECT_TRUE(sides.error().message.starts_with("v1: ")) << sides.error().message;
}

/// A run in which so many pods wait all the time, for so long.
Outcome waiting(std::int64_t pods, double wait, std::int64_t finished) {
  Outcome out;
  out.wait_mean = wait;
  for (const auto at : {std::chrono::hours(0), std::chrono::hours(1)}) {
    out.samples.emplace_back();
    out.samples.back().at = at;
    out.samples.back().pending = pods;
    out.samples.back().finished = finished;
  }
  return out;
}

TEST(Comparison, OneRunIsJudgedWithCare) {
  const auto verdict = [](const Outcome& a, const Outcome& b) { return verdicts_of({{"spread", {a}}, {"packed", {b}}}).front(); };
  EXPECT_EQ(verdict(waiting(4, 120, 50), waiting(1, 6, 50)),
            "packed is better than spread: pending at the end 4.00 → 1.00; wait for a node, mean 120.00 → 6.00 s; pending on average 4.00 "
            "→ 1.00; one run "
            "of each: more of them (--seeds 5) tell whether that is chance.");
  EXPECT_EQ(verdict(waiting(1, 6, 50), waiting(1, 60, 80)),
            "packed against spread: better: pods finished 50.00 → 80.00. Worse: wait for a node, mean 6.00 → 60.00 s; one run of each: "
            "more of them "
            "(--seeds 5) tell whether that is chance.");
  EXPECT_EQ(verdict(waiting(1, 6, 50), waiting(1, 6.05, 50)),
            "Between packed and spread no difference can be told by one run (--seeds 5 tells more).");
  EXPECT_EQ(to_text({{"spread", {waiting(4, 120, 50)}}, {"packed", {waiting(1, 6, 50)}}}).find("±"), std::string::npos);
  EXPECT_TRUE(json::find(to_json({{"a", {waiting(4, 120, 50)}}, {"b", {waiting(1, 6, 50)}}}), {"figures"})
                  ->get_array()[0]
                  .at("variants")
                  .at(0)
                  .at("confidence95")
                  .is_null());
}

TEST(Comparison, SeveralRunsAreJudgedByTheirSpread) {
  const Side spread{"spread", {waiting(4, 100, 50), waiting(4, 140, 50), waiting(4, 120, 50)}};
  EXPECT_EQ(verdicts_of({spread, {"packed", {waiting(4, 10, 50), waiting(4, 52, 50), waiting(4, 29, 50)}}}).front(),
            "packed is better than spread: wait for a node, mean 120.00 → 30.33 s.");
  EXPECT_EQ(verdicts_of({spread, {"packed", {waiting(4, 10, 50), waiting(4, 400, 50), waiting(4, 29, 50)}}}).front(),
            "Between packed and spread no difference can be told.");
}

TEST(Comparison, AnIntervalIsStudents) {
  const Estimate one = estimate({10, 12, 14});
  EXPECT_DOUBLE_EQ(one.mean, 12);
  EXPECT_NEAR(one.half_width.value_or(0), 4.303 * 2 / std::sqrt(3.0), 1e-9);
  EXPECT_FALSE(estimate({5}).half_width) << "of one run nobody knows";
}

TEST(Page, TheVerdictStandsFirstAndWhatWasDoneIsNumbered) {
  const std::string scenario =
      "duration: 40m\ntitle: day\ncurrency: EUR\nnodes: [{name: box, count: 2, cpu: '4', memory: 8Gi, price: 0.3/h}]\n"
      "faults: [{at: 10m, lose: {names: [box-1]}, for: 10m}]\nassert: [{that: 'nodes.ready == ";
  const Outcome held = outcome_of(scenario + "2'}]\n"), broken = outcome_of(scenario + "7'}]\n");
  EXPECT_EQ(verdict_of(held).front(), "The check holds.") << to_text(held);
  EXPECT_EQ(verdict_of(broken).front(), "1 check does not hold.") << to_text(broken);
  EXPECT_EQ(verdict_of(held).back(), "It costs 0.40 EUR.");
  const std::string page = to_html(held), bad = to_html(broken);
  const auto at = [&](std::string_view text) { return page.find(text); };
  ASSERT_NE(at("<b>✓ The check holds.</b>"), std::string::npos) << page.substr(page.find("<body>"), 2000);
  EXPECT_LT(at("The check holds."), at("class=\"cards\""));
  EXPECT_LT(at("class=\"cards\""), at("<svg"));
  EXPECT_NE(at("<b>0.40 EUR</b>"), std::string::npos);
  EXPECT_NE(at("<ol class=\"marks\"><li>00:10 "), std::string::npos) << "the lines are told";
  EXPECT_NE(at("class=\"number\""), std::string::npos) << "and numbered in the plots";
  EXPECT_EQ(at("None."), std::string::npos);
  EXPECT_NE(at("Not drawn, for there were none: Pods without a node, by reason"), std::string::npos);
  EXPECT_NE(bad.find("<div class=\"verdict fails\"><b>✕ 1 check does not hold.</b>"), std::string::npos);
}

TEST(Page, CostsOfNobodysCurrencyAreUnits) {
  const Outcome outcome = outcome_of("duration: 1h\nnodes: [{name: box, count: 2, cpu: '4', memory: 8Gi, price: 0.3/h}]\n");
  EXPECT_EQ(verdict_of(outcome).back(), "It costs 0.60 units.");
  EXPECT_NE(to_text(outcome).find("cost 0.60 units, 0.60 units an hour at the end"), std::string::npos) << to_text(outcome);
}

TEST(Page, NamesAreEscapedAndNothingIsFetched) {
  Outcome outcome = outcome_of("duration: 10m\ntitle: '<script>alert(1)</script>'\nnodes: [{count: 1}]\n");
  outcome.happenings.push_back({Duration(0), "fault", "<img src=x onerror=alert(1)>"});
  outcome.failures.push_back({"\"quoted\" & <b>", Duration(0), "'x' < 1"});
  const std::string page = to_html(outcome);
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("<img"), std::string::npos);
  EXPECT_EQ(page.find("http"), page.find("http-equiv")) << "nothing is fetched from anywhere";
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
}

}  // namespace
}  // namespace berth::simulator
