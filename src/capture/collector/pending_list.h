// The pending page (capture/files/collect.h), which every captured process of the job maps: which
// files are not at their places. The file of the page is also the collector's lock.
//
// One thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "base/fd.h"
#include "base/result.h"
#include "capture/files/collect.h"

namespace backstay::files {

class PendingList {
 public:
  // The page beside `socket`. What a collector before this one has listed is still there. Errors:
  // busy (a collector lives), io, permission, no_space.
  static Result<std::unique_ptr<PendingList>> open(const std::string& socket);
  ~PendingList();
  PendingList(const PendingList&) = delete;
  PendingList& operator=(const PendingList&) = delete;

  std::uint32_t count() const { return page_->count.load(); }
  // From now on processes that look at this file ask first. False: the page is full.
  bool list(std::uint64_t device, std::uint64_t inode);
  // Who only reads it need not ask any more.
  void set_whole(std::uint64_t device, std::uint64_t inode);
  void unlist(std::uint64_t device, std::uint64_t inode);
  void clear();
  // Nothing is pending and nothing will be: the page goes. Precondition: no process can ask any
  // more.
  void end();

 private:
  PendingList(std::string path, Fd file, PendingPage* page)
      : path_(std::move(path)), file_(std::move(file)), page_(page) {}

  const std::string path_;
  const Fd file_;
  PendingPage* const page_;
};

}  // namespace backstay::files
