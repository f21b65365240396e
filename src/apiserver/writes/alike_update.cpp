// An update that is like one before, and what it takes to have one before it: alike.h.
#include "apiserver/writes/steps.h"
#include "base/json_scan.h"

namespace berth::apiserver {
namespace {

using Found = TextCutter::Found;

/// What is known of a kind's updates.
struct UpdatePlan {
  const FreeUpdateTexts& texts;
  TextCutter cutter;
  explicit UpdatePlan(const FreeUpdateTexts& of) : texts(of), cutter(of) {}
};

/// Null: they always go the long way.
const UpdatePlan* plan_of(const WriteOperation& operation) {
  static const auto kPlans = [] {
    std::map<const FreeUpdateTexts*, UpdatePlan> plans;
    for (const auto& kind : model::all_kinds())
      for (const std::string_view subresource : {"", "status", "scale"})
        if (const auto* texts = free_update_texts(kind, subresource)) plans.try_emplace(texts, *texts);
    return plans;
  }();
  const auto* texts = free_update_texts(*operation.kind, operation.subresource);
  return texts == nullptr ? nullptr : &kPlans.at(texts);
}

/// What is sent, of an update of which the long way need not ask more than admission does, in a language that patterns know. Empty: it
/// is another.
std::string_view text_of_alike(const WritePipeline& writes, WriteOperation& operation, const UpdatePlan& plan) {
  const auto& own = rules_of(*operation.kind);
  if (own.guard || own.check_first || own.check_last || own.takes_addresses || writes.admission == nullptr) return {};
  if (&storage_kind(*operation.kind) != operation.kind) return {};
  if (operation.request->info.verb == "patch")
    return text_to_cut(operation, {"application/strategic-merge-patch+json", "application/merge-patch+json"});
  return plan.texts.named.empty() ? text_to_cut(operation, {"application/json"}) : std::string_view();
}

bool names_only(std::string_view patch, std::span<const std::string_view> named) {
  const auto is_named = [&](std::string_view path) { return std::ranges::find(named, path) != named.end(); };
  bool is_so = true;
  const bool is_read = json::for_each_member(patch, [&](std::string_view raw_key, std::string_view value) {
    const auto key = raw_key.substr(1, raw_key.size() - 2);
    if (is_named(key)) return;
    const bool has_members = json::for_each_member(value, [&](std::string_view raw_field, std::string_view) {
      is_so = is_so && is_named(fmt::format("{}.{}", key, raw_field.substr(1, raw_field.size() - 2)));
    });
    is_so = is_so && has_members;
  });
  return is_read && is_so;
}

/// Who asks. Of a node, that it asks about its own is what matters.
void add_asker(std::string& rest, const Request& request, const StoredObject& base) {
  constexpr std::string_view kNode = "system:node:";
  const std::string_view name = request.user.name;
  const auto node = request.kind->plural == "pods" ? base.meta.field("spec.nodeName") : base.meta.name;
  const bool is_its_node = name.starts_with(kNode) && !node.empty() && name.substr(kNode.size()) == node;
  add_part(rest, is_its_node ? "its node" : "");
  add_user(rest, request.user, is_its_node ? "" : name);
}

/// Each text once, and in the rest which is which; of ordered classes also their order.
void tell_apart(const std::vector<Found>& found, CutWrite& out) {
  for (const auto& one : found) {
    // What is kept is compared with nothing.
    const auto known = one.is == TextClass::kKept
                           ? out.texts.end()
                           : std::ranges::find_if(out.texts, [&](const Found& text) { return text.is == one.is && text.text == one.text; });
    out.rest += static_cast<char>(known - out.texts.begin());
    if (known == out.texts.end()) out.texts.push_back(one);
  }
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < out.texts.size(); ++i)
    if (is_ordered(out.texts[i].is)) order.push_back(i);
  std::ranges::sort(order, {}, [&](std::size_t i) {
    const auto& [is, text, _] = out.texts[i];
    return std::tuple(is, is == TextClass::kCount ? text.size() : 0, text);
  });
  for (const auto i : order) out.rest += static_cast<char>(i);
}

/// Nothing: it goes the long way. `now` is one of the texts, as is `next_generation`, which is set, where generations are.
std::optional<CutWrite> cut_update(const WriteOperation& operation, const UpdatePlan& plan, std::string_view body, const StoredObject& base,
                                   std::string_view now, std::string& next_generation) {
  constexpr std::size_t kMostTexts = 120;            // Their numbers are characters.
  constexpr std::size_t kMostTogether = 128 * 1024;  // Half of what annotations may be: nobody asks how long they have become.
  const auto& request = *operation.request;
  const auto& named = plan.texts.named;
  if (!named.empty() && !names_only(body, named)) return std::nullopt;
  CutWrite out;
  out.stored = base.text();
  if (named.empty() && body.size() + out.stored->size() > kMostTogether) return std::nullopt;
  out.rest = begin_rest(request, body.size() + out.stored->size());
  add_asker(out.rest, request, base);
  std::vector<Found> found;
  found.reserve(64);
  found.push_back({TextClass::kOwnerTime, now});
  found.push_back({TextClass::kName, operation.name});
  if (!plan.cutter.cut(body, found, &out.rest) || !plan.cutter.cut(*out.stored, found, &out.rest) || found.size() > kMostTexts)
    return std::nullopt;
  if (const auto one = std::ranges::find(found, TextClass::kGeneration, &Found::is); one != found.end()) {
    next_generation = std::to_string(std::stol(std::string(one->text)) + 1);
    found.push_back({TextClass::kGeneration, next_generation});
  }
  tell_apart(found, out);
  return out;
}

std::optional<std::size_t> index_of(const std::vector<Draft::Text>& texts, TextClass is, std::string_view text) {
  const auto found = std::ranges::find_if(texts, [&](const auto& one) { return one.is == is && one.text == text; });
  return found == texts.end() ? std::nullopt : std::optional<std::size_t>(found - texts.begin());
}

/// Nothing where it cannot be told which of the texts stands where.
std::optional<Pattern> pattern_of(const UpdatePlan& plan, const Draft& draft, const Proposal& proposal) {
  std::vector<Found> found;
  if (!plan.cutter.cut(proposal.value, found, nullptr)) return std::nullopt;
  std::vector<Stencil::Place> places;
  for (const auto& [is, text, _] : found) {
    const auto index = is == TextClass::kRevision ? Stencil::kRevision : index_of(draft.texts, is, text);
    if (!index) return std::nullopt;
    places.push_back({text, *index});
  }
  if (std::ranges::count(places, Stencil::kRevision, &Stencil::Place::text) != 1) return std::nullopt;
  auto stored = Stencil::cut(proposal.value, std::move(places));
  if (!stored) return std::nullopt;
  Pattern out{.stored = std::move(*stored), .annotations = draft.annotations, .circumstances = *draft.circumstances};
  if (const auto& labels = proposal.meta.labels; labels != draft.base->meta.labels()) {
    out.labels = labels;
    for (std::size_t i = 0; i < labels.pairs()->size(); ++i)
      if (const auto text = index_of(draft.texts, TextClass::kLabel, (*labels.pairs())[i].second)) out.free_labels.emplace_back(i, *text);
  }
  for (const auto& [path, text] : proposal.meta.fields) {
    auto& field = out.fields.emplace_back(Pattern::Field{path, text, std::nullopt});
    field.is_kept = std::ranges::any_of(plan.texts.places, [&](const auto& of) {
      return of.is == TextClass::kKept && path.starts_with(of.path) && path.substr(of.path.size()).starts_with('.');
    });
    const auto place = std::ranges::find(plan.texts.places, path, &FreeUpdateTexts::Place::path);
    if (field.is_kept || place == plan.texts.places.end() || form_of(place->is, text) == '\0') continue;
    field.free = index_of(draft.texts, place->is, text);
    if (!field.free) return std::nullopt;
  }
  return out;
}

Proposal proposal_like(const Ground& ground, const WriteOperation& operation, const Pattern& pattern, const CutWrite& cut,
                       const StoredObject& base) {
  std::vector<std::string_view> texts;
  texts.reserve(cut.texts.size());
  for (const auto& one : cut.texts) texts.push_back(one.text);
  auto meta = meta_like(base, {});
  pattern.select(texts, &base, meta);
  auto proposal = proposal_of(ground, *operation.kind, std::move(meta), pattern.stored.fill(texts));
  proposal.expected = base.revision;
  return proposal;
}

}  // namespace

