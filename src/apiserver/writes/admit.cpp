// Admission's part of a write: what plugins are told, and the two times that they are asked.
#include "apiserver/writes/steps.h"
#include "base/go/duration.h"

namespace berth::apiserver {
namespace {

/// What is the same of all that is asked about. Nothing is left of an attempt before.
AdmissionRequest& begin_asking(WriteOperation& operation, Operation verb) {
  auto& admission = operation.admission = AdmissionRequest();
  const auto& request = *operation.request;
  operation.granted.is_admitted = false;
  admission.operation = verb;
  admission.kind = operation.kind;
  admission.subresource = operation.subresource;
  admission.ns = operation.ns;
  admission.name = operation.name;
  admission.user = &request.user;
  admission.dry_run = operation.dry_run;
  admission.kinds = request.kinds;
  admission.body = operation.decoded.body;
  admission.caller.warnings = &operation.request->warnings;
  if (const auto patience = parse_duration_ns(request.query.get("timeout")); patience && *patience > 0)
    admission.caller.deadline = request.started + std::chrono::nanoseconds(*patience);
  admission.caller.traceparent = request.http.headers.get("traceparent");
  if (const auto trail = request.audit; trail != nullptr)
    admission.caller.annotate = [trail, &operation](std::string key, std::string value) {
      if (operation.draft != nullptr) operation.draft->annotations.emplace_back(key, value);
      trail->annotate(std::move(key), std::move(value));
    };
  return admission;
}

/// CreateOptions, UpdateOptions or PatchOptions of the request.
json::Value options_of(const WriteOperation& operation, Operation verb) {
  json::Object options{{"kind", operation.request->info.verb == "patch" ? "PatchOptions"
                                : verb == Operation::kCreate            ? "CreateOptions"
                                                                        : "UpdateOptions"},
                       {"apiVersion", "meta.k8s.io/v1"}};
  if (operation.request->field_manager_given) options["fieldManager"] = operation.request->field_manager;
  if (operation.dry_run) options["dryRun"] = json::Array{"All"};
  return options;
}

StepResult ask(const WritePtr& operation, WritePipeline& writes, bool mutating) {
  if (operation->granted.is_admitted) return Flow::kNext;
  auto answered = [&writes, operation, mutating](Admitted admitted) {
    if (!admitted) return operation->fail(std::move(admitted.error()));
    operation->granted.is_admitted = !mutating;
    run_steps(writes, operation);
  };
  if (mutating) {
    writes.admission->mutate(operation->admission, std::move(answered));
  } else {
    writes.admission->validate(operation->admission, std::move(answered));
  }
  return Flow::kWaits;
}

}  // namespace

namespace steps {

StepResult ask_of_creation(WritePipeline& writes, const WritePtr& operation) {
  auto& admission = begin_asking(*operation, Operation::kCreate);
  admission.options = options_of(*operation, Operation::kCreate);
  admission.object = std::move(operation->candidate.document);
  begin_draft(writes, *operation);
  return Flow::kNext;
}

StepResult ask_of_update(WritePipeline& writes, const WritePtr& operation) {
  auto& admission = begin_asking(*operation, Operation::kUpdate);
  admission.options = options_of(*operation, Operation::kUpdate);
  admission.object = std::move(operation->candidate.document);
  admission.old_object = std::move(operation->candidate.current);
  admission.present = Present{.object = operation->candidate.base, .is_rest_sent = operation->mode == WriteMode::kReplace};
  if (operation->candidate.part) admission.present->fill_in = [self = operation.get()] { self->fill_in(); };
  begin_draft(writes, *operation);
  return Flow::kNext;
}

StepResult ask_of_deletion(WritePipeline&, const WritePtr& operation) {
  // Whoever was faster changes nothing in what was asked.
  if (operation->granted.is_admitted) return Flow::kNext;
  auto& admission = begin_asking(*operation, Operation::kDelete);
  // Null from here on: an assignment would leave an empty object behind.
  admission.old_object = std::exchange(operation->candidate.current, nullptr);
  admission.options = operation->decoded.options;
  admission.present = Present{.object = operation->candidate.base};
  // In another version that a webhook makes, it is shown whole.
  if (const auto& request = *operation->request; !asks_converter(request))
    admission.present->fill_in = [self = operation.get(), &request] {
      self->admission.old_object = read_document(request, *self->admission.present->object);
    };
  return Flow::kNext;
}

StepResult ask_of_body(WritePipeline&, const WritePtr& operation) {
  auto& admission = begin_asking(*operation, Operation::kCreate);
  admission.options = options_of(*operation, Operation::kCreate);
  admission.object = std::move(operation->candidate.document);
  return Flow::kNext;
}

StepResult ask_of_session(WritePipeline&, const WritePtr& operation) {
  auto& admission = begin_asking(*operation, Operation::kConnect);
  admission.dry_run = false;  // No session is one.
  admission.object = operation->candidate.document;
  return Flow::kNext;
}

StepResult ask_nobody(WritePipeline&, const WritePtr& operation) {
  auto& admission = begin_asking(*operation, Operation::kUpdate);
  admission.object = std::move(operation->candidate.document);
  admission.old_object = std::move(operation->candidate.current);
  return Flow::kNext;
}

StepResult mutate(WritePipeline& writes, const WritePtr& operation) { return ask(operation, writes, true); }
StepResult judge(WritePipeline& writes, const WritePtr& operation) { return ask(operation, writes, false); }

}  // namespace steps
}  // namespace berth::apiserver
