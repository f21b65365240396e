#include "apiserver/writes/stencil.h"

#include <algorithm>
#include <map>

#include "base/json_quote.h"
#include "base/json_scan.h"
#include "model/kind_hooks.h"

namespace berth::apiserver {
namespace {

using Blank = Stencil::Blank;

constexpr std::size_t kMostTextBytes = 1024;
constexpr std::size_t kMostBodyBytes = 64 * 1024;
constexpr std::string_view kNamePath = "metadata.name";

/// Where in a form of a kind what stands that differs.
struct FormPlan {
  enum : std::size_t { kName, kUid, kCreated, kOwners, kRevision, kFixed };
  std::unique_ptr<json::PathScanner> scanner;
  std::vector<std::size_t> places;  ///< Of each free text, among the scanner's.

  FormPlan(const std::vector<model::FreeText>& texts, bool is_stored) {
    std::vector<std::string> paths = {std::string(kNamePath), "metadata.uid", "metadata.creationTimestamp", "metadata.managedFields",
                                      "metadata.resourceVersion"};
    for (const auto& text : texts) {
      const auto& path = is_stored && !text.stored_at.empty() ? text.stored_at : text.path;
      places.push_back(path == kNamePath ? std::size_t{kName} : paths.size());
      if (path != kNamePath) paths.push_back(path);
    }
    size = paths.size();
    scanner = std::make_unique<json::PathScanner>(paths);
  }
  std::size_t size = 0;
};

struct KindPlan {
  const std::vector<model::FreeText>& texts;
  FormPlan sent, stored;
  explicit KindPlan(const std::vector<model::FreeText>& of) : texts(of), sent(of, false), stored(of, true) {}
};

/// Null: the kind has no free texts.
const KindPlan* plan_of(const model::KindInfo& kind) {
  static const auto kPlans = [] {
    std::map<const model::KindInfo*, KindPlan> plans;
    for (const auto& one : model::all_kinds())
      if (const auto& texts = model::hooks_of(one).form->free_texts; !texts.empty()) plans.try_emplace(&one, texts);
    return plans;
  }();
  const auto found = kPlans.find(&kind);
  return found == kPlans.end() ? nullptr : &found->second;
}

/// Whether a value is a text that stands for itself, and in order.
bool is_free(const model::FreeText& text, std::string_view raw) {
  if (raw.size() < 3 || raw.size() > kMostTextBytes + 2 || raw.front() != '"' || raw.back() != '"') return false;
  const auto inside = raw.substr(1, raw.size() - 2);
  const auto is_plain = [](char c) { return c >= 0x20 && c < 0x7f && c != '"' && c != '\\'; };
  return std::ranges::all_of(inside, is_plain) && (text.fits == nullptr || text.fits(inside));
}

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++found;
  return found;
}

/// The time in a list of field owners that has one entry; empty: it is another list.
std::string_view time_of_owner(std::string_view owners) {
  static const json::PathScanner scanner({"time"});
  std::string_view time;
  std::size_t entries = 0;
  const bool is_list = json::for_each_element(owners, [&](std::string_view entry) {
    std::array<std::string_view, 1> at;
    if (++entries == 1 && scanner.scan(entry, at)) time = at[0];
  });
  return is_list && entries == 1 ? time : std::string_view();
}

/// Cuts one form of what was made. Nothing where anything in it cannot be told from something else.
std::optional<Stencil> stencil_of(std::string_view text, const FormPlan& plan, const CreationDraft& draft, const MadeCreation& made) {
  std::vector<std::string_view> at(plan.size);
  if (!plan.scanner->scan(text, at)) return std::nullopt;
  std::vector<Stencil::Place> places;
  bool is_named = false;
  for (std::size_t i = 0; i < draft.texts.size(); ++i) {
    if (draft.texts[i].empty()) continue;
    if (at[plan.places[i]] != draft.texts[i]) return std::nullopt;
    is_named = is_named || plan.places[i] == FormPlan::kName;
    places.push_back({at[plan.places[i]], Blank::kText, i});
  }
  if (is_named != made.generate_name.empty()) return std::nullopt;
  std::vector<Stencil::Place> given;  // By the server.
  if (!is_named) given.push_back({at[FormPlan::kName], Blank::kName});
  given.push_back({at[FormPlan::kUid], Blank::kUid});
  given.push_back({at[FormPlan::kCreated], Blank::kNow});
  if (!at[FormPlan::kOwners].empty()) {
    const auto time = time_of_owner(at[FormPlan::kOwners]);
    if (!made.has_writer || time != at[FormPlan::kCreated]) return std::nullopt;
    given.push_back({time, Blank::kNow});
  }
  if (at[FormPlan::kUid] != Stencil::quoted(made.proposal.meta.uid) || at[FormPlan::kName] != Stencil::quoted(made.proposal.meta.name) ||
      at[FormPlan::kCreated].size() < 3 || at[FormPlan::kRevision].size() < 2)
    return std::nullopt;

  // What stands anywhere else as well was taken there by somebody.
  const std::string_view body = made.request.http.body;
  const auto is_explained = [&](std::string_view raw) {
    return count(text, raw) == count(body, raw) + static_cast<std::size_t>(std::ranges::count(given, raw, &Stencil::Place::was));
  };
  if (!std::ranges::all_of(places, is_explained, &Stencil::Place::was) || !std::ranges::all_of(given, is_explained, &Stencil::Place::was))
    return std::nullopt;
  places.insert(places.end(), given.begin(), given.end());
  for (std::size_t i = 0; i < made.made_up.size(); ++i) {
    const std::string_view own = made.made_up[i];
    if (own.empty() || count(body, own) > 0) return std::nullopt;
    for (auto found = text.find(own); found != std::string_view::npos; found = text.find(own, found + own.size()))
      places.push_back({text.substr(found, own.size()), Blank::kMadeUp, i});
  }
  const auto revision = at[FormPlan::kRevision];
  places.push_back({revision.substr(1, revision.size() - 2), Blank::kRevision});
  return Stencil::cut(text, std::move(places));
}

}  // namespace

