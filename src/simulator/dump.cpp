// A dump of a real cluster, made anew: owners before what they own, with the uids that they have here.
#include <fmt/format.h>

#include <algorithm>

#include "model/kinds.h"
#include "simulator/replay.h"
#include "simulator/story.h"

namespace berth::simulator {
namespace {

/// Kinds in the order in which they are needed; what is not here comes after the nodes.
int rank_of(std::string_view kind) {
  static const std::map<std::string, int, std::less<>> kRanks = {{"Namespace", 0},
                                                                 {"PriorityClass", 1},
                                                                 {"StorageClass", 1},
                                                                 {"RuntimeClass", 1},
                                                                 {"DeviceClass", 1},
                                                                 {"CSIDriver", 1},
                                                                 {"ServiceAccount", 2},
                                                                 {"ConfigMap", 2},
                                                                 {"Secret", 2},
                                                                 {"PersistentVolume", 3},
                                                                 {"PersistentVolumeClaim", 4},
                                                                 {"Node", 5},
                                                                 {"CSINode", 6},
                                                                 {"Pod", 9}};
  const auto found = kRanks.find(kind);
  return found == kRanks.end() ? 7 : found->second;
}

/// What the components here make themselves.
bool is_made_here(std::string_view kind) {
  return kind == "Event" || kind == "Lease" || kind == "Endpoints" || kind == "EndpointSlice" || kind == "Machine" ||
         kind == "ComponentStatus" || kind == "APIService" || kind == "CustomResourceDefinition";
}

struct Loader {
  Story& story;
  std::map<std::string, std::string> uids;  ///< Of the dump, and here.
  std::int64_t adrift = 0;

  void load(const json::Value& object) {
    const std::string kind_name(json::get_string(object, {"kind"}));
    json::Value written = kind_name == "Node" ? node(object) : as_written(object);
    json::Array owners;
    for (json::Value owner : json::get_array(object, {"metadata", "ownerReferences"})) {
      const auto uid = uids.find(std::string(json::get_string(owner, {"uid"})));
      if (uid == uids.end()) continue;
      owner.as_object()["uid"] = uid->second;
      owners.push_back(std::move(owner));
    }
    if (!owners.empty()) json::set(written, {"metadata", "ownerReferences"}, std::move(owners));
    const std::string ns(json::get_string(object, {"metadata", "namespace"}));
    // Addresses are this cluster's own; what every cluster has is here already.
    if (kind_name == "Service")
      for (const char* field : {"clusterIP", "clusterIPs", "healthCheckNodePort"}) json::erase(written, {"spec", field});
    story.create(std::move(written), ns.empty() ? "default" : ns, true);
    remember(object, ns);
  }

  static json::Value node(const json::Value& object) {
    json::Value out = as_written(object);
    out.as_object()["status"] = json::Object{{"capacity", json::get_object(object, {"status", "capacity"})},
                                             {"allocatable", json::get_object(object, {"status", "allocatable"})}};
    json::set(out, {"metadata", "annotations", "sim.berth.dev/fleet"}, json::Value("default"));
    json::erase(out, {"metadata", "annotations", "sim.berth.dev/index"});
    return out;
  }

  void remember(const json::Value& object, const std::string& ns) {
    const std::string uid(json::get_string(object, {"metadata", "uid"}));
    apiserver::ObjectCache* cache = story.cluster().cache();
    if (uid.empty() || cache == nullptr) return;
    const std::string_view version = json::get_string(object, {"apiVersion"});
    const std::size_t slash = version.find('/');
    const model::KindInfo* kind =
        model::find_kind(slash == std::string_view::npos ? "" : version.substr(0, slash),
                         slash == std::string_view::npos ? version : version.substr(slash + 1), json::get_string(object, {"kind"}));
    if (kind == nullptr) return;
    const apiserver::ObjectPtr made = cache->get(
        apiserver::make_key(kind->storage_group, kind->plural, kind->namespaced ? ns : "", json::get_string(object, {"metadata", "name"})));
    if (made) uids[uid] = made->meta.uid;
  }
};

}  // namespace

std::vector<std::string> load_dump(const std::vector<json::Value>& objects, Story& story) {
  std::vector<const json::Value*> ordered;
  std::set<std::string> nodes;
  std::int64_t over = 0;
  for (const json::Value& object : objects) {
    const std::string_view kind = json::get_string(object, {"kind"});
    if (is_made_here(kind)) continue;
    const std::string_view phase = json::get_string(object, {"status", "phase"});
    if (kind == "Pod" && (phase == "Succeeded" || phase == "Failed" || json::find(object, {"metadata", "deletionTimestamp"}) != nullptr)) {
      ++over;
      continue;
    }
    if (kind == "Node") nodes.emplace(json::get_string(object, {"metadata", "name"}));
    ordered.push_back(&object);
  }
  std::ranges::stable_sort(ordered, {}, [](const json::Value* object) {
    const int rank = rank_of(json::get_string(*object, {"kind"}));
    // A ReplicaSet's Deployment, a Job's CronJob come first.
    const bool is_owned = std::ranges::any_of(json::get_array(*object, {"metadata", "ownerReferences"}),
                                              [](const json::Value& owner) { return json::get_bool(owner, {"controller"}); });
    return rank * 2 + is_owned;
  });
  Loader loader{story, {}, 0};
  for (const json::Value* object : ordered) {
    const std::string node(json::get_string(*object, {"spec", "nodeName"}));
    if (json::get_string(*object, {"kind"}) == "Pod" && !node.empty() && !nodes.contains(node)) {
      ++loader.adrift;
      continue;
    }
    loader.load(*object);
  }
  std::vector<std::string> notes;
  if (over > 0) notes.push_back(fmt::format("{} pods of the dump had ended or were being deleted: left out", over));
  if (loader.adrift > 0) notes.push_back(fmt::format("{} pods of the dump are on nodes that are not in it: left out", loader.adrift));
  return notes;
}

}  // namespace berth::simulator
