// Addresses of Services as objects: the ranges that they come from, and each that is given away.
#include <arpa/inet.h>

#include "model/internal_form.h"
#include "model/kinds/record.h"
#include "model/validation/ip_range.h"

namespace berth::model::kinds {
namespace {

/// As Go writes it.
std::string address_text(const validation::IpRange& address) {
  char text[INET6_ADDRSTRLEN] = {};
  inet_ntop(address.is_v6 ? AF_INET6 : AF_INET, address.bytes.data(), text, sizeof text);
  return text;
}

/// IsValidIP's sentences; empty: in order.
std::string check_address(std::string_view text) {
  const auto address = validation::parse_ip(text);
  if (!address) return "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
  const std::string canonical = address_text(*address);
  return canonical == text ? std::string() : fmt::format("must be in canonical form (\"{}\")", canonical);
}

/// IsValidCIDR's sentences; empty: in order.
std::string check_range(std::string_view text) {
  const auto range = validation::parse_cidr(text);
  if (!range) return "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
  validation::IpRange network = *range;
  for (unsigned bit = range->bits; bit < range->width(); ++bit) network.bytes[bit / 8] &= static_cast<std::uint8_t>(~(0x80U >> (bit % 8)));
  const std::string prefix = fmt::format("{}/{}", address_text(network), range->bits);
  if (network.bytes != range->bytes) return fmt::format("must not have bits set beyond the prefix length");
  return prefix == text ? std::string() : fmt::format("must be in canonical form (\"{}\")", prefix);
}

std::string check_segment(std::string_view text) {
  if (text == "." || text == "..") return fmt::format("may not be '{}'", text);
  for (const char sign : {'/', '%'})
    if (text.find(sign) != std::string_view::npos) return fmt::format("may not contain '{}'", sign);
  return {};
}

/// Empty for what is no text: decoding has refused it.
std::string_view text_of(const Value& value) { return value.is_string() ? json::as_view(value) : std::string_view(); }

/// A finding where there is something to say.
void refuse(Errors& errors, const Path& at, const Value& value, const std::string& sentences) {
  if (!sentences.empty()) errors.invalid(at, value, sentences);
}

void check_parent(const Value& doc, Errors& errors) {
  const Path spec("spec");
  const Path at = spec / "parentRef";
  const Value* parent = json::find(doc, {"spec", "parentRef"});
  if (parent == nullptr) return errors.required(at);
  if (const auto group = get_string(*parent, {"group"}); !group.empty())
    refuse(errors, at / "group", Value(group), validation::check_dns1123_subdomain(group));
  for (const std::string_view field : {"resource", "name", "namespace"}) {
    const auto text = get_string(*parent, {field});
    if (text.empty() && field != "namespace")
      errors.required(at / field);
    else
      refuse(errors, at / field, Value(text), check_segment(text));
  }
}

void check_same_parent(const Value& old, const Value& doc, Errors& errors) {
  const Path spec("spec");
  const Value* now = json::find(doc, {"spec", "parentRef"});
  const Value* before = json::find(old, {"spec", "parentRef"});
  if (before != nullptr && (now == nullptr || *now != *before))
    errors.invalid(spec / "parentRef", internal_form("networking.v1.ParentReference", now), kImmutable);
}

void check_ranges(const Value& doc, Errors& errors) {
  const Path spec("spec");
  const Path at = spec / "cidrs";
  const Array& ranges = get_array(doc, {"spec", "cidrs"});
  if (ranges.empty()) return errors.required(at, "at least one CIDR required");
  if (ranges.size() > 2) return errors.invalid(at, Value(ranges), "may only hold up to 2 values");
  for (std::size_t i = 0; i < ranges.size(); ++i) refuse(errors, at[i], ranges[i], check_range(text_of(ranges[i])));
  if (ranges.size() < 2) return;
  const auto first = validation::parse_cidr(text_of(ranges[0])), second = validation::parse_cidr(text_of(ranges[1]));
  if (first && second && first->is_v6 == second->is_v6)
    errors.invalid(at, Value(ranges), "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64");
}

/// A range stays what it is; a second family may come.
void check_ranges_stay(const Value& old, const Value& doc, Errors& errors) {
  const Path spec("spec");
  const Path at = spec / "cidrs";
  const Array &before = get_array(old, {"spec", "cidrs"}), &now = get_array(doc, {"spec", "cidrs"});
  const bool grows = before.size() == 1 && now.size() == 2;
  if (before.size() != now.size() && !grows) {
    const Value* shown = json::find(doc, {"spec", "cidrs"});
    return errors.invalid(at, shown == nullptr ? Value(nullptr) : *shown, kImmutable);
  }
  for (std::size_t i = 0; i < before.size(); ++i)
    if (before[i] != now[i]) errors.invalid(at[i], now[i], kImmutable);
  if (grows) check_ranges(doc, errors);
}

/// "services/default/kubernetes"
Array ip_address_cells(const Value& o, TimePoint now) {
  std::string parent = "<none>";
  if (json::find(o, {"spec", "parentRef"}) != nullptr) {
    const auto part = [&](std::string_view field) { return get_string(o, {"spec", "parentRef", field}); };
    parent = part("resource");
    if (!part("group").empty()) parent += fmt::format(".{}", part("group"));
    std::ranges::transform(parent, parent.begin(), [](unsigned char c) { return std::tolower(c); });
    if (!part("namespace").empty()) parent += fmt::format("/{}", part("namespace"));
    parent += fmt::format("/{}", part("name"));
  }
  return {name_of(o), parent, age_of(o, now)};
}

Array service_cidr_cells(const Value& o, TimePoint now) {
  std::vector<std::string> ranges;
  for (const Value& range : get_array(o, {"spec", "cidrs"})) ranges.emplace_back(text_of(range));
  return {name_of(o), fmt::format("{}", fmt::join(ranges, ",")), age_of(o, now)};
}

}  // namespace

KindInfo ip_address() {
  return Record("networking.k8s.io", "v1", "IPAddress", "ipaddresses")
      .shorts({"ip"})
      .cluster()
      .does({.form = kDefault,
             .strategy = kDefault,
             .rules = Rules{.name = check_address, .create = check_parent, .update = in_turn(check_parent, check_same_parent)},
             .printer = Printer{{{"Name"}, {"ParentRef"}, {"Age"}}, ip_address_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = kDefault,
             .counted = kDefault});
}

KindInfo service_cidr() {
  return Record("networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs")
      .cluster()
      .subs({"status"})
      .does({.form = kDefault,
             .strategy = Strategy{.kept_in_status_update = {"labels", "annotations", "finalizers", "ownerReferences"}},
             .rules = Rules{.create = check_ranges, .update = in_turn(check_ranges_stay)},
             .printer = Printer{{{"Name"}, {"CIDRs"}, {"Age"}}, service_cidr_cells},
             .selected = kDefault,
             .scale = kDefault,
             .life = kDefault,
             .counted = kDefault});
}

}  // namespace berth::model::kinds
