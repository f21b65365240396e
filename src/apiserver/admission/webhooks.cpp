// MutatingAdmissionWebhook and ValidatingAdmissionWebhook (SPEC A7; apiserver/pkg/admission/plugin/webhook).
#include "apiserver/admission/equivalent_forms.h"
#include "apiserver/admission/plugins.h"
#include "apiserver/admission/webhook_review.h"
#include "apiserver/cache/object_codec.h"
#include "apiserver/patch/json_patch.h"
#include "base/mutex.h"
#include "model/schema.h"

namespace berth::apiserver {
namespace {

using WebhookList = std::vector<std::shared_ptr<const Webhook>>;

/// The compiled configurations of one kind, made anew after each change.
class WebhookSource {
 public:
  WebhookSource(const AdmissionContext& context, std::string_view plural)
      : configurations_(context.mirror("admissionregistration.k8s.io", plural)),
        namespaces_(context.mirror("", "namespaces")),
        authorizer_(context.authorizer) {}

  struct Match {
    std::shared_ptr<const Webhook> webhook;
    const model::KindInfo* form = nullptr;
  };
  /// Whether any webhook may be called, whatever its match conditions say. Metadata is all that it looks at.
  bool may_match(const AdmissionRequest& request) {
    if (configurations_.empty()) return false;
    return std::ranges::any_of(*current(), [&](const auto& webhook) { return match_resources(*webhook, request, namespaces_) != nullptr; });
  }
  /// As AdmissionPlugin's: where none may be called.
  bool add_circumstances(const AdmissionRequest& request, Circumstances& circumstances) {
    circumstances.add([this] { return configurations_.generation(); });
    circumstances.add([this] { return namespaces_.generation(); });
    return configurations_.empty() ||
           std::ranges::none_of(*current(), [&](const auto& webhook) { return may_want_alike(*webhook, request, namespaces_); });
  }
  /// The webhooks whose rules and selectors want the request.
  std::vector<Match> wanting(const AdmissionRequest& request) {
    std::vector<Match> out;
    if (configurations_.empty()) return out;
    // Nobody may lock himself out of the configuration of webhooks and policies.
    if (request.kind->group == "admissionregistration.k8s.io") return out;
    for (const auto& webhook : *current())
      if (const auto* form = match_resources(*webhook, request, namespaces_)) out.push_back({webhook, form});
    return out;
  }
  /// Those of them that are to be called; the error: match conditions that fail where failure means refusal. The forms are there.
  model::ApiResult<std::vector<Match>> matching(const AdmissionRequest& request, std::vector<Match> wanting) {
    std::vector<Match> out;
    for (auto& match : wanting) {
      if (!match.webhook->conditions.empty()) {
        const AdmissionVariables variables(request, *match.form, authorizer_);
        const auto met = match.webhook->conditions.evaluate(variables, match.webhook->ignores_failure);
        if (!met) return std::unexpected(request.forbidden(met.error()));
        if (!*met) continue;
      }
      out.push_back(std::move(match));
    }
    return out;
  }

 private:
  std::shared_ptr<const WebhookList> current() {
    const MutexLock lock(mutex_);
    const auto generation = configurations_.generation();
    if (compiled_ == nullptr || generation != compiled_generation_) {
      compiled_ = std::make_shared<const WebhookList>(compile_webhooks(configurations_.list()));
      compiled_generation_ = generation;
    }
    return compiled_;
  }
  Mirror& configurations_;
  Mirror& namespaces_;
  Authorizer& authorizer_;
  Mutex mutex_;
  std::shared_ptr<const WebhookList> compiled_ BERTH_GUARDED_BY(mutex_);
  std::uint64_t compiled_generation_ BERTH_GUARDED_BY(mutex_) = 0;
};

/// Of one request's matches.
std::vector<const model::KindInfo*> forms_of(const std::vector<WebhookSource::Match>& matches) {
  std::vector<const model::KindInfo*> out;
  for (const auto& match : matches) out.push_back(match.form);
  return out;
}

model::ApiStatus call_failed(const Webhook& webhook, const std::string& why) {
  return model::internal_error(fmt::format("failed calling webhook \"{}\": {}", webhook.name, why));
}

std::optional<model::ApiStatus> check_dry_run(const Webhook& webhook, const AdmissionRequest& request) {
  if (!request.dry_run || webhook.allows_dry_run) return std::nullopt;
  return model::bad_request(fmt::format("admission webhook \"{}\" does not support dry run", webhook.name));
}

/// The webhooks that want the request, each with the form of it that it named, made anew since the object may have changed; `done` is told
/// at once where there is none or a form cannot be had.
void when_matched(WebhookSource& source, EquivalentForms& forms, const AdmissionRequest& request, AdmitDone done,
                  std::function<void(std::vector<WebhookSource::Match>, AdmitDone)> matched) {
  request.notes.forms.clear();
  auto wanting = source.wanting(request);
  if (wanting.empty()) return done({});
  auto wanted = forms_of(wanting);
  forms.prepare(
      request, std::move(wanted),
      [&source, &request, wanting = std::move(wanting), done = std::move(done), matched = std::move(matched)](Admitted ready) mutable {
        if (!ready) return done(std::move(ready));
        auto matches = source.matching(request, std::move(wanting));
        if (!matches) return done(std::unexpected(std::move(matches.error())));
        matched(std::move(*matches), std::move(done));
      });
}

/// What both have.
class WebhookPlugin : public AdmissionPlugin {
 public:
  WebhookPlugin(const AdmissionContext& context, std::string_view configurations)
      : source_(context, configurations),
        client_(context.cache, context.webhook_client),
        uid_(context.uid),
        forms_(context),
        offload_(context.offload) {}
  [[nodiscard]] bool handles(Operation) const final { return true; }
  [[nodiscard]] bool may_wait() const final { return true; }
  [[nodiscard]] bool wants_whole(const AdmissionRequest& request) final { return source_.may_match(request); }
  bool add_circumstances(const AdmissionRequest& request, Circumstances& circumstances) final {
    return source_.add_circumstances(request, circumstances);
  }

