#include "controllers/pod_template_hash.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <unordered_map>
#include <vector>

namespace berth::controllers {

/// The Go types behind a PodTemplateSpec (pod_template.types), each with the fields of its struct in their order: "TYPE: NAME,JSON
/// NAME,TYPE NAME,JSON NAME,TYPE …", going on in indented lines.
std::string_view pod_template_types();

namespace {

struct Field {
  std::string_view name, json_name, type;  ///< No JSON name: its members stand in the struct around it.
};
using Types = std::unordered_map<std::string_view, std::vector<Field>>;

/// The text up to `end`, which is taken off with it.
std::string_view take_until(std::string_view& text, char end) {
  const std::size_t at = text.find(end);
  const std::string_view out = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return out;
}

Types read_types() {
  Types types;
  std::vector<Field>* fields = nullptr;
  for (std::string_view rest = pod_template_types(); !rest.empty();) {
    std::string_view line = take_until(rest, '\n');
    if (line.empty()) continue;
    if (line.front() != ' ') fields = &types[take_until(line, ':')];
    while (!line.empty()) {
      std::string_view word = take_until(line, ' ');
      if (word.empty()) continue;
      Field field;
      field.name = take_until(word, ',');
      field.json_name = take_until(word, ',');
      field.type = word;
      fields->push_back(field);
    }
  }
  return types;
}

const Types& types() {
  static const Types all = read_types();
  return all;
}

/// A resource.Quantity as ParseQuantity leaves it: a small number with its decimal scale, or a big decimal; the text where it is kept.
struct Quantity {
  std::int64_t value = 0;
  int scale = 0;
  bool is_big = false;
  bool negative = false;
  unsigned __int128 unscaled = 0;  ///< Of the big one, in billionths.
  std::string_view kept;
  std::string_view format = "DecimalSI";
};

struct Suffix {
  std::string_view text;
  int base, exponent;
};
constexpr std::array kSuffixes = {Suffix{"", 10, 0},   Suffix{"n", 10, -9}, Suffix{"u", 10, -6}, Suffix{"m", 10, -3},
                                  Suffix{"k", 10, 3},  Suffix{"M", 10, 6},  Suffix{"G", 10, 9},  Suffix{"T", 10, 12},
                                  Suffix{"P", 10, 15}, Suffix{"E", 10, 18}, Suffix{"Ki", 2, 10}, Suffix{"Mi", 2, 20},
                                  Suffix{"Gi", 2, 30}, Suffix{"Ti", 2, 40}, Suffix{"Pi", 2, 50}, Suffix{"Ei", 2, 60}};

/// Base, exponent and format of a suffix. Exponents (`1e3`) are decimal.
Suffix read_suffix(std::string_view text, std::string_view& format) {
  for (const Suffix& one : kSuffixes) {
    if (one.text != text) continue;
    format = one.base == 2 ? "BinarySI" : "DecimalSI";
    return one;
  }
  format = "DecimalExponent";
  int exponent = 0;
  if (text.size() > 1) {
    std::string_view digits = text.substr(1);
    if (digits.front() == '+') digits.remove_prefix(1);
    std::from_chars(digits.data(), digits.data() + digits.size(), exponent);
  }
  return {text, 10, exponent};
}

/// The big decimal: in billionths, rounded up, what is binary at most 2^63 - 1.
void make_big(Quantity& out, std::string_view whole, std::string_view fraction, const Suffix& suffix) {
  constexpr unsigned __int128 kBillion = 1'000'000'000;
  constexpr unsigned __int128 kMost = static_cast<unsigned __int128>(~std::uint64_t{0} >> 1) * kBillion;
  const bool binary = suffix.base == 2;
  // Digits beyond what 128 bits hold are beyond the largest amount as well.
  unsigned __int128 unscaled = 0;
  int scale = 9 + (binary ? 0 : suffix.exponent) - static_cast<int>(fraction.size());
  for (const std::string_view part : {whole, fraction})
    for (const char digit : part) unscaled = std::min(unscaled, kMost) * 10 + static_cast<unsigned>(digit - '0');
  for (int i = 0; binary && i < suffix.exponent; ++i) unscaled = std::min(unscaled, kMost) * 2;
  for (; scale > 0; --scale) unscaled = std::min(unscaled, kMost) * 10;
  bool rest = false;
  for (; scale < 0; ++scale) {
    rest = rest || unscaled % 10 != 0;
    unscaled /= 10;
  }
  if (rest) ++unscaled;
  if (binary) unscaled = std::min(unscaled, kMost);
  if (binary && unscaled < kBillion && unscaled > 0) out.format = "DecimalSI";
  out.is_big = true;
  out.unscaled = unscaled;
}

Quantity read_quantity(std::string_view text) {
  Quantity out;
  if (text == "0") {
    out.kept = text;
    return out;
  }
  std::string_view rest = text;
  if (!rest.empty() && (rest.front() == '-' || rest.front() == '+')) {
    out.negative = rest.front() == '-';
    rest.remove_prefix(1);
  }
  const auto digits = [&rest] {
    const std::size_t end = std::min(rest.find_first_not_of("0123456789"), rest.size());
    const std::string_view found = rest.substr(0, end);
    rest.remove_prefix(end);
    return found;
  };
  std::string_view whole = digits(), fraction;
  whole.remove_prefix(std::min(whole.find_first_not_of('0'), whole.size()));
  if (whole.empty()) whole = "0";
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    fraction = digits();
  }
  const Suffix suffix = read_suffix(rest, out.format);
  const auto length = static_cast<int>(whole.size() + fraction.size());
  int precision = -1;
  std::int64_t factor = 1;
  if (suffix.base == 10) {
    out.scale = suffix.exponent;
    precision = 18 - length;
  } else if (fraction.empty()) {
    factor = std::int64_t{1} << suffix.exponent;
    precision = 15 - static_cast<int>(whole.size()) - suffix.exponent * 3 / 10 - 1;
  }
  const int scale = out.scale - static_cast<int>(fraction.size());
  const std::string shifted = fmt::format("{}{}", whole, fraction);
  std::int64_t value = 0;
  if (precision >= 0 && scale >= -9 && std::from_chars(shifted.data(), shifted.data() + shifted.size(), value).ec == std::errc{} &&
      !__builtin_mul_overflow(value, factor, &out.value)) {
    out.scale = scale;
    const bool canonical = suffix.base == 2 ? suffix.exponent % 10 == 0 && (value & 7) != 0
                                            : scale % 3 == 0 && !shifted.ends_with("000") && shifted.front() != '0';
    if (canonical) out.kept = text;
    if (out.negative) out.value = -out.value;
    return out;
  }
  out.value = 0;
  out.scale = 0;
  make_big(out, whole, fraction, suffix);
  return out;
}

std::string dump_quantity(std::string_view text) {
  const Quantity q = read_quantity(text);
  std::string big = "<nil>";
  if (q.is_big) {
    std::string words;
    for (unsigned __int128 left = q.unscaled; left != 0; left >>= 64)
      words += fmt::format("{}{}", words.empty() ? "" : " ", static_cast<std::uint64_t>(left));
    big = fmt::format("{{unscaled:(big.Int){{neg:(bool){} abs:(big.nat)[{}]}} scale:(inf.Scale)9}}", q.negative, words);
  }
  return fmt::format(
      "{{i:(resource.int64Amount){{value:(int64){} scale:(resource.Scale){}}} d:(resource.infDecAmount){{Dec:(*inf.Dec){}}} s:(string){} "
      "Format:(resource.Format){}}}",
      q.value, q.scale, big, q.kept, q.format);
}

std::string_view text_of(const json::Value* value) {
  return value != nullptr && value->is_string() ? json::as_view(*value) : std::string_view{};
}

std::int64_t number_of(const json::Value* value) {
  if (value == nullptr || !value->is_number()) return 0;
  if (value->is_int64()) return value->get_int64();
  return value->is_uint64() ? static_cast<std::int64_t>(value->get_uint64()) : static_cast<std::int64_t>(value->get_double());
}

enum class Show { kType, kNone };

class Dump {
 public:
  void value(std::string_view type, const json::Value* value, Show show);
  std::string out;

