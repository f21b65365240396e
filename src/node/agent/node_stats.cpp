#include "node/agent/node_stats.h"

#include <unistd.h>

#include <iterator>
#include <sstream>

#include "base/mutex.h"
#include "node/agent/group_figures.h"

namespace berth::node::agent {
namespace {

std::uint64_t uint64_at(const json::Value& object, json::Path path) {
  const std::string_view text = json::get_string(object, path);  // uint64 is a string in proto3's JSON.
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

json::Object memory_json(const std::optional<eviction::MemoryUsage>& memory, TimePoint now) {
  json::Object out{{"time", format_rfc3339(now)}};
  if (!memory) return out;
  if (memory->available_bytes) out["availableBytes"] = *memory->available_bytes;
  if (memory->usage_bytes) out["usageBytes"] = *memory->usage_bytes;
  if (memory->working_set_bytes) out["workingSetBytes"] = *memory->working_set_bytes;
  if (memory->rss_bytes) out["rssBytes"] = *memory->rss_bytes;
  if (memory->page_faults) out["pageFaults"] = *memory->page_faults;
  if (memory->major_page_faults) out["majorPageFaults"] = *memory->major_page_faults;
  return out;
}

json::Object shares_json(const PressureShares& shares) {
  return {{"total", shares.total_us}, {"avg10", shares.avg10}, {"avg60", shares.avg60}, {"avg300", shares.avg300}};
}

/// What stands as "psi" beside the figures of a resource.
void add_pressure(json::Object& figures, const std::optional<Pressure>& pressure) {
  if (pressure)
    figures["psi"] = json::Object{{"full", shares_json(pressure->full.value_or(PressureShares{}))}, {"some", shares_json(pressure->some)}};
}

eviction::MemoryUsage usage_of(const CgroupMemory& memory, TimePoint now) {
  return {{}, memory.working_set_bytes, memory.usage_bytes, now, memory.rss_bytes, memory.page_faults, memory.major_page_faults};
}

/// The fields of a process's /proc/PID/stat from the third on; the name before may hold anything but its closing bracket.
std::vector<std::string> process_fields(const std::string& proc, std::int64_t pid) {
  const std::string stat = read_small_file(fmt::format("{}/{}/stat", proc, pid)).value_or("");
  const std::size_t bracket = stat.rfind(')');
  if (bracket == std::string::npos || bracket + 2 > stat.size()) return {};
  std::istringstream fields(stat.substr(bracket + 2));
  return {std::istream_iterator<std::string>(fields), {}};
}

json::Value fs_json(const eviction::FsUsage& fs, TimePoint now) {
  json::Object out{{"time", format_rfc3339(now)}};
  for (const auto& [key, value] : {std::pair("availableBytes", fs.available_bytes), std::pair("capacityBytes", fs.capacity_bytes),
                                   std::pair("usedBytes", fs.used_bytes), std::pair("inodesFree", fs.inodes_free),
                                   std::pair("inodes", fs.inodes), std::pair("inodesUsed", fs.inodes_used)})
    if (value) out[key] = *value;
  return out;
}

}  // namespace

std::vector<PodFigures> measure_pods(cri::Channel& runtime, const Cgroups& cgroups, const std::vector<std::shared_ptr<PodWorker>>& pods,
                                     bool with_disk, TimePoint now) {
  std::map<std::string, json::Value> containers;  // By id.
  if (const auto stats = runtime.call("RuntimeService/ListContainerStats", json::Object{}))
    for (const json::Value& entry : json::get_array(*stats, {"stats"}))
      containers.emplace(std::string(json::get_string(entry, {"attributes", "id"})), entry);
  std::vector<PodFigures> out;
  for (const auto& worker : pods) {
    const PodSpec spec = read_pod_spec(worker->pod());
    const PodState state = worker->state();
    PodFigures figures{spec.ns, spec.name, worker->uid(),    worker->cgroup(),  worker->sandbox_id(),
                       {},      {},        state.start_time, !spec.host_network};
    figures.usage.uid = worker->uid();
    if (const auto memory = cgroups.memory(figures.cgroup)) {
      figures.usage.memory = usage_of(*memory, now);
      if (memory->limit_bytes)
        figures.usage.memory->available_bytes =
            *memory->limit_bytes > memory->working_set_bytes ? *memory->limit_bytes - memory->working_set_bytes : 0;
    }
    figures.usage.process_count = cgroups.process_count(figures.cgroup);
    std::uint64_t total_bytes = 0, total_files = 0;
    for (std::size_t i = 0; i < spec.containers.size() && i < state.containers.size(); ++i) {
      std::string id = state.containers[i].container_id;
      if (const std::size_t at = id.find("://"); at != std::string::npos) id.erase(0, at + 3);
      if (state.containers[i].state.kind != ContainerState::Kind::kRunning) continue;
      eviction::ContainerUsage usage;
      usage.name = spec.containers[i].name;
      const ContainerRecord& record = state.containers[i];
      figures.containers[usage.name] = {id, record.image.empty() ? spec.containers[i].image : record.image, record.state.started_at};
      if (const auto memory = cgroups.memory(figures.cgroup + "/" + id)) usage.memory = usage_of(*memory, now);
      eviction::FsUsage rootfs, logs;
      if (const auto stats = containers.find(id); stats != containers.end()) {
        rootfs.used_bytes = uint64_at(stats->second, {"writable_layer", "used_bytes", "value"});
        rootfs.inodes_used = uint64_at(stats->second, {"writable_layer", "inodes_used", "value"});
      }
      if (with_disk) {
        const DiskUse use = disk_use(worker->log_directory() + "/" + usage.name);
        logs.used_bytes = use.bytes;
        logs.inodes_used = use.files;
      }
      total_bytes += rootfs.used_bytes.value_or(0) + logs.used_bytes.value_or(0);
      total_files += rootfs.inodes_used.value_or(0) + logs.inodes_used.value_or(0);
      usage.rootfs = rootfs;
      usage.logs = logs;
      figures.usage.containers.push_back(std::move(usage));
    }
    if (with_disk) {
      const json::Value document = worker->pod();
      for (const json::Value& volume : json::get_array(document, {"spec", "volumes"})) {
        const std::string name(json::get_string(volume, {"name"}));
        std::string_view plugin = json::find(volume, "emptyDir") ? "empty-dir" : json::find(volume, "configMap") ? "configmap" : "";
        if (plugin.empty()) continue;
        const DiskUse use = disk_use(fmt::format("{}/volumes/kubernetes.io~{}/{}", worker->directory(), plugin, name));
        eviction::VolumeUsage usage{name, {}};
        usage.fs.used_bytes = use.bytes;
        usage.fs.inodes_used = use.files;
        if (json::get_string(volume, {"emptyDir", "medium"}).empty()) total_bytes += use.bytes, total_files += use.files;
        figures.usage.volumes.push_back(std::move(usage));
      }
    }
    eviction::FsUsage ephemeral;
    ephemeral.used_bytes = total_bytes;
    ephemeral.inodes_used = total_files;
    figures.usage.ephemeral_storage = ephemeral;
    out.push_back(std::move(figures));
  }
  return out;
}

std::uint64_t CpuRates::rate(const std::string& group, std::uint64_t total_ns, TimePoint now) {
  MutexLock lock(mutex_);
  // Groups of pods long gone; their samples are small, but must not pile up.
  if (samples_.size() > 10'000) samples_.clear();
  Sample& sample = samples_[group];
  if (sample.at == TimePoint{} || total_ns < sample.total_ns) {
    sample = {total_ns, 0, now};
  } else if (now - sample.at >= std::chrono::seconds(1)) {
    const double seconds = static_cast<double>((now - sample.at).count()) / 1e6;
    sample = {total_ns, static_cast<std::uint64_t>(static_cast<double>(total_ns - sample.total_ns) / seconds), now};
  }
  return sample.nano_cores;
}

namespace {

/// A program of the node's own as one of its system containers: the process itself, whatever group it shares with others.
std::optional<json::Object> process_json(const char* name, std::int64_t pid, const MachinePaths& paths, CpuRates& rates, TimePoint now) {
  if (pid <= 0) return std::nullopt;
  const std::vector<std::string> fields = process_fields(paths.proc, pid);
  if (fields.size() < 22) return std::nullopt;
  const auto number = [&](std::size_t i) { return static_cast<std::uint64_t>(std::atoll(fields[i].c_str())); };
  const auto ticks = static_cast<std::uint64_t>(std::max(1L, sysconf(_SC_CLK_TCK)));
  const std::uint64_t cpu_ns = (number(11) + number(12)) * (1'000'000'000 / ticks),
                      rss = number(21) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  return json::Object{{"name", name},
                      {"cpu", json::Object{{"time", format_rfc3339(now)},
                                           {"usageCoreNanoSeconds", cpu_ns},
                                           {"usageNanoCores", rates.rate(fmt::format("process {} {}", name, pid), cpu_ns, now)}}},
                      {"memory", memory_json(eviction::MemoryUsage{{}, rss, rss, now, rss, number(7), number(9)}, now)}};
}

std::array<std::pair<const char*, std::int64_t>, 2> system_programs(const MachinePaths& paths) {
  return {std::pair("kubelet", static_cast<std::int64_t>(::getpid())), {"runtime", paths.runtime_pid}};
}

json::Object swap_json(const MemoryFigures& figures, TimePoint now) {
  json::Object out{{"time", format_rfc3339(now)}};
  if (!figures.swap_bytes) return out;
  out["swapUsageBytes"] = *figures.swap_bytes;
  if (figures.swap_limit_bytes)
    out["swapAvailableBytes"] = *figures.swap_limit_bytes > *figures.swap_bytes ? *figures.swap_limit_bytes - *figures.swap_bytes : 0;
  return out;
}

json::Object machine_swap_json(const MachinePaths& paths, TimePoint now) {
  const SwapSpace swap = swap_space(paths.proc);
  return {
      {"time", format_rfc3339(now)}, {"swapAvailableBytes", swap.free_bytes}, {"swapUsageBytes", swap.capacity_bytes - swap.free_bytes}};
}

/// The figures of eth0, where there is one, stand beside the list.
json::Object network_json(const std::vector<InterfaceFigures>& interfaces, TimePoint now) {
  json::Object out{{"time", format_rfc3339(now)}, {"name", ""}};
  json::Array list;
  for (const InterfaceFigures& one : interfaces) {
    json::Object figures{{"name", one.name},
                         {"rxBytes", one.received_bytes},
                         {"rxErrors", one.received_errors},
                         {"txBytes", one.sent_bytes},
                         {"txErrors", one.sent_errors}};
    if (one.name == "eth0")
      for (const auto& [key, value] : figures) out[key] = value;
    list.push_back(std::move(figures));
  }
  out["interfaces"] = std::move(list);
  return out;
}

}  // namespace

void sample_rates(const std::vector<PodFigures>& pods, const Cgroups& cgroups, const MachinePaths& paths, CpuRates& rates, TimePoint now) {
  const auto sample = [&](const std::string& group) { (void)rates.rate(group, cgroups.cpu_usage_ns(group).value_or(0), now); };
  sample(paths.node_cgroup);
  sample(paths.pods_cgroup);
  for (const PodFigures& pod : pods) {
    sample(pod.cgroup);
    for (const auto& [name, container] : pod.containers) sample(pod.group_of(name));
  }
  for (const auto& [name, pid] : system_programs(paths)) (void)process_json(name, pid, paths, rates, now);
}

json::Value summary_json(const std::string& node_name, const eviction::NodeUsage& node, const std::vector<PodFigures>& pods,
                         const Cgroups& cgroups, const MachinePaths& paths, CpuRates& rates, TimePoint now) {
  const auto add_group = [&](json::Object& entry, const std::string& group, const std::optional<eviction::MemoryUsage>& used) {
    const PressureFigures pressure = measure_pressure(cgroups, group);
    const std::uint64_t total = cgroups.cpu_usage_ns(group).value_or(0);
    json::Object cpu{{"time", format_rfc3339(now)}, {"usageCoreNanoSeconds", total}, {"usageNanoCores", rates.rate(group, total, now)}},
        memory = memory_json(used, now), io{{"time", format_rfc3339(now)}};
    add_pressure(cpu, pressure.cpu);
    add_pressure(memory, pressure.memory);
    add_pressure(io, pressure.io);
    entry["cpu"] = std::move(cpu);
    entry["memory"] = std::move(memory);
    if (pressure.io) entry["io"] = std::move(io);
  };
  json::Object out, n{{"nodeName", node_name}};
  add_group(n, paths.node_cgroup, node.memory);
  if (const auto boot = boot_time(paths.proc)) n["startTime"] = format_rfc3339(*boot);
  n["swap"] = machine_swap_json(paths, now);
  n["network"] = network_json(measure_interfaces(paths.proc, ::getpid()), now);
  json::Object all_pods{{"name", "pods"}};
  add_group(all_pods, paths.pods_cgroup, node.pods_memory);
  json::Array system{std::move(all_pods)};
  for (const auto& [name, pid] : system_programs(paths))
    if (auto own = process_json(name, pid, paths, rates, now)) system.push_back(std::move(*own));
  n["systemContainers"] = std::move(system);
  if (node.fs) n["fs"] = fs_json(*node.fs, now);
  json::Object runtime;
  if (node.image_fs) runtime["imageFs"] = fs_json(*node.image_fs, now);
  if (node.container_fs) runtime["containerFs"] = fs_json(*node.container_fs, now);
  n["runtime"] = std::move(runtime);
  if (node.max_pid && node.running_processes)
    n["rlimit"] = json::Object{{"time", format_rfc3339(now)}, {"maxpid", *node.max_pid}, {"curproc", *node.running_processes}};
  out["node"] = std::move(n);
  json::Array list;
  for (const PodFigures& pod : pods) {
    json::Object entry;
    entry["podRef"] = json::Object{{"name", pod.name}, {"namespace", pod.ns}, {"uid", pod.uid}};
    json::Array containers;
    for (const eviction::ContainerUsage& usage : pod.usage.containers) {
      const std::string group = pod.group_of(usage.name);
      json::Object container{{"name", usage.name}, {"startTime", format_rfc3339(pod.containers.at(usage.name).started_at)}};
      add_group(container, group, usage.memory);
      container["swap"] = swap_json(measure_more_memory(cgroups, group), now);
      container["rootfs"] = fs_json(usage.rootfs.value_or(eviction::FsUsage{}), now);
      container["logs"] = fs_json(usage.logs.value_or(eviction::FsUsage{}), now);
      containers.push_back(std::move(container));
    }
    if (pod.start_time) entry["startTime"] = format_rfc3339(*pod.start_time);
    entry["containers"] = std::move(containers);
    add_group(entry, pod.cgroup, pod.usage.memory);
    entry["swap"] = swap_json(measure_more_memory(cgroups, pod.cgroup), now);
    if (pod.has_network) {
      const auto interfaces = group_interfaces(cgroups, pod.cgroup + "/" + pod.sandbox_id, paths.proc);
      if (!interfaces.empty()) entry["network"] = network_json(interfaces, now);
    }
    json::Array volumes;
    for (const eviction::VolumeUsage& volume : pod.usage.volumes) {
      json::Value fs = fs_json(volume.fs, now);
      fs.as_object()["name"] = volume.name;
      if (!volume.claim_name.empty()) fs.as_object()["pvcRef"] = json::Object{{"name", volume.claim_name}, {"namespace", volume.claim_ns}};
      volumes.push_back(std::move(fs));
    }
    if (!volumes.empty()) entry["volume"] = std::move(volumes);
    entry["ephemeral-storage"] = fs_json(pod.usage.ephemeral_storage.value_or(eviction::FsUsage{}), now);
    if (pod.usage.process_count) entry["process_stats"] = json::Object{{"process_count", *pod.usage.process_count}};
    list.push_back(std::move(entry));
  }
  out["pods"] = std::move(list);
  return out;
}

std::string kubelet_metrics(const std::string& node_name, const std::vector<std::shared_ptr<PodWorker>>& pods) {
  std::size_t sandboxes = 0;
  std::map<std::string, std::size_t> containers{{"exited", 0}, {"running", 0}};
  for (const auto& worker : pods) {
    const PodState state = worker->state();
    sandboxes += state.has_sandbox;
    for (const ContainerRecord& record : state.containers) {
      if (record.state.kind == ContainerState::Kind::kRunning) ++containers["running"];
      if (record.state.kind == ContainerState::Kind::kTerminated) ++containers["exited"];
    }
  }
  std::string out = fmt::format(
      "# HELP kubelet_node_name The node's name. The count is always 1.\n# TYPE kubelet_node_name gauge\nkubelet_node_name{{node=\"{}\"}} "
      "1\n",
      node_name);
  out += fmt::format(
      "# HELP kubelet_running_pods Number of pods that have a running pod sandbox\n# TYPE kubelet_running_pods gauge\nkubelet_running_pods "
      "{}\n",
      sandboxes);
  out += "# HELP kubelet_running_containers Number of containers currently running\n# TYPE kubelet_running_containers gauge\n";
  for (const auto& [state, count] : containers)
    out += fmt::format("kubelet_running_containers{{container_state=\"{}\"}} {}\n", state, count);
  // utime and stime are fields 14 and 15, the start field 22, resident pages field 24.
  const std::vector<std::string> words = process_fields("/proc", ::getpid());
  if (words.size() > 21) {
    const double ticks = static_cast<double>(std::max(1L, sysconf(_SC_CLK_TCK)));
    out += fmt::format(
        "# HELP process_cpu_seconds_total Total user and system CPU time spent in seconds.\n# TYPE process_cpu_seconds_total "
        "counter\nprocess_cpu_seconds_total {}\n",
        (std::atof(words[11].c_str()) + std::atof(words[12].c_str())) / ticks);
    out += fmt::format(
        "# HELP process_resident_memory_bytes Resident memory size in bytes.\n# TYPE process_resident_memory_bytes "
        "gauge\nprocess_resident_memory_bytes {}\n",
        std::atoll(words[21].c_str()) * sysconf(_SC_PAGESIZE));
  }
  return out;
}

}  // namespace berth::node::agent
