// Gates of Kubernetes' features that are off there: what is served and kept with them on, off, and turned off later.
#include "model/features.h"
#include "tests/apiserver/server_fixture.h"

namespace berth::apiserver::testing {
namespace {

/// A store that outlives the servers that are started on it.
class LastingStore final : public store::Store {
 public:
  explicit LastingStore(store::Store& kept) : kept_(kept) {}
  [[nodiscard]] store::StoreState state() const override { return kept_.state(); }
  Result<void> commit(std::span<const store::Record> records, bool sync) override { return kept_.commit(records, sync); }
  Result<void> read(store::Revision after, const std::function<Result<void>(store::Record)>& each) override {
    return kept_.read(after, each);
  }
  Result<void> compact(store::Revision revision) override { return kept_.compact(revision); }

 private:
  store::Store& kept_;
};

class Gates : public ServerTest {
 protected:
  void SetUp() override { start_with(model::preferred_features()); }
  void start_with(model::Features features) {
    server_.reset();
    auto cache = open_object_cache(std::make_unique<LastingStore>(*store_), loop_, {}, true);
    ASSERT_TRUE(cache) << cache.error().message;
    ServerOptions options;
    options.cache = std::move(*cache);
    options.loop = &loop_;
    options.authenticator = std::make_shared<TrustingAuth>();
    options.authorizer = std::make_shared<TrustingAuth>();
    options.seed = 42;
    options.single_threaded = true;
    options.features = features;
    auto server = ApiServer::create(std::move(options));
    ASSERT_TRUE(server) << server.error().message;
    server_ = std::move(*server);
    loop_.run_for(std::chrono::seconds(1));
  }
  static model::Features without(model::Feature feature) {
    model::Features out = model::preferred_features();
    EXPECT_EQ(model::set_gates(out, {{feature, false}}), "");
    return out;
  }
  static std::string group(const char* spec) {
    return fmt::format(R"({{"apiVersion":"scheduling.k8s.io/v1alpha2","kind":"PodGroup","metadata":{{"name":"g"}},"spec":{{{}}}}})", spec);
  }
  static std::string job(const char* name, const char* group = "") {
    return fmt::format(R"({{"apiVersion":"batch/v1","kind":"Job","metadata":{{"name":"{}"}},"spec":{{"completionMode":"Indexed",)"
                       R"("parallelism":2,"completions":2,"template":{{"spec":{{{}"restartPolicy":"Never","containers":[{{"name":"c",)"
                       R"("image":"i"}}]}}}}}}}})",
                       name, group);
  }
  static constexpr const char* kGroups = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups";
  static constexpr const char* kJobs = "/apis/batch/v1/namespaces/default/jobs";
  static constexpr const char* kService = "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha2.scheduling.k8s.io";
  static constexpr const char* kAll =
      R"("schedulingPolicy":{"gang":{"minCount":2}},"schedulingConstraints":{"topology":[{"key":"zone"}]},"disruptionMode":"PodGroup",)"
      R"("resourceClaims":[{"name":"gpu","resourceClaimName":"c"}])";
  std::unique_ptr<store::Store> store_ = store::make_memory_store();
};

TEST_F(Gates, EachFieldGoesWithItsGate) {
  const struct {
    model::Feature feature;
    std::vector<std::string> gone;
  } cases[] = {{model::Feature::kTopologyAwareWorkloadScheduling, {"schedulingConstraints"}},
               {model::Feature::kWorkloadAwarePreemption, {"disruptionMode", "priority"}},
               {model::Feature::kDRAWorkloadResourceClaims, {"resourceClaims"}}};
  for (const auto& one : cases) {
    start_with(without(one.feature));
    const json::Value made = create(kGroups, group(kAll));
    for (const char* field : {"schedulingPolicy", "schedulingConstraints", "disruptionMode", "priority", "resourceClaims"})
      EXPECT_EQ(json::find(made, {"spec", field}) == nullptr, std::ranges::find(one.gone, field) != one.gone.end())
          << field << " without " << model::name_of(one.feature);
    json::Value unbound = read(std::string(kGroups) + "/g");
    json::set(unbound, {"metadata", "finalizers"}, json::Array());
    put(std::string(kGroups) + "/g", unbound);
    remove(std::string(kGroups) + "/g");
  }
}

TEST_F(Gates, WhatIsInUseIsKeptWhenItsGateIsTurnedOff) {
  create(kGroups, group(kAll));
  create(kPods, pod("p", R"("schedulingGroup":{"podGroupName":"g"})"));
  start_with(without(model::Feature::kTopologyAwareWorkloadScheduling));
  EXPECT_EQ(patch(std::string(kGroups) + "/g", R"({"metadata":{"labels":{"a":"b"}}})")->status, 200);
  EXPECT_NE(json::find(read(std::string(kGroups) + "/g"), {"spec", "schedulingConstraints"}), nullptr);
  start_with(without(model::Feature::kGenericWorkload));
  EXPECT_EQ(get(kGroups)->status, 404);
  EXPECT_EQ(patch(std::string(kPods) + "/p", R"({"metadata":{"labels":{"a":"b"}}})")->status, 200);
  EXPECT_EQ(text(read(std::string(kPods) + "/p"), {"spec", "schedulingGroup", "podGroupName"}), "g");
  create(kPods, pod("q", R"("schedulingGroup":{"podGroupName":"g"})"));
  EXPECT_EQ(json::find(read(std::string(kPods) + "/q"), {"spec", "schedulingGroup"}), nullptr) << "a new one has nothing to keep";
  start_with(model::preferred_features());
  EXPECT_EQ(text(read(std::string(kGroups) + "/g"), {"spec", "disruptionMode"}), "PodGroup") << "all is as it was when it is on again";
}

TEST_F(Gates, ItsApiServiceComesAndGoesWithAVersion) {
  EXPECT_EQ(get(kService)->status, 200);
  start_with(without(model::Feature::kGenericWorkload));
  EXPECT_EQ(get(kService)->status, 404);
  EXPECT_EQ(get("/apis/apiregistration.k8s.io/v1/apiservices/v1.scheduling.k8s.io")->status, 200);
  start_with(model::preferred_features());
  EXPECT_EQ(get(kService)->status, 200);
}

TEST_F(Gates, AGangsJobKeepsItsParallelism) {
  create(kGroups, group(R"("schedulingPolicy":{"gang":{"minCount":2}})"));
  create(kJobs, job("named", R"("schedulingGroup":{"podGroupName":"g"},)"));
  const char* smaller = R"({"spec":{"parallelism":1,"completions":1}})";
  const auto refused = patch(std::string(kJobs) + "/named", smaller);
  EXPECT_STATUS(refused, 403, "Forbidden");
  EXPECT_NE(refused->body.find(R"(cannot change parallelism for a Job referencing gang-scheduled PodGroup \"g\")"), std::string::npos);
  EXPECT_EQ(patch(std::string(kJobs) + "/named", R"({"spec":{"suspend":true}})")->status, 200) << "all else may change";

  const std::string uid = text(create(kJobs, job("owner")), {"metadata", "uid"});
  EXPECT_EQ(patch(std::string(kJobs) + "/owner", smaller)->status, 200) << "no group is its own yet";
  EXPECT_EQ(patch(std::string(kJobs) + "/owner", R"({"spec":{"parallelism":2,"completions":2}})")->status, 200);
  create(kGroups,
         fmt::format(R"({{"apiVersion":"scheduling.k8s.io/v1alpha2","kind":"PodGroup","metadata":{{"name":"own","ownerReferences":[)"
                     R"({{"apiVersion":"batch/v1","kind":"Job","name":"owner","uid":"{}","controller":true}}]}},"spec":)"
                     R"({{"schedulingPolicy":{{"gang":{{"minCount":2}}}}}}}})",
                     uid));
  EXPECT_EQ(patch(std::string(kJobs) + "/owner", smaller)->status, 403);
  start_with(without(model::Feature::kGenericWorkload));
  EXPECT_EQ(patch(std::string(kJobs) + "/owner", smaller)->status, 200) << "with the gate off nobody asks";
}

TEST_F(Gates, ABasicGroupsJobMayChange) {
  create(kGroups, group(R"("schedulingPolicy":{"basic":{}})"));
  create(kJobs, job("named", R"("schedulingGroup":{"podGroupName":"g"},)"));
  EXPECT_EQ(patch(std::string(kJobs) + "/named", R"({"spec":{"parallelism":1,"completions":1}})")->status, 200);
}

TEST_F(Gates, DeviceTaintRulesAreThereWithTheirGate) {
  const std::string rules = "/apis/resource.k8s.io/v1beta2/devicetaintrules", one = rules + "/worn";
  start_with(model::preferred_features());
  const json::Value made = create(rules, R"({"apiVersion":"resource.k8s.io/v1beta2","kind":"DeviceTaintRule","metadata":{"name":"worn"},)"
                                         R"("spec":{"deviceSelector":{"driver":"d.example.com"},"taint":{"key":"k","effect":"None"}}})");
  const std::string added = text(made, {"spec", "taint", "timeAdded"});
  EXPECT_FALSE(added.empty()) << "since when a taint is there is told";
  loop_.run_for(std::chrono::seconds(90));
  EXPECT_EQ(patch(one, R"({"spec":{"deviceSelector":{"pool":"p"}}})")->status, 200);
  EXPECT_EQ(text(read(one), {"spec", "taint", "timeAdded"}), added);
  EXPECT_EQ(patch(one, R"({"spec":{"taint":{"effect":"NoExecute"}}})")->status, 200);
  EXPECT_NE(text(read(one), {"spec", "taint", "timeAdded"}), added) << "another effect begins anew";
  EXPECT_EQ(json::get_int(read(one), {"metadata", "generation"}), 3);
  start_with(without(model::Feature::kDRADeviceTaintRules));
  EXPECT_EQ(get(rules)->status, 404);
  EXPECT_EQ(get("/apis/resource.k8s.io/v1/resourceslices")->status, 200);
  start_with(without(model::Feature::kGenericWorkload));
  EXPECT_EQ(get(one)->status, 200) << "it needs no other gate";
}

}  // namespace
}  // namespace berth::apiserver::testing
