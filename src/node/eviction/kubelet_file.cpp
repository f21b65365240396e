// A node's configuration file as the role that starts the node reads it: every mistake with its place.
#include "base/config_arguments.h"
#include "node/eviction/kubelet_config.h"
#include "node/eviction/policies.h"
#include "node/eviction/statement_faults.h"

namespace berth::node::eviction {
namespace {

using config::Reader;

/// OpenShift's NodeConfig (legacyconfig/v1). Only kubeletArguments acts.
constexpr std::string_view kNodeConfigFields[] = {"kind",
                                                  "apiVersion",
                                                  "kubeletArguments",
                                                  "proxyArguments",
                                                  "nodeName",
                                                  "nodeIP",
                                                  "servingInfo",
                                                  "masterKubeConfig",
                                                  "masterClientConnectionOverrides",
                                                  "dnsDomain",
                                                  "dnsIP",
                                                  "dnsBindAddress",
                                                  "dnsNameservers",
                                                  "dnsRecursiveResolvConf",
                                                  "networkPluginName",
                                                  "networkConfig",
                                                  "volumeDirectory",
                                                  "imageConfig",
                                                  "allowDisabledDocker",
                                                  "podManifestConfig",
                                                  "authConfig",
                                                  "dockerConfig",
                                                  "iptablesSyncPeriod",
                                                  "enableUnidling",
                                                  "volumeConfig"};

/// The field that a message of the kubelet's decoder names ("… field KubeletConfiguration.maxPods of type int32"); empty when none.
std::string field_in(std::string_view message) {
  constexpr std::string_view kMark = "KubeletConfiguration.";
  const auto at = message.find(kMark);
  if (at == std::string_view::npos) return {};
  message.remove_prefix(at + kMark.size());
  return std::string(message.substr(0, message.find(' ')));
}

KubeletSettings read_node_config(const Reader& root) {
  KubeletSettings settings;
  apply_kubelet_defaults(settings);
  root.only(kNodeConfigFields, "kubeletArguments", kubelet_flags());
  constexpr std::string_view kKinds[] = {"NodeConfig"}, kVersions[] = {"v1"};
  root.expect_kind(kKinds, kVersions);
  const Reader arguments = root.field("kubeletArguments");
  for (const auto& [name, argument] : read_arguments(arguments)) {
    const Reader here = arguments.is_object() ? arguments.field(name) : arguments;
    if (const auto wrong = apply_kubelet_argument(settings, name, argument.values)) here.problem(*wrong);
    for (const std::string& warning : std::exchange(settings.warnings, {})) here.note(warning);
  }
  for (const StatementFault& fault : statement_faults(settings)) {
    Reader here = arguments.is_object() ? arguments.field(fault.flag) : arguments;
    if (here.is_present() && here.value()->is_array())
      for (const Reader& item : here.items())
        if (item.value()->is_string() && json::as_view(*item.value()).contains(fault.name)) here = item;
    if (!here.is_present()) continue;  // What the kubelet fills in.
    fault.is_refused ? here.problem(fault.what) : here.note(fault.what);
  }
  return settings;
}

/// A file without a kind that has a NodeConfig's field, or nearly one, or what stands below it.
bool is_node_config(const Reader& root, const std::string& kind) {
  if (!kind.empty()) return kind == "NodeConfig";
  return std::ranges::any_of(root.members(), [](const auto& member) {
    const bool is_own = member.first != "kind" && member.first != "apiVersion" && !config::nearest(member.first, kNodeConfigFields).empty();
    return is_own || std::ranges::find(kubelet_flags(), std::string_view(member.first)) != kubelet_flags().end();
  });
}

}  // namespace

KubeletSettings read_kubelet_fields(const Reader& at) {
  if (!at.expect_object()) return {};
  const KubeletFields fields = kubelet_fields();
  std::vector<std::string_view> known(fields.acting.begin(), fields.acting.end());
  known.insert(known.end(), fields.inert.begin(), fields.inert.end());
  known.insert(known.end(), {"kind", "apiVersion"});
  at.only(known);
  for (const std::string_view name : fields.acting) static_cast<void>(at.field(name));
  auto settings = read_kubelet_configuration(*at.value());
  if (!settings) {
    const std::string field = field_in(settings.error());
    field.empty() ? at.problem(settings.error()) : at.problem(field, settings.error());
    return {};
  }
  settings->warnings.clear();  // The reader says them, with their lines.
  for (const StatementFault& fault : statement_faults(*settings)) {
    const Reader map = at.field(fault.field);
    if (!map.has(fault.name)) continue;  // What the kubelet fills in.
    fault.is_refused ? map.problem(fault.name, fault.what) : map.note(fault.name, fault.what);
  }
  return std::move(*settings);
}

std::vector<std::string> start_errors(const KubeletSettings& settings) {
  if (auto wrong = validate(settings)) return {std::move(*wrong)};
  return all_reservation_errors(reservation_settings(settings));
}

Result<KubeletSettings> read_kubelet_file(std::string_view text, const std::string& file) {
  KubeletSettings out;
  std::vector<std::string> notes;
  const auto read = config::read_text(text, {.file = file, .notes = &notes}, [&](const Reader& root) {
    out = {};
    if (!root.expect_object()) return root.problem("must be a map of kind KubeletConfiguration, or OpenShift's NodeConfig");
    const std::string kind = root.string("kind");
    if (is_node_config(root, kind)) {
      out = read_node_config(root);
      return;
    }
    constexpr std::string_view kKinds[] = {"KubeletConfiguration", "NodeConfig"}, kVersions[] = {"kubelet.config.k8s.io/v1beta1"};
    if (kind.empty()) return root.problem("kind", fmt::format("required: {}", fmt::join(kKinds, " or ")));
    if (kind != kKinds[0])
      return root.problem("kind",
                          fmt::format("must be {}, is \"{}\"{}", fmt::join(kKinds, " or "), kind, config::suggestion(kind, kKinds)));
    if (!root.has("apiVersion")) root.problem("apiVersion", fmt::format("required: {}", kVersions[0]));
    root.expect_kind(kKinds, kVersions);
    out = read_kubelet_fields(root);
  });
  if (!read) return std::unexpected(read.error());
  out.warnings.insert(out.warnings.end(), notes.begin(), notes.end());
  return out;
}

}  // namespace berth::node::eviction
