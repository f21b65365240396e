// What the registry strategies do around a write, for every kind alike (Kubernetes: pkg/registry/generic, pkg/registry/*/strategy.go); what
// a kind adds stands in its record.
#include "model/strategy.h"

#include <algorithm>

#include "model/kind_hooks.h"
#include "model/off_fields.h"
#include "model/schema.h"

namespace berth::model {

using json::Object;
using json::Value;

namespace strategy {

void copy_member(const Value& from, Value& to, std::string_view key) {
  const Value* value = json::find(from, key);
  if (value != nullptr)
    to.get_object()[key] = *value;
  else
    to.get_object().erase(key);
}

void carry_request_metadata(const Value& doc, Value& kept) {
  for (const char* key : {"resourceVersion", "managedFields"})
    if (const Value* value = json::find(doc, {"metadata", key})) json::set(kept, {"metadata", key}, *value);
}

bool same_but_metadata_and_status(const Value& a, const Value& b) {
  const auto rest = [](const Value& v) {
    std::vector<std::pair<std::string_view, const Value*>> out;
    for (const auto& member : v.get_object()) {
      const std::string_view key(member.key().data(), member.key().size());
      if (key != "metadata" && key != "status" && key != "apiVersion" && key != "kind") out.emplace_back(key, &member.value());
    }
    std::sort(out.begin(), out.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
    return out;
  };
  const auto left = rest(a), right = rest(b);
  return left.size() == right.size() && std::equal(left.begin(), left.end(), right.begin(), [](const auto& x, const auto& y) {
           return x.first == y.first && json::equal(*x.second, *y.second);
         });
}

std::string created_at(const Value& doc) { return std::string(json::get_string(doc, {"metadata", "creationTimestamp"})); }

}  // namespace strategy

namespace {

/// Kinds with a status that only the status subresource writes.
bool has_status(const KindInfo& kind) { return kind.has_subresource("status"); }

/// Of a write of the status: what a client may change with it besides. The metadata that clients write moves, as Kubernetes' own kinds let
/// their controllers do (a Deployment's revision annotation comes this way from kube-controller-manager).
bool moves_with_status(const Strategy& own, std::string_view key) {
  if (key == "resourceVersion" || key == "managedFields") return true;
  if (key != "labels" && key != "annotations" && key != "finalizers" && key != "ownerReferences") return false;
  return std::ranges::find(own.kept_in_status_update, key) == own.kept_in_status_update.end();
}

/// Whether nothing but what may move with a status differs: nearly every such write, and then nothing need be put back.
bool touches_status_only(const Strategy& own, const Value& old, const Value& doc) {
  const auto same = [](const Object& a, const Object& b, const auto& may_move) {
    std::size_t counted = 0;
    for (const auto& [key, value] : a) {
      if (may_move(key)) continue;
      const Value* other = b.if_contains(key);
      if (other == nullptr || !json::equal(value, *other)) return false;
      ++counted;
    }
    return counted == static_cast<std::size_t>(std::ranges::count_if(b, [&](const auto& entry) { return !may_move(entry.key()); }));
  };
  if (!old.is_object() || !doc.is_object()) return false;
  const auto outside = [](std::string_view key) { return key == "status" || key == "metadata"; };
  return same(old.get_object(), doc.get_object(), outside) && same(json::get_object(old, {"metadata"}), json::get_object(doc, {"metadata"}),
                                                                   [&](std::string_view key) { return moves_with_status(own, key); });
}

void merge_status(const Strategy& own, const Value& old, Value& doc) {
  if (touches_status_only(own, old, doc)) return;
  Value kept = old;
  strategy::copy_member(doc, kept, "status");
  for (const std::string_view key : {"labels", "annotations", "finalizers", "ownerReferences"}) {
    if (!moves_with_status(own, key)) continue;
    if (const Value* value = json::find(doc, {"metadata", key}))
      json::set(kept, {"metadata", key}, *value);
    else
      json::erase(kept, {"metadata", key});
  }
  strategy::carry_request_metadata(doc, kept);
  doc = std::move(kept);
}

void count_generation(const Strategy& own, const Value& old, Value& doc, std::string_view subresource) {
  const std::int64_t generation = json::get_int(old, {"metadata", "generation"}, own.generation_from == GenerationFrom::kCreation ? 1 : 0);
  const bool changed =
      own.is_new_generation ? own.is_new_generation(old, doc, subresource) : !strategy::same_but_metadata_and_status(old, doc);
  if (changed || generation > 0) json::set(doc, {"metadata", "generation"}, changed ? generation + 1 : generation);
}

}  // namespace

void prepare_for_create(const KindInfo& kind, Value& doc, Features features) {
  const Strategy& own = *hooks_of(kind).strategy;
  drop_off_fields(kind, features, nullptr, doc);
  if (kind.generation && own.generation_from == GenerationFrom::kCreation) json::set(doc, {"metadata", "generation"}, 1);
  if (has_status(kind) && !own.keeps_given_status) doc.get_object()["status"] = own.initial_status ? own.initial_status() : Value(Object());
  if (own.prepare_create) own.prepare_create(doc);
}

void prepare_for_create(const KindInfo& kind, Value& doc) { prepare_for_create(kind, doc, Features()); }

void prepare_for_update(const KindInfo& kind, const Value& old, Value& doc, std::string_view subresource, std::string_view now) {
  prepare_for_update(kind, old, doc, subresource, now, Features());
}

void prepare_for_update(const KindInfo& kind, const Value& old, Value& doc, std::string_view subresource, std::string_view now,
                        Features features) {
  const Strategy& own = *hooks_of(kind).strategy;
  drop_off_fields(kind, features, &old, doc);
  const bool is_merged = own.merge_update && own.merge_update(old, doc, subresource, now);
  if (!is_merged && subresource == "status") {
    merge_status(own, old, doc);
    if (own.prepare_status) own.prepare_status(old, doc, now);
    return;
  }
  if (!is_merged && has_status(kind)) strategy::copy_member(old, doc, "status");
  if (own.prepare_update) own.prepare_update(old, doc, subresource);
  if (kind.generation) return count_generation(own, old, doc, subresource);
  // Nobody but a strategy moves it.
  if (const Value* generation = json::find(old, {"metadata", "generation"}))
    json::set(doc, {"metadata", "generation"}, *generation);
  else
    json::erase(doc, {"metadata", "generation"});
}

}  // namespace berth::model