 private:
  void list(std::string_view element, const json::Value* value);
  void map(bool of_quantities, const json::Value* value);
  void members(const std::vector<Field>& fields, const json::Value* value);
};

void Dump::value(std::string_view type, const json::Value* value, Show show) {
  if (value != nullptr && value->is_null()) value = nullptr;
  if (show == Show::kType) out.append("(").append(type).append(")");
  if (type.starts_with('*')) {
    if (value == nullptr)
      out += "<nil>";
    else
      this->value(type.substr(1), value, Show::kNone);
    return;
  }
  if (type.starts_with("[]")) return list(type.substr(2), value);
  if (type == "map[string]string" || type == "v1.ResourceList") return map(type == "v1.ResourceList", value);
  if (type == "resource.Quantity") {
    out += value == nullptr ? dump_quantity("0") : dump_quantity(text_of(value));
  } else if (type == "v1.Time") {
    out += "{Time:(time.Time){wall:(uint64)0 ext:(int64)0 loc:(*time.Location)<nil>}}";
  } else if (type == "intstr.IntOrString") {
    const bool is_text = value != nullptr && value->is_string();
    out += fmt::format("{{Type:(intstr.Type){} IntVal:(int32){} StrVal:(string){}}}", is_text ? 1 : 0, number_of(value), text_of(value));
  } else if (const auto found = types().find(type); found != types().end()) {
    members(found->second, value);
  } else if (type == "bool") {
    out += value != nullptr && value->is_bool() && value->get_bool() ? "true" : "false";
  } else if (type == "int32" || type == "int64") {
    out += std::to_string(number_of(value));
  } else {
    out += text_of(value);  // A string, by whatever name.
  }
}

void Dump::list(std::string_view element, const json::Value* value) {
  if (value == nullptr || !value->is_array() || value->get_array().empty()) {
    out += "<nil>";
    return;
  }
  out += "[";
  bool first = true;
  for (const json::Value& one : value->get_array()) {
    if (!std::exchange(first, false)) out += " ";
    this->value(element, &one, Show::kNone);
  }
  out += "]";
}

void Dump::map(bool of_quantities, const json::Value* value) {
  if (value == nullptr || !value->is_object() || value->get_object().empty()) {
    out += "<nil>";
    return;
  }
  std::map<std::string_view, const json::Value*> sorted;
  for (const auto& member : value->get_object()) sorted.emplace(std::string_view(member.key()), &member.value());
  out += "map[";
  bool first = true;
  for (const auto& [key, one] : sorted) {
    if (!std::exchange(first, false)) out += " ";
    out.append(key).append(":");
    this->value(of_quantities ? "resource.Quantity" : "string", one, Show::kNone);
  }
  out += "]";
}

void Dump::members(const std::vector<Field>& fields, const json::Value* value) {
  const json::Object* object = value == nullptr ? nullptr : value->if_object();
  out += "{";
  bool first = true;
  for (const Field& field : fields) {
    if (!std::exchange(first, false)) out += " ";
    out.append(field.name).append(":");
    const json::Value* member = field.json_name.empty() ? value : object == nullptr ? nullptr : object->if_contains(field.json_name);
    this->value(field.type, member, Show::kType);
  }
  out += "}";
}

constexpr std::uint32_t kFnvBasis = 2166136261U, kFnvPrime = 16777619U;

/// Letters and digits that cannot spell words, one a decimal digit.
std::string safe_encoded(std::uint32_t hash) {
  constexpr std::string_view kAlphabet = "bcdfghjklmnpqrstvwxz2456789";
  std::string encoded = std::to_string(hash);
  for (char& c : encoded) c = kAlphabet[static_cast<unsigned char>(c) % kAlphabet.size()];
  return encoded;
}

}  // namespace

