// What a group's parity costs one core (docs/benchmarks.md): encoding and rebuilding, in
// slices, against ISA-L alone on the same buffers.
#include <isa-l/erasure_code.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <vector>

#include "bench/harness/content.h"
#include "bench/harness/program.h"
#include "bench/harness/samples.h"
#include "bench/harness/shared.h"
#include "protect/combination.h"
#include "protect/stripes.h"

namespace backstay::bench {
namespace {

using protect::Block;
using protect::Combination;
using protect::Stripes;

struct Options : CommonOptions {
  Options() : CommonOptions{"build/bench/parity", 15} {}
  std::size_t block_mib = 16;
  std::size_t slice_kib = 1024;
};

// Blocks of one stripe that are made out of others.
struct StripeWork {
  std::vector<Block> reads;  // k
  std::vector<Block> makes;
};

// All segments and parity files of a group in memory that no cache holds.
class Group {
 public:
  Group(ParityShape shape, const Options& options)
      : block_bytes_(options.block_mib << 20),
        slice_bytes_(options.slice_kib << 10),
        stripes_(shape, std::vector<std::uint64_t>(shape.members(), shape.data * block_bytes_)) {
    for (std::uint32_t i = 0; i < shape.members(); ++i) {
      segments_.push_back(map_touched_huge(shape.data * block_bytes_));
      parities_.push_back(map_touched_huge(shape.parity * block_bytes_));
      fill_content({segments_.back(), shape.data * block_bytes_}, i);
    }
  }

  const Stripes& stripes() const { return stripes_; }
  std::uint64_t data_bytes() const {
    return std::uint64_t{stripes_.count()} * stripes_.shape().data * block_bytes_;
  }

  std::byte* at(const Block& block) const {
    const auto& files = stripes_.is_parity(block.index) ? parities_ : segments_;
    return files.at(block.member) + block.offset;
  }

  // Every plan slice by slice: all sources at once, or each as it would arrive.
  void carry_out(const std::vector<StripeWork>& plan, bool one_by_one) const {
    for (const StripeWork& work : plan) {
      const Combination combination =
          Combination::make(stripes_.shape(), indexes(work.reads), indexes(work.makes)).value();
      for (std::size_t from = 0; from < block_bytes_; from += slice_bytes_) {
        combine(combination, work, from, std::min(slice_bytes_, block_bytes_ - from), one_by_one);
      }
    }
  }

  // The same stripes with nothing around: one call each, tables made before.
  void encode_by_isal(std::vector<unsigned char>& tables) const {
    const ParityShape shape = stripes_.shape();
    for (std::uint32_t stripe = 0; stripe < stripes_.count(); ++stripe) {
      std::vector<unsigned char*> data;
      std::vector<unsigned char*> parity;
      for (std::uint32_t index = 0; index < stripes_.count(); ++index) {
        auto* bytes = reinterpret_cast<unsigned char*>(at(stripes_.block(stripe, index)));
        (stripes_.is_parity(index) ? parity : data).push_back(bytes);
      }
      ec_encode_data(static_cast<int>(block_bytes_), static_cast<int>(shape.data),
                     static_cast<int>(shape.parity), tables.data(), data.data(), parity.data());
    }
  }

  // So that nothing that is left from before can be taken for a result.
  void spoil_parity() const {
    for (std::byte* parity : parities_) std::memset(parity, 0xee, stripes_.parity_bytes());
  }
  std::vector<std::byte> parity_copy() const {
    std::vector<std::byte> all;
    for (std::byte* parity : parities_) {
      all.insert(all.end(), parity, parity + stripes_.parity_bytes());
    }
    return all;
  }
  void spoil_segment(std::uint32_t member) const {
    std::memset(segments_[member], 0xee, stripes_.segment_bytes(member));
  }
  bool segment_is_whole(std::uint32_t member) const {
    return has_content({segments_[member], stripes_.segment_bytes(member)}, member);
  }

 private:
  static std::vector<std::uint32_t> indexes(const std::vector<Block>& blocks) {
    std::vector<std::uint32_t> all;
    for (const Block& block : blocks) all.push_back(block.index);
    return all;
  }

  void combine(const Combination& combination, const StripeWork& work, std::size_t from,
               std::size_t bytes, bool one_by_one) const {
    std::vector<Bytes> sources;
    std::vector<std::span<std::byte>> outputs;
    for (const Block& block : work.reads) sources.emplace_back(at(block) + from, bytes);
    for (const Block& block : work.makes) outputs.emplace_back(at(block) + from, bytes);
    if (!one_by_one) return combination.apply(sources, outputs);
    for (const auto output : outputs) std::memset(output.data(), 0, output.size());
    for (std::uint32_t i = 0; i < sources.size(); ++i) combination.add(i, sources[i], outputs);
  }

