// Ingresses, their classes, NetworkPolicies, IPAddresses and ServiceCIDRs (pkg/apis/networking/validation).
#include <fmt/format.h>

#include "model/validation/ip_range.h"
#include "model/validation/validation.h"

namespace berth::model::validation {
namespace {

using json::get_array;
using json::get_int;
using json::get_string;

/// A finding when `why` says something.
void tell(const Path& at, std::string_view value, const std::string& why, Errors& errors) {
  if (!why.empty()) errors.invalid(at, value, why);
}

void network_policy_port(const Value& port, const Path& at, Errors& errors) {
  supported_value(port, "protocol", at, {"TCP", "UDP", "SCTP"}, errors, true);
  const Value *number = json::find(port, "port"), *end = json::find(port, "endPort");
  if (number == nullptr) {
    if (end != nullptr) errors.invalid(at / "endPort", *end, "may not be specified when `port` is not specified");
    return;
  }
  if (number->is_string()) {
    if (end != nullptr) errors.invalid(at / "endPort", *end, "may not be specified when `port` is non-numeric");
    return tell(at / "port", json::as_view(*number), check_port_name(json::as_view(*number)), errors);
  }
  const std::int64_t first = get_int(port, {"port"});
  if (const std::string why = check_port_number(first); !why.empty()) errors.invalid(at / "port", *number, why);
  if (end == nullptr) return;
  const std::int64_t last = get_int(port, {"endPort"});
  if (last < first) errors.invalid(at / "endPort", *number, "must be greater than or equal to `port`");
  if (const std::string why = check_port_number(last); !why.empty()) errors.invalid(at / "endPort", *end, why);
}

void ip_block(const Value& block, const Path& at, Errors& errors) {
  const std::string_view text = get_string(block, {"cidr"});
  if (text.empty()) return errors.required(at / "cidr");
  const auto range = parse_cidr(text);
  if (!range) return errors.invalid(at / "cidr", text, kCidrText);
  const Path exceptions = at / "except";
  std::size_t i = 0;
  for (const Value& entry : get_array(block, {"except"})) {
    const Path one = exceptions[i++];
    const auto without = entry.is_string() ? parse_cidr(json::as_view(entry)) : std::nullopt;
    if (!without)
      errors.invalid(one, entry, kCidrText);
    else if (!range->contains(*without) || range->bits >= without->bits)
      errors.invalid(one, entry, "must be a strict subset of `cidr`");
  }
}

void network_policy_peer(const Value& peer, const Path& at, Errors& errors) {
  int peers = 0;
  for (const char* key : {"podSelector", "namespaceSelector"})
    if (const Value* selector = json::find(peer, key)) {
      ++peers;
      label_selector(*selector, at / key, errors);
    }
  const Value* block = json::find(peer, "ipBlock");
  if (block != nullptr) ip_block(*block, at / "ipBlock", errors);
  if (block == nullptr && peers == 0) errors.required(at, "must specify a peer");
  if (block != nullptr && peers > 0) errors.forbidden(at, "may not specify both ipBlock and another peer");
}

void network_policy_rules(const Value& doc, std::string_view direction, std::string_view peers, const Path& spec, Errors& errors) {
  const Path at = spec / direction;
  std::size_t i = 0;
  for (const Value& rule : get_array(doc, {"spec", direction})) {
    const Path one = at[i++];
    const Path ports_at = one / "ports", peers_at = one / peers;
    std::size_t k = 0;
    for (const Value& port : get_array(rule, {"ports"})) network_policy_port(port, ports_at[k++], errors);
    k = 0;
    for (const Value& peer : get_array(rule, {peers})) network_policy_peer(peer, peers_at[k++], errors);
  }
}

std::string check_wildcard_subdomain(std::string_view text) {
  if (text.starts_with("*.") && check_dns1123_subdomain(text.substr(2)).empty() && text.size() <= 253) return {};
  return "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of lower case "
         "alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', regex used for validation is "
         "'\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
}

std::string check_host(std::string_view host) {
  return host.find('*') != std::string_view::npos ? check_wildcard_subdomain(host) : check_dns1123_subdomain(host);
}

/// group, kind and name of what a backend or class points to.
void reference(const Value& object, const Path& at, Errors& errors) {
  if (json::find(object, "apiGroup") != nullptr)
    tell(at / "apiGroup", get_string(object, {"apiGroup"}), check_dns1123_subdomain(get_string(object, {"apiGroup"})), errors);
  for (const char* key : {"kind", "name"}) {
    const std::string_view text = get_string(object, {key});
    if (text.empty())
      errors.required(at / key);
    else
      tell(at / key, text, check_path_segment(text), errors);
  }
}

void ingress_backend(const Value& backend, const Path& at, Errors& errors) {
  const Value *resource = json::find(backend, "resource"), *service = json::find(backend, "service");
  if (resource != nullptr && service != nullptr) return errors.invalid(at, "", "cannot set both resource and service backends");
  if (resource == nullptr && service == nullptr) return errors.invalid(at, "", "resource or service backend is required");
  if (resource != nullptr) return reference(*resource, at / "resource", errors);
  const Path service_at = at / "service";
  const Path port_at = service_at / "port";
  const std::string_view name = get_string(*service, {"name"}), port = get_string(*service, {"port", "name"});
  if (name.empty())
    errors.required(service_at / "name");
  else
    tell(service_at / "name", name, check_dns1123_label(name), errors);
  const std::int64_t number = get_int(*service, {"port", "number"});
  if (!port.empty() && number != 0)
    errors.invalid(at, "", "cannot set both port name & port number");
  else if (!port.empty())
    tell(port_at / "name", port, check_port_name(port), errors);
  else if (number == 0)
    errors.required(at, "port name or number is required");
  else if (const std::string why = check_port_number(number); !why.empty())
    errors.invalid(port_at / "number", Value(number), why);
}

void ingress_path(const Value& path, const Path& at, Errors& errors) {
  const Value* type = json::find(path, "pathType");
  const std::string_view text = get_string(path, {"path"}), kind = get_string(path, {"pathType"});
  if (type == nullptr) return errors.required(at / "pathType", "pathType must be specified");
  const bool is_literal = kind == "Exact" || kind == "Prefix";
  if (!is_literal && kind != "ImplementationSpecific") {
    errors.not_supported(at / "pathType", kind, {"Exact", "ImplementationSpecific", "Prefix"});
  } else if (!text.starts_with('/') && (is_literal || !text.empty())) {
    errors.invalid(at / "path", text, "must be an absolute path");
  }
  if (is_literal) {
    for (const char* odd : {"//", "/./", "/../", "%2f", "%2F"})
      if (text.find(odd) != std::string_view::npos) errors.invalid(at / "path", text, fmt::format("must not contain '{}'", odd));
    for (const char* odd : {"/..", "/."})
      if (text.ends_with(odd)) errors.invalid(at / "path", text, fmt::format("cannot end with '{}'", odd));
  }
  static const Value kNone = json::Object();
  const Value* backend = json::find(path, "backend");
  ingress_backend(backend == nullptr ? kNone : *backend, at / "backend", errors);
}

void ingress_rule(const Value& rule, const Path& at, Errors& errors) {
  const std::string_view host = get_string(rule, {"host"});
  if (!host.empty()) {
    if (is_ip(host)) errors.invalid(at / "host", host, "must be a DNS name, not an IP address");
    tell(at / "host", host, check_host(host), errors);
  }
  const Value* http = json::find(rule, "http");
  if (http == nullptr) return;
  const Path http_at = at / "http";
  const Path paths_at = http_at / "paths";
  const json::Array& paths = get_array(*http, {"paths"});
  if (paths.empty()) errors.required(paths_at);
  for (std::size_t i = 0; i < paths.size(); ++i) ingress_path(paths[i], paths_at[i], errors);
}

}  // namespace

void network_policy(const Value& doc, Errors& errors) {
  const Path at("spec");
  if (const Value* selector = json::find(doc, {"spec", "podSelector"})) label_selector(*selector, at / "podSelector", errors);
  network_policy_rules(doc, "ingress", "from", at, errors);
  network_policy_rules(doc, "egress", "to", at, errors);
  const Path types_at = at / "policyTypes";
  const json::Array& types = get_array(doc, {"spec", "policyTypes"});
  if (types.size() > 2) return errors.invalid(types_at, Value(types), "may not specify more than two policyTypes");
  for (std::size_t i = 0; i < types.size(); ++i)
    if (types[i] != "Ingress" && types[i] != "Egress") errors.not_supported_value(types_at[i], types[i], {"Ingress", "Egress"});
}

void ingress(const Value& doc, Errors& errors) {
  const Path at("spec");
  const json::Array& rules = get_array(doc, {"spec", "rules"});
  const Value* backend = json::find(doc, {"spec", "defaultBackend"});
  if (rules.empty() && backend == nullptr)
    errors.invalid(at, Value(json::find(doc, {"spec", "rules"}) == nullptr ? Value(nullptr) : Value(rules)),
                   "either `defaultBackend` or `rules` must be specified");
  if (backend != nullptr) ingress_backend(*backend, at / "defaultBackend", errors);
  const Path rules_at = at / "rules", tls_at = at / "tls";
  for (std::size_t i = 0; i < rules.size(); ++i) ingress_rule(rules[i], rules_at[i], errors);
  std::size_t i = 0;
  for (const Value& tls : get_array(doc, {"spec", "tls"})) {
    const Path one = tls_at[i++];
    const Path hosts_at = one / "hosts";
    std::size_t k = 0;
    for (const Value& host : get_array(tls, {"hosts"})) {
      const std::string_view text = host.is_string() ? json::as_view(host) : "";
      tell(hosts_at[k++], text, check_host(text), errors);
    }
    if (const std::string_view secret = get_string(tls, {"secretName"}); !secret.empty())
      tell(one / "secretName", secret, check_dns1123_subdomain(secret), errors);
  }
  if (json::find(doc, {"spec", "ingressClassName"}) != nullptr) {
    const std::string_view name = get_string(doc, {"spec", "ingressClassName"});
    tell(at / "ingressClassName", name, check_dns1123_subdomain(name), errors);
  }
}

void ingress_create(const Value& doc, Errors& errors) {
  constexpr std::string_view kAnnotation = "kubernetes.io/ingress.class";
  const Value *old_name = json::find(doc, {"metadata", "annotations", kAnnotation}), *name = json::find(doc, {"spec", "ingressClassName"});
  if (old_name == nullptr || name == nullptr || *old_name == *name) return;
  const Path at("annotations");
  errors.invalid(at / kAnnotation, *old_name, "must match `ingressClassName` when both are specified");
}

void ingress_class(const Value& doc, Errors& errors) {
  const Path at("spec");
  const Path controller_at = at / "controller";
  const std::string_view controller = get_string(doc, {"spec", "controller"});
  if (controller.size() > 250) errors.too_long(controller_at, 250);
  const auto slash = controller.find('/');
  if (controller.empty()) {
    errors.required(controller_at);
  } else if (slash == std::string_view::npos || slash == 0 || slash + 1 == controller.size()) {
    errors.invalid(controller_at, controller, "must be a domain-prefixed path (such as \"acme.io/foo\")");
  } else {
    tell(controller_at, controller.substr(0, slash), check_dns1123_subdomain(controller.substr(0, slash)), errors);
    const std::string_view path = controller.substr(slash + 1);
    if (!std::ranges::all_of(path, [](unsigned char c) {
          return std::isalnum(c) != 0 || std::string_view("/-._~%!$&'()*+,;=:").find(static_cast<char>(c)) != std::string_view::npos;
        }))
      errors.invalid(controller_at, path, "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')");
  }
  const Value* parameters = json::find(doc, {"spec", "parameters"});
  if (parameters == nullptr) return;
  const Path here = at / "parameters";
  reference(*parameters, here, errors);
  if (json::find(*parameters, "scope") == nullptr) return errors.required(here / "scope");
  const std::string_view scope = get_string(*parameters, {"scope"});
  const Value* ns = json::find(*parameters, "namespace");
  if (scope != "Cluster" && scope != "Namespace") return errors.not_supported(here / "scope", scope, {"Cluster", "Namespace"});
  if (scope == "Cluster" && ns != nullptr) errors.forbidden(here / "namespace", "`parameters.scope` is set to 'Cluster'");
  if (scope == "Namespace" && ns == nullptr) errors.required(here / "namespace", "`parameters.scope` is set to 'Namespace'");
  if (scope == "Namespace" && ns != nullptr)
    tell(here / "namespace", get_string(*parameters, {"namespace"}), check_dns1123_label(get_string(*parameters, {"namespace"})), errors);
}

void ingress_class_update(const Value& old, const Value& doc, Errors& errors) {
  const Path at("spec");
  const auto before = get_string(old, {"spec", "controller"}), after = get_string(doc, {"spec", "controller"});
  if (before != after) errors.invalid(at / "controller", Value(after), kImmutable);
}

}  // namespace berth::model::validation
