#include "apiserver/etcd/range_claims.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <charconv>
#include <map>

#include "apiserver/etcd/stored_form.h"
#include "base/clock.h"
#include "base/log.h"
#include "model/protobuf/protobuf.h"
#include "security/uuid.h"

namespace berth::apiserver::etcd {
namespace {

constexpr std::string_view kMark("k8s\0", 4);

/// core/v1 RangeAllocation: {1: metadata, 2: range, 3: bits as one big number, its highest byte first}.
struct RangeRecord {
  std::string metadata, range, bits;
  store::Revision revision = 0;

  [[nodiscard]] bool has(std::uint32_t index) const {
    const std::size_t byte = index / 8;
    return byte < bits.size() && ((static_cast<unsigned char>(bits[bits.size() - 1 - byte]) >> (index % 8)) & 1) != 0;
  }
  void set(std::uint32_t index, bool taken) {
    const std::size_t byte = index / 8;
    if (byte >= bits.size()) bits.insert(0, byte + 1 - bits.size(), '\0');
    auto& at = bits[bits.size() - 1 - byte];
    at = static_cast<char>(taken ? at | (1 << (index % 8)) : at & ~(1 << (index % 8)));
  }
  [[nodiscard]] Bytes encode() const {
    std::string type, message, out(kMark);
    wire::append_field(message, 1, metadata);
    wire::append_field(message, 2, range);
    wire::append_field(message, 3, std::string_view(bits).substr(std::min(bits.find_first_not_of('\0'), bits.size())));
    wire::append_field(type, 1, "v1");
    wire::append_field(type, 2, "RangeAllocation");
    wire::append_field(out, 1, type);
    wire::append_field(out, 2, message);
    // Two servers that take the same port at the same moment write the same bits: by these, each knows its own write (stored_form.h).
    const auto mark = next_mark();
    wire::append_field(out, 15, {mark.data(), mark.size()});
    return make_bytes(std::move(out));
  }
};

/// networking.k8s.io/v1 IPAddress: {1: metadata {1: name, 5: uid, 8: creationTimestamp, 11: labels}, 2: spec {1: parentRef {1: group,
/// 2: resource, 3: namespace, 4: name}}}.
Bytes address_record(const std::string& address, const ClaimOwner& owner) {
  std::string metadata, time, parent, spec, message, type, out(kMark);
  wire::append_field(metadata, 1, address);
  wire::append_field(metadata, 5, security::random_uuid());
  wire::append_number(
      time, 1, static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::seconds>(SystemClock().now() - TimePoint{}).count()));
  wire::append_field(metadata, 8, time);
  for (const auto& [key, value] :
       {std::pair("ipaddress.kubernetes.io/ip-family", "IPv4"), {"ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io"}}) {
    std::string label;
    wire::append_field(label, 1, key);
    wire::append_field(label, 2, value);
    wire::append_field(metadata, 11, label);
  }
  wire::append_field(parent, 1, {});
  wire::append_field(parent, 2, "services");
  wire::append_field(parent, 3, owner.ns);
  wire::append_field(parent, 4, owner.name);
  wire::append_field(spec, 1, parent);
  wire::append_field(message, 1, metadata);
  wire::append_field(message, 2, spec);
  wire::append_field(type, 1, "networking.k8s.io/v1");
  wire::append_field(type, 2, "IPAddress");
  wire::append_field(out, 1, type);
  wire::append_field(out, 2, message);
  out += model::protobuf_tail();
  return make_bytes(std::move(out));
}

class RangeClaims final : public ServiceClaims {
 public:
  RangeClaims(std::shared_ptr<store::SharedStore> store, const RangeOptions& options) : store_(std::move(store)), options_(options) {}

