target_link_libraries(berth_net PUBLIC OpenSSL::SSL OpenSSL::Crypto ZLIB::ZLIB)
find_package(PkgConfig REQUIRED)
pkg_check_modules(NGHTTP2 REQUIRED IMPORTED_TARGET libnghttp2)
target_link_libraries(berth_net PRIVATE PkgConfig::NGHTTP2)
# Unary gRPC calls (net/grpc.h). Without the library everything else is built, and what wants to call says what is missing.
find_package(Protobuf QUIET)
pkg_check_modules(GRPCPP QUIET IMPORTED_TARGET grpc++ gpr absl_synchronization)
if(Protobuf_FOUND AND GRPCPP_FOUND)
  target_link_libraries(berth_net PRIVATE PkgConfig::GRPCPP protobuf::libprotobuf)
  target_compile_definitions(berth_net PRIVATE BERTH_WITH_GRPC=1)
  # gRPC's headers do not hold to our warnings, and gain nothing from optimisation here.
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/net/grpc.cpp PROPERTIES COMPILE_OPTIONS "-O1;-Wno-error")
endif()
