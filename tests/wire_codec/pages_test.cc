// The tables of fields in docs/protocol are what the code sends: packets that are built from a page
// alone decode, and encode to the same bytes again; names, kinds and their order are those of
// src/wire.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "wire/message.h"
#include "wire/peer_message.h"
#include "wire/tree_message.h"

namespace backstay::wire {
namespace {

struct Field {
  std::string name;
  std::string kind;
  bool operator==(const Field&) const = default;
};
using Fields = std::vector<Field>;

std::ostream& operator<<(std::ostream& out, const Field& field) {
  return out << field.name << ' ' << field.kind;
}

struct Protocol {
  std::string page;
  std::string code;                // its header
  std::string shared_header = {};  // of types of two protocols
};
const std::string of_cuts = "src/wire/cut_message.h";
const Protocol agent = {"docs/protocol/agent.md", "src/wire/message.h", of_cuts};
const Protocol tree_of_agents = {"docs/protocol/tree.md", "src/wire/tree_message.h"};
const Protocol peers = {"docs/protocol/peers.md", "src/wire/peer_message.h", of_cuts};

std::string text_of(const std::string& file) {
  std::ifstream in(BACKSTAY_SOURCE_DIR "/" + file);
  EXPECT_TRUE(in.good()) << file;
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  std::istringstream parts(line.substr(line.find('|') + 1));
  for (std::string cell; std::getline(parts, cell, '|');) {
    const auto first = cell.find_first_not_of(' ');
    if (first == std::string::npos) {
      cells.emplace_back();
    } else {
      cells.push_back(cell.substr(first, cell.find_last_not_of(' ') + 1 - first));
    }
  }
  return cells;
}

struct Described {
  std::string name;
  Fields fields;
};

// The rows `| type | message | field | kind | what |`; without type and message: its next field.
std::vector<Described> messages_of_the_page(const Protocol& protocol) {
  std::vector<Described> messages;
  std::istringstream page(text_of(protocol.page));
  bool inside = false;
  for (std::string line; std::getline(page, line);) {
    if (line.rfind("| type | message |", 0) == 0) {
      inside = true;
    } else if (inside && line.rfind('|', 0) != 0) {
      break;
    } else if (inside && line.find("---") == std::string::npos) {
      const auto cells = cells_of(line);
      if (cells.size() < 5) {
        ADD_FAILURE() << "a row has five cells: " << line;
        continue;
      }
      if (!cells[1].empty()) {
        messages.push_back({cells[1], {}});
        EXPECT_EQ(cells[0], std::to_string(messages.size())) << line;
      }
      if (!cells[2].empty() && !messages.empty())
        messages.back().fields.push_back({cells[2], cells[3]});
    }
  }
  return messages;
}

// What the page calls a type of the code.
std::string kind_of(const std::string& type) {
  static const std::map<std::string, std::string> kinds = {
      {"std::string", "text"},
      {"bool", "bool"},
      {"Level", "level"},
      {"Code", "code"},
      {"VersionNumber", "u64"},
      {"RunId", "u64"},
      {"std::uint64_t", "u64"},
      {"Rank", "u32"},
      {"LinkId", "link"},
      {"std::vector<NodeId>", "list of u32"},
      {"std::vector<Range>", "list of range"},
      {"std::vector<Peer>", "list of peer"},
      {"std::vector<Row>", "list of row"},
      {"std::vector<Floor>", "list of floor"},
      {"std::vector<Fact>", "list of fact"},
      {"std::vector<Rank>", "list of u32"},
      {"std::vector<Holder>", "list of holder"},
      {"std::vector<Need>", "list of need"},
      {"NodeId", "u32"},
      {"std::uint32_t", "u32"},
      {"std::int32_t", "i32"},
      {"std::vector<std::uint32_t>", "list of u32"},
      {"std::vector<ChunkInPool>", "list of chunk"},
      {"std::vector<KeptChunk>", "list of kept_chunk"},
      {"std::vector<Neighbour>", "list of neighbour"},
      {"std::vector<Setting>", "list of setting"},
      {"std::vector<WriteSize>", "list of write_size"},
      {"std::vector<CallWait>", "list of call_wait"},
      {"std::vector<CutClock>", "list of cut_clock"},
      {"std::vector<CutNeed>", "list of cut_need"},
      {"std::vector<CutTarget>", "list of cut_target"}};
  const auto found = kinds.find(type);
  return found == kinds.end() ? "a kind that this test does not know: " + type : found->second;
}

// Members of a struct of the header, which are sent in their order.
Fields fields_in_code(const Protocol& protocol, const std::string& name) {
  std::string header = text_of(protocol.code);
  std::smatch body;
  const std::regex definition("struct " + name + R"( \{((?:\{\}|[^}])*)\})");
  if (!std::regex_search(header, body, definition) && !protocol.shared_header.empty()) {
    header = text_of(protocol.shared_header);
    std::regex_search(header, body, definition);
  }
  EXPECT_FALSE(body.empty()) << name;
  Fields fields;
  const std::string members = body[1];
  const std::regex member(R"(\n  (bool|[\w:]+(?:<[\w:]+>)?) (\w+)(?: = [^;]*)?;)");
  for (std::sregex_iterator at(members.begin(), members.end(), member), end; at != end; ++at) {
    fields.push_back({(*at)[2], kind_of((*at)[1])});
  }
  return fields;
}

// The names of the messages in the order of their types, as the code spells them.
std::vector<std::string> messages_in_code(const Protocol& protocol) {
  const std::string header = text_of(protocol.code);
  std::smatch list;
  EXPECT_TRUE(std::regex_search(header, list, std::regex("std::variant<([^>]*)>")));
  const std::string names = list[1];
  const std::regex word("\\w+");
  std::vector<std::string> found;
  for (std::sregex_iterator at(names.begin(), names.end(), word), end; at != end; ++at) {
    found.push_back(at->str());
  }
  return found;
}

// AwaitNewer: await_newer.
std::string page_name(const std::string& name) {
  if (name == "LevelIs") return "level";
  std::string words;
  for (const char c : name) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isupper(letter) && !words.empty()) words += '_';
    words += static_cast<char>(std::tolower(letter));
  }
  return words;
}

