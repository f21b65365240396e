#include "node/csi/volume_records.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "base/log.h"
#include "node/agent/cgroups.h"
#include "node/agent/mounts.h"
#include "security/digest.h"

namespace berth::node::csi {
namespace {

namespace fs = std::filesystem;
constexpr const char* kRecord = "vol_data.json";

std::string csi_directory(const std::string& root) { return root + "/plugins/kubernetes.io/csi"; }
std::string devices_directory(const std::string& root) { return csi_directory(root) + "/volumeDevices"; }
/// A directory's name: what is qualified by a domain has a slash.
std::string escaped(std::string name) {
  for (std::size_t at = 0; (at = name.find('/', at)) != std::string::npos;) name[at] = '~';
  return name;
}
std::string parent(const std::string& path) { return fs::path(path).parent_path(); }
std::string block_record(const std::string& root, const VolumePlace& volume) {
  return fmt::format("{}/{}/data/{}", devices_directory(root), escaped(volume.name), kRecord);
}
std::string record_of_stage(const std::string& root, const VolumePlace& volume) {
  return volume.is_block ? block_record(root, volume) : parent(staging_path(root, volume)) + "/" + kRecord;
}

Result<void> make_directories(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return fail(ErrorCode::kInternal, fmt::format("{}: {}", path, error.message()));
  return {};
}

Result<void> write_record(const std::string& path, const json::Object& record) {
  if (auto made = make_directories(parent(path)); !made) return made;
  const std::string fresh = path + ".new", text = json::serialize(record);
  std::ofstream(fresh, std::ios::binary | std::ios::trunc) << text << std::flush;
  std::error_code error;
  if (agent::read_small_file(fresh) == text) fs::rename(fresh, path, error);
  if (agent::read_small_file(path) != text || error) return fail(ErrorCode::kInternal, path + ": cannot be written");
  return {};
}

bool is_mount_point(const std::string& path) {
  const auto below = agent::mount_points_below(agent::read_small_file("/proc/self/mountinfo").value_or(""), parent(path));
  return std::ranges::find(below, path) != below.end();
}

/// Takes away what is empty, a path after the other.
Result<void> remove_empty(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    if (is_mount_point(path)) return fail(ErrorCode::kUnavailable, path + " is still mounted");
    std::error_code error;
    fs::remove(path, error);
    if (error && error != std::errc::directory_not_empty) return fail(ErrorCode::kInternal, fmt::format("{}: {}", path, error.message()));
  }
  return {};
}

std::optional<json::Value> read_record(const std::string& path) {
  const auto text = agent::read_small_file(path);
  if (!text) return std::nullopt;
  auto record = json::parse(*text);
  if (record && !json::get_string(*record, {"driverName"}).empty() && !json::get_string(*record, {"volumeHandle"}).empty())
    return std::move(*record);
  log::warning("csi", "{} cannot be read: what it tells of is left where it is", path);
  return std::nullopt;
}

VolumePlace place_of(const json::Value& record, std::string name, bool is_block) {
  return {std::string(json::get_string(record, {"driverName"})), std::string(json::get_string(record, {"volumeHandle"})), std::move(name),
          is_block, json::get_string(record, {"volumeLifecycleMode"}) != "Ephemeral"};
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> out;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) out.push_back(entry.path().filename());
  std::ranges::sort(out);
  return out;
}

void find_published(const std::string& root, std::vector<FoundVolume>& out) {
  for (const auto& pod : names_in(root + "/pods")) {
    const std::string volumes = fmt::format("{}/pods/{}/volumes/kubernetes.io~csi", root, pod);
    for (const auto& entry : names_in(volumes))
      if (const auto record = read_record(fmt::format("{}/{}/{}", volumes, entry, kRecord))) {
        FoundVolume found{place_of(*record, std::string(json::get_string(*record, {"specVolID"}, entry)), false), pod};
        found.is_mounted = is_mount_point(target_path(root, found.volume, pod));
        out.push_back(std::move(found));
      }
  }
}

