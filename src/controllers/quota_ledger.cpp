#include "controllers/quota_ledger.h"

namespace berth::controllers {
namespace {

bool is_resized(const Object& pod) { return pod.text()->find("\"allocatedResources\"") != std::string::npos; }

/// Nothing that counts differs. Of most kinds only the number of objects counts; a pod's end frees what it asked for, and what it holds, as
/// what a claim does, its status tells as well.
bool uses_the_same(const Event& event) {
  if (!event.before || !event.after) return false;
  if (event.before == event.after) return true;
  const bool is_pod = event.kind == kinds().pod;
  if (event.kind == kinds().persistent_volume_claim) return false;
  if (!is_pod && event.kind != kinds().service) return true;
  if (is_pod && event.pod_before->is_finished() != event.pod_after->is_finished()) return false;
  if (is_pod && (is_resized(*event.before) || is_resized(*event.after))) return false;
  return event.before->uid() == event.after->uid() && spec_text(*event.before) == spec_text(*event.after);
}

std::string extended_resource(const ObjectRef& device_class) {
  return device_class ? std::string(json::get_string(*device_class->parsed(), {"spec", "extendedResourceName"})) : std::string();
}

model::ResourceAmounts usage_of(Kind kind, const json::Value& document, const Cache& cache, bool has_stopped) {
  return model::quota_usage(
      *kind, document, [&](const std::string& name) { return extended_resource(cache.get(kinds().device_class, {}, name)); }, has_stopped);
}

model::ResourceAmounts limited_by(const json::Value& quota) {
  model::ResourceAmounts out;
  for (const auto& [resource, amount] : json::get_object(quota, {"spec", "hard"})) out[std::string(resource)] = {};
  return out;
}

}  // namespace

const std::vector<Kind>& quota_counted_kinds() {
  static const std::vector<Kind> all = [] {
    std::vector<Kind> namespaced = collectable_kinds();
    std::erase_if(namespaced, [](Kind kind) { return !kind->namespaced; });
    return namespaced;
  }();
  return all;
}

void QuotaLedger::observe(const Event& event, const Cache& cache, const std::function<void(const std::string& key)>& moved) {
  if (event.kind == kinds().device_class) return take_class(event, cache, moved);
  const std::string& ns = event.object().ns();
  if (by_ns_.contains(ns) && !uses_the_same(event))
    shift(event.kind, ns, share_of(event.kind, event.before, cache), share_of(event.kind, event.after, cache), moved);
  if (event.before && (!event.after || event.after->uid() != event.before->uid())) stopped_.erase(event.before->uid());
  if (event.kind == kinds().resource_quota) take_quota(event, cache);
}

void QuotaLedger::stop_counting(const Object& pod, const Cache& cache, const std::function<void(const std::string& key)>& moved) {
  if (stopped_.contains(pod.uid())) return;
  const ObjectRef object = cache.get(kinds().pod, pod.ns(), pod.name());
  if (!object || object->uid() != pod.uid()) return;
  const Share before = share_of(kinds().pod, object, cache);
  stopped_.insert(pod.uid());
  shift(kinds().pod, pod.ns(), before, share_of(kinds().pod, object, cache), moved);
}

QuotaLedger::Share QuotaLedger::share_of(Kind kind, const ObjectRef& object, const Cache& cache) const {
  Share share;
  if (!object) return share;
  share.document = object->parsed();
  share.usage = usage_of(kind, *share.document, cache, stopped_.contains(object->uid()));
  return share;
}

void QuotaLedger::shift(Kind kind, const std::string& ns, const Share& before, const Share& after,
                        const std::function<void(const std::string& key)>& moved) {
  const auto in = by_ns_.find(ns);
  if (in == by_ns_.end()) return;
  for (auto& [name, quota] : in->second) {
    const auto counted = [&](const Share& share) { return share.document && model::quota_selects(quota.document, *kind, *share.document); };
    const bool was = counted(before), is = counted(after);
    bool differs = false;
    for (auto& [resource, amount] : quota.used) {
      const auto part = [&](bool counts, const Share& share) {
        const auto found = share.usage.find(resource);
        return counts && found != share.usage.end() ? found->second : model::Quantity();
      };
      const model::Quantity less = part(was, before), more = part(is, after);
      if (less == more) continue;
      differs = true;
      amount -= less;
      amount += more;
    }
    if (differs) moved(fmt::format("{}/{}", ns, name));
  }
}

void QuotaLedger::take_quota(const Event& event, const Cache& cache) {
  const std::string &ns = event.object().ns(), &name = event.object().name();
  if (!event.after) {
    by_ns_[ns].erase(name);
    if (by_ns_[ns].empty()) by_ns_.erase(ns);
    return;
  }
  Quota& quota = by_ns_[ns][name];
  const std::string spec = spec_text(*event.after);
  if (!quota.document.is_null() && quota.spec == spec) return;
  quota = {std::string(spec), event.after->document(), recount(event.after, cache, stopped_)};
}

/// Claims count by another name than before: seldom enough to count everything anew.
void QuotaLedger::take_class(const Event& event, const Cache& cache, const std::function<void(const std::string& key)>& moved) {
  if (extended_resource(event.before) == extended_resource(event.after)) return;
  for (auto& [ns, quotas] : by_ns_)
    for (auto& [name, quota] : quotas) {
      const ObjectRef object = cache.get(kinds().resource_quota, ns, name);
      if (!object) continue;
      model::ResourceAmounts now = recount(object, cache, stopped_);
      if (now == quota.used) continue;
      quota.used = std::move(now);
      moved(fmt::format("{}/{}", ns, name));
    }
}

const model::ResourceAmounts* QuotaLedger::used(const std::string& ns, const std::string& name) const {
  const auto in = by_ns_.find(ns);
  if (in == by_ns_.end()) return nullptr;
  const auto found = in->second.find(name);
  return found == in->second.end() ? nullptr : &found->second.used;
}

model::ResourceAmounts QuotaLedger::recount(const ObjectRef& quota, const Cache& cache, const Stopped& stopped) {
  const auto parsed = quota->parsed();
  const json::Value& document = *parsed;
  model::ResourceAmounts used = limited_by(document);
  for (const Kind kind : cache.all_collectable())
    cache.for_each_in(kind, quota->ns(), [&](const ObjectRef& one) {
      const auto counted_parsed = one->parsed();
      const json::Value& counted = *counted_parsed;
      if (!model::quota_selects(document, *kind, counted)) return;
      for (const auto& [resource, amount] : usage_of(kind, counted, cache, stopped.contains(one->uid())))
        if (const auto found = used.find(resource); found != used.end()) found->second += amount;
    });
  return used;
}

}  // namespace berth::controllers
