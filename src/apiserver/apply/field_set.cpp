#include "apiserver/apply/field_set.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::apiserver::apply {

std::string field_element(std::string_view name) {
  std::string out = "f:";
  out += name;
  return out;
}

std::size_t FieldSet::place_of(std::string_view element) const {
  const auto found = std::lower_bound(children_.begin(), children_.end(), element,
                                      [](const auto& child, std::string_view wanted) { return child.first < wanted; });
  return static_cast<std::size_t>(found - children_.begin());
}

bool FieldSet::is_at(std::size_t place, std::string_view element) const {
  return place < children_.size() && children_[place].first == element;
}

const FieldSet* FieldSet::find(std::string_view element) const {
  const auto place = place_of(element);
  return is_at(place, element) ? &children_[place].second : nullptr;
}

FieldSet& FieldSet::child(std::string_view element) {
  const auto place = place_of(element);
  if (!is_at(place, element)) {
    if (children_.empty()) children_.reserve(4);
    children_.emplace(children_.begin() + static_cast<std::ptrdiff_t>(place), std::string(element), FieldSet());
  }
  return children_[place].second;
}

void FieldSet::put(std::string element, FieldSet below) {
  const auto place = place_of(element);
  if (is_at(place, element)) {
    children_[place].second = std::move(below);
  } else {
    if (children_.empty()) children_.reserve(4);
    children_.emplace(children_.begin() + static_cast<std::ptrdiff_t>(place), std::move(element), std::move(below));
  }
}

void FieldSet::erase(std::string_view element) {
  const auto place = place_of(element);
  if (is_at(place, element)) children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(place));
}

void FieldSet::unite(const FieldSet& other) {
  member_ = member_ || other.member_;
  for (const auto& [element, below] : other.children_) child(element).unite(below);
}

void FieldSet::subtract(const FieldSet& other) {
  if (other.member_) member_ = false;
  for (const auto& [element, below] : other.children_) {
    const auto place = place_of(element);
    if (!is_at(place, element)) continue;
    children_[place].second.subtract(below);
    if (children_[place].second.empty()) children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(place));
  }
}

FieldSet FieldSet::intersect(const FieldSet& other) const {
  FieldSet out;
  out.member_ = member_ && other.member_;
  for (const auto& [element, below] : children_) {
    const auto* theirs = other.find(element);
    if (theirs == nullptr) continue;
    auto both = below.intersect(*theirs);
    if (!both.empty()) out.children_.emplace_back(element, std::move(both));
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
    out.child(element) = std::move(child);
  }
  return out;
}

json::Value FieldSet::to_json() const {
  json::Object out;
  if (children_.empty()) return out;
  out.reserve(children_.size() + 1);
  if (member_) out.emplace(".", json::Object());
  for (const auto& [element, below] : children_) out.emplace(element, below.to_json());
  return out;
}

}  // namespace berth::apiserver::apply
