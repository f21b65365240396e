target_link_libraries(berth_store PRIVATE SQLite::SQLite3)
# etcd is spoken to by gRPC, with code that protoc makes of the part of its interface that is used. Without them berth is built without etcd.
find_package(Protobuf QUIET)
find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(GRPCPP QUIET IMPORTED_TARGET grpc++ gpr absl_synchronization)
endif()
find_program(BERTH_GRPC_PLUGIN grpc_cpp_plugin)
if(Protobuf_FOUND AND GRPCPP_FOUND AND Protobuf_PROTOC_EXECUTABLE AND BERTH_GRPC_PLUGIN)
  set(etcd_rpc ${CMAKE_BINARY_DIR}/generated/etcd)
  file(MAKE_DIRECTORY ${etcd_rpc})
  add_custom_command(
    OUTPUT ${etcd_rpc}/rpc.pb.cc ${etcd_rpc}/rpc.pb.h ${etcd_rpc}/rpc.grpc.pb.cc ${etcd_rpc}/rpc.grpc.pb.h
    COMMAND ${Protobuf_PROTOC_EXECUTABLE} --proto_path=${CMAKE_SOURCE_DIR}/src/store/etcd --cpp_out=${etcd_rpc} --grpc_out=${etcd_rpc}
            --plugin=protoc-gen-grpc=${BERTH_GRPC_PLUGIN} rpc.proto
    DEPENDS ${CMAKE_SOURCE_DIR}/src/store/etcd/rpc.proto VERBATIM)
  add_library(berth_etcd_rpc OBJECT ${etcd_rpc}/rpc.pb.cc ${etcd_rpc}/rpc.grpc.pb.cc)
  target_compile_options(berth_etcd_rpc PRIVATE -O1 -w)
  target_link_libraries(berth_etcd_rpc PUBLIC PkgConfig::GRPCPP protobuf::libprotobuf)
  target_sources(berth_store PRIVATE $<TARGET_OBJECTS:berth_etcd_rpc>)
  add_dependencies(berth_store berth_etcd_rpc)
  target_include_directories(berth_store PRIVATE ${etcd_rpc})
  target_link_libraries(berth_store PRIVATE PkgConfig::GRPCPP protobuf::libprotobuf OpenSSL::SSL OpenSSL::Crypto)
  target_compile_definitions(berth_store PRIVATE BERTH_WITH_ETCD=1)
  set_source_files_properties(${CMAKE_BINARY_DIR}/unity/store_etcd_0.cpp PROPERTIES COMPILE_OPTIONS "-Wno-error;-Wno-unused-parameter")
else()
  message(STATUS "libgrpc++-dev, protobuf-compiler or protobuf-compiler-grpc is missing: building without etcd (--etcd-servers)")
endif()
