#include "node/agent/pod_trace.h"

namespace berth::node::agent {

namespace tracing = net::tracing;

PodTrace::PodTrace(std::shared_ptr<tracing::Tracer> tracer, const json::Value& pod, const std::string& node_name)
    : tracer_(std::move(tracer)) {
  if (tracer_ == nullptr) return;
  const std::string_view phase = json::get_string(pod, {"status", "phase"});
  if (!phase.empty() && phase != "Pending") return;
  const std::string uid(json::get_string(pod, {"metadata", "uid"}));
  const auto way = tracer_->way_of(uid);
  if (!way || !way->is_sampled) return;
  span_ = tracer_->begin("Start pod", tracing::SpanKind::kInternal, way);
  span_->attributes = {{"k8s.namespace.name", std::string(json::get_string(pod, {"metadata", "namespace"}))},
                       {"k8s.pod.name", std::string(json::get_string(pod, {"metadata", "name"}))},
                       {"k8s.pod.uid", uid},
                       {"k8s.node.name", node_name}};
}

PodTrace::~PodTrace() {
  if (!span_) return;
  span_->error = "the pod went, or the agent ended, before it ran";
  tracer_->end(std::move(*span_));
}

PodTrace::Step PodTrace::step(std::string what, const char* key, std::string value) const {
  if (!span_) return {nullptr, std::nullopt};
  auto span = tracer_->begin(std::move(what), tracing::SpanKind::kClient, span_->context);
  if (key != nullptr) span.attributes.emplace_back(key, std::move(value));
  return {tracer_.get(), std::move(span)};
}

PodTrace::Step::~Step() {
  if (span_) tracer_->end(std::move(*span_));
}

void PodTrace::Step::fail(const std::string& why) {
  if (span_) span_->error = why;
}

void PodTrace::phase(std::string_view phase, std::string_view reason) {
  if (!span_ || phase.empty() || phase == "Pending") return;
  span_->attributes.emplace_back("k8s.pod.phase", std::string(phase));
  if (phase == "Failed") span_->error = reason.empty() ? "Failed" : std::string(reason);
  tracer_->end(std::move(*span_));
  span_.reset();
}

}  // namespace berth::node::agent
