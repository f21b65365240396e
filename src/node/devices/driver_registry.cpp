#include "node/devices/driver_registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "node/devices/claim_protocol.h"

namespace berth::node::devices {
namespace {

constexpr Duration kFirstPause = std::chrono::seconds(1), kLongestPause = std::chrono::minutes(5);
constexpr std::size_t kLongestMessage = 128;  // ResourceHealthMessageMaxLength

/// Cut between characters.
std::string shortened(std::string text) {
  if (text.size() <= kLongestMessage) return text;
  std::size_t end = kLongestMessage - 3;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) --end;
  return text.substr(0, end) + "...";
}

}  // namespace

Result<std::string> DriverRegistry::choose_service(const std::vector<std::string>& services) {
  if (services.empty()) return invalid("empty list of supported gRPC services (aka supported versions)");
  for (const std::string& one : services)
    if (std::ranges::find(kClaimServices, one) != std::end(kClaimServices)) return one;
  const auto quoted = [](const auto& list) {
    std::vector<std::string> out;
    for (const auto& one : list) out.push_back(fmt::format("\"{}\"", one));
    return fmt::format("[{}]", fmt::join(out, " "));
  };
  return invalid(fmt::format("none of services supported by the plugin ({}) are supported by the kubelet ({})", quoted(services),
                             quoted(kClaimServices)));
}

Result<void> DriverRegistry::add(const std::string& driver, const std::string& path, const std::string& service) {
  auto& known = endpoints_[driver];
  if (std::ranges::find(known, path, &Endpoint::path) != known.end())
    return invalid(fmt::format("endpoint {} already registered for DRA driver plugin {}", path, driver));
  known.push_back({path, service, true});
  wipes_.erase(driver);
  return {};
}

void DriverRegistry::remove(const std::string& driver, const std::string& path, TimePoint now) {
  const auto known = endpoints_.find(driver);
  if (known == endpoints_.end()) return;
  std::erase_if(known->second, [&](const Endpoint& one) { return one.path == path; });
  if (known->second.empty()) endpoints_.erase(known);
  settle(driver, now);
}

void DriverRegistry::look(const std::string& driver, const std::string& path, bool answers, TimePoint now) {
  const auto known = endpoints_.find(driver);
  if (known == endpoints_.end()) return;
  for (Endpoint& one : known->second)
    if (one.path == path) one.answers = answers;
  settle(driver, now);
}

void DriverRegistry::settle(const std::string& driver, TimePoint now) {
  const Endpoint* best = find(driver);
  if (best != nullptr && best->answers)
    wipes_.erase(driver);
  else
    wipes_.try_emplace(driver, Wipe{now + kDriverPatience, {}});  // What is due stays due.
}

const DriverRegistry::Endpoint* DriverRegistry::find(const std::string& driver) const {
  const auto known = endpoints_.find(driver);
  if (known == endpoints_.end()) return nullptr;
  for (auto one = known->second.rbegin(); one != known->second.rend(); ++one)
    if (one->answers) return &*one;
  return &known->second.back();
}

std::vector<std::pair<std::string, DriverRegistry::Endpoint>> DriverRegistry::all() const {
  std::vector<std::pair<std::string, Endpoint>> out;
  for (const auto& [driver, endpoints] : endpoints_)
    for (const Endpoint& one : endpoints) out.emplace_back(driver, one);
  return out;
}

std::vector<std::string> DriverRegistry::due(TimePoint now) const {
  std::vector<std::string> out;
  for (const auto& [driver, wipe] : wipes_)
    if (now >= wipe.due) out.push_back(driver);
  return out;
}

void DriverRegistry::wiped(const std::string& driver, bool is_done, TimePoint now) {
  const auto found = wipes_.find(driver);
  if (found == wipes_.end()) return;
  Wipe& wipe = found->second;
  wipe.pause = wipe.pause == Duration::zero() ? kFirstPause : std::min(wipe.pause * 2, kLongestPause);
  wipe.due = is_done ? TimePoint::max() : now + wipe.pause;  // Done is not forgotten: it would be found due again.
  if (is_done && driver.empty()) wipes_.erase(found);
}

std::vector<std::pair<std::string, std::string>> DriverRegistry::report(const std::string& driver, const std::vector<DeviceReport>& devices,
                                                                        TimePoint now) {
  std::vector<std::pair<std::string, std::string>> out;
  auto& known = health_[driver];
  for (const DeviceReport& one : devices) {
    Health health = one.health;
    health.message = shortened(std::move(health.message));
    const std::pair key(one.pool, one.device);
    if (const auto before = known.find(key); before == known.end() || before->second.health != health) out.push_back(key);
    known[key] = {std::move(health), now + (one.holds.count() > 0 ? one.holds : kHealthHolds)};
  }
  return out;
}

DriverRegistry::Health DriverRegistry::health(const std::string& driver, const std::string& pool, const std::string& device,
                                              TimePoint now) const {
  const auto of = health_.find(driver);
  if (of == health_.end()) return {};
  const auto found = of->second.find({pool, device});
  return found == of->second.end() || now > found->second.until ? Health{} : found->second.health;
}

}  // namespace berth::node::devices
