// A program that is saved while all ranks are outside of MPI with nothing under way, and goes on in
// other processes. Only predefined handles. What it has computed goes to the file out.RANK.
// Usage: again ROUNDS STOP... : before the rounds STOP it makes the file at.RANK.STOP, and waits
// for the file go.STOP; both in the folder STOPS of the environment. ONLY: the one rank that stops.
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { workers = 3, cells = 4096, own_count = 24 };
static int rank, ranks;
static double cell[cells];

// --- a pool of threads that computes while the program waits
static pthread_barrier_t begin_work, end_work;
static int working = 1;
static void* work(void* number) {
  const long mine = (long)number;
  for (;;) {
    pthread_barrier_wait(&begin_work);
    if (!working) return NULL;
    for (int i = (int)mine; i < cells; i += workers) cell[i] = cell[i] * 0.999 + (double)(i % 7);
    pthread_barrier_wait(&end_work);
  }
}
static void compute(void) {
  pthread_barrier_wait(&begin_work);
  pthread_barrier_wait(&end_work);
}

// --- descriptors of the program's own at numbers that MPI would take: the first free ones
static int own[own_count];
static void open_own(void) {
  char name[64];
  snprintf(name, sizeof name, "data.%d", rank);
  const int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0600);
  for (int i = 0; i < 4096; ++i) {
    char c = (char)('a' + i % 26);
    if (write(fd, &c, 1) != 1) abort();
  }
  for (int i = 0; i < own_count; ++i) {
    own[i] = open(name, O_RDONLY);
    lseek(own[i], 3 * i, SEEK_SET);
  }
  close(fd);
  for (int i = 0; i < own_count; i += 2) close(own[i]);  // MPI's, in this life
}
// Each goes on from where it was.
static uint64_t read_own(void) {
  uint64_t sum = 0;
  for (int i = 1; i < own_count; i += 2) {
    char c = 0;
    if (read(own[i], &c, 1) != 1) return (uint64_t)i;
    sum = sum * 31 + (uint64_t)c;
  }
  return sum;
}

static int exists(const char* name) {
  struct stat status;
  return stat(name, &status) == 0;
}

// Outside of MPI.
static void stop_before(int round, int argc, char** argv) {
  const char *folder = getenv("STOPS"), *only = getenv("ONLY");
  if (only && atoi(only) != rank) return;
  char name[256];
  for (int i = 2; i < argc; ++i) {
    if (atoi(argv[i]) != round) continue;
    snprintf(name, sizeof name, "%s/at.%d.%d", folder, rank, round);
    fclose(fopen(name, "w"));
    snprintf(name, sizeof name, "%s/go.%d", folder, round);
    while (!exists(name)) usleep(1000);
  }
}

static uint64_t bits_of(double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

// --- MPI_Wtime goes on as the wall clock does, which is asked before it and behind it
static double asked[2][3];
static double wall_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}
static void ask_time(double* three) {
  three[0] = wall_clock();
  three[1] = MPI_Wtime();
  three[2] = wall_clock();
}
static int time_goes_on(void) {
  const double before = asked[1][1];
  ask_time(asked[1]);
  const double passed = asked[1][1] - asked[0][1];
  return asked[1][1] >= before && passed > asked[1][0] - asked[0][2] - 0.02 &&
         passed < asked[1][2] - asked[0][0] + 1;
}

// Between all ranks, and nothing is left under way.
static void exchange(int round, FILE* out) {
  const int right = (rank + 1) % ranks, left = (rank + ranks - 1) % ranks;
  double sum = 0, most = 0, mine = 0, got = 0;
  for (int i = 0; i < cells; ++i) mine += cell[i];
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Reduce(&mine, &most, 1, MPI_DOUBLE, MPI_MAX, round % ranks, MPI_COMM_WORLD);
  MPI_Bcast(&most, 1, MPI_DOUBLE, round % ranks, MPI_COMM_WORLD);
  MPI_Request request[2];
  MPI_Status status[2];
  MPI_Irecv(&got, 1, MPI_DOUBLE, left, MPI_ANY_TAG, MPI_COMM_WORLD, &request[0]);
  MPI_Isend(&mine, 1, MPI_DOUBLE, right, round, MPI_COMM_WORLD, &request[1]);
  MPI_Waitall(2, request, status);
  if (status[0].MPI_TAG != round || status[0].MPI_SOURCE != left) abort();
  cell[round % cells] += sum / ranks + got * 0.25;
  static char large[1 << 20], theirs[1 << 20];
  memset(large, rank + round, sizeof large);
  MPI_Sendrecv(large, sizeof large, MPI_CHAR, right, 9, theirs, sizeof theirs, MPI_CHAR, left, 9,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (theirs[12345] != (char)(left + round)) abort();
  MPI_Barrier(MPI_COMM_WORLD);
  fprintf(out, "%d of %d round %d sum %016llx most %016llx got %016llx own %llx time %d\n", rank,
          ranks, round, (unsigned long long)bits_of(sum), (unsigned long long)bits_of(most),
          (unsigned long long)bits_of(got), (unsigned long long)(getenv("OWN") ? read_own() : 0),
          time_goes_on());
  fflush(out);
}

int main(int argc, char** argv) {
  const int rounds = atoi(argv[1]);
  const char* given = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");
  int level = -1;
  rank = given ? atoi(given) : 0;
  if (getenv("OWN")) open_own();
  // The number 0 of STOP is before MPI_Init.
  stop_before(0, argc, argv);
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  char name[64];
  snprintf(name, sizeof name, "out.%d", rank);
  FILE* out = fopen(name, "w");
  ask_time(asked[0]);
  pthread_t thread[workers];
  pthread_barrier_init(&begin_work, NULL, workers + 1);
  pthread_barrier_init(&end_work, NULL, workers + 1);
  for (long i = 0; i < workers; ++i) pthread_create(&thread[i], NULL, work, (void*)i);
  for (int i = 0; i < cells; ++i) cell[i] = rank * 131 + i;
  for (int round = 1; round <= rounds; ++round) {
    stop_before(round, argc, argv);
    compute();
    exchange(round, out);
  }
  working = 0;
  pthread_barrier_wait(&begin_work);
  for (int i = 0; i < workers; ++i) pthread_join(thread[i], NULL);
  int is_initialized = 0, reached = -1;
  MPI_Initialized(&is_initialized);
  MPI_Query_thread(&reached);
  fprintf(out, "level %d %d initialized %d\n", level, reached == level, is_initialized);
  stop_before(rounds + 1, argc, argv);
  MPI_Finalize();
  stop_before(rounds + 2, argc, argv);
  int flag[2] = {-1, -1};
  MPI_Initialized(&flag[0]);
  MPI_Finalized(&flag[1]);
  fprintf(out, "initialized %d finalized %d\n", flag[0], flag[1]);
  fclose(out);
  return 0;
}
