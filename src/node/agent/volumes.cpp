#include "node/agent/volumes.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace berth::node::agent {
namespace {

namespace fs = std::filesystem;

std::string decode_base64(std::string_view text) {
  std::string out(text.size(), '\0');
  const int n = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()), reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (n < 0) return {};
  out.resize(static_cast<std::size_t>(n) - (text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0));
  return out;
}

struct File {
  std::string path, content;
  int mode = 0644;
};

/// A file name inside a volume: relative, and without a way out.
bool is_safe_name(std::string_view name) { return !name.empty() && !name.starts_with('/') && ("/" + std::string(name) + "/").find("/../") == std::string::npos; }

Result<void> write_files(const std::string& directory, const std::vector<File>& files) {
  std::error_code error;
  fs::create_directories(directory, error);
  for (const File& file : files) {
    if (!is_safe_name(file.path)) return fail(ErrorCode::kInvalid, fmt::format("path \"{}\" must be relative and stay within its volume", file.path));
    const std::string full = directory + "/" + file.path, fresh = full + ".berth-new";
    fs::create_directories(fs::path(full).parent_path(), error);
    {
      std::ofstream out(fresh, std::ios::binary | std::ios::trunc);
      out << file.content;
      if (!out.good()) return fail(ErrorCode::kInternal, fresh + ": cannot be written");
    }
    ::chmod(fresh.c_str(), static_cast<mode_t>(file.mode));
    fs::rename(fresh, full, error);  // Readers see the old or the new content, never a part.
    if (error) return fail(ErrorCode::kInternal, fmt::format("{}: {}", full, error.message()));
  }
  return {};
}

/// Files of a ConfigMap or Secret: all keys, or those of `items` under their paths.
Result<std::vector<File>> object_files(const PodContext& context, const json::Value& source, bool secret, const ObjectSource& objects, int default_mode) {
  std::string name(json::get_string(source, {"name"}));
  if (name.empty()) name = json::get_string(source, {"secretName"});
  const auto object = (secret ? objects.secret : objects.config_map)(context.spec.ns, name);
  std::vector<File> files;
  if (!object) {
    if (json::get_bool(source, {"optional"}) && object.error().code == ErrorCode::kNotFound) return files;
    return std::unexpected(object.error());
  }
  std::map<std::string, std::string> data;
  for (const auto& [key, value] : json::get_object(*object, {"data"}))
    if (value.is_string()) data[std::string(key)] = secret ? decode_base64(json::as_view(value)) : std::string(json::as_view(value));
  for (const auto& [key, value] : json::get_object(*object, {"binaryData"}))
    if (value.is_string()) data[std::string(key)] = decode_base64(json::as_view(value));
  const json::Array& items = json::get_array(source, {"items"});
  if (items.empty()) {
    for (auto& [key, value] : data) files.push_back({key, std::move(value), default_mode});
    return files;
  }
  for (const json::Value& item : items) {
    const auto found = data.find(std::string(json::get_string(item, {"key"})));
    if (found == data.end()) {
      if (json::get_bool(source, {"optional"})) continue;
      return fail(ErrorCode::kNotFound, fmt::format("references non-existent {} key: {}", secret ? "secret" : "config", json::get_string(item, {"key"})));
    }
    files.push_back({std::string(json::get_string(item, {"path"})), found->second, static_cast<int>(json::get_int(item, {"mode"}, default_mode))});
  }
  return files;
}

std::vector<File> downward_files(const PodContext& context, const json::Value& source, int default_mode) {
  std::vector<File> files;
  for (const json::Value& item : json::get_array(source, {"items"}))
    if (const auto value = downward_field(context, json::get_string(item, {"fieldRef", "fieldPath"})))
      files.push_back({std::string(json::get_string(item, {"path"})), *value, static_cast<int>(json::get_int(item, {"mode"}, default_mode))});
  return files;
}

Result<std::vector<File>> projected_files(const PodContext& context, const json::Value& projected, const ObjectSource& objects, const TokenSource& tokens) {
  std::vector<File> files;
  const int mode = static_cast<int>(json::get_int(projected, {"defaultMode"}, 0644));
  for (const json::Value& source : json::get_array(projected, {"sources"})) {
    Result<std::vector<File>> part = std::vector<File>{};
    if (const json::Value* map = json::find(source, "configMap")) part = object_files(context, *map, false, objects, mode);
    else if (const json::Value* secret = json::find(source, "secret")) part = object_files(context, *secret, true, objects, mode);
    else if (const json::Value* downward = json::find(source, "downwardAPI")) part = downward_files(context, *downward, mode);
    else if (const json::Value* token = json::find(source, "serviceAccountToken")) {
      const auto text = tokens(context.spec.ns, std::string(json::get_string(context.pod, {"spec", "serviceAccountName"}, "default")),
                               std::string(json::get_string(*token, {"audience"})), json::get_int(*token, {"expirationSeconds"}, 3600));
      if (!text) return std::unexpected(text.error());
      part = std::vector<File>{{std::string(json::get_string(*token, {"path"})), *text, mode}};
    }
    if (!part) return std::unexpected(part.error());
    files.insert(files.end(), part->begin(), part->end());
  }
  return files;
}

