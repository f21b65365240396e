#include "apiserver/admission/equivalent_forms.h"

#include "apiserver/kinds/kind_table.h"

namespace berth::apiserver {
namespace {

/// The definition of the request's kind where a webhook converts it, or null.
std::shared_ptr<const custom::Definition> converting_definition(const AdmissionRequest& request) {
  if (request.kinds == nullptr) return nullptr;
  const auto* served = request.kinds->custom(*request.kind);
  return served != nullptr && served->kind->definition->conversion ? served->kind->definition : nullptr;
}

model::ApiStatus conversion_failed(const model::ApiStatus& why) { return model::internal_error(why.message); }

}  // namespace

bool EquivalentForms::needs_webhook(const AdmissionRequest& request, const model::KindInfo& form) {
  return &form != request.kind && !request.body && converting_definition(request) != nullptr;
}

void EquivalentForms::prepare(const AdmissionRequest& request, std::vector<const model::KindInfo*> forms, AdmitDone done) {
  while (!forms.empty() && (request.notes.forms.contains(forms.back()) || !needs_webhook(request, *forms.back()))) forms.pop_back();
  if (forms.empty()) return done({});
  const model::KindInfo* form = forms.back();
  forms.pop_back();
  std::vector<json::Value> objects;
  for (const json::Value* document : {&request.object, &request.old_object})
    if (document->is_object()) objects.push_back(*document);
  conversions_.convert(
      converting_definition(request), form->api_version(), std::move(objects),
      [this, &request, form, forms = std::move(forms),
       done = std::move(done)](model::ApiResult<std::vector<json::Value>> converted) mutable {
        offload_([this, &request, form, forms = std::move(forms), done = std::move(done), converted = std::move(converted)]() mutable {
          if (!converted) return done(std::unexpected(conversion_failed(converted.error())));
          Notes::Form made;
          std::size_t next = 0;
          if (request.object.is_object()) made.object = std::move((*converted)[next++]);
          if (request.old_object.is_object()) made.old_object = std::move((*converted)[next]);
          request.notes.forms[form] = std::move(made);
          prepare(request, std::move(forms), std::move(done));
        });
      });
}

void EquivalentForms::take_back(const AdmissionRequest& request, json::Value changed, Document done) {
  std::vector<json::Value> one;
  one.push_back(std::move(changed));
  conversions_.convert(converting_definition(request), request.kind->api_version(), std::move(one),
                       [this, done = std::move(done)](model::ApiResult<std::vector<json::Value>> converted) mutable {
                         offload_([done = std::move(done), converted = std::move(converted)]() mutable {
                           if (!converted) return done(std::unexpected(conversion_failed(converted.error())));
                           done(std::move(converted->front()));
                         });
                       });
}

}  // namespace berth::apiserver
