# Filled by the packaging work: headers, libraries, backstayConfig.cmake, pkg-config, man pages.
