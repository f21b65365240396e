#include "model/pods/pod_warnings.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "model/go_words.h"
#include "model/quantity.h"

namespace berth::model {
namespace {

using json::get_array;
using json::get_int;
using json::get_object;
using json::get_string;
using json::Value;
using validation::Path;
using Sentences = std::vector<std::string>;

constexpr std::size_t kEnoughSentences = 1000;

void fractional_bytes(const Value& amounts, std::string_view name, const Path& at, Sentences& out) {
  const std::string_view text = get_string(amounts, {name});
  const auto quantity = text.empty() ? std::nullopt : Quantity::parse(text);
  if (quantity && quantity->milli_value() % 1000 != 0)
    out.push_back(fmt::format("{}: fractional byte value \"{}\" is invalid, must be an integer", Path::map_key(at, name).text(), text));
}

/// A requirement on an old label; with `checks_values` also values that no label can have.
void node_term(const Value& term, bool checks_values, const Path& at, Sentences& out) {
  const Path list = at / "matchExpressions";
  std::size_t i = 0;
  for (const Value& expression : get_array(term, {"matchExpressions"})) {
    const Path one = list[i++];
    const std::string_view key = get_string(expression, {"key"});
    if (const auto why = old_node_label(key); !why.empty()) out.push_back(fmt::format("{}: {} is {}", (one / "key").text(), key, why));
    if (!checks_values) continue;
    const Path values = one / "values";
    std::size_t k = 0;
    for (const Value& value : get_array(expression, {"values"})) {
      const std::string_view text = value.is_string() ? json::as_view(value) : "";
      const Path value_at = values[k++];
      if (const std::string why = validation::check_label_value(text); !why.empty())
        out.push_back(fmt::format("{}: {} is invalid, {}", value_at.text(), text, why));
    }
  }
}

void placement(const Value& spec, const Path& at, Sentences& out) {
  const Path selector = at / "nodeSelector", affinity = at / "affinity", spread = at / "topologySpreadConstraints";
  const Path node_affinity = affinity / "nodeAffinity";
  for (const auto& [key, value] : get_object(spec, {"nodeSelector"}))
    if (const auto why = old_node_label({key.data(), key.size()}); !why.empty())
      out.push_back(fmt::format("{}: {}", Path::map_key(selector, {key.data(), key.size()}).text(), why));
  const Path required = node_affinity / "requiredDuringSchedulingIgnoredDuringExecution",
             preferred = node_affinity / "preferredDuringSchedulingIgnoredDuringExecution";
  if (const Value* terms = json::find(spec, {"affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution"}))
    node_terms_warnings(*terms, required / "nodeSelectorTerms", out);
  std::size_t i = 0;
  for (const Value& term : get_array(spec, {"affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution"})) {
    const Path one = preferred[i++];
    if (const Value* preference = json::find(term, "preference")) node_term(*preference, true, one / "preference", out);
  }
  i = 0;
  for (const Value& constraint : get_array(spec, {"topologySpreadConstraints"})) {
    const Path one = spread[i++];
    const std::string_view key = get_string(constraint, {"topologyKey"});
    if (const auto why = old_node_label(key); !why.empty())
      out.push_back(fmt::format("{}: {} is {}", (one / "topologyKey").text(), key, why));
    if (json::find(constraint, "labelSelector") == nullptr)
      out.push_back(fmt::format("{}: a null labelSelector results in matching no pod", (one / "labelSelector").text()));
  }
}

void old_annotations(const Value& pod, const Path& at, Sentences& out) {
  static constexpr std::pair<std::string_view, std::string_view> kOld[] = {
      {"scheduler.alpha.kubernetes.io/critical-pod",
       "means priorityClassName system-cluster-critical in kube-system here, and the descheduler spares the pod; Kubernetes ignores it "
       "since v1.16: use the \"priorityClassName\" field instead"},
      {"security.alpha.kubernetes.io/sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"},
      {"security.alpha.kubernetes.io/unsafe-sysctls", "non-functional in v1.11+; use the \"sysctls\" field instead"}};
  for (const auto& [key, instead] : kOld) {
    if (json::find(pod, {"metadata", "annotations", key}) == nullptr) continue;
    // Where it does what its author wants there is nothing to warn of (SPEC C1).
    const bool acts = key == kOld[0].first && get_string(pod, {"metadata", "namespace"}) == "kube-system";
    if (!acts) out.push_back(fmt::format("{}: {}", Path::map_key(at, key).text(), instead));
  }
}

void volumes(const Value& spec, const Path& spec_at, Sentences& out) {
  static constexpr std::array<std::array<std::string_view, 3>, 9> kOld = {
      {{"photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"},
       {"gitRepo", "gitRepo", "deprecated in v1.11, and disabled by default in v1.33+"},
       {"scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"},
       {"flocker", "flocker", "deprecated in v1.22, non-functional in v1.25+"},
       {"storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"},
       {"quobyte", "quobyte", "deprecated in v1.22, non-functional in v1.25+"},
       {"glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"},
       {"cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"},
       {"rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"}}};
  const Path at = spec_at / "volumes";
  std::size_t i = 0;
  for (const Value& volume : get_array(spec, {"volumes"})) {
    const Path one = at[i++];
    for (const auto& [field, shown, since] : kOld)
      if (json::find(volume, field) != nullptr) out.push_back(fmt::format("{}: {}", (one / shown).text(), since));
    if (const Value* claim = json::find(volume, {"ephemeral", "volumeClaimTemplate", "spec"})) {
      const Path ephemeral = one / "ephemeral";
      const Path claim_at = ephemeral / "volumeClaimTemplate";
      claim_warnings(*claim, claim_at / "spec", out);
    }
  }
}

/// The files of one volume, in their order, and which of them stand in each other's way: the same path, or one below the other.
class VirtualPaths {
 public:
  VirtualPaths(std::string_view volume, std::string description, Sentences& out)
      : volume_(volume), description_(std::move(description)), out_(out) {}