std::string dump_pod_template(const json::Value& pod_template) {
  Dump dump;
  dump.value("v1.PodTemplateSpec", &pod_template, Show::kType);
  return std::move(dump.out);
}

std::string pod_template_hash(const json::Value& pod_template, std::optional<std::int64_t> collision_count) {
  std::uint32_t hash = kFnvBasis;
  const auto mix = [&hash](std::uint64_t byte) { hash = (hash ^ static_cast<std::uint32_t>(byte & 0xff)) * kFnvPrime; };
  for (const char c : dump_pod_template(pod_template)) mix(static_cast<unsigned char>(c));
  if (collision_count)  // Eight bytes, of which the count takes the first four.
    for (int i = 0; i < 8; ++i) mix(i < 4 ? static_cast<std::uint64_t>(*collision_count) >> (8 * i) : 0);
  return safe_encoded(hash);
}

std::optional<std::int64_t> collision_count(const json::Value& workload) {
  const json::Value* count = json::find(workload, {"status", "collisionCount"});
  return count == nullptr || !count->is_number() ? std::nullopt : std::optional(number_of(count));
}

std::string text_hash(std::string_view text) {
  std::uint32_t hash = kFnvBasis;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * kFnvPrime;
  return safe_encoded(hash);
}

std::string revision_data_hash(std::string_view data, std::int64_t collision_count) {
  std::uint32_t hash = kFnvBasis;
  const auto mix = [&hash](std::string_view text) {
    for (const char c : text) hash = (hash * kFnvPrime) ^ static_cast<unsigned char>(c);
  };
  mix(data);
  mix(std::to_string(collision_count));
  return safe_encoded(hash);
}

}  // namespace berth::controllers
