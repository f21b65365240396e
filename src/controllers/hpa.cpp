// HorizontalPodAutoscaler (pkg/controller/podautoscaler/horizontal.go). Every period a step asks metrics.k8s.io for the samples of the
// target's pods; the step after the answer computes, writes the target's scale, then the status.
#include <fmt/format.h>

#include "controllers/common.h"
#include "controllers/custom_kinds.h"
#include "controllers/hpa_model.h"
#include "controllers/hpa_other_metrics.h"
#include "controllers/hpa_pods.h"
#include "controllers/selector_words.h"
#include "controllers/workloads.h"
#include "model/quantity.h"
#include "net/http.h"

namespace berth::controllers {
namespace {

using json::get_array;
using json::get_int;
using json::get_string;
using json::Value;

Kind pod_metrics_kind() {
  static const Kind kind = model::find_kind("metrics.k8s.io", "v1beta1", "PodMetrics");
  return kind;
}

std::int64_t milli_of(std::string_view quantity) { return model::Quantity::parse(quantity).value_or(model::Quantity()).milli_value(); }
std::string milli_text(std::int64_t milli) { return model::Quantity::from_milli(milli).to_string(); }

/// The workload that is scaled, as its scale subresource would show it.
struct Target {
  Kind kind = nullptr;
  ObjectRef object;
  std::int64_t replicas = 0;
  model::Selector selector;
};

/// What one metric says, or why it says nothing.
struct Answer {
  std::int64_t replicas = -1;
  std::string name, reason, error;  ///< Reason and error: of a metric that could not be read.
  json::Object status;              ///< Of status.currentMetrics.
};

/// Keys are "ns/name".
class HorizontalPodAutoscalerController final : public Controller {
 public:
  explicit HorizontalPodAutoscalerController(const HorizontalPodAutoscalerOptions& options) : options_(options) {}
  [[nodiscard]] std::string_view name() const override { return "horizontal-pod-autoscaler-controller"; }
  [[nodiscard]] std::string_view event_source() const override { return "horizontal-pod-autoscaler"; }
  [[nodiscard]] std::vector<Kind> watches() const override {
    return {kinds().horizontal_pod_autoscaler, kinds().pod, kinds().deployment, kinds().replica_set, kinds().stateful_set,
            kinds().replication_controller};
  }

  void on_event(const Event& event, const Cache&, TimePoint, KeySink& sink) override {
    if (event.kind != kinds().horizontal_pod_autoscaler) return;
    if (!event.after) {
      known_.erase(event.object().key());
      return;
    }
    // Its own writes of status are no reason to look again before the period is over.
    if (event.before && json::equal(*spec_of(*event.before->parsed()), *spec_of(*event.after->parsed()))) return;
    sink.add(event.object().key());
  }

  Plan reconcile(const std::string& key, TimePoint now, const Cache& cache) override {
    Plan plan;
    const auto [ns, name] = split_key(key);
    const ObjectRef object = cache.get(kinds().horizontal_pod_autoscaler, ns, name);
    if (!object || object->is_deleting()) return plan;
    const auto parsed = object->parsed();
    const Value& document = *parsed;
    Known& known = known_[key];
    if (known.rescale) return tell_rescale(*object, document, known, now);
    const std::optional<Target> target = find_target(document, ns, cache);
    const json::Array& metrics = get_array(document, {"spec", "metrics"});
    if (target && known.asked < metrics.size() && needs_samples(document, *target)) {
      ask_metrics(plan, known, metrics, ns, target->selector);
      plan.enqueue.push_back(key);
      return plan;
    }
    plan.requeue_after = options_.sync_period;
    Step step{plan, *object, document, json::get_object(document, {"status"}), get_array(document, {"status", "conditions"}), known, now};
    if (!target) {
      const std::string message = why_no_target(document, cache);
      warn(step, "FailedGetScale", message);
      set(step, "AbleToScale", "False", "FailedGetScale", "the HPA controller was unable to get the target's current scale: " + message);
    } else {
      set(step, "AbleToScale", "True", "SucceededGetScale", "the HPA controller was able to get the target's current scale");
      decide(step, *target, cache);
    }
    step.status["conditions"] = std::move(step.conditions);
    if (!step.status.contains("desiredReplicas")) step.status["desiredReplicas"] = 0;
    known.asked = 0;
    if (known.rescale) {
      known.rescale->status = std::move(step.status);
      plan.requeue_after = Duration{1};  // Once the target has answered.
      return plan;
    }
    if (auto write = patch_status(kinds().horizontal_pod_autoscaler, *object, document, step.status)) {
      write->stage = 1;
      plan.writes.push_back(std::move(*write));
    }
    return plan;
  }

