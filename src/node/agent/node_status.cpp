#include "node/agent/node_status.h"

#include "model/topology_labels.h"

namespace berth::node::agent {
namespace {

constexpr std::size_t kMaxImages = 50;        // nodeStatusMaxImages
constexpr std::size_t kMaxNamesPerImage = 5;  // MaxNamesPerImageInNodeStatus

#if defined(__aarch64__)
constexpr const char* kArchitecture = "arm64";
#else
constexpr const char* kArchitecture = "amd64";
#endif

json::Object resource_object(const eviction::ResourceList& resources) {
  json::Object out;
  for (const auto& [name, quantity] : resources) out[name] = quantity.to_string();
  return out;
}

}  // namespace

json::Value make_node_status(const NodeFacts& facts, ConditionTimes& times, TimePoint now) {
  json::Array conditions;
  const auto add = [&](std::string_view type, bool is, std::string_view reason, std::string_view message) {
    auto& [status, transition] = times[std::string(type)];
    const std::string text = is ? "True" : "False";
    if (status != text) status = text, transition = now;
    conditions.push_back(json::Object{{"type", type},
                                      {"status", text},
                                      {"reason", reason},
                                      {"message", message},
                                      {"lastHeartbeatTime", format_rfc3339(now)},
                                      {"lastTransitionTime", format_rfc3339(transition)}});
  };
  const auto under = [&](eviction::NodeCondition condition) {
    return std::ranges::find(facts.pressure, condition) != facts.pressure.end();
  };
  const bool memory = under(eviction::NodeCondition::kMemoryPressure), disk = under(eviction::NodeCondition::kDiskPressure),
             pid = under(eviction::NodeCondition::kPidPressure);
  add("MemoryPressure", memory, memory ? "KubeletHasInsufficientMemory" : "KubeletHasSufficientMemory",
      memory ? "kubelet has insufficient memory available" : "kubelet has sufficient memory available");
  add("DiskPressure", disk, disk ? "KubeletHasDiskPressure" : "KubeletHasNoDiskPressure",
      disk ? "kubelet has disk pressure" : "kubelet has no disk pressure");
  add("PIDPressure", pid, pid ? "KubeletHasInsufficientPID" : "KubeletHasSufficientPID",
      pid ? "kubelet has insufficient PID available" : "kubelet has sufficient PID available");
  const bool ready = facts.not_ready.empty();
  std::string why = fmt::format("{}", fmt::join(facts.not_ready, ", "));
  // Several errors are shown as Go's aggregate of them.
  if (facts.not_ready.size() > 1) why = "[" + why + "]";
  add("Ready", ready, ready ? "KubeletReady" : "KubeletNotReady", ready ? "kubelet is posting ready status" : why);
  json::Object status;
  status["capacity"] = resource_object(facts.capacity);
  status["allocatable"] = resource_object(facts.allocatable);
  status["conditions"] = std::move(conditions);
  status["addresses"] = json::Array{json::Object{{"type", "InternalIP"}, {"address", facts.address}},
                                    json::Object{{"type", "Hostname"}, {"address", facts.hostname}}};
  status["daemonEndpoints"] = json::Object{{"kubeletEndpoint", json::Object{{"Port", facts.port}}}};
  status["nodeInfo"] = json::Object{{"machineID", facts.machine.machine_id},
                                    {"systemUUID", facts.machine.system_uuid},
                                    {"bootID", facts.machine.boot_id},
                                    {"kernelVersion", facts.machine.kernel_version},
                                    {"osImage", facts.machine.os_image},
                                    {"containerRuntimeVersion", facts.runtime_version},
                                    {"kubeletVersion", facts.kubelet_version},
                                    {"kubeProxyVersion", ""},
                                    {"operatingSystem", "linux"},
                                    {"architecture", kArchitecture}};
  if (facts.swap_bytes > 0) status["nodeInfo"].as_object()["swap"] = json::Object{{"capacity", facts.swap_bytes}};
  status["declaredFeatures"] = json::Array{"InPlacePodLevelResourcesVerticalScaling", "InPlacePodVerticalScalingInitContainers",
                                           "RestartAllContainersOnContainerExits"};
  status["images"] = facts.images;
  if (facts.volumes_in_use) status["volumesInUse"] = json::Array(facts.volumes_in_use->begin(), facts.volumes_in_use->end());
  return status;
}

std::vector<std::string> condition_events(const ConditionTimes& before, const ConditionTimes& after) {
  struct Words {
    const char *type, *when_true, *when_false;
  };
  static constexpr Words kWords[] = {{"MemoryPressure", "NodeHasInsufficientMemory", "NodeHasSufficientMemory"},
                                     {"DiskPressure", "NodeHasDiskPressure", "NodeHasNoDiskPressure"},
                                     {"PIDPressure", "NodeHasInsufficientPID", "NodeHasSufficientPID"},
                                     {"Ready", "NodeReady", "NodeNotReady"}};
  std::vector<std::string> out;
  for (const Words& words : kWords) {
    const auto now = after.find(words.type), then = before.find(words.type);
    if (now == after.end() || (then != before.end() && then->second.first == now->second.first)) continue;
    out.emplace_back(now->second.first == "True" ? words.when_true : words.when_false);
  }
  return out;
}

json::Object node_labels(const std::string& name, const std::map<std::string, std::string>& own) {
  json::Object labels{{"kubernetes.io/hostname", name},
                      {"kubernetes.io/os", "linux"},
                      {"kubernetes.io/arch", kArchitecture},
                      {"beta.kubernetes.io/os", "linux"},
                      {"beta.kubernetes.io/arch", kArchitecture}};
  for (const auto& [key, value] : own) labels[key] = value;
  model::complete_topology_labels(labels);
  return labels;
}

json::Array node_images(const json::Value& listed) {
  struct Image {
    std::int64_t bytes = 0;
    json::Array names;
  };
  std::vector<Image> images;
  for (const json::Value& entry : json::get_array(listed, {"images"})) {
    Image image;
    const std::string_view size = json::get_string(entry, {"size"});
    std::from_chars(size.data(), size.data() + size.size(), image.bytes);
    for (const std::string_view list : {"repo_digests", "repo_tags"})
      for (const json::Value& name : json::get_array(entry, {list}))
        if (image.names.size() < kMaxNamesPerImage) image.names.push_back(name);
    if (!image.names.empty()) images.push_back(std::move(image));
  }
  std::ranges::stable_sort(images, std::greater<>{}, &Image::bytes);
  if (images.size() > kMaxImages) images.resize(kMaxImages);
  json::Array out;
  for (Image& image : images) out.push_back(json::Object{{"names", std::move(image.names)}, {"sizeBytes", image.bytes}});
  return out;
}

std::string plain_version(std::string_view version) {
  if (version.starts_with('v')) version.remove_prefix(1);
  std::size_t end = 0, dots = 0;
  while (end < version.size() &&
         (std::isdigit(static_cast<unsigned char>(version[end])) != 0 ||
          (version[end] == '.' && end + 1 < version.size() && std::isdigit(static_cast<unsigned char>(version[end + 1])) != 0)))
    dots += version[end++] == '.' ? 1 : 0;
  const bool is_semantic = dots == 2 && end < version.size() && (version[end] == '-' || version[end] == '+');
  return std::string(is_semantic || end == 0 ? version : version.substr(0, end));
}

}  // namespace berth::node::agent
