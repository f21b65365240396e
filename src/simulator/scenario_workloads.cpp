// Workloads of a scenario: from a few fields to the objects that a user would write.
#include <fmt/format.h>

#include "model/kinds.h"
#include "node/simulated/behaviour.h"
#include "simulator/scenario_parts.h"

namespace berth::simulator {
namespace {

constexpr std::array<std::string_view, 5> kUsageKeys = {"cpu", "memory", "disk", "inodes", "pids"};

json::Object to_object(const AmountTexts& texts) {
  json::Object out;
  for (const auto& [key, text] : texts) out[key] = text;
  return out;
}

/// Usage curves and the like become the annotations that simulated nodes read; what is wrong with them is said here.
void read_usage(const config::Reader& at, json::Object& annotations) {
  if (!at.is_present()) return;
  at.only(kUsageKeys);
  for (const auto& [key, value] : at.members()) {
    const auto texts = value.texts();
    if (texts.size() != 1) continue;
    if (const auto curve = node::simulated::UsageCurve::parse(texts[0]); !curve)
      value.problem(curve.error().message);
    else if ((key == "memory" || key == "disk") && texts[0].find_first_not_of("0123456789.") == std::string::npos && texts[0] != "0")
      value.problem(fmt::format("{} has no unit: write 512Mi or 4Gi", texts[0]));
    else
      annotations[fmt::format("{}{}", node::simulated::kAnnotationPrefix, key)] = texts[0];
  }
}

/// `pod:` as a pod template: metadata and spec.
json::Object read_pod(const config::Reader& at, const std::string& app) {
  json::Object labels{{"app", app}}, annotations, spec, resources;
  AmountTexts requests, limits;
  if (at.is_present()) {
    at.only({"cpu", "memory", "requests", "limits", "usage", "labels", "annotations", "priorityClassName", "nodeSelector", "tolerations",
             "spec", "startDelay", "readyAfter", "exitCode", "schedulerName"});
    read_amount_into(requests, at.field("cpu"), "cpu");
    read_amount_into(requests, at.field("memory"), "memory");
    for (const auto& [name, text] : read_amounts(at.field("requests"))) requests[name] = text;
    limits = read_amounts(at.field("limits"));
    for (const auto& [name, text] : read_texts(at.field("labels"))) labels[name] = text;
    for (const auto& [name, text] : read_texts(at.field("annotations"))) annotations[name] = text;
    read_usage(at.field("usage"), annotations);
    if (const auto delay = read_span(at.field("startDelay"))) annotations["sim.berth.dev/start-delay"] = format_go_duration(*delay);
    if (const auto delay = read_span(at.field("readyAfter"))) annotations["sim.berth.dev/ready-after"] = format_go_duration(*delay);
    if (at.has("exitCode")) annotations["sim.berth.dev/exit-code"] = std::to_string(at.integer("exitCode", 0));
    if (at.has("spec") && at.field("spec").expect_object()) {
      spec = at.field("spec").value()->get_object();
      at.field("spec").skip();
    }
    for (const char* name : {"priorityClassName", "schedulerName"})
      if (at.has(name)) spec[name] = at.string(name);
    if (at.has("nodeSelector")) spec["nodeSelector"] = to_object(read_texts(at.field("nodeSelector")));
    if (at.has("tolerations") && at.field("tolerations").value()->is_array()) spec["tolerations"] = *at.field("tolerations").value();
  }
  if (!requests.empty()) resources["requests"] = to_object(requests);
  if (!limits.empty()) {
    // Without a request the limit is the request, as the API server has it for every resource.
    resources["limits"] = to_object(limits);
  }
  if (!spec.contains("containers")) {
    json::Object container{{"name", "main"}, {"image", "app"}};
    if (!resources.empty()) container["resources"] = std::move(resources);
    spec["containers"] = json::Array{std::move(container)};
  } else if (!resources.empty()) {
    at.problem("spec", "gives the containers: cpu, memory, requests and limits belong to them");
  }
  if (!spec.contains("terminationGracePeriodSeconds")) spec["terminationGracePeriodSeconds"] = 5;
  return {{"metadata", json::Object{{"labels", std::move(labels)}, {"annotations", std::move(annotations)}}}, {"spec", std::move(spec)}};
}

json::Value make_budget(const config::Reader& at, const std::string& name) {
  at.only({"minAvailable", "maxUnavailable"});
  json::Object spec{{"selector", json::Object{{"matchLabels", json::Object{{"app", name}}}}}};
  if (at.has("minAvailable") == at.has("maxUnavailable")) at.problem("one of minAvailable and maxUnavailable is needed");
  for (const char* field : {"minAvailable", "maxUnavailable"})
    if (at.has(field)) spec[field] = *at.field(field).value();
  return json::Object{
      {"apiVersion", "policy/v1"}, {"kind", "PodDisruptionBudget"}, {"metadata", json::Object{{"name", name}}}, {"spec", std::move(spec)}};
}

json::Value make_hpa(const config::Reader& at, const std::string& name) {
  at.only({"min", "max", "cpu", "behavior"});
  const std::int64_t least = read_count(at, "min", 1), most = read_count(at, "max", 10);
  if (most < least || most == 0) at.problem("max", "must be at least min, and at least 1");
  const double share = read_share(at.field("cpu")).value_or(0.8);
  json::Object spec{
      {"scaleTargetRef", json::Object{{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"name", name}}},
      {"minReplicas", least},
      {"maxReplicas", most},
      {"metrics",
       json::Array{json::Object{
           {"type", "Resource"},
           {"resource", json::Object{{"name", "cpu"},
                                     {"target", json::Object{{"type", "Utilization"},
                                                             {"averageUtilization", static_cast<std::int64_t>(share * 100 + 0.5)}}}}}}}}};
  if (at.has("behavior")) spec["behavior"] = *at.field("behavior").value();
  return json::Object{{"apiVersion", "autoscaling/v2"},
                      {"kind", "HorizontalPodAutoscaler"},
                      {"metadata", json::Object{{"name", name}}},
                      {"spec", std::move(spec)}};
}

void make_deployment(const config::Reader& at, Workload& out, json::Object pod) {
  const config::Reader deployment = at.field("deployment");
  deployment.only({"replicas", "spec"});
  json::Object spec;
  if (deployment.has("spec") && deployment.field("spec").expect_object()) spec = deployment.field("spec").value()->get_object();
  spec["replicas"] = read_count(deployment, "replicas", 1);
  spec["selector"] = json::Object{{"matchLabels", json::Object{{"app", out.name}}}};
  spec["template"] = std::move(pod);
  out.kind = Workload::Kind::kDeployment;
  out.object = json::Object{{"apiVersion", "apps/v1"}, {"kind", "Deployment"}, {"metadata", json::Object{}}, {"spec", std::move(spec)}};
  if (at.has("budget")) out.objects.push_back(make_budget(at.field("budget"), out.name));
  if (at.has("hpa")) out.objects.push_back(make_hpa(at.field("hpa"), out.name));
  if (out.has_arrivals && !out.objects.empty()) at.problem("arrivals", "a Deployment with a budget or an HPA comes once");
  out.load = read_day(at.field("load"), [](const config::Reader& value) -> std::optional<double> {
    AmountTexts amounts;
    read_amount_into(amounts, value, "cpu");
    if (amounts.empty()) return std::nullopt;
    return model::Quantity::parse(amounts["cpu"])->as_double();
  });
}

void make_job(const config::Reader& at, Workload& out, json::Object pod) {
  const config::Reader job = at.field("job");
  job.only({"completions", "parallelism", "backoffLimit", "spec"});
  json::Object spec;
  if (job.has("spec") && job.field("spec").expect_object()) spec = job.field("spec").value()->get_object();
  for (const char* name : {"completions", "parallelism", "backoffLimit"})
    if (job.has(name)) spec[name] = read_count(job, name, 1);
  if (!spec.contains("parallelism") && spec.contains("completions")) spec["parallelism"] = spec["completions"];
  if (!spec.contains("ttlSecondsAfterFinished"))
    spec["ttlSecondsAfterFinished"] = std::chrono::duration_cast<std::chrono::seconds>(out.keep_finished).count();
  json::Object& pod_spec = pod["spec"].as_object();
  if (!pod_spec.contains("restartPolicy")) pod_spec["restartPolicy"] = "Never";
  spec["template"] = std::move(pod);
  out.kind = Workload::Kind::kJob;
  out.object = json::Object{{"apiVersion", "batch/v1"}, {"kind", "Job"}, {"metadata", json::Object{}}, {"spec", std::move(spec)}};
  if (!out.run_for) at.problem("runFor", "required of a job: how long its pods run");
}

void read_gang(const config::Reader& at, Workload& out) {
  if (!at.expect_object()) return;
  at.only({"size", "minCount", "topology", "disruptionMode", "queue", "patience"});
  GangSetting gang;
  gang.size = read_count(at, "size", 0);
  gang.min_count = read_count(at, "minCount", 0);
  if (!at.has("size") && out.trace.empty()) at.problem("size", "required: how many pods come together");
  if (at.has("size") && gang.size == 0) at.problem("size", "must be at least 1");
  if (gang.size > 0 && gang.min_count > gang.size) at.problem("minCount", "is more than size: the gang would never run");
  gang.topology = at.string("topology", "");
  constexpr std::array<std::string_view, 2> kModes = {"Pod", "PodGroup"};
  gang.goes_as_one = at.one_of("disruptionMode", kModes, "Pod") == "PodGroup";
  gang.queue = at.string("queue", "");
  gang.patience = read_span(at.field("patience")).value_or(gang.patience);
  if (!out.run_for && out.trace.empty()) at.problem("runFor of the workload is required: how long the gang works");
  out.gang = std::move(gang);
}

void make_pod(const config::Reader&, Workload& out, json::Object pod) {
  out.kind = Workload::Kind::kPod;
  json::Object& spec = pod["spec"].as_object();
  if (!spec.contains("restartPolicy") && (out.run_for || !out.trace.empty())) spec["restartPolicy"] = "Never";
  out.object = json::Object{{"apiVersion", "v1"}, {"kind", "Pod"}};
  out.object.as_object()["metadata"] = pod["metadata"];
  out.object.as_object()["spec"] = pod["spec"];
}

}  // namespace

Workload read_workload(const config::Reader& at, const PartContext& context) {
  Workload out;
  if (!at.expect_object()) return out;
  at.only({"name", "namespace", "pod", "deployment", "job", "manifests", "trace", "arrivals", "runFor", "keepFinished", "budget", "hpa",
           "load", "gang"});
  out.name = at.string("name");
  out.ns = at.string("namespace", "default");
  if (out.name.empty()) at.problem("name", "required");
  out.has_arrivals = at.has("arrivals");
  if (out.has_arrivals)
    out.arrivals = read_arrivals(at.field("arrivals"));
  else
    out.arrivals.times = {Duration(0)};
  note_what_never_comes(at.field("arrivals"), out.arrivals, context);
  out.run_for = read_lengths(at.field("runFor"));
  out.keep_finished = read_span(at.field("keepFinished")).value_or(out.keep_finished);
  if (at.has("trace")) {
    out.trace = read_trace(at.field("trace"), context);
    if (out.has_arrivals) at.problem("arrivals", "the trace says when they come");
  }
  if (at.has("manifests")) {
    for (const char* other : {"pod", "deployment", "job", "trace", "budget", "hpa", "load", "gang"})
      if (at.has(other)) at.problem(other, "not together with manifests, which say everything themselves");
    out.kind = Workload::Kind::kObjects;
    out.objects = read_objects(at.field("manifests"), context.directory);
    return out;
  }
  for (const char* name : {"budget", "hpa", "load"})
    if (at.has(name) && !at.has("deployment")) at.problem(name, "only of a deployment");
  if (at.has("deployment") + at.has("job") > 1) at.problem("one of deployment and job");
  if (!at.has("pod") && !at.has("trace") && !at.has("deployment") && !at.has("job"))
    at.problem("what comes? pod, deployment, job, trace or manifests");
  if (at.has("gang")) read_gang(at.field("gang"), out);
  if (out.gang && (at.has("deployment") || at.has("job"))) at.problem("gang", "is of bare pods: an Indexed Job is a gang by itself");
  json::Object pod = read_pod(at.field("pod"), out.name);
  if (at.has("deployment"))
    make_deployment(at, out, std::move(pod));
  else if (at.has("job"))
    make_job(at, out, std::move(pod));
  else
    make_pod(at, out, std::move(pod));
  return out;
}

}  // namespace berth::simulator
