// Pods' defaults (Kubernetes: pkg/apis/core/v1/defaults.go).
#include "base/split.h"
#include "model/defaults.h"
#include "model/pods/pod_resources.h"

namespace berth::model::defaults {
namespace {

bool is_small(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }

/// Small letters and digits, with one ".", "_" or "__", or any number of "-", between them.
bool is_path_component(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    if (!is_small(text[i])) return false;
    while (i < text.size() && is_small(text[i])) ++i;
    if (i == text.size()) return true;
    const std::size_t end = std::min(text.find_first_of("abcdefghijklmnopqrstuvwxyz0123456789", i), text.size());
    const std::string_view between = text.substr(i, end - i);
    if (between != "." && between != "_" && between != "__" && between.find_first_not_of('-') != std::string_view::npos) return false;
    if (end == text.size()) return false;
    i = end;
  }
  return false;
}

bool is_tag(std::string_view text) {
  constexpr std::size_t kLongest = 128;
  const auto is_word = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  return !text.empty() && text.size() <= kLongest && is_word(text.front()) &&
         std::ranges::all_of(text, [&](char c) { return is_word(c) || c == '.' || c == '-'; });
}

/// Always for ":latest" or no tag; a digest pins, and what is no image's name has no tag either (parsers.ParseImageName).
std::string_view pull_policy_of(std::string_view image) {
  constexpr std::size_t kLongest = 255;
  if (image.empty() || image.find('@') != std::string_view::npos) return "IfNotPresent";
  const std::size_t first = image.find('/');
  const std::string_view domain = image.substr(0, first == std::string_view::npos ? 0 : first);
  const bool has_domain = domain == "localhost" || domain.find_first_of(".:") != std::string_view::npos ||
                          std::ranges::any_of(domain, [](char c) { return c >= 'A' && c <= 'Z'; });
  const std::string_view rest = has_domain ? image.substr(first + 1) : image;
  const std::size_t slash = rest.rfind('/');
  const std::size_t colon = rest.find(':', slash == std::string_view::npos ? 0 : slash);
  const std::string_view name = rest.substr(0, colon);
  const std::string_view tag = colon == std::string_view::npos ? "latest" : rest.substr(colon + 1);
  // A name without a domain is Docker's, one without a path its library's.
  const std::size_t prefix = has_domain ? domain.size() + 1 : name.find('/') == std::string_view::npos ? 18 : 10;
  if (prefix + name.size() > kLongest || !is_tag(tag)) return "IfNotPresent";
  // Such a name is taken for a digest.
  const auto is_hexadecimal = [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); };
  if (!has_domain && image.size() == 64 && std::ranges::all_of(image, is_hexadecimal)) return "IfNotPresent";
  for (const auto part : split(name, '/'))
    if (!is_path_component(part)) return "IfNotPresent";
  return tag == "latest" ? "Always" : "IfNotPresent";
}

void http_get(Object& action) {
  put_string(action, "path", "/");
  put_string(action, "scheme", "HTTP");
}

void probe(Object& container, std::string_view key) {
  Object* object = child(container, key);
  if (object == nullptr) return;
  if (Object* get = child(*object, "httpGet")) http_get(*get);
  if (Object* grpc = child(*object, "grpc")) put(*grpc, "service", "");
  const auto positive = [&](std::string_view name, std::int64_t value) {
    const auto found = object->find(name);
    if (found == object->end() || (found->value().is_int64() && found->value().get_int64() == 0)) (*object)[name] = value;
  };
  positive("timeoutSeconds", 1);
  positive("periodSeconds", 10);
  positive("successThreshold", 1);
  positive("failureThreshold", 3);
}

/// Only pods: in a template, what the user left out stays out until a pod is made of it.
void requests_from_limits(Object& container) {
  Object* resources = child(container, "resources");
  Object* limits = resources == nullptr ? nullptr : child(*resources, "limits");
  if (limits == nullptr) return;
  const Object copy = *limits;  // Adding a member to `resources` may move it.
  Object& requests = make_child(*resources, "requests");
  for (const auto& [name, quantity] : copy) put(requests, name, quantity);
}