  void on_result(const std::string& key, const Write& write, const ApiResult<Value>& result, TimePoint now) override {
    const auto it = known_.find(key);
    if (it == known_.end()) return;
    Known& known = it->second;
    if (!write.tag.empty()) {
      known.others[write.tag] = hpa::read_other_answer(write, result);
    } else if (write.verb == Write::Verb::kList) {
      known.measured = result ? hpa::measured_pods(*result) : std::vector<hpa::Measured>();
      known.error = result ? "" : result.error().message;
    } else if (write.subresource == "scale" && known.rescale) {
      if (result)
        hpa::record_change(known.rescale->spec, known.rescale->before, known.rescale->after, known.history, now);
      else
        known.rescale->refusal = result.error().message;
    }
  }

 private:
  /// A change of the target's size: its answer decides what the status says.
  struct Rescale {
    Value spec;  ///< The HPA's, when it decided.
    std::int64_t before = 0, after = 0;
    json::Object status;  ///< If it succeeds.
    std::string refusal;
  };
  struct Known {
    std::size_t asked = 0;  ///< Of spec.metrics, in this period.
    std::vector<hpa::Measured> measured;
    std::string error;
    std::map<std::string, hpa::RememberedPods> pods;  ///< By "resource/container".
    std::map<std::string, hpa::OtherAnswer> others;   ///< By the entry's place in spec.metrics.
    hpa::History history;
    std::optional<Rescale> rescale;  ///< Under way, or answered and not told yet.
  };
  struct Step {
    Plan& plan;
    const client::Object& object;
    const Value& document;
    json::Object status;
    json::Array conditions;
    Known& known;
    TimePoint now;
  };

  Plan tell_rescale(const client::Object& object, const Value& document, Known& known, TimePoint now) const {
    Plan plan;
    Rescale done = *std::exchange(known.rescale, std::nullopt);
    if (!done.refusal.empty()) {
      for (const char* field : {"lastScaleTime", "desiredReplicas"}) {
        const Value* before = json::find(document, {"status", field});
        if (before != nullptr)
          done.status[field] = *before;
        else
          done.status.erase(field);
      }
      if (!done.status.contains("desiredReplicas")) done.status["desiredReplicas"] = 0;
      set_condition(
          done.status["conditions"].as_array(),
          {"AbleToScale", "False", "FailedUpdateScale", "the HPA controller was unable to update the target scale: " + done.refusal}, now);
    }
    if (auto write = patch_status(kinds().horizontal_pod_autoscaler, object, document, done.status))
      plan.writes.push_back(std::move(*write));
    plan.requeue_after = options_.sync_period;
    // What was asked meanwhile does not wait for the period.
    if (!json::equal(done.spec, *spec_of(document))) plan.requeue_after = Duration{1};
    return plan;
  }

  static const Value* spec_of(const Value& document) {
    static const Value kNone;
    const Value* spec = json::find(document, "spec");
    return spec == nullptr ? &kNone : spec;
  }
  static std::string group_of(const Value& document) {
    const std::string_view version = get_string(document, {"spec", "scaleTargetRef", "apiVersion"});
    const std::size_t slash = version.find('/');
    return slash == std::string_view::npos ? std::string() : std::string(version.substr(0, slash));
  }
  static Kind target_kind(const Value& document, const Cache& cache) {
    return cache.find_reference(get_string(document, {"spec", "scaleTargetRef", "apiVersion"}),
                                get_string(document, {"spec", "scaleTargetRef", "kind"}));
  }
  /// What the scale client says of a target that it cannot get.
  static std::string why_no_target(const Value& document, const Cache& cache) {
    const Kind kind = target_kind(document, cache);
    if (kind == nullptr)
      return fmt::format("no matches for kind \"{}\" in group \"{}\"", get_string(document, {"spec", "scaleTargetRef", "kind"}),
                         group_of(document));
    if (!is_scalable(kind)) return "the server could not find the requested resource";
    return fmt::format("{}{}{} \"{}\" not found", kind->plural, kind->group.empty() ? "" : ".", kind->group,
                       get_string(document, {"spec", "scaleTargetRef", "name"}));
  }
  static bool is_scalable(Kind kind) { return std::ranges::find(kind->subresources, "scale") != kind->subresources.end(); }

