#include "tier/dir.h"

#include <cerrno>
#include <optional>

#include "base/folders.h"
#include "io/posix.h"
#include "tier/file_stream.h"
#include "tier/name.h"
#include "tier/spares.h"

namespace backstay::tier {

namespace {

bool failed_with(const Status& status, Code code) {
  return !status.ok() && status.error().code() == code;
}

// A folder, a loop of links, a socket or a pipe in place of a file is permanent: the bytes are
// lost, while an error of the disk may pass.
Error as_damage(const Error& error) {
  const int why = error.sys_errno();
  const bool no_file = why == EISDIR || why == ELOOP || why == ENXIO;
  return no_file ? Error(Code::corrupt, error.message(), why) : error;
}

bool is_commit(const io::Entry& entry) {
  return !entry.directory && entry.name.starts_with("commit.");
}

class DirTier final : public Tier {
 public:
  DirTier(io::FileSystem& fs, MakeRing make_ring, const DirOptions& options)
      : fs_(fs),
        root_(options.root),
        rings_(std::make_shared<RingShelf>(std::move(make_ring))),
        readers_(options.readers ? options.readers : std::make_shared<OpenReaders>()),
        folders_(options.folders ? options.folders : std::make_shared<SafeFolders>()),
        spares_(fs, root_ + "/" + options.spare_folder,
                Spares::Limits{options.recycle, options.spares_max, options.spare_bytes_min},
                readers_),
        writer_(options.writer),
        tell_direct_(options.tell_direct) {
    BACKSTAY_CHECK(writer_.empty() || !options.recycle);
  }

  void start() { spares_.forget_earlier(); }

  // Makes the first ring: pinning a large pool takes a second.
  Status prepare() override {
    auto ring = BorrowedRing::from(rings_);
    return ring.ok() ? Status() : Status(ring.error());
  }

  Result<std::unique_ptr<Writer>> create(const std::string& name, std::uint64_t bytes) override {
    BACKSTAY_TRY(check_name(name));
    BACKSTAY_ASSIGN(auto ring, BorrowedRing::from(rings_));
    const std::string named = path_of(name);
    const std::string path = writer_.empty() ? named : temporary(named);
    auto file = create_file(path, bytes);
    if (!file.ok() && file.error().code() == Code::no_space && spares_.drop()) {
      file = create_file(path, bytes);
    }
    if (!file.ok()) return file.error();
    if (tell_direct_) tell_direct_((*file)->direct());
    std::optional<Unnamed> unnamed;
    if (!writer_.empty()) unnamed.emplace(Unnamed{fs_, path, named});
    return std::unique_ptr<Writer>(
        std::make_unique<FileWriter>(std::move(file).value(), std::move(ring), std::move(unnamed)));
  }

  Result<std::unique_ptr<Reader>> open(const std::string& name) override {
    BACKSTAY_TRY(check_name(name));
    BACKSTAY_ASSIGN(auto ring, BorrowedRing::from(rings_));
    const std::string path = path_of(name);
    // Registered before the file is opened, so that the file is not made a spare from here on.
    readers_->opened(path);
    auto file = fs_.open(path, io::Open::read_direct);
    if (!file.ok()) {
      readers_->closed(path);
      return as_damage(file.error());
    }
    const auto closed = [readers = readers_, path] { readers->closed(path); };
    return std::unique_ptr<Reader>(
        std::make_unique<FileReader>(std::move(file).value(), std::move(ring), closed));
  }

  Status put(const std::string& name, Bytes content) override {
    BACKSTAY_TRY(check_name(name));
    const std::string path = path_of(name);
    BACKSTAY_TRY(make_safe(parent_of(path)));
    Status published = io::publish_file(fs_, path, content, temporary(path));
    if (failed_with(published,
                    Code::not_found)) {  // another process, or another tier, removed the folder
      folders_->forget(parent_of(path));
      BACKSTAY_TRY(make_safe(parent_of(path)));
      published = io::publish_file(fs_, path, content, temporary(path));
    }
    if (failed_with(published, Code::no_space) && spares_.drop()) {
      published = io::publish_file(fs_, path, content, temporary(path));
    }
    return published;
  }

