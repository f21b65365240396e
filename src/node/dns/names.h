// What the cluster's name service answers: names of Services, endpoints and pods, made of Service and EndpointSlice documents by the
// specification "Kubernetes DNS-Based Service Discovery" 1.1.0. Pure; not thread-safe.
#pragma once
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/json.h"

namespace berth::node::dns {

/// Numbers of the protocol (RFC 1035, 2782, 3596).
enum RecordType : std::uint16_t { kA = 1, kNs = 2, kCname = 5, kSoa = 6, kPtr = 12, kTxt = 16, kAaaa = 28, kSrv = 33, kAny = 255 };
enum class ResponseCode { kNoError = 0, kServFail = 2, kNxDomain = 3 };
/// Where in an answer a record stands.
enum class Section { kAnswer = 1, kAuthority = 2, kAdditional = 3 };

struct Record {
  std::uint16_t type = 0;
  Section section = Section::kAnswer;
  std::string name, content;  ///< As in a zone file; names end in a dot.
  friend bool operator==(const Record&, const Record&) = default;
};

struct Reply {
  bool is_ours = true;  ///< False: a name of the world, for whoever is asked next.
  ResponseCode code = ResponseCode::kNoError;
  std::vector<Record> records;
  bool leads_outside = false;  ///< The last record is a CNAME to a name that is not the cluster's.
};

inline constexpr int kTtlSeconds = 5;
/// Of a reply: no message of the protocol, 64 KiB at most, holds more.
inline constexpr std::size_t kMostRecords = 4096;

class Names {
 public:
  /// `domain`: the cluster's, such as "cluster.local".
  explicit Names(std::string domain);

  /// Puts a Service in the place of what is known of it. `slices`: its EndpointSlices. Endpoints that are ready count; where the Service
  /// says publishNotReadyAddresses the controller writes them as ready.
  void set_service(const json::Value& service, const std::vector<const json::Value*>& slices);
  void erase_service(const std::string& ns, const std::string& name);
  void add_namespace(const std::string& ns) { namespaces_.insert(ns); }
  void erase_namespace(const std::string& ns) { namespaces_.erase(ns); }

  /// Any case, with or without the last dot. Costs the Service's endpoints twice at most, a name of one endpoint only that one.
  [[nodiscard]] Reply ask(std::string_view name, std::uint16_t type) const;
  /// How many endpoints the questions so far have looked at.
  [[nodiscard]] std::uint64_t looked_at() const { return looked_at_; }

 private:
  struct Port {
    std::string name, protocol;
    std::uint16_t number = 0;
  };
  struct Endpoint {
    std::string hostname, address;                   ///< hostname: the pod's, or its address with dashes.
    std::shared_ptr<const std::vector<Port>> ports;  ///< The slice's.
  };
  struct Service {
    std::vector<std::string> cluster_ips;
    std::vector<Port> ports;
    std::string external_name;
    bool is_headless = false;
    std::vector<Endpoint> endpoints;
    std::unordered_map<std::string, std::vector<std::size_t>> by_hostname;  ///< Of endpoints.
  };
  using Key = std::pair<std::string, std::string>;

  void index(const Key& key, const Service& service, bool adds);
  [[nodiscard]] Reply nothing(bool exists) const;
  [[nodiscard]] Reply reverse(std::string_view name, std::uint16_t type) const;
  [[nodiscard]] Reply about_pod(const std::vector<std::string>& labels, const std::string& name, std::uint16_t type) const;
  [[nodiscard]] Reply about_service(const std::vector<std::string>& labels, const std::string& name, std::uint16_t type, int depth) const;
  [[nodiscard]] Reply ask_at_depth(std::string_view name, std::uint16_t type, int depth) const;
  [[nodiscard]] Reply external(const Service& service, const std::string& name, std::uint16_t type, int depth) const;
  [[nodiscard]] std::string service_name(const Key& key) const;
  void add_services_of(const Key& key, const Service& service, const std::string& name, std::string_view port, std::string_view protocol,
                       std::vector<Record>& into) const;

  std::string domain_;
  std::map<Key, Service> services_;
  std::set<std::string> namespaces_;
  mutable std::uint64_t looked_at_ = 0;
  std::map<std::string, std::set<std::pair<Key, std::string>>> by_address_;  ///< Services, with an endpoint's hostname or "".
};

/// Answers questions page by page. A reply of several pages is made once and kept while the rest of it is fetched. Not thread-safe.
class Pages {
 public:
  /// As datagram_of, of what `names` says to the question.
  [[nodiscard]] std::string answer(const Names& names, std::string_view name, std::uint16_t type, std::size_t from, std::size_t room);

 private:
  static constexpr std::size_t kMostKept = 8;
  struct Kept {
    std::string name;
    std::uint16_t type;
    Reply reply;
  };
  std::deque<Kept> kept_;  ///< The newest first.
};

/// A reply as the recursor's script reads it, from record `from` on, within `room` bytes: "CODE NEXT FOLLOW" and a line a record.
/// NEXT: where the rest begins, 0 when there is none; "pass" alone for names that are not ours.
[[nodiscard]] std::string datagram_of(const Reply& reply, std::size_t from, std::size_t room);

}  // namespace berth::node::dns
