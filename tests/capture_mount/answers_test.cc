// Once the kernel has the answer of a call, the program may close what it had open, and another
// thread of the daemon deletes it: a call that goes on with it then damages memory. Here each
// answer has that done before it returns.
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <functional>
#include <future>
#include <optional>
#include <string>

#include "capture/mount/file_system.h"
#include "conformance/temp_directory.h"

using backstay::mount::FileSystem;

// --- the kernel: libfuse's functions, in place of those of its library

// A request of libfuse.
struct fuse_req {
  FileSystem* fs = nullptr;
  fuse_ctx context{};
  std::function<void()> program;  // goes on when it has the answer
  int error = -1;
  std::size_t bytes = 0;
  fuse_file_info opened{};
  fuse_entry_param entry{};
};

namespace {

int answer(fuse_req_t request, int error) {
  request->error = error;
  if (request->program) request->program();
  return 0;
}

}  // namespace

extern "C" {

void* fuse_req_userdata(fuse_req_t request) { return request->fs; }
const fuse_ctx* fuse_req_ctx(fuse_req_t request) { return &request->context; }
void fuse_reply_none(fuse_req_t) {}
int fuse_reply_err(fuse_req_t request, int error) { return answer(request, error); }
int fuse_reply_open(fuse_req_t request, const fuse_file_info* info) {
  request->opened = *info;
  return answer(request, 0);
}
int fuse_reply_create(fuse_req_t request, const fuse_entry_param* entry,
                      const fuse_file_info* info) {
  request->entry = *entry;
  return fuse_reply_open(request, info);
}
int fuse_reply_buf(fuse_req_t request, const char*, std::size_t bytes) {
  request->bytes = bytes;
  return answer(request, 0);
}
int fuse_reply_write(fuse_req_t request, std::size_t bytes) {
  return fuse_reply_buf(request, nullptr, bytes);
}
int fuse_reply_attr(fuse_req_t request, const struct stat*, double) { return answer(request, 0); }

}  // extern "C"

namespace backstay::mount {
namespace {

class Answers : public ::testing::Test {
 protected:
  Answers() {
    add_open_calls(calls);
    add_file_calls(calls);
    add_attribute_calls(calls);
    add_folder_calls(calls);
    add_name_calls(calls);
    KeeperSettings settings;
    settings.memory_bytes_max = 1 << 20;
    keeper.emplace(*nodes, settings, [](const std::string&) {});
    fs.emplace(FileSystem{*nodes, *keeper, folder.path(), "", false});
  }

  fuse_req request() {
    fuse_req made;
    made.fs = &*fs;
    made.context.pid = ::getpid();
    return made;
  }

  // Another thread does it, and has done it when this returns.
  static void elsewhere(const std::function<void()>& act) {
    const auto done = std::async(std::launch::async, act);
    EXPECT_EQ(done.wait_for(std::chrono::seconds(60)), std::future_status::ready)
        << "the answer is given under a lock";
  }

  // The program closes the file, and the kernel forgets it.
  void close_and_forget(fuse_req& made) {
    elsewhere([&] {
      fuse_req end = request();
      calls.release(&end, made.entry.ino, &made.opened);
      fuse_req forgotten = request();
      calls.forget(&forgotten, made.entry.ino, 1);
    });
  }

  // Calls `call` on a new open file, which is gone before its answer returns.
  void expect_ends_with_its_answer(
      const std::function<void(fuse_req_t, fuse_ino_t, fuse_file_info*)>& call) {
    for (const int flags : {O_RDWR, O_RDWR | O_SYNC}) {  // in memory, and at its place
      fuse_req made = request();
      made.opened.flags = O_CREAT | O_EXCL | flags;
      calls.create(&made, FUSE_ROOT_ID, ("file" + std::to_string(++files)).c_str(), 0600,
                   &made.opened);
      ASSERT_EQ(made.error, 0);
      fuse_req called = request();
      called.program = [&] { close_and_forget(made); };
      call(&called, made.entry.ino, &made.opened);
      EXPECT_EQ(called.error, 0);
    }
  }

  testing::TempDirectory folder;
  std::optional<Nodes> nodes{std::in_place,
                             Fd(::open(folder.path().c_str(), O_PATH | O_DIRECTORY))};
  std::optional<Keeper> keeper;
  std::optional<FileSystem> fs;
  fuse_lowlevel_ops calls{};
  int files = 0;
};

TEST_F(Answers, OfAListing) {
  std::ofstream(folder.path() + "/file") << "text";
  for (const bool only_synced : {false, true}) {
    fuse_req opened = request();
    calls.opendir(&opened, FUSE_ROOT_ID, &opened.opened);
    ASSERT_EQ(opened.error, 0);
    fuse_req listed = request();
    listed.program = [&] {
      elsewhere([&] {
        fuse_req end = request();
        calls.releasedir(&end, FUSE_ROOT_ID, &opened.opened);
      });
    };
    if (only_synced) {
      calls.fsyncdir(&listed, FUSE_ROOT_ID, 0, &opened.opened);
    } else {
      calls.readdir(&listed, FUSE_ROOT_ID, 4096, 0, &opened.opened);
      EXPECT_GT(listed.bytes, 0U);
    }
    EXPECT_EQ(listed.error, 0);
  }
}

TEST_F(Answers, OfFsync) {
  expect_ends_with_its_answer([&](fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) {
    calls.fsync(request, ino, 0, info);
  });
}

TEST_F(Answers, OfFallocate) {
  expect_ends_with_its_answer([&](fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) {
    calls.fallocate(request, ino, 0, 0, 4096, info);
  });
}

TEST_F(Answers, OfAWrite) {
  expect_ends_with_its_answer([&](fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) {
    std::string text = "text";
    fuse_bufvec from = FUSE_BUFVEC_INIT(text.size());
    from.buf[0].mem = text.data();
    calls.write_buf(request, ino, &from, 0, info);
    EXPECT_EQ(request->bytes, text.size());
  });
}

TEST_F(Answers, OfATruncation) {
  expect_ends_with_its_answer([&](fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) {
    struct stat wanted = {};
    wanted.st_size = 100;
    calls.setattr(request, ino, &wanted, FUSE_SET_ATTR_SIZE, info);
  });
}

TEST_F(Answers, OfAFlush) {
  expect_ends_with_its_answer([&](fuse_req_t request, fuse_ino_t ino, fuse_file_info* info) {
    calls.flush(request, ino, info);
  });
}

}  // namespace
}  // namespace backstay::mount
