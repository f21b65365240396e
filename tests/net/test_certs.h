// Certificates for tests, made on the spot.
#pragma once
#include <string>
#include <vector>

namespace berth::test {

struct Identity {
  std::string certificate_pem, key_pem;
};

/// An authority, self-signed or below another one.
class Authority {
 public:
  explicit Authority(const std::string& name, const Authority* above = nullptr);
  ~Authority();
  Authority(const Authority&) = delete;
  Authority& operator=(const Authority&) = delete;
  [[nodiscard]] const std::string& pem() const { return pem_; }
  /// With its key: for who signs by it.
  [[nodiscard]] Identity itself() const;
  /// A leaf for 127.0.0.1, localhost and `common_name`, valid `days` from now (negative: expired), or `seconds`.
  [[nodiscard]] Identity issue(const std::string& common_name, const std::vector<std::string>& organizations = {}, int days = 1,
                               long seconds = 0) const;

 private:
  struct State;
  State* state_;
  std::string pem_;
};

}  // namespace berth::test
