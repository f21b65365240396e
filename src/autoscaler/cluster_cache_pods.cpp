// Pods as a ClusterCache keeps them: read when somebody asks, remembered at once.
#include "autoscaler/cluster_cache.h"
#include "base/json_scan.h"
#include "placement/relabelled.h"

namespace berth::autoscaler {

void ClusterCache::upsert_pod(PodPtr parsed) {
  catch_up();
  remember(mark_of(parsed->key()), PodMark::of(*parsed));
  take_pod(std::move(parsed));
}

void ClusterCache::take_pod(PodPtr pod) const {
  cluster_.upsert_pod(pod->info);
  const std::string& key = pod->key();
  if (pod->view().is_terminal() && pod->facts.is_finished)
    pods_.erase(key);
  else
    pods_.put(std::move(pod));
}

ClusterCache::PodMark ClusterCache::PodMark::of(const Pod& pod) {
  const model::PodView& view = pod.view();
  const model::OwnerReference* owner = view.meta.controller();
  return {.uid = view.meta.uid,
          .controller = owner == nullptr ? std::string_view() : std::string_view(owner->uid),
          .labels = &view.meta.labels,
          .created = pod.facts.created.value_or(TimePoint{}),
          .belongs_to_node = model::counts_as_daemon(pod.view().meta) || model::is_mirror(pod.view().meta),
          .is_evicted = pod.facts.is_evicted,
          .is_disrupted = pod.facts.is_disrupted,
          .is_terminal = view.is_terminal(),
          .is_finished = pod.facts.is_finished};
}

std::optional<ClusterCache::PodMark> ClusterCache::PodMark::of(const client::Object& pod) {
  static const json::PathScanner scanner(
      {"metadata.annotations", "metadata.creationTimestamp", "spec.restartPolicy", "status.phase", "status.conditions"});
  std::array<std::string_view, 5> raw;
  const HeldText text = pod.text();
  if (!scanner.scan(*text, raw)) return std::nullopt;
  PodMark out{.uid = pod.uid(), .controller = pod.controller_uid(), .labels = &pod.labels()};
  out.created = parse_rfc3339(json::unquote(raw[1])).value_or(TimePoint{});
  const bool has_failed = raw[3] == R"("Failed")", has_succeeded = raw[3] == R"("Succeeded")";
  out.is_terminal = has_failed || has_succeeded;
  out.is_finished = has_failed || (has_succeeded && raw[2] != R"("Always")");
  out.belongs_to_node = pod.controller_kind() == "DaemonSet";
  if (raw[0].find(model::kDaemonPod) != std::string_view::npos || raw[0].find(model::kMirrorPod) != std::string_view::npos)
    json::for_each_member(raw[0], [&](std::string_view key, std::string_view value) {
      const std::string name = json::unquote(key);
      out.belongs_to_node |= name == model::kMirrorPod || (name == model::kDaemonPod && json::unquote(value) == "true");
    });
  if (raw[4].find("DisruptionTarget") == std::string_view::npos) return out;
  json::for_each_element(raw[4], [&](std::string_view condition) {
    static const json::PathScanner fields({"type", "status", "reason"});
    std::array<std::string_view, 3> field;
    if (!fields.scan(condition, field) || field[0] != R"("DisruptionTarget")" || field[1] != R"("True")") return;
    out.is_disrupted = true;
    out.is_evicted |= field[2] == R"("EvictionByEvictionAPI")";
  });
  return out;
}

void ClusterCache::upsert_pod(client::ObjectRef pod) {
  auto mark = PodMark::of(*pod);
  if (!mark) return;
  const std::string key = pod->key();
  remember(mark_of(key), mark);
  const bool is_over = mark->is_finished;
  put_off(key, is_over ? nullptr : std::move(pod), is_over ? std::nullopt : std::move(mark));
}

void ClusterCache::put_off(const std::string& key, client::ObjectRef object, std::optional<PodMark> mark) {
  const auto [at, is_first] = unread_at_.try_emplace(key, unread_.size());
  if (!is_first) {
    Unread& known = unread_[at->second];
    known.is_outdated = true;
    known.object.reset();
    at->second = unread_.size();
  }
  if (object == nullptr && !pods_.all.contains(key)) {
    // It came and went, and nobody asked meanwhile.
    unread_at_.erase(at);
  } else {
    unread_.push_back({key, std::move(object), std::move(mark)});
  }
  // Nobody may ask for hours: of who is not the leader.
  constexpr std::size_t kFew = 1000;
  if (unread_.size() < kFew || unread_.size() < 2 * unread_at_.size()) return;
  std::erase_if(unread_, [](const Unread& one) { return one.is_outdated; });
  for (std::size_t i = 0; i < unread_.size(); ++i) unread_at_[unread_[i].key] = i;
}

void ClusterCache::catch_up() const {
  if (unread_.empty()) return;
  for (Unread& one : unread_) {
    if (one.is_outdated) continue;
    if (one.object == nullptr) {
      cluster_.remove_pod(one.key);
      pods_.erase(one.key);
    } else if (const auto document = one.object->parsed(); document->is_object()) {
      take_pod(Pod::parse(*document, era_, false));
    }
  }
  unread_.clear();
  unread_at_.clear();
}

std::optional<ClusterCache::PodMark> ClusterCache::mark_of(const std::string& key) const {
  if (const auto unread = unread_at_.find(key); unread != unread_at_.end()) return unread_[unread->second].mark;
  const auto known = pods_.all.find(key);
  return known == pods_.all.end() ? std::nullopt : std::optional(PodMark::of(*known->second));
}

void ClusterCache::remember(const std::optional<PodMark>& before, const std::optional<PodMark>& now) {
  if (before && now && before->uid != now->uid) {
    remember(before, std::nullopt);
    return remember(std::nullopt, now);
  }
  if (!before && !now) return;
  if ((now ? *now : *before).belongs_to_node) return;
  if (!now) {
    moves_.gone(std::string(before->uid));
    // The news was that it had to leave: the last pods of a lost node end long after it was lost.
    if (!before->is_disrupted) moves_.changed();
  } else if (!before) {
    // Who has ended is not kept: each of its changes is a first one.
    if (!now->is_terminal && !moves_.came(std::string(now->uid), std::string(now->controller), now->created)) moves_.changed();
  } else {
    const bool has_to_leave = now->is_disrupted && !before->is_disrupted;
    if (has_to_leave && now->is_evicted)
      moves_.evicted(std::string(now->controller));
    else if (has_to_leave)
      moves_.changed();
    const bool has_ended = now->is_terminal != before->is_terminal;
    if (has_ended || (*before->labels != *now->labels && placement::is_relabelled(before->labels->pairs(), now->labels->pairs())))
      moves_.changed();
  }
}

}  // namespace berth::autoscaler
