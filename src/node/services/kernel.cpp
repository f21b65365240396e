#include "node/services/kernel.h"

#include <fmt/format.h>

#include <fstream>

#ifdef BERTH_WITH_NFTABLES
#include <nftables/libnftables.h>
#endif

namespace berth::node::services {
#ifdef BERTH_WITH_NFTABLES
namespace {

class NftKernel final : public Kernel {
 public:
  NftKernel() : context_(nft_ctx_new(NFT_CTX_DEFAULT)) {
    nft_ctx_buffer_output(context_.get());
    nft_ctx_buffer_error(context_.get());
  }
  Result<void> run(const std::string& script) override {
    if (nft_run_cmd_from_buffer(context_.get(), script.c_str()) == 0) return {};
    const char* const said = nft_ctx_get_error_buffer(context_.get());
    std::string text = said == nullptr ? "" : said;
    if (const auto second = text.find('\n', text.find('\n') + 1); second != std::string::npos) text.resize(second);
    return fail(ErrorCode::kUnavailable, fmt::format("nftables: {}", text));
  }

 private:
  struct Free {
    void operator()(nft_ctx* context) const { nft_ctx_free(context); }
  };
  std::unique_ptr<nft_ctx, Free> context_;
};

}  // namespace

Result<std::unique_ptr<Kernel>> open_kernel() {
  auto kernel = std::make_unique<NftKernel>();
  if (auto ok = kernel->run("add table ip berth-probe\ndelete table ip berth-probe\n"); !ok) return std::unexpected(ok.error());
  return kernel;
}
#else
Result<std::unique_ptr<Kernel>> open_kernel() {
  return fail(ErrorCode::kUnavailable, "this berth was built without libnftables (Debian's libnftables-dev)");
}
#endif

bool bridged_traffic_passes_rules() {
  constexpr const char* kSwitch = "/proc/sys/net/bridge/bridge-nf-call-iptables";
  const auto is_on = [] {
    std::ifstream in(kSwitch);
    char value = '0';
    return (in >> value) && value == '1';
  };
  if (is_on()) return true;
  std::ofstream(kSwitch) << "1\n";
  return is_on();
}

}  // namespace berth::node::services
