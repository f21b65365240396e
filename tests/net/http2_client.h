// A rude HTTP/2 client: frames made by hand over a blocking socket, and what comes back taken apart.
#pragma once
#include <nghttp2/nghttp2.h>

#include <map>
#include <vector>

#include "tests/net/net_fixture.h"

namespace berth::net::test {

using Fields = std::vector<std::pair<std::string, std::string>>;

struct Frame {
  std::uint8_t type = 0, flags = 0;
  std::uint32_t stream = 0;
  std::string payload;
};

constexpr std::uint8_t kData = 0, kHeaders = 1, kPriority = 2, kRstStream = 3, kSettings = 4, kPing = 6, kGoaway = 7, kWindowUpdate = 8,
                       kContinuation = 9;
constexpr std::uint8_t kEndStream = 1, kAck = 1, kEndHeaders = 4;

inline std::string big_endian(std::uint32_t value, int bytes = 4) {
  std::string out;
  for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) out.push_back(static_cast<char>(value >> shift));
  return out;
}

inline std::uint32_t number_at(std::string_view text, std::size_t at, int bytes = 4) {
  std::uint32_t out = 0;
  for (int i = 0; i < bytes; ++i) out = out << 8 | static_cast<unsigned char>(text[at + static_cast<std::size_t>(i)]);
  return out;
}

inline std::string frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, std::string_view payload = {}) {
  auto out = big_endian(static_cast<std::uint32_t>(payload.size()), 3);
  out.push_back(static_cast<char>(type));
  out.push_back(static_cast<char>(flags));
  return out.append(big_endian(stream)).append(payload);
}

inline std::string setting(std::uint16_t id, std::uint32_t value) { return big_endian(id, 2) + big_endian(value); }

/// Fields as literals that no table keeps.
inline std::string literals(const Fields& fields) {
  std::string out;
  const auto text = [&out](std::string_view value) {
    if (value.size() < 127) {
      out.push_back(static_cast<char>(value.size()));
    } else {
      out.push_back(127);
      auto rest = value.size() - 127;
      for (; rest >= 128; rest /= 128) out.push_back(static_cast<char>(rest % 128 + 128));
      out.push_back(static_cast<char>(rest));
    }
    out.append(value);
  };
  for (const auto& [name, value] : fields) {
    out.push_back(0);
    text(name);
    text(value);
  }
  return out;
}

inline Fields request_fields(std::string method = "GET", std::string path = "/") {
  return {{":method", std::move(method)}, {":scheme", "http"}, {":path", std::move(path)}, {":authority", "x"}};
}

/// What came of one stream.
struct StreamAnswer {
  Fields fields;
  std::string body;
  bool ended = false;
  std::optional<std::uint32_t> reset;
  [[nodiscard]] std::string field(std::string_view name) const {
    for (const auto& [key, value] : fields)
      if (key == name) return value;
    return {};
  }
  [[nodiscard]] std::string status() const { return field(":status"); }
};

