#include "node/agent/container_metrics.h"

#include <functional>
#include <set>

#include "base/exposition.h"
#include "node/agent/group_figures.h"

namespace berth::node::agent {
namespace {

using metrics::Exposition;
using metrics::Labels;

double seconds(std::uint64_t ns) { return static_cast<double>(ns) / 1e9; }
double seconds(TimePoint at) { return std::chrono::duration<double>(at.time_since_epoch()).count(); }

/// A container of a pod, and what its group counts.
struct ContainerOfPod {
  const PodFigures& pod;
  const eviction::ContainerUsage& usage;
  [[nodiscard]] Labels labels() const { return {{"container", usage.name}, {"namespace", pod.ns}, {"pod", pod.name}}; }
};

void for_each_container(const std::vector<PodFigures>& pods, const std::function<void(const ContainerOfPod&)>& take) {
  for (const PodFigures& pod : pods)
    for (const eviction::ContainerUsage& usage : pod.usage.containers) take({pod, usage});
}

Labels pod_labels(const PodFigures& pod) { return {{"namespace", pod.ns}, {"pod", pod.name}}; }

void tell_containers(Exposition& out, const std::vector<PodFigures>& pods, const Cgroups& cgroups, TimePoint now) {
  out.family("container_cpu_usage_seconds_total", "Processor time that the container has used", "counter");
  for_each_container(pods, [&](const ContainerOfPod& one) {
    if (const auto ns = cgroups.cpu_usage_ns(one.pod.group_of(one.usage.name))) out.sample(one.labels(), seconds(*ns), now);
  });
  out.family("container_memory_working_set_bytes", "Working set of the container", "gauge");
  for_each_container(pods, [&](const ContainerOfPod& one) {
    if (one.usage.memory && one.usage.memory->working_set_bytes)
      out.sample(one.labels(), static_cast<double>(*one.usage.memory->working_set_bytes), now);
  });
  out.family("container_start_time_seconds", "When the container started, in seconds since 1970", "gauge");
  for_each_container(pods, [&](const ContainerOfPod& one) {
    if (const TimePoint at = one.pod.containers.at(one.usage.name).started_at; at > TimePoint{}) out.sample(one.labels(), seconds(at));
  });
  out.family("container_swap_usage_bytes", "Swap that the container uses", "gauge");
  for_each_container(pods, [&](const ContainerOfPod& one) {
    if (const auto swap = measure_more_memory(cgroups, one.pod.group_of(one.usage.name)).swap_bytes)
      out.sample(one.labels(), static_cast<double>(*swap), now);
  });
  out.family("container_swap_limit_bytes", "Swap that the container may use", "gauge");
  for_each_container(pods, [&](const ContainerOfPod& one) {
    if (const auto limit = measure_more_memory(cgroups, one.pod.group_of(one.usage.name)).swap_limit_bytes)
      out.sample(one.labels(), static_cast<double>(*limit), now);
  });
}

void tell_pods(Exposition& out, const std::vector<PodFigures>& pods, const Cgroups& cgroups, TimePoint now) {
  out.family("pod_cpu_usage_seconds_total", "Processor time that the pod has used", "counter");
  for (const PodFigures& pod : pods)
    if (const auto ns = cgroups.cpu_usage_ns(pod.cgroup)) out.sample(pod_labels(pod), seconds(*ns), now);
  out.family("pod_memory_working_set_bytes", "Working set of the pod", "gauge");
  for (const PodFigures& pod : pods)
    if (pod.usage.memory && pod.usage.memory->working_set_bytes)
      out.sample(pod_labels(pod), static_cast<double>(*pod.usage.memory->working_set_bytes), now);
  out.family("pod_swap_usage_bytes", "Swap that the pod uses", "gauge");
  for (const PodFigures& pod : pods)
    if (const auto swap = measure_more_memory(cgroups, pod.cgroup).swap_bytes) out.sample(pod_labels(pod), static_cast<double>(*swap), now);
}

}  // namespace

std::string resource_metrics(const eviction::NodeUsage& node, const std::vector<PodFigures>& pods, const Cgroups& cgroups,
                             const MachinePaths& paths, TimePoint now) {
  Exposition out;
  out.family("node_cpu_usage_seconds_total", "Processor time that the node has used", "counter");
  if (const auto ns = cgroups.cpu_usage_ns(paths.node_cgroup)) out.sample({}, seconds(*ns), now);
  out.family("node_memory_working_set_bytes", "Working set of the node", "gauge");
  if (node.memory && node.memory->working_set_bytes) out.sample({}, static_cast<double>(*node.memory->working_set_bytes), now);
  out.family("node_swap_usage_bytes", "Swap that the node uses", "gauge");
  const SwapSpace swap = swap_space(paths.proc);
  out.sample({}, static_cast<double>(swap.capacity_bytes - swap.free_bytes), now);
  tell_containers(out, pods, cgroups, now);
  tell_pods(out, pods, cgroups, now);
  for (const char* name : {"resource_scrape_error", "scrape_error"}) {
    out.family(name, "1 when containers could not be measured, else 0", "gauge");
    out.sample({}, 0);
  }
  return out.text();
}

namespace {

/// Runtimes do not tell which image a sandbox has; dashboards ask whether there is one.
constexpr const char* kSandboxImage = "pause";

/// A control group as cAdvisor tells of it: what its labels say and what was measured.
struct Watched {
  enum class Part { kAbovePods, kPod, kSandbox, kContainer };
  Part part = Part::kAbovePods;
  std::string id;
  Labels labels;  ///< container, id, image, name, namespace, pod: always all of them, in this order.
  GroupFigures figures;
  std::vector<InterfaceFigures> interfaces;
  std::optional<TimePoint> started_at;