  void add(std::string_view given, const std::string& source) {
    const std::string path(given.substr(0, given.find_last_not_of('/') + 1));
    if (path.empty()) return;
    std::string shown = go_quote(path);
    if (!source.empty()) shown += fmt::format(" ({})", source);
    for (const std::size_t other : in_the_way_of(path)) {
      if (out_.size() >= kEnoughSentences) return;
      out_.push_back(fmt::format("volume {} ({}): overlapping paths: {} with {}", go_quote(volume_), description_, shown, shown_[other]));
    }
    by_path_[path].push_back(shown_.size());
    shown_.push_back(std::move(shown));
  }
  void add_all(const json::Array& items, const std::string& source) {
    for (const Value& item : items) add(get_string(item, {"path"}), source);
  }

 private:
  [[nodiscard]] std::vector<std::size_t> in_the_way_of(const std::string& path) const {
    std::vector<std::size_t> found;
    const auto take = [&](const std::vector<std::size_t>& some) { found.insert(found.end(), some.begin(), some.end()); };
    for (std::size_t end = path.find('/'); end != std::string::npos; end = path.find('/', end + 1))
      if (const auto above = by_path_.find(path.substr(0, end)); above != by_path_.end()) take(above->second);
    if (const auto same = by_path_.find(path); same != by_path_.end()) take(same->second);
    const std::string folder = path + '/';
    for (auto below = by_path_.lower_bound(folder); below != by_path_.end() && below->first.starts_with(folder); ++below) {
      if (found.size() >= kEnoughSentences) break;
      take(below->second);
    }
    std::ranges::sort(found);
    return found;
  }

