// Shell completion is made from the parser itself, so that it cannot lag behind.
#pragma once

#include <CLI/App.hpp>

namespace backstay::bin {

// The parser that completion describes; set by main before any action runs.
const CLI::App*& completion_root();

}  // namespace backstay::bin