 protected:
  WebhookSource source_;
  WebhookClient client_;
  std::function<std::string()> uid_;
  EquivalentForms forms_;
  std::function<void(Task)> offload_;
};

class MutatingWebhook final : public WebhookPlugin {
 public:
  explicit MutatingWebhook(const AdmissionContext& context) : WebhookPlugin(context, "mutatingwebhookconfigurations") {}
  [[nodiscard]] std::string_view name() const override { return "MutatingAdmissionWebhook"; }

  void mutate_async(AdmissionRequest& request, AdmitDone done) override {
    when_matched(source_, forms_, request, std::move(done), [this, &request](std::vector<WebhookSource::Match> matches, AdmitDone done) {
      auto round = std::make_shared<Round>();
      round->matches = std::move(matches);
      round->request = &request;
      round->done = std::move(done);
      step(round);
    });
  }

 private:
  struct Round {
    std::vector<WebhookSource::Match> matches;
    std::vector<std::size_t> changed_after;  ///< Per call made: how many changes there had been when it returned.
    std::size_t next = 0, changes = 0;
    bool is_second = false;
    AdmissionRequest* request = nullptr;
    AdmitDone done;
  };

  void step(const std::shared_ptr<Round>& round) {
    if (round->next == round->matches.size()) {
      if (round->is_second || !start_second_round(*round)) return round->done({});
      return step(round);
    }
    const auto match = round->matches[round->next];
    if (auto refused = check_dry_run(*match.webhook, *round->request)) return round->done(std::unexpected(std::move(*refused)));
    // Made anew where one before it changed the object.
    forms_.prepare(*round->request, {match.form}, [this, round, match](Admitted ready) {
      if (!ready) return round->done(std::move(ready));
      call_webhook(client_, *match.webhook, *round->request, *match.form, uid_(), [this, round, match](WebhookAnswer answer) {
        offload_([this, round, match, answer = std::move(answer)]() mutable { take(round, match, std::move(answer)); });
      });
    });
  }

  void take(const std::shared_ptr<Round>& round, const WebhookSource::Match& match, WebhookAnswer answer) {
    auto& request = *round->request;
    if (request.caller.warnings != nullptr)
      for (auto& warning : answer.warnings) request.caller.warnings->push_back(std::move(warning));
    if (answer.failure.empty() && !answer.allowed) return round->done(std::unexpected(std::move(answer.refusal)));
    if (!answer.failure.empty() || answer.patch.is_null() || !request.object.is_object()) return go_on(round, match, answer.failure);
    auto patched = apply(request, *match.form, answer.patch);
    if (!patched) return go_on(round, match, patched.error());
    if (auto refused = refuse_large(*patched)) return round->done(std::unexpected(std::move(*refused)));
    if (!EquivalentForms::needs_webhook(request, *match.form)) return go_on(round, match, settle(*round, std::move(*patched)));
    if (json::equal(*patched, request.notes.forms.at(match.form).object)) return go_on(round, match, {});
    forms_.take_back(request, std::move(*patched), [this, round, match](model::ApiResult<json::Value> back) {
      if (!back) return round->done(std::unexpected(std::move(back.error())));
      go_on(round, match, settle(*round, std::move(*back)));
    });
  }

  /// After one was asked; `failure`: why its answer cannot be taken.
  void go_on(const std::shared_ptr<Round>& round, const WebhookSource::Match& match, const std::string& failure) {
    if (!failure.empty() && !match.webhook->ignores_failure) return round->done(std::unexpected(call_failed(*match.webhook, failure)));
    round->changed_after.push_back(round->changes);
    ++round->next;
    step(round);
  }