  Result<void> open() {
    const auto slash = options_.service_cidr.find('/');
    in_addr network{};
    int bits = 0;
    inet_pton(AF_INET, options_.service_cidr.substr(0, slash).c_str(), &network);
    std::from_chars(options_.service_cidr.data() + slash + 1, options_.service_cidr.data() + options_.service_cidr.size(), bits);
    base_ = ntohl(network.s_addr) & ~((1U << (32 - bits)) - 1);
    // Neither the network's own address nor the last.
    addresses_ = {options_.prefix + "/ranges/serviceips", fmt::format("{}/{}", render(base_), bits), (1U << (32 - bits)) - 2};
    ports_ = {options_.prefix + "/ranges/servicenodeports", fmt::format("{}-{}", options_.first_port, options_.last_port),
              static_cast<std::uint32_t>(options_.last_port - options_.first_port + 1)};
    for (const auto& [place, flag] : {std::pair(&addresses_, "--service-cluster-ip-range"), std::pair(&ports_, "node ports")}) {
      auto record = read(*place);
      if (!record) return std::unexpected(record.error());
      if (!record->range.empty() && record->range != place->range)
        return invalid(
            fmt::format("another API server on this etcd gives {} of {}, this one is to of {}: {} must be the same for all of them. "
                        "Nothing was written",
                        place == &addresses_ ? "Services addresses" : "node ports", record->range, place->range, flag));
    }
    return {};
  }

  Result<std::optional<std::uint32_t>> claim(Claimed what, std::optional<std::uint32_t> wanted, const ClaimOwner& owner) override {
    const Place& place = what == Claimed::kAddress ? addresses_ : ports_;
    // The first few are left to those who name theirs.
    std::uint32_t from = wanted.value_or(what == Claimed::kAddress ? std::min(9U, place.size / 2) : std::min(86U, place.size / 32));
    for (int attempt = 0; attempt < 1000; ++attempt) {
      auto record = read(place);
      if (!record) return std::unexpected(record.error());
      std::uint32_t chosen = from;
      for (std::uint32_t tried = 0; record->has(chosen) && !wanted && tried < place.size; ++tried) chosen = (chosen + 1) % place.size;
      if (record->has(chosen)) return std::optional<std::uint32_t>();
      if (what == Claimed::kAddress) {
        auto named = name_address(chosen, owner);
        if (!named) return std::unexpected(named.error());
        if (!*named && wanted) return std::optional<std::uint32_t>();
        if (!*named) {
          from = (chosen + 1) % place.size;
          continue;
        }
      }
      record->set(chosen, true);
      if (record->range.empty()) record->range = place.range;
      const auto answer = write(place.key, record->encode(), record->revision);
      if (answer.verdict == store::WriteVerdict::kDone) return std::optional(chosen);
      if (what == Claimed::kAddress) forget_address(chosen);
      if (answer.verdict != store::WriteVerdict::kRefused) return fail(ErrorCode::kUnavailable, answer.message);
    }
    return fail(ErrorCode::kUnavailable, fmt::format("{} is written by too many at once", place.key));
  }

  void confirm(Claimed what, std::uint32_t index, const ClaimOwner& owner) override {
    const Place& place = what == Claimed::kAddress ? addresses_ : ports_;
    for (int attempt = 0; attempt < 100; ++attempt) {
      auto record = read(place);
      if (!record || record->has(index)) break;
      record->set(index, true);
      if (record->range.empty()) record->range = place.range;
      if (write(place.key, record->encode(), record->revision).verdict != store::WriteVerdict::kRefused) break;
    }
    if (what == Claimed::kAddress) static_cast<void>(name_address(index, owner));
  }

  void release(Claimed what, std::uint32_t index) override {
    const Place& place = what == Claimed::kAddress ? addresses_ : ports_;
    for (int attempt = 0; attempt < 100; ++attempt) {
      auto record = read(place);
      if (!record || !record->has(index)) break;
      record->set(index, false);
      if (write(place.key, record->encode(), record->revision).verdict != store::WriteVerdict::kRefused) break;
    }
    if (what == Claimed::kAddress) forget_address(index);
  }

  void repair(Claimed what, const std::set<std::uint32_t>& held) override {
    const Place& place = what == Claimed::kAddress ? addresses_ : ports_;
    auto record = read(place);
    if (!record) return;
    std::set<std::uint32_t> leaks = what == Claimed::kAddress ? named_addresses() : std::set<std::uint32_t>();
    for (std::uint32_t index = 0; index < place.size && index < record->bits.size() * 8; ++index)
      if (record->has(index)) leaks.insert(index);
    std::map<std::uint32_t, int> found;
    for (const std::uint32_t index : leaks)
      if (!held.contains(index)) found[index] = leaks_[what][index] + 1;
    std::erase_if(found, [&](const auto& leak) {
      if (leak.second < kTimesFound) return false;
      log::warning(
          "server", "{} {} was claimed for a Service that is not there: it is free again",
          what == Claimed::kAddress ? "address" : "node port",
          what == Claimed::kAddress ? render(base_ + 1 + leak.first) : std::to_string(options_.first_port + static_cast<int>(leak.first)));
      release(what, leak.first);
      return true;
    });
    leaks_[what] = std::move(found);
  }

