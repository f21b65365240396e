// How a Deployment's ReplicaSets are sized (pkg/controller/deployment/{rolling,sync}.go, util/deployment_util.go).
#include <cmath>

#include "controllers/deployment_model.h"
#include "controllers/pod_template_hash.h"

namespace berth::controllers::deployment {

std::int64_t Set::annotation(const char* key, std::int64_t fallback) const {
  const std::string_view text = json::get_string(document, {"metadata", "annotations", key});
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && !text.empty() ? value : fallback;
}

Wanted read_wanted(const json::Value& document) {
  Wanted wanted;
  wanted.replicas = json::get_int(document, {"spec", "replicas"}, 1);
  wanted.paused = json::get_bool(document, {"spec", "paused"});
  wanted.rolling = json::get_string(document, {"spec", "strategy", "type"}, "RollingUpdate") == "RollingUpdate";
  if (wanted.rolling) {
    wanted.max_surge = scaled_value(json::find(document, {"spec", "strategy", "rollingUpdate", "maxSurge"}), wanted.replicas, true,
                                    (wanted.replicas + 3) / 4);
    wanted.max_unavailable = scaled_value(json::find(document, {"spec", "strategy", "rollingUpdate", "maxUnavailable"}), wanted.replicas,
                                          false, wanted.replicas / 4);
    // Both rounded to zero could never move: one pod may then be missing.
    if (wanted.max_surge == 0 && wanted.max_unavailable == 0) wanted.max_unavailable = 1;
    wanted.max_unavailable = std::min(wanted.max_unavailable, wanted.replicas);
  }
  const std::int64_t deadline = json::get_int(document, {"spec", "progressDeadlineSeconds"}, std::numeric_limits<std::int32_t>::max());
  if (deadline != std::numeric_limits<std::int32_t>::max()) wanted.progress_deadline = std::chrono::seconds(deadline);
  return wanted;
}

std::vector<Set*> View::old_sets() {
  std::vector<Set*> old;
  for (Set& set : sets)
    if (&set != newest) old.push_back(&set);
  return old;
}

std::vector<Set*> View::active_sets() {
  std::vector<Set*> active;
  for (Set& set : sets)
    if (set.replicas > 0) active.push_back(&set);
  return active;
}

std::int64_t View::total_replicas() const {
  std::int64_t total = 0;
  for (const Set& set : sets) total += set.replicas;
  return total;
}

bool same_template(const json::Value& one, const json::Value& other) {
  const auto without_hash = [](const json::Value& pod_template) {
    json::Value copy = pod_template;
    json::erase(copy, {"metadata", "labels", kHashLabel});
    return copy;
  };
  const json::Value left = without_hash(one), right = without_hash(other);
  return left == right || dump_pod_template(left) == dump_pod_template(right);
}

std::int64_t new_set_replicas(const View& view, std::int64_t present) {
  if (!view.wanted.rolling) return view.wanted.replicas;
  const std::int64_t room = view.wanted.max_total() - view.total_replicas();
  if (room <= 0) return present;
  return present + std::min(room, view.wanted.replicas - present);
}

bool scale_set(Plan& plan, View& view, Set& set, std::int64_t replicas, Annotate annotate) {
  if (annotate == Annotate::kWithSize && set.replicas == replicas) return false;
  const std::int64_t max_total = view.wanted.max_total();
  const bool annotated = set.annotation(kDesiredReplicas, -1) == view.wanted.replicas && set.annotation(kMaxReplicas, -1) == max_total;
  if (set.replicas == replicas && annotated) return false;
  json::Object annotations{{kDesiredReplicas, std::to_string(view.wanted.replicas)}, {kMaxReplicas, std::to_string(max_total)}};
  Write write = patch_object(
      kinds().replica_set, *set.object,
      {{"metadata", json::Object{{"annotations", std::move(annotations)}}}, {"spec", json::Object{{"replicas", replicas}}}}, false);
  const bool resized = set.replicas != replicas;
  if (resized) {
    const char* direction = set.replicas < replicas ? "up" : "down";
    write.on_success = note_about(kinds().deployment, *view.object, "Normal", "ScalingReplicaSet",
                                  fmt::format("Scaled {} replica set {} from {} to {}", direction, set.name(), set.replicas, replicas));
  }
  set.replicas = replicas;
  plan.writes.push_back(std::move(write));
  return resized;
}

namespace {

std::int64_t proportion(const View& view, const Set& set, std::int64_t to_add, std::int64_t added) {
  if (to_add == 0 || added == to_add) return 0;
  const Wanted& wanted = view.wanted;
  std::int64_t fraction = -set.replicas;
  if (wanted.replicas > 0) {
    std::int64_t annotated = set.annotation(kMaxReplicas, json::get_int(view.document, {"status", "replicas"}));
    if (annotated == 0) annotated = 1;
    const double size = static_cast<double>(set.replicas) * static_cast<double>(wanted.max_total()) / static_cast<double>(annotated);
    fraction = static_cast<std::int64_t>(std::lround(size)) - set.replicas;
  }
  const std::int64_t allowed = to_add - added;
  return to_add > 0 ? std::min(fraction, allowed) : std::max(fraction, allowed);
}

bool is_saturated(const View& view) {
  const Set* set = view.newest;
  return set != nullptr && set->replicas == view.wanted.replicas && set->annotation(kDesiredReplicas, -1) == view.wanted.replicas &&
         set->available == view.wanted.replicas;
}

}  // namespace

void scale_proportionally(Plan& plan, View& view) {
  std::vector<Set*> active = view.active_sets();
  if (active.size() <= 1) {
    Set* only = !active.empty() ? active.front() : view.newest != nullptr ? view.newest : view.sets.empty() ? nullptr : &view.sets.back();
    // A set that has the size already keeps what it says of the maximum; only another desired size would be taken for a scaling again.
    if (only != nullptr)
      scale_set(plan, view, *only, view.wanted.replicas,
                only->annotation(kDesiredReplicas, view.wanted.replicas) == view.wanted.replicas ? Annotate::kWithSize : Annotate::kAlways);
    return;
  }
  if (is_saturated(view)) {
    for (Set* set : view.old_sets())
      if (set->replicas > 0) scale_set(plan, view, *set, 0);
    return;
  }
  if (!view.wanted.rolling) return;
  const std::int64_t allowed = view.wanted.replicas > 0 ? view.wanted.max_total() : 0;
  const std::int64_t to_add = allowed - view.total_replicas();
  std::sort(active.begin(), active.end(), [to_add](const Set* a, const Set* b) {
    if (a->replicas != b->replicas) return a->replicas > b->replicas;
    return to_add > 0 ? a->created > b->created : a->created < b->created;
  });
  std::int64_t added = 0;
  std::vector<std::int64_t> sizes;
  for (const Set* set : active) {
    const std::int64_t share = proportion(view, *set, to_add, added);
    sizes.push_back(set->replicas + share);
    added += share;
  }
  sizes.front() = std::max<std::int64_t>(0, sizes.front() + to_add - added);
  for (std::size_t i = 0; i < active.size(); ++i) scale_set(plan, view, *active[i], sizes[i], Annotate::kAlways);
}

namespace {

bool scale_down_old(Plan& plan, View& view) {
  std::vector<Set*> old = view.old_sets();
  std::erase_if(old, [](const Set* set) { return set->replicas == 0; });
  if (old.empty() || view.newest == nullptr) return false;
  const std::int64_t min_available = view.wanted.replicas - view.wanted.max_unavailable;
  const std::int64_t new_unavailable = view.newest->replicas - view.newest->available;
  const std::int64_t max_down = view.total_replicas() - min_available - new_unavailable;
  if (max_down <= 0) return false;
  std::int64_t available_total = 0;
  for (const Set& set : view.sets) available_total += set.available;

  std::vector<std::int64_t> sizes;
  for (const Set* set : old) sizes.push_back(set->replicas);
  std::int64_t down = 0;
  // Unhealthy pods go first: they give nothing, whatever the budget of available ones.
  bool is_stale = false;
  for (std::size_t i = 0; i < old.size() && down < max_down && !is_stale; ++i) {
    const std::int64_t take = std::min(max_down - down, old[i]->replicas - old[i]->available);
    // More available than asked for: it was just scaled down, and its status still counts the pods that go. Whoever believed it would
    // take away the last good ones.
    is_stale = take < 0;
    if (is_stale) break;
    sizes[i] -= take;
    down += take;
  }
  std::int64_t budget = is_stale ? 0 : available_total - min_available;
  for (std::size_t i = 0; i < old.size() && budget > 0; ++i) {
    const std::int64_t take = std::min(sizes[i], budget);
    sizes[i] -= take;
    budget -= take;
  }
  bool scaled = false;
  for (std::size_t i = 0; i < old.size(); ++i)
    if (sizes[i] != old[i]->replicas) scaled |= scale_set(plan, view, *old[i], sizes[i]);
  return scaled;
}

}  // namespace

bool roll(Plan& plan, View& view) {
  if (view.newest == nullptr) return false;
  Set& fresh = *view.newest;
  const std::int64_t size = fresh.replicas > view.wanted.replicas    ? view.wanted.replicas
                            : fresh.replicas == view.wanted.replicas ? fresh.replicas
                                                                     : new_set_replicas(view, fresh.replicas);
  if (size != fresh.replicas) return scale_set(plan, view, fresh, size);
  return scale_down_old(plan, view);
}

void clean_history(Plan& plan, View& view) {
  const json::Value* limit = json::find(view.document, {"spec", "revisionHistoryLimit"});
  if (limit == nullptr) return;
  std::vector<Set*> old = view.old_sets();
  std::erase_if(old, [](const Set* set) { return set->object->is_deleting(); });
  std::stable_sort(old.begin(), old.end(), [](const Set* a, const Set* b) { return a->revision < b->revision; });
  old.resize(surplus_over(old.size(), json::get_int(view.document, {"spec", "revisionHistoryLimit"}, 10)));
  for (const Set* one : old) {
    const Set& set = *one;
    const bool observed =
        json::get_int(set.document, {"metadata", "generation"}) <= json::get_int(set.document, {"status", "observedGeneration"});
    if (set.status_replicas != 0 || set.replicas != 0 || !observed) continue;
    plan.writes.push_back(delete_object(kinds().replica_set, *set.object));
  }
}

}  // namespace berth::controllers::deployment
