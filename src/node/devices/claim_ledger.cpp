#include "node/devices/claim_ledger.h"

#include <fmt/format.h>

#include <algorithm>

namespace berth::node::devices {
namespace {

using json::get_array;
using json::get_string;

std::string key_of(const ClaimId& id) { return id.ns + "/" + id.name; }

std::vector<std::string> texts(const json::Array& list) {
  std::vector<std::string> out;
  for (const auto& one : list)
    if (one.is_string()) out.emplace_back(json::as_view(one));
  return out;
}

ClaimLedger::Device read_device(const json::Value& from) {
  return {std::string(get_string(from, {"pool_name"})), std::string(get_string(from, {"device_name"})),
          std::string(get_string(from, {"share_id"})), texts(get_array(from, {"request_names"})),
          texts(get_array(from, {"cdi_device_ids"}))};
}

json::Value write_device(const ClaimLedger::Device& device) {
  return json::Object{{"pool_name", device.pool},
                      {"device_name", device.name},
                      {"share_id", device.share},
                      {"request_names", json::Array(device.requests.begin(), device.requests.end())},
                      {"cdi_device_ids", json::Array(device.cdi_ids.begin(), device.cdi_ids.end())}};
}

/// Goes through what a driver says of each claim: `take` those in order. The error is the first that is not.
template <typename Take>
Result<void> take_answers(std::string_view method, const ClaimCall& call, const json::Value& answer, const Take& take) {
  Result<void> out;
  const auto wrong = [&](std::string why) {
    if (out) out = fail(ErrorCode::kUnavailable, std::move(why));
  };
  std::size_t answered = 0;
  for (const auto& [uid, said] : json::get_object(answer, {"claims"})) {
    const auto asked = std::ranges::find(call.claims, std::string_view(uid), &ClaimId::uid);
    if (asked == call.claims.end()) {
      wrong(fmt::format("{} returned result for unknown claim UID {}", method, std::string_view(uid)));
      continue;
    }
    ++answered;
    if (const auto error = get_string(said, {"error"}); !error.empty())
      wrong(fmt::format("{} failed for ResourceClaim {}: {}", method, asked->name, error));
    else
      take(*asked, said);
  }
  if (answered < call.claims.size()) wrong(fmt::format("{} skipped {} ResourceClaims", method, call.claims.size() - answered));
  return out;
}

void add_call(std::vector<ClaimCall>& calls, const std::string& driver, const ClaimId& id) {
  auto known = std::ranges::find(calls, driver, &ClaimCall::driver);
  if (known == calls.end()) known = calls.insert(calls.end(), ClaimCall{driver, {}});
  known->claims.push_back(id);
}

}  // namespace

bool ClaimLedger::Claim::is_prepared() const {
  return std::ranges::all_of(drivers, [](const auto& one) { return one.second.has_value(); });
}

Result<std::vector<ClaimCall>> ClaimLedger::use(const std::string& pod_uid, const std::vector<ClaimUse>& claims) {
  for (const ClaimUse& one : claims)
    if (const Claim* known = find(one.id.ns, one.id.name); known != nullptr && known->id.uid != one.id.uid)
      return fail(ErrorCode::kUnavailable,
                  fmt::format("old ResourceClaim with same name {} and different UID {} still exists (previous pod force-deleted?!)",
                              one.id.name, known->id.uid));
  std::vector<ClaimCall> out;
  for (const ClaimUse& one : claims) {
    Claim& claim = claims_[key_of(one.id)];
    claim.id = one.id;
    claim.pods.insert(pod_uid);
    for (const std::string& driver : one.drivers)
      if (!claim.drivers.try_emplace(driver).first->second) add_call(out, driver, one.id);
  }
  return out;
}

Result<void> ClaimLedger::prepared(const ClaimCall& call, const json::Value& answer) {
  return take_answers("NodePrepareResources", call, answer, [&](const ClaimId& id, const json::Value& said) {
    Claim* claim = find_by_uid(id.uid);
    if (claim == nullptr) return;
    std::vector<Device> devices;
    for (const auto& one : get_array(said, {"devices"})) devices.push_back(read_device(one));
    claim->drivers[call.driver] = std::move(devices);
  });
}

std::vector<ClaimCall> ClaimLedger::release(const std::string& pod_uid) {
  std::vector<ClaimCall> out;
  for (auto at = claims_.begin(); at != claims_.end();) {
    Claim& claim = at->second;
    const bool is_its_own = claim.pods.contains(pod_uid), is_shared = claim.pods.size() > 1;
    if (is_its_own && is_shared) claim.pods.erase(pod_uid);
    // A driver that was asked and never answered may have prepared something all the same.
    if (is_its_own && !is_shared)
      for (const auto& [driver, devices] : claim.drivers) add_call(out, driver, claim.id);
    at = is_its_own && !is_shared && claim.drivers.empty() ? claims_.erase(at) : std::next(at);
  }
  return out;
}

Result<void> ClaimLedger::unprepared(const ClaimCall& call, const json::Value& answer) {
  return take_answers("NodeUnprepareResources", call, answer, [&](const ClaimId& id, const json::Value&) {
    Claim* claim = find_by_uid(id.uid);
    if (claim == nullptr) return;
    claim->drivers.erase(call.driver);
    if (claim->drivers.empty()) claims_.erase(key_of(id));
  });
}

ClaimLedger::Claim* ClaimLedger::find_by_uid(const std::string& uid) {
  const auto found = std::ranges::find_if(claims_, [&](const auto& entry) { return entry.second.id.uid == uid; });
  return found == claims_.end() ? nullptr : &found->second;
}

const ClaimLedger::Claim* ClaimLedger::find(const std::string& ns, const std::string& name) const {
  const auto found = claims_.find(ns + "/" + name);
  return found == claims_.end() ? nullptr : &found->second;
}

std::vector<const ClaimLedger::Claim*> ClaimLedger::claims_of(const std::string& pod_uid) const {
  std::vector<const Claim*> out;
  for (const auto& [key, claim] : claims_)
    if (claim.pods.contains(pod_uid)) out.push_back(&claim);
  return out;
}

std::set<std::string> ClaimLedger::others_than(const std::set<std::string>& pod_uids) const {
  std::set<std::string> out;
  for (const auto& [key, claim] : claims_)
    for (const std::string& uid : claim.pods)
      if (!pod_uids.contains(uid)) out.insert(uid);
  return out;
}

std::set<std::string> ClaimLedger::users(std::string_view driver, std::string_view pool, std::string_view device) const {
  std::set<std::string> out;
  for (const auto& [key, claim] : claims_) {
    const auto found = claim.drivers.find(std::string(driver));
    if (found == claim.drivers.end() || !found->second) continue;
    if (std::ranges::any_of(*found->second, [&](const Device& one) { return one.pool == pool && one.name == device; }))
      out.insert(claim.pods.begin(), claim.pods.end());
  }
  return out;
}

json::Value ClaimLedger::checkpoint(std::string_view boot) const {
  json::Array claims;
  for (const auto& [key, claim] : claims_) {
    json::Object drivers;
    for (const auto& [name, devices] : claim.drivers) {
      json::Array written;
      if (devices)
        for (const Device& one : *devices) written.push_back(write_device(one));
      drivers[name] = devices ? json::Value(std::move(written)) : json::Value(nullptr);
    }
    claims.push_back(json::Object{{"namespace", claim.id.ns},
                                  {"claimName", claim.id.name},
                                  {"claimUID", claim.id.uid},
                                  {"podUIDs", json::Array(claim.pods.begin(), claim.pods.end())},
                                  {"drivers", std::move(drivers)}});
  }
  return json::Object{{"bootID", boot}, {"claims", std::move(claims)}};
}

bool ClaimLedger::restore(const json::Value& checkpoint, std::string_view boot) {
  const json::Value* claims = json::find(checkpoint, "claims");
  if (claims == nullptr || !claims->is_array()) return false;
  const bool is_same_boot = get_string(checkpoint, {"bootID"}) == boot;
  for (const auto& entry : claims->get_array()) {
    Claim claim;
    claim.id = {std::string(get_string(entry, {"namespace"})), std::string(get_string(entry, {"claimName"})),
                std::string(get_string(entry, {"claimUID"}))};
    for (std::string& uid : texts(get_array(entry, {"podUIDs"}))) claim.pods.insert(std::move(uid));
    if (claim.id.name.empty() || claim.id.uid.empty() || claim.pods.empty()) continue;
    for (const auto& [name, written] : json::get_object(entry, {"drivers"})) {
      auto& devices = claim.drivers[std::string(name)];
      if (!is_same_boot || !written.is_array()) continue;
      devices.emplace();
      for (const auto& one : written.get_array()) devices->push_back(read_device(one));
    }
    claims_[key_of(claim.id)] = std::move(claim);
  }
  return true;
}

bool serves(const ClaimLedger::Device& device, std::string_view request) {
  if (request.empty() || device.requests.empty()) return true;
  return std::ranges::find(device.requests, request.substr(0, request.find('/'))) != device.requests.end() ||
         std::ranges::find(device.requests, request) != device.requests.end();
}

json::Value claim_request(const ClaimCall& call) {
  json::Array claims;
  for (const ClaimId& id : call.claims) claims.push_back(json::Object{{"namespace", id.ns}, {"uid", id.uid}, {"name", id.name}});
  return json::Object{{"claims", std::move(claims)}};
}

}  // namespace berth::node::devices