void leave_update_pattern(WritePipeline& writes, WriteOperation& operation, const Proposal& proposal) {
  const auto draft = std::exchange(operation.draft, nullptr);
  if (draft == nullptr || draft->base != operation.candidate.base) return;
  const auto& plan = *plan_of(operation);
  if (operation.subresource == "status" && !operation.candidate.part) return;
  if (auto pattern = pattern_of(plan, *draft, proposal)) writes.patterns->put(std::move(draft->rest), std::move(*pattern));
}

namespace steps {

StepResult update_alike(WritePipeline& writes, const WritePtr& operation) {
  operation->draft.reset();
  const auto* plan = plan_of(*operation);
  const auto body = plan == nullptr ? std::string_view() : text_of_alike(writes, *operation, *plan);
  if (body.empty()) return Flow::kNext;
  const auto base = writes.ground.cache->get(object_key(*operation->kind, operation->ns, operation->name));
  if (base == nullptr) return Flow::kNext;
  const auto now = writes.ground.now_text();
  std::string next_generation;
  auto cut = cut_update(*operation, *plan, body, *base, now, next_generation);
  if (!cut) return Flow::kNext;
  const auto pattern = follow(writes, *operation, *cut, base);
  if (pattern == nullptr) return Flow::kNext;
  if (auto storable = check_storable(writes, operation); !storable) return storable;
  writes.patterns->updates.add();
  auto proposal = proposal_like(writes.ground, *operation, *pattern, *cut, *base);
  writes.ground.cache->propose(std::move(proposal), [&writes, operation](ProposeResult result) {
    const auto& kind = *operation->kind;
    if (result) return operation->done(WriteOutcome{std::move(*result), {}, false});
    if (is_of_storage(result.error())) return operation->fail(not_stored(writes.ground, result.error()));
    if (++operation->attempts >= kMostAttempts) return operation->fail(model::modified_conflict(kind.group, kind.plural, operation->name));
    try_again(writes, operation, Stage::kDecode);
  });
  return Flow::kWaits;
}

}  // namespace steps
}  // namespace berth::apiserver
