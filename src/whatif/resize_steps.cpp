// A pod that runs gets other amounts where it is (in-place resize).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "placement/resize_room.h"
#include "whatif/steps.h"
#include "whatif/workloads.h"

namespace berth::whatif {
namespace {

Result<void> set_requests(model::ResourceList& list, const json::Value& requests) {
  if (!requests.is_object() || requests.get_object().empty()) return invalid("\"requests\": amounts such as {\"cpu\": 2} are wanted");
  for (const auto& [name, amount] : requests.get_object()) {
    if (name != "cpu" && name != "memory")
      return invalid(fmt::format("requests.{}: only cpu and memory are resized in place", std::string_view(name)));
    const auto parsed = model::Quantity::parse(amount.is_string() ? std::string(json::as_view(amount)) : json::serialize(amount));
    if (!parsed || parsed->milli_value() < 0)
      return invalid(fmt::format("requests.{}: an amount such as 500m or 2Gi is wanted", std::string_view(name)));
    const auto known = std::ranges::find(list, std::string_view(name), [](const auto& one) { return std::string_view(one.first); });
    if (known == list.end())
      list.emplace_back(std::string(name), *parsed);
    else
      known->second = *parsed;
  }
  return {};
}

/// What a resize of this pod changes: a container's requests, or those of the pod as a whole.
Result<void> resize(model::PodView& pod, const std::string& container, const json::Value& requests) {
  Result<void> out;
  const auto set = [&](model::ResourceList& list) { out = set_requests(list, requests); };
  const auto set_of = [&](SharedList<model::ContainerView>& list, std::size_t i) {
    list.change_at(i, [&](model::ContainerView& one) { set(one.requests); });
    return out;
  };
  if (container.empty() && !pod.pod_requests.empty()) {
    pod.pod_requests.change(set);
    return out;
  }
  if (container.empty() && pod.containers.size() == 1) return set_of(pod.containers, 0);
  std::vector<std::string> names;
  for (auto* list : {&pod.containers, &pod.init_containers})
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (!container.empty() && (*list)[i].name == container) return set_of(*list, i);
      names.push_back((*list)[i].name);
    }
  const std::vector<std::string_view> views(names.begin(), names.end());
  if (container.empty()) return invalid(fmt::format("\"container\": the pod has several: {}", fmt::join(names, ", ")));
  return invalid(fmt::format("container: the pod has no \"{}\"{}", container, config::suggestion(container, views)));
}

}  // namespace

Result<void> resize_pod(World& world, const std::string& text, const std::string& container, const json::Value& requests) {
  const auto key = running_pod(world, text);
  if (!key) return std::unexpected(key.error());
  const placement::PodInfoPtr there = world.cluster().find_pod(*key);
  auto view = std::make_shared<model::PodView>(there->view());
  if (auto set = resize(*view, container, requests); !set) return set;
  const placement::Era era = world.cluster().era();
  const placement::Resource wanted = placement::pod_request(*view, era, false).total;
  const auto room = placement::room_for_resize(world.cluster(), *there, &wanted);
  if (!room) {
    world.note(fmt::format("{}: it has these amounts already", *key));
    return {};
  }
  world.note(fmt::format("{}: {}", *key, placement::words_of(*room)));
  // What a node can never grant counts for nobody; what waits counts as taken for whoever comes later, as in Kubernetes.
  if (room->lacks.empty()) {
    view->container_statuses.clear();  // Granted at once: what was allocated before counts no more.
    view->pod_level_status.reset();
  }
  if (!room->is_too_large) world.replace(*key, placement::PodInfo::make(std::move(view), era));
  world.settle();
  return {};
}

}  // namespace berth::whatif