  static void set(Step& step, const char* type, const char* status, std::string reason, std::string message) {
    set_condition(step.conditions, {type, status, std::move(reason), std::move(message)}, step.now);
  }
  static void warn(Step& step, std::string_view reason, std::string message) {
    step.plan.events.push_back(note_about(kinds().horizontal_pod_autoscaler, step.object, "Warning", reason, std::move(message)));
  }

  static std::optional<Target> find_target(const Value& document, const std::string& ns, const Cache& cache) {
    Target target;
    target.kind = target_kind(document, cache);
    if (target.kind == nullptr || !is_scalable(target.kind)) return std::nullopt;
    target.object = cache.get(target.kind, ns, get_string(document, {"spec", "scaleTargetRef", "name"}));
    if (!target.object) return std::nullopt;
    const auto workload_parsed = target.object->parsed();
    const Value& workload = *workload_parsed;
    if (const auto custom = read_custom_scale(target.kind, workload)) {
      target.replicas = custom->replicas;
      target.selector = custom->selector.empty() ? model::Selector::nothing()
                                                 : model::Selector::parse(custom->selector).value_or(model::Selector::nothing());
      return target;
    }
    target.replicas = get_int(workload, {"spec", "replicas"}, 1);
    target.selector = target.kind == kinds().replication_controller ? model::Selector::from_map(json::find(workload, {"spec", "selector"}))
                                                                    : label_selector_of(workload);
    return target;
  }

  /// Outside its bounds, or switched off by a target of zero, the count needs no measuring.
  static bool needs_samples(const Value& document, const Target& target) {
    const std::int64_t least = get_int(document, {"spec", "minReplicas"}, 1), most = get_int(document, {"spec", "maxReplicas"});
    if (target.replicas == 0 ? least != 0 : target.replicas > most || target.replicas < least) return false;
    return std::ranges::any_of(get_array(document, {"spec", "metrics"}), [](const Value& metric) {
      return get_string(metric, {"type"}).ends_with("Resource") || hpa::read_other_metric(metric).has_value();
    });
  }

  /// Asks for what each metric goes by: a plan of it at a time, since every question names the selector.
  static void ask_metrics(Plan& plan, Known& known, const json::Array& metrics, const std::string& ns, const model::Selector& selector) {
    const auto is_of_pods = [](const Value& metric) { return get_string(metric, {"type"}).ends_with("Resource"); };
    if (known.asked == 0) {
      known.others.clear();
      if (std::ranges::any_of(metrics, is_of_pods)) plan.writes.push_back(ask_samples(ns, selector));
    }
    const std::size_t length = selector.to_string().size();
    for (; known.asked < metrics.size() && !plan.is_full(); ++known.asked)
      if (const auto other = hpa::read_other_metric(metrics[known.asked]))
        plan.add(hpa::ask_other_metric(*other, ns, selector, std::to_string(known.asked)), length);
  }

  static Write ask_samples(const std::string& ns, const model::Selector& selector) {
    Write write;
    write.verb = Write::Verb::kList;
    write.kind = pod_metrics_kind();
    write.ns = ns;
    write.query = "labelSelector=" + net::percent_encode(selector.to_string());
    write.may_fail = true;
    return write;
  }

  void decide(Step& step, const Target& target, const Cache& cache) const {
    const Value& spec = *spec_of(step.document);
    const std::int64_t least = get_int(spec, {"minReplicas"}, 1), most = get_int(spec, {"maxReplicas"}), current = target.replicas;
    std::int64_t wanted = current;
    std::string reason;
    if (current == 0 && least != 0) {
      set(step, "ScalingActive", "False", "ScalingDisabled", "scaling is disabled since the replica count of the target is zero");
      wanted = 0;
    } else if (current > most) {
      wanted = most;
      reason = "Current number of replicas above Spec.MaxReplicas";
    } else if (current < least) {
      wanted = least;
      reason = "Current number of replicas below Spec.MinReplicas";
    } else {
      const std::optional<Answer> measured = measure(step, target, cache);
      if (!measured) {
        put_current(step, current);
        return;
      }
      const hpa::Limited limited = hpa::limit(spec, current, measured->replicas, step.known.history, options_, step.now);
      set(step, "AbleToScale", "True", limited.stable_reason, limited.stable_message);
      set(step, "ScalingLimited", limited.is_limited ? "True" : "False", limited.limit_reason, limited.limit_message);
      wanted = limited.replicas;
      if (measured->replicas > current)
        reason = fmt::format("{} above target", measured->name);
      else if (measured->replicas < current)
        reason = "All metrics below target";
    }
    if (wanted != current) scale(step, target, wanted, reason);
    put_current(step, current);
    step.status["desiredReplicas"] = wanted;
  }

