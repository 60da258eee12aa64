// What the random operations share: random numbers, what is open, what is printed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

extern std::vector<int> descriptors;
extern std::vector<FILE*> streams;
extern long captured;  // descriptors of memory files that an operation got

void seed_random(std::uint64_t seed);
unsigned below(unsigned end);
// One line, written at once: nothing of it may wait in a buffer that a fork would copy.
[[gnu::format(printf, 1, 2)]] void say(const char* format, ...);
// The value, and errno if it is negative.
void result(const char* what, long value);
std::uint64_t sum_of(const char* bytes, size_t count);

std::string some_name();
int some_descriptor();  // mostly one that is open
std::string some_bytes();
off_t some_offset();
// An operation got this descriptor, or failed to (-1).
void opened(int fd);

void do_fopen();
void do_stream();
void do_fclose();
void do_fork();
void do_replace();
void do_system();
