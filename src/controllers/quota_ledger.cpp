#include "controllers/quota_ledger.h"

namespace berth::controllers {
namespace {

/// Nothing that counts differs. Of most kinds only the number of objects counts; a pod's end frees what it asked for.
bool uses_the_same(const Event& event) {
  if (!event.before || !event.after) return false;
  if (event.before == event.after) return true;
  const bool is_pod = event.kind == kinds().pod;
  if (!is_pod && event.kind != kinds().service && event.kind != kinds().persistent_volume_claim) return true;
  if (is_pod && event.pod_before->is_finished() != event.pod_after->is_finished()) return false;
  return spec_text(*event.before) == spec_text(*event.after);
}

std::string extended_resource(const ObjectRef& device_class) {
  return device_class ? std::string(json::get_string(*device_class->parsed(), {"spec", "extendedResourceName"})) : std::string();
}

model::ResourceAmounts usage_of(Kind kind, const json::Value& document, const Cache& cache) {
  return model::quota_usage(*kind, document,
                            [&](const std::string& name) { return extended_resource(cache.get(kinds().device_class, {}, name)); });
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
  if (const auto in = by_ns_.find(ns); in != by_ns_.end() && !uses_the_same(event)) {
    /// An object and what it uses.
    struct Share {
      json::Value document;
      model::ResourceAmounts usage;
    };
    const auto share_of = [&](const ObjectRef& object) {
      Share share{object ? object->document() : json::Value(), {}};
      if (object) share.usage = usage_of(event.kind, share.document, cache);
      return share;
    };
    const Share before = share_of(event.before), after = share_of(event.after);
    for (auto& [name, quota] : in->second) {
      const auto counted = [&](const ObjectRef& object, const Share& share) {
        return object && model::quota_selects(quota.document, *event.kind, share.document);
      };
      const bool was = counted(event.before, before), is = counted(event.after, after);
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
  if (event.kind == kinds().resource_quota) take_quota(event, cache);
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
  quota = {std::string(spec), event.after->document(), recount(event.after, cache)};
}

/// Claims count by another name than before: seldom enough to count everything anew.
void QuotaLedger::take_class(const Event& event, const Cache& cache, const std::function<void(const std::string& key)>& moved) {
  if (extended_resource(event.before) == extended_resource(event.after)) return;
  for (auto& [ns, quotas] : by_ns_)
    for (auto& [name, quota] : quotas) {
      const ObjectRef object = cache.get(kinds().resource_quota, ns, name);
      if (!object) continue;
      model::ResourceAmounts now = recount(object, cache);
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

model::ResourceAmounts QuotaLedger::recount(const ObjectRef& quota, const Cache& cache) {
  const auto parsed = quota->parsed();
  const json::Value& document = *parsed;
  model::ResourceAmounts used = limited_by(document);
  for (const Kind kind : cache.all_collectable())
    cache.for_each_in(kind, quota->ns(), [&](const ObjectRef& one) {
      const auto counted_parsed = one->parsed();
      const json::Value& counted = *counted_parsed;
      if (!model::quota_selects(document, *kind, counted)) return;
      for (const auto& [resource, amount] : usage_of(kind, counted, cache))
        if (const auto found = used.find(resource); found != used.end()) found->second += amount;
    });
  return used;
}

}  // namespace berth::controllers
