// A span around each request of a client.
#pragma once
#include "client/transport.h"
#include "net/tracing/tracer.h"

namespace berth::client {

/// Requests made while a thread works for a span (tracing::Scope) are spans below it, and the server is told (traceparent). Others, and
/// streams, go through as they are.
std::shared_ptr<Transport> with_tracing(std::shared_ptr<Transport> inner, std::shared_ptr<net::tracing::Tracer> tracer);

}  // namespace berth::client
