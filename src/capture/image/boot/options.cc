#include "capture/image/boot/options.h"

#include <elf.h>

#include "capture/image/boot/pages.h"

namespace backstay::image {

uint64_t Start::auxiliary(uint64_t key) const {
  for (uint64_t i = 0; i < auxv_count; ++i) {
    if (auxv[2 * i] == key) return auxv[2 * i + 1];
  }
  return 0;
}

const char* Start::variable(const char* name) const {
  const size_t size = strlen(name);
  for (uint64_t i = 0; i < environment_count; ++i) {
    if (begins_with(environment[i], name) && environment[i][size] == '=') {
      return environment[i] + size + 1;
    }
  }
  return nullptr;
}

Start read_start(uint64_t* stack) {
  Start start;
  start.count = stack[0];
  start.arguments = reinterpret_cast<char**>(stack + 1);
  start.environment = start.arguments + start.count + 1;
  while (start.environment[start.environment_count] != nullptr) ++start.environment_count;
  start.auxv = reinterpret_cast<uint64_t*>(start.environment + start.environment_count + 1);
  while (start.auxv[2 * start.auxv_count] != AT_NULL) ++start.auxv_count;
  ++start.auxv_count;
  return start;
}

namespace {

// The options whose value is a text. Null: `name` is none of them.
const char** text_option(const char* name, Options& options) {
  struct Option {
    const char* name;
    const char** value;
  };
  const Option all[] = {{"--image", &options.image},
                        {"--restore", &options.restore},
                        {"--mpi", &options.mpi},
                        {"--launcher-mpi", &options.launcher_mpi},
                        {"--handed-in", &options.handed_in},
                        {"--channel", &options.channel},
                        {"--program", &options.program},
                        {"--contents", &options.contents}};
  for (const Option& one : all) {
    if (same_text(name, one.name)) return one.value;
  }
  return nullptr;
}

}  // namespace

void read_options(const Start& start, Options& options, Trouble& trouble) {
  uint64_t at = 1;
  const auto value = [&]() -> const char* {
    if (at + 1 >= start.count) return "";
    return start.arguments[++at];
  };
  for (; at < start.count && start.arguments[at][0] == '-'; ++at) {
    const char* name = start.arguments[at];
    if (same_text(name, "--")) {
      ++at;
      break;
    }
    if (const char** text = text_option(name, options)) {
      *text = value();
    } else if (same_text(name, "--control")) {
      const char* number = value();
      options.control = static_cast<long>(read_decimal(number));
    } else if (same_text(name, "--companion")) {
      const char* number = value();
      options.control = static_cast<long>(read_decimal(number));
      options.companion = true;
    } else if (same_text(name, "--bring-back")) {
      options.bring_back = true;
    } else if (same_text(name, "--mask")) {
      const char* number = value();
      options.mask = read_hex(number);
      options.masked = true;
    } else if (same_text(name, "--no-vdso")) {
      options.kernel_clock = true;
    } else if (same_text(name, "--no-scan")) {
      without_scan = true;
    } else {
      trouble << "unknown option " << name;
      return;
    }
  }
  options.first = at;
  if (options.restore == nullptr && !options.bring_back && at >= start.count) {
    trouble << "usage: backstay-boot [--image FILE] [--control FD] [--no-vdso] -- PROGRAM ...";
  }
}

}  // namespace backstay::image
