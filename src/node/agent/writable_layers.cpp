#include "node/agent/writable_layers.h"

#include "base/split.h"

namespace berth::node::agent {
namespace {

/// The kernel writes blanks and backslashes in paths as octal numbers.
std::string unescape(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    int value = 0;
    if (text[i] == '\\' && i + 3 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 4, value, 8).ptr == text.data() + i + 4) {
      out += static_cast<char>(value);
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::map<std::string, std::string> writable_layers(std::string_view mountinfo) {
  static constexpr std::string_view kRootfs = "/rootfs", kUpper = "upperdir=";
  std::map<std::string, std::string> layers;
  for (const std::string_view line : split(mountinfo, '\n')) {
    // "36 35 98:0 /root MOUNT-POINT rw,… optional… - TYPE SOURCE OPTIONS"
    const std::size_t dash = line.find(" - overlay ");
    const std::vector<std::string_view> fields = split(line.substr(0, dash), ' ').list();
    if (dash == std::string_view::npos || fields.size() < 5 || !fields[4].ends_with(kRootfs)) continue;
    std::string_view id = fields[4].substr(0, fields[4].size() - kRootfs.size());
    id.remove_prefix(id.rfind('/') + 1);
    for (const std::string_view option : split(line.substr(line.rfind(' ') + 1), ','))
      if (option.starts_with(kUpper)) layers.insert_or_assign(std::string(id), unescape(option.substr(kUpper.size())));
  }
  return layers;
}

void measure_writable_layers(std::vector<PodFigures>& pods, const std::string& proc) {
  const std::map<std::string, std::string> layers = writable_layers(read_small_file(proc + "/self/mountinfo").value_or(""));
  for (PodFigures& pod : pods) {
    for (eviction::ContainerUsage& container : pod.usage.containers) {
      const auto id = pod.containers.find(container.name);
      const auto layer = id == pod.containers.end() ? layers.end() : layers.find(id->second.id);
      if (layer == layers.end() || !container.rootfs) continue;
      const DiskUse use = disk_use(layer->second);
      if (pod.usage.ephemeral_storage) {
        const auto replace = [](std::optional<std::uint64_t>& sum, const std::optional<std::uint64_t>& before, std::uint64_t now) {
          sum = sum.value_or(0) - std::min(sum.value_or(0), before.value_or(0)) + now;
        };
        replace(pod.usage.ephemeral_storage->used_bytes, container.rootfs->used_bytes, use.bytes);
        replace(pod.usage.ephemeral_storage->inodes_used, container.rootfs->inodes_used, use.files);
      }
      container.rootfs->used_bytes = use.bytes;
      container.rootfs->inodes_used = use.files;
    }
  }
}

}  // namespace berth::node::agent
