#include "node/simulated/usage_curve.h"

#include "model/quantity.h"

namespace berth::node::simulated {

Result<UsageCurve> UsageCurve::parse(std::string_view text) {
  UsageCurve curve;
  const std::string_view whole = text;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view{} : text.substr(comma + 1);
    if (part == "loop" && text.empty() && curve.points_.size() > 1) {
      curve.is_loop_ = true;
      break;
    }
    const std::size_t equals = part.find('=');
    Point point{Duration::zero(), 0};
    if (equals != std::string_view::npos) {
      const std::optional<Duration> at = parse_go_duration(part.substr(0, equals));
      if (!at || *at < Duration::zero())
        return invalid(fmt::format("usage curve \"{}\": \"{}\" is not a duration", whole, part.substr(0, equals)));
      point.at = *at;
    } else if (!curve.points_.empty() || !text.empty()) {
      return invalid(fmt::format("usage curve \"{}\": \"{}\" is not of the form DURATION=QUANTITY", whole, part));
    }
    const std::string_view quantity = equals == std::string_view::npos ? part : part.substr(equals + 1);
    const std::optional<model::Quantity> value = model::Quantity::parse(quantity);
    if (!value || value->sign() < 0) return invalid(fmt::format("usage curve \"{}\": \"{}\" is not a quantity", whole, quantity));
    point.value = value->as_double();
    if (!curve.points_.empty() && point.at <= curve.points_.back().at)
      return invalid(fmt::format("usage curve \"{}\": times must rise", whole));
    curve.points_.push_back(point);
  }
  if (curve.points_.empty()) return invalid("usage curve: empty");
  return curve;
}

double UsageCurve::at(Duration age) const {
  if (is_loop_ && points_.back().at > Duration::zero() && age > points_.back().at) age = age % points_.back().at;
  if (age <= points_.front().at) return points_.front().value;
  for (std::size_t i = 1; i < points_.size(); ++i) {
    if (age > points_[i].at) continue;
    const double share =
        static_cast<double>((age - points_[i - 1].at).count()) / static_cast<double>((points_[i].at - points_[i - 1].at).count());
    return points_[i - 1].value + share * (points_[i].value - points_[i - 1].value);
  }
  return points_.back().value;
}

}  // namespace berth::node::simulated
