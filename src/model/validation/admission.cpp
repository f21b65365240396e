// Webhook configurations (pkg/apis/admissionregistration/validation).
#include <fmt/format.h>

#include "base/go/url.h"
#include "base/split.h"
#include "model/quantity.h"
#include "model/validation/validation.h"
#include "model/validation/webhook_client.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_object;
using json::get_string;
using Strings = std::vector<std::string_view>;

void review_versions(const Value& hook, const Path& hook_at, Errors& errors) {
  const Path at = hook_at / "admissionReviewVersions";
  const json::Array& versions = get_array(hook, {"admissionReviewVersions"});
  if (versions.empty()) return errors.required(at, "must specify one of v1, v1beta1");
  bool known = false;
  std::set<std::string_view> seen;
  for (std::size_t i = 0; i < versions.size(); ++i) {
    const std::string_view text = versions[i].is_string() ? json::as_view(versions[i]) : "";
    known |= text == "v1" || text == "v1beta1";
    if (!seen.insert(text).second) errors.invalid(at[i], text, "duplicate version");
    if (const std::string why = check_dns1035_label(text); !why.empty()) errors.invalid(at[i], text, why);
  }
  if (!known) errors.invalid(at, Value(versions), "must include at least one of v1, v1beta1");
}

/// Each of the lists says something; a wildcard stands alone.
void hook_rules(const Value& hook, const Path& hook_at, Errors& errors) {
  const Path at = hook_at / "rules";
  std::size_t i = 0;
  for (const Value& rule : get_array(hook, {"rules"})) {
    const Path one = at[i++];
    for (const char* list : {"operations", "apiGroups", "apiVersions", "resources"}) {
      const json::Array& entries = get_array(rule, {list});
      const Path here = one / list;
      const bool is_operations = std::string_view(list) == "operations", may_be_empty = std::string_view(list) == "apiGroups";
      if (entries.empty()) errors.required(here);
      for (std::size_t k = 0; k < entries.size(); ++k) {
        const std::string_view text = entries[k].is_string() ? json::as_view(entries[k]) : "";
        static const Strings kOperations = {"*", "CONNECT", "CREATE", "DELETE", "UPDATE"};
        if (is_operations && std::find(kOperations.begin(), kOperations.end(), text) == kOperations.end())
          errors.not_supported(here[k], text, kOperations);
        else if (text.empty() && !may_be_empty)
          errors.required(here[k]);
        if (text == "*" && entries.size() > 1 && std::string_view(list) != "resources")
          errors.invalid(
              here, Value(entries),
              fmt::format("if '*' is present, must not specify other {}", is_operations                           ? "operations"
                                                                          : list == std::string_view("apiGroups") ? "API groups"
                                                                                                                  : "API versions"));
      }
    }
    supported_value(rule, "scope", one, {"*", "Cluster", "Namespaced"}, errors, true);
  }
}

/// Each step of a service's path is a name.
void service_path(std::string_view path, const Path& at, Errors& errors) {
  if (path.empty() || path == "/") return;
  if (path == "//") return errors.invalid(at, path, "segment[0] may not be empty");
  if (!path.starts_with('/')) errors.invalid(at, path, "must start with a '/'");
  std::string_view rest = path.substr(1);
  if (rest.ends_with('/')) rest.remove_suffix(1);
  for (std::size_t i = 0; const auto step : split(rest, '/')) {
    if (step.empty())
      errors.invalid(at, path, fmt::format("segment[{}] may not be empty", i));
    else if (const std::string why = check_dns1123_subdomain(step); !why.empty())
      errors.invalid(at, path, fmt::format("segment[{}]: {}", i, why));
    ++i;
  }
}

