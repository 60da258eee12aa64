#include "capture/image/boot/interrupted.h"

#include "capture/image/boot/doors.h"
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

// --- the number, where the kernel does not tell it

// The two entries of glibc 2.41 (call_stubs.h). The one for a single thread has loaded the number
// from its stack. The caller of the other one has loaded it from its own, shortly before: `mov
// place(%rsp), %rsi`.
long number_on_stack(const uint8_t* instruction, const uint64_t* stack) {
  constexpr uint8_t loads[] = {0x48, 0x8b, 0x44, 0x24, 0x10};
  constexpr uint8_t keeps[] = {0x4c, 0x89, 0x5c, 0x24, 0x08};
  constexpr uint8_t passes[] = {0x48, 0x8b, 0x74, 0x24};
  if (memcmp(instruction - sizeof loads, loads, sizeof loads) == 0) {
    return static_cast<long>(stack[2]);
  }
  if (memcmp(instruction - sizeof keeps, keeps, sizeof keeps) != 0) return -1;
  const auto* caller = reinterpret_cast<const uint8_t*>(stack[0]);
  for (int back = 10; back < 30; ++back) {
    const uint8_t* at = caller - back;
    if (memcmp(at, passes, sizeof passes) == 0) return static_cast<long>(stack[1 + at[4] / 8]);
  }
  return -1;
}

// `mov $number, %eax` stands shortly before the call otherwise.
long number_before(const uint8_t* instruction, const uint64_t* stack) {
  const long on_stack = number_on_stack(instruction, stack);
  if (is_repeated(on_stack)) return on_stack;
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

// The rest of a timeout. The kernel does not tell when the call began. So the call waits once more
// as long at the first cut, and until that time has come at the next ones. A millisecond more tells
// this call from the next one at its place, which has the program's own timeout.
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

// The files of a poll that was a sleep. No clock and no address is this number, so it tells such a
// poll, in another process too. The kernel reads none of them.
constexpr uint64_t no_files = 0xb57;

bool was_a_sleep(const uint64_t* registers) {
  return registers[reg_rdi] == no_files && registers[reg_rsi] == 0;
}

// The control thread asks.
bool is_in_libc(uint64_t instruction) {
  static uint64_t start = 0, end = 0;  // found before
  const auto has = [&] { return start <= instruction && instruction < end; };
  if (has()) return true;
  each_mapping([&](const Mapping& one) {
    if (!doors::is_libc(one) || instruction < one.start || instruction >= one.end) return;
    start = one.start;
    end = one.end;
  });
  return has();
}

// It must be one, and no endless one.
void shorten(uint64_t tid, uint64_t* registers, int at) {
  const auto timeout = static_cast<int32_t>(registers[at]);
  if (timeout <= 0 || timeout == INT32_MAX || !is_in_libc(registers[reg_rip])) return;
  registers[at] = left_of(tid, registers, static_cast<uint64_t>(timeout));
}

// A sleep whose caller does not ask for what is left becomes a poll of nothing, which takes its
// time by value.
void sleep_by_poll(uint64_t tid, uint64_t* registers, uint64_t time_at) {
  constexpr uint64_t seconds_max = 2'000'000;
  if (!is_in_libc(registers[reg_rip])) return;
  const auto* time = reinterpret_cast<const uint64_t*>(time_at);
  if (time[0] > seconds_max) return;
  registers[reg_rax] = __NR_poll;
  registers[reg_rdi] = no_files;
  registers[reg_rsi] = 0;
  registers[reg_rdx] = left_of(tid, registers, time[0] * 1000 + (time[1] + ms - 1) / ms);
}

// The caller gets other registers back than it gave. glibc, of all callers, does not look at them
// again.
void wait_for_the_rest(uint64_t tid, uint64_t* registers, long number) {
  if (number == __NR_nanosleep) {
    sleep_by_poll(tid, registers, registers[reg_rdi]);
  } else if (number == __NR_clock_nanosleep) {
    sleep_by_poll(tid, registers, registers[reg_rdx]);
  } else if (number == __NR_poll) {
    shorten(tid, registers, reg_rdx);
  } else if (number == __NR_epoll_wait || number == __NR_epoll_pwait) {
    shorten(tid, registers, reg_r10);
  }
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
  const auto* stack = reinterpret_cast<const uint64_t*>(registers[reg_rsp]);
  const bool is_poll = was_a_sleep(registers);
  const long number = same ? call.number : is_poll ? __NR_poll : number_before(instruction, stack);
  if (!is_repeated(number)) return;
  registers[reg_rax] = static_cast<uint64_t>(number);
  const bool is_absolute = number == __NR_clock_nanosleep &&
                           (registers[reg_rsi] != 0 || !is_of_time(registers[reg_rdi]));
  // The kernel has written the rest of a sleep for the caller: go on with that.
  if (number == __NR_nanosleep && registers[reg_rsi] != 0) {
    registers[reg_rdi] = registers[reg_rsi];
  } else if (number == __NR_clock_nanosleep && !is_absolute && registers[reg_r10] != 0) {
    registers[reg_rdx] = registers[reg_r10];
  } else if (!is_absolute && (same || is_poll)) {
    wait_for_the_rest(tid, registers, number);
  }
  registers[reg_rip] -= 2;
}

}  // namespace backstay::image
