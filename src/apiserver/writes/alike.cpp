#include "apiserver/writes/alike.h"

#include "apiserver/request/request_body.h"
#include "apiserver/writes/steps.h"

namespace berth::apiserver {

void Pattern::select(std::span<const std::string_view> texts, const StoredObject* base, ObjectMeta& meta) const {
  meta.labels = labels ? *labels : base->meta.labels();
  if (!free_labels.empty()) {
    auto pairs = *meta.labels.pairs();
    for (const auto& [label, text] : free_labels) pairs[label].second = texts[text];
    meta.labels = model::Labels(std::move(pairs));
  }
  for (const auto& field : fields) {
    const std::string_view text = field.is_kept ? base->meta.field(field.path)
                                  : field.free  ? texts[*field.free]
                                                : std::string_view(field.text);
    if (!text.empty()) meta.fields.emplace_back(field.path, text);
  }
}

Patterns::Patterns(metrics::Registry& registry)
    : creations(registry.counter("berth_apiserver_creations_by_pattern_total",
                                 "Creations that were made like one before, without a document of their own.")),
      updates(registry.counter("berth_apiserver_updates_by_pattern_total",
                               "Updates that were made like one before, without a document of their own.")) {}

PatternPtr Patterns::find(const std::string& rest, bool& is_second) {
  const auto hash = std::hash<std::string>()(rest);
  PatternPtr found;
  {
    const MutexLock lock(mutex_);
    auto& seen = seen_[hash % seen_.size()];
    is_second = seen == hash;
    seen = hash;
    if (const auto known = patterns_.find(rest); known != patterns_.end()) found = known->second;
  }
  return found != nullptr && found->circumstances.hold() ? found : nullptr;
}

void Patterns::put(std::string rest, Pattern pattern) {
  const MutexLock lock(mutex_);
  const auto bytes = rest.size() + pattern.bytes();
  if (bytes_ + bytes > kMostBytes) {
    patterns_.clear();
    bytes_ = 0;
  }
  const auto [at, is_new] = patterns_.insert_or_assign(std::move(rest), std::make_shared<const Pattern>(std::move(pattern)));
  if (is_new) bytes_ += bytes;
}

void add_part(std::string& out, std::string_view part) {
  const std::size_t size = part.size();
  out.append(reinterpret_cast<const char*>(&size), sizeof size).append(part);
}

std::string begin_rest(const Request& request, std::size_t body_bytes) {
  std::string rest;
  rest.reserve(body_bytes + 512);
  for (const std::string_view part :
       {std::string_view(request.kind->group), std::string_view(request.kind->version), std::string_view(request.kind->plural),
        std::string_view(request.info.subresource), std::string_view(request.info.ns), std::string_view(request.http.method),
        request.http.headers.get("Content-Type"), std::string_view(request.field_manager), std::string_view(request.http.query)})
    add_part(rest, part);
  // What is told is known only where somebody listened.
  rest += request.audit == nullptr ? '-' : 'a';
  return rest;
}

void add_user(std::string& rest, const UserInfo& user, std::string_view name) {
  add_part(rest, name);
  add_part(rest, std::to_string(user.groups.size()));
  for (const auto& group : user.groups) add_part(rest, group);
}

std::string_view text_to_cut(WriteOperation& operation, std::initializer_list<std::string_view> types) {
  constexpr std::size_t kMostBodyBytes = 64 * 1024;
  auto& request = *operation.request;
  if (request.dry_run || request.http.body.size() > kMostBodyBytes) return {};
  const auto type = request.http.headers.get("Content-Type");
  if (type == "application/vnd.kubernetes.protobuf" && operation.decoded.text.empty() && request.info.verb != "patch") {
    auto document = parse_body(request, request.kind->kind);
    if (!document) return {};
    operation.decoded.text = json::serialize(*document);
    request.read_ahead = std::move(*document);
  }
  const bool is_one = !operation.decoded.text.empty() || std::ranges::find(types, type) != types.end();
  return is_one ? text_of(operation) : std::string_view();
}

std::string_view text_of(const WriteOperation& operation) {
  return operation.decoded.text.empty() ? operation.request->http.body : operation.decoded.text;
}

PatternPtr follow(const WritePipeline& writes, WriteOperation& operation, CutWrite& cut, const ObjectPtr& base) {
  bool is_second = false;
  auto pattern = writes.patterns->find(cut.rest, is_second);
  if (pattern != nullptr)
    for (const auto& [key, value] : pattern->annotations) operation.request->audit->annotate(key, value);
  if (pattern != nullptr || !is_second) return pattern;
  operation.draft = std::make_shared<Draft>(Draft{.rest = std::move(cut.rest), .base = base});
  for (const auto& [is, text, _] : cut.texts) operation.draft->texts.push_back({is, std::string(text)});
  return nullptr;
}

void begin_draft(const WritePipeline& writes, WriteOperation& operation) {
  if (operation.draft == nullptr) return;
  operation.draft->annotations.clear();
  operation.draft->circumstances = writes.admission->circumstances(operation.admission);
}

void settle_draft(const WritePipeline& writes, WriteOperation& operation) {
  if (operation.draft == nullptr) return;
  const auto& before = operation.draft->circumstances;
  const bool is_known = before && operation.request->warnings.empty() && writes.admission->circumstances(operation.admission);
  if (!is_known || !before->hold()) operation.draft.reset();
}

}  // namespace berth::apiserver
