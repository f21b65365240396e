#include "node/eviction/statement_faults.h"

#include <cctype>

#include "node/eviction/allocatable.h"

namespace berth::node::eviction {
namespace {

constexpr std::string_view kReservable[] = {"cpu", "memory", "ephemeral-storage", "pid"};

const std::vector<std::string_view>& signals() {
  static const std::vector<std::string_view> kNames = [] {
    std::vector<std::string_view> names;
    for (std::size_t i = 0; i < kSignalCount; ++i) names.push_back(to_string(static_cast<Signal>(i)));
    return names;
  }();
  return kNames;
}

/// "500MB" with the two units that it may mean; empty for what is no number with a unit of bytes.
std::string likely_amount(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  if (digits == 0 || digits == text.size()) return {};
  const std::string_view number = text.substr(0, digits);
  std::string unit(text.substr(digits));
  std::erase(unit, ' ');
  for (char& c : unit) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const std::string_view end : {"bytes", "byte", "ib", "b", "i"})
    if (unit.ends_with(end)) {
      unit.resize(unit.size() - end.size());
      break;
    }
  if (unit.empty()) return fmt::format("; did you mean \"{}\"?", number);
  constexpr std::string_view kUnits = "kmgtpe";
  if (unit.size() != 1 || !kUnits.contains(unit[0])) return {};
  const char large = static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0])));
  return fmt::format("; did you mean \"{0}{1}i\" (units of 1024) or \"{0}{2}\" (of 1000)?", number, large, large == 'K' ? 'k' : large);
}

bool counts_bytes(std::string_view name) {
  return name == "memory" || name == "ephemeral-storage" || (name.ends_with(".available") && name != "pid.available");
}

/// An amount of bytes that is smaller than any machine's page cache: its unit was forgotten, or it is "m", thousandths.
std::string doubt_of(const std::string& name, const std::string& text) {
  if (!counts_bytes(name) || text.ends_with('%')) return {};
  const auto amount = parse_quantity(text);
  if (!amount || amount->value.sign() <= 0 || amount->value.value() >= (1 << 20)) return {};
  const std::string number = text.substr(0, std::min(text.find_first_not_of("0123456789."), text.size()));
  return fmt::format("{} of {} is {} byte{}; did you mean \"{}Mi\"?", text, name, amount->value.value(),
                     amount->value.value() == 1 ? "" : "s", number);
}

struct Collector {
  std::vector<StatementFault> faults;

  /// `errors_of`: what the kubelet says of one entry.
  template <typename Errors>
  void look_at(std::string_view field, std::string_view flag, const StatementMap& map, std::span<const std::string_view> names,
               Errors errors_of, bool are_amounts = true) {
    for (const auto& [name, text] : map) {
      const std::vector<std::string> errors = errors_of(StatementMap{{name, text}});
      const bool is_known = std::ranges::find(names, std::string_view(name)) != names.end();
      if (!errors.empty()) {
        std::string meant = !is_known ? config::suggestion(name, names) : are_amounts ? likely_amount(text) : "";
        if (!is_known && meant.empty()) meant = fmt::format("; there are {}", fmt::join(names, ", "));
        faults.push_back({field, flag, name, errors.front() + meant, true});
      } else if (std::string doubt = are_amounts ? doubt_of(name, text) : ""; !doubt.empty()) {
        faults.push_back({field, flag, name, std::move(doubt), false});
      }
    }
  }
};

}  // namespace

std::vector<StatementFault> statement_faults(const KubeletSettings& settings) {
  Collector out;
  const auto thresholds = [](const StatementMap& one) {
    EvictionSettings alone;
    alone.hard = one;
    return all_parse_errors(alone);
  };
  const auto periods = [](const StatementMap& one) {
    EvictionSettings alone;
    alone.soft_grace_period = one;
    return all_parse_errors(alone);
  };
  const auto reclaims = [](const StatementMap& one) {
    EvictionSettings alone;
    alone.minimum_reclaim = one;
    return all_parse_errors(alone);
  };
  const auto reserved = [](StatementMap ReservationSettings::*which) {
    return [which](const StatementMap& one) {
      ReservationSettings alone;
      alone.*which = one;
      alone.ignore_eviction_threshold = true;
      return all_reservation_errors(alone);
    };
  };
  const StatementMap none;
  out.look_at("evictionHard", "eviction-hard", settings.eviction_hard.value_or(none), signals(), thresholds);
  out.look_at("evictionSoft", "eviction-soft", settings.eviction_soft.value_or(none), signals(), thresholds);
  out.look_at("evictionSoftGracePeriod", "eviction-soft-grace-period", settings.eviction_soft_grace_period.value_or(none), signals(),
              periods, false);
  out.look_at("evictionMinimumReclaim", "eviction-minimum-reclaim", settings.eviction_minimum_reclaim.value_or(none), signals(), reclaims);
  out.look_at("kubeReserved", "kube-reserved", settings.kube_reserved, kReservable, reserved(&ReservationSettings::kube_reserved));
  out.look_at("systemReserved", "system-reserved", settings.system_reserved, kReservable, reserved(&ReservationSettings::system_reserved));
  return std::move(out.faults);
}

}  // namespace berth::node::eviction