  Result<Buffer> get(const std::string& name, std::uint64_t bytes_max) override {
    BACKSTAY_TRY(check_name(name));
    auto content = io::read_file(fs_, path_of(name), bytes_max);
    if (!content.ok()) return as_damage(content.error());
    return content;
  }

  Result<std::vector<std::string>> list(const std::string& prefix) override {
    BACKSTAY_TRY(check_prefix(prefix));
    std::vector<std::string> names;
    auto entries = fs_.list(path_of(prefix));
    if (!entries.ok()) {
      const bool nothing =
          entries.error().code() == Code::not_found || entries.error().sys_errno() == ENOTDIR;
      if (nothing) return names;
      return entries.error();
    }
    for (const io::Entry& entry : *entries) {
      if (!is_own_name(entry.name)) names.push_back(entry.name);
    }
    return names;
  }

  Status remove(const std::string& name) override {
    BACKSTAY_TRY(check_name(name));
    const std::string path = path_of(name);
    folders_->forget(path);
    std::vector<Spare> kept;
    Status removed = remove_path(path, spares_.outside(path) ? &kept : nullptr);
    folders_->forget(path);
    if (removed.ok()) removed = io::gone_is_fine(fs_.sync_directory(parent_of(path)));
    if (!removed.ok()) {
      spares_.discard(kept);
      return removed;
    }
    spares_.publish(kept);
    return {};
  }

  Status remove_if_empty(const std::string& prefix) override {
    BACKSTAY_TRY(check_name(prefix));
    const std::string path = path_of(prefix);
    const auto entries = fs_.list(path);
    if (!entries.ok() || !entries->empty()) return {};
    folders_->forget(path);
    const Status removed = io::gone_is_fine(fs_.remove(path));
    folders_->forget(path);
    const bool used_again = !removed.ok() && removed.error().sys_errno() == ENOTEMPTY;
    return used_again ? Status() : removed;
  }

  Status sync(const std::string& prefix) override {
    BACKSTAY_TRY(check_prefix(prefix));
    BACKSTAY_TRY(fs_.sync_directory(path_of(prefix)));
    return sync_above(path_of(prefix));
  }

 private:
  std::string path_of(const std::string& name) const {
    return name.empty() ? root_ : root_ + "/" + name;
  }

  std::string temporary(const std::string& path) const {
    return writer_.empty() ? path + ".tmp" : path + "." + writer_ + ".tmp";
  }

  // Makes the folder with all above it, and its name safe.
  Status make_safe(const std::string& folder) {
    if (folders_->is_safe(folder)) return {};
    BACKSTAY_TRY(make_folder(folder));
    return sync_above(folder);
  }

  // A folder that is missing gets a new name, which is not on the disk yet. Another process may
  // have removed the old one, so this looks at each folder.
  Status make_folder(const std::string& folder) {
    for (std::string path = folder; is_missing(path); path = parent_of(path)) {
      folders_->forget(path);
      if (path.size() <= root_.size()) folders_->made(path);
    }
    return fs_.make_directories(folder);
  }

  bool is_missing(const std::string& path) {
    if (path.empty()) return false;
    const auto facts = fs_.look(path);
    return !facts.ok() && facts.error().code() == Code::not_found;
  }

  // Syncs every folder above until one that is known to be safe.
  Status sync_above(const std::string& folder) {
    if (folders_->is_safe(folder)) return {};
    const std::string above = parent_of(folder);
    if (above == folder) return {};
    const std::uint64_t forgotten = folders_->forgotten();
    const Status synced = fs_.sync_directory(above);
    // Above our root are folders that we may not open; names there that we did not make are safe.
    const bool others = folder.size() <= root_.size() && !folders_->is_made(folder);
    if (!others || !failed_with(synced, Code::permission)) BACKSTAY_TRY(synced);
    BACKSTAY_TRY(sync_above(above));
    folders_->safe(folder, forgotten);
    return {};
  }

