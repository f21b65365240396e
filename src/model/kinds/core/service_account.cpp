// ServiceAccounts.
#include "model/kinds/record.h"

namespace berth::model::kinds {
namespace {

/// Of what an account may use only the names count.
void keep_secret_names(Value& account) {
  Value* secrets = json::find(account, "secrets");
  if (secrets == nullptr || !secrets->is_array()) return;
  for (Value& secret : secrets->get_array()) {
    Object kept;
    if (const std::string name(json::get_string(secret, {"name"})); !name.empty()) kept["name"] = name;
    secret = std::move(kept);
  }
}

}  // namespace

KindInfo service_account() {
  return Record("", "v1", "ServiceAccount", "serviceaccounts")
      .shorts({"sa"})
      .subs({"token"})
      .does({.form = kDefault,
             .strategy = Strategy{.prepare_create = keep_secret_names,
                                  .prepare_update = [](const Value&, Value& doc, std::string_view) { keep_secret_names(doc); }},
             .rules = Rules{.metadata_looks = kLooksAtBothAgain},
             .printer = kDefault,
             .selected = kDefault,
             .scale = kDefault,
             .life = Life{.is_answered_when_deleted = true},
             .counted = kDefault});
}

}  // namespace berth::model::kinds
