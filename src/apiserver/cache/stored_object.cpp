#include <algorithm>
#include <array>
#include <future>
#include <unordered_map>
#include <unordered_set>

#include "apiserver/cache/object_cache.h"
#include "base/json_scan.h"

namespace berth::apiserver {
namespace {

/// The JSON with another metadata.resourceVersion; unchanged when it has none.
KeptTextRef revised(const StoredObject& state, Revision revision) {
  static const json::PathScanner scanner({"metadata.resourceVersion"});
  std::array<std::string_view, 1> raw;
  const HeldText held = state.text();
  if (!held || !scanner.scan(*held, raw) || raw[0].empty()) return state.kept;
  const auto inside = static_cast<std::size_t>(raw[0].data() - held->data()) + 1;
  std::string text = *held;
  text.erase(inside, raw[0].size() - 2);
  return std::make_shared<const KeptText>(with_revision(std::move(text), inside, revision));
}

/// Paths are few and stay for the life of the process.
const std::string* intern_field_path(std::string_view path) {
  thread_local std::unordered_map<std::string_view, const std::string*> known;
  if (auto found = known.find(path); found != known.end()) return found->second;
  static auto* mutex = new Mutex;
  static auto* paths = new std::unordered_set<std::string>;
  MutexLock lock(*mutex);
  const std::string* interned = &*paths->emplace(path).first;
  known.emplace(*interned, interned);
  return interned;
}

/// Words that selected fields often are: one text for all objects, which need not be searched for them. Empty: it is none of them.
std::string_view well_known(std::string_view text) {
  static constexpr std::array<std::string_view, 16> kWords = {
      "true",   "false",  "Always",  "Never", "OnFailure", "default", "default-scheduler", "Pending", "Running", "Succeeded",
      "Failed", "Normal", "Warning", "Pod",   "v1",        "Active"};
  const auto found = std::ranges::find(kWords, text);
  return found == kWords.end() ? std::string_view() : *found;
}

}  // namespace

std::string with_revision(std::string text, std::size_t offset, Revision revision) {
  text.insert(std::min(offset, text.size()), std::to_string(revision));
  text.shrink_to_fit();
  return text;
}

ProposeResult propose_and_wait(ObjectCache& cache, Proposal proposal) {
  std::promise<ProposeResult> answer;
  auto future = answer.get_future();
  cache.propose(std::move(proposal), [&](ProposeResult result) { answer.set_value(std::move(result)); });
  return future.get();
}

std::string make_key(std::string_view storage_group, std::string_view plural, std::string_view ns, std::string_view name) {
  std::string key;
  key.reserve(storage_group.size() + plural.size() + ns.size() + name.size() + 4);
  key.append("/").append(storage_group).append("/").append(plural).append("/").append(ns).append("/").append(name);
  return key;
}

std::string make_prefix(std::string_view storage_group, std::string_view plural, std::string_view ns) {
  std::string prefix;
  prefix.append("/").append(storage_group).append("/").append(plural).append("/");
  if (!ns.empty()) prefix.append(ns).append("/");
  return prefix;
}

std::string_view StoredMeta::field(std::string_view path) const {
  for (std::uint32_t i = 0; i < field_count_; ++i) {
    if (*fields_[i].path == path) return fields_[i].value;
  }
  if (path == "metadata.name") return name;
  if (path == "metadata.namespace") return ns;
  return {};
}

StoredObject::StoredObject(std::string_view key_text, Bytes text, Revision own_revision, Revision created, const ObjectMeta& from)
    : kept(text != nullptr ? std::make_shared<const KeptText>(std::move(text)) : nullptr),
      revision(own_revision),
      create_revision(created) {
  std::vector<std::pair<std::string_view, std::string_view>> fields;
  fields.reserve(from.fields.size());
  for (const auto& [path, value] : from.fields) {
    if (!value.empty() && path != "metadata.name" && path != "metadata.namespace") fields.emplace_back(path, value);
  }
  meta.labels_ = from.labels;
  set_texts(key_text, from.uid, fields);
}

StoredObject::StoredObject(const StoredObject& state, Revision own_revision)
    : kept(revised(state, own_revision)), revision(own_revision), create_revision(state.create_revision) {
  std::vector<std::pair<std::string_view, std::string_view>> fields;
  fields.reserve(state.meta.field_count_);
  for (std::uint32_t i = 0; i < state.meta.field_count_; ++i) fields.emplace_back(*state.meta.fields_[i].path, state.meta.fields_[i].value);
  meta.labels_ = state.meta.labels_;
  set_texts(state.key, state.meta.uid, fields);
}

void StoredObject::set_texts(std::string_view key_text, std::string_view uid,
                             std::span<const std::pair<std::string_view, std::string_view>> fields) {
  std::size_t size = key_text.size() + uid.size();
  for (const auto& [path, value] : fields)
    if (well_known(value).empty()) size += value.size();
  texts_.reserve(size);
  texts_.append(key_text).append(uid);
  key = std::string_view(texts_).substr(0, key_text.size());
  meta.uid = std::string_view(texts_).substr(key_text.size());
  meta.field_count_ = static_cast<std::uint32_t>(fields.size());
  if (!fields.empty()) meta.fields_ = std::make_unique<StoredMeta::Field[]>(fields.size());
  for (std::size_t i = 0; i < fields.size(); ++i) {
    auto value = well_known(fields[i].second);
    if (value.empty()) {
      // texts_ never grows beyond what was reserved, so that the views stay valid.
      const auto at = texts_.size();
      texts_.append(fields[i].second);
      value = std::string_view(texts_).substr(at);
    }
    meta.fields_[i] = {intern_field_path(fields[i].first), value};
  }

  auto name_at = key.rfind('/');
  auto ns_at = name_at == 0 || name_at == std::string_view::npos ? std::string_view::npos : key.rfind('/', name_at - 1);
  if (name_at != std::string_view::npos) meta.name = key.substr(name_at + 1);
  if (ns_at != std::string_view::npos) meta.ns = key.substr(ns_at + 1, name_at - ns_at - 1);
}

}  // namespace berth::apiserver