  static void put_current(Step& step, std::int64_t current) {
    if (current != 0)
      step.status["currentReplicas"] = current;
    else
      step.status.erase("currentReplicas");
  }

  /// The HPAs whose targets' selectors select one of the target's pods, when there are several.
  static std::vector<std::string> rivals(const Step& step, const Target& target, const Cache& cache) {
    std::map<std::string, model::Selector> others;
    cache.for_each_in(kinds().horizontal_pod_autoscaler, step.object.ns(), [&](const ObjectRef& other) {
      if (other->name() == step.object.name() || other->is_deleting()) return;
      if (auto its = find_target(*other->parsed(), step.object.ns(), cache)) others.emplace(other->name(), std::move(its->selector));
    });
    std::set<std::string> found;
    if (!others.empty())
      cache.for_each_matching(step.object.ns(), target.selector, [&](const PodRef& pod) {
        for (const auto& [name, selector] : others)
          if (selector.matches(pod->labels())) found.insert(name);
      });
    if (found.empty()) return {};
    found.insert(step.object.name());
    std::vector<std::string> names;
    for (const std::string& name : found) names.push_back(step.object.ns() + "/" + name);
    return names;
  }

  static void scale(Step& step, const Target& target, std::int64_t wanted, const std::string& reason) {
    Write write = patch_object(target.kind, *target.object, json::Object{{"spec", json::Object{{"replicas", wanted}}}}, false);
    write.subresource = "scale";
    write.may_fail = true;  // The next period tries again, as after any other decision.
    write.on_success = note_about(kinds().horizontal_pod_autoscaler, step.object, "Normal", "SuccessfulRescale",
                                  fmt::format("New size: {}; reason: {}", wanted, reason));
    write.on_failure = note_about(kinds().horizontal_pod_autoscaler, step.object, "Warning", "FailedRescale",
                                  fmt::format("New size: {}; reason: {}; error: {{}}", wanted, reason));
    step.plan.writes.push_back(std::move(write));
    step.known.rescale = Rescale{*spec_of(step.document), target.replicas, wanted, {}, {}};
    set(step, "AbleToScale", "True", "SucceededRescale",
        fmt::format("the HPA controller was able to update the target scale to {}", wanted));
    step.status["lastScaleTime"] = format_rfc3339(step.now);
  }

  /// The largest of what the metrics ask for; nullopt when too few of them can be read to tell.
  std::optional<Answer> measure(Step& step, const Target& target, const Cache& cache) const {
    const json::Array& metrics = get_array(step.document, {"spec", "metrics"});
    Answer best;
    std::optional<Answer> first_invalid;
    std::size_t invalid = 0;
    json::Array statuses;
    if (const std::vector<std::string> names = rivals(step, target, cache); !names.empty()) {
      const std::string message =
          fmt::format("pods by selector {} are controlled by multiple HPAs: [{}]", target.selector.to_string(), fmt::join(names, " "));
      step.status["currentMetrics"] = nullptr;
      set(step, "ScalingActive", "False", "AmbiguousSelector", message);
      warn(step, "AmbiguousSelector", message);
      warn(step, "FailedComputeMetricsReplicas", message);
      return std::nullopt;
    }
    for (const Value& metric : metrics) {
      Answer answer = ask(step, metric, static_cast<std::size_t>(&metric - metrics.data()), target, cache);
      // What could not be read has its place all the same.
      statuses.emplace_back(answer.status.empty() ? json::Object{{"type", ""}} : answer.status);
      if (answer.replicas < 0) {
        ++invalid;
        warn(step, answer.reason, answer.error);
        if (!first_invalid) first_invalid = std::move(answer);
      } else if (answer.replicas > best.replicas) {
        best = std::move(answer);
      }
    }
    step.status["currentMetrics"] = statuses.empty() ? Value(nullptr) : Value(std::move(statuses));
    if (first_invalid && (invalid >= metrics.size() || best.replicas < target.replicas)) {
      set(step, "ScalingActive", "False", first_invalid->reason,
          "the HPA was unable to compute the replica count: " + first_invalid->error);
      warn(step, "FailedComputeMetricsReplicas",
           fmt::format("invalid metrics ({} invalid out of {}), first error is: {}{}", invalid, metrics.size(), first_invalid->name,
                       first_invalid->error));
      return std::nullopt;
    }
    set(step, "ScalingActive", "True", "ValidMetricFound",
        fmt::format("the HPA was able to successfully calculate a replica count from {}", best.name));
    return best;
  }

