target_link_libraries(berth_security PUBLIC OpenSSL::SSL OpenSSL::Crypto)