  // After an error there is no such file.
  Result<std::unique_ptr<io::File>> create_file(const std::string& path, std::uint64_t bytes) {
    auto file = open_new(path, bytes);
    if (!file.ok() && file.error().code() == Code::not_found) {  // as in put()
      folders_->forget(parent_of(path));
      file = open_new(path, bytes);
    }
    Status reserved = file.ok() ? (*file)->allocate(bytes) : Status(file.error());
    if (reserved.ok()) {
      spares_.created(path);
      return file;
    }
    (void)fs_.remove(path);  // the first error is reported
    return reserved.error();
  }

  Result<std::unique_ptr<io::File>> open_new(const std::string& path, std::uint64_t bytes) {
    BACKSTAY_TRY(make_folder(parent_of(path)));
    const bool recycled = spares_.use(path, bytes);
    return fs_.open(path, recycled ? io::Open::reuse_direct : io::Open::create_direct);
  }

  // `kept` is null if no file may become a spare.
  Status remove_path(const std::string& path, std::vector<Spare>* kept) {
    BACKSTAY_ASSIGN(const bool gone, io::remove_at_once(fs_, path));
    if (gone) {
      spares_.removed(path);
      return {};
    }
    auto entries = fs_.list(path);
    if (!entries.ok()) return io::gone_is_fine(entries.error());
    return remove_folder(path, *entries, kept);
  }

  Status remove_folder(const std::string& path, const std::vector<io::Entry>& entries,
                       std::vector<Spare>* kept) {
    BACKSTAY_TRY(remove_commits(path, entries));
    for (const io::Entry& entry : entries) {
      const std::string child = path + "/" + entry.name;
      if (is_commit(entry) || (!entry.directory && keep(child, kept))) continue;
      BACKSTAY_TRY(entry.directory ? remove_path(child, kept)
                                   : io::gone_is_fine(fs_.remove(child)));
    }
    return io::gone_is_fine(fs_.remove(path));
  }

  bool keep(const std::string& path, std::vector<Spare>* kept) {
    return kept != nullptr && spares_.keep(path, kept);
  }

  Status remove_commits(const std::string& path, const std::vector<io::Entry>& entries) {
    bool committed = false;
    for (const io::Entry& entry : entries) {
      if (!is_commit(entry)) continue;
      BACKSTAY_TRY(io::gone_is_fine(fs_.remove(path + "/" + entry.name)));
      committed = true;
    }
    return committed ? fs_.sync_directory(path) : Status();
  }

  io::FileSystem& fs_;
  const std::string root_;
  const std::shared_ptr<RingShelf> rings_;
  const std::shared_ptr<OpenReaders> readers_;
  const std::shared_ptr<SafeFolders> folders_;
  Spares spares_;
  const std::string writer_;
  const std::function<void(bool)> tell_direct_;
};

}  // namespace

Result<std::unique_ptr<Tier>> open_dir_tier(io::FileSystem& fs, MakeRing make_ring,
                                            DirOptions options) {
  while (options.root.size() > 1 && options.root.ends_with('/')) options.root.pop_back();
  if (options.root.empty()) return Error(Code::invalid, "the directory of a tier has no name");
  auto tier = std::make_unique<DirTier>(fs, std::move(make_ring), options);
  tier->start();
  return std::unique_ptr<Tier>(std::move(tier));
}

io::FileSystem& files_of(const Config::Writer& writer) {
  static const auto buffered = io::make_posix_filesystem({.direct = false});
  return writer.direct ? io::posix_filesystem() : *buffered;
}

Result<std::unique_ptr<Tier>> open_dir_tier(const Config::Writer& writer, DirOptions options) {
  const io::RingOptions ring{writer.depth, writer.io_uring, {}};
  return open_dir_tier(
      files_of(writer), [ring] { return io::make_ring(ring, nullptr); }, std::move(options));
}

}  // namespace backstay::tier
