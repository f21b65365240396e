#include "base/text_packer.h"

#include <zstd.h>

#include "base/check.h"

namespace berth {
namespace {

constexpr int kLevel = -1;                   // Twice as fast to read as 1, for a tenth more bytes.
constexpr std::size_t kUsesThatPay = 16;     // Preparing a sample takes as long as some ten texts.
constexpr std::size_t kMostPrepared = 1024;  // Of 50 KB each.

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
    ZSTD_CCtx_setParameter(zstd, ZSTD_c_compressionLevel, kLevel);
    ZSTD_CCtx_setParameter(zstd, ZSTD_c_windowLog, 17);  // Reaches over a text and its sample.
    ZSTD_CCtx_setParameter(zstd, ZSTD_c_contentSizeFlag, 0);
    ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 0);
  }
  ~Context() { ZSTD_freeCCtx(zstd); }
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
};

struct TextPacker::Prepared {
  explicit Prepared(const std::string& sample) : zstd(ZSTD_createCDict(sample.data(), sample.size(), kLevel)) {}
  ~Prepared() { ZSTD_freeCDict(zstd); }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  ZSTD_CDict* zstd;
};

TextPacker::TextPacker() : context_(std::make_unique<Context>()) {}
TextPacker::~TextPacker() = default;

void TextPacker::prepare(Family& family) {
  if (prepared_ == kMostPrepared) {
    // Each has to earn it again: where more come in turn than there is room for, hardly any does.
    for (auto& [key, known] : families_) {
      known.prepared = nullptr;
      known.uses = 0;
    }
    prepared_ = 0;
  }
  family.prepared = std::make_shared<Prepared>(*family.sample);
  ++prepared_;
  ++preparations_;
}

std::string_view TextPacker::compress(Family* beside, const std::string& text) {
  auto& [zstd, out] = *context_;
  out.resize(std::max(out.size(), ZSTD_compressBound(text.size())));
  if (beside != nullptr) {
    if (++beside->uses >= kUsesThatPay && beside->prepared == nullptr) prepare(*beside);
    if (beside->prepared != nullptr)
      ZSTD_CCtx_refCDict(zstd, beside->prepared->zstd);
    else
      ZSTD_CCtx_refPrefix(zstd, beside->sample->data(), beside->sample->size());
  } else {
    ZSTD_CCtx_refCDict(zstd, nullptr);
  }
  const std::size_t size = ZSTD_compress2(zstd, out.data(), out.size(), text.data(), text.size());
  BERTH_CHECK(!ZSTD_isError(size), "zstd takes any text");
  return {out.data(), size};
}

TextPacker::Family& TextPacker::family(std::string_view resource, std::string_view stem) {
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
    if (families_.size() + 2 > kMostFamilies) {
      families_.clear();  // Whatever is packed keeps its sample; who comes next finds new ones.
      prepared_ = 0;
    }
    Family& own = family(resource, stem_of(name));
    Family* beside = &own;
    if (own.sample == nullptr) {
      beside = &family(resource, {});
      if (beside->sample == nullptr) beside->sample = make_bytes(*plain);
    }
    packed = compress(beside, *plain);
    const std::size_t good = well_packed(text.size());
    if (packed.size() > good && (own.excess += packed.size() - good) > 2 * text.size()) {
      if (own.prepared != nullptr) --prepared_;
      own = {.sample = make_bytes(*plain)};
      beside = &own;
      packed = compress(beside, *plain);
    }
    sample = beside->sample;
  }
  constexpr std::size_t kAround = 64;  // What the allocator takes for one more piece.
  if (packed.size() + kAround > text.size() - text.size() / 4) return 0;
  text.keep_packed(std::move(sample), packed);
  return text.size() - packed.size();
}

}  // namespace berth
