#include "base/text_packer.h"

#include <zstd.h>

#include "base/check.h"

namespace berth {
namespace {

/// What a text of this size takes beside a sample that is like it: what is its own in it, names, uids and times.
constexpr std::size_t well_packed(std::size_t size) { return 140 + size / 48; }

std::string_view stem_of(std::string_view name) {
  const auto at = name.find_last_of("-.");
  return at == std::string_view::npos ? std::string_view() : name.substr(0, at);
}

}  // namespace

struct TextPacker::Context {
  ZSTD_CCtx* zstd = ZSTD_createCCtx();
  std::string out;
  Context() {
    ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, -1);  // Twice as fast to read as 1, for a tenth more bytes.
    ZSTD_CCtx_setParameter(zstd, ZSTD_c_windowLog, 17);         // Reaches over a text and its sample.
    ZSTD_CCtx_setParameter(zstd, ZSTD_c_contentSizeFlag, 0);
    ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 0);
  }
  ~Context() { ZSTD_freeCCtx(zstd); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
};

TextPacker::TextPacker() : context_(std::make_unique<Context>()) {}
TextPacker::~TextPacker() = default;

std::string_view TextPacker::compress(const Bytes& sample, const std::string& text) {
  auto& [zstd, out] = *context_;
  out.resize(std::max(out.size(), ZSTD_compressBound(text.size())));
  if (sample != nullptr) ZSTD_CCtx_refPrefix(zstd, sample->data(), sample->size());
  const std::size_t size = ZSTD_compress2(zstd, out.data(), out.size(), text.data(), text.size());
  BERTH_CHECK(!ZSTD_isError(size), "zstd takes any text");
  return {out.data(), size};
}

TextPacker::Family& TextPacker::family(std::string_view resource, std::string_view stem) {
  if (families_.size() >= kMostFamilies) families_.clear();  // Whatever is packed keeps its sample; who comes next finds new ones.
  std::string key;
  key.reserve(resource.size() + stem.size() + 1);
  key.append(resource).append(1, '\0').append(stem);
  return families_[std::move(key)];
}

std::size_t TextPacker::pack(std::string_view resource, std::string_view name, const KeptText& text) {
  if (text.size() < kLeastBytes || text.is_packed()) return 0;
  const HeldText plain = text.read();
  Bytes sample;
  std::string_view packed;
  if (text.size() > kMostSampleBytes) {
    packed = compress(nullptr, *plain);
  } else {
    Family& general = family(resource, {});
    if (general.sample == nullptr) general.sample = make_bytes(*plain);
    sample = general.sample;
    Family& own = family(resource, stem_of(name));
    if (own.sample != nullptr) sample = own.sample;
    packed = compress(sample, *plain);
    const std::size_t good = well_packed(text.size());
    if (packed.size() > good && (own.excess += packed.size() - good) > 2 * text.size()) {
      own = {make_bytes(*plain), 0};
      sample = own.sample;
      packed = compress(sample, *plain);
    }
  }
  constexpr std::size_t kAround = 64;  // What the allocator takes for one more piece.
  if (packed.size() + kAround > text.size() - text.size() / 4) return 0;
  text.keep_packed(std::move(sample), packed);
  return text.size() - packed.size();
}

}  // namespace berth