  [[nodiscard]] bool runs_processes() const { return part == Part::kSandbox || part == Part::kContainer; }
};

Labels labels_of(const std::string& id, const std::string& container, const std::string& image, const std::string& name,
                 const PodFigures* pod) {
  return {{"container", container},     {"id", id}, {"image", image}, {"name", name}, {"namespace", pod ? pod->ns : ""},
          {"pod", pod ? pod->name : ""}};
}

/// The labels with one more, where the alphabet has it.
Labels with(Labels labels, std::string key, std::string value) {
  const auto at = std::ranges::lower_bound(labels, key, {}, &std::pair<std::string, std::string>::first);
  labels.insert(at, {std::move(key), std::move(value)});
  return labels;
}

/// What the group that stands for the machine does not tell, because it has no limits or is version 2's root, the machine does.
void complete_machine(GroupFigures& figures, const eviction::Machine& machine, const Cgroups& cgroups, const MachinePaths& paths) {
  if (!figures.memory) {
    const eviction::MemoryUsage whole = observe_group_memory(cgroups, paths, paths.node_cgroup, {});
    figures.memory =
        CgroupMemory{whole.usage_bytes.value_or(0), whole.working_set_bytes.value_or(0), {}, whole.rss_bytes, whole.page_faults,
                     whole.major_page_faults};
  }
  if (!figures.memory->limit_bytes) figures.memory->limit_bytes = static_cast<std::uint64_t>(machine.memory_bytes);
  const SwapSpace swap = swap_space(paths.proc);
  if (!figures.more_memory.swap_bytes) figures.more_memory.swap_bytes = static_cast<std::uint64_t>(swap.capacity_bytes - swap.free_bytes);
  if (!figures.more_memory.swap_limit_bytes) figures.more_memory.swap_limit_bytes = static_cast<std::uint64_t>(swap.capacity_bytes);
}

std::vector<Watched> watch(const eviction::Machine& machine, const std::vector<PodFigures>& pods, const Cgroups& cgroups,
                           const MachinePaths& paths) {
  std::vector<Watched> out;
  const auto above = [&](const std::string& group, const std::string& id) {
    out.push_back({Watched::Part::kAbovePods, id, labels_of(id, "", "", "", nullptr), measure_group(cgroups, group, paths.proc), {}, {}});
  };
  above(paths.node_cgroup, "/");
  complete_machine(out.back().figures, machine, cgroups, paths);
  out.back().interfaces = measure_interfaces(paths.proc, ::getpid());
  out.back().started_at = boot_time(paths.proc);
  above(paths.pods_cgroup, paths.pods_cgroup);
  for (const char* quality : {"/besteffort", "/burstable"})
    if (const std::string group = paths.pods_cgroup + quality; cgroups.exists(group)) above(group, group);
  for (const PodFigures& pod : pods) {
    out.push_back({Watched::Part::kPod,
                   pod.cgroup,
                   labels_of(pod.cgroup, "", "", "", &pod),
                   measure_group(cgroups, pod.cgroup, paths.proc),
                   {},
                   pod.start_time});
    const std::string sandbox = pod.cgroup + "/" + pod.sandbox_id;
    if (!pod.sandbox_id.empty() && cgroups.exists(sandbox)) {
      out.push_back({Watched::Part::kSandbox,
                     sandbox,
                     labels_of(sandbox, "", kSandboxImage, pod.sandbox_id, &pod),
                     measure_group(cgroups, sandbox, paths.proc),
                     {},
                     pod.start_time});
      if (pod.has_network) out.back().interfaces = group_interfaces(cgroups, sandbox, paths.proc);
    }
    for (const auto& [name, container] : pod.containers) {
      const std::string group = pod.group_of(name);
      out.push_back({Watched::Part::kContainer,
                     group,
                     labels_of(group, name, container.image, container.id, &pod),
                     measure_group(cgroups, group, paths.proc),
                     {},
                     container.started_at});
    }
  }
  return out;
}

/// A family of one figure for each group: what it is, and where the figure stands.
struct GroupFamily {
  const char *name, *help, *type;
  std::function<std::optional<double>(const Watched&)> value;
};

std::optional<double> number(std::optional<std::uint64_t> value) {
  return value ? std::optional(static_cast<double>(*value)) : std::nullopt;
}
std::optional<double> time_of(std::optional<std::uint64_t> ns) { return ns ? std::optional(seconds(*ns)) : std::nullopt; }
std::optional<double> memory(const Watched& one, std::optional<std::uint64_t> CgroupMemory::*figure) {
  return one.figures.memory ? number((*one.figures.memory).*figure) : std::nullopt;
}
std::optional<double> process(const Watched& one, std::uint64_t ProcessFigures::*figure) {
  return one.runs_processes() ? std::optional(static_cast<double>(one.figures.processes.*figure)) : std::nullopt;
}
/// Nothing is limited: 0, as cAdvisor writes it.
double limit(std::optional<std::uint64_t> value) { return static_cast<double>(value.value_or(0)); }

std::vector<GroupFamily> group_families(TimePoint now) {
  const auto throttled = [](const Watched& one, std::optional<std::uint64_t> CpuFigures::*figure) {
    return one.figures.cpu.quota_us ? one.figures.cpu.*figure : std::nullopt;
  };
  return {
      {"container_cpu_user_seconds_total", "Processor time used in user mode", "counter",
       [](const Watched& one) { return time_of(one.figures.cpu.user_ns); }},
      {"container_cpu_system_seconds_total", "Processor time used in kernel mode", "counter",
       [](const Watched& one) { return time_of(one.figures.cpu.system_ns); }},
      {"container_cpu_cfs_periods_total", "Periods that the limit was counted in", "counter",
       [=](const Watched& one) { return number(throttled(one, &CpuFigures::periods)); }},
      {"container_cpu_cfs_throttled_periods_total", "Periods in which the limit was met", "counter",
       [=](const Watched& one) { return number(throttled(one, &CpuFigures::throttled_periods)); }},
      {"container_cpu_cfs_throttled_seconds_total", "Time that the limit took", "counter",
       [=](const Watched& one) { return time_of(throttled(one, &CpuFigures::throttled_ns)); }},
      {"container_memory_cache", "Bytes of page cache", "gauge",
       [](const Watched& one) { return number(one.figures.more_memory.cache_bytes); }},
      {"container_memory_failcnt", "How often the memory limit was met", "counter",
       [](const Watched& one) { return number(one.figures.more_memory.limit_hits); }},
      {"container_memory_kernel_usage", "Bytes of the kernel's own", "gauge",
       [](const Watched& one) { return number(one.figures.more_memory.kernel_bytes); }},
      {"container_memory_mapped_file", "Bytes of mapped files", "gauge",
       [](const Watched& one) { return number(one.figures.more_memory.mapped_bytes); }},
      {"container_memory_max_usage_bytes", "The most memory that was in use at a time", "gauge",
       [](const Watched& one) { return number(one.figures.more_memory.most_bytes); }},
      {"container_memory_rss", "Bytes of anonymous memory", "gauge",
       [](const Watched& one) { return memory(one, &CgroupMemory::rss_bytes); }},
      {"container_memory_swap", "Bytes that are swapped out", "gauge",
       [](const Watched& one) { return number(one.figures.more_memory.swap_bytes); }},
      {"container_memory_usage_bytes", "Memory in use, all of it", "gauge",
       [](const Watched& one) { return one.figures.memory ? number(one.figures.memory->usage_bytes) : std::nullopt; }},
      {"container_memory_working_set_bytes", "Memory in use, without cache that nobody used lately", "gauge",
       [](const Watched& one) { return one.figures.memory ? number(one.figures.memory->working_set_bytes) : std::nullopt; }},
      {"container_oom_events_total", "Processes that the kernel killed for memory", "counter",
       [](const Watched& one) { return number(one.figures.oom_kills); }},
      {"container_processes", "Processes", "gauge", [](const Watched& one) { return process(one, &ProcessFigures::processes); }},
      {"container_threads", "Threads", "gauge", [](const Watched& one) { return process(one, &ProcessFigures::threads); }},
      {"container_threads_max", "Threads that there may be; 0: no limit", "gauge",
       [](const Watched& one) { return one.runs_processes() ? std::optional(limit(one.figures.processes.threads_max)) : std::nullopt; }},
      {"container_file_descriptors", "Open descriptors", "gauge",
       [](const Watched& one) { return process(one, &ProcessFigures::descriptors); }},
      {"container_sockets", "Open sockets", "gauge", [](const Watched& one) { return process(one, &ProcessFigures::sockets); }},
      {"container_spec_cpu_period", "The period of the processor limit, in microseconds", "gauge",
       [](const Watched& one) { return number(one.figures.cpu.period_us); }},
      {"container_spec_cpu_quota", "The processor limit, in microseconds a period", "gauge",
       [](const Watched& one) { return number(one.figures.cpu.quota_us); }},
      {"container_spec_cpu_shares", "The processor share", "gauge", [](const Watched& one) { return number(one.figures.cpu.shares); }},
      {"container_spec_memory_limit_bytes", "The memory limit; 0: none", "gauge",
       [](const Watched& one) { return one.figures.memory ? std::optional(limit(one.figures.memory->limit_bytes)) : std::nullopt; }},
      {"container_spec_memory_reservation_limit_bytes", "The memory that is kept; 0: none", "gauge",
       [](const Watched& one) { return limit(one.figures.more_memory.reservation_bytes); }},
      {"container_spec_memory_swap_limit_bytes", "The swap limit; 0: none", "gauge",
       [](const Watched& one) { return limit(one.figures.more_memory.swap_limit_bytes); }},
      {"container_start_time_seconds", "When it started, in seconds since 1970", "gauge",
       [](const Watched& one) { return one.started_at ? std::optional(seconds(*one.started_at)) : std::nullopt; }},
      {"container_last_seen", "When it was measured, in seconds since 1970", "gauge",
       [now](const Watched&) { return std::floor(seconds(now)); }},
  };
}

void tell_faults(Exposition& out, const std::vector<Watched>& groups, TimePoint now) {
  out.family("container_memory_failures_total", "Page faults", "counter");
  for (const Watched& one : groups)
    for (const auto& [type, figure] : {std::pair("pgfault", &CgroupMemory::page_faults), {"pgmajfault", &CgroupMemory::major_page_faults}})
      if (const auto value = memory(one, figure))
        out.sample(with(with(one.labels, "failure_type", type), "scope", "hierarchy"), *value, now);
}

/// "Waiting": some task of the group did; "stalled": none could go on.
void tell_pressure(Exposition& out, const std::vector<Watched>& groups, TimePoint now) {
  struct Family {
    const char *name, *help;
    std::optional<Pressure> PressureFigures::*resource;
    bool is_full;
  };
  for (const auto& [name, help, resource, is_full] :
       {Family{"container_pressure_cpu_stalled_seconds_total", "Time in which all tasks waited for a processor", &PressureFigures::cpu,
               true},
        {"container_pressure_cpu_waiting_seconds_total", "Time in which a task waited for a processor", &PressureFigures::cpu, false},
        {"container_pressure_io_stalled_seconds_total", "Time in which all tasks waited for a disk", &PressureFigures::io, true},
        {"container_pressure_io_waiting_seconds_total", "Time in which a task waited for a disk", &PressureFigures::io, false},
        {"container_pressure_memory_stalled_seconds_total", "Time in which all tasks waited for memory", &PressureFigures::memory, true},
        {"container_pressure_memory_waiting_seconds_total", "Time in which a task waited for memory", &PressureFigures::memory, false}}) {
    out.family(name, help, "counter");
    for (const Watched& one : groups)
      if (const auto& told = one.figures.pressure.*resource)
        out.sample(one.labels, seconds((is_full ? told->full.value_or(PressureShares{}) : told->some).total_us * 1000), now);
  }
}

void tell_disks(Exposition& out, const std::vector<Watched>& groups, TimePoint now) {
  struct Family {
    const char *name, *help;
    std::uint64_t DiskFigures::*figure;
  };
  for (const auto& [name, help, figure] : {Family{"container_fs_reads_bytes_total", "Bytes read", &DiskFigures::read_bytes},
                                           {"container_fs_reads_total", "Reads", &DiskFigures::reads},
                                           {"container_fs_writes_bytes_total", "Bytes written", &DiskFigures::written_bytes},
                                           {"container_fs_writes_total", "Writes", &DiskFigures::writes}}) {
    out.family(name, help, "counter");
    for (const Watched& one : groups)
      for (const auto& [device, disk] : one.figures.disks)
        out.sample(with(one.labels, "device", device), static_cast<double>(disk.*figure), now);
  }
}

void tell_networks(Exposition& out, const std::vector<Watched>& groups, TimePoint now) {
  struct Family {
    const char *name, *help;
    std::uint64_t InterfaceFigures::*figure;
  };
  for (const auto& [name, help, figure] :
       {Family{"container_network_receive_bytes_total", "Bytes received", &InterfaceFigures::received_bytes},
        {"container_network_receive_errors_total", "Errors of receiving", &InterfaceFigures::received_errors},
        {"container_network_receive_packets_dropped_total", "Packets that came and were dropped", &InterfaceFigures::received_dropped},
        {"container_network_receive_packets_total", "Packets received", &InterfaceFigures::received_packets},
        {"container_network_transmit_bytes_total", "Bytes sent", &InterfaceFigures::sent_bytes},
        {"container_network_transmit_errors_total", "Errors of sending", &InterfaceFigures::sent_errors},
        {"container_network_transmit_packets_dropped_total", "Packets that were to be sent and were dropped",
         &InterfaceFigures::sent_dropped},
        {"container_network_transmit_packets_total", "Packets sent", &InterfaceFigures::sent_packets}}) {
    out.family(name, help, "counter");
    for (const Watched& one : groups)
      for (const InterfaceFigures& interface : one.interfaces)
        out.sample(with(one.labels, "interface", interface.name), static_cast<double>(interface.*figure), now);
  }
}

void tell_machine(Exposition& out, const eviction::Machine& machine, const MachinePaths& paths, TimePoint now) {
  const MachineIdentity identity = read_machine_identity();
  const Labels labels{{"boot_id", identity.boot_id}, {"machine_id", identity.machine_id}, {"system_uuid", identity.system_uuid}};
  out.family("machine_cpu_cores", "Processors of the machine", "gauge");
  out.sample(labels, static_cast<double>(machine.cores), now);
  out.family("machine_memory_bytes", "Memory of the machine", "gauge");
  out.sample(labels, static_cast<double>(machine.memory_bytes), now);
  out.family("machine_swap_bytes", "Swap of the machine", "gauge");
  out.sample(labels, static_cast<double>(swap_space(paths.proc).capacity_bytes), now);
  out.family("cadvisor_version_info", "Always 1; its labels say what the machine runs", "gauge");
  out.sample({{"cadvisorRevision", ""},
              {"cadvisorVersion", ""},
              {"dockerVersion", ""},
              {"kernelVersion", identity.kernel_version},
              {"osVersion", identity.os_image}},
             1);
}

}  // namespace

std::string cadvisor_metrics(const eviction::Machine& machine, const std::vector<PodFigures>& pods, const Cgroups& cgroups,
                             const MachinePaths& paths, TimePoint now) {
  const std::vector<Watched> groups = watch(machine, pods, cgroups, paths);
  Exposition out;
  tell_machine(out, machine, paths, now);
  out.family("container_cpu_usage_seconds_total", "Processor time used", "counter");
  for (const Watched& one : groups)
    if (const auto used = time_of(one.figures.cpu.usage_ns)) out.sample(with(one.labels, "cpu", "total"), *used, now);
  for (const GroupFamily& family : group_families(now)) {
    out.family(family.name, family.help, family.type);
    for (const Watched& one : groups)
      if (const auto value = family.value(one)) out.sample(one.labels, *value, now);
  }
  tell_faults(out, groups, now);
  tell_pressure(out, groups, now);
  tell_disks(out, groups, now);
  tell_networks(out, groups, now);
  out.family("container_scrape_error", "1 when containers could not be measured, else 0", "gauge");
  out.sample({}, 0);
  return out.text();
}

std::string volume_metrics(const std::vector<eviction::VolumeUsage>& volumes) {
  struct Family {
    const char *name, *help;
    std::optional<std::uint64_t> eviction::FsUsage::*figure;
  };
  Exposition out;
  for (const auto& [name, help, figure] :
       {Family{"kubelet_volume_stats_available_bytes", "Bytes that are free in the volume", &eviction::FsUsage::available_bytes},
        {"kubelet_volume_stats_capacity_bytes", "Bytes that the volume has", &eviction::FsUsage::capacity_bytes},
        {"kubelet_volume_stats_inodes", "Inodes that the volume has", &eviction::FsUsage::inodes},
        {"kubelet_volume_stats_inodes_free", "Inodes that are free in the volume", &eviction::FsUsage::inodes_free},
        {"kubelet_volume_stats_inodes_used", "Inodes in use in the volume", &eviction::FsUsage::inodes_used},
        {"kubelet_volume_stats_used_bytes", "Bytes in use in the volume", &eviction::FsUsage::used_bytes}}) {
    out.family(name, help, "gauge");
    std::set<std::pair<std::string, std::string>> told;
    for (const eviction::VolumeUsage& volume : volumes)
      if (!volume.claim_name.empty() && volume.fs.*figure && told.emplace(volume.claim_ns, volume.claim_name).second)
        out.sample({{"namespace", volume.claim_ns}, {"persistentvolumeclaim", volume.claim_name}},
                   static_cast<double>(*(volume.fs.*figure)));
  }
  return out.text();
}

}  // namespace berth::node::agent