  Answer ask(const Step& step, const Value& metric, std::size_t place, const Target& target, const Cache& cache) const {
    const std::string type(get_string(metric, {"type"}));
    if (const auto other = hpa::read_other_metric(metric)) {
      const auto answered = step.known.others.find(std::to_string(place));
      return ask_other(step, *other, answered == step.known.others.end() ? hpa::OtherAnswer{{}, "no answer"} : answered->second, target,
                       cache);
    }
    return ask_resource(step, metric, type, target, cache);
  }

  /// What stands before the reason when a metric of another server cannot be read, and the reason's name.
  static void name_failure(Answer& answer, const Step& step, const hpa::OtherMetric& metric, const std::string& why) {
    const Value& source = *metric.source;
    switch (metric.type) {
      case hpa::OtherMetric::Type::kPods:
        answer.reason = "FailedGetPodsMetric";
        answer.name = "failed to get pods metric value: ";
        answer.error = fmt::format("unable to get metric {}: {}", metric.name, why);
        return;
      case hpa::OtherMetric::Type::kObject:
        answer.reason = "FailedGetObjectMetric";
        answer.name = "failed to get object metric value: ";
        if (metric.is_average) answer.name += fmt::format("failed to get {} object metric: ", metric.name);
        answer.error = fmt::format("unable to get metric {}: {} on {} {}/{}", metric.name, get_string(source, {"describedObject", "kind"}),
                                   step.object.ns(), get_string(source, {"describedObject", "name"}), why);
        return;
      case hpa::OtherMetric::Type::kExternal:
        answer.reason = "FailedGetExternalMetric";
        answer.name = fmt::format(
            "failed to get {} external metric value: failed to get {}: ", metric.name,
            metric.is_average ? fmt::format("{} external metric", metric.name) : fmt::format("external metric {}", metric.name));
        answer.error = fmt::format("unable to get external metric {}/{}/{}: {}", step.object.ns(), metric.name,
                                   selector_in_go_words(json::find(source, {"metric", "selector"})), why);
        return;
    }
  }

  Answer ask_other(const Step& step, const hpa::OtherMetric& metric, const hpa::OtherAnswer& said, const Target& target,
                   const Cache& cache) const {
    Answer answer;
    if (!said.error.empty()) {
      name_failure(answer, step, metric, said.error);
      return answer;
    }
    std::vector<hpa::Pod> pods;
    cache.for_each_matching(step.object.ns(), target.selector,
                            [&](const PodRef& pod) { pods.push_back(hpa::pod_facts(*pod, pod->object->document(), hpa::Wanted{})); });
    const hpa::Tolerance tolerance = tolerance_of(step.document);
    json::Object current;
    if (metric.type == hpa::OtherMetric::Type::kPods) {
      const hpa::Load load{.resource = "",
                           .pods = std::move(pods),
                           .samples = hpa::samples_of(said),
                           .target_utilization_percent = {},
                           .target_average_milli = metric.target_milli};
      const auto proposal = hpa::propose(load, target.replicas, tolerance, options_, step.now);
      if (!proposal) {
        name_failure(answer, step, metric, proposal.error().message);
        return answer;
      }
      answer.replicas = proposal->replicas;
      answer.name = "pods metric " + metric.name;
      current["averageValue"] = milli_text(proposal->average_milli);
    } else {
      const std::int64_t usage = hpa::sum_milli(said);
      const auto ready = std::ranges::count_if(pods, [](const hpa::Pod& pod) { return pod.is_ready && !pod.is_deleting; });
      const auto proposal = metric.is_average ? hpa::propose_for_share(usage, metric.target_milli, target.replicas, tolerance)
                                              : hpa::propose_for_value(usage, metric.target_milli, target.replicas, ready, tolerance);
      answer.replicas = proposal.replicas;
      answer.name = metric.type == hpa::OtherMetric::Type::kObject && !metric.is_average
                        ? fmt::format("{} metric {}", get_string(*metric.source, {"describedObject", "kind"}), metric.name)
                        : fmt::format("external metric {}({})", metric.name,
                                      selector_in_go_words(json::find(*metric.source, {"metric", "selector"})));
      if (metric.is_average)
        current["averageValue"] = milli_text(proposal.average_milli);
      else
        current["value"] = milli_text(proposal.value_milli);
    }
    json::Object shown;
    if (const Value* object = json::find(*metric.source, "describedObject")) shown["describedObject"] = *object;
    shown["metric"] = *json::find(*metric.source, "metric");
    shown["current"] = std::move(current);
    std::string type = metric.type == hpa::OtherMetric::Type::kPods     ? "Pods"
                       : metric.type == hpa::OtherMetric::Type::kObject ? "Object"
                                                                        : "External";
    answer.status = json::Object{{"type", std::move(type)}, {metric.field(), std::move(shown)}};
    return answer;
  }

