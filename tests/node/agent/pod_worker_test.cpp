// One pod's life against a runtime in memory, with the clock in the test's hand.
#include "node/agent/pod_worker.h"

#include "node/agent/node_metrics.h"
#include "node/agent/node_stats.h"
#include "pod_worker_fixture.h"

namespace berth::node::agent {
namespace {

namespace fs = std::filesystem;
using testing::PodWorkerTest;

TEST_F(PodWorkerTest, APodRunsAndSaysSoInTheKubeletsWords) {
  start(pod("containers: [{name: c, image: 'app:1'}]"));
  ASSERT_TRUE(eventually_phase("Running"));
  EXPECT_TRUE(
      has_event("Normal Pulled Container image \"app:1\" already present on machine and can be accessed by the pod [spec.containers{c}]"));
  EXPECT_TRUE(has_event("Normal Created Container created [spec.containers{c}]"));
  EXPECT_TRUE(has_event("Normal Started Container started [spec.containers{c}]"));
  EXPECT_EQ(json::get_string(worker_->status(), {"podIP"}), "10.0.0.9");
  EXPECT_EQ(container_field(0, {"imageID"}), "sha256:app");
  EXPECT_TRUE(container_field(0, {"containerID"}).starts_with("containerd://container-"));
}

TEST_F(PodWorkerTest, ACrashLoopBacksOffFromTenSeconds) {
  start(pod("containers: [{name: c, image: 'app:1'}]"));
  ASSERT_TRUE(eventually_phase("Running"));
  runtime_.end("c", 1);
  worker_->wake();
  ASSERT_TRUE(eventually([&] { return runtime_.running("c") && runtime_.running("c")->attempt == 1; }))
      << "the first restart comes at once";
  runtime_.end("c", 1);
  worker_->wake();
  ASSERT_TRUE(eventually([&] { return container_field(0, {"state", "waiting", "reason"}) == "CrashLoopBackOff"; }));
  EXPECT_EQ(container_field(0, {"state", "waiting", "message"}), "back-off 10s restarting failed container=c pod=p_default(uid-1)");
  EXPECT_TRUE(has_event("Warning BackOff Back-off restarting failed container c in pod p_default(uid-1)"));
  pass(std::chrono::seconds(11));
  ASSERT_TRUE(eventually([&] { return runtime_.running("c") && runtime_.running("c")->attempt == 2; }));
  runtime_.end("c", 1);
  worker_->wake();
  ASSERT_TRUE(eventually([&] { return container_field(0, {"state", "waiting", "message"}).starts_with("back-off 20s"); }));
}

TEST_F(PodWorkerTest, AFailingPullShowsItsErrorThenItsBackOff) {
  start(pod("containers: [{name: c, image: 'none:1'}]"));
  ASSERT_TRUE(eventually([&] { return container_field(0, {"state", "waiting", "reason"}) == "ErrImagePull"; }));
  EXPECT_EQ(container_field(0, {"state", "waiting", "message"}), "rpc error: code = NotFound desc = no such image");
  EXPECT_TRUE(has_event("Warning Failed Error: ErrImagePull"));
  pass(std::chrono::seconds(4));
  ASSERT_TRUE(eventually([&] { return container_field(0, {"state", "waiting", "reason"}) == "ImagePullBackOff"; }));
  EXPECT_EQ(container_field(0, {"state", "waiting", "message"}),
            "Back-off pulling image \"none:1\": ErrImagePull: rpc error: code = NotFound desc = no such image");
  EXPECT_TRUE(has_event("Normal BackOff Back-off pulling image \"none:1\""));
  runtime_.pullable.insert("none:1");
  pass(std::chrono::seconds(7));
  ASSERT_TRUE(eventually_phase("Running"));
}

TEST_F(PodWorkerTest, AContainerWaitsForTheImageOfItsVolume) {
  start(
      pod("{volumes: [{name: v, image: {reference: 'data:1', pullPolicy: IfNotPresent}}, {name: w, image: {reference: 'other:1'}}],"
          " containers: [{name: c, image: 'app:1', volumeMounts: [{name: v, mountPath: /v}]}, {name: d, image: 'app:1'}]}"));
  ASSERT_TRUE(eventually([&] { return container_field(0, {"state", "waiting", "reason"}) == "ErrImagePull"; }));
  EXPECT_TRUE(has_event("Normal Pulling Pulling image \"data:1\""));
  ASSERT_TRUE(eventually([&] { return runtime_.running("d").has_value(); })) << "it does not see the volume";
  EXPECT_FALSE(has_event("Normal Pulling Pulling image \"other:1\"")) << "nobody sees it";
  pass(std::chrono::seconds(4));
  ASSERT_TRUE(eventually([&] { return container_field(0, {"state", "waiting", "reason"}) == "ImagePullBackOff"; }));
  EXPECT_TRUE(container_field(0, {"state", "waiting", "message"}).starts_with("Back-off pulling image \"data:1\": ErrImagePull: "));
  runtime_.pullable.insert("data:1");
  pass(std::chrono::seconds(7));
  ASSERT_TRUE(eventually([&] { return container_field(0, {"state", "waiting", "reason"}) == "CreateContainerError"; }));
  EXPECT_EQ(container_field(0, {"state", "waiting", "message"}), "ImageVolumeMountFailed: this node's container runtime mounts no images");
}

TEST_F(PodWorkerTest, AnImageVolumeThatMayNotBePulledIsMissed) {
  start(
      pod("{volumes: [{name: v, image: {reference: 'data:1', pullPolicy: Never}}],"
          " containers: [{name: c, image: 'app:1', volumeMounts: [{name: v, mountPath: /v}]}]}"));
  ASSERT_TRUE(eventually([&] { return container_field(0, {"state", "waiting", "reason"}) == "ErrImageNeverPull"; }));
}

TEST_F(PodWorkerTest, AnImageNameInUpperCaseIsInvalid) {
  start(pod("containers: [{name: c, image: 'App:1'}]"));
  ASSERT_TRUE(eventually([&] { return container_field(0, {"state", "waiting", "reason"}) == "InvalidImageName"; }));
}

TEST_F(PodWorkerTest, CredentialsOfPullSecretsGoToTheRuntime) {
  environment_->objects.secret = [](const std::string&, const std::string&) -> Result<json::Value> {
    return json::Object{
        {"data", json::Object{{".dockerconfigjson", encode_base64(R"({"auths":{"registry.example":{"username":"u","password":"w"}}})")}}}};
  };
  runtime_.pullable.insert("registry.example/app:2");
  start(pod("{imagePullSecrets: [{name: s}], containers: [{name: c, image: 'registry.example/app:2'}]}"));
  ASSERT_TRUE(eventually_phase("Running"));
  ASSERT_EQ(runtime_.pulls.size(), 1u);
  EXPECT_EQ(json::get_string(runtime_.pulls[0], {"auth", "username"}), "u");
}

TEST_F(PodWorkerTest, InitContainersAndSidecarsStartInOrder) {
  start(
      pod("{initContainers: [{name: one, image: 'app:1'}, {name: side, image: 'app:1', restartPolicy: Always}, {name: two, image: "
          "'app:1'}], containers: [{name: c, image: 'app:1'}]}"));
  ASSERT_TRUE(eventually([&] { return runtime_.running("one").has_value(); }));
  EXPECT_FALSE(runtime_.running("side"));
  runtime_.end("one", 0);
  worker_->wake();
  ASSERT_TRUE(eventually([&] { return runtime_.running("side") && runtime_.running("two"); }));
  EXPECT_FALSE(runtime_.running("c"));
  EXPECT_EQ(container_field(0, {"state", "waiting", "reason"}), "PodInitializing");
  runtime_.end("two", 0);
  worker_->wake();
  ASSERT_TRUE(eventually_phase("Running"));
  EXPECT_EQ(runtime_.started_names, (std::vector<std::string>{"one", "side", "two", "c"}));
}

TEST_F(PodWorkerTest, ASidecarStopsBeforeThePodIsSaidToHaveSucceeded) {
  start(
      pod("{restartPolicy: Never, initContainers: [{name: side, image: 'app:1', restartPolicy: Always}], containers: [{name: c, image: "
          "'app:1'}]}"));
  ASSERT_TRUE(eventually([&] { return runtime_.running("c").has_value(); }));
  runtime_.end("c", 0);
  worker_->wake();
  ASSERT_TRUE(eventually_phase("Succeeded"));
  EXPECT_FALSE(runtime_.running("side"));
}

TEST_F(PodWorkerTest, ADeletedPodLeavesNothing) {
  start(pod("containers: [{name: c, image: 'app:1'}]"));
  ASSERT_TRUE(eventually_phase("Running"));
  worker_->terminate(std::chrono::seconds(7));
  ASSERT_TRUE(eventually([&] { return worker_->is_finished(); }));
  EXPECT_TRUE(has_event("Normal Killing Stopping container c"));
  EXPECT_EQ(runtime_.stop_timeouts, std::vector<std::int64_t>{7});
  EXPECT_TRUE(runtime_.all().empty());
  EXPECT_EQ(runtime_.sandbox_count(), 0u);
  EXPECT_FALSE(fs::exists(worker_->directory()));
  EXPECT_FALSE(fs::exists(worker_->log_directory()));
}

TEST_F(PodWorkerTest, AShorterGraceCutsTheStoppingShort) {
  start(pod("containers: [{name: c, image: 'app:1'}]"));
  ASSERT_TRUE(eventually_phase("Running"));
  runtime_.ignores_stop_signals = true;
  worker_->terminate(std::chrono::seconds(3600));
  ASSERT_TRUE(eventually([&] { return runtime_.count("StopContainer") == 1; }));
  worker_->terminate(Duration::zero());
  ASSERT_TRUE(eventually([&] { return worker_->is_finished(); }));
  EXPECT_EQ(runtime_.stop_timeouts.back(), 0);
}

TEST_F(PodWorkerTest, AnotherAgentTakesRunningContainersOver) {
  const json::Value document = pod("containers: [{name: c, image: 'app:1'}]");
  start(document);
  ASSERT_TRUE(eventually_phase("Running"));
  const std::string id = runtime_.running("c")->id;
  worker_.reset();
  start(document);
  ASSERT_TRUE(eventually_phase("Running"));
  EXPECT_EQ(container_field(0, {"containerID"}), "containerd://" + id);
  EXPECT_EQ(runtime_.count("CreateContainer"), 1);
}

TEST_F(PodWorkerTest, ALostSandboxIsMadeAnew) {
  start(pod("containers: [{name: c, image: 'app:1'}]"));
  ASSERT_TRUE(eventually_phase("Running"));
  runtime_.lose_sandboxes();
  worker_->wake();
  ASSERT_TRUE(
      eventually([&] { return runtime_.count("RunPodSandbox") == 2 && runtime_.running("c") && runtime_.running("c")->attempt == 1; }));
  EXPECT_TRUE(has_event("Normal SandboxChanged Pod sandbox changed, it will be killed and re-created."));
}

TEST_F(PodWorkerTest, ADeadlineFailsThePod) {
  start(pod("{activeDeadlineSeconds: 60, containers: [{name: c, image: 'app:1'}]}"));
  ASSERT_TRUE(eventually_phase("Running"));
  pass(std::chrono::seconds(61));
  ASSERT_TRUE(eventually_phase("Failed"));
  EXPECT_EQ(json::get_string(worker_->status(), {"reason"}), "DeadlineExceeded");
  ASSERT_TRUE(eventually([&] { return worker_->is_stopped(); }));
}

TEST_F(PodWorkerTest, AFailingLivenessProbeRestarts) {
  runtime_.exec_exit_code = 1;
  start(pod("containers: [{name: c, image: 'app:1', livenessProbe: {exec: {command: [check]}, failureThreshold: 1, periodSeconds: 1}}]"));
  ASSERT_TRUE(eventually([&] { return has_event("Normal Killing Container c failed liveness probe, will be restarted"); }));
  EXPECT_TRUE(has_event("Warning Unhealthy Liveness probe failed: no"));
  ASSERT_TRUE(eventually([&] {
    const json::Value status = worker_->status();
    const json::Array& containers = json::get_array(status, {"containerStatuses"});
    return !containers.empty() && json::get_int(containers[0], {"restartCount"}) >= 1;
  }));
}

TEST_F(PodWorkerTest, AStartupProbeHoldsReadinessBack) {
  runtime_.exec_exit_code = 1;
  start(pod("containers: [{name: c, image: 'app:1', startupProbe: {exec: {command: [check]}, failureThreshold: 1000, periodSeconds: 1}}]"));
  ASSERT_TRUE(eventually([&] { return has_event("Startup probe failed"); }));
  EXPECT_FALSE(json::get_bool(json::get_array(worker_->status(), {"containerStatuses"})[0], {"ready"}));
  runtime_.exec_exit_code = 0;
  pass(std::chrono::seconds(2));
  ASSERT_TRUE(eventually([&] { return json::get_bool(json::get_array(worker_->status(), {"containerStatuses"})[0], {"ready"}); }));
}

TEST_F(PodWorkerTest, AChangedImageRestartsTheContainer) {
  runtime_.images.insert("app:2");
  start(pod("containers: [{name: c, image: 'app:1'}]"));
  ASSERT_TRUE(eventually_phase("Running"));
  worker_->update(pod("containers: [{name: c, image: 'app:2'}]"));
  ASSERT_TRUE(eventually([&] {
    return runtime_.running("c") && json::get_string(runtime_.running("c")->config, {"image", "image"}) == "sha256:app:2";
  }));
  EXPECT_TRUE(has_event("Normal Killing Container c definition changed, will be restarted"));
}

TEST_F(PodWorkerTest, AnEphemeralContainerJoinsARunningPod) {
  start(pod("containers: [{name: c, image: 'app:1'}]"));
  ASSERT_TRUE(eventually_phase("Running"));
  worker_->update(
      pod("{containers: [{name: c, image: 'app:1'}], ephemeralContainers: [{name: look, image: 'app:1', targetContainerName: c}]}"));
  ASSERT_TRUE(eventually([&] { return runtime_.running("look").has_value(); }));
  EXPECT_EQ(json::get_string(runtime_.running("look")->config, {"linux", "security_context", "namespace_options", "target_id"}),
            runtime_.running("c")->id);
  runtime_.end("look", 3);
  worker_->wake();
  ASSERT_TRUE(eventually([&] {
    return json::get_int(json::get_array(worker_->status(), {"ephemeralContainerStatuses"})[0], {"state", "terminated", "exitCode"}) == 3;
  }));
  EXPECT_EQ(json::get_string(worker_->status(), {"phase"}), "Running");
  EXPECT_EQ(std::ranges::count(runtime_.started_names, "look"), 1) << "it is never restarted";
}

TEST_F(PodWorkerTest, ResourcesChangeInPlace) {
  for (const char* file : {"memory.max", "cpu.weight", "cpu.max"}) {
    fs::create_directories(root_ + "/cgroup/kubepods/burstable/poduid-1");
    std::ofstream(root_ + "/cgroup/kubepods/burstable/poduid-1/" + file) << "max";
  }
  start(pod("containers: [{name: c, image: 'app:1', resources: {requests: {cpu: 100m}, limits: {memory: 64Mi}}}]"));
  ASSERT_TRUE(eventually_phase("Running"));
  worker_->update(pod("containers: [{name: c, image: 'app:1', resources: {requests: {cpu: 200m}, limits: {memory: 128Mi}}}]"));
  ASSERT_TRUE(eventually([&] { return container_field(0, {"resources", "limits", "memory"}) == "128Mi"; }));
  ASSERT_TRUE(eventually([&] { return runtime_.updates.size() == 1; }));
  EXPECT_EQ(json::get_string(runtime_.updates[0], {"linux", "memory_limit_in_bytes"}), std::to_string(128 << 20));
  EXPECT_EQ(runtime_.count("CreateContainer"), 1) << "nothing was restarted";
  EXPECT_TRUE(eventually([&] {
    std::string limit;
    std::ifstream(root_ + "/cgroup/kubepods/burstable/poduid-1/memory.max") >> limit;
    return limit == std::to_string(128 << 20);
  }));
}

/// A limit of the pod is a limit of every container that sets none: each of them is resized, and restarted where it wants that.
TEST_F(PodWorkerTest, ThePodsOwnResourcesChangeInPlace) {
  const auto with = [](const char* cpu, const char* memory) {
    return pod(fmt::format(
        "{{resources: {{requests: {{cpu: 100m, memory: 32Mi}}, limits: {{cpu: {}, memory: {}}}}}, initContainers: [{{name: i, image: "
        "'app:1', "
        "resources: {{requests: {{cpu: {}}}}}}}], containers: [{{name: own, image: 'app:1', resources: {{limits: {{cpu: 100m, memory: "
        "16Mi}}}}}}, {{name: none, image: 'app:1'}}, {{name: anew, image: 'app:1', resizePolicy: [{{resourceName: memory, restartPolicy: "
        "RestartContainer}}]}}]}}",
        cpu, memory, cpu));
  };
  start(with("500m", "64Mi"));
  ASSERT_TRUE(eventually([&] { return runtime_.running("i").has_value(); }));
  runtime_.end("i", 0);
  worker_->wake();
  ASSERT_TRUE(eventually([&] { return runtime_.running("anew").has_value(); }));
  const std::string none = runtime_.running("none")->id;
  worker_->update(with("800m", "64Mi"));
  ASSERT_TRUE(eventually([&] { return has_event("Normal ResizeCompleted"); }));
  EXPECT_EQ(runtime_.updates.size(), 2u) << "not of the one with limits of its own";
  EXPECT_EQ(json::get_string(runtime_.updates[0], {"container_id"}), none);
  EXPECT_EQ(json::get_string(runtime_.updates[0], {"linux", "cpu_quota"}), "80000");
  EXPECT_EQ(json::get_string(worker_->status(), {"resources", "limits", "cpu"}), "800m");
  EXPECT_EQ(json::serialize(worker_->status()).find("PodResize"), std::string::npos)
      << "also the init container that is over has what it asks for";
  worker_->update(with("800m", "128Mi"));
  ASSERT_TRUE(eventually([&] { return runtime_.running("anew") && runtime_.running("anew")->attempt == 1; }));
  EXPECT_TRUE(has_event("Container anew resize requires restart"));
  EXPECT_EQ(runtime_.running("none")->id, none) << "it goes on";
  EXPECT_EQ(json::get_string(runtime_.running("anew")->config, {"linux", "resources", "memory_limit_in_bytes"}), std::to_string(128 << 20));
  EXPECT_TRUE(eventually([&] {
    std::string limit;
    std::ifstream(root_ + "/cgroup/kubepods/burstable/poduid-1/memory.max") >> limit;
    return limit == std::to_string(128 << 20);
  }));
}

TEST_F(PodWorkerTest, AMissingConfigMapKeepsTheContainerWaiting) {
  start(pod("containers: [{name: c, image: 'app:1', env: [{name: A, valueFrom: {configMapKeyRef: {name: settings, key: a}}}]}]"));
  ASSERT_TRUE(eventually([&] { return container_field(0, {"state", "waiting", "reason"}) == "CreateContainerConfigError"; }));
  EXPECT_EQ(container_field(0, {"state", "waiting", "message"}), "configmap \"settings\" not found");
}

/// Others ask for the cgroup while the worker takes versions of the pod in that would be of another class today.
TEST_F(PodWorkerTest, TheCgroupStaysWhereItIsWhoeverAsksMeanwhile) {
  const auto asking = [](int cpu, bool has_limits) {
    const std::string amounts = fmt::format("{{cpu: {}m, memory: 64Mi}}", cpu);
    return pod(fmt::format("{{containers: [{{name: c, image: i, resources: {{requests: {}{}}}}}]}}", amounts,
                           has_limits ? fmt::format(", limits: {}", amounts) : ""));
  };
  PodWorker& worker = start(asking(100, false));
  std::atomic<bool> is_over{false};
  std::set<std::string> seen;
  std::thread asks([&] {
    while (!is_over) seen.insert(worker.cgroup());
  });
  for (int i = 0; i < 300; ++i) {
    worker.update(asking(200 + i, i % 2 == 0));
    EXPECT_TRUE(eventually([&] { return json::equal(worker.pod(), asking(200 + i, i % 2 == 0)); }));
  }
  is_over = true;
  asks.join();
  EXPECT_EQ(seen, std::set<std::string>{"/kubepods/burstable/poduid-1"});
}

TEST_F(PodWorkerTest, AResizeThatDoesNotFitWaitsAndSaysSo) {
  std::atomic<bool> fits = false;
  environment_->refuse_resize = [&](const json::Value&) -> std::optional<Refusal> {
    if (fits) return std::nullopt;
    return Refusal{"OutOfcpu", "Node didn't have enough resource: cpu, requested: 9000, used: 0, capacity: 2000"};
  };
  const auto condition = [&](std::string_view type) {
    const json::Value status = worker_->status();
    for (const json::Value& c : json::get_array(status, {"conditions"}))
      if (json::get_string(c, {"type"}) == type) return std::string(json::get_string(c, {"reason"}, "none"));
    return std::string("absent");
  };
  fs::create_directories(root_ + "/cgroup/kubepods/burstable/poduid-1");
  for (const char* file : {"memory.max", "cpu.weight", "cpu.max"})
    std::ofstream(root_ + "/cgroup/kubepods/burstable/poduid-1/" + file) << "max";
  start(pod("containers: [{name: c, image: 'app:1', resources: {requests: {cpu: 100m}}}]"));
  ASSERT_TRUE(eventually_phase("Running"));
  worker_->update(pod("containers: [{name: c, image: 'app:1', resources: {requests: {cpu: 9}}}]"));
  ASSERT_TRUE(eventually([&] { return condition("PodResizePending") == "Deferred"; }));
  EXPECT_TRUE(has_event("Warning ResizeDeferred Pod resize OutOfcpu: "));
  EXPECT_EQ(condition("PodResizeInProgress"), "absent");
  fits = true;
  pass(std::chrono::seconds(11));
  ASSERT_TRUE(eventually([&] { return condition("PodResizePending") == "absent"; }));
  ASSERT_TRUE(eventually([&] { return has_event("Normal ResizeCompleted Pod resize completed: "); }));
  EXPECT_TRUE(has_event("Normal ResizeStarted Pod resize started: "));
  EXPECT_EQ(condition("PodResizeInProgress"), "absent");
}

TEST_F(PodWorkerTest, AMissingVolumeIsAFailedMount) {
  start(
      pod("{volumes: [{name: v, configMap: {name: settings}}], containers: [{name: c, image: 'app:1', volumeMounts: [{name: v, "
          "mountPath: /v}]}]}"));
  ASSERT_TRUE(eventually(
      [&] { return has_event("Warning FailedMount MountVolume.SetUp failed for volume \"v\" : configmap \"settings\" not found"); }));
  EXPECT_EQ(runtime_.count("RunPodSandbox"), 0);
}

/// PodSecurity lets it be root because of the user namespace that it would not have.
TEST_F(PodWorkerTest, APodThatAsksForAUserNamespaceIsNotRunWithoutOne) {
  start(pod("{hostUsers: false, containers: [{name: c, image: 'app:1'}]}"));
  ASSERT_TRUE(eventually([&] {
    return has_event(
        "Warning FailedCreatePodSandBox Failed to create pod sandbox: spec.hostUsers is false, and this node's agent makes no user "
        "namespaces");
  }));
  EXPECT_EQ(runtime_.count("RunPodSandbox"), 0);
}

TEST_F(PodWorkerTest, AVolumeThatNoContainerMountsNeedNotBeThere) {
  start(pod("{volumes: [{name: v, configMap: {name: settings}}], containers: [{name: c, image: 'app:1'}]}"));
  ASSERT_TRUE(eventually_phase("Running"));
}

TEST_F(PodWorkerTest, ASubPathExpressionNeedsItsVariables) {
  start(
      pod("{volumes: [{name: v, emptyDir: {}}], containers: [{name: c, image: 'app:1', volumeMounts: [{name: v, mountPath: /v, "
          "subPathExpr: '$(B)/$(A)'}]}, {name: d, image: 'app:1', env: [{name: X, value: ..}], volumeMounts: [{name: v, mountPath: /v, "
          "subPathExpr: '$(X)/x'}]}]}"));
  ASSERT_TRUE(eventually([&] { return container_field(0, {"state", "waiting", "message"}) == "missing value for A, B"; }));
  EXPECT_EQ(container_field(0, {"state", "waiting", "reason"}), "CreateContainerConfigError");
  ASSERT_TRUE(eventually([&] {
    return container_field(1, {"state", "waiting", "message"}) == "unable to provision SubPath `../x`: must not contain '..'";
  }));
}

TEST_F(PodWorkerTest, AStatusTellsWhichGenerationItIsAboutAndWhatThePodMayUse) {
  json::Value document = pod(
      "{initContainers: [{name: i, image: 'app:1', resources: {requests: {cpu: 500m}}}], containers: [{name: z, image: 'app:1', resources: "
      "{requests: {cpu: 100m, memory: 1Mi}, limits: {memory: 2Mi}}, volumeMounts: [{name: v, mountPath: /v, readOnly: true}]}, {name: a, "
      "image: 'app:1'}], volumes: [{name: v, emptyDir: {}}]}");
  json::set(document, {"metadata", "generation"}, 3);
  start(std::move(document));
  ASSERT_TRUE(eventually([&] { return runtime_.running("i").has_value(); }));
  EXPECT_EQ(container_field(0, {"state", "waiting", "reason"}), "PodInitializing");
  runtime_.end("i", 0);
  worker_->wake();
  ASSERT_TRUE(eventually_phase("Running"));
  const json::Value status = worker_->status();
  EXPECT_EQ(json::get_int(status, {"observedGeneration"}), 3);
  std::vector<std::string> order;
  for (const json::Value& condition : json::get_array(status, {"conditions"})) {
    EXPECT_EQ(json::get_int(condition, {"observedGeneration"}), 3);
    order.emplace_back(json::get_string(condition, {"type"}));
  }
  EXPECT_EQ(order, (std::vector<std::string>{"PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"}));
  EXPECT_EQ(json::get_string(status, {"allocatedResources", "cpu"}), "500m");
  EXPECT_EQ(json::get_string(status, {"resources", "requests", "memory"}), "1Mi");
  EXPECT_EQ(json::get_string(status, {"resources", "limits", "memory"}), "2Mi");
  EXPECT_EQ(container_field(0, {"name"}), "a") << "by name, as the kubelet lists them";
  EXPECT_EQ(container_field(1, {"allocatedResources", "cpu"}), "100m");
  const json::Value& mount = json::get_array(json::get_array(status, {"containerStatuses"})[1], {"volumeMounts"})[0];
  EXPECT_EQ(json::serialize(mount), R"({"name":"v","mountPath":"/v","readOnly":true,"recursiveReadOnly":"Disabled"})");
}

TEST_F(PodWorkerTest, AContainersOwnRulesDecideWhetherItIsRestarted) {
  start(
      pod("{restartPolicy: Never, containers: [{name: c, image: 'app:1', restartPolicy: Never, restartPolicyRules: [{action: Restart, "
          "exitCodes: {operator: In, values: [42]}}]}]}"));
  ASSERT_TRUE(eventually_phase("Running"));
  runtime_.end("c", 42);
  worker_->wake();
  ASSERT_TRUE(eventually([&] { return runtime_.count("StartContainer") == 2; }));
  runtime_.end("c", 1);
  worker_->wake();
  ASSERT_TRUE(eventually_phase("Failed"));
}

TEST_F(PodWorkerTest, ARuleMayRestartAllContainers) {
  start(pod(
      "{restartPolicy: Never, initContainers: [{name: i, image: 'app:1'}], containers: [{name: c, image: 'app:1', restartPolicy: Never, "
      "restartPolicyRules: [{action: RestartAllContainers, exitCodes: {operator: In, values: [42]}}]}, {name: d, image: 'app:1'}]}"));
  ASSERT_TRUE(eventually([&] { return runtime_.running("i").has_value(); }));
  runtime_.end("i", 0);
  worker_->wake();
  ASSERT_TRUE(eventually([&] { return runtime_.running("c") && runtime_.running("d"); }));
  runtime_.end("c", 42);
  worker_->wake();
  ASSERT_TRUE(eventually([&] { return runtime_.running("i").has_value(); })) << "from the first init container on";
  EXPECT_FALSE(runtime_.running("d")) << "the others were stopped";
  runtime_.end("i", 0);
  worker_->wake();
  ASSERT_TRUE(eventually([&] { return runtime_.running("c") && runtime_.running("d"); }));
  ASSERT_TRUE(eventually_phase("Running"));
  EXPECT_EQ(json::get_int(json::get_array(worker_->status(), {"containerStatuses"})[1], {"restartCount"}), 1);
  EXPECT_NE(json::serialize(worker_->status()).find("AllContainersRestarting"), std::string::npos);
}

/// The main container's own policy lets it end for good: that it was stopped for the others' sake says nothing of how the pod came out.
TEST_F(PodWorkerTest, ASidecarMayRestartAllContainersTimeAndAgain) {
  start(
      pod("{restartPolicy: Never, initContainers: [{name: side, image: 'app:1', restartPolicy: Always, restartPolicyRules: [{action: "
          "RestartAllContainers, exitCodes: {operator: In, values: [42]}}]}, {name: i, image: 'app:1'}], containers: [{name: c, image: "
          "'app:1'}]}"));
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(eventually([&] { return runtime_.running("side") && runtime_.running("i"); })) << round;
    if (round > 0) {
      // The status follows what the runtime has done.
      EXPECT_TRUE(eventually([&] { return container_field(0, {"state", "waiting", "reason"}) == "RestartingAllContainers"; }));
      EXPECT_EQ(container_field(0, {"lastState", "terminated", "reason"}), "RestartingAllContainers");
    }
    runtime_.end("i", 0);
    worker_->wake();
    ASSERT_TRUE(eventually([&] { return runtime_.running("c").has_value(); })) << round;
    EXPECT_EQ(json::get_int(json::get_array(worker_->status(), {"initContainerStatuses"})[0], {"restartCount"}), round);
    ASSERT_TRUE(eventually_phase("Running"));
    ASSERT_TRUE(
        eventually([&] { return json::get_int(json::get_array(worker_->status(), {"containerStatuses"})[0], {"restartCount"}) == round; }));
    runtime_.end("side", 42);
    worker_->wake();
  }
}

/// An agent that ended in the middle: the next takes all down and starts anew.
TEST_F(PodWorkerTest, ARestartOfAllContainersGoesOnWithTheNextAgent) {
  json::Value document =
      pod("{restartPolicy: Never, containers: [{name: c, image: 'app:1', restartPolicyRules: [{action: RestartAllContainers, exitCodes: "
          "{operator: In, values: [42]}}]}, {name: d, image: 'app:1'}]}");
  document.as_object()["status"] =
      json::parse_yaml(
          "conditions: [{type: AllContainersRestarting, status: 'True'}]\ncontainerStatuses:\n"
          "- {name: c, restartCount: 0, containerID: 'containerd://x', state: {terminated: {exitCode: 42}}}\n"
          "- {name: d, restartCount: 0, containerID: 'containerd://y', state: {terminated: {exitCode: 137}}}\n")
          .value();
  start(std::move(document));
  ASSERT_TRUE(eventually([&] { return runtime_.running("c") && runtime_.running("d"); }));
  ASSERT_TRUE(
      eventually([&] { return json::get_int(json::get_array(worker_->status(), {"containerStatuses"})[1], {"restartCount"}) == 1; }));
}

TEST_F(PodWorkerTest, WhatAPodGoesThroughIsCounted) {
  NodeMetrics metrics;
  environment_->metrics = &metrics;
  json::Value document = pod(
      "{restartPolicy: Never, initContainers: [{name: i, image: 'app:1'}], containers: [{name: c, image: 'app:1', readinessProbe: {exec: "
      "{command: [x]}, periodSeconds: 1}}]}");
  json::set(document, {"metadata", "creationTimestamp"}, json::Value(format_rfc3339(clock_.now() - std::chrono::seconds(4))));
  start(std::move(document));
  ASSERT_TRUE(eventually([&] { return runtime_.running("i").has_value(); }));
  runtime_.end("i", 0);
  worker_->wake();
  ASSERT_TRUE(eventually_phase("Running"));
  const auto tells = [&](std::string_view line) { return metrics.expose().find(line) != std::string::npos; };
  const auto tells_probe = [&](std::string_view line) { return metrics.expose_probes().find(line) != std::string::npos; };
  EXPECT_TRUE(eventually([&] {
    return tells_probe(
        R"(prober_probe_total{container="c",namespace="default",pod="p",pod_uid="uid-1",probe_type="Readiness",result="successful"} )");
  }));
  EXPECT_TRUE(
      tells_probe(R"(prober_probe_duration_seconds_bucket{container="c",namespace="default",pod="p",probe_type="Readiness",le="+Inf"} )"));
  runtime_.end("c", 139);
  worker_->wake();
  ASSERT_TRUE(eventually_phase("Failed"));
  for (const char* line :
       {"kubelet_started_pods_total 1\n", R"(kubelet_started_containers_total{container_type="init_container"} 1)",
        R"(kubelet_started_containers_total{container_type="container"} 1)",
        R"(terminated_containers_total{container_type="init_container",exit_code="0"} 1)",
        R"(terminated_containers_total{container_type="container",exit_code="139"} 1)",
        R"(kubelet_pod_start_duration_seconds_bucket{le="4"} 1)", R"(kubelet_pod_start_duration_seconds_bucket{le="3"} 0)"})
    EXPECT_TRUE(tells(line)) << line << "\n" << metrics.expose();
  environment_->tasks.wait();
  worker_.reset();
  EXPECT_FALSE(tells_probe("uid-1")) << "a pod that has gone is forgotten";
}

TEST_F(PodWorkerTest, AProbeThatCannotBeMadeCountsForNothing) {
  runtime_.exec_error = "no such file";
  start(
      pod("containers: [{name: c, image: 'app:1', livenessProbe: {exec: {command: [nonsense]}, periodSeconds: 1, failureThreshold: 1}}]"));
  ASSERT_TRUE(eventually([&] {
    return has_event(
        "Warning Unhealthy Liveness probe errored and resulted in unknown state: rpc error: code = Unknown desc = no such file");
  }));
  EXPECT_FALSE(has_event("Killing"));
}

TEST_F(PodWorkerTest, AProbeThatIsLateHasFailedWhateverTheRuntimeCallsThat) {
  runtime_.exec_error = "a word of its own";
  runtime_.exec_is_late = true;
  start(pod("containers: [{name: c, image: 'app:1', livenessProbe: {exec: {command: [slow]}, periodSeconds: 1, failureThreshold: 1}}]"));
  ASSERT_TRUE(eventually([&] { return has_event("Killing"); }));
  EXPECT_TRUE(has_event("Warning Unhealthy Liveness probe failed: command timed out: \"slow\" timed out after 1s"));
}

TEST_F(PodWorkerTest, AContainerThatCannotBeStartedHasEndedOnceMore) {
  runtime_.start_error = "exec: nonsense: not found";
  start(pod("containers: [{name: c, image: 'app:1'}]"));
  ASSERT_TRUE(eventually([&] { return container_field(0, {"state", "waiting", "reason"}) == "RunContainerError"; }));
  EXPECT_EQ(container_field(0, {"lastState", "terminated", "reason"}), "StartError");
  pass(std::chrono::seconds(2));
  ASSERT_TRUE(eventually([&] { return runtime_.count("StartContainer") == 2; })) << "the first time again at once";
  pass(std::chrono::seconds(2));
  ASSERT_TRUE(eventually([&] { return container_field(0, {"state", "waiting", "reason"}) == "CrashLoopBackOff"; }));
  runtime_.allow_starts();
  pass(std::chrono::seconds(11));
  ASSERT_TRUE(eventually_phase("Running"));
}

TEST_F(PodWorkerTest, AFailedPostStartHookIsToldOf) {
  runtime_.exec_exit_code = 3;
  start(pod("containers: [{name: c, image: 'app:1', lifecycle: {postStart: {exec: {command: [sh, -c, 'exit 3']}}}}]"));
  ASSERT_TRUE(eventually([&] { return container_field(0, {"state", "waiting", "reason"}) == "PostStartHookError"; }));
  EXPECT_EQ(
      container_field(0, {"state", "waiting", "message"}),
      "Exec lifecycle hook ([sh -c exit 3]) for Container \"c\" in Pod \"p_default(uid-1)\" failed - error: command 'sh -c exit 3' exited "
      "with 3: no, message: \"no\"");
}

TEST_F(PodWorkerTest, AFailedPodSaysSoWhenItsContainersHaveEnded) {
  start(pod("containers: [{name: c, image: 'app:1'}]"));
  ASSERT_TRUE(eventually_phase("Running"));
  runtime_.ignores_stop_signals = true;
  worker_->fail_pod("Evicted", "The node was low on resource: memory.", std::chrono::seconds(3600), true);
  ASSERT_TRUE(eventually([&] {
    const json::Value status = worker_->status();
    return json::get_string(json::get_array(status, {"conditions"})[0], {"reason"}).empty() &&
           json::serialize(status).find("PodFailed") != std::string::npos;
  }));
  EXPECT_EQ(json::get_string(worker_->status(), {"phase"}), "Running");
  EXPECT_EQ(json::serialize(worker_->status()).find("DisruptionTarget"), std::string::npos);
  runtime_.ignores_stop_signals = false;
  ASSERT_TRUE(eventually_phase("Failed"));
  EXPECT_NE(json::serialize(worker_->status()).find("DisruptionTarget"), std::string::npos);
}

TEST_F(PodWorkerTest, AContainerThatNeverRanCountsAsFailedWhenItsPodIsDeleted) {
  start(pod("containers: [{name: c, image: 'app:1', env: [{name: A, valueFrom: {configMapKeyRef: {name: nope, key: k}}}]}]"));
  ASSERT_TRUE(eventually([&] { return container_field(0, {"state", "waiting", "reason"}) == "CreateContainerConfigError"; }));
  worker_->terminate(std::chrono::seconds(1));
  ASSERT_TRUE(eventually_phase("Failed"));
  EXPECT_EQ(container_field(0, {"state", "terminated", "reason"}), "ContainerStatusUnknown");
  EXPECT_EQ(container_field(0, {"state", "terminated", "finishedAt"}), "");
}

TEST_F(PodWorkerTest, WhatVolumesHoldIsMeasured) {
  start(
      pod("{volumes: [{name: first, emptyDir: {}}, {name: second, emptyDir: {}}], containers: [{name: c, image: 'app:1', volumeMounts: "
          "[{name: first, mountPath: /a}, {name: second, mountPath: /b}]}]}"));
  ASSERT_TRUE(eventually_phase("Running"));
  const std::string place = worker_->directory() + "/volumes/kubernetes.io~empty-dir/second/file";
  std::ofstream(place) << std::string(100'000, 'x');
  // The test owns the worker; measure_pods wants to share it.
  const std::shared_ptr<PodWorker> shared(worker_.get(), [](PodWorker*) {});
  const auto figures = measure_pods(runtime_, *cgroups_, {shared}, true, clock_.now());
  ASSERT_EQ(figures.size(), 1U);
  ASSERT_EQ(figures[0].usage.volumes.size(), 2U);
  EXPECT_EQ(figures[0].usage.volumes[1].name, "second");
  EXPECT_GE(figures[0].usage.volumes[1].fs.used_bytes.value_or(0), 100'000U);
}

TEST_F(PodWorkerTest, ARuntimeThatIsAwayChangesNothing) {
  start(pod("containers: [{name: c, image: 'app:1'}]"));
  ASSERT_TRUE(eventually_phase("Running"));
  runtime_.is_down = true;
  const int before = runtime_.count("ListPodSandbox");
  worker_->wake();
  ASSERT_TRUE(eventually([&] { return runtime_.count("ListPodSandbox") > before; }));
  EXPECT_EQ(json::get_string(worker_->status(), {"phase"}), "Running");
  EXPECT_FALSE(container_field(0, {"state", "running", "startedAt"}).empty());
}

TEST_F(PodWorkerTest, ARefusedPodFailsWithoutEverRunning) {
  worker_ = std::make_unique<PodWorker>(*environment_, pod("containers: [{name: c, image: 'app:1'}]"));
  worker_->reject_pod("OutOfcpu", "Pod was rejected: Node didn't have enough resource: cpu, requested: 2, used: 1, capacity: 2");
  worker_->start();
  ASSERT_TRUE(eventually_phase("Failed"));
  EXPECT_EQ(json::get_string(worker_->status(), {"reason"}), "OutOfcpu");
  EXPECT_FALSE(json::find(worker_->status(), "containerStatuses"));
  ASSERT_TRUE(eventually([&] { return worker_->is_stopped(); }));
  EXPECT_EQ(runtime_.count("RunPodSandbox"), 0);
}

}  // namespace
}  // namespace berth::node::agent
