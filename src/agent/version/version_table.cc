#include "agent/version/version_table.h"

#include <algorithm>

#include "base/check.h"
#include "format/names.h"

namespace backstay::agent {

// --- pins ---------------------------------------------------------------------------------------

VersionPin::VersionPin(VersionTable& table, VersionNumber version, PinReason why)
    : table_(&table), version_(version), why_(why) {
  table.pin(version, why);
}

VersionPin& VersionPin::operator=(VersionPin&& other) noexcept {
  if (this == &other) return *this;
  release();
  table_ = std::exchange(other.table_, nullptr);
  version_ = other.version_;
  why_ = other.why_;
  return *this;
}

void VersionPin::release() {
  if (VersionTable* table = std::exchange(table_, nullptr)) table->unpin(version_, why_);
}

void VersionTable::pin(VersionNumber version, PinReason why) {
  BACKSTAY_CHECK(version != 0);
  ++pins_[version][static_cast<std::size_t>(why)];
}

void VersionTable::unpin(VersionNumber version, PinReason why) {
  const auto found = pins_.find(version);
  BACKSTAY_CHECK(found != pins_.end());
  unsigned& count = found->second[static_cast<std::size_t>(why)];
  BACKSTAY_CHECK(count > 0);
  --count;
  if (why == PinReason::not_home) orders_.retain = true;
  if (std::ranges::count(found->second, 0u) == pin_reasons) pins_.erase(found);
}

// --- rows ---------------------------------------------------------------------------------------

const VersionRow* VersionTable::find(VersionNumber version) const {
  const auto found = rows_.find(version);
  return found == rows_.end() ? nullptr : &found->second;
}

VersionRow* VersionTable::row_on_disk(VersionNumber version) {
  const auto found = rows_.find(version);
  return found == rows_.end() || !found->second.disk ? nullptr : &found->second;
}

// Null: it is not there.
std::optional<StoredVersion>* VersionTable::place(VersionNumber version, Where where) {
  const auto found = rows_.find(version);
  if (found == rows_.end()) return nullptr;
  auto& stored = where == Where::disk ? found->second.disk : found->second.shared;
  return stored ? &stored : nullptr;
}

void VersionTable::check(VersionNumber version) const {
  const VersionRow* row = find(version);
  if (row == nullptr) return;
  BACKSTAY_CHECK(row->disk || row->shared);
  BACKSTAY_CHECK(!row->shared || row->shared->version == version);
  BACKSTAY_CHECK(row->unrecorded || !row->retries);
  if (row->disk) {
    BACKSTAY_CHECK(row->disk->version == version);
    BACKSTAY_CHECK(row->announced <= row->disk->level);
    BACKSTAY_CHECK(!row->disk->in_doubt || row->disk->level == Level::none);
    BACKSTAY_CHECK(!copies_.contains(version));
  } else {
    BACKSTAY_CHECK(row->announced == Level::none);
    BACKSTAY_CHECK(!row->protected_here && !row->unrecorded);
    BACKSTAY_CHECK(!row->removing && row->recording == 0);
  }
}

void VersionTable::begin_run(RunId run, NodeId node, std::uint32_t nodes, bool protects) {
  run_ = run;
  forget_blockers();
  newest_announced_ = protects ? 0 : format::version_max;
  std::vector<VersionNumber> copies;
  for (auto& [number, row] : rows_) {
    row.protected_here = false;
    const bool unannounced = row.disk && row.disk->good() && row.announced == Level::none;
    if (unannounced) row.announced = Level::local;
    if (unannounced) changed(number);
    if (!row.is_of(run)) continue;
    const auto& parts = row.disk->parts;
    if (row.in_doubt() && std::ranges::find(parts, node) == parts.end()) copies.push_back(number);
    const bool lowered = nodes > 1 && row.disk->good() && row.announced == Level::protected_;
    if (lowered) row.announced = Level::local;
  }
  for (const VersionNumber number : copies) {
    copies_[number] = *rows_.at(number).disk;
    leave_disk(number);
  }
}

// --- this node's disk ---------------------------------------------------------------------------

void VersionTable::write_failed(VersionNumber version) {
  VersionRow* row = row_on_disk(version);
  if (row == nullptr || row->disk->level != Level::none || row->in_doubt()) return;
  if (forget_needs(version)) orders_.retain = true;
  leave_disk(version);
}

// All that was known of it there goes as well.
void VersionTable::leave_disk(VersionNumber version) {
  VersionRow left;
  left.shared = std::move(rows_.at(version).shared);
  if (left.shared) {
    rows_[version] = std::move(left);
  } else {
    rows_.erase(version);
  }
}

void VersionTable::prepared(const StoredVersion& stored, NodeId node) {
  BACKSTAY_CHECK(stored.level == Level::none && stored.damage.empty());
  VersionRow& row = rows_[stored.version];
  BACKSTAY_CHECK(row.announced == Level::none);
  written();
  row.disk = stored;
  row.disk->parts = {node};
  copies_.erase(stored.version);
  needs({stored.version, stored.record.run}, stored.record.needs);
  changed(stored.version);
  check(stored.version);
}

void VersionTable::recorded(const StoredVersion& stored) {
  BACKSTAY_CHECK(stored.level != Level::none);
  VersionRow* row = row_on_disk(stored.version);
  if (row == nullptr) return;  // removed meanwhile
  row->unrecorded.reset();
  row->retries = false;
  if (row->recording > 0) --row->recording;
  if (stored.level < row->disk->level) return;  // a record of a higher level is here already
  row->disk->level = stored.level;
  row->disk->record = stored.record;
  row->disk->in_doubt = false;
  row->disk->parts.clear();
  changed(stored.version);
  check(stored.version);
}

void VersionTable::record_failed(VersionNumber version, Level level, const Error& why) {
  VersionRow* row = row_on_disk(version);
  if (row == nullptr) return;
  row->unrecorded = Blocker{version, level, why.code(), why.message()};
  row->retries = true;
  if (row->recording > 0) --row->recording;
  check(version);
}

std::vector<std::pair<VersionNumber, Level>> VersionTable::take_retries() {
  std::vector<std::pair<VersionNumber, Level>> all;
  for (auto& [number, row] : rows_) {
    if (!row.retries || row.removing) continue;
    row.retries = false;
    all.emplace_back(number, row.unrecorded->level);
  }
  return all;
}

// --- all nodes of its run -----------------------------------------------------------------------

void VersionTable::replicated(VersionNumber version) {
  if (VersionRow* row = row_on_disk(version)) row->protected_here = true;
}

void VersionTable::announced(VersionOfRun version, Level level) {
  VersionRow* row = row_on_disk(version.first);
  if (row == nullptr || !row->is_of(version.second) || !row->awaits_announcement()) return;
  if (level >= Level::protected_) row->protected_here = false;
  if (level <= row->announced) return;
  Announcement now{*row->disk, row->announced};
  now.version.level = row->announced = level;
  if (level >= Level::protected_ && version.second == run_) {
    newest_announced_ = std::max(newest_announced_, version.first);
  }
  orders_.announced.push_back(std::move(now));
  orders_.retain = true;
  changed(version.first);
  check(version.first);
}

// --- shared storage -----------------------------------------------------------------------------

void VersionTable::forget_shared() {
  for (auto& [number, row] : rows_) row.shared.reset();
  std::erase_if(rows_, [](const auto& entry) { return !entry.second.disk; });
}

// --- either place -------------------------------------------------------------------------------

void VersionTable::found(const StoredVersion& stored, Where where) {
  VersionRow& row = rows_[stored.version];
  if (where == Where::shared) {
    row.shared = stored;
  } else {
    BACKSTAY_CHECK(stored.level != Level::none || !stored.damage.empty() || stored.in_doubt);
    row.disk = stored;
    row.announced = stored.level;
    copies_.erase(stored.version);
    for (const auto& needed : {stored.record.needs, stored.needs}) {
      needs({stored.version, stored.record.run}, needed);
    }
  }
  changed(stored.version);
  check(stored.version);
}

void VersionTable::quarantined(VersionNumber version, Where where, const std::string& why) {
  BACKSTAY_CHECK(!why.empty());
  auto* stored = place(version, where);
  if (stored == nullptr) return;
  (*stored)->damage = why;
  changed(version);
  check(version);
}

void VersionTable::doubted(VersionNumber version, Where where, bool on) {
  if (auto* stored = place(version, where)) (*stored)->doubtful = on;
}

void VersionTable::removed(VersionNumber version, Where where) {
  if (where == Where::disk) leaving_copies_.erase(version);
  if (where == Where::disk && copies_.erase(version) != 0) {
    BACKSTAY_CHECK(row_on_disk(version) == nullptr);
    if (forget_needs(version)) orders_.retain = true;
    orders_.gone.push_back(version);
    return;
  }
  auto* stored = place(version, where);
  if (stored == nullptr) return;
  if (where == Where::disk) {
    if (forget_needs(version)) orders_.retain = true;
    leave_disk(version);
    orders_.gone.push_back(version);
  } else {
    stored->reset();
    if (!rows_.at(version).disk) rows_.erase(version);
  }
  changed(version);
  check(version);
}

// --- the owner ----------------------------------------------------------------------------------

void VersionTable::ordered(VersionNumber version, StoreOrder what, bool on) {
  VersionRow* row = row_on_disk(version);
  if (what == StoreOrder::remove) {
    leaving_copies_.erase(version);
    if (on && copies_.contains(version)) leaving_copies_.insert(version);
  }
  if (row == nullptr) return;
  if (what == StoreOrder::remove) {
    row->removing = on;
  } else if (on) {
    ++row->recording;
  } else if (row->recording > 0) {
    --row->recording;
  }
}

bool is_leaving(const VersionTable& table, VersionNumber version) {
  const VersionRow* row = table.find(version);
  return table.leaving_copies().contains(version) || (row != nullptr && row->removing);
}

VersionOrders VersionTable::take_orders() {
  Changed blocked = take_changed();
  VersionOrders orders = std::exchange(orders_, {});
  orders.changed.merge(blocked.versions);
  orders.all_changed = blocked.all;
  return orders;
}

}  // namespace backstay::agent