  std::string_view volume_;
  std::string description_;
  Sentences& out_;
  std::map<std::string, std::vector<std::size_t>> by_path_;  ///< Numbers in shown_.
  std::vector<std::string> shown_;
};

void projected_paths(const Value& volume, std::string_view name, Sentences& out) {
  VirtualPaths paths(name, "Projected", out);
  for (const Value& source : get_array(volume, {"projected", "sources"})) {
    if (const auto* object = source.if_object(); object == nullptr || object->empty()) {
      out.push_back(fmt::format("volume {} (Projected) has no sources provided", go_quote(name)));
    } else if (const auto& keys = get_array(source, {"configMap", "items"}); !keys.empty()) {
      paths.add_all(keys, "ConfigMap " + go_quote(get_string(source, {"configMap", "name"})));
    } else if (const auto& secret = get_array(source, {"secret", "items"}); !secret.empty()) {
      paths.add_all(secret, "Secret " + go_quote(get_string(source, {"secret", "name"})));
    } else if (const auto& fields = get_array(source, {"downwardAPI", "items"}); !fields.empty()) {
      paths.add_all(fields, "DownwardAPI");
    } else if (json::find(source, "serviceAccountToken") != nullptr) {
      paths.add(get_string(source, {"serviceAccountToken", "path"}), "ServiceAccountToken");
    } else if (const Value* bundle = json::find(source, "clusterTrustBundle")) {
      const char* by = json::find(*bundle, "name") != nullptr ? "name" : "signerName";
      paths.add(get_string(*bundle, {"path"}), "ClusterTrustBundle " + go_quote(get_string(*bundle, {by})));
    } else if (const Value* certificate = json::find(source, "podCertificate")) {
      paths.add(get_string(*certificate, {"certificateChainPath"}), "PodCertificate chain");
      paths.add(get_string(*certificate, {"keyPath"}), "PodCertificate key");
      paths.add(get_string(*certificate, {"credentialBundlePath"}), "PodCertificate credential bundle");
    }
  }
}

/// Of two files of a volume that stand in each other's way, one is lost or neither can be made.
void overlapping_paths(const Value& spec, Sentences& out) {
  for (const Value& volume : get_array(spec, {"volumes"})) {
    const std::string_view name = get_string(volume, {"name"});
    VirtualPaths(name, "ConfigMap " + go_quote(get_string(volume, {"configMap", "name"})), out)
        .add_all(get_array(volume, {"configMap", "items"}), "");
    VirtualPaths(name, "Secret " + go_quote(get_string(volume, {"secret", "secretName"})), out)
        .add_all(get_array(volume, {"secret", "items"}), "");
    VirtualPaths(name, "DownwardAPI", out).add_all(get_array(volume, {"downwardAPI", "items"}), "");
    projected_paths(volume, name, out);
  }
}

/// Entries of `list` whose `key` was there before.
void repeated(const Value& spec, std::string_view list, std::string_view key, const Path& spec_at, Sentences& out) {
  const Path at = spec_at / list;
  std::set<std::string_view> seen;
  std::size_t i = 0;
  for (const Value& entry : get_array(spec, {list})) {
    const Path one = at[i++];
    const std::string_view text = get_string(entry, {key});
    if (!seen.insert(text).second) out.push_back(fmt::format("{}: duplicate {} \"{}\"", (one / key).text(), key, text));
  }
}

void container(const Value& container, const Path& at, Sentences& out) {
  const Path resources = at / "resources", env = at / "env";
  for (const char* name : {"memory", "ephemeral-storage"})
    for (const char* list : {"limits", "requests"})
      if (const Value* amounts = json::find(container, {"resources", list})) fractional_bytes(*amounts, name, resources / list, out);
  std::set<std::string_view> seen;
  std::size_t i = 0;
  for (const Value& variable : get_array(container, {"env"})) {
    const Path one = env[i++];
    const std::string_view name = get_string(variable, {"name"}), value = get_string(variable, {"value"});
    if (seen.insert(name).second) continue;
    // A value that builds on the earlier one of the same name is meant so.
    const std::string reference = fmt::format("$({})", name);
    if (json::find(variable, "valueFrom") != nullptr || value == reference || value.find(reference) == std::string_view::npos)
      out.push_back(fmt::format("{}: hides previous definition of \"{}\", which may be dropped when using apply", one.text(), name));
  }
}

struct SeenPort {
  std::string at;
  std::string host_ip;
  std::int64_t host_port;
};

/// Ports of all containers share the pod's address.
class Ports {
 public:
  void add(const Value& port, const std::string& at, Sentences& out) {
    const std::string ip(get_string(port, {"hostIP"}));
    const std::int64_t host = get_int(port, {"hostPort"}), number = get_int(port, {"containerPort"});
    const std::string_view protocol = get_string(port, {"protocol"});
    if (!ip.empty() && host == 0)
      out.push_back(fmt::format("{}: hostIP set without hostPort: {{Name:{} HostPort:0 ContainerPort:{} Protocol:{} HostIP:{}}}", at,
                                get_string(port, {"name"}), number, protocol, ip));
    auto& others = seen_[fmt::format("{}/{}", number, protocol)];
    for (const SeenPort& other : others) {
      // A thousand equal ports make half a million pairs, of which nobody is shown more than the first four thousand letters.
      if (out.size() >= kEnoughSentences) return;
      if (ip == other.host_ip && host == other.host_port)
        out.push_back(fmt::format("{}: duplicate port definition with {}", at, other.at));
      else if (host == 0 || other.host_port == 0)
        out.push_back(fmt::format("{}: overlapping port definition with {}", at, other.at));
      else if (host == other.host_port && ip.empty() != other.host_ip.empty())
        out.push_back(fmt::format("{}: dangerously ambiguous port definition with {}", at, other.at));
    }
    others.push_back({at, ip, host});
  }

