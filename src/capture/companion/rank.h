// One rank of a job whose program is not modified: the program is started or brought back, saved
// when all ranks have agreed on it, and ends as it would without us.
//
// Signals. SIGUSR1: a checkpoint. The first SIGTERM: a checkpoint, then the end; where that cannot
// be, and the second one: SIGTERM to the program. SIGINT, SIGHUP and SIGQUIT go to the program.
//
// A rank whose program has ended with exit code 0 takes part until all have. Any other end is the
// job's: the rank leaves at once, the launcher does what it does then, and the others go on without
// being saved, as they do where `backstay run` is lost.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "capture/companion/boot_process.h"
#include "capture/companion/company.h"
#include "capture/companion/cut_channel.h"
#include "capture/companion/full_every.h"
#include "capture/companion/image_source.h"
#include "capture/companion/moments.h"
#include "capture/companion/mpi_in_program.h"
#include "capture/companion/options.h"
#include "capture/companion/snapshot_choice.h"
#include "client/object_session.h"

namespace backstay::image {

class Rank {
 public:
  explicit Rank(Options options);
  // An exit code.
  int run();

 private:
  Status start_session();
  Status bring_back();
  Error none_fits(const Error& why, bool refused);
  Status begin();
  Status start_program();
  int give_up(const Error& why);
  int serve();
  LifeOptions new_life();
  int serve_alone();
  int wait_for_program();
  void wait_a_moment();
  void take_signals();
  std::optional<int> failure();
  void look_whether_due(const Orders& orders);
  void save();
  Result<std::unique_ptr<client::ObjectSource>> take_image(client::Connection& agent,
                                                           const client::Origin& origin);
  Result<std::unique_ptr<ImageSource>> cut(client::Connection& agent, const client::Origin& origin);
  int attend();
  void learn(const Status& saved);
  void tell_no_snapshot();
  void tell_not_in_image();
  void learn_contents();
  void tell_unfitting();
  void tell_why_not(const Error& why);
  void stop();
  void let_go_on();
  bool tries_a_whole_one();
  int end();
  double look_every_s() const;
  std::string told(const Error& why) const;
  std::string notes_of_image(const client::Origin& origin) const;

  const Options options_;
  std::string command_;  // of the program that runs: that of its first start
  Company company_;
  std::unique_ptr<client::Session> session_;
  std::optional<client::ObjectSession> objects_;
  std::unique_ptr<CutChannel> channel_;  // of the program's present life; null without MPI
  std::unique_ptr<Moments> moments_;
  std::unique_ptr<BootProcess> boot_;  // null: it had ended when it was saved
  std::optional<FullEvery> full_every_;
  std::optional<SnapshotChoice> choice_;
  SharedState shared_{options_.mpi};
  CutRecord record_;  // of the last cut
  Fd signals_;
  bool fixed_ = false;            // the image of the present save, while the program runs on
  bool asked_ = false;            // by SIGUSR1, or a cut is to be tried again
  bool has_child_ = false;        // at the last try, on any rank, and was told
  bool stop_asked_ = false;       // by SIGTERM
  bool stop_tried_ = false;       // on all ranks
  bool stopped_ = false;          // saved and ended, as asked: all ranks
  bool whole_one_tried_ = false;  // in the place of a last version that was not taken
  bool ended_ = false;            // the program, in order
  int refused_code_ = 0;          // of a program that could not be started
  std::string cannot_;            // why the program could not be saved at the last try
  std::string no_snapshot_;       // why there was none, as it was told
  std::string not_in_image_;      // the file of which that was told
  int contents_ = 0;              // 1: a version was saved, 2: with contents of a file
};

}  // namespace backstay::image
