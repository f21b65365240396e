// What NodePools would buy for what waits, and the cheapest mixture for what runs.
#include <gtest/gtest.h>

#include "tests/whatif/dump.h"

namespace berth::whatif {
namespace {

using testing::Dump;

json::Value read(const std::string& text) {
  auto out = json::parse_yaml("# YAML\n" + text);
  if (!out) ADD_FAILURE() << out.error().message << "\n" << text;
  return out ? std::move(*out) : json::Value();
}

json::Value types() {
  return read(R"(
kind: InstanceTypeCatalogue
zones: [a, b]
instanceTypes:
- {name: small, cpu: 2, memory: 8Gi, pods: 30, prices: {on-demand: 0.10, spot: 0.04}}
- {name: large, cpu: 8, memory: 32Gi, pods: 110, prices: {on-demand: 0.38, spot: 0.16}}
- {name: m4, cpu: 4, memory: 64Gi, pods: 110, prices: {on-demand: 0.90}}
)");
}
json::Value pool(const std::string& more = "") {
  return read(
      "{apiVersion: karpenter.sh/v1, kind: NodePool, metadata: {name: general}, spec: {template: {spec: {nodeClassRef: {group: "
      "sim.berth.dev, kind: SimulatedNodeClass, name: default}, requirements: [{key: karpenter.sh/capacity-type, operator: In, "
      "values: [on-demand]}]}}" +
      more + "}}");
}

/// A full node, and three pods of two cores that wait.
Dump crowded() {
  Dump out;
  out.node("n1", "a").deployment("web", "2", {{"n1", ""}, {"n1", ""}, {}, {}, {}});
  return out;
}

json::Value answer(const Dump& dump, json::Object question) {
  auto out = ask(dump.objects, json::Value(std::move(question)), dump.options);
  if (!out) ADD_FAILURE() << out.error().message;
  return out ? std::move(*out) : json::Value(json::Object{});
}
std::string error(const Dump& dump, json::Object question) {
  auto out = ask(dump.objects, json::Value(std::move(question)), dump.options);
  return out ? "" : out.error().message;
}
json::Object buying(json::Value pools) {
  return {{"changes", json::Array{json::Object{{"pools", std::move(pools)}, {"instanceTypes", types()}}}}};
}

TEST(Purchases, NodesComeForWhatWaitsAndTheirCostIsTold) {
  const json::Value out = answer(crowded(), buying(json::Array{pool()}));
  EXPECT_EQ(json::get_int(out, {"summary", "pending"}) + json::get_int(out, {"summary", "pendingBefore"}), 0);
  EXPECT_EQ(json::get_int(out, {"summary", "nodes", "after"}), 4) << "three small ones for 0.30 rather than a large one for 0.38";
  const json::Value& plan = json::get_array(out, {"bought"})[0];
  EXPECT_NEAR(json::find(plan, "pricePerHour")->to_number<double>(), 0.30, 1e-9);
  EXPECT_NEAR(json::find(out, "cost")->at("before").to_number<double>(), 0.90, 1e-9) << "by the label of its type";
  EXPECT_NEAR(json::find(out, "cost")->at("after").to_number<double>(), 1.20, 1e-9);
  const std::string text = to_text(out);
  EXPECT_NE(text.find("3 x small            a          on-demand    0.1000 USD an hour each"), std::string::npos) << text;
  EXPECT_NE(to_html(out).find("Nodes that are bought"), std::string::npos);
}

TEST(Purchases, AfterOtherChangesAndByThePoolsOfTheCluster) {
  Dump dump = crowded();
  dump.objects.push_back(pool());
  json::Object question = buying(true);
  question["changes"].get_array().insert(question["changes"].get_array().begin(), json::Object{{"drain", "n1"}});
  const json::Value out = answer(dump, std::move(question));
  EXPECT_EQ(json::get_int(out, {"summary", "nodes", "after"}), 3) << "a large one for four, a small one, and the drained one";
  EXPECT_EQ(json::get_int(out, {"summary", "pending"}), 0);
}

TEST(Purchases, LimitsAreTold) {
  const json::Value out = answer(crowded(), buying(json::Array{pool(", limits: {cpu: 4}")}));
  EXPECT_EQ(json::get_int(out, {"summary", "pending"}) + json::get_int(out, {"summary", "pendingBefore"}), 1);
  EXPECT_NE(to_text(out).find("the pool's limit of cpu is reached"), std::string::npos) << to_text(out);
}

TEST(Purchases, ItStartsWithoutAnyNode) {
  Dump dump;
  dump.deployment("web", "2", {{}});
  EXPECT_NE(error(dump, buying(json::Array{pool()})).find("there is no Node"), std::string::npos);
  dump.options.may_lack_nodes = true;
  EXPECT_EQ(json::get_int(answer(dump, buying(json::Array{pool()})), {"summary", "placed"}), 1);
}

TEST(Purchases, MistakesAreTold) {
  EXPECT_EQ(error(crowded(), buying(true)), "changes[0].pools: there is no NodePool: give one, or ask of a cluster that has some");
  EXPECT_NE(error(crowded(), buying(json::Array{read("{apiVersion: v1, kind: Pod, metadata: {name: a}}")}))
                .find("Pod a: kind: \"Pod\" is no kind of node pools"),
            std::string::npos);
  EXPECT_NE(error(crowded(), buying(json::Array{pool(", limitz: {cpu: 4}")}))
                .find("NodePool general: spec.limitz: unknown field; did you mean \"limits\"?"),
            std::string::npos);
  EXPECT_NE(
      error(crowded(), {{"changes", json::Array{json::Object{{"pools", json::Array{pool()}}}}}}).find("InstanceTypeCatalogue is wanted"),
      std::string::npos);
}

TEST(Purchases, TheCheapestMixtureForWhatRuns) {
  Dump dump;
  dump.node("n1", "a").node("n2", "b").deployment("web", "1", {{"n1", ""}, {"n2", ""}});
  const json::Value out = answer(dump, {{"pack", json::Object{{"instanceTypes", types()}}}});
  EXPECT_EQ(json::get_int(out, {"pack", "nodesAfter"}), 1);
  EXPECT_NEAR(json::find(out, "cost")->at("before").to_number<double>(), 1.80, 1e-9);
  EXPECT_NEAR(json::find(out, "cost")->at("after").to_number<double>(), 0.10, 1e-9);
  EXPECT_EQ(json::get_int(out, {"summary", "pending"}), 0);
  // A pool says what is allowed.
  const json::Value spot = read(
      "{kind: NodePool, apiVersion: karpenter.sh/v1, metadata: {name: spot}, spec: {template: {spec: {nodeClassRef: {group: sim.berth.dev, "
      "kind: SimulatedNodeClass, name: default}, requirements: [{key: "
      "karpenter.sh/capacity-type, operator: In, values: [spot]}]}}}}");
  const json::Value cheap = answer(dump, {{"pack", json::Object{{"instanceTypes", types()}, {"pools", json::Array{spot}}}}});
  EXPECT_NEAR(json::find(cheap, "cost")->at("after").to_number<double>(), 0.04, 1e-9);
  EXPECT_NE(error(dump, {{"pack", json::Object{{"instanceTypes", types()}, {"shapes", json::Array{"m4"}}}}}).find("no such field"),
            std::string::npos);
}

}  // namespace
}  // namespace berth::whatif
