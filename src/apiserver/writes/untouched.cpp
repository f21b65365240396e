#include "apiserver/writes/untouched.h"

#include "base/json_scan.h"
#include "model/schema.h"

namespace berth::apiserver {
namespace {

constexpr std::string_view kSpec = "spec", kOwners = "managedFields";

/// Appends the members of the object `text` to `out`, without the one that is kept.
bool copy_without(std::string_view text, std::string_view name, KeptMember& kept, std::string& out,
                  const std::function<bool(std::string_view key, std::string_view value)>& copies = {}) {
  out += '{';
  bool first = true, is_sound = true;
  std::string_view before;
  const bool is_read = json::for_each_member(text, [&](std::string_view raw_key, std::string_view raw_value) {
    const auto key = raw_key.substr(1, raw_key.size() - 2);
    if (key == name) {
      kept = {key, before, raw_value};
      return;
    }
    before = key;
    if (!std::exchange(first, false)) out += ',';
    out.append(raw_key).append(1, ':');
    if (copies && copies(key, raw_value)) return;
    if (key.find('\\') != std::string_view::npos) is_sound = false;
    out += raw_value;
  });
  out += '}';
  return is_read && is_sound;
}

/// The object with a member in its old place.
void put_back(json::Object& object, const KeptMember& at, json::Value value) {
  json::Object out(object.storage());
  out.reserve(object.size() + 1);
  const std::string_view name(at.name);
  for (auto& [key, member] : object) {
    if (std::string_view(key) == name) continue;
    out.emplace(key, std::move(member));
    if (std::string_view(key) == at.behind) out.emplace(name, std::move(value));
  }
  if (!out.contains(name)) out.emplace(name, std::move(value));
  object = std::move(out);
}

void put_owners(json::Value& rest, const KeptMember& at, std::string_view owners) {
  if (owners.empty()) return;
  auto list = json::parse(owners);
  if (!list) return;
  auto& metadata = json::ensure_object(rest, {"metadata"});
  put_back(metadata, {kOwners, at.behind, {}}, std::move(*list));
}

}  // namespace

std::optional<Untouched> Untouched::take(ObjectPtr base, json::Value& rest) {
  Untouched out;
  out.text_ = base->text();
  std::string text;
  text.reserve(1024);
  bool is_whole = true;
  const bool is_read = copy_without(*out.text_, kSpec, out.spec_at_, text, [&](std::string_view key, std::string_view value) {
    if (key != "metadata") return false;
    is_whole = copy_without(value, kOwners, out.owners_at_, text);
    return true;
  });
  if (!is_read || !is_whole || !out.spec_at_.text.starts_with('{')) return std::nullopt;
  auto document = json::parse(text);
  if (!document) return std::nullopt;
  rest = std::move(*document);
  out.base_ = std::move(base);
  return out;
}

void Untouched::set_aside(json::Value& sent, bool is_kept) {
  auto& object = sent.get_object();
  if (const auto found = object.find(kSpec); found != object.end()) {
    if (is_kept) sent_spec_ = std::move(found->value());
    json::erase(sent, {kSpec});
  }
  is_sent_ = is_kept;
  json::erase(sent, {"metadata", kOwners});
}

void Untouched::fill_before(json::Value& rest) const {
  if (auto spec = json::parse(spec_at_.text)) put_back(rest.get_object(), spec_at_, std::move(*spec));
  put_owners(rest, owners_at_, owners_before());
}

void Untouched::fill_after(const model::KindInfo& kind, json::Value& rest) const {
  put_owners(rest, owners_at_, owners());
  if (is_sent_) {
    if (sent_spec_) put_back(rest.get_object(), spec_at_, *sent_spec_);
    return;
  }
  auto spec = json::parse(spec_at_.text);
  if (!spec) return;
  put_back(rest.get_object(), spec_at_, std::move(*spec));
  model::DecodeReport report;
  if (model::decode(kind, rest, report, true)) model::apply_defaults(kind, rest);
}

Proposal Untouched::proposal(const Ground& ground, const model::KindInfo& stored, const json::Value& rest) const {
  // What is selected of the spec is taken over.
  return proposal_of(ground, stored, extract_meta(stored, rest, base_.get()),
                     encode_object(rest, {spec_at_, {kOwners, owners_at_.behind, owners()}}));
}

}  // namespace berth::apiserver
