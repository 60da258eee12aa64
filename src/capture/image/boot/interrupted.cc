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

void repeat_call(Context& context, const Call& call) {
  uint64_t* registers = context.registers;
  const auto* instruction = reinterpret_cast<const uint8_t*>(registers[reg_rip] - 2);
  if (registers[reg_rax] != interrupted) return;
  if (instruction[0] != 0x0f || instruction[1] != 0x05) return;
  // Behind a stop (SIGSTOP) or a debugger the kernel goes on with a call by restart_syscall.
  const bool same = call.instruction == registers[reg_rip] && call.stack == registers[reg_rsp] &&
                    call.number != __NR_restart_syscall;
  const long number = same ? call.number : number_before(instruction);
  if (!is_repeated(number)) return;
  registers[reg_rip] -= 2;
  registers[reg_rax] = static_cast<uint64_t>(number);
  // What is left to sleep was written for the caller: go on with that.
  if (number == __NR_nanosleep && registers[reg_rsi] != 0) registers[reg_rdi] = registers[reg_rsi];
  if (number == __NR_clock_nanosleep && registers[reg_r10] != 0 && registers[reg_rsi] == 0) {
    registers[reg_rdx] = registers[reg_r10];
  }
}

}  // namespace backstay::image
