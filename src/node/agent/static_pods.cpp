#include "node/agent/static_pods.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/log.h"
#include "model/schema.h"
#include "security/digest.h"

namespace berth::node::agent {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kMostManifestBytes = 10 << 20;  ///< As a kubelet's.

/// 128 bits of SHA-256 in hexadecimal digits, the length of the kubelet's static pod uids.
std::string hash_text(std::string_view text) { return security::sha256_hex(text).substr(0, 32); }

bool has_annotation(const json::Value& pod, std::string_view name) { return json::find(pod, {"metadata", "annotations", name}) != nullptr; }

}  // namespace

bool is_static_pod(const json::Value& pod) {
  const std::string_view source = json::get_string(pod, {"metadata", "annotations", kConfigSourceAnnotation});
  return !source.empty() && source != "api";
}

bool is_mirror_pod(const json::Value& pod) { return has_annotation(pod, kConfigMirrorAnnotation); }

Result<json::Value> static_pod(std::string_view manifest, const std::string& path, const std::string& node_name, TimePoint now) {
  auto parsed = json::parse_yaml_stream(manifest);
  if (!parsed) return invalid(fmt::format("{}: {}", path, parsed.error().message));
  if (parsed->size() != 1) return invalid(fmt::format("{}: a manifest must hold one v1 Pod, not {} documents", path, parsed->size()));
  json::Value pod = std::move(parsed->front());
  if (!pod.is_object() || json::get_string(pod, {"kind"}) != "Pod" || json::get_string(pod, {"apiVersion"}) != "v1")
    return invalid(path + ": a manifest must hold one v1 Pod");
  const model::KindInfo* kind = model::find_kind("", "v1", "Pod");
  model::DecodeReport report;
  if (const auto decoded = model::decode(*kind, pod, report); !decoded)
    return invalid(fmt::format("{}: {}", path, decoded.error().status(*kind).message));
  for (const std::string& field : report.unknown_fields) log::warning("node", "{}: unknown field \"{}\" is ignored", path, field);
  json::erase(pod, {"status"});
  json::Object& metadata = json::ensure_object(pod, {"metadata"});
  const std::string name(json::get_string(pod, {"metadata", "name"}));
  if (name.empty()) return invalid(path + ": the pod has no metadata.name");
  // Before anything is added: the same manifest on the same node is the same pod.
  const std::string given = std::string(json::get_string(pod, {"metadata", "uid"}));
  const auto may_name_folder = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-'; };
  if (given.size() > 64 || !std::ranges::all_of(given, may_name_folder))
    return invalid(fmt::format("{}: metadata.uid \"{}\": up to 64 letters, digits and dashes; it names the pod's folder", path, given));
  const std::string uid = given.empty() ? hash_text(fmt::format("{}\n{}\n{}", node_name, path, json::serialize(pod))) : given;
  metadata["uid"] = uid;
  metadata["name"] = name + "-" + node_name;
  if (json::get_string(pod, {"metadata", "namespace"}).empty()) metadata["namespace"] = "default";
  json::Object& annotations = json::ensure_object(pod, {"metadata", "annotations"});
  annotations[kConfigHashAnnotation] = uid;
  annotations[kConfigSourceAnnotation] = "file";
  annotations[kConfigSeenAnnotation] = format_rfc3339_micro(now);
  json::Object& spec = json::ensure_object(pod, {"spec"});
  spec["nodeName"] = node_name;
  // A static pod stays whatever becomes of its node.
  json::Value& tolerations = spec["tolerations"];
  if (!tolerations.is_array()) tolerations = json::Array{};
  tolerations.as_array().push_back(json::Object{{"operator", "Exists"}, {"effect", "NoExecute"}});
  model::apply_defaults(*kind, pod);
  if (const auto errors = model::validate_create(*kind, pod); !errors.empty())
    return invalid(fmt::format("{}: {}", path, errors.front().render()));
  for (const std::string_view list : {"configMap", "secret", "persistentVolumeClaim"})
    for (const json::Value& volume : json::get_array(pod, {"spec", "volumes"}))
      if (json::find(volume, list)) return invalid(fmt::format("{}: static pods may not reference {}s", path, list));
  return pod;
}

/// The files that are manifests, in order.
static std::vector<std::string> manifest_files(const std::string& path) {
  std::vector<std::string> files;
  std::error_code error;
  if (fs::is_directory(path, error)) {
    for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error))
      if (it->is_regular_file(error) && !it->path().filename().string().starts_with('.')) files.push_back(it->path());
  } else if (fs::is_regular_file(path, error)) {
    files.push_back(path);
  }
  std::ranges::sort(files);
  return files;
}

std::string manifest_signature(const std::string& path) {
  std::string out = "looked\n";
  for (const std::string& file : manifest_files(path)) {
    struct stat info {};
    if (::stat(file.c_str(), &info) == 0)
      out += fmt::format("{} {} {}.{}\n", file, info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
  }
  return out;
}

std::vector<json::Value> read_static_pods(const std::string& path, const std::string& node_name, TimePoint now,
                                          std::vector<std::string>& problems) {
  std::vector<json::Value> pods;
  for (const std::string& file : manifest_files(path)) {
    std::error_code error;
    if (fs::file_size(file, error) > kMostManifestBytes) {
      problems.push_back(fmt::format("{}: larger than a manifest may be ({} MiB)", file, kMostManifestBytes >> 20));
      continue;
    }
    std::ifstream in(file, std::ios::binary);
    std::stringstream text;
    text << in.rdbuf();
    auto pod = static_pod(text.str(), file, node_name, now);
    if (pod)
      pods.push_back(std::move(*pod));
    else
      problems.push_back(pod.error().message);
  }
  return pods;
}

json::Value mirror_pod(const json::Value& pod, const std::string& node_name, const std::string& node_uid) {
  json::Value mirror = pod;
  json::erase(mirror, {"status"});
  json::erase(mirror, {"metadata", "uid"});
  json::ensure_object(mirror, {"metadata", "annotations"})[kConfigMirrorAnnotation] =
      json::get_string(pod, {"metadata", "annotations", kConfigHashAnnotation});
  if (!node_uid.empty())
    json::ensure_object(mirror, {"metadata"})["ownerReferences"] =
        json::Array{json::Object{{"apiVersion", "v1"}, {"kind", "Node"}, {"name", node_name}, {"uid", node_uid}, {"controller", true}}};
  return mirror;
}

}  // namespace berth::node::agent