  Answer ask_resource(const Step& step, const Value& metric, const std::string& type, const Target& target, const Cache& cache) const {
    const char* field = type == "Resource" ? "resource" : "containerResource";
    const Value* source = json::find(metric, field);
    static const Value kNone = json::Object();
    if (source == nullptr) source = &kNone;
    hpa::Wanted wanted{.type = type,
                       .resource = std::string(get_string(*source, {"name"})),
                       .container = std::string(get_string(*source, {"container"})),
                       .utilization_percent = {}};
    if (json::find(*source, {"target", "averageUtilization"}) != nullptr)
      wanted.utilization_percent = get_int(*source, {"target", "averageUtilization"});
    else
      wanted.average_milli = milli_of(get_string(*source, {"target", "averageValue"}));
    Answer answer;
    answer.reason = type == "Resource" ? "FailedGetResourceMetric" : "FailedGetContainerResourceMetric";
    const std::string what = fmt::format("failed to get {} {}: ", wanted.resource, wanted.utilization_percent ? "utilization" : "usage");
    answer.name = wanted.container.empty() ? fmt::format("failed to get {} resource metric value: ", wanted.resource)
                                           : fmt::format("failed to get {} container metric value: ", wanted.container);
    if (!step.known.error.empty() || step.known.measured.empty()) {
      answer.error = fmt::format("{}unable to get metrics for resource {}: {}", what, wanted.resource,
                                 step.known.error.empty() ? "no metrics returned from resource metrics API"
                                                          : "unable to fetch metrics from resource metrics API: " + step.known.error);
      return answer;
    }
    hpa::Load load{.resource = wanted.resource,
                   .pods = {},
                   .samples = {},
                   .target_utilization_percent = wanted.utilization_percent,
                   .target_average_milli = wanted.average_milli};
    load.pods = step.known.pods[wanted.resource + "/" + wanted.container].facts(cache, step.object.ns(), target.selector, wanted);
    load.samples.reserve(step.known.measured.size());
    for (const hpa::Measured& measured : step.known.measured)
      if (const auto sample = sample_of(measured, wanted)) load.samples.emplace(measured.pod, *sample);
    const auto proposal = hpa::propose(load, target.replicas, tolerance_of(step.document), options_, step.now);
    if (!proposal) {
      answer.error = what + proposal.error().message;
      return answer;
    }
    answer.replicas = proposal->replicas;
    answer.name = wanted.name();
    json::Object current{{"averageValue", milli_text(proposal->average_milli)}};
    if (wanted.utilization_percent) current["averageUtilization"] = proposal->utilization_percent;
    json::Object shown{{"name", wanted.resource}, {"current", std::move(current)}};
    if (!wanted.container.empty()) shown["container"] = wanted.container;
    answer.status = json::Object{{"type", type}, {field, std::move(shown)}};
    return answer;
  }

  hpa::Tolerance tolerance_of(const Value& document) const {
    hpa::Tolerance tolerance{options_.tolerance, options_.tolerance};
    if (const std::string_view down = get_string(document, {"spec", "behavior", "scaleDown", "tolerance"}); !down.empty())
      tolerance.down = static_cast<double>(milli_of(down)) / 1000;
    if (const std::string_view up = get_string(document, {"spec", "behavior", "scaleUp", "tolerance"}); !up.empty())
      tolerance.up = static_cast<double>(milli_of(up)) / 1000;
    return tolerance;
  }

  HorizontalPodAutoscalerOptions options_;
  std::map<std::string, Known> known_;
};

}  // namespace

ControllerPtr make_horizontal_pod_autoscaler_controller(const HorizontalPodAutoscalerOptions& options) {
  return std::make_unique<HorizontalPodAutoscalerController>(options);
}

}  // namespace berth::controllers
