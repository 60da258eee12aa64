// Writes the first seeds of the binary parsers: make_seeds tests/fuzz/corpus
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "support/samples.h"

namespace {

using namespace backstay;

std::filesystem::path corpus;

void write(const std::string& parser, const std::string& name, const Buffer& bytes) {
  std::filesystem::create_directories(corpus / parser);
  std::ofstream file(corpus / parser / name, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

Buffer tail_of(std::vector<format::Region> regions) {
  const auto table_offset = format::lay_out(regions);
  return format::encode_tail(regions, table_offset);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  corpus = argv[1];
  write("manifest", "example", encode(test::example_manifest()));
  write("object", "example", tail_of(test::example_regions()));
  write("commit", "example", encode(test::example_commit()));
  Buffer segment = encode(test::example_segment());
  write("segment", "whole", segment);
  segment.resize(160);
  write("segment", "fields", segment);
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    test::Random random(seed);
    const std::string name = "random-" + std::to_string(seed);
    write("manifest", name, encode(test::random_manifest(random)));
    write("object", name, tail_of(test::random_regions(random)));
  }
  for (const wire::Message& message : test::one_of_each_message()) {
    write("message", "type-" + std::to_string(message.index() + 1), *wire::encode(message));
  }
  return 0;
}
