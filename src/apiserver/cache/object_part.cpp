#include "apiserver/cache/object_part.h"

#include <algorithm>

#include "base/json_quote.h"
#include "base/json_scan.h"
#include "base/split.h"

namespace berth::apiserver {
namespace {

constexpr std::string_view kMetadata = "metadata", kOwners = "managedFields", kRevision = "resourceVersion";

void leave_in(json::Object& object, std::string_view parent, Choice choice) {
  for (auto at = object.begin(); at != object.end();) {
    const auto take = choice(parent, at->key());
    if (take == Take::kMembers && at->value().is_object()) leave_in(at->value().get_object(), at->key(), choice);
    at = take == Take::kNot ? object.stable_erase(at) : at + 1;
  }
}

void write_key(std::string& out, std::string_view raw_key) {
  if (out.back() != '{') out += ',';
  out.append(raw_key) += ':';
}

}  // namespace

ObjectPart::ObjectPart(ObjectPtr of, Choice choice) : of_(std::move(of)), text_(of_->text()), choice_(choice), members_(read(*text_, "")) {}

std::vector<ObjectPart::Member> ObjectPart::read(std::string_view object, std::string_view parent) const {
  std::vector<Member> out;
  out.reserve(16);
  json::for_each_member(object, [&](std::string_view raw_key, std::string_view text) {
    auto& member = out.emplace_back(Member{raw_key, text, Take::kNot, {}});
    const auto key = member.key();
    if (key.find('\\') != std::string_view::npos) return;  // Nothing of Kubernetes' is called so.
    member.take = choice_(parent, key);
    if (member.take != Take::kMembers) return;
    if (text.starts_with('{'))
      member.below = read(text, key);
    else
      member.take = Take::kWhole;
  });
  return out;
}

json::Value ObjectPart::document() const {
  std::string text;
  text.reserve(1024);
  copy_taken(members_, text);
  auto parsed = json::parse(text);
  return parsed ? std::move(*parsed) : json::Value(json::Object());
}

void ObjectPart::copy_taken(const std::vector<Member>& members, std::string& out) {
  out += '{';
  for (const auto& member : members) {
    if (member.take == Take::kNot) continue;
    write_key(out, member.raw_key);
    if (member.take == Take::kMembers)
      copy_taken(member.below, out);
    else
      out += member.text;
  }
  out += '}';
}

std::string_view ObjectPart::rest(std::string_view parent, std::string_view key) const {
  const auto* members = &members_;
  for (const auto name : {parent, key}) {
    if (name.empty()) continue;
    const auto found = std::ranges::find(*members, name, &Member::key);
    if (found == members->end()) return {};
    if (found->take != Take::kMembers) return found->take == Take::kNot ? found->text : std::string_view();
    members = &found->below;
  }
  return {};
}

void ObjectPart::leave(json::Value& document) const { leave_in(document.get_object(), "", choice_); }

EncodedObject ObjectPart::encode(const json::Value& part) const {
  EncodedObject out;
  out.value.reserve(text_->size() + 1024);
  write(members_, "", part.get_object(), out);
  return out;
}

void ObjectPart::write(const std::vector<Member>& members, std::string_view parent, const json::Object& now, EncodedObject& out) const {
  static const json::Object kNothing;
  auto& text = out.value;
  const bool is_metadata = parent == kMetadata;
  const auto write_revision = [&] {
    write_key(text, R"("resourceVersion")");
    out.revision_offset = text.size() + 1;
    text += R"("")";
  };
  text += '{';
  for (const auto& [raw_key, was, take, below] : members) {
    const auto key = raw_key.substr(1, raw_key.size() - 2);
    const auto* value = take == Take::kNot ? nullptr : now.if_contains(key);
    if (is_metadata && key == kRevision) {
      write_revision();
    } else if (is_metadata && key == kOwners && take == Take::kNot) {
      if (owners().empty()) continue;
      write_key(text, raw_key);
      text += owners();
    } else if (take == Take::kMembers) {
      write_key(text, raw_key);
      write(below, key, value != nullptr && value->is_object() ? value->get_object() : kNothing, out);
    } else if (take == Take::kNot || value != nullptr) {
      write_key(text, raw_key);
      if (value != nullptr)
        json::serialize_to(text, *value);
      else
        text += was;
    }
  }
  const auto is_new = [&](std::string_view key) { return std::ranges::find(members, key, &Member::key) == members.end(); };
  for (const auto& [name, value] : now) {
    const std::string_view key(name);
    if (!is_new(key) || (is_metadata && key == kRevision)) continue;
    std::string raw_key;
    json::quote_to(raw_key, key);
    write_key(text, raw_key);
    json::serialize_to(text, value);
  }
  if (is_metadata && is_new(kRevision)) write_revision();
  if (is_metadata && is_new(kOwners) && !now.contains(kOwners) && !owners().empty()) {
    write_key(text, R"("managedFields")");
    text += owners();
  }
  text += '}';
}

ObjectMeta ObjectPart::meta(const model::KindInfo& stored, const json::Value& part) const {
  const auto is_taken = [&](std::string_view path) {
    const auto names = split(path, '.');
    auto at = names.begin();
    const auto parent = *at;
    const auto take = choice_("", parent);
    return take == Take::kMembers ? choice_(parent, *++at) != Take::kNot : take == Take::kWhole;
  };
  auto meta = extract_meta(stored, part, [&](std::string_view path) { return is_taken(path) ? nullptr : of_.get(); });
  auto labels = is_taken("metadata.labels") ? std::move(meta.labels) : of_->meta.labels();
  auto fields = std::move(meta.fields);
  meta = meta_like(*of_, std::move(labels));
  meta.fields = std::move(fields);
  return meta;
}

}  // namespace berth::apiserver