void add_part(std::string& out, std::string_view part) {
  const std::size_t size = part.size();
  out.append(reinterpret_cast<const char*>(&size), sizeof size).append(part);
}

std::string Stencil::quoted(std::string_view text) {
  std::string out;
  json::quote_to(out, text);
  return out;
}

std::optional<Stencil> Stencil::cut(std::string_view text, std::vector<Place> places) {
  std::ranges::stable_sort(places, std::less<>(), [](const Place& place) { return place.was.data(); });
  Stencil out;
  const char* at = text.data();
  for (const auto& [was, blank, index] : places) {
    if (was.data() < at) return std::nullopt;
    out.rest_.append(at, was.data());
    out.places_.push_back({out.rest_.size(), blank, index});
    at = was.data() + was.size();
  }
  out.rest_.append(at, text.data() + text.size());
  return out;
}

EncodedObject Stencil::fill(const Values& values) const {
  EncodedObject out;
  const auto value_of = [&](const At& place) -> std::string_view {
    switch (place.blank) {
      case Blank::kText:
        return values.texts[place.index];
      case Blank::kName:
        return values.name;
      case Blank::kUid:
        return values.uid;
      case Blank::kNow:
        return values.now;
      case Blank::kMadeUp:
        return values.made_up[place.index];
      case Blank::kRevision:
        return values.revision;
    }
    return {};
  };
  std::size_t size = rest_.size();
  for (const auto& place : places_) size += value_of(place).size();
  out.value.reserve(size + 20);  // A revision is put in later.
  std::size_t from = 0;
  for (const auto& place : places_) {
    out.value.append(rest_, from, place.offset - from);
    from = place.offset;
    if (place.blank == Blank::kRevision) out.revision_offset = out.value.size();
    out.value.append(value_of(place));
  }
  out.value.append(rest_, from);
  return out;
}

std::optional<CutCreation> cut_creation(const Request& request) {
  const std::string_view body = request.http.body;
  if (request.dry_run || request.audit != nullptr || body.size() > kMostBodyBytes) return std::nullopt;
  const auto* plan = plan_of(*request.kind);
  if (plan == nullptr) return std::nullopt;
  const auto type = request.http.headers.get("Content-Type");
  if (type != "application/json") return std::nullopt;
  std::vector<std::string_view> at(plan->sent.size);
  if (!plan->sent.scanner->scan(body, at)) return std::nullopt;

  CutCreation out;
  std::vector<std::pair<std::string_view, std::size_t>> cuts;
  for (std::size_t i = 0; i < plan->texts.size(); ++i) {
    const auto raw = at[plan->sent.places[i]];
    const bool is_one = is_free(plan->texts[i], raw);
    out.texts.push_back(is_one ? raw : std::string_view());
    if (is_one) cuts.emplace_back(raw, i);
  }
  std::ranges::sort(cuts, std::less<>(), [](const auto& one) { return one.first.data(); });
  out.rest.reserve(body.size() + 512);
  for (const std::string_view part :
       {std::string_view(request.kind->group), std::string_view(request.kind->version), std::string_view(request.kind->plural),
        std::string_view(request.info.ns), std::string_view(request.field_manager), std::string_view(request.http.query),
        std::string_view(request.user.name)})
    add_part(out.rest, part);
  add_part(out.rest, std::to_string(request.user.groups.size()));
  for (const auto& group : request.user.groups) add_part(out.rest, group);
  const char* from = body.data();
  for (const auto& [raw, index] : cuts) {
    add_part(out.rest, {from, raw.data()});
    add_part(out.rest, std::to_string(index));
    from = raw.data() + raw.size();
  }
  add_part(out.rest, {from, body.data() + body.size()});
  return out;
}

PatternPtr pattern_of(const CreationDraft& draft, const MadeCreation& made) {
  const auto* plan = plan_of(made.kind);
  if (plan == nullptr || !draft.circumstances) return nullptr;
  auto out = std::make_shared<CreationPattern>();
  auto stored = stencil_of(made.proposal.value, plan->stored, draft, made);
  if (!stored) return nullptr;
  out->stored = std::move(*stored);
  if (!made.shown.empty()) {
    out->shown = stencil_of(made.shown, plan->sent, draft, made);
    if (!out->shown) return nullptr;
  }
  out->meta = made.proposal.meta;
  for (std::size_t i = 0; i < draft.texts.size(); ++i) {
    if (draft.texts[i].empty()) continue;
    if (plan->texts[i].path == kNamePath) out->name = i;
    const auto& path = plan->texts[i].stored_at.empty() ? plan->texts[i].path : plan->texts[i].stored_at;
    const auto field = std::ranges::find(out->meta.fields, path, [](const auto& one) { return std::string_view(one.first); });
    if (field == out->meta.fields.end()) continue;
    if (Stencil::quoted(field->second) != draft.texts[i]) return nullptr;
    out->selected.emplace_back(field - out->meta.fields.begin(), i);
  }
  out->generate_name = made.generate_name;
  constexpr std::size_t kSuffix = 5;
  for (const auto& text : made.made_up) out->made_up.push_back(text.substr(0, text.size() - std::min(text.size(), kSuffix)));
  out->circumstances = *draft.circumstances;
  return out;
}

}  // namespace berth::apiserver
