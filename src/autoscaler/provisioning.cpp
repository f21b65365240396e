#include "autoscaler/provisioning.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/config_reader.h"

namespace berth::autoscaler {
namespace {

constexpr auto kBooking = std::chrono::minutes(10);
constexpr auto kExpiry = std::chrono::hours(24 * 7);
constexpr auto kKept = std::chrono::hours(24 * 7);  // After the end.
constexpr Duration kFirstPause = std::chrono::minutes(1), kLongestPause = std::chrono::minutes(10);
constexpr auto kPatience = std::chrono::minutes(1);  // With room that is gone.
constexpr std::size_t kMostChecks = 10, kMostEnded = 20;

bool is_ours(const ProvisioningRequest& request, const Options& options) {
  if (request.parameter("processorInstance") != options.check_capacity_processor_instance) return false;
  return request.class_name == kCheckCapacity ||
         (request.class_name == kBestEffortAtomic && options.check_capacity_processor_instance.empty());
}

/// Nullopt: not given, or nonsense.
std::optional<std::int64_t> seconds_of(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (text.empty() || wrong != std::errc() || end != text.data() + text.size() || out < 0 || out > 365LL * 86400) return std::nullopt;
  return out;
}

void check_words(const ProvisioningRequest& request, std::vector<std::string>& problems) {
  const auto say = [&](const std::string& what) { problems.push_back(fmt::format("ProvisioningRequest {}: {}", request.key(), what)); };
  constexpr std::string_view kClasses[] = {kCheckCapacity, kBestEffortAtomic};
  if (std::ranges::find(kClasses, request.class_name) == std::end(kClasses))
    return say(fmt::format("provisioningClassName \"{}\" is none that is known here: {}{}", request.class_name, fmt::join(kClasses, " or "),
                           config::suggestion(request.class_name, kClasses)));
  const auto one_of = [&](std::string_view parameter, std::string_view first, std::string_view second) {
    const std::string_view value = request.parameter(parameter);
    if (!value.empty() && value != first && value != second)
      say(fmt::format("parameter {}: \"{}\" has no effect: it is \"{}\" or \"{}\"", parameter, value, first, second));
  };
  one_of("noRetry", "true", "false");
  one_of("partialCapacityCheck", "bookPartial", "checkOnly");
  if (const std::string_view text = request.parameter("ValidUntilSeconds"); !text.empty() && !seconds_of(text))
    say(fmt::format("parameter ValidUntilSeconds: \"{}\" has no effect: it is a number of seconds", text));
}

std::string_view text_of(const json::Value& value) { return value.is_string() ? json::as_view(value) : std::string_view(); }

/// Puts all of them somewhere; otherwise says how many came before the first that fits nowhere, and why not.
std::string place_all(placement::Trial& trial, const ProvisioningRequest::PodSet& set) {
  for (std::size_t i = 0; i < set.pods.size(); ++i)
    if (const placement::Placement placed = trial.place(set.pods[i]->info); !placed.is_placed())
      return fmt::format("{} of {} pods of {} fit; {}", i, set.pods.size(), set.template_name,
                         placed.status.reasons.empty() ? "no node is left" : placed.status.reasons.front());
  return "";
}

}  // namespace

CapacityAnswer find_capacity(placement::Trial& soon, RequestUpdate& update, TimePoint now) {
  const ProvisioningRequest& request = *update.request;
  const std::string_view mode = request.parameter("partialCapacityCheck");
  const bool is_partial = mode == "bookPartial" || mode == "checkOnly";
  placement::Trial trial = soon.fork();
  std::vector<std::string> found;
  CapacityAnswer out;
  for (const ProvisioningRequest::PodSet& set : request.sets) {
    placement::Trial attempt = trial.fork();
    std::string why = place_all(attempt, set);
    if (why.empty()) {
      found.push_back(set.template_name);
      trial = std::move(attempt);
      continue;
    }
    if (out.why.empty()) out.why = std::move(why);
    if (!is_partial) break;
  }
  const bool is_whole = found.size() == request.sets.size();
  update.details.erase(kSchedulablePodSets);
  if (!is_whole && (found.empty() || !is_partial)) {
    update.set_not_found(now);
    return out;
  }
  update.details[kSchedulablePodSets] = json::serialize(json::Array(found.begin(), found.end()));
  if (is_whole)
    update.set("Provisioned", true, kCapacityIsFound, kCapacityIsFoundMessage, now);
  else
    update.set("Provisioned", mode == "bookPartial", kPartialCapacityIsFound,
               fmt::format("Partial capacity is found in the cluster.. Schedulable podsets: {}", fmt::join(found, ",")), now);
  out.is_booked = is_whole || mode == "bookPartial";
  if (out.is_booked) soon = std::move(trial);
  return out;
}

void Provisioning::begin(const std::vector<RequestPtr>& requests, const Options& options, TimePoint now,
                         std::vector<std::string>& problems) {
  updates_.clear();
  due_.clear();
  booked_.clear();
  std::set<std::string> known, incomplete;
  std::size_t checks = 0, scale_ups = 0, ended = 0;
  for (const RequestPtr& request : requests) {
    known.insert(request->uid);
    if (request->is_leaving) continue;
    if (!request->has_ended() && request->parameter("processorInstance").empty()) check_words(*request, problems);
    if (!is_ours(*request, options)) continue;
    if (ended < kMostEnded) {
      end(request, now);
      ended += updates_.contains(request->key());
    }
    if (updates_.contains(request->key())) continue;
    look_at_templates(request, now, incomplete);
    if (updates_.contains(request->key()) || !request->problem().empty()) continue;
    if (request->is_booked()) booked_.push_back(request);
    if (!is_due(*request, now)) continue;
    std::size_t& count = request->class_name == kCheckCapacity ? checks : scale_ups;
    if (count++ < (request->class_name == kCheckCapacity ? kMostChecks : 1)) due_.push_back(request);
  }
  incomplete_ = std::move(incomplete);
  std::erase_if(pause_, [&](const auto& entry) { return !known.contains(entry.first); });
  std::erase_if(homeless_since_, [&](const auto& entry) { return !known.contains(entry.first); });
}

bool Provisioning::is_due(const ProvisioningRequest& request, TimePoint now) const {
  if (request.has_ended() || request.is_true("Provisioned")) return false;
  const RequestCondition* last = request.condition("Provisioned");
  if (last == nullptr) return true;
  const auto pause = pause_.find(request.uid);
  return last->since + (pause == pause_.end() ? kFirstPause : pause->second) < now;
}

/// Conditions and the deletion that come of time alone.
void Provisioning::end(const RequestPtr& request, TimePoint now) {
  for (const char* type : {"Failed", "Provisioned"})
    if (const RequestCondition* last = request->condition(type); request->is_true(type) && last->since + kKept < now)
      update(request).is_deleted = true;
  if (updates_.contains(request->key()) || request->has_ended()) return;
  if (request->is_true("Provisioned")) {
    if (request->condition("Provisioned")->since + kBooking < now)
      update(request).set("BookingExpired", true, "CapacityReservationTimeExpired", "Capacity reservation time is expired", now);
    return;
  }
  const auto valid = seconds_of(request->parameter("ValidUntilSeconds"));
  if (request->created + (valid ? Duration(std::chrono::seconds(*valid)) : Duration(kExpiry)) < now)
    update(request).set("Failed", true, "Expired", "ProvisioningRequest is expired", now);
}

/// The watch of templates may be a moment behind: only what two passes miss is missing.
void Provisioning::look_at_templates(const RequestPtr& request, TimePoint now, std::set<std::string>& incomplete) {
  const std::string problem = request->problem();
  if (problem.empty() || request->has_ended()) return;
  incomplete.insert(request->uid);
  if (!request->is_too_large && !incomplete_.contains(request->uid)) return;
  if (request->is_booked())
    update(request).set("Failed", true, "FailedToBookCapacity", fmt::format("Couldn't create pods, err: {}", problem), now);
  else
    update(request).set("Failed", true, "FailedToCreatePods", problem, now);
}

std::vector<Provisioning::Booking> Provisioning::bookings(const PodMap& consumers) const {
  std::vector<Booking> out;
  for (const RequestPtr& request : booked_) {
    Booking one{request, {}};
    const json::Value* partial = request->details.if_contains(kSchedulablePodSets);
    const bool is_partial =
        request->condition("Provisioned")->reason == kPartialCapacityIsFound && partial != nullptr && partial->is_string();
    const auto names = is_partial ? json::parse(json::as_view(*partial)) : Result<json::Value>(json::Value());
    for (const ProvisioningRequest::PodSet& set : request->sets) {
      const bool is_in =
          !is_partial || !names || !names->is_array() ||
          std::ranges::any_of(names->get_array(), [&](const json::Value& name) { return text_of(name) == set.template_name; });
      if (is_in) one.pods.insert(one.pods.end(), set.pods.begin(), set.pods.end());
    }
    for (const auto& [key, pod] : consumers) {
      if (pod->view().ns() != request->ns || consumed_request(*pod) != request->name || pod->view().node_name.empty()) continue;
      if (one.pods.empty()) break;
      const auto is_like = [&](const PodPtr& booked) { return booked->info->wanted() == pod->info->wanted(); };
      const auto like = std::find_if(one.pods.rbegin(), one.pods.rend(), is_like);
      one.pods.erase(like == one.pods.rend() ? std::prev(one.pods.end()) : std::prev(like.base()));
    }
    out.push_back(std::move(one));
  }
  return out;
}

void Provisioning::homeless(const RequestPtr& request, std::size_t pods, TimePoint now) {
  if (pods == 0) {
    homeless_since_.erase(request->uid);
    return;
  }
  if (homeless_since_.try_emplace(request->uid, now).first->second + kPatience >= now) return;
  update(request).set("CapacityRevoked", true, "CapacityIsNotFound",
                      fmt::format("The capacity that was provisioned is gone: {} of its pods fit nowhere", pods), now);
}

void Provisioning::shift_times(Duration jump) {
  for (auto& [uid, since] : homeless_since_) since += jump;
}

RequestUpdate& Provisioning::update(const RequestPtr& request) { return updates_.try_emplace(request->key(), request).first->second; }

void Provisioning::accept(const RequestPtr& request, TimePoint now) {
  update(request).set("Accepted", true, "Accepted", kAcceptedMessage, now);
  // The first pause is a minute, the next one two.
  const bool is_first = request->condition("Provisioned") == nullptr;
  Duration& pause = pause_.try_emplace(request->uid, kFirstPause).first->second;
  if (!is_first) pause = std::min(2 * pause, kLongestPause);
}

std::vector<RequestUpdate> Provisioning::take_updates() {
  std::vector<RequestUpdate> out;
  for (auto& [key, update] : updates_) out.push_back(std::move(update));
  updates_.clear();
  return out;
}

}  // namespace berth::autoscaler
