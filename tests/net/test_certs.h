// Certificates for tests, made on the spot.
#pragma once
#include <string>
#include <vector>

namespace berth::test {

struct Identity {
  std::string certificate_pem, key_pem;
};

/// A self-signed authority.
class Authority {
 public:
  explicit Authority(const std::string& name);
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;
  [[nodiscard]] const std::string& pem() const { return pem_; }
  /// A leaf for 127.0.0.1, localhost and `common_name`, valid `days` from now (negative: expired).
  [[nodiscard]] Identity issue(const std::string& common_name, const std::vector<std::string>& organizations = {}, int days = 1) const;

 private:
  struct State;
  State* state_;
  std::string pem_;
};

}  // namespace berth::test