  /// Webhooks that asked for it look again when others changed the object after them. Once.
  static bool start_second_round(Round& round) {
    std::vector<WebhookSource::Match> again;
    for (std::size_t i = 0; i < round.matches.size(); ++i)
      if (round.matches[i].webhook->reinvoke && round.changed_after[i] < round.changes) again.push_back(round.matches[i]);
    if (again.empty()) return false;
    round.matches = std::move(again);
    round.next = 0;
    round.is_second = true;
    return true;
  }

  /// The object as the patch makes it: of the request's version, or of the form where a webhook converts it. The error says why the patch
  /// cannot be applied.
  static Expected<json::Value, std::string> apply(const AdmissionRequest& request, const model::KindInfo& form,
                                                  const json::Value& document) {
    const auto operations = patch::parse_json_patch(document);
    if (!operations) return std::unexpected(operations.error().message);
    auto patched = in_form(request, form, request.object);
    if (auto applied = patch::apply_json_patch(patched, *operations); !applied) return std::unexpected(applied.error().message);
    if (&form != request.kind && !request.body && !EquivalentForms::needs_webhook(request, form))
      model::convert(form, *request.kind, patched);
    if (!patched.is_object()) return std::unexpected("the patched object is not an object");
    return patched;
  }

  /// Takes the object as it is to be from now on; the error says why it is none.
  static std::string settle(Round& round, json::Value patched) {
    auto& request = *round.request;
    if (!request.body) {
      model::DecodeReport report;
      if (auto decoded = model::decode(*request.kind, patched, report); !decoded) return decoded.error().status(*request.kind).message;
      model::apply_defaults(*request.kind, patched);
    }
    if (json::equal(patched, request.object)) return {};
    request.object = std::move(patched);
    request.notes.forms.clear();
    ++round.changes;
    return {};
  }
};

class ValidatingWebhook final : public WebhookPlugin {
 public:
  explicit ValidatingWebhook(const AdmissionContext& context) : WebhookPlugin(context, "validatingwebhookconfigurations") {}
  [[nodiscard]] std::string_view name() const override { return "ValidatingAdmissionWebhook"; }

  void validate_async(const AdmissionRequest& request, AdmitDone done) override {
    when_matched(source_, forms_, request, std::move(done), [this, &request](std::vector<WebhookSource::Match> matches, AdmitDone done) {
      call_all(request, std::move(matches), std::move(done));
    });
  }

 private:
  void call_all(const AdmissionRequest& request, std::vector<WebhookSource::Match> matches, AdmitDone done) {
    if (matches.empty()) return done({});
    for (const auto& match : matches)
      if (auto refused = check_dry_run(*match.webhook, request)) return done(std::unexpected(std::move(*refused)));
    auto votes = std::make_shared<Votes>(matches.size(), std::move(done));
    // All at once: they cannot influence each other. The first refusal in their order is the answer.
    for (std::size_t i = 0; i < matches.size(); ++i) {
      call_webhook(client_, *matches[i].webhook, request, *matches[i].form, uid_(),
                   [this, votes, i, matches, &request](WebhookAnswer answer) {
                     {
                       const MutexLock lock(votes->mutex);
                       votes->answers[i] = std::move(answer);
                       if (--votes->left > 0) return;
                     }
                     offload_([votes, matches, &request] { decide(*votes, matches, request); });
                   });
    }
  }

  struct Votes {
    Mutex mutex;
    std::size_t left BERTH_GUARDED_BY(mutex);
    std::vector<WebhookAnswer> answers;  ///< Of whoever decides once none is left, as the next.
    AdmitDone done;

    Votes(std::size_t count, AdmitDone then) : left(count), answers(count), done(std::move(then)) {}
  };

  static void decide(Votes& votes, const std::vector<WebhookSource::Match>& matches, const AdmissionRequest& request) {
    for (std::size_t i = 0; i < matches.size(); ++i)
      if (request.caller.warnings != nullptr)
        for (auto& warning : votes.answers[i].warnings) request.caller.warnings->push_back(std::move(warning));
    for (std::size_t i = 0; i < matches.size(); ++i) {
      auto& answer = votes.answers[i];
      if (!answer.failure.empty() && !matches[i].webhook->ignores_failure)
        return votes.done(std::unexpected(call_failed(*matches[i].webhook, answer.failure)));
      if (answer.failure.empty() && !answer.allowed) return votes.done(std::unexpected(std::move(answer.refusal)));
    }
    votes.done({});
  }
};

}  // namespace

PluginResult make_mutating_webhook(const AdmissionContext& context) { return std::make_unique<MutatingWebhook>(context); }
PluginResult make_validating_webhook(const AdmissionContext& context) { return std::make_unique<ValidatingWebhook>(context); }

}  // namespace berth::apiserver