/// Every port of a pod in the host's network is a host port. Only pods, not templates.
void host_ports(Object& container) {
  each(container, "ports", [](Object& port) {
    const auto host = port.find("hostPort");
    const bool unset = host == port.end() || (host->value().is_int64() && host->value().get_int64() == 0);
    if (unset && port.contains("containerPort")) port["hostPort"] = Value(port.at("containerPort"));
  });
}

void container(Object& object) {
  put_string(object, "terminationMessagePath", "/dev/termination-log");
  put_string(object, "terminationMessagePolicy", "File");
  put_string(object, "imagePullPolicy", pull_policy_of(string_at(object, "image")));
  each(object, "ports", [](Object& port) { put_string(port, "protocol", "TCP"); });
  each(object, "env", [](Object& variable) {
    Object* from = child(variable, "valueFrom");
    if (from == nullptr) return;
    if (Object* field = child(*from, "fieldRef")) put_string(*field, "apiVersion", "v1");
    if (Object* resource = child(*from, "resourceFieldRef")) put(*resource, "divisor", "0");
  });
  for (const char* name : {"livenessProbe", "readinessProbe", "startupProbe"}) probe(object, name);
  if (Object* lifecycle = child(object, "lifecycle"))
    for (const char* hook : {"postStart", "preStop"})
      if (Object* handler = child(*lifecycle, hook))
        if (Object* get = child(*handler, "httpGet")) http_get(*get);
  put(object, "resources", Object());
}

void projection(Object& source) {
  if (Object* token = child(source, "serviceAccountToken")) put(*token, "expirationSeconds", 3600);
  if (Object* downward = child(source, "downwardAPI"))
    each(*downward, "items", [](Object& item) {
      if (Object* field = child(item, "fieldRef")) put_string(*field, "apiVersion", "v1");
      if (Object* resource = child(item, "resourceFieldRef")) put(*resource, "divisor", "0");
    });
}

void volume(Object& object) {
  static constexpr std::string_view kSources[] = {"hostPath",
                                                  "emptyDir",
                                                  "gcePersistentDisk",
                                                  "awsElasticBlockStore",
                                                  "gitRepo",
                                                  "secret",
                                                  "nfs",
                                                  "iscsi",
                                                  "glusterfs",
                                                  "persistentVolumeClaim",
                                                  "rbd",
                                                  "flexVolume",
                                                  "cinder",
                                                  "cephfs",
                                                  "flocker",
                                                  "downwardAPI",
                                                  "fc",
                                                  "azureFile",
                                                  "configMap",
                                                  "vsphereVolume",
                                                  "quobyte",
                                                  "azureDisk",
                                                  "photonPersistentDisk",
                                                  "projected",
                                                  "portworxVolume",
                                                  "scaleIO",
                                                  "storageos",
                                                  "csi",
                                                  "ephemeral",
                                                  "image"};
  bool has_source = false;
  for (const std::string_view source : kSources) has_source |= object.contains(source);
  if (!has_source && object.size() <= 1) object["emptyDir"] = Object();
  if (Object* source = child(object, "hostPath")) put(*source, "type", "");
  for (const char* name : {"secret", "configMap", "downwardAPI", "projected"})
    if (Object* source = child(object, name)) put(*source, "defaultMode", 0644);
  if (Object* source = child(object, "downwardAPI"))
    each(*source, "items", [](Object& item) {
      if (Object* field = child(item, "fieldRef")) put_string(*field, "apiVersion", "v1");
      if (Object* resource = child(item, "resourceFieldRef")) put(*resource, "divisor", "0");
    });
  if (Object* source = child(object, "projected")) each(*source, "sources", projection);
  disks(object);
  if (Object* ephemeral = child(object, "ephemeral"))
    if (Object* claim = child(*ephemeral, "volumeClaimTemplate"))
      if (Object* spec = child(*claim, "spec")) put(*spec, "volumeMode", "Filesystem");
}

}  // namespace

