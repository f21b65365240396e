#include "cli/roles/server_presence.h"

#include <openssl/sha.h>

#include <set>

#include "apiserver/upkeep/own_documents.h"
#include "base/log.h"
#include "base/mutex.h"
#include "model/protobuf/protobuf.h"

namespace berth::cli {
namespace {

constexpr auto kRenewal = std::chrono::seconds(5);
constexpr int kRenewalsBetweenRepairs = 36;       // Three minutes, as kube-apiserver's.
constexpr auto kLife = std::chrono::seconds(15);  // kube-apiserver's.

const model::Gvr kEndpoints{"", "v1", "endpoints"};
const model::Gvr kSlices{"discovery.k8s.io", "v1", "endpointslices"};
const model::Gvr kLeases{"coordination.k8s.io", "v1", "leases"};

/// Whether `present` says what is written of it already.
bool says(const json::Value& present, const json::Value& wanted) {
  for (const char* field : {"subsets", "endpoints", "ports", "spec"}) {
    const auto* now = json::find(present, field);
    const auto* then = json::find(wanted, field);
    if (then == nullptr || (then->is_array() && then->get_array().empty() && now == nullptr)) continue;
    if (now == nullptr || json::serialize(*now) != json::serialize(*then)) return false;
  }
  return true;
}

}  // namespace

std::string server_identity(const std::string& host, const std::string& address, std::uint16_t port) {
  static constexpr std::string_view kAlphabet = "abcdefghijklmnopqrstuvwxyz234567";
  const std::string text = fmt::format("{}/{}/{}", host, address, port);
  unsigned char digest[SHA256_DIGEST_LENGTH];
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest);
  std::string name = "apiserver-";
  unsigned bits = 0, count = 0;
  for (std::size_t i = 0; i < 16; ++i) {
    bits = bits << 8 | digest[i];
    for (count += 8; count >= 5; count -= 5) name += kAlphabet[bits >> (count - 5) & 31];
  }
  return name;
}

ServerPresence::ServerPresence(std::shared_ptr<store::SharedStore> store, client::Client client, const Clock& clock, PresenceFacts facts)
    : store_(std::move(store)), client_(std::move(client)), clock_(clock), facts_(std::move(facts)) {
  renew();
  thread_ = std::thread([this] { run(); });
}

ServerPresence::~ServerPresence() { withdraw(); }

void ServerPresence::withdraw() {
  {
    const MutexLock lock(mutex_);
    if (std::exchange(stopping_, true)) return;
  }
  wake_.notify_all();
  thread_.join();
  store_->write_and_wait({lease_key(), nullptr, std::nullopt, {}});
  publish();
  write_lease(true);
}

void ServerPresence::run() {
  MutexLock lock(mutex_);
  for (int renewals = 1; !wake_.wait_for(mutex_, kRenewal, [this]() BERTH_REQUIRES(mutex_) { return stopping_; }); ++renewals) {
    lock.unlock();
    renew();
    if (renewals % kRenewalsBetweenRepairs == 0 && facts_.repair) facts_.repair();
    lock.lock();
  }
}

void ServerPresence::renew() {
  store::SharedWrite lease;
  lease.key = lease_key();
  if (auto value = model::encode_protobuf(apiserver::own_endpoints({facts_.address}, facts_.port)))
    lease.value = make_bytes(std::move(*value));
  lease.ttl = kLife;
  if (const auto answer = store_->write_and_wait(std::move(lease)); answer.verdict != store::WriteVerdict::kDone)
    return log::warning("server", "this server's presence could not be renewed: {}", answer.message);
  publish();
  write_lease(false);
}

void ServerPresence::publish() {
  const auto found = store_->find(facts_.prefix + "/masterleases/", true);
  if (!found) return;
  std::set<std::string> addresses;
  for (const auto& record : *found) addresses.insert(record.key.substr(record.key.rfind('/') + 1));
  put(kEndpoints, apiserver::own_endpoints(addresses, facts_.port));
  put(kSlices, apiserver::own_slice(addresses, facts_.port));
}

void ServerPresence::write_lease(bool is_gone) {
  if (is_gone) return client_.remove(kLeases, "kube-system", facts_.identity, {}, [](const auto&) {});
  json::Object labels{{"apiserver.kubernetes.io/identity", "kube-apiserver"}, {"kubernetes.io/hostname", facts_.address}};
  put(kLeases,
      json::Object{{"apiVersion", "coordination.k8s.io/v1"},
                   {"kind", "Lease"},
                   {"metadata", json::Object{{"name", facts_.identity}, {"namespace", "kube-system"}, {"labels", std::move(labels)}}},
                   {"spec", json::Object{{"holderIdentity", facts_.identity + "_" + facts_.address},
                                         {"leaseDurationSeconds", 3600},
                                         {"renewTime", format_rfc3339_micro(clock_.now())}}}});
}

void ServerPresence::put(const model::Gvr& gvr, json::Value document) {
  const std::string ns(json::get_string(document, {"metadata", "namespace"})), name(json::get_string(document, {"metadata", "name"}));
  for (int attempt = 0; attempt < 3; ++attempt) {
    auto present = client_.get_and_wait(gvr, ns, name);
    if (!present && present.error().code != 404) return log::warning("server", "{} {}: {}", gvr.resource, name, present.error().message);
    if (!present) {
      if (client_.create_and_wait(gvr, ns, document)) return;
      continue;
    }
    if (says(*present, document)) return;
    for (const char* field : {"subsets", "endpoints", "ports", "spec"})
      if (const auto* value = json::find(document, field)) present->get_object()[field] = *value;
    client::Call update{.verb = "update", .gvr = gvr, .ns = ns, .name = name, .body = json::serialize(*present)};
    const auto updated = client_.call_and_wait(std::move(update));
    if (updated) return;
    if (updated.error().code != 409) return log::warning("server", "{} {}: {}", gvr.resource, name, updated.error().message);
  }
}

}  // namespace berth::cli
