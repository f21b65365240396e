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

FieldSet FieldSet::of(bool member, Children children) {
  FieldSet out;
  out.member_ = member;
  const auto by_element = [](const auto& a, const auto& b) { return a.first < b.first; };
  if (!std::is_sorted(children.begin(), children.end(), by_element)) std::stable_sort(children.begin(), children.end(), by_element);
  const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
  for (auto at = std::adjacent_find(children.begin(), children.end(), same); at != children.end();) {
    std::vector<const FieldSet*> equal;
    auto end = at;
    for (; end != children.end() && end->first == at->first; ++end) equal.push_back(&end->second);
    auto united = union_of(equal);
    at->second = std::move(united);
    for (auto gone = at + 1; gone != end; ++gone) gone->first.clear();  // No element is empty.
    at = std::adjacent_find(end, children.end(), same);
  }
  std::erase_if(children, [](const auto& child) { return child.first.empty(); });
  out.children_ = std::move(children);
  return out;
}

FieldSet FieldSet::union_of(const std::vector<const FieldSet*>& sets) {
  if (sets.size() == 1) return *sets.front();
  bool member = false;
  std::vector<std::pair<std::string_view, const FieldSet*>> all;
  for (const auto* set : sets) {
    member = member || set->member_;
    for (const auto& [element, below] : set->children_) all.emplace_back(element, &below);
  }
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  Children children;
  for (std::size_t i = 0; i < all.size();) {
    std::vector<const FieldSet*> equal;
    const auto element = all[i].first;
    for (; i < all.size() && all[i].first == element; ++i) equal.push_back(all[i].second);
    children.emplace_back(std::string(element), union_of(equal));
  }
  FieldSet out;
  out.member_ = member;
  out.children_ = std::move(children);
  return out;
}

void FieldSet::erase(std::string_view element) {
  const auto place = place_of(element);
  if (is_at(place, element)) children_.erase(children_.begin() + static_cast<std::ptrdiff_t>(place));
}

void FieldSet::unite(const FieldSet& other) { *this = union_of({this, &other}); }

void FieldSet::subtract(const FieldSet& other) {
  if (other.member_) member_ = false;
  if (other.children_.empty() || children_.empty()) return;
  bool any_empty = false;
  const auto take = [&](FieldSet& mine, const FieldSet& theirs) {
    mine.subtract(theirs);
    any_empty = any_empty || mine.empty();
  };
  // The shorter side is walked, the longer one searched.
  if (children_.size() <= other.children_.size()) {
    for (auto& [element, below] : children_)
      if (const auto* theirs = other.find(element)) take(below, *theirs);
  } else {
    for (const auto& [element, theirs] : other.children_)
      if (const auto place = place_of(element); is_at(place, element)) take(children_[place].second, theirs);
  }
  if (any_empty) std::erase_if(children_, [](const auto& child) { return child.second.empty(); });
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
class MemberList {
 public:
  explicit MemberList(std::size_t max_bytes) : left_(max_bytes) {}
  void walk(const FieldSet& set) {
    for (const auto& [element, below] : set.children())
      if (below.is_member() && !is_full_) with(element, [&] { add(); });
    for (const auto& [element, below] : set.children())
      if (!below.children().empty() && !is_full_) with(element, [&, of = &below] { walk(*of); });
  }
  std::vector<std::string> out;

 private:
  template <typename Do>
  void with(const std::string& element, const Do& act) {
    const auto before = path_.size();
    path_ += render_element(element);
    act();
    path_.resize(before);
  }
  void add() {
    is_full_ = path_.size() > left_ && !out.empty();
    if (is_full_) return;
    left_ -= std::min(left_, path_.size());
    out.push_back(path_);
  }
  std::string path_;
  std::size_t left_;
  bool is_full_ = false;
};

}  // namespace

std::vector<std::string> FieldSet::render_members(std::size_t max_bytes) const {
  MemberList list(max_bytes);
  list.walk(*this);
  return std::move(list.out);
}

FieldSet FieldSet::from_json(const json::Value& fields) {
  const auto* object = fields.if_object();
  if (object == nullptr) return {};
  bool member = false;
  Children children;
  children.reserve(object->size());
  for (const auto& [key, below] : *object) {
    const std::string_view element(key.data(), key.size());
    if (element == ".") {
      member = true;
      continue;
    }
    if (element.size() < 2 || element[1] != ':') continue;
    auto child = from_json(below);
    // An element with nothing below it stands for itself.
    if (const auto* members = below.if_object(); members != nullptr && members->empty()) child.member_ = true;
    children.emplace_back(std::string(element), std::move(child));
  }
  return of(member, std::move(children));
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
