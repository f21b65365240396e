#include "cel/authorizer.h"

#include "cel/functions.h"
#include "cel/opaque.h"

namespace berth::cel {
namespace {

/// Authorizer, PathCheck, GroupCheck and ResourceCheck are one growing question.
class CheckValue final : public Opaque {
 public:
  CheckValue(std::string_view type, Authorize authorize, AuthorizationCheck check)
      : check(std::move(check)), authorize(std::move(authorize)), type_(type) {}
  [[nodiscard]] std::string_view type_name() const override { return type_; }
  [[nodiscard]] bool equals(const Opaque& other) const override { return this == &other; }
  AuthorizationCheck check;
  Authorize authorize;

 private:
  std::string_view type_;
};

class DecisionValue final : public Opaque {
 public:
  explicit DecisionValue(AuthorizationAnswer answer) : answer(std::move(answer)) {}
  [[nodiscard]] std::string_view type_name() const override { return "kubernetes.authorization.Decision"; }
  [[nodiscard]] bool equals(const Opaque& other) const override { return this == &other; }
  AuthorizationAnswer answer;
};

constexpr std::string_view kAuthorizer = "kubernetes.authorization.Authorizer", kPathCheck = "kubernetes.authorization.PathCheck",
                           kGroupCheck = "kubernetes.authorization.GroupCheck", kResourceCheck = "kubernetes.authorization.ResourceCheck";

template <typename Change>
Value next(const Args& args, std::string_view type, Change change) {
  const auto* before = as_opaque<CheckValue>(args[0]);
  if (before == nullptr) return no_such_overload();
  auto check = before->check;
  change(check);
  return Value::opaque(std::make_shared<const CheckValue>(type, before->authorize, std::move(check)));
}

bool is_blank(std::string_view text) { return text.find_first_not_of(" \t\n\r\v\f") == std::string_view::npos; }

bool is_dns_name(std::string_view text, bool dots) {
  if (text.empty() || text.size() > (dots ? 253 : 63)) return false;
  const auto is_edge = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_edge(text[i])) continue;
    if (i == 0 || i + 1 == text.size() || !is_edge(text[i + 1] == '-' ? 'a' : text[i + 1])) return false;
    if (text[i] != '-' && !(dots && text[i] == '.')) return false;
  }
  return true;
}

Value check(const Args& args) {
  const auto* value = as_opaque<CheckValue>(args[0]);
  if (value == nullptr) return no_such_overload();
  auto question = value->check;
  question.verb = args[1].text();
  return Value::opaque(std::make_shared<const DecisionValue>(value->authorize(question)));
}

template <typename Read>
Value read(const Args& args, Read read_one) {
  const auto* decision = as_opaque<DecisionValue>(args[0]);
  return decision == nullptr ? no_such_overload() : read_one(decision->answer);
}

}  // namespace

Value make_authorizer(Authorize authorize) {
  return Value::opaque(std::make_shared<const CheckValue>(kAuthorizer, std::move(authorize), AuthorizationCheck{}));
}
Value make_resource_check(Authorize authorize, AuthorizationCheck resource) {
  return Value::opaque(std::make_shared<const CheckValue>(kResourceCheck, std::move(authorize), std::move(resource)));
}

void add_authorizer(Registry& r) {
  r.add("path", "authorizer_path", "Authorizer.(string): PathCheck", [](const Args& a) {
    if (is_blank(a[1].text())) return Value::error("path must not be empty");
    return next(a, kPathCheck, [&](auto& c) { c.path = a[1].text(); });
  });
  r.add("group", "authorizer_group", "Authorizer.(string): GroupCheck",
        [](const Args& a) { return next(a, kGroupCheck, [&](auto& c) { c.group = a[1].text(); }); });
  r.add("serviceAccount", "authorizer_serviceaccount", "Authorizer.(string, string): Authorizer", [](const Args& a) {
    if (!is_dns_name(a[2].text(), true)) return Value::error("Invalid service account name");
    if (!is_dns_name(a[1].text(), false)) return Value::error("Invalid service account namespace");
    return next(a, kAuthorizer, [&](auto& c) {
      c.service_account_ns = a[1].text();
      c.service_account_name = a[2].text();
    });
  });
  r.add("resource", "groupcheck_resource", "GroupCheck.(string): ResourceCheck", [](const Args& a) {
    if (is_blank(a[1].text())) return Value::error("resource must not be empty");
    return next(a, kResourceCheck, [&](auto& c) { c.resource = a[1].text(); });
  });
  r.add("subresource", "resourcecheck_subresource", "ResourceCheck.(string): ResourceCheck",
        [](const Args& a) { return next(a, kResourceCheck, [&](auto& c) { c.subresource = a[1].text(); }); });
  r.add("namespace", "resourcecheck_namespace", "ResourceCheck.(string): ResourceCheck",
        [](const Args& a) { return next(a, kResourceCheck, [&](auto& c) { c.ns = a[1].text(); }); });
  r.add("name", "resourcecheck_name", "ResourceCheck.(string): ResourceCheck",
        [](const Args& a) { return next(a, kResourceCheck, [&](auto& c) { c.name = a[1].text(); }); });
  r.add("fieldSelector", "authorizer_fieldselector", "ResourceCheck.(string): ResourceCheck",
        [](const Args& a) { return next(a, kResourceCheck, [&](auto& c) { c.field_selector = a[1].text(); }); });
  r.add("labelSelector", "authorizer_labelselector", "ResourceCheck.(string): ResourceCheck",
        [](const Args& a) { return next(a, kResourceCheck, [&](auto& c) { c.label_selector = a[1].text(); }); });
  r.add("check", "pathcheck_check", "PathCheck.(string): Decision", check);
  r.add("check", "resourcecheck_check", "ResourceCheck.(string): Decision", check);
  r.add("errored", "decision_errored", "Decision.(): bool",
        [](const Args& a) { return read(a, [](const auto& d) { return Value::boolean(!d.error.empty()); }); });
  r.add("error", "decision_error", "Decision.(): string",
        [](const Args& a) { return read(a, [](const auto& d) { return Value::string(d.error); }); });
  r.add("allowed", "decision_allowed", "Decision.(): bool",
        [](const Args& a) { return read(a, [](const auto& d) { return Value::boolean(d.is_allowed); }); });
  r.add("reason", "decision_reason", "Decision.(): string",
        [](const Args& a) { return read(a, [](const auto& d) { return Value::string(d.reason); }); });
}

}  // namespace berth::cel
