#include "store/home/copy_giver.h"

#include "base/aligned_memory.h"

namespace backstay::store {

namespace {

Buffer line_data(Bytes bytes) { return {bytes.begin(), bytes.end()}; }

std::string line_text(const Buffer& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

LineMessage CopyGiver::answer(const LineMessage& question) {
  try {
    auto answer = answered(question);
    return answer.ok() ? std::move(*answer) : line_error(answer.error());
  } catch (const nlohmann::json::exception& wrong) {  // a field of another type
    return line_error(Error(Code::protocol, wrong.what()));
  }
}

Result<LineMessage> CopyGiver::answered(const LineMessage& question) {
  const std::string what = question.head.value("do", "");
  LineMessage answer;
  if (what == "greet") {
    const auto dir = world_.look_at_folder(world_.dir);
    answer.head = {{"protocol", copy_line_protocol},
                   {"job", world_.job},
                   {"host", world_.host},
                   {"inode", dir.ok() ? dir->inode : 0},
                   {"born_ns", dir.ok() ? dir->born_ns : 0}};
    return answer;
  }
  if (what == "folder") {
    BACKSTAY_ASSIGN(const FolderFacts facts, world_.look_at_folder(line_text(question.data)));
    answer.head = {{"inode", facts.inode}, {"born_ns", facts.born_ns}};
    return answer;
  }
  if (what == "copied") {
    BACKSTAY_TRY(world_.copied(question.head.value("version", VersionNumber{0}),
                               question.head.value("run", RunId{0})));
    return answer;
  }
  return of_tier(what, question);
}

// Of this job's folder alone.
Result<LineMessage> CopyGiver::of_tier(const std::string& what, const LineMessage& question) {
  const std::string name = question.head.value("name", "");
  if (name != world_.job && !name.starts_with(world_.job + "/"))
    return Error(Code::invalid, "only the folder of " + world_.job + " is given away");
  LineMessage answer;
  if (what == "list") {
    BACKSTAY_ASSIGN(const auto names, world_.tier->list(name));
    std::string text;
    for (const std::string& one : names) text += one + "\n";
    answer.data = line_data(std::as_bytes(std::span(text)));
    return answer;
  }
  if (what == "get") {
    BACKSTAY_ASSIGN(answer.data, world_.tier->get(name, question.head.value("bytes", 0ULL)));
    return answer;
  }
  if (what == "look" || what == "read") {
    if (what == "look" || open_ != name) {  // it may be another file of that name by now
      reader_.reset();
      BACKSTAY_ASSIGN(reader_, world_.tier->open(name));
      open_ = name;
    }
    return what == "look" ? answer : read(name, question);
  }
  return Error(Code::protocol, "not a question of ours: " + what);
}

Result<LineMessage> CopyGiver::read(const std::string& name, const LineMessage& question) {
  const auto bytes = question.head.value("bytes", std::uint64_t{0});
  if (bytes > line_bytes_max) return Error(Code::too_large, "too much at once of " + name);
  const AlignedMemory memory(bytes);
  const auto room = memory.span().first(bytes);
  reader_->read(question.head.value("offset", std::uint64_t{0}), room, 0);
  for (const tier::Done& done : reader_->reap(/*wait=*/true)) BACKSTAY_TRY(done.status);
  return LineMessage{nlohmann::json::object(), line_data(room)};
}

}  // namespace backstay::store
