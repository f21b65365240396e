// RuntimeClasses and APIServices (pkg/apis/node/validation, kube-aggregator's apiregistration/validation).
#include <fmt/format.h>

#include <set>

#include "model/validation/pod_parts.h"
#include "model/validation/validation.h"

namespace berth::model::validation {

using json::get_array;
using json::get_bool;
using json::get_int;
using json::get_string;

void runtime_class(const Value& doc, Errors& errors) {
  const std::string_view handler = get_string(doc, {"handler"});
  if (handler.empty())
    errors.required(Path("handler"));
  else if (const std::string why = check_dns1123_label(handler); !why.empty())
    errors.invalid(Path("handler"), handler, why);
  if (const Value* fixed = json::find(doc, {"overhead", "podFixed"}))
    resource_requirements(json::Object{{"limits", *fixed}}, {}, false, Path("overhead"), errors);
  const Value* scheduling = json::find(doc, "scheduling");
  if (scheduling == nullptr) return;
  const Path at("scheduling");
  if (const Value* selector = json::find(*scheduling, "nodeSelector")) labels(*selector, at / "nodeSelector", errors);
  tolerations(*scheduling, at, errors);
  const Path list = at / "tolerations";
  std::set<std::array<std::string_view, 4>> seen;
  std::size_t i = 0;
  for (const Value& toleration : get_array(*scheduling, {"tolerations"})) {
    const Path one = list[i++];
    const auto text = [&](const char* key) { return get_string(toleration, {key}); };
    if (seen.insert({text("key"), text("operator"), text("value"), text("effect")}).second) continue;
    const Value* seconds = json::find(toleration, "tolerationSeconds");
    errors.duplicate(one, json::Object{{"Key", text("key")},
                                       {"Operator", text("operator")},
                                       {"Value", text("value")},
                                       {"Effect", text("effect")},
                                       {"TolerationSeconds", seconds == nullptr ? Value(nullptr) : *seconds}});
  }
}

void api_service(const Value& doc, Errors& errors) {
  const Path at("spec"), metadata("metadata");
  const Path service_at = at / "service";
  const std::string_view group = get_string(doc, {"spec", "group"}), version = get_string(doc, {"spec", "version"}),
                         name = get_string(doc, {"metadata", "name"});
  const std::string wanted = fmt::format("{}.{}", version, group);
  if (!name.empty() && check_path_segment(name).empty() && name != wanted)
    errors.invalid(metadata / "name", name, fmt::format("must be `spec.version+\".\"+spec.group`: \"{}\"", wanted));
  if (group.empty() && version != "v1") errors.required(at / "group", "only v1 may have an empty group and it better be legacy kube");
  if (const std::string why = group.empty() ? std::string() : check_dns1123_subdomain(group); !why.empty())
    errors.invalid(at / "group", group, why);
  if (const std::string why = check_dns1035_label(version); !why.empty()) errors.invalid(at / "version", version, why);
  for (const auto& [key, highest] : {std::pair("groupPriorityMinimum", 20000), std::pair("versionPriority", 1000)})
    if (const std::int64_t value = get_int(doc, {"spec", key}); value <= 0 || value > highest)
      errors.invalid(at / key, Value(value), fmt::format("must be positive and less than {}", highest));
  const std::string_view bundle = get_string(doc, {"spec", "caBundle"});
  const bool is_insecure = get_bool(doc, {"spec", "insecureSkipTLSVerify"});
  const Value* service = json::find(doc, {"spec", "service"});
  if (service == nullptr) {
    const std::size_t padding = bundle.ends_with("==") ? 2 : bundle.ends_with('=') ? 1 : 0;
    if (!bundle.empty())
      errors.invalid(at / "caBundle", fmt::format("{} bytes", bundle.size() / 4 * 3 - padding),
                     "local APIServices may not have a caBundle");
    if (is_insecure) errors.invalid(at / "insecureSkipTLSVerify", Value(true), "local APIServices may not have insecureSkipTLSVerify");
    return;
  }
  for (const char* key : {"namespace", "name"})
    if (get_string(*service, {key}).empty()) errors.required(service_at / key);
  if (const std::int64_t port = get_int(*service, {"port"}, 443); !check_port_number(port).empty())
    errors.invalid(service_at / "port", Value(port), "port is not valid: must be between 1 and 65535, inclusive");
  if (is_insecure && !bundle.empty()) errors.invalid(at / "insecureSkipTLSVerify", Value(true), "may not be true if caBundle is present");
}

}  // namespace berth::model::validation