  std::size_t block_bytes_;
  std::size_t slice_bytes_;
  Stripes stripes_;
  std::vector<std::byte*> segments_;  // live as long as the program
  std::vector<std::byte*> parities_;
};

std::vector<unsigned char> isal_tables(ParityShape shape) {
  std::vector<unsigned char> matrix(std::size_t{shape.members()} * shape.data);
  gf_gen_cauchy1_matrix(matrix.data(), static_cast<int>(shape.members()),
                        static_cast<int>(shape.data));
  std::vector<unsigned char> tables(std::size_t{32} * shape.data * shape.parity);
  ec_init_tables(static_cast<int>(shape.data), static_cast<int>(shape.parity),
                 matrix.data() + std::size_t{shape.data} * shape.data, tables.data());
  return tables;
}

template <typename Work>
double seconds_of(Work work) {
  const std::int64_t start = now_ns();
  work();
  return static_cast<double>(now_ns() - start) / 1e9;
}

std::string name_of(ParityShape shape) {
  return std::to_string(shape.data) + "_" + std::to_string(shape.parity);
}

std::vector<StripeWork> plan_encode(const Stripes& stripes) {
  std::vector<StripeWork> plan(stripes.count());
  for (std::uint32_t stripe = 0; stripe < stripes.count(); ++stripe) {
    for (std::uint32_t index = 0; index < stripes.count(); ++index) {
      auto& blocks = stripes.is_parity(index) ? plan[stripe].makes : plan[stripe].reads;
      blocks.push_back(stripes.block(stripe, index));
    }
  }
  return plan;
}

void measure_encode(const Group& group, Samples& samples) {
  const ParityShape shape = group.stripes().shape();
  const std::string name = name_of(shape);
  const auto plan = plan_encode(group.stripes());
  std::vector<unsigned char> tables = isal_tables(shape);
  group.spoil_parity();
  samples.add("isal_" + name + "_s", seconds_of([&] { group.encode_by_isal(tables); }));
  const auto expected = group.parity_copy();
  for (const bool one_by_one : {false, true}) {
    group.spoil_parity();
    samples.add((one_by_one ? "encode_in_turn_" : "encode_") + name + "_s",
                seconds_of([&] { group.carry_out(plan, one_by_one); }));
    if (group.parity_copy() != expected) die("parity differs from ISA-L's");
  }
}

// The segments of the first m members, out of the first k blocks of each stripe that others have.
std::vector<StripeWork> plan_rebuild(const Stripes& stripes) {
  const ParityShape shape = stripes.shape();
  std::vector<StripeWork> plan;
  for (std::uint32_t stripe = 0; stripe < stripes.count(); ++stripe) {
    StripeWork work;
    for (std::uint32_t index = 0; index < stripes.count(); ++index) {
      const Block block = stripes.block(stripe, index);
      if (block.member >= shape.parity && work.reads.size() < shape.data) {
        work.reads.push_back(block);
      } else if (block.member < shape.parity && !stripes.is_parity(index)) {
        work.makes.push_back(block);
      }
    }
    if (!work.makes.empty()) plan.push_back(std::move(work));
  }
  return plan;
}

void measure_rebuild(const Group& group, Samples& samples) {
  const ParityShape shape = group.stripes().shape();
  for (std::uint32_t lost = 0; lost < shape.parity; ++lost) group.spoil_segment(lost);
  const auto plan = plan_rebuild(group.stripes());
  samples.add("rebuild_" + name_of(shape) + "_s",
              seconds_of([&] { group.carry_out(plan, false); }));
  for (std::uint32_t lost = 0; lost < shape.parity; ++lost) {
    if (!group.segment_is_whole(lost)) die("a rebuilt segment is not what it was");
  }
}

nlohmann::json run(const Options& options) {
  constexpr std::array<ParityShape, 3> shapes{{{3, 1}, {2, 2}, {8, 2}}};
  Samples samples;
  std::vector<Ratio> ratios;
  nlohmann::json json;
  for (const ParityShape shape : shapes) {
    const Group group(shape, options);
    const std::string name = name_of(shape);
    for (int i = 0; i < options.repetitions; ++i) {
      measure_encode(group, samples);
      measure_rebuild(group, samples);
    }
    json["data_bytes"][name] = group.data_bytes();
    ratios.push_back(
        {"encode_" + name + "_over_isal", "encode_" + name + "_s", "isal_" + name + "_s", 1.25});
  }
  samples.write_to(json);
  json["benchmark"] = "parity";
  json["block_mib"] = options.block_mib;
  json["slice_kib"] = options.slice_kib;
  json["ratios"] = compare(samples, ratios);
  return json;
}

void print_table(const nlohmann::json& json) {
  std::printf(
      "GB/s of data, one core          encode   in turn     ISA-L   rebuild   encode/ISA-L\n");
  for (const auto& [name, bytes] : json["data_bytes"].items()) {
    const auto rate = [&json, shape = name, data = bytes.get<double>()](std::string key) {
      return data / 1e9 / json[key.append("_").append(shape).append("_s")].get<double>();
    };
    // A rebuild makes m of the k + m segments.
    const double k = std::stod(name);
    const double m = std::stod(name.substr(name.find('_') + 1));
    std::printf("(%g, %g)%*s %9.2f %9.2f %9.2f %9.2f %14.2f\n", k, m,
                static_cast<int>(25 - name.size()), "", rate("encode"), rate("encode_in_turn"),
                rate("isal"), rate("rebuild") * m / (k + m), rate("encode") / rate("isal"));
  }
}

int run_with(int argc, char** argv) {
  Options options;
  const Program program{[&](CLI::App& app) {
                          app.add_option("--block-mib", options.block_mib, "size of a block")
                              ->check(CLI::Range(1, 1024));
                          app.add_option("--slice-kib", options.slice_kib,
                                         "what is combined at a time")
                              ->check(CLI::Range(1, 1 << 20));
                        },
                        [&] { return run(options); }, print_table};
  return run_program("Parity of a group of nodes against ISA-L alone", options, argc, argv,
                     program);
}

}  // namespace
}  // namespace backstay::bench

int main(int argc, char** argv) { return backstay::bench::run_with(argc, argv); }
