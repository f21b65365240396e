#include "placement/devices/matcher.h"

#include <fmt/format.h>

#include <map>

#include "cel/cel.h"
#include "cel/device_selector.h"

namespace berth::placement::devices {
namespace {

cel::Value value_of(const model::DeviceAttribute& attribute) {
  using Kind = model::DeviceAttribute::Kind;
  switch (attribute.kind) {
    case Kind::kBool:
      return cel::Value::boolean(attribute.number != 0);
    case Kind::kInt:
      return cel::Value::integer(attribute.number);
    case Kind::kString:
      return cel::Value::borrowed_string(attribute.text);
    case Kind::kVersion:
      return cel::Value::semver(attribute.text);
    case Kind::kNone:
      break;
  }
  return cel::Value::error("unsupported attribute value");
}

/// Attributes or capacities by domain. A domain that the device does not speak of is empty rather than missing.
class Domains final : public cel::Map {
 public:
  using Entries = std::vector<std::pair<std::string, cel::Value>>;
  explicit Domains(std::map<std::string, Entries, std::less<>> entries) {
    for (auto& [domain, values] : entries) domains_.emplace(domain, cel::Value::map(std::move(values)));
  }
  std::size_t size() const override { return domains_.size(); }
  std::optional<cel::Value> find(const cel::Value& key) const override {
    if (key.kind() != cel::Value::Kind::kString) return std::nullopt;
    const auto at = domains_.find(key.text());
    return at != domains_.end() ? at->second : cel::Value::map(Entries());
  }
  void each(const std::function<bool(const cel::Value&, const cel::Value&)>& visit) const override {
    for (const auto& [domain, values] : domains_)
      if (!visit(cel::Value::borrowed_string(domain), values)) return;
  }

 private:
  std::map<std::string, cel::Value, std::less<>> domains_;
};

template <typename T, typename F>
cel::Value by_domain(const std::map<std::string, T, std::less<>>& members, const std::string& driver, F&& value_of_member) {
  std::map<std::string, Domains::Entries, std::less<>> out;
  for (const auto& [name, member] : members) {
    const auto slash = name.find('/');
    const bool is_plain = slash == std::string::npos;
    out[is_plain ? driver : name.substr(0, slash)].emplace_back(is_plain ? name : name.substr(slash + 1), value_of_member(member));
  }
  return cel::Value::map(std::make_shared<const Domains>(std::move(out)));
}

}  // namespace

struct Matcher::Impl {
  std::map<std::string, Expected<cel::Program, std::string>, std::less<>> programs;
};

Matcher::Matcher() : impl_(std::make_unique<Impl>()) {}
Matcher::~Matcher() = default;

Expected<bool, std::string> Matcher::matches(const std::string& expression, const std::string& driver, const model::DeviceView& device) {
  auto at = impl_->programs.find(expression);
  if (at == impl_->programs.end()) {
    auto compiled = cel::compile_device_selector(expression);
    at = impl_->programs
             .emplace(expression,
                      compiled ? Expected<cel::Program, std::string>(*compiled) : std::unexpected("CEL compile error: " + compiled.error()))
             .first;
  }
  if (!at->second) return std::unexpected(at->second.error());
  for (const auto& [name, attribute] : device.attributes) {
    if (attribute.kind == model::DeviceAttribute::Kind::kNone)
      return std::unexpected(fmt::format("CEL runtime error: attribute {}: unsupported attribute value", name));
  }
  const cel::Value attributes = by_domain(device.attributes, driver, value_of);
  const cel::Value capacity =
      by_domain(device.capacity, driver, [](const model::DeviceCapacity& one) { return cel::Value::quantity(one.value); });
  const cel::Bindings variables{{"device", cel::Value::map(std::vector<std::pair<std::string, cel::Value>>{
                                               {"driver", cel::Value::borrowed_string(driver)},
                                               {"allowMultipleAllocations", cel::Value::boolean(device.allows_sharing)},
                                               {"attributes", attributes},
                                               {"capacity", capacity}})}};
  const auto evaluated = at->second->evaluate(variables);
  if (!evaluated.value) return std::unexpected("CEL runtime error: " + evaluated.value.error().message);
  if (evaluated.value->kind() != cel::Value::Kind::kBool)
    return std::unexpected("CEL runtime error: CEL result could not be converted to bool: unsupported conversion");
  return evaluated.value->as_bool();
}

}  // namespace berth::placement::devices