void disks(Object& object) {
  if (Object* source = child(object, "iscsi")) put_string(*source, "iscsiInterface", "default");
  if (Object* source = child(object, "rbd")) {
    put_string(*source, "pool", "rbd");
    put_string(*source, "user", "admin");
    put_string(*source, "keyring", "/etc/ceph/keyring");
  }
  if (Object* source = child(object, "azureDisk")) {
    put(*source, "cachingMode", "ReadWrite");
    put_string(*source, "fsType", "ext4");
    put(*source, "readOnly", false);
    put(*source, "kind", "Shared");
  }
  if (Object* source = child(object, "scaleIO")) {
    put_string(*source, "storageMode", "ThinProvisioned");
    put_string(*source, "fsType", "xfs");
  }
}

void pod_spec(Object& spec) {
  put_string(spec, "restartPolicy", "Always");
  put(spec, "terminationGracePeriodSeconds", 30);
  put_string(spec, "dnsPolicy", "ClusterFirst");
  // The older name of the same field: either sets both.
  // (Copied first: a new member may move what a view points to.)
  const std::string account(string_at(spec, "serviceAccountName")), old_name(string_at(spec, "serviceAccount"));
  if (!account.empty())
    spec["serviceAccount"] = account;
  else if (!old_name.empty())
    spec["serviceAccountName"] = old_name;
  put(spec, "securityContext", Object());
  put_string(spec, "schedulerName", "default-scheduler");
  for (const char* name : {"initContainers", "containers", "ephemeralContainers"}) each(spec, name, container);
  each(spec, "volumes", volume);
}

namespace {

bool is_pod_resource(std::string_view name) { return name == "cpu" || name == "memory" || name.starts_with("hugepages-"); }

/// What a pod asks for as a whole, where it does so in part, is completed from its containers and from its limits.
void pod_level_resources(Object& spec) {
  Object* resources = child(spec, "resources");
  if (resources == nullptr) return;
  const auto amounts = [&](std::string_view key) {
    const Object* given = child(*resources, key);
    return given == nullptr ? Object() : *given;
  };
  const Value pod =
      Object{{"spec", Object{{"containers", spec.contains("containers") ? spec.at("containers") : Value(Array())},
                             {"initContainers", spec.contains("initContainers") ? spec.at("initContainers") : Value(Array())}}}};
  Object limits = amounts("limits"), requests = amounts("requests");
  if (limits.empty() && requests.empty()) return;
  for (const auto& [name, amount] : containers_total(pod, "limits"))
    if (name.starts_with("hugepages-") && !requests.contains(name)) put(limits, name, Value(amount.to_string()));
  if (!limits.empty()) (*resources)["limits"] = limits;
  if (limits.empty()) return;
  for (const auto& [name, amount] : containers_total(pod, "requests"))
    if (name == "cpu" || name == "memory") put(requests, name, Value(amount.to_string()));
  for (const auto& [name, amount] : limits)
    if (is_pod_resource({name.data(), name.size()})) put(requests, {name.data(), name.size()}, amount);
  if (!requests.empty()) (*resources)["requests"] = std::move(requests);
}

}  // namespace

void pod(Object& doc) {
  Object& spec = make_child(doc, "spec");
  pod_spec(spec);
  // Negative once meant "at once"; today that is as soon as possible.
  if (Value& grace = spec["terminationGracePeriodSeconds"]; grace.is_int64() && grace.get_int64() < 0) grace = 1;
  put(spec, "enableServiceLinks", true);
  const auto host_network = spec.find("hostNetwork");
  const bool in_host_network = host_network != spec.end() && host_network->value().is_bool() && host_network->value().get_bool();
  for (const char* name : {"initContainers", "containers"})
    each(spec, name, [&](Object& one) {
      requests_from_limits(one);
      if (in_host_network) host_ports(one);
    });
  pod_level_resources(spec);
}

}  // namespace berth::model::defaults