// What the pages say of composed kinds.
const std::map<std::string, std::vector<std::string>> composed = {
    {"chunk", {"u32", "u32", "u64", "u64"}},
    {"kept_chunk", {"u64", "u32"}},
    {"neighbour", {"u32", "text", "text"}},
    {"setting", {"text", "text"}},
    {"link", {"u32", "u64", "u64"}},
    {"range", {"u32", "u32"}},
    {"peer", {"u32", "text"}},
    {"key", {"u32", "u64", "u64"}},
    {"row", {"key", "u64", "u64", "list of range"}},
    {"floor", {"key", "u64"}},
    {"fact", {"u32", "u64", "u64", "text", "text"}},
    {"holder", {"u32", "u32"}},
    {"need", {"u64", "u64"}},
    {"write_size", {"u64", "u64", "u64", "u64"}},
    {"call_wait", {"text", "u64", "u64", "u64"}},
    {"cut_clock", {"u64", "u64", "u64"}},
    {"cut_need", {"u32", "u32", "u32", "u64"}},
    {"cut_target", {"u64", "u64"}}};

// A body as the page describes it; every number is another one.
class BodyFromPage {
 public:
  void put(const std::string& kind) {
    const auto parts = composed.find(kind);
    if (kind.rfind("list of ", 0) == 0) {
      body_.put(std::uint32_t{2});
      for (int entry = 0; entry < 2; ++entry) put(kind.substr(8));
    } else if (parts != composed.end()) {
      for (const std::string& part : parts->second) put(part);
    } else if (kind == "text") {
      const std::string text = "text " + std::to_string(++number_);
      body_.put(static_cast<std::uint16_t>(text.size()));
      body_.put_bytes(std::as_bytes(std::span(text)));
    } else {
      put_number(kind);
    }
  }
  Bytes view() const { return body_.view(); }

 private:
  void put_number(const std::string& kind) {
    ++number_;
    if (kind == "bool") return body_.put(std::uint8_t{1});
    if (kind == "level") return body_.put(static_cast<std::uint8_t>(Level::durable));
    if (kind == "code") return body_.put(static_cast<std::int32_t>(Code::corrupt));
    if (kind == "i32") return body_.put(-static_cast<std::int32_t>(number_));
    if (kind == "u32") return body_.put(static_cast<std::uint32_t>(number_ << 24));
    if (kind == "u64") return body_.put(number_ << 56);
    ADD_FAILURE() << "the page names a kind that is not in its table of kinds: " << kind;
  }

  ByteWriter body_;
  std::uint64_t number_ = 0;
};

void expect_the_names_of_the_code(const Protocol& protocol, std::size_t messages) {
  const auto page = messages_of_the_page(protocol);
  const auto code = messages_in_code(protocol);
  ASSERT_EQ(code.size(), messages);
  ASSERT_EQ(page.size(), code.size()) << protocol.page << ", table of fields: a message is missing";
  for (std::size_t i = 0; i < code.size(); ++i) {
    EXPECT_EQ(page[i].name, page_name(code[i]));
    EXPECT_EQ(page[i].fields, fields_in_code(protocol, code[i])) << code[i];
  }
}

template <typename Decode>
void expect_packets_of_the_page_to_decode(const Protocol& protocol, Decode decode_packet) {
  const auto page = messages_of_the_page(protocol);
  for (std::size_t i = 0; i < page.size(); ++i) {
    BodyFromPage body;
    for (const Field& field : page[i].fields) body.put(field.kind);
    ByteWriter packet;
    packet.put(static_cast<std::uint16_t>(i + 1));
    packet.put(std::uint16_t{1});
    packet.put(static_cast<std::uint32_t>(body.view().size()));
    packet.put_bytes(body.view());
    const Buffer bytes = packet.take();
    const auto message = decode_packet(bytes);
    ASSERT_TRUE(message.ok()) << page[i].name << ": " << message.error().to_string();
    EXPECT_EQ(message->index(), i);
    const auto again = encode(*message);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(*again, bytes) << page[i].name;
  }
}

TEST(ProtocolPage, NamesEveryFieldInItsOrder) {
  expect_the_names_of_the_code(agent, std::variant_size_v<VariantOf<Message>>);
  expect_the_names_of_the_code(tree_of_agents, std::variant_size_v<VariantOf<tree::Message>>);
  expect_the_names_of_the_code(peers, std::variant_size_v<VariantOf<peer::Message>>);
}

TEST(ProtocolPage, PacketsBuiltFromThePageDecode) {
  expect_packets_of_the_page_to_decode(agent, [](Bytes packet) { return decode(packet); });
  expect_packets_of_the_page_to_decode(tree_of_agents,
                                       [](Bytes packet) { return tree::decode(packet); });
  expect_packets_of_the_page_to_decode(peers, [](Bytes packet) { return peer::decode(packet); });
}

}  // namespace
}  // namespace backstay::wire
