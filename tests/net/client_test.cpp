// The client against servers that misbehave, played by a plain socket.
#include "tests/net/net_fixture.h"

namespace berth::net::test {
namespace {

/// Accepts connections one after the other; the script decides what each one does.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::function<void(int fd, int index)> script) : script_(std::move(script)) {
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 16), 0);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] {
      for (int index = 0;; ++index) {
        const int fd = ::accept(listener_, nullptr, nullptr);
        if (fd < 0) return;
        ++accepted;
        script_(fd, index);
        ::close(fd);
      }
    });
  }
  ~ScriptedServer() {
    ::shutdown(listener_, SHUT_RDWR);
    thread_.join();
    ::close(listener_);
  }
  ScriptedServer(const ScriptedServer&) = delete;
  ScriptedServer& operator=(const ScriptedServer&) = delete;
  [[nodiscard]] std::unique_ptr<HttpClient> client(int timeout_ms = 5000) const {
    return std::move(
        *HttpClient::create({.url = fmt::format("http://127.0.0.1:{}/prefix/", port_), .max_connections = 1, .timeout_ms = timeout_ms}));
  }
  std::atomic<int> accepted{0};

 private:
  std::function<void(int, int)> script_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

std::string read_request(int fd) {
  std::string out;
  char c = 0;
  while (!out.ends_with("\r\n\r\n") && ::recv(fd, &c, 1, 0) == 1) out.push_back(c);
  return out;
}
void send_text(int fd, std::string_view text) { [[maybe_unused]] const auto sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL); }

constexpr std::string_view kOk = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

TEST(ClientRetry, AGetOnAStaleConnectionIsRepeatedAPostIsNot) {
  // Every connection answers once, then takes the next request and closes without an answer.
  ScriptedServer server([](int fd, int) {
    read_request(fd);
    send_text(fd, kOk);
    read_request(fd);
  });
  const auto client = server.client();
  EXPECT_EQ(wait_for(*client, make_request("GET", "/")).body, "ok");
  EXPECT_EQ(wait_for(*client, make_request("GET", "/")).body, "ok");
  EXPECT_EQ(server.accepted, 2);
  const auto post = wait_for(*client, make_request("POST", "/"));
  EXPECT_EQ(post.status, 0);
  EXPECT_EQ(post.body, "EOF: the connection was closed without a response");
  EXPECT_EQ(wait_for(*client, make_request("GET", "/")).body, "ok");
}

TEST(ClientRetry, AFreshConnectionIsNotTriedForEver) {
  ScriptedServer server([](int fd, int) { read_request(fd); });
  EXPECT_EQ(wait_for(*server.client(), make_request("GET", "/")).status, 0);
  EXPECT_EQ(server.accepted, 1);
}

TEST(ClientRequest, HasThePrefixTheHostAndTheLength) {
  std::string request;
  ScriptedServer server([&](int fd, int) {
    request = read_request(fd);
    send_text(fd, kOk);
  });
  auto sent = make_request("POST", "/a b%c");
  sent.query = "x=1";
  sent.headers.add("X-Evil", "a\r\nInjected: yes");
  wait_for(*server.client(), sent);
  EXPECT_TRUE(request.starts_with("POST /prefix/a%20b%25c?x=1 HTTP/1.1\r\nHost: 127.0.0.1:"));
  EXPECT_NE(request.find("\r\nContent-Length: 0\r\n"), std::string::npos);
  EXPECT_EQ(request.find("\r\nInjected"), std::string::npos);
}

/// Whatever a caller copied from elsewhere: two lengths let the next server see a second request in the body.
TEST(ClientRequest, HasOneFramingWhateverFieldsItIsGiven) {
  std::string request;
  ScriptedServer server([&](int fd, int) {
    request = read_request(fd);
    send_text(fd, kOk);
  });
  for (const char* method : {"GET", "HEAD", "POST", "DELETE"})
    for (const std::string body : {"", "0\r\n\r\nPOST /run/x HTTP/1.1\r\n\r\n"}) {
      auto sent = make_request(method, "/", body);
      for (const auto& [name, value] : {std::pair{"transfer-encoding", "chunked"},
                                        {"Content-length", "3"},
                                        {"Connection", "x-a, upgrade"},
                                        {"Upgrade", "h2c"},
                                        {"TE", "trailers"},
                                        {"Trailer", "X-B"},
                                        {"Keep-Alive", "1"},
                                        {"Expect", "100-continue"}})
        sent.headers.add(name, value);
      sent.headers.add("X-Kept", "1");
      wait_for(*server.client(), sent);
      const bool has_length = !body.empty() || sent.method == "POST";
      EXPECT_EQ(request.substr(request.find("\r\nX-Kept")),
                has_length ? fmt::format("\r\nX-Kept: 1\r\nContent-Length: {}\r\n\r\n", body.size()) : "\r\nX-Kept: 1\r\n\r\n")
          << request;
      for (const char* dropped : {"chunked", "h2c", "x-a", "trailers", "X-B", "Keep-Alive", "100-continue", "ength: 3"})
        EXPECT_EQ(request.find(dropped), std::string::npos) << request;
    }
}

