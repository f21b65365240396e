target_link_libraries(berth_net PUBLIC OpenSSL::SSL OpenSSL::Crypto ZLIB::ZLIB)