 private:
  std::map<std::string, std::vector<SeenPort>> seen_;
};

template <typename F>
void each_container(const Value& spec, const Path& at, F&& visit) {
  for (const char* list : {"initContainers", "containers", "ephemeralContainers"}) {
    const Path list_at = at / list;
    std::size_t i = 0;
    for (const Value& one : get_array(spec, {list})) visit(one, list_at[i++]);
  }
}

void ports(const Value& spec, const Path& at, Sentences& out) {
  Ports seen;
  std::map<std::string_view, std::string> names;
  Sentences names_out;
  each_container(spec, at, [&](const Value& one, const Path& here) {
    const Path list = here / "ports";
    std::size_t i = 0;
    for (const Value& port : get_array(one, {"ports"})) {
      const std::string place = list[i++].text();
      seen.add(port, place, out);
      const std::string_view name = get_string(port, {"name"});
      if (name.empty()) continue;
      const auto [other, is_new] = names.try_emplace(name, place);
      if (!is_new)
        names_out.push_back(fmt::format("{}: duplicate port name \"{}\" with {}, services and probes that select ports by name will use {}",
                                        place, name, other->second, other->second));
    }
  });
  std::ranges::move(names_out, std::back_inserter(out));
}

void pod_affinity(const Value& spec, const Path& at, Sentences& out) {
  const Path affinity = at / "affinity";
  constexpr std::string_view kNoSelector = "a null labelSelector results in matching no pod";
  for (const char* kind : {"podAffinity", "podAntiAffinity"}) {
    const Path kind_at = affinity / kind;
    const Path required = kind_at / "requiredDuringSchedulingIgnoredDuringExecution",
               preferred = kind_at / "preferredDuringSchedulingIgnoredDuringExecution";
    std::size_t i = 0;
    for (const Value& term : get_array(spec, {"affinity", kind, "requiredDuringSchedulingIgnoredDuringExecution"})) {
      const Path one = required[i++];
      if (json::find(term, "labelSelector") == nullptr) out.push_back(fmt::format("{}: {}", (one / "labelSelector").text(), kNoSelector));
    }
    i = 0;
    for (const Value& term : get_array(spec, {"affinity", kind, "preferredDuringSchedulingIgnoredDuringExecution"})) {
      const Path one = preferred[i++];
      const Path term_at = one / "podAffinityTerm";
      if (json::find(term, {"podAffinityTerm", "labelSelector"}) == nullptr)
        out.push_back(fmt::format("{}: {}", (term_at / "labelSelector").text(), kNoSelector));
    }
  }
}

}  // namespace

void pod_warnings(const Value& pod, const Path* at, Sentences& out) {
  const Path root("");
  const Path& base = at == nullptr ? root : *at;
  const Path spec_at = base / "spec", meta = base / "metadata";
  static const Value kNone = json::Object();
  const Value* found = json::find(pod, "spec");
  const Value& spec = found == nullptr ? kNone : *found;
  placement(spec, spec_at, out);
  old_annotations(pod, meta / "annotations", out);
  volumes(spec, spec_at, out);
  overlapping_paths(spec, out);
  repeated(spec, "hostAliases", "ip", spec_at, out);
  repeated(spec, "imagePullSecrets", "name", spec_at, out);
  const Path secrets = spec_at / "imagePullSecrets";
  std::size_t i = 0;
  for (const Value& secret : get_array(spec, {"imagePullSecrets"})) {
    const Path one = secrets[i++];
    if (get_string(secret, {"name"}).empty()) out.push_back(fmt::format("{}: invalid empty name \"\"", (one / "name").text()));
  }
  if (const Value* overhead = json::find(spec, "overhead"))
    for (const char* name : {"memory", "ephemeral-storage"}) fractional_bytes(*overhead, name, spec_at / "overhead", out);
  each_container(spec, spec_at, [&](const Value& one, const Path& here) { container(one, here, out); });
  ports(spec, spec_at, out);
  if (get_int(spec, {"terminationGracePeriodSeconds"}) < 0)
    out.push_back(fmt::format("{}: must be >= 0; negative values are invalid and will be treated as 1",
                              (spec_at / "terminationGracePeriodSeconds").text()));
  pod_affinity(spec, spec_at, out);
}

void claim_warnings(const Value& spec, const Path& at, Sentences& out) {
  const Path resources = at / "resources";
  for (const char* list : {"requests", "limits"})
    if (const Value* amounts = json::find(spec, {"resources", list})) fractional_bytes(*amounts, "storage", resources / list, out);
}

void node_terms_warnings(const Value& selector, const Path& at, Sentences& out) {
  std::size_t i = 0;
  for (const Value& term : get_array(selector, {"nodeSelectorTerms"})) node_term(term, false, at[i++], out);
}

std::string_view old_node_label(std::string_view key) {
  static constexpr std::pair<std::string_view, std::string_view> kOld[] = {
      {"beta.kubernetes.io/arch", "deprecated since v1.14; use \"kubernetes.io/arch\" instead"},
      {"beta.kubernetes.io/os", "deprecated since v1.14; use \"kubernetes.io/os\" instead"},
      {"failure-domain.beta.kubernetes.io/region", "deprecated since v1.17; use \"topology.kubernetes.io/region\" instead"},
      {"failure-domain.beta.kubernetes.io/zone", "deprecated since v1.17; use \"topology.kubernetes.io/zone\" instead"},
      {"beta.kubernetes.io/instance-type", "deprecated since v1.17; use \"node.kubernetes.io/instance-type\" instead"},
      {"app.kubernetes.io/created-by", "deprecated since v1.9"},
      {"scheduler.alpha.kubernetes.io/preferAvoidPods", "deprecated since v1.22; use Taints and Tolerations instead"},
      {"node-role.kubernetes.io/master", "use \"node-role.kubernetes.io/control-plane\" instead"}};
  const auto found = std::ranges::find(kOld, key, &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(kOld) ? std::string_view() : found->second;
}

}  // namespace berth::model
