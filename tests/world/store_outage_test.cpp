// What servers write of their own accord about what users made, while etcd takes nothing: it is written once that takes it again.
#include <gtest/gtest.h>

#include "tests/world/subject.h"

namespace berth::world {
namespace {

using std::chrono::seconds;

struct Written {
  model::Gvr gvr;
  std::string body;
  std::function<bool(const json::Value&)> is_told;
};

json::Value last_of(World& world, const std::string& name) {
  for (const auto& [stored, item] : world.held().items()) {
    const auto key = all_forms().cache_key(stored);
    if (!key || !key->ends_with("/" + name)) continue;
    if (const auto text = all_forms().to_text(*key, stored, *item.value)) return *json::parse(text->value);
  }
  return nullptr;
}

/// Etcd is full from the object's first write on, for five seconds.
void expect_told_after_an_outage(const Written& written) {
  World world(1, 1, Ground::kEtcd);
  world.loop().run_for(seconds(5));
  Hand hand(world, "maker");
  json::Value body = document(written.body);
  const std::string name(json::get_string(body, {"metadata", "name"}));
  world.held().on_write = [&](const store::SharedRecord& record) {
    if (record.key.ends_with("/" + name)) world.etcd().is_full = true;
  };
  hand.make(written.gvr, "", std::move(body));
  world.loop().run_for(seconds(5));
  ASSERT_TRUE(world.etcd().is_full) << "it was made";
  EXPECT_FALSE(written.is_told(last_of(world, name)));
  world.held().on_write = {};
  world.etcd().is_full = false;
  world.loop().run_for(seconds(5));
  EXPECT_TRUE(written.is_told(last_of(world, name))) << json::serialize(last_of(world, name));
}

TEST(StoreOutage, ADefinitionIsEstablishedOnceTheStoreTakesItsStatus) {
  expect_told_after_an_outage(
      {{"apiextensions.k8s.io", "v1", "customresourcedefinitions"},
       R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.example.com"},"spec":)"
       R"({"group":"example.com","scope":"Namespaced","names":{"plural":"things","kind":"Thing"},"versions":[{"name":"v1","served":true,)"
       R"("storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}})",
       [](const json::Value& definition) {
         return std::ranges::any_of(json::get_array(definition, {"status", "conditions"}), [](const json::Value& one) {
           return json::get_string(one, {"type"}) == "Established" && json::get_string(one, {"status"}) == "True";
         });
       }});
}

TEST(StoreOutage, APolicyIsSaidToBeLookedAtOnceTheStoreTakesIt) {
  expect_told_after_an_outage({{"admissionregistration.k8s.io", "v1", "validatingadmissionpolicies"},
                               R"({"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicy","metadata":{"name":)"
                               R"("careful"},"spec":{"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],)"
                               R"("operations":["CREATE"],"resources":["pods"]}]},"validations":[{"expression":"true"}]}})",
                               [](const json::Value& policy) {
                                 return json::get_int(policy, {"status", "observedGeneration"}) == 1;
                               }});
}

}  // namespace
}  // namespace berth::world
