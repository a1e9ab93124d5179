// The version of the headers, the one place where it stands: CMake and pyproject.toml read it here.
#pragma once

#define OPENRNN_VERSION_MAJOR 0
#define OPENRNN_VERSION_MINOR 1
#define OPENRNN_VERSION_PATCH 0
#define OPENRNN_VERSION "0.1.0"

/// For `#if OPENRNN_VERSION_NUMBER >= 100`: 10000 major + 100 minor + patch.
#define OPENRNN_VERSION_NUMBER \
  (OPENRNN_VERSION_MAJOR * 10000 + OPENRNN_VERSION_MINOR * 100 + OPENRNN_VERSION_PATCH)
