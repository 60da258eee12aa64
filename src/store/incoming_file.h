// A file that is on its way onto this node's disk piece by piece, from other nodes: a copy
// (incoming_replica.h) or parity (incoming_parity.h). It exists from seal() on.
//
// One thread at a time. Blocks on the tier when it opens and seals.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "format/commit.h"
#include "store/file_writer.h"
#include "store/held_file.h"
#include "tier/tier.h"

namespace backstay::store {

class IncomingFile {
 public:
  using Done = std::function<void(Status)>;
  virtual ~IncomingFile();  // waits for what is in flight
  IncomingFile(const IncomingFile&) = delete;
  IncomingFile& operator=(const IncomingFile&) = delete;

  // Checks and writes a piece, which stays valid until `done`: in the call (corrupt: nothing was
  // written) or in reap().
  virtual void write(std::uint64_t offset, Bytes piece, Done done) = 0;
  unsigned in_flight() const { return file_.in_flight(); }
  // True if something has completed. Blocks for at least one request if `wait` and something is in
  // flight.
  bool reap(bool wait);

  // The file exists afterwards, safe from a crash. `record`: of the version, put where the folder
  // has none. Errors: again (the folder was removed meanwhile), no_space, io.
  virtual Status seal(const std::optional<format::CommitRecord>& record) = 0;
  // Takes away what was written, and no more: where nothing was created there is nothing.
  Status remove_rest();
  // What there is after seal(), but for the record.
  virtual HeldFile held() const = 0;

 protected:
  // The tier must live longer.
  IncomingFile(tier::Tier& tier, const std::string& job, const FileOf& file, std::string purpose)
      : tier_(tier), names_(names_of(job, file)), file_(tier, job, file, std::move(purpose)) {}

  // Room for `bytes`. What is there of it is nothing from here on, whatever happens.
  Status create(std::uint64_t bytes);
  bool is_created() const { return file_.is_open(); }  // and not sealed
  void put_piece(std::uint64_t offset, Bytes piece, Done done);
  // Once all pieces are handed over: content, size and name of the data are safe.
  Status seal_data(std::uint64_t bytes);
  Status publish(Bytes manifest) { return file_.publish(manifest); }

  tier::Tier& tier_;
  const FileNames names_;

 private:
  std::map<std::uint64_t, Done> writing_;  // by tag
  FileWriter file_;                        // ends before what `done` keeps
  std::uint64_t next_tag_ = 0;
  bool wrote_ = false;
};

}  // namespace backstay::store