/// apiserver/pkg/util/webhook, ValidateWebhookService, whose callers hand over name and namespace in the other order: a missing name is
/// told of the namespace.
void service_reference(const Value& service, const Path& at, Errors& errors) {
  if (get_string(service, {"namespace"}).empty()) errors.required(at / "name");
  if (get_string(service, {"name"}).empty()) errors.required(at / "namespace");
  if (const std::int64_t port = get_int(service, {"port"}, 443); port < 1 || port > 65535)
    errors.invalid(at / "port", Value(port), "port is not valid: must be between 1 and 65535, inclusive");
  service_path(get_string(service, {"path"}), at / "path", errors);
}

/// Where the webhook is: a URL or a Service.
void hook_client(const Value& hook, const Path& at, Errors& errors) {
  const Value *url = json::find(hook, {"clientConfig", "url"}), *service = json::find(hook, {"clientConfig", "service"});
  if ((url == nullptr) == (service == nullptr)) return errors.required(at, "exactly one of url or service is required");
  if (url != nullptr) return webhook_url(get_string(hook, {"clientConfig", "url"}), at / "url", errors);
  service_reference(*service, at / "service", errors);
}

void hook_name(std::string_view name, const Path& at, Errors& errors) {
  if (name.empty()) return errors.required(at);
  if (const std::string why = check_dns1123_subdomain(name); !why.empty()) return errors.invalid(at, name, why);
  if (std::count(name.begin(), name.end(), '.') < 2)
    errors.invalid(at, name, "should be a domain with at least three segments separated by dots");
}

}  // namespace

void webhook_url(std::string_view text, const Path& at, Errors& errors) {
  constexpr std::string_view kForm = "; desired format: https://host[/path]";
  const auto url = go::parse_url(text);
  if (!url) return errors.required(at, fmt::format("url must be a valid URL: {}{}", url.error(), kForm));
  if (url->scheme != "https") errors.invalid(at, url->scheme, fmt::format("'https' is the only allowed URL scheme{}", kForm));
  if (url->host.empty()) errors.invalid(at, "", fmt::format("host must be specified{}", kForm));
  if (url->user) errors.invalid(at, *url->user, "user information is not permitted in the URL");
  if (!url->fragment.empty()) errors.invalid(at, url->fragment, "fragments are not permitted in the URL");
  if (!url->query.empty()) errors.invalid(at, url->query, "query parameters are not permitted in the URL");
}

void webhooks(const Value& doc, Errors& errors) {
  const Path at("webhooks");
  std::set<std::string_view> names;
  std::size_t i = 0;
  for (const Value& hook : get_array(doc, {"webhooks"})) {
    const Path one = at[i++];
    const std::string_view name = get_string(hook, {"name"});
    hook_name(name, one / "name", errors);
    if (!names.insert(name).second) errors.duplicate(one / "name", Value(name));
    const std::int64_t timeout = get_int(hook, {"timeoutSeconds"}, 10);
    if (timeout < 1 || timeout > 30)
      errors.invalid(one / "timeoutSeconds", Value(timeout), "the timeout value must be between 1 and 30 seconds");
    supported_value(hook, "failurePolicy", one, {"Fail", "Ignore"}, errors, true);
    supported_value(hook, "matchPolicy", one, {"Equivalent", "Exact"}, errors, true);
    supported_value(hook, "reinvocationPolicy", one, {"IfNeeded", "Never"}, errors, true);
    review_versions(hook, one, errors);
    hook_rules(hook, one, errors);
    hook_client(hook, one / "clientConfig", errors);
    const std::string_view effects = get_string(hook, {"sideEffects"});
    if (json::find(hook, "sideEffects") == nullptr)
      errors.required(one / "sideEffects", "must specify one of None, NoneOnDryRun");
    else if (effects != "None" && effects != "NoneOnDryRun")
      errors.not_supported(one / "sideEffects", effects, {"None", "NoneOnDryRun"});
    if (const Value* selector = json::find(hook, "namespaceSelector")) label_selector(*selector, one / "namespaceSelector", errors);
    if (const Value* selector = json::find(hook, "objectSelector")) label_selector(*selector, one / "objectSelector", errors);
    webhook_match_conditions(hook, one, errors);
  }
}

}  // namespace berth::model::validation