class Http2Client {
 public:
  /// Without TLS, with prior knowledge.
  explicit Http2Client(std::uint16_t port, std::string_view settings = {}) : raw_(port) {
    nghttp2_hd_inflate_new(&inflater_);
    raw_.send(std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") + frame(kSettings, 0, 0, settings));
  }
  ~Http2Client() { nghttp2_hd_inflate_del(inflater_); }
  Http2Client(const Http2Client&) = delete;
  Http2Client& operator=(const Http2Client&) = delete;

  void send(std::string_view bytes) { raw_.send(bytes); }
  /// The next request's frame, not sent yet.
  std::string request(const Fields& fields, bool ends = true) {
    next_ += 2;
    return frame(kHeaders, static_cast<std::uint8_t>(kEndHeaders | (ends ? kEndStream : 0)), next_ - 2, literals(fields));
  }
  /// Begins a request; returns its stream.
  std::uint32_t ask(const Fields& fields, bool ends = true) {
    send(request(fields, ends));
    return next_ - 2;
  }
  [[nodiscard]] std::uint32_t next_stream() const { return next_; }

  /// Reads frames until `enough`; false when the connection ended (or nothing came for ten seconds) before that.
  template <typename Enough>
  bool read_until(Enough enough) {
    while (!enough()) {
      if (!read_frame()) return enough();
    }
    return true;
  }
  bool read_answer(std::uint32_t stream) {
    return read_until([&] { return answers[stream].ended || answers[stream].reset; });
  }
  bool read_to_end() {
    while (read_frame()) {
    }
    return at_end_;
  }

  std::map<std::uint32_t, StreamAnswer> answers;
  std::vector<std::uint32_t> goaways;  ///< Their codes.
  std::uint32_t last_stream = 0;       ///< The last GOAWAY's.
  std::map<std::uint16_t, std::uint32_t> settings;
  int pongs = 0;
  bool acks_pings = true;

 private:
  bool read_frame() {
    while (buffer_.size() < 9 || buffer_.size() < 9 + number_at(buffer_, 0, 3)) {
      std::array<char, 65536> some;
      const auto got = ::recv(raw_.fd(), some.data(), some.size(), 0);
      at_end_ = got == 0 || (got < 0 && errno == ECONNRESET);
      if (got <= 0) return false;
      buffer_.append(some.data(), static_cast<std::size_t>(got));
    }
    Frame got;
    const auto size = number_at(buffer_, 0, 3);
    got.type = static_cast<std::uint8_t>(buffer_[3]);
    got.flags = static_cast<std::uint8_t>(buffer_[4]);
    got.stream = number_at(buffer_, 5);
    got.payload = buffer_.substr(9, size);
    buffer_.erase(0, 9 + size);
    take(got);
    return true;
  }

  void take(const Frame& got) {
    auto& answer = answers[got.stream];
    switch (got.type) {
      case kHeaders:
        inflate(got.payload, answer.fields);
        break;
      case kData:
        answer.body += got.payload;
        break;
      case kRstStream:
        answer.reset = number_at(got.payload, 0);
        break;
      case kGoaway:
        last_stream = number_at(got.payload, 0);
        goaways.push_back(number_at(got.payload, 4));
        break;
      case kPing:
        pongs += (got.flags & kAck) != 0 ? 1 : 0;
        if (acks_pings && (got.flags & kAck) == 0) send(frame(kPing, kAck, 0, got.payload));
        break;
      case kSettings:
        for (std::size_t at = 0; at + 6 <= got.payload.size(); at += 6)
          settings[static_cast<std::uint16_t>(number_at(got.payload, at, 2))] = number_at(got.payload, at + 2);
        if ((got.flags & kAck) == 0) send(frame(kSettings, kAck, 0));
        break;
      default:
        break;
    }
    if ((got.type == kHeaders || got.type == kData) && (got.flags & kEndStream) != 0) answer.ended = true;
  }

  void inflate(std::string_view block, Fields& out) {
    const auto* at = reinterpret_cast<const std::uint8_t*>(block.data());
    auto left = block.size();
    while (true) {
      nghttp2_nv field;
      int flags = 0;
      const auto used = nghttp2_hd_inflate_hd2(inflater_, &field, &flags, at, left, 1);
      ASSERT_GE(used, 0);
      at += used;
      left -= static_cast<std::size_t>(used);
      if ((flags & NGHTTP2_HD_INFLATE_EMIT) != 0)
        out.emplace_back(std::string(reinterpret_cast<char*>(field.name), field.namelen),
                         std::string(reinterpret_cast<char*>(field.value), field.valuelen));
      if ((flags & NGHTTP2_HD_INFLATE_FINAL) != 0) break;
    }
    nghttp2_hd_inflate_end_headers(inflater_);
  }

  RawClient raw_;
  std::uint32_t next_ = 1;
  std::string buffer_;
  bool at_end_ = false;
  nghttp2_hd_inflater* inflater_ = nullptr;
};

}  // namespace berth::net::test
