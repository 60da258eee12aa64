#include "protect/combination.h"

#include <isa-l/erasure_code.h>

#include <algorithm>
#include <array>

#include "base/check.h"

namespace backstay::protect {
namespace {

// ISA-L takes lengths as int, and pointers to memory that it only reads without const.
constexpr std::size_t call_bytes_max = std::size_t{1} << 30;
constexpr std::size_t table_bytes = 32;  // of one coefficient

using Pointer = unsigned char*;
using Matrix = std::vector<unsigned char>;  // by rows

Pointer pointer(std::span<std::byte> bytes) { return reinterpret_cast<Pointer>(bytes.data()); }
Pointer pointer(Bytes bytes) {
  return reinterpret_cast<Pointer>(const_cast<std::byte*>(bytes.data()));
}

// Row i: how block i of a stripe follows from its k data blocks.
Matrix generator(ParityShape shape) {
  Matrix systematic(std::size_t{shape.members()} * shape.data);
  gf_gen_cauchy1_matrix(systematic.data(), static_cast<int>(shape.members()),
                        static_cast<int>(shape.data));
  // ISA-L has the data rows first; a stripe has the parity first.
  const auto parity = static_cast<std::ptrdiff_t>(std::size_t{shape.data} * shape.data);
  std::rotate(systematic.begin(), systematic.begin() + parity, systematic.end());
  return systematic;
}

Matrix rows_of(const Matrix& all, std::size_t columns, Combination::Indexes wanted) {
  Matrix rows;
  for (const std::uint32_t index : wanted) {
    const auto row = all.begin() + static_cast<std::ptrdiff_t>(index * columns);
    rows.insert(rows.end(), row, row + static_cast<std::ptrdiff_t>(columns));
  }
  return rows;
}

// a (rows x n) times b (n x n).
Matrix product(const Matrix& a, const Matrix& b, std::size_t n) {
  Matrix result(a.size(), 0);
  for (std::size_t at = 0; at < a.size(); ++at) {
    for (std::size_t i = 0; i < n; ++i) {
      result[at] ^= gf_mul(a[at / n * n + i], b[i * n + at % n]);
    }
  }
  return result;
}

}  // namespace

struct Combination::Tables {
  int sources = 0;
  int outputs = 0;
  std::vector<unsigned char> bytes;
};

Result<Combination> Combination::make(ParityShape shape, Indexes reads, Indexes makes) {
  const std::size_t k = shape.data;
  BACKSTAY_CHECK(reads.size() == k);
  BACKSTAY_CHECK(!makes.empty() && makes.size() <= parity_max);
  const Matrix all = generator(shape);
  Matrix read_rows = rows_of(all, k, reads);  // gf_invert_matrix changes its input
  Matrix inverse(k * k);
  BACKSTAY_CHECK(gf_invert_matrix(read_rows.data(), inverse.data(), static_cast<int>(k)) == 0);
  Matrix coefficients = product(rows_of(all, k, makes), inverse, k);

  auto tables = std::make_shared<Tables>();
  tables->sources = static_cast<int>(k);
  tables->outputs = static_cast<int>(makes.size());
  tables->bytes.resize(table_bytes * coefficients.size());
  ec_init_tables(tables->sources, tables->outputs, coefficients.data(), tables->bytes.data());
  return Combination(std::move(tables));
}

void Combination::apply(std::span<const Bytes> sources, Outputs outputs) const {
  BACKSTAY_CHECK(sources.size() == static_cast<std::size_t>(tables_->sources));
  BACKSTAY_CHECK(outputs.size() == static_cast<std::size_t>(tables_->outputs));
  const std::size_t length = outputs.front().size();
  if (std::ranges::any_of(sources, [&](Bytes source) { return source.size() < length; })) {
    for (const auto output : outputs) std::ranges::fill(output, std::byte{0});
    for (std::uint32_t i = 0; i < sources.size(); ++i) add(i, sources[i], outputs);
    return;
  }
  std::array<Pointer, shape_members_max> from{};
  std::array<Pointer, parity_max> to{};
  for (std::size_t at = 0; at < length; at += call_bytes_max) {
    for (std::size_t i = 0; i < sources.size(); ++i) from.at(i) = pointer(sources[i].subspan(at));
    for (std::size_t i = 0; i < outputs.size(); ++i) to.at(i) = pointer(outputs[i].subspan(at));
    ec_encode_data(static_cast<int>(std::min(call_bytes_max, length - at)), tables_->sources,
                   tables_->outputs, const_cast<Pointer>(tables_->bytes.data()), from.data(),
                   to.data());
  }
}

void Combination::add(std::uint32_t which, Bytes source, Outputs outputs) const {
  BACKSTAY_CHECK(which < static_cast<std::uint32_t>(tables_->sources));
  BACKSTAY_CHECK(outputs.size() == static_cast<std::size_t>(tables_->outputs));
  std::array<Pointer, parity_max> to{};
  for (std::size_t at = 0; at < source.size(); at += call_bytes_max) {
    for (std::size_t i = 0; i < outputs.size(); ++i) to.at(i) = pointer(outputs[i].subspan(at));
    ec_encode_data_update(static_cast<int>(std::min(call_bytes_max, source.size() - at)),
                          tables_->sources, tables_->outputs, static_cast<int>(which),
                          const_cast<Pointer>(tables_->bytes.data()), pointer(source.subspan(at)),
                          to.data());
  }
}

}  // namespace backstay::protect
