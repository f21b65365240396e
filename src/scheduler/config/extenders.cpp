// `extenders` of Policy and KubeSchedulerConfiguration, and their validation (pkg/scheduler/apis/config/validation ValidateExtenders).
#include <fmt/format.h>

#include <algorithm>

#include "base/base64.h"
#include "model/validation/validation.h"
#include "placement/resource.h"
#include "scheduler/config/sections.h"

namespace berth::scheduler::config {
namespace {

std::string decode_base64(const Reader& at, std::string_view name) {
  auto decoded = base64_decode(at.string(name));
  if (!decoded) at.problem(name, "must be base64");
  return std::move(decoded).value_or("");
}

void read_tls(const Reader& tls, Extender& out) {
  if (!tls.expect_object()) return;
  tls.only({"insecure", "serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData"});
  out.insecure_skip_verify = tls.boolean("insecure", false);
  out.server_name = tls.string("serverName");
  out.cert_file = tls.string("certFile");
  out.key_file = tls.string("keyFile");
  out.ca_file = tls.string("caFile");
  out.cert_data = decode_base64(tls, "certData");
  out.key_data = decode_base64(tls, "keyData");
  out.ca_data = decode_base64(tls, "caData");
}

void read_managed_resources(const Reader& list, Extender& out) {
  for (const auto& item : list.items()) {
    if (!item.expect_object()) continue;
    item.only({"name", "ignoredByScheduler"});
    const std::string name = item.string("name");
    if (const std::string why = model::validation::check_qualified_name(name); !why.empty())
      item.problem("name", fmt::format("Invalid value: \"{}\": {}", name, why));
    else if (!placement::is_extended_resource_name(name))
      item.problem("name", fmt::format("Invalid value: \"{}\": {} is an invalid extended resource name", name, name));
    const bool is_twice = std::ranges::any_of(out.managed_resources, [&](const auto& other) { return other.name == name; });
    if (is_twice) item.problem("name", fmt::format("Duplicate value: \"{}\"", name));
    out.managed_resources.push_back({name, item.boolean("ignoredByScheduler", false)});
  }
}

}  // namespace

std::vector<Extender> read_extenders(const Reader& list) {
  std::vector<Extender> out;
  int binders = 0;
  std::vector<std::string> managed;
  for (const auto& item : list.items()) {
    if (!item.expect_object()) continue;
    item.only({"urlPrefix", "filterVerb", "preemptVerb", "prioritizeVerb", "weight", "bindVerb", "enableHTTPS", "enableHttps", "tlsConfig",
               "httpTimeout", "nodeCacheCapable", "managedResources", "ignorable"});
    Extender one;
    one.url_prefix = item.string("urlPrefix");
    one.filter_verb = item.string("filterVerb");
    one.prioritize_verb = item.string("prioritizeVerb");
    one.preempt_verb = item.string("preemptVerb");
    one.bind_verb = item.string("bindVerb");
    one.weight = item.integer("weight", 0);
    one.enable_https = item.boolean("enableHTTPS", item.boolean("enableHttps", false));
    one.http_timeout_ms = item.duration_ms("httpTimeout", 5000);
    one.node_cache_capable = item.boolean("nodeCacheCapable", false);
    one.ignorable = item.boolean("ignorable", false);
    read_tls(item.field("tlsConfig"), one);
    read_managed_resources(item.field("managedResources"), one);
    if (!one.prioritize_verb.empty() && one.weight <= 0)
      item.problem("weight", fmt::format("Invalid value: {}: must have a positive weight applied to it", one.weight));
    if (!one.bind_verb.empty()) ++binders;
    if (one.http_timeout_ms <= 0) one.http_timeout_ms = 5000;
    for (const auto& resource : one.managed_resources) {
      if (std::ranges::find(managed, resource.name) != managed.end())
        item.problem("managedResources", fmt::format("Invalid value: \"{}\": duplicate extender managed resource name", resource.name));
      managed.push_back(resource.name);
    }
    out.push_back(std::move(one));
  }
  if (binders > 1) list.problem(fmt::format("Invalid value: found {} extenders implementing bind, only one is allowed", binders));
  return out;
}

}  // namespace berth::scheduler::config
