#include "custom/correlate.h"

namespace berth::custom {
namespace {

std::optional<std::string> key_of(const json::Value& element, const Schema& schema) {
  const auto* object = element.if_object();
  if (object == nullptr) return std::nullopt;
  std::string out;
  for (const auto& name : schema.list_map_keys) {
    const auto* value = object->if_contains(name);
    if (value == nullptr || value->is_null() || value->is_object() || value->is_array()) return std::nullopt;
    out += json::serialize(*value);
    out += '\0';
  }
  return out;
}

bool is_map_list(const Schema& schema) { return schema.list_type == "map" && !schema.list_map_keys.empty(); }

}  // namespace

KeyedList::KeyedList(const json::Array& list, const Schema& schema) : schema_(schema) {
  for (const auto& element : list)
    if (auto key = key_of(element, schema)) elements_.emplace(std::move(*key), &element);
}

const json::Value* KeyedList::find(const json::Value& element) const {
  const auto key = key_of(element, schema_);
  if (!key) return nullptr;
  const auto found = elements_.find(*key);
  return found == elements_.end() ? nullptr : found->second;
}

Correlated* Correlated::key(std::string_view name) {
  if (const auto known = keys_.find(name); known != keys_.end()) return known->second.get();
  const auto *now = now_->if_object(), *before = before_->if_object();
  if (now == nullptr || before == nullptr) return nullptr;
  const auto *here = now->if_contains(name), *there = before->if_contains(name);
  const auto* schema = schema_->member(name);
  if (here == nullptr || there == nullptr || schema == nullptr) return nullptr;
  return keys_.emplace(std::string(name), std::make_unique<Correlated>(*here, *there, *schema)).first->second.get();
}

Correlated* Correlated::index(std::size_t i) {
  if (const auto known = indices_.find(i); known != indices_.end()) return known->second.get();
  const auto *now = now_->if_array(), *before = before_->if_array();
  if (now == nullptr || before == nullptr || i >= now->size() || schema_->items == nullptr || !is_map_list(*schema_)) return nullptr;
  if (list_ == nullptr) list_ = std::make_unique<KeyedList>(*before, *schema_);
  const auto* there = list_->find((*now)[i]);
  if (there == nullptr) return nullptr;
  return indices_.emplace(i, std::make_unique<Correlated>((*now)[i], *there, *schema_->items)).first->second.get();
}

bool Correlated::is_same() {
  if (!same_) same_ = compare();
  return *same_;
}

bool Correlated::compare() {
  const auto *now_list = now_->if_array(), *old_list = before_->if_array();
  const auto *now_map = now_->if_object(), *old_map = before_->if_object();
  if ((now_list == nullptr) != (old_list == nullptr) || (now_map == nullptr) != (old_map == nullptr)) return false;
  if (now_list != nullptr) {
    if (now_list->size() != old_list->size()) return false;
    if (!is_map_list(*schema_)) return json::equal(*now_, *before_);
    for (std::size_t i = 0; i < now_list->size(); ++i) {
      auto* child = index(i);
      if (child == nullptr || !child->is_same()) return false;
    }
    return true;
  }
  if (now_map == nullptr) return json::equal(*now_, *before_);
  if (now_map->size() != old_map->size()) return false;
  for (const auto& [name, member] : *now_map) {
    auto* child = key({name.data(), name.size()});
    if (child == nullptr || !child->is_same()) return false;
  }
  return true;
}

}  // namespace berth::custom
