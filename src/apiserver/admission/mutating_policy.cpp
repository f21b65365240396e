// MutatingAdmissionPolicy (apiserver/pkg/admission/plugin/policy/mutating): the cluster's own changes to what is written, in CEL.
//
//   policy ─> bindings ─> parameters ─> match conditions ─> mutations, one after the other, each on what the last one left
//
// A policy with reinvocationPolicy IfNeeded looks again, once, when somebody changed the object after it.
#include "apiserver/admission/equivalent_forms.h"
#include "apiserver/admission/plugins.h"
#include "apiserver/admission/policy_config.h"
#include "apiserver/admission/webhook_review.h"
#include "apiserver/apply/typed_merge.h"
#include "apiserver/cache/object_codec.h"
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
    if (applied.error().code == ErrorCode::kConflict) return {};
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
        forms_(context),
        namespaces_(context.mirror("", "namespaces")) {}
  [[nodiscard]] std::string_view name() const override { return "MutatingAdmissionPolicy"; }
  [[nodiscard]] bool handles(Operation) const override { return true; }

  [[nodiscard]] bool wants_whole(const AdmissionRequest& request) override { return source_.may_match(request); }
  bool add_circumstances(const AdmissionRequest& request, Circumstances& circumstances) override {
    return source_.add_circumstances(request, circumstances);
  }
  Admitted validate(const AdmissionRequest& request) override {
    if (request.kind->group != "admissionregistration.k8s.io" || !request.kind->kind.starts_with("MutatingAdmissionPolicy")) return {};
    return check_policy(request, context_.authorizer, source_.policies(), context_.kinds ? context_.kinds() : nullptr);
  }

  [[nodiscard]] bool may_wait() const override { return true; }
  void validate_async(const AdmissionRequest& request, AdmitDone done) override { done(validate(request)); }
  void mutate_async(AdmissionRequest& request, AdmitDone done) override {
    if (request.kind->group == "admissionregistration.k8s.io" && request.kind->kind.find("AdmissionPolicy") != std::string::npos)
      return done({});
    if (source_.empty() || !request.object.is_object()) return done({});
    request.notes.forms.clear();
    const auto walk = std::make_shared<Walk>();
    walk->request = &request;
    walk->done = std::move(done);
    walk->invocations = collect(request, walk->failures);
    if (request.notes.policy_pass) {
      walk->pass.is_second = true;
      walk->again = request.notes.policy_pass->invoked;
    }
    go_on(walk);
  }

  [[nodiscard]] bool wants_second_look(const AdmissionRequest& request) const override {
    const auto& pass = request.notes.policy_pass;
    return pass && !pass->is_second && !pass->invoked.empty() && (pass->is_stale || !json::equal(pass->output, request.object));
  }

 private:
  static std::string denied(const Policy& policy, const PolicyBinding& binding, std::string_view why) {
    return fmt::format("policy '{}' with binding '{}' denied request: {}", policy.name, binding.name, why);
  }

  std::vector<Invocation> collect(const AdmissionRequest& request, std::vector<PolicyFailure>& failures) {
    std::vector<Invocation> out;
    for (const auto& policy : *source_.current()) {
      const auto* form = match_resources(policy->matcher, request, namespaces_);
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

  /// One request on its way through its invocations, and each invocation's mutations.
  struct Walk {
    AdmissionRequest* request = nullptr;
    AdmitDone done;
    std::vector<Invocation> invocations;
    std::vector<std::string> again;  ///< Of a second pass: who looks again.
    std::vector<PolicyFailure> failures;
    Notes::PolicyPass pass;
    std::size_t unmoved = 0;  ///< Of those that want to look again, how many the object has not moved under.
    std::size_t invocation = 0, mutation = 0;
    bool has_changed = false;  ///< By the invocation so far.

    void fail(const Invocation& by, std::string_view why) {
      if (!by.policy->ignores_failure) failures.push_back({denied(*by.policy, *by.binding, why)});
    }
    void next(const Invocation& by) {
      if (has_changed) unmoved = 0;
      if (by.policy->reinvokes) {
        pass.invoked.push_back(by.key());
        ++unmoved;
      }
      skip();
    }
    void skip() {
      ++invocation;
      mutation = 0;
      has_changed = false;
    }
  };
  using WalkPtr = std::shared_ptr<Walk>;

  /// From the mutation that is next up to one that waits for a conversion webhook, or to the end.
  void go_on(const WalkPtr& walk) {
    auto& request = *walk->request;
    while (walk->invocation < walk->invocations.size()) {
      const auto& invocation = walk->invocations[walk->invocation];
      const bool looks = !walk->pass.is_second || std::ranges::find(walk->again, invocation.key()) != walk->again.end();
      if (!looks) {
        walk->skip();
      } else if (walk->mutation == invocation.policy->mutations.size()) {
        walk->next(invocation);
      } else if (!EquivalentForms::needs_webhook(request, *invocation.form)) {
        if (auto made = mutate_form(*walk, invocation)) take(*walk, invocation, convert_back(request, *invocation.form, std::move(*made)));
      } else {
        // Made anew where one before it changed the object.
        return forms_.prepare(request, {invocation.form}, [this, walk](Admitted ready) {
          if (!ready) return walk->done(std::move(ready));
          mutate_converted(walk);
        });
      }
    }
    auto& pass = walk->pass;
    pass.is_stale = walk->unmoved < pass.invoked.size();
    if (!pass.invoked.empty()) pass.output = request.object;
    if (!walk->invocations.empty()) request.notes.policy_pass = std::move(pass);
    walk->done(verdict(request, walk->failures));
  }

  /// One mutation of an object that a webhook made, and makes the request's version of again.
  void mutate_converted(const WalkPtr& walk) {
    auto& request = *walk->request;
    const auto& invocation = walk->invocations[walk->invocation];
    auto made = mutate_form(*walk, invocation);
    if (!made || json::equal(*made, request.notes.forms.at(invocation.form).object)) return go_on(walk);
    forms_.take_back(request, std::move(*made), [this, walk](model::ApiResult<Value> back) {
      if (!back) return walk->done(std::unexpected(std::move(back.error())));
      take(*walk, walk->invocations[walk->invocation], std::move(*back));
      go_on(walk);
    });
  }

  /// What the next mutation of the invocation makes of the object, in the policy's form; nothing where it fails or does not want to.
  std::optional<Value> mutate_form(Walk& walk, const Invocation& invocation) {
    const Policy& policy = *invocation.policy;
    auto& request = *walk.request;
    const bool is_namespace = model::hooks_of(*request.kind).life->is_namespace;
    const auto ns = request.ns.empty() || is_namespace ? nullptr : namespaces_.get("", request.ns);
    // Made anew for each: the object is what the one before left.
    AdmissionVariables variables(request, *invocation.form, context_.authorizer);
    variables.set_params(invocation.param.get());
    variables.set_namespace(ns);
    const auto composed = std::make_shared<PolicyVariables>(policy.variables, variables);
    if (walk.mutation == 0) {
      const auto matches = policy.conditions.evaluate(variables, policy.ignores_failure);
      if (!matches) walk.fail(invocation, matches.error());
      if (!matches || !*matches) {
        walk.skip();
        return std::nullopt;
      }
    }
    variables.set_variables(cel::Value::map(composed));
    auto made = mutate_once(policy.mutations[walk.mutation++], variables, *composed, *invocation.form, request);
    if (made) return std::move(*made);
    walk.fail(invocation, made.error());
    return std::nullopt;
  }

  static Expected<Value, std::string> mutate_once(const Mutation& mutation, const AdmissionVariables& variables,
                                                  const PolicyVariables& composed, const model::KindInfo& form,
                                                  const AdmissionRequest& request) {
    auto budget = kPolicyCostBudget;
    const auto result = run_expression(mutation.expression, variables, composed, budget);
    if (!result.value) return std::unexpected(result.error);
    auto object = !request.body ? in_form(request, form, request.object) : request.object;
    auto done = mutation.is_json_patch ? apply_operations(*result.value, object) : apply_configuration(*result.value, form, object);
    if (!done) return std::unexpected(done.error());
    if (!object.is_object()) return std::unexpected("JSON Patch: the patched object is not an object");
    return object;
  }

  static Value convert_back(const AdmissionRequest& request, const model::KindInfo& form, Value made) {
    if (&form != request.kind && !request.body) model::convert(form, *request.kind, made);
    return made;
  }

  /// The object is this from now on, in the version of the request.
  static void take(Walk& walk, const Invocation& invocation, Value object) {
    auto& request = *walk.request;
    if (!request.body) {
      model::DecodeReport report;
      if (auto decoded = model::decode(*request.kind, object, report); !decoded)
        return walk.fail(invocation, decoded.error().status(*request.kind).message);
      model::apply_defaults(*request.kind, object);
    }
    if (json::equal(object, request.object)) return;
    if (auto refused = refuse_large(object)) return walk.fail(invocation, refused->message);
    walk.has_changed = true;
    request.object = std::move(object);
    request.notes.forms.clear();
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
  EquivalentForms forms_;
  Mirror& namespaces_;
};

}  // namespace

PluginResult make_mutating_policy(const AdmissionContext& context) { return std::make_unique<MutatingPolicy>(context); }

}  // namespace berth::apiserver
