#include "pools/catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/config_reader.h"
#include "pools/requirements.h"

namespace berth::pools {
namespace {

using config::Reader;

/// A quantity that is there, or a problem. Numbers may stand without quotes.
std::optional<model::Quantity> quantity(const Reader& reader, std::string_view name, bool is_needed) {
  const Reader field = reader.field(name);
  if (!field.is_present()) {
    if (is_needed) reader.problem(name, "is missing: an amount such as \"4\" or 16Gi");
    return std::nullopt;
  }
  std::string text;
  if (field.value()->is_string())
    text = json::as_view(*field.value());
  else if (field.value()->is_number())
    text = json::serialize(*field.value());
  const auto out = model::Quantity::parse(text);
  if (!out || out->sign() < 0) {
    reader.problem(name, fmt::format("\"{}\" is no amount: write \"4\", 500m or 16Gi", text));
    return std::nullopt;
  }
  return out;
}

void put(model::ResourceList& list, std::string name, const model::Quantity& amount) {
  const auto at = std::ranges::lower_bound(list, name, {}, [](const auto& one) { return std::string_view(one.first); });
  if (at != list.end() && at->first == name)
    at->second = amount;
  else
    list.insert(at, {std::move(name), amount});
}

bool is_price(const Reader& reader, std::string_view name, double price) {
  if (price >= 0 && price < 1e6) return true;
  reader.problem(name, "a price of an hour is not below zero");
  return false;
}

void read_offerings(const Reader& reader, const std::vector<std::string>& zones, InstanceType& type) {
  for (const Reader& entry : reader.field("offerings").items()) {
    entry.only({"zone", "capacityType", "price", "available"});
    Offering one{entry.string("zone"), entry.string("capacityType", "on-demand"), entry.number("price", -1),
                 entry.boolean("available", true)};
    if (one.zone.empty()) entry.problem("zone", "is missing");
    if (is_price(entry, "price", one.price)) type.offerings.push_back(std::move(one));
  }
  const std::vector<std::string> own = reader.strings("zones");
  const Reader prices = reader.field("prices");
  for (const auto& [capacity_type, value] : prices.members()) {
    const double price = prices.number(capacity_type, -1);
    if (!is_price(prices, capacity_type, price)) continue;
    for (const std::string& zone : own.empty() ? zones : own) type.offerings.push_back({zone, capacity_type, price, true});
  }
  if (prices.is_present() && own.empty() && zones.empty()) reader.problem("zones", "is missing, here and for the whole catalogue");
  if (type.offerings.empty() && !prices.is_present() && !reader.has("offerings"))
    reader.problem("prices", "is missing: {on-demand: 0.10}, or offerings with zone, capacityType and price");
}

InstanceType read_type(const Reader& reader, const std::vector<std::string>& zones) {
  reader.only({"name", "cpu", "memory", "pods", "ephemeralStorage", "resources", "arch", "os", "labels", "overhead", "zones", "prices",
               "offerings"});
  InstanceType out;
  out.name = reader.string("name");
  if (out.name.empty()) reader.problem("name", "is missing");
  for (const auto& [field, resource] : {std::pair("cpu", "cpu"), std::pair("memory", "memory"), std::pair("pods", "pods"),
                                        std::pair("ephemeralStorage", "ephemeral-storage")})
    if (const auto amount = quantity(reader, field, std::string_view(field) == "cpu" || std::string_view(field) == "memory"))
      put(out.capacity, resource, *amount);
  if (!reader.has("pods")) put(out.capacity, "pods", model::Quantity::from_value(110));
  if (!reader.has("ephemeralStorage")) put(out.capacity, "ephemeral-storage", *model::Quantity::parse("20Gi"));
  const Reader more = reader.field("resources");
  for (const auto& [name, value] : more.members())
    if (const auto amount = quantity(more, name, true)) put(out.capacity, name, *amount);
  out.allocatable = out.capacity;
  const Reader overhead = reader.field("overhead");
  for (const auto& [name, value] : overhead.members()) {
    const auto amount = quantity(overhead, name, true);
    const model::Quantity* all = model::find_resource(out.capacity, name);
    if (!amount) continue;
    if (all == nullptr || *all < *amount)
      overhead.problem(name, "is more than the type has");
    else
      put(out.allocatable, name, model::Quantity::from_milli(all->milli_value() - amount->milli_value(), all->format()));
  }
  std::vector<std::pair<std::string, std::string>> labels = {{std::string(kInstanceTypeLabel), out.name},
                                                             {std::string(kArchLabel), reader.string("arch", "amd64")},
                                                             {std::string(kOsLabel), reader.string("os", "linux")}};
  const Reader own = reader.field("labels");
  for (const auto& [key, value] : own.members()) labels.emplace_back(key, own.string(key));
  std::ranges::sort(labels);
  out.labels = model::Labels(std::move(labels));
  read_offerings(reader, zones, out);
  return out;
}

}  // namespace

Result<Catalogue> Catalogue::parse(std::string_view text, const std::string& file) {
  Catalogue out;
  const auto done = config::read_text(text, {.file = file}, [&](const Reader& root) {
    out = {};
    out.text = text;
    constexpr std::string_view kKinds[] = {"InstanceTypeCatalogue"}, kVersions[] = {"berth.dev/v1alpha1"};
    root.only({"apiVersion", "kind", "priced", "currency", "zones", "instanceTypes"});
    root.expect_kind(kKinds, kVersions);
    out.priced = root.string("priced");
    out.currency = root.string("currency", "USD");
    const std::vector<std::string> zones = root.strings("zones");
    std::set<std::string> names;
    for (const Reader& entry : root.field("instanceTypes").items()) {
      InstanceType type = read_type(entry, zones);
      if (!names.insert(type.name).second) entry.problem("name", fmt::format("\"{}\" is there twice", type.name));
      out.types.push_back(std::move(type));
    }
    if (out.types.empty()) root.problem("instanceTypes", "is missing: a list of name, cpu, memory and prices");
  });
  if (!done) return std::unexpected(done.error());
  return out;
}

Result<Catalogue> Catalogue::load(const std::string& file) {
  const auto text = config::read_whole_file(file);
  if (!text) return std::unexpected(text.error());
  return parse(*text, file);
}

const InstanceType* Catalogue::find(std::string_view name) const {
  const auto at = std::ranges::find(types, name, &InstanceType::name);
  return at == types.end() ? nullptr : &*at;
}

std::string Catalogue::money(double amount) const { return fmt::format("{:.4f} {}", amount, currency); }

}  // namespace berth::pools
