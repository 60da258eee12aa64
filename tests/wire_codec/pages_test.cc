// The table of fields in docs/protocol/agent.md is what the code sends: packets that are built from
// the page alone decode, and encode to the same bytes again; names, kinds and their order are
// those of src/wire/message.*.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <regex>
#include <sstream>

#include "wire/message.h"

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
std::vector<Described> messages_of_the_page() {
  std::vector<Described> messages;
  std::istringstream page(text_of("docs/protocol/agent.md"));
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
      {"NodeId", "u32"},
      {"std::uint32_t", "u32"},
      {"std::int32_t", "i32"},
      {"std::vector<std::uint32_t>", "list of u32"},
      {"std::vector<ChunkInPool>", "list of chunk"}};
  const auto found = kinds.find(type);
  return found == kinds.end() ? "a kind that this test does not know: " + type : found->second;
}

// Fields of a struct of message.h in the order of its table in message.cc.
Fields fields_in_code(const std::string& name) {
  static const std::string header = text_of("src/wire/message.h");
  static const std::string table = text_of("src/wire/message.cc");
  std::smatch body;
  EXPECT_TRUE(std::regex_search(header, body, std::regex("struct " + name + " \\{([^}]*)\\}")))
      << name;
  std::map<std::string, std::string> kinds;
  const std::string members = body[1];
  const std::regex member(R"(\n  (bool|[\w:]+(?:<[\w:]+>)?) (\w+)(?: = [^;]*)?;)");
  for (std::sregex_iterator at(members.begin(), members.end(), member), end; at != end; ++at) {
    kinds[(*at)[2]] = kind_of((*at)[1]);
  }
  Fields fields;
  std::smatch list;
  if (std::regex_search(table, list,
                        std::regex("fields_of<" + name + ">\\s*=\\s*std::tuple\\(([^)]*)\\)"))) {
    const std::string entries = list[1];
    const std::regex entry("&" + name + "::(\\w+)");
    for (std::sregex_iterator at(entries.begin(), entries.end(), entry), end; at != end; ++at) {
      fields.push_back({(*at)[1], kinds[(*at)[1]]});
    }
  }
  EXPECT_EQ(fields.size(), kinds.size()) << name << ": not every member is sent";
  return fields;
}

// The names of the messages in the order of their types, as the code spells them.
std::vector<std::string> messages_in_code() {
  const std::string header = text_of("src/wire/message.h");
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

// A body as the page describes it; every number is another one.
class BodyFromPage {
 public:
  void put(const Field& field) {
    if (field.kind == "text") {
      body_.put(static_cast<std::uint16_t>(field.name.size()));
      body_.put_bytes(std::as_bytes(std::span(field.name)));
    } else if (field.kind == "list of u32") {
      put_list({"u32", "u32"}, 2);
    } else if (field.kind == "list of chunk") {
      put_list({"u32", "u32", "u64", "u64", "u32", "u32", "u64", "u64"}, 2);
    } else {
      put_number(field.kind);
    }
  }
  Bytes view() const { return body_.view(); }

 private:
  void put_list(const std::vector<std::string>& kinds, std::uint32_t entries) {
    body_.put(entries);
    for (const std::string& kind : kinds) put_number(kind);
  }
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

TEST(ProtocolPage, NamesEveryFieldInItsOrder) {
  const auto page = messages_of_the_page();
  const auto code = messages_in_code();
  ASSERT_EQ(code.size(), std::variant_size_v<Message>);
  ASSERT_EQ(page.size(), code.size())
      << "docs/protocol/agent.md, table of fields: a message is missing";
  for (std::size_t i = 0; i < code.size(); ++i) {
    EXPECT_EQ(page[i].name, page_name(code[i]));
    EXPECT_EQ(page[i].fields, fields_in_code(code[i])) << code[i];
  }
}

TEST(ProtocolPage, PacketsBuiltFromThePageDecode) {
  const auto page = messages_of_the_page();
  for (std::size_t i = 0; i < page.size(); ++i) {
    BodyFromPage body;
    for (const Field& field : page[i].fields) body.put(field);
    ByteWriter packet;
    packet.put(static_cast<std::uint16_t>(i + 1));
    packet.put(std::uint16_t{1});
    packet.put(static_cast<std::uint32_t>(body.view().size()));
    packet.put_bytes(body.view());
    const Buffer bytes = packet.take();
    const auto message = decode(bytes);
    ASSERT_TRUE(message.ok()) << page[i].name << ": " << message.error().to_string();
    EXPECT_EQ(message->index(), i);
    const auto again = encode(*message);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(*again, bytes) << page[i].name;
  }
}

}  // namespace
}  // namespace backstay::wire
