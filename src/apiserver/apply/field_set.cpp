#include "apiserver/apply/field_set.h"

#include <fmt/format.h>

namespace berth::apiserver::apply {

std::string field_element(std::string_view name) {
  std::string out = "f:";
  out += name;
  return out;
}

const FieldSet* FieldSet::find(std::string_view element) const {
  const auto found = children_.find(element);
  return found == children_.end() ? nullptr : &found->second;
}

FieldSet& FieldSet::child(std::string_view element) {
  const auto found = children_.find(element);
  if (found != children_.end()) return found->second;
  return children_.emplace(std::string(element), FieldSet()).first->second;
}

void FieldSet::erase(std::string_view element) {
  if (const auto found = children_.find(element); found != children_.end()) children_.erase(found);
}

void FieldSet::unite(const FieldSet& other) {
  member_ = member_ || other.member_;
  for (const auto& [element, below] : other.children_) child(element).unite(below);
}

void FieldSet::subtract(const FieldSet& other) {
  if (other.member_) member_ = false;
  for (const auto& [element, below] : other.children_) {
    const auto mine = children_.find(element);
    if (mine == children_.end()) continue;
    mine->second.subtract(below);
    if (mine->second.empty()) children_.erase(mine);
  }
}

FieldSet FieldSet::intersect(const FieldSet& other) const {
  FieldSet out;
  out.member_ = member_ && other.member_;
  for (const auto& [element, below] : children_) {
    const auto* theirs = other.find(element);
    if (theirs == nullptr) continue;
    auto both = below.intersect(*theirs);
    if (!both.empty()) out.children_.emplace(element, std::move(both));
  }
  return out;
}

bool FieldSet::has(const std::vector<std::string>& path) const {
  const FieldSet* at = this;
  for (const auto& element : path) {
    at = at->find(element);
    if (at == nullptr) return false;
  }
  return at->member_;
}

void FieldSet::insert(const std::vector<std::string>& path) {
  FieldSet* at = this;
  for (const auto& element : path) at = &at->child(element);
  at->member_ = true;
}

namespace {

std::string render_element(const std::string& element) {
  const std::string_view text = std::string_view(element).substr(2);
  switch (element[0]) {
    case 'f':
      return fmt::format(".{}", text);
    case 'v':
      return fmt::format("[={}]", text);
    case 'i':
      return fmt::format("[{}]", text);
    default:
      break;
  }
  std::string out = "[";
  if (auto keys = json::parse(text); keys && keys->is_object()) {
    for (const auto& [key, value] : keys->get_object()) {
      if (out.size() > 1) out += ',';
      out += fmt::format("{}={}", std::string_view(key), json::serialize(value));
    }
  }
  return out + "]";
}

/// The members of one level before what is below them, as structured-merge-diff walks a set.
void render(const FieldSet& set, const std::string& prefix, std::vector<std::string>& out) {
  for (const auto& [element, below] : set.children())
    if (below.is_member()) out.push_back(prefix + render_element(element));
  for (const auto& [element, below] : set.children()) render(below, prefix + render_element(element), out);
}

}  // namespace

std::vector<std::string> FieldSet::render_members() const {
  std::vector<std::string> out;
  render(*this, "", out);
  return out;
}

FieldSet FieldSet::from_json(const json::Value& fields) {
  FieldSet out;
  const auto* object = fields.if_object();
  if (object == nullptr) return out;
  for (const auto& [key, below] : *object) {
    const std::string_view element(key.data(), key.size());
    if (element == ".") {
      out.member_ = true;
      continue;
    }
    if (element.size() < 2 || element[1] != ':') continue;
    auto child = from_json(below);
    // An element with nothing below it stands for itself.
    if (const auto* members = below.if_object(); members != nullptr && members->empty()) child.member_ = true;
    out.children_.insert_or_assign(std::string(element), std::move(child));
  }
  return out;
}

json::Value FieldSet::to_json() const {
  json::Object out;
  if (member_ && !children_.empty()) out["."] = json::Object();
  for (const auto& [element, below] : children_) out[element] = below.to_json();
  return out;
}

}  // namespace berth::apiserver::apply
