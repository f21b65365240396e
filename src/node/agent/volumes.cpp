#include "node/agent/volumes.h"

#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "node/agent/atomic_writer.h"
#include "node/agent/cgroups.h"
#include "node/agent/environment.h"
#include "node/agent/mounts.h"
#include "node/agent/volume_ownership.h"

namespace berth::node::agent {
namespace {

namespace fs = std::filesystem;

/// All that the pieces below need.
struct Setup {
  PodContext& context;
  const ObjectSource& objects;
  const TokenSource& tokens;
  TokenCache& cache;
  TimePoint now;
  const DriverVolumes& drivers;
};

std::optional<std::int64_t> number_at(const json::Value& root, json::Path path) {
  const json::Value* value = json::find(root, path);
  return value && value->is_int64() ? std::optional(value->get_int64()) : std::nullopt;
}

std::optional<std::int64_t> fs_group(const PodContext& context) { return number_at(context.pod, {"spec", "securityContext", "fsGroup"}); }

/// Files of a ConfigMap or Secret: all keys, or those of `items` under their paths.
Result<void> add_object_files(const Setup& setup, const json::Value& source, ObjectKind kind, int default_mode, VolumeFiles& files) {
  std::string name(json::get_string(source, {"name"}));
  if (name.empty()) name = json::get_string(source, {"secretName"});
  const bool optional = json::get_bool(source, {"optional"});
  auto data = object_data(setup.context.spec.ns, name, kind, setup.objects);
  if (!data) {
    if (optional && data.error().code == ErrorCode::kNotFound) return {};
    return std::unexpected(data.error());
  }
  const json::Array& items = json::get_array(source, {"items"});
  if (items.empty())
    for (auto& [key, value] : *data) files[key] = {std::move(value), default_mode, {}};
  for (const json::Value& item : items) {
    const auto found = data->find(std::string(json::get_string(item, {"key"})));
    if (found == data->end()) {
      if (optional) continue;
      return fail(ErrorCode::kNotFound, fmt::format("references non-existent {} key: {}", kind == ObjectKind::kSecret ? "secret" : "config",
                                                    json::get_string(item, {"key"})));
    }
    files[std::string(json::get_string(item, {"path"}))] = {
        found->second, static_cast<int>(json::get_int(item, {"mode"}, default_mode)), {}};
  }
  return {};
}

Result<void> add_downward_files(const Setup& setup, const json::Value& source, int default_mode, VolumeFiles& files) {
  for (const json::Value& item : json::get_array(source, {"items"})) {
    const json::Value* resource = json::find(item, "resourceFieldRef");
    const auto value = resource ? resource_field(setup.context, "", *resource)
                                : downward_field(setup.context, json::get_string(item, {"fieldRef", "fieldPath"}));
    if (!value) return invalid(fmt::format("unsupported item of a downward API volume: {}", json::get_string(item, {"path"})));
    files[std::string(json::get_string(item, {"path"}))] = {*value, static_cast<int>(json::get_int(item, {"mode"}, default_mode)), {}};
  }
  return {};
}

Result<void> add_token(const Setup& setup, const json::Value& source, int mode, VolumeFiles& files) {
  const PodContext& context = setup.context;
  const TokenRequest request{context.spec.ns,
                             std::string(json::get_string(context.pod, {"spec", "serviceAccountName"}, "default")),
                             std::string(json::get_string(source, {"audience"})),
                             context.spec.name,
                             context.spec.uid,
                             json::get_int(source, {"expirationSeconds"}, 3600)};
  auto token = setup.cache.get(setup.tokens, request, setup.now);
  if (!token) return std::unexpected(token.error());
  VolumeFile file{std::move(token->text), mode, {}};
  // A token is its user's alone where the pod says who that is.
  file.owner = number_at(context.pod, {"spec", "securityContext", "runAsUser"});
  if (file.owner || fs_group(context)) file.mode = 0600;
  files[std::string(json::get_string(source, {"path"}))] = std::move(file);
  return {};
}

Result<void> add_projected(const Setup& setup, const json::Value& projected, VolumeFiles& files) {
  const int mode = static_cast<int>(json::get_int(projected, {"defaultMode"}, 0644));
  for (const json::Value& source : json::get_array(projected, {"sources"})) {
    Result<void> added;
    if (const json::Value* map = json::find(source, "configMap"))
      added = add_object_files(setup, *map, ObjectKind::kConfigMap, mode, files);
    else if (const json::Value* secret = json::find(source, "secret"))
      added = add_object_files(setup, *secret, ObjectKind::kSecret, mode, files);
    else if (const json::Value* downward = json::find(source, "downwardAPI"))
      added = add_downward_files(setup, *downward, mode, files);
    else if (const json::Value* token = json::find(source, "serviceAccountToken"))
      added = add_token(setup, *token, mode, files);
    else
      added = invalid("this kind of projected source is not supported by this node");
    if (!added) return added;
  }
  return {};
}

/// Mounts a tmpfs unless one is there; `bytes` 0: without a limit of its own.
Result<void> mount_memory(const std::string& directory, std::int64_t bytes) {
  struct stat own {
  }, above{};
  if (stat(directory.c_str(), &own) != 0 || stat((directory + "/..").c_str(), &above) != 0 || own.st_dev != above.st_dev) return {};
  const std::string options = bytes > 0 ? fmt::format("size={}", bytes) : std::string();
  if (::mount("tmpfs", directory.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, options.c_str()) != 0)
    return fail(ErrorCode::kInternal, fmt::format("{}: mounting tmpfs: {}", directory, std::strerror(errno)));
  return {};
}

Result<void> make_empty_dir(const PodContext& context, const std::string& directory, const json::Value& source) {
  std::error_code error;
  const bool is_new = fs::create_directories(directory, error);
  if (error) return fail(ErrorCode::kInternal, fmt::format("{}: {}", directory, error.message()));
  const std::string_view medium = json::get_string(source, {"medium"});
  if (medium.starts_with("HugePages")) return invalid("huge pages are not supported by this node");
  if (medium == "Memory") {
    const auto limit = model::Quantity::parse(json::get_string(source, {"sizeLimit"}));
    if (const auto mounted = mount_memory(directory, limit ? limit->value() : 0); !mounted) return mounted;
  }
  if (!is_new && medium != "Memory") return {};
  const mode_t mode = medium == "Memory" ? 01777 : 0777;  // A tmpfs begins with the sticky bit, and the kubelet leaves it.
  ::chmod(directory.c_str(), mode);
  if (const auto group = fs_group(context); group && ::chown(directory.c_str(), static_cast<uid_t>(-1), static_cast<gid_t>(*group)) == 0)
    ::chmod(directory.c_str(), mode | 02000);
  return {};
}

Result<void> check_host_path(const json::Value& source) {
  const std::string path(json::get_string(source, {"path"}));
  const std::string_view type = json::get_string(source, {"type"});
  std::error_code error;
  const auto wrong = [&](std::string_view what) { return invalid(fmt::format("hostPath type check failed: {} is not a {}", path, what)); };
  if (type == "DirectoryOrCreate" && !fs::exists(path, error)) {
    fs::create_directories(path, error);
    if (error) return fail(ErrorCode::kInternal, fmt::format("{}: {}", path, error.message()));
    ::chmod(path.c_str(), 0755);
  }
  if (type == "FileOrCreate" && !fs::exists(path, error)) {
    std::ofstream(path).flush();
    ::chmod(path.c_str(), 0644);
  }
  if (type.starts_with("Directory") && !fs::is_directory(path, error)) return wrong("directory");
  if (type.starts_with("File") && !fs::is_regular_file(path, error)) return wrong("file");
  if (type == "Socket" && !fs::is_socket(path, error)) return wrong("socket file");
  if (type == "CharDevice" && !fs::is_character_file(path, error)) return wrong("character device");
  if (type == "BlockDevice" && !fs::is_block_file(path, error)) return wrong("block device");
  return {};
}

/// What a driver mounts.
Result<PlacedVolume> place_by_driver(const Setup& setup, const csi::PodVolume& volume) {
  if (!setup.drivers) return invalid("volumes of CSI drivers are not supported by this node");
  auto placed = setup.drivers(volume);
  if (placed) placed->is_drivers = true;
  return placed;
}

/// A claim: what its bound volume is on this machine.
Result<PlacedVolume> place_claim(const Setup& setup, const std::string& name, bool read_only, std::string_view volume_name) {
  const auto claim = setup.objects.claim(setup.context.spec.ns, name);
  if (!claim) {
    if (claim.error().code == ErrorCode::kNotFound)
      return fail(ErrorCode::kNotFound,
                  fmt::format("error processing PVC {}/{}: failed to fetch PVC from API server: persistentvolumeclaims \"{}\" not found",
                              setup.context.spec.ns, name, name));
    return std::unexpected(claim.error());
  }
  const std::string bound(json::get_string(*claim, {"spec", "volumeName"}));
  if (bound.empty() || json::get_string(*claim, {"status", "phase"}) != "Bound")
    return invalid(fmt::format("error processing PVC {}/{}: PVC is not bound", setup.context.spec.ns, name));
  const auto volume = setup.objects.persistent_volume(bound);
  if (!volume) return std::unexpected(volume.error());
  if (json::get_string(*volume, {"spec", "claimRef", "uid"}) != json::get_string(*claim, {"metadata", "uid"}))
    return invalid(fmt::format("error processing PVC {}/{}: PV {} is not bound to it", setup.context.spec.ns, name, bound));
  if (json::find(*volume, {"spec", "csi"}) != nullptr) {
    csi::PodVolume wanted{setup.context.pod, std::string(volume_name)};
    wanted.persistent_volume = &*volume;
    wanted.claim = &*claim;
    wanted.is_read_only = read_only;
    wanted.fs_group = fs_group(setup.context);
    return place_by_driver(setup, wanted);
  }
  if (json::get_string(*volume, {"spec", "volumeMode"}) == "Block") return invalid("block volumes are not supported by this node");
  PlacedVolume placed;
  placed.read_only = read_only;
  if (const json::Value* host = json::find(*volume, {"spec", "hostPath"})) {
    if (const auto checked = check_host_path(*host); !checked) return std::unexpected(checked.error());
    placed.host_path = json::get_string(*host, {"path"});
    return placed;
  }
  if (const json::Value* local = json::find(*volume, {"spec", "local"})) {
    placed.host_path = json::get_string(*local, {"path"});
    std::error_code error;
    if (!fs::exists(placed.host_path, error)) return invalid(fmt::format("path \"{}\" does not exist", placed.host_path));
    // Once a pod: later looks must not walk a big volume again.
    const auto group = fs_group(setup.context);
    const std::string mark = setup.context.pod_directory + "/owned-" + name;
    if (group && !read_only && !fs::exists(mark, error)) {
      give_to_group(placed.host_path, *group, keeps_owner_where_root_has_it(setup.context.pod));
      std::ofstream(mark).flush();
    }
    return placed;
  }
  return invalid(fmt::format("volume {}: only hostPath, local and CSI volumes are supported by this node", bound));
}

Result<PlacedVolume> place_files(const Setup& setup, const json::Value& volume, const std::string& name) {
  VolumeFiles files;
  Result<void> added = invalid("this kind of volume is not supported by this node");
  const char* plugin = "";
  bool in_memory = false;
  const auto mode = [](const json::Value& source) { return static_cast<int>(json::get_int(source, {"defaultMode"}, 0644)); };
  if (const json::Value* map = json::find(volume, "configMap")) {
    plugin = "configmap";
    added = add_object_files(setup, *map, ObjectKind::kConfigMap, mode(*map), files);
  } else if (const json::Value* secret = json::find(volume, "secret")) {
    plugin = "secret", in_memory = true;
    added = add_object_files(setup, *secret, ObjectKind::kSecret, mode(*secret), files);
  } else if (const json::Value* downward = json::find(volume, "downwardAPI")) {
    plugin = "downward-api";
    added = add_downward_files(setup, *downward, mode(*downward), files);
  } else if (const json::Value* projected = json::find(volume, "projected")) {
    plugin = "projected", in_memory = true;
    added = add_projected(setup, *projected, files);
  }
  if (!added) return std::unexpected(added.error());
  const std::string directory = fmt::format("{}/volumes/kubernetes.io~{}/{}", setup.context.pod_directory, plugin, name);
  std::error_code error;
  fs::create_directories(directory, error);
  // Secrets and tokens never touch the disk.
  if (in_memory)
    if (const auto mounted = mount_memory(directory, 0); !mounted) return std::unexpected(mounted.error());
  if (const auto written = write_volume_files(directory, files, fs_group(setup.context)); !written) return std::unexpected(written.error());
  return PlacedVolume{directory, true};
}

bool is_mounted(const json::Value& pod, std::string_view volume) {
  for (const std::string_view list : {"containers", "initContainers", "ephemeralContainers"})
    for (const json::Value& container : json::get_array(pod, {"spec", list})) {
      for (const std::string_view mounts : {"volumeMounts", "volumeDevices"})
        for (const json::Value& mount : json::get_array(container, {mounts}))
          if (json::get_string(mount, {"name"}) == volume) return true;
      for (const json::Value& variable : json::get_array(container, {"env"}))
        if (json::get_string(variable, {"valueFrom", "fileKeyRef", "volumeName"}) == volume) return true;
    }
  return false;
}

Result<PlacedVolume> place_volume(const Setup& setup, const json::Value& volume, const std::string& name) {
  if (const json::Value* host = json::find(volume, "hostPath")) {
    if (const auto checked = check_host_path(*host); !checked) return std::unexpected(checked.error());
    return PlacedVolume{std::string(json::get_string(*host, {"path"})), false};
  }
  if (const json::Value* empty = json::find(volume, "emptyDir")) {
    const std::string directory = fmt::format("{}/volumes/kubernetes.io~empty-dir/{}", setup.context.pod_directory, name);
    if (const auto made = make_empty_dir(setup.context, directory, *empty); !made) return std::unexpected(made.error());
    return PlacedVolume{directory, false};
  }
  if (const std::string claim = claim_name(setup.context.pod, volume); !claim.empty())
    return place_claim(setup, claim, json::get_bool(volume, {"persistentVolumeClaim", "readOnly"}), name);
  if (const json::Value* source = json::find(volume, "csi")) {
    csi::PodVolume wanted{setup.context.pod, name};
    wanted.source = source;
    wanted.is_read_only = json::get_bool(*source, {"readOnly"});
    wanted.fs_group = fs_group(setup.context);
    return place_by_driver(setup, wanted);
  }
  return place_files(setup, volume, name);
}

}  // namespace

Result<Token> TokenCache::get(const TokenSource& source, const TokenRequest& request, TimePoint now) {
  Entry& entry = entries_[fmt::format("{}/{}", request.audience, request.expiration_seconds)];
  const Duration life = entry.token.expires - entry.asked;
  if (!entry.token.text.empty() && now < entry.asked + life * 4 / 5 && now - entry.asked < std::chrono::hours(24)) return entry.token;
  auto fresh = source(request);
  if (!fresh) {
    // An API server that is away for a while does not take a good token away.
    if (!entry.token.text.empty() && now < entry.token.expires) return entry.token;
    return std::unexpected(fresh.error());
  }
  entry = {std::move(*fresh), now};
  return entry.token;
}

std::string claim_name(const json::Value& pod, const json::Value& volume) {
  if (const std::string_view name = json::get_string(volume, {"persistentVolumeClaim", "claimName"}); !name.empty())
    return std::string(name);
  if (json::find(volume, "ephemeral"))
    return fmt::format("{}-{}", json::get_string(pod, {"metadata", "name"}), json::get_string(volume, {"name"}));
  return {};
}

Result<void> set_up_volumes(PodContext& context, const ObjectSource& objects, const TokenSource& tokens, TokenCache& cache, TimePoint now,
                            const DriverVolumes& drivers) {
  const Setup setup{context, objects, tokens, cache, now, drivers};
  for (const json::Value& volume : json::get_array(context.pod, {"spec", "volumes"})) {
    const std::string name(json::get_string(volume, {"name"}));
    if (!is_mounted(context.pod, name)) continue;  // What no container looks at need not be there.
    if (json::find(volume, "image")) continue;     // Pulled and mounted with the containers that see it (PodWorker::place_image_volumes).
    auto placed = place_volume(setup, volume, name);
    // What is said of a driver names the step that failed.
    if (!placed && placed.error().message.starts_with("MountVolume.")) return std::unexpected(placed.error());
    if (!placed && !claim_name(context.pod, volume).empty())
      return fail(placed.error().code,
                  fmt::format("Unable to attach or mount volumes: unmounted volumes=[{0}], unattached volumes=[], failed to "
                              "process volumes=[{0}]: {1}",
                              name, placed.error().message));
    if (!placed)
      return fail(placed.error().code, fmt::format("MountVolume.SetUp failed for volume \"{}\" : {}", name, placed.error().message));
    context.volumes[name] = std::move(*placed);
  }
  return {};
}

Result<void> tear_down_volumes(const std::string& pod_directory) {
  unmount_below(pod_directory);
  // What is mounted is somebody's data: it must never be taken for the pod's own.
  if (const auto left = mount_points_below(read_small_file("/proc/self/mountinfo").value_or(""), pod_directory); !left.empty())
    return fail(ErrorCode::kInternal, fmt::format("{} is still mounted", left.front()));
  std::error_code error;
  fs::remove_all(pod_directory, error);
  if (error) return fail(ErrorCode::kInternal, fmt::format("{}: {}", pod_directory, error.message()));
  return {};
}

DiskUse disk_use(const std::string& path) {
  DiskUse use;
  struct stat root {};
  if (lstat(path.c_str(), &root) != 0) return use;
  std::error_code error;
  for (fs::recursive_directory_iterator it(path, fs::directory_options::skip_permission_denied, error), end; it != end;
       it.increment(error)) {
    if (error) break;
    struct stat info {};
    if (lstat(it->path().c_str(), &info) != 0) continue;
    if (info.st_dev != root.st_dev) {
      it.disable_recursion_pending();
      continue;
    }
    use.bytes += static_cast<std::uint64_t>(info.st_blocks) * 512;
    ++use.files;
  }
  return use;
}

}  // namespace berth::node::agent
