#include "capture/image/boot/interrupted.h"

#include "capture/image/boot/files.h"
#include "capture/image/boot/stop.h"

namespace backstay::image {

namespace {

constexpr long repeated[] = {__NR_poll,
                             __NR_ppoll,
                             __NR_select,
                             __NR_pselect6,
                             __NR_epoll_wait,
                             __NR_epoll_pwait,
                             __NR_nanosleep,
                             __NR_clock_nanosleep,
                             __NR_futex,
                             __NR_pause,
                             __NR_rt_sigsuspend,
                             __NR_rt_sigtimedwait,
                             __NR_semop,
                             __NR_semtimedop,
                             __NR_msgrcv,
                             __NR_msgsnd,
                             __NR_recvfrom,  // these four: with SO_RCVTIMEO, SO_SNDTIMEO
                             __NR_recvmsg,
                             __NR_sendto,
                             __NR_sendmsg,
                             __NR_io_getevents,
                             __NR_io_pgetevents,
                             441 /* epoll_pwait2 */,
                             449 /* futex_waitv */};
constexpr uint64_t interrupted = static_cast<uint64_t>(-4L);  // -EINTR

bool is_repeated(long number) {
  for (const long one : repeated) {
    if (one == number) return true;
  }
  return false;
}

// `mov $number, %eax` shortly before the call, where the thread was not asleep yet when it was
// asked.
long number_before(const uint8_t* instruction) {
  for (int back = 5; back < 40; ++back) {
    const uint8_t* at = instruction - back;
    if (at[0] != 0xb8) continue;
    uint32_t number = 0;
    memcpy(&number, at + 1, sizeof number);
    if (is_repeated(static_cast<long>(number))) return static_cast<long>(number);
  }
  return -1;
}

// --- timeouts in milliseconds, which the call takes by value

// A call that was entered again, and the timeout that it got then.
struct Again {
  uint64_t tid = 0, stack = 0, instruction = 0;
  uint64_t left_ms = 0;
  uint64_t deadline_ns = 0;
};
constexpr uint64_t agains_max = 1024;  // a thread whose place another one has waits a while longer
Again agains[agains_max];
constexpr uint64_t ms = 1'000'000;

// The rest of a timeout. Nobody knows when the call began. So at the first cut it waits once more
// as long, and at the next ones until that time has come. A millisecond more tells this call from
// the next one at its place, which has the program's own timeout.
uint64_t left_of(uint64_t tid, const uint64_t* registers, uint64_t timeout_ms) {
  Again& again = agains[tid % agains_max];
  const uint64_t now = now_ns(1);
  const bool is_same = again.tid == tid && again.stack == registers[reg_rsp] &&
                       again.instruction == registers[reg_rip] && again.left_ms == timeout_ms &&
                       again.deadline_ns > now;
  const uint64_t deadline = is_same ? again.deadline_ns : now + (timeout_ms + 1) * ms;
  const uint64_t left = is_same ? (deadline - now + ms - 1) / ms : timeout_ms + 1;
  again = {tid, registers[reg_rsp], registers[reg_rip], left, deadline};
  return left;
}

// CLOCK_REALTIME, _MONOTONIC, _BOOTTIME, _TAI; no clock of processors.
bool is_of_time(uint64_t clock) { return clock <= 1 || clock == 7 || clock == 11; }

bool was_repeated_as_poll(uint64_t tid, const uint64_t* registers) {
  const Again& again = agains[tid % agains_max];
  return again.tid == tid && again.stack == registers[reg_rsp] &&
         again.instruction == registers[reg_rip] && again.left_ms == registers[reg_rdx];
}

// Only where it is one, and no endless one.
void shorten(uint64_t tid, uint64_t* registers, int at) {
  const auto timeout = static_cast<int32_t>(registers[at]);
  if (timeout <= 0 || timeout == INT32_MAX) return;
  registers[at] = left_of(tid, registers, static_cast<uint64_t>(timeout));
}

// A sleep whose caller does not ask for what is left becomes a poll of nothing, which takes its
// time by value.
void sleep_by_poll(uint64_t tid, uint64_t* registers, uint64_t time_at) {
  constexpr uint64_t seconds_max = 2'000'000;
  const auto* time = reinterpret_cast<const uint64_t*>(time_at);
  if (time[0] > seconds_max) return;
  registers[reg_rax] = __NR_poll;
  registers[reg_rdi] = registers[reg_rsi] = 0;
  registers[reg_rdx] = left_of(tid, registers, time[0] * 1000 + (time[1] + ms - 1) / ms);
}

}  // namespace

Call call_of(uint64_t tid) {
  Text path;
  path << "/proc/self/task/" << tid << "/syscall";
  Lines lines(path.c_str());
  Call call;
  const char* line = lines.next();
  if (line == nullptr || *line < '0' || *line > '9') return call;
  uint64_t values[9] = {};
  call.number = static_cast<long>(read_decimal(line));
  for (int i = 0; i < 8 && *line == ' '; ++i) {
    line += 3;  // " 0x"
    values[i] = read_hex(line);
  }
  call.stack = values[6];
  call.instruction = values[7];
  return call;
}

void repeat_call(Context& context, uint64_t tid, const Call& call) {
  uint64_t* registers = context.registers;
  const auto* instruction = reinterpret_cast<const uint8_t*>(registers[reg_rip] - 2);
  if (registers[reg_rax] != interrupted) return;
  if (instruction[0] != 0x0f || instruction[1] != 0x05) return;
  // Behind a stop (SIGSTOP) or a debugger the kernel goes on with a call by restart_syscall.
  const bool same = call.instruction == registers[reg_rip] && call.stack == registers[reg_rsp] &&
                    call.number != __NR_restart_syscall;
  const long number = same                                   ? call.number
                      : was_repeated_as_poll(tid, registers) ? __NR_poll
                                                             : number_before(instruction);
  if (!is_repeated(number)) return;
  registers[reg_rax] = static_cast<uint64_t>(number);
  const bool is_relative =
      number == __NR_clock_nanosleep && registers[reg_rsi] == 0 && is_of_time(registers[reg_rdi]);
  // The kernel has written the rest of a sleep for the caller: go on with that.
  if (number == __NR_nanosleep && registers[reg_rsi] != 0) {
    registers[reg_rdi] = registers[reg_rsi];
  } else if (number == __NR_nanosleep) {
    sleep_by_poll(tid, registers, registers[reg_rdi]);
  } else if (is_relative && registers[reg_r10] != 0) {
    registers[reg_rdx] = registers[reg_r10];
  } else if (is_relative) {
    sleep_by_poll(tid, registers, registers[reg_rdx]);
  } else if (number == __NR_poll) {
    shorten(tid, registers, reg_rdx);
  } else if (number == __NR_epoll_wait || number == __NR_epoll_pwait) {
    shorten(tid, registers, reg_r10);
  }
  registers[reg_rip] -= 2;
}

}  // namespace backstay::image