Result<void> make_empty_dir(const std::string& directory, const json::Value& source, const json::Value& pod) {
  std::error_code error;
  const bool is_new = fs::create_directories(directory, error);
  if (error) return fail(ErrorCode::kInternal, fmt::format("{}: {}", directory, error.message()));
  if (json::get_string(source, {"medium"}) == "Memory") {
    struct stat own {}, above {};
    if (stat(directory.c_str(), &own) == 0 && stat((directory + "/..").c_str(), &above) == 0 && own.st_dev == above.st_dev) {
      const auto limit = model::Quantity::parse(json::get_string(source, {"sizeLimit"}));
      const std::string options = limit ? fmt::format("size={}", limit->value()) : std::string();
      if (::mount("tmpfs", directory.c_str(), "tmpfs", 0, options.c_str()) != 0) return fail(ErrorCode::kInternal, fmt::format("{}: mounting tmpfs: {}", directory, std::strerror(errno)));
    }
  }
  if (is_new || json::get_string(source, {"medium"}) == "Memory") {
    ::chmod(directory.c_str(), 0777);
    if (const json::Value* group = json::find(pod, {"spec", "securityContext", "fsGroup"}); group && group->is_int64()) {
      if (::chown(directory.c_str(), static_cast<uid_t>(-1), static_cast<gid_t>(group->get_int64())) == 0) ::chmod(directory.c_str(), 02777);
    }
  }
  return {};
}

Result<void> make_host_path(const json::Value& source) {
  const std::string path(json::get_string(source, {"path"}));
  const std::string_view type = json::get_string(source, {"type"});
  std::error_code error;
  if (type == "DirectoryOrCreate") fs::create_directories(path, error);
  if (type == "FileOrCreate" && !fs::exists(path, error)) std::ofstream(path).flush();
  if (type == "Directory" && !fs::is_directory(path, error)) return fail(ErrorCode::kInvalid, fmt::format("hostPath type check failed: {} is not a directory", path));
  if (type == "File" && !fs::is_regular_file(path, error)) return fail(ErrorCode::kInvalid, fmt::format("hostPath type check failed: {} is not a file", path));
  return {};
}

}  // namespace

Result<void> set_up_volumes(PodContext& context, const std::string& pod_directory, const ObjectSource& objects, const TokenSource& tokens) {
  for (const json::Value& volume : json::get_array(context.pod, {"spec", "volumes"})) {
    const std::string name(json::get_string(volume, {"name"}));
    const auto place = [&](std::string_view plugin) { return fmt::format("{}/volumes/kubernetes.io~{}/{}", pod_directory, plugin, name); };
    const auto failed = [&](const Error& error) { return fail(error.code, fmt::format("MountVolume.SetUp failed for volume \"{}\" : {}", name, error.message)); };
    if (const json::Value* host = json::find(volume, "hostPath")) {
      if (const auto made = make_host_path(*host); !made) return failed(made.error());
      context.volumes[name] = json::get_string(*host, {"path"});
      continue;
    }
    if (const json::Value* empty = json::find(volume, "emptyDir")) {
      const std::string directory = place("empty-dir");
      if (const auto made = make_empty_dir(directory, *empty, context.pod); !made) return failed(made.error());
      context.volumes[name] = directory;
      continue;
    }
    Result<std::vector<File>> files = fail(ErrorCode::kInvalid, "this kind of volume is not supported by this node");
    std::string directory;
    const auto mode = [](const json::Value& source) { return static_cast<int>(json::get_int(source, {"defaultMode"}, 0644)); };
    if (const json::Value* map = json::find(volume, "configMap")) {
      directory = place("configmap");
      files = object_files(context, *map, false, objects, mode(*map));
    } else if (const json::Value* secret = json::find(volume, "secret")) {
      directory = place("secret");
      files = object_files(context, *secret, true, objects, mode(*secret));
    } else if (const json::Value* downward = json::find(volume, "downwardAPI")) {
      directory = place("downward-api");
      files = downward_files(context, *downward, mode(*downward));
    } else if (const json::Value* projected = json::find(volume, "projected")) {
      directory = place("projected");
      files = projected_files(context, *projected, objects, tokens);
    }
    if (!files) return failed(files.error());
    if (const auto written = write_files(directory, *files); !written) return failed(written.error());
    context.volumes[name] = directory;
  }
  return {};
}

Result<void> tear_down_volumes(const std::string& pod_directory) {
  std::error_code error;
  const fs::path volumes = fs::path(pod_directory) / "volumes" / "kubernetes.io~empty-dir";
  for (const auto& entry : fs::directory_iterator(volumes, error)) ::umount2(entry.path().c_str(), MNT_DETACH);
  error.clear();
  fs::remove_all(pod_directory, error);
  if (error) return fail(ErrorCode::kInternal, fmt::format("{}: {}", pod_directory, error.message()));
  return {};
}

DiskUse disk_use(const std::string& path) {
  DiskUse use;
  struct stat root {};
  if (lstat(path.c_str(), &root) != 0) return use;
  std::error_code error;
  for (fs::recursive_directory_iterator it(path, fs::directory_options::skip_permission_denied, error), end; it != end; it.increment(error)) {
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
