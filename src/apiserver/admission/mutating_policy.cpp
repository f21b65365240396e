// MutatingAdmissionPolicy (apiserver/pkg/admission/plugin/policy/mutating): the cluster's own changes to what is written, in CEL.
//
//   policy ─> bindings ─> parameters ─> match conditions ─> mutations, one after the other, each on what the last one left
//
// A policy with reinvocationPolicy IfNeeded looks again, once, when somebody changed the object after it.
#include "apiserver/admission/plugins.h"
#include "apiserver/admission/policy_config.h"
#include "apiserver/apply/typed_merge.h"
#include "apiserver/patch/json_patch.h"
#include "cel/objects.h"
#include "model/kind_hooks.h"
#include "model/schema.h"

namespace berth::apiserver {
namespace {

using json::Value;

/// Why a policy could not do its part.
struct PolicyFailure {
  std::string message;
  bool is_configuration = false;
};

/// A policy with one binding and one parameter.
struct Invocation {
  std::shared_ptr<const Policy> policy;
  const PolicyBinding* binding = nullptr;
  const model::KindInfo* form = nullptr;
  Mirror::Document param;

  [[nodiscard]] std::string key() const {
    return fmt::format("{}\n{}\n{}\n{}", policy->name, binding->name,
                       param == nullptr ? std::string_view() : json::get_string(*param, {"metadata", "namespace"}),
                       param == nullptr ? std::string_view() : json::get_string(*param, {"metadata", "name"}));
  }
};

/// Paths of what is owned whole and would be replaced, though the author may mean to add to it.
void find_atomics(const Shape& shape, const Value& value, const std::string& path, std::string& out) {
  const auto report = [&] { out += (out.empty() ? "" : ", ") + path; };
  if (const auto* object = value.if_object()) {
    if (shape.is_known() && shape.is_atomic_object()) report();
    for (const auto& [key, member] : *object) {
      const std::string_view name(key.data(), key.size());
      if (path.empty() && name == "metadata") continue;
      find_atomics(shape.member(name), member, fmt::format("{}.{}", path, name), out);
    }
  } else if (const auto* list = value.if_array()) {
    if (shape.is_list() && shape.list() == Shape::List::kAtomic) report();
    const auto below = shape.element();
    for (std::size_t i = 0; i < list->size(); ++i) find_atomics(below, (*list)[i], fmt::format("{}[{}]", path, i), out);
  }
}

using Changed = Expected<void, std::string>;

Changed apply_configuration(const cel::Value& value, const model::KindInfo& form, Value& object) {
  if (const auto why = cel::misplaced_types(value, "Object"); !why.empty()) return std::unexpected("type mismatch: " + why);
  auto config = cel::to_json(value);
  if (!config) return std::unexpected(config.error().message);
  config->get_object()["apiVersion"] = form.api_version();
  config->get_object()["kind"] = form.kind;
  if (auto wrong = apply::check_typed(form, *config))
    return std::unexpected("error applying patch: failed to convert patch object to typed object: " + *wrong);
  const auto shape = Shape::of(form);
  std::string atomics;
  find_atomics(shape, *config, "", atomics);
  if (!atomics.empty())
    return std::unexpected("error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: " + atomics);
  apply::merge(shape, object, *config);
  return {};
}

Changed apply_operations(const cel::Value& value, Value& object) {
  json::Array document;
  for (std::size_t i = 0; i < value.as_list().size(); ++i) {
    const auto one = value.as_list().at(i);
    const auto* made = cel::made_object(one);
    if (made == nullptr) return std::unexpected("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch");
    json::Object operation;
    for (const char* field : {"op", "path", "from"})
      if (const auto* text = made->field(field); text != nullptr && (field[0] != 'f' || !text->text().empty()))
        operation[field] = std::string(text->text());
    if (const auto* given = made->field("value")) {
      if (const auto* inner = cel::made_object(*given))
        if (const auto why = cel::misplaced_types(*given, inner->type()); !why.empty()) return std::unexpected("type mismatch: " + why);
      auto converted = cel::to_json(*given);
      if (!converted)
        return std::unexpected("JSONPath valueExpression evaluated to a type that could not marshal to JSON: " + converted.error().message);
      operation["value"] = std::move(*converted);
    }
    document.push_back(std::move(operation));
  }
  const auto operations = patch::parse_json_patch(Value(std::move(document)));
  if (!operations) return std::unexpected("JSON Patch: " + operations.error().message);
  auto patched = object;
  if (auto applied = patch::apply_json_patch(patched, *operations); !applied) {
    // What a test does not find stays as it is.
    if (applied.error().message.find("testing value") != std::string::npos) return {};
    return std::unexpected("JSON Patch: " + applied.error().message);
  }
  object = std::move(patched);
  return {};
}

class MutatingPolicy final : public AdmissionPlugin {
 public:
  explicit MutatingPolicy(const AdmissionContext& context)
      : context_(context),
        source_(context, "mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
        namespaces_(context.mirror("", "namespaces")) {}
  [[nodiscard]] std::string_view name() const override { return "MutatingAdmissionPolicy"; }
  [[nodiscard]] bool handles(Operation) const override { return true; }

  [[nodiscard]] bool wants_whole(const AdmissionRequest&) override { return !source_.empty(); }
  /// None has anything to do with it.
  bool add_circumstances(const AdmissionRequest& request, Circumstances& circumstances) override {
    circumstances.add([this] { return source_.generation(); });
    circumstances.add([this] { return namespaces_.generation(); });
    if (source_.empty()) return true;
    return std::ranges::none_of(*source_.current(),
                                [&](const auto& policy) { return match_resources(policy->matcher, request, namespaces_) != nullptr; });
  }
  Admitted validate(const AdmissionRequest& request) override {
    if (request.kind->group != "admissionregistration.k8s.io" || !request.kind->kind.starts_with("MutatingAdmissionPolicy")) return {};
    return check_policy(request, context_.authorizer, source_.policies(), context_.kinds ? context_.kinds() : nullptr);
  }

  Admitted mutate(AdmissionRequest& request) override {
    if (request.kind->group == "admissionregistration.k8s.io" && request.kind->kind.find("AdmissionPolicy") != std::string::npos) return {};
    if (source_.empty() || !request.object.is_object()) return {};
    std::vector<PolicyFailure> failures;
    const auto invocations = collect(request, failures);
    const bool is_second = request.policy_pass.has_value();
    const auto again = is_second ? request.policy_pass->invoked : std::vector<std::string>();
    AdmissionRequest::PolicyPass pass;
    pass.is_second = is_second;
    std::size_t unmoved = 0;  // Of those that want to look again, how many the object has not moved under.
    for (const auto& invocation : invocations) {
      const auto key = invocation.key();
      if (is_second && std::ranges::find(again, key) == again.end()) continue;
      const bool looks_again = invocation.policy->reinvokes;
      bool is_invoked = true;
      if (invoke(invocation, request, failures, is_invoked)) unmoved = 0;
      if (!is_invoked || !looks_again) continue;
      pass.invoked.push_back(key);
      ++unmoved;
    }
    pass.is_stale = unmoved < pass.invoked.size();
    if (!pass.invoked.empty()) pass.output = request.object;
    if (!invocations.empty()) request.policy_pass = std::move(pass);
    return verdict(request, failures);
  }

  [[nodiscard]] bool wants_second_look(const AdmissionRequest& request) const override {
    const auto& pass = request.policy_pass;
    return pass && !pass->is_second && !pass->invoked.empty() && (pass->is_stale || !json::equal(pass->output, request.object));
  }

 private:
  static std::string denied(const Policy& policy, const PolicyBinding& binding, std::string_view why) {
    return fmt::format("policy '{}' with binding '{}' denied request: {}", policy.name, binding.name, why);
  }

  std::vector<Invocation> collect(const AdmissionRequest& request, std::vector<PolicyFailure>& failures) {
    std::vector<Invocation> out;
    for (const auto& policy : *source_.current()) {
      const auto* form = match_resources(policy->matcher, request, namespaces_, Converted::kWithoutWebhook);
      if (form == nullptr) continue;
      if (!policy->configuration_error.empty()) {
        if (!policy->ignores_failure)
          failures.push_back(
              {fmt::format("policy \"{}\" denied request: failed to configure policy: {}", policy->name, policy->configuration_error),
               true});
        continue;
      }
      for (const auto& binding : policy->bindings) {
        if (match_resources(binding.matcher, request, namespaces_) == nullptr) continue;
        auto params = collect_params(context_, *policy, binding, request);
        if (!params) {
          if (!policy->ignores_failure)
            failures.push_back({denied(*policy, binding, "failed to configure binding: " + params.error()), true});
          continue;
        }
        for (auto& param : *params) out.push_back({policy, &binding, form, std::move(param)});
      }
    }
    return out;
  }

  /// Whether the object is another now.
  bool invoke(const Invocation& invocation, AdmissionRequest& request, std::vector<PolicyFailure>& failures, bool& is_invoked) {
    const Policy& policy = *invocation.policy;
    const auto fail = [&](std::string_view why) {
      if (!policy.ignores_failure) failures.push_back({denied(policy, *invocation.binding, why)});
    };
    const bool is_namespace = model::hooks_of(*request.kind).life->is_namespace;
    const auto ns = request.ns.empty() || is_namespace ? nullptr : namespaces_.get("", request.ns);
    bool has_changed = false;
    for (std::size_t i = 0; i < policy.mutations.size(); ++i) {
      // Made anew for each: the object is what the one before left.
      AdmissionVariables variables(request, *invocation.form, context_.authorizer);
      variables.set_params(invocation.param.get());
      variables.set_namespace(ns);
      const auto composed = std::make_shared<PolicyVariables>(policy.variables, variables);
      if (i == 0) {
        const auto matches = policy.conditions.evaluate(variables, policy.ignores_failure);
        if (!matches) fail(matches.error());
        is_invoked = matches && *matches;
        if (!is_invoked) return false;
      }
      variables.set_variables(cel::Value::map(composed));
      auto changed = mutate_once(policy.mutations[i], variables, *composed, *invocation.form, request);
      if (!changed)
        fail(changed.error());
      else
        has_changed |= *changed;
    }
    return has_changed;
  }

  static Expected<bool, std::string> mutate_once(const Mutation& mutation, const AdmissionVariables& variables,
                                                 const PolicyVariables& composed, const model::KindInfo& form, AdmissionRequest& request) {
    auto budget = kPolicyCostBudget;
    const auto result = run_expression(mutation.expression, variables, composed, budget);
    if (!result.value) return std::unexpected(result.error);
    auto object = request.object;
    const bool converts = &form != request.kind && request.object_kind.empty();
    if (converts) model::convert(*request.kind, form, object);
    auto done = mutation.is_json_patch ? apply_operations(*result.value, object) : apply_configuration(*result.value, form, object);
    if (!done) return std::unexpected(done.error());
    if (converts) model::convert(form, *request.kind, object);
    if (!object.is_object()) return std::unexpected("JSON Patch: the patched object is not an object");
    if (request.object_kind.empty()) {
      model::DecodeReport report;
      if (auto decoded = model::decode(*request.kind, object, report); !decoded) return std::unexpected(decoded.error().message);
      model::apply_defaults(*request.kind, object);
    }
    const bool changed = !json::equal(object, request.object);
    request.object = std::move(object);
    return changed;
  }

  static Admitted verdict(const AdmissionRequest& request, const std::vector<PolicyFailure>& failures) {
    if (failures.empty()) return {};
    auto status = request.forbidden("admission request denied by policy");
    status.message = failures.front().message;
    if (!failures.front().is_configuration) status.reason = "Invalid";
    for (const auto& failure : failures) status.causes.push_back({"", failure.message, ""});
    return std::unexpected(std::move(status));
  }

  const AdmissionContext& context_;
  PolicySource source_;
  Mirror& namespaces_;
};

}  // namespace

PluginResult make_mutating_policy(const AdmissionContext& context) { return std::make_unique<MutatingPolicy>(context); }

}  // namespace berth::apiserver