void find_devices(const std::string& root, std::vector<FoundVolume>& out) {
  const std::string devices = devices_directory(root);
  for (const auto& name : names_in(devices)) {
    const auto record = read_record(fmt::format("{}/{}/data/{}", devices, name, kRecord));
    if (!record) continue;
    const VolumePlace volume = place_of(*record, std::string(json::get_string(*record, {"specVolID"}, name)), true);
    std::error_code error;
    if (fs::exists(staging_path(root, volume), error)) out.push_back({volume, "", true});
    for (const auto& pod : names_in(fmt::format("{}/publish/{}", devices, escaped(volume.name))))
      out.push_back({volume, pod, is_mount_point(target_path(root, volume, pod))});
  }
}

}  // namespace

std::string target_path(const std::string& root, const VolumePlace& volume, const std::string& pod) {
  if (volume.is_block) return fmt::format("{}/publish/{}/{}", devices_directory(root), escaped(volume.name), pod);
  return fmt::format("{}/pods/{}/volumes/kubernetes.io~csi/{}/mount", root, pod, escaped(volume.name));
}

std::string staging_path(const std::string& root, const VolumePlace& volume) {
  if (volume.is_block) return fmt::format("{}/staging/{}", devices_directory(root), escaped(volume.name));
  return fmt::format("{}/{}/{}/globalmount", csi_directory(root), escaped(volume.driver), security::sha256_hex(volume.handle));
}

std::string attachment_name(const std::string& handle, const std::string& driver, const std::string& node) {
  return "csi-" + security::sha256_hex(handle + driver + node);
}

std::string ephemeral_handle(const std::string& pod, const std::string& name) { return "csi-" + security::sha256_hex(pod + name); }

Result<void> record_staged(const std::string& root, const VolumePlace& volume) {
  if (auto made = make_directories(staging_path(root, volume)); !made) return made;
  return write_record(record_of_stage(root, volume),
                      {{"driverName", volume.driver}, {"volumeHandle", volume.handle}, {"specVolID", volume.name}});
}

Result<void> record_published(const std::string& root, const VolumePlace& volume, const std::string& pod, const std::string& node) {
  const std::string target = target_path(root, volume, pod);
  if (auto made = make_directories(parent(target)); !made) return made;
  json::Object record{{"specVolID", volume.name},
                      {"volumeHandle", volume.handle},
                      {"driverName", volume.driver},
                      {"nodeName", node},
                      {"volumeLifecycleMode", volume.is_persistent ? "Persistent" : "Ephemeral"}};
  if (volume.is_persistent) record["attachmentID"] = attachment_name(volume.handle, volume.driver, node);
  return write_record(volume.is_block ? block_record(root, volume) : parent(target) + "/" + kRecord, record);
}

Result<void> forget_staged(const std::string& root, const VolumePlace& volume) {
  const std::string staging = staging_path(root, volume), record = record_of_stage(root, volume);
  std::vector<std::string> paths{staging, record, record + ".new", parent(record)};
  if (volume.is_block) paths.push_back(parent(parent(record)));
  return remove_empty(paths);
}

Result<void> forget_published(const std::string& root, const VolumePlace& volume, const std::string& pod) {
  const std::string target = target_path(root, volume, pod), directory = parent(target);
  if (!volume.is_block) return remove_empty({target, directory + "/" + kRecord, directory + "/" + kRecord + ".new", directory});
  if (auto removed = remove_empty({target, directory}); !removed) return removed;
  std::error_code error;
  if (fs::exists(directory, error) || fs::exists(staging_path(root, volume), error)) return {};
  return forget_staged(root, volume);  // Nobody staged it: what told of it goes with its last pod.
}

std::vector<FoundVolume> find_volumes(const std::string& root) {
  std::vector<FoundVolume> out;
  for (const auto& driver : names_in(csi_directory(root))) {
    if (driver == "volumeDevices") continue;
    for (const auto& hash : names_in(csi_directory(root) + "/" + driver))
      if (const auto record = read_record(fmt::format("{}/{}/{}/{}", csi_directory(root), driver, hash, kRecord)))
        out.push_back({place_of(*record, std::string(json::get_string(*record, {"specVolID"})), false), "", true});
  }
  find_published(root, out);
  find_devices(root, out);
  return out;
}

}  // namespace berth::node::csi