TEST(ClientResponse, MalformedAnswersAreFailures) {
  for (const std::string_view answer :
       {"nonsense\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n"}) {
    ScriptedServer server([&](int fd, int) {
      read_request(fd);
      send_text(fd, answer);
    });
    EXPECT_EQ(wait_for(*server.client(), make_request("GET", "/")).status, 0) << answer;
  }
}

TEST(ClientResponse, UntilCloseAndInterimAnswersAreRead) {
  ScriptedServer server([](int fd, int) {
    read_request(fd);
    send_text(fd, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\nto the end");
  });
  EXPECT_EQ(wait_for(*server.client(), make_request("GET", "/")).body, "to the end");
}

TEST(ClientTimeout, ASilentServerIsGivenUpAndTheNextRequestGoesElsewhere) {
  ScriptedServer server([](int fd, int index) {
    read_request(fd);
    if (index == 0)
      read_request(fd);
    else
      send_text(fd, kOk);
  });
  const auto client = server.client(200);
  const auto response = wait_for(*client, make_request("GET", "/"));
  EXPECT_EQ(response.status, 0);
  EXPECT_EQ(response.body, "timeout awaiting the response");
  EXPECT_EQ(wait_for(*client, make_request("GET", "/")).body, "ok");
}

TEST(ClientTimeout, QueuedRequestsTimeOutToo) {
  ScriptedServer server([](int fd, int) {
    read_request(fd);
    read_request(fd);
  });
  const auto client = server.client(200);
  Signal done;
  for (int i = 0; i < 5; ++i) {
    client->send(make_request("GET", "/"), [&](HttpResponse response) {
      EXPECT_EQ(response.status, 0);
      done.notify();
    });
  }
  EXPECT_TRUE(done.wait_for_count(5));
}

TEST(ClientConnect, ARefusedConnectionSaysSo) {
  std::uint16_t port = 0;
  {
    FunctionHandler handler([](HttpRequest, Writer) {});
    port = start_server(handler)->port();
  }
  const auto client = std::move(*HttpClient::create({.url = fmt::format("http://127.0.0.1:{}", port)}));
  const auto response = wait_for(*client, make_request("GET", "/"));
  EXPECT_EQ(response.body, fmt::format("cannot connect to 127.0.0.1:{}: Connection refused", port));
  const auto unknown = std::move(*HttpClient::create({.url = "http://no-such-host.invalid:1"}));
  EXPECT_NE(wait_for(*unknown, make_request("GET", "/")).body.find("cannot look up host no-such-host.invalid"), std::string::npos);
}

TEST(ClientEnd, DestructionFailsWhatIsUnderWay) {
  ScriptedServer server([](int fd, int) {
    read_request(fd);
    read_request(fd);
  });
  Signal done;
  {
    const auto client = server.client();
    for (int i = 0; i < 3; ++i) {
      client->send(make_request("GET", "/"), [&](HttpResponse response) {
        EXPECT_EQ(response.status, 0);
        done.notify();
      });
    }
  }
  EXPECT_EQ(done.count(), 3);
}

TEST(ClientEnd, MayHappenInACallback) {
  FunctionHandler handler([](HttpRequest, Writer writer) { writer->respond({}); });
  const auto server = start_server(handler);
  auto client = std::shared_ptr<HttpClient>(make_client(*server));
  Signal done;
  auto* raw = client.get();
  raw->send(make_request("GET", "/"), [client = std::move(client), &done](HttpResponse) mutable {
    client.reset();
    done.notify();
  });
  EXPECT_TRUE(done.wait_for_count(1));
}

}  // namespace
}  // namespace berth::net::test