 private:
  static constexpr int kTimesFound = 3;

  /// Those that IPAddress objects give to Services.
  std::set<std::uint32_t> named_addresses() {
    std::set<std::uint32_t> out;
    const std::string prefix = options_.prefix + "/ipaddresses/";
    const auto found = store_->find(prefix, true);
    if (!found) return out;
    for (const auto& record : *found) {
      in_addr address{};
      if (!record.value->starts_with(kMark) || inet_pton(AF_INET, record.key.substr(prefix.size()).c_str(), &address) != 1) continue;
      const auto message = model::bytes_field(std::string_view(*record.value).substr(kMark.size()), 2);
      const auto parent = model::bytes_field(model::bytes_field(message, 2), 1);
      const std::uint32_t number = ntohl(address.s_addr);
      if (model::bytes_field(parent, 1).empty() && model::bytes_field(parent, 2) == "services" && number > base_ &&
          number - base_ - 1 < addresses_.size)
        out.insert(number - base_ - 1);
    }
    return out;
  }

  struct Place {
    std::string key, range;
    std::uint32_t size = 0;
  };

  static std::string render(std::uint32_t address) {
    return fmt::format("{}.{}.{}.{}", address >> 24, (address >> 16) & 255, (address >> 8) & 255, address & 255);
  }
  [[nodiscard]] std::string address_key(std::uint32_t index) const {
    return fmt::format("{}/ipaddresses/{}", options_.prefix, render(base_ + 1 + index));
  }

  Result<RangeRecord> read(const Place& place) {
    auto found = store_->find(place.key, false);
    if (!found) return std::unexpected(found.error());
    RangeRecord record;
    if (found->empty()) return record;
    record.revision = found->front().revision;
    const std::string& value = *found->front().value;
    if (!value.starts_with(kMark)) return fail(ErrorCode::kCorrupt, fmt::format("{} is no RangeAllocation in protobuf", place.key));
    const auto message = model::bytes_field(std::string_view(value).substr(kMark.size()), 2);
    record.metadata = model::bytes_field(message, 1);
    record.range = model::bytes_field(message, 2);
    record.bits = model::bytes_field(message, 3);
    return record;
  }
  store::WriteAnswer write(const std::string& key, Bytes value, std::optional<store::Revision> expected) {
    store::SharedWrite write;
    write.key = key;
    write.value = std::move(value);
    write.expected = expected;
    return store_->write_and_wait(std::move(write));
  }

  /// False: somebody has it. One that names nobody is given to `owner`: kube-apiserver 1.36 ends over such a one.
  Result<bool> name_address(std::uint32_t index, const ClaimOwner& owner) {
    const Bytes value = address_record(render(base_ + 1 + index), owner);
    const auto answer = write(address_key(index), value, 0);
    if (answer.verdict == store::WriteVerdict::kDone) return true;
    if (answer.verdict != store::WriteVerdict::kRefused) return fail(ErrorCode::kUnavailable, answer.message);
    if (answer.present && answer.present->value->starts_with(kMark)) {
      const auto message = model::bytes_field(std::string_view(*answer.present->value).substr(kMark.size()), 2);
      if (model::bytes_field(model::bytes_field(message, 2), 1).empty()) write(address_key(index), value, answer.present->revision);
    }
    return false;
  }
  void forget_address(std::uint32_t index) { write(address_key(index), nullptr, std::nullopt); }

  const std::shared_ptr<store::SharedStore> store_;
  const RangeOptions options_;
  std::uint32_t base_ = 0;
  Place addresses_, ports_;
  std::map<Claimed, std::map<std::uint32_t, int>> leaks_;  ///< How often in a row each was found. Of repair() alone.
};

}  // namespace

Result<std::unique_ptr<ServiceClaims>> open_range_claims(std::shared_ptr<store::SharedStore> store, const RangeOptions& options) {
  auto claims = std::make_unique<RangeClaims>(std::move(store), options);
  if (auto opened = claims->open(); !opened) return std::unexpected(opened.error());
  return claims;
}

}  // namespace berth::apiserver::etcd
