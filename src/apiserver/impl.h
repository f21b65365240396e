// The API server's parts, in the order in which one stands on the other. Only server.cpp sees them all.
//
//   RequestPipeline ─> Router ─┬─> WritePipeline ─> CustomResources
//                              ├─> Reads ─> Streams
//                              ├─> NodeProxy, Aggregator ─> Relays
//                              └─> OwnPages
//   all of them answer by Responder, which asks Versions; all stand on Ground. Upkeep works between requests.
#pragma once
#include "apiserver/pipeline.h"
#include "apiserver/server.h"
#include "apiserver/upkeep/upkeep.h"

namespace berth::apiserver {

struct ApiServer::Impl {
  explicit Impl(ServerOptions given);
  ~Impl();
  Result<void> start();

  ServerOptions options;
  Ground ground;
  std::unique_ptr<flow::Controller> flow_control;  ///< Null when single-threaded. Requests, which others hold, give it their seats back.
  Versions versions;
  Responder respond;
  Streams streams;
  Reads reads;
  Relays relays;
  NodeProxy nodes;
  std::unique_ptr<CustomResources> custom;
  WritePipeline writes;
  std::unique_ptr<aggregation::Aggregator> aggregator;
  OwnPages pages;
  Router router;
  RequestPipeline requests;
  Upkeep upkeep;
};

}  // namespace berth::apiserver
