/* Regions of random names, types and sizes out of one seed, whose bytes are a function of seed,
 * rank, region and step. */
#ifndef BACKSTAY_TESTS_RANDOM_REGIONS_H
#define BACKSTAY_TESTS_RANDOM_REGIONS_H

/* Protects them; the same seed gives the same regions in every run. Returns a code of backstay.h.
 */
int random_regions_protect(unsigned long seed, int rank);
void random_regions_compute(long step);
/* 0: some byte is not what the step must hold; its region's name is then random_regions_wrong(). */
int random_regions_exact(long step);
const char* random_regions_wrong(void);

#endif
