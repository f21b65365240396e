#include "scheduler/consulted.h"

#include <fmt/format.h>

#include <map>
#include <memory>
#include <set>

#include "base/log.h"

namespace berth::scheduler {
namespace {

struct Candidates {
  std::string_view kind, group, resource;
  std::vector<std::string_view> versions;  ///< Best first.
  ClusterEvent event;
};

const std::vector<Candidates>& table() {
  using enum ClusterEvent;
  static const std::vector<Candidates> kinds = {
      {"Namespace", "", "namespaces", {"v1"}, kNamespaces},
      {"Service", "", "services", {"v1"}, kServices},
      {"ReplicationController", "", "replicationcontrollers", {"v1"}, kServices},
      {"ReplicaSet", "apps", "replicasets", {"v1"}, kServices},
      {"StatefulSet", "apps", "statefulsets", {"v1"}, kServices},
      {"PersistentVolume", "", "persistentvolumes", {"v1"}, kPersistentVolume},
      {"PersistentVolumeClaim", "", "persistentvolumeclaims", {"v1"}, kClaim},
      {"StorageClass", "storage.k8s.io", "storageclasses", {"v1", "v1beta1"}, kStorageClass},
      {"CSINode", "storage.k8s.io", "csinodes", {"v1", "v1beta1"}, kCsiNode},
      {"CSIDriver", "storage.k8s.io", "csidrivers", {"v1", "v1beta1"}, kCsiDriver},
      {"CSIStorageCapacity", "storage.k8s.io", "csistoragecapacities", {"v1", "v1beta1", "v1alpha1"}, kCsiStorageCapacity},
      {"ResourceClaim", "resource.k8s.io", "resourceclaims", {"v1"}, kResourceClaim},
      {"ResourceSlice", "resource.k8s.io", "resourceslices", {"v1"}, kDevices},
      {"DeviceClass", "resource.k8s.io", "deviceclasses", {"v1"}, kDevices},
      {"VolumeAttachment", "storage.k8s.io", "volumeattachments", {"v1"}, kVolumeAttachmentDeleted},
      {"PodGroup", "scheduling.k8s.io", "podgroups", {"v1alpha2"}, kNodeCordoned},
      {"PodDisruptionBudget", "policy", "poddisruptionbudgets", {"v1", "v1beta1"}, kDisruptionBudget},
  };
  return kinds;
}

/// One round over all group versions; whatever fails makes another round.
struct Discovery : std::enable_shared_from_this<Discovery> {
  client::Client& client;  ///< Only while it is wanted: answers come after the component has gone, too.
  EventLoop& loop;
  std::function<bool()> is_wanted;
  std::function<void(std::vector<Consulted>)> done;
  std::map<std::string, std::set<std::string, std::less<>>> served;  ///< "/apis/policy/v1" to its resources.
  std::set<std::string> open;

  Discovery(client::Client& c, std::function<bool()> w, std::function<void(std::vector<Consulted>)> d)
      : client(c), loop(*c.loop()), is_wanted(std::move(w)), done(std::move(d)) {}

  static std::string path(std::string_view group, std::string_view version) {
    return group.empty() ? fmt::format("/api/{}", version) : fmt::format("/apis/{}/{}", group, version);
  }

  void ask() {
    if (!is_wanted()) return;
    open.clear();
    for (const auto& kind : table())
      for (const auto version : kind.versions)
        if (!served.contains(path(kind.group, version))) open.insert(path(kind.group, version));
    const auto all = open;
    for (const auto& one : all) ask_one(one);
  }

  void ask_one(const std::string& where) {
    net::HttpRequest request;
    request.method = "GET";
    request.path = where;
    request.headers.add("Accept", "application/json");
    client.transport()->send(std::move(request), [self = shared_from_this(), where](net::HttpResponse response) {
      self->loop.post([self, where, response = std::move(response)] { self->answered(where, response); });
    });
  }

  void answered(const std::string& where, const net::HttpResponse& response) {
    if (!is_wanted()) return;
    if (response.status == 200) {
      const auto list = json::parse(response.body);
      auto& resources = served[where];
      if (list)
        for (const json::Value& one : json::get_array(*list, {"resources"})) resources.emplace(json::get_string(one, {"name"}));
    } else if (response.status == 404) {
      served[where];
    } else if (response.status == 403) {
      // Whoever may not ask may still be allowed to read: the newest version it is.
      auto& resources = served[where];
      for (const auto& kind : table())
        if (path(kind.group, kind.versions.front()) == where) resources.emplace(kind.resource);
    } else {
      log::warning("scheduler", "asking the server for {}: {}", where,
                   response.status == 0 ? response.body : fmt::format("HTTP {}", response.status));
    }
    open.erase(where);
    if (!open.empty()) return;
    for (const auto& kind : table())
      for (const auto version : kind.versions)
        if (!served.contains(path(kind.group, version))) {
          loop.schedule_after(std::chrono::seconds(1), [self = shared_from_this()] { self->ask(); });
          return;
        }
    finish();
  }

  void finish() {
    std::vector<Consulted> out;
    for (const auto& kind : table()) {
      bool is_found = false;
      for (const auto version : kind.versions) {
        if (is_found || !served[path(kind.group, version)].contains(kind.resource)) continue;
        is_found = true;
        out.push_back({std::string(kind.kind), {std::string(kind.group), std::string(version), std::string(kind.resource)}, kind.event});
      }
      if (!is_found) log::info("scheduler", "the server has no {}: done without", kind.resource);
    }
    done(std::move(out));
  }
};

}  // namespace

void discover_consulted(client::Client& client, std::function<bool()> is_wanted, std::function<void(std::vector<Consulted>)> done) {
  std::make_shared<Discovery>(client, std::move(is_wanted), std::move(done))->ask();
}

}  // namespace berth::scheduler
