/* The program that bench/cluster and bench/storage_strategies run over hosts: a computing loop with
 * its own halo exchange, and its ways of saving. One line of JSON from rank 0; program.c explains
 * the options. */
#pragma once
#include <mpi.h>
#include <stdint.h>

typedef struct {
  long mib, rounds, steps, pair, level, work_us, idle_us, halo_kib;
  const char *way, *target;
} Options;

extern Options options;
extern int rank, ranks;

double now_s(void);
double largest(double value);          /* of all ranks */
long smallest(long value);             /* of all ranks */
double mean(double value);             /* of all ranks */
void die(const char* what);            /* errno's text */
void must(int code, const char* what); /* Backstay's */

/* step.c: state and loop of the program. */
extern char* memory; /* options.mib of it, what a checkpoint saves */
extern int64_t step;
void make_state(void);
void calibrate(void);
void step_once(void);      /* computes, exchanges halos */
void fill(uint64_t round); /* all of the memory, another content for each round and rank */
int is_filled(uint64_t round);

/* ways.c: the ways of saving that wait: server (HOST:PORT), shared (folder). */
double save_waiting(void); /* seconds of the slowest rank */
