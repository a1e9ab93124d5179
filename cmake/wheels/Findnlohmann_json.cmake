# nlohmann-json of a wheel: its headers in OPENRNN_WHEEL_HEADERS.
set(nlohmann_json_FOUND TRUE)
if(NOT TARGET nlohmann_json::nlohmann_json)
  add_library(nlohmann_json::nlohmann_json INTERFACE IMPORTED)
  target_include_directories(nlohmann_json::nlohmann_json INTERFACE ${OPENRNN_WHEEL_HEADERS})
endif()
