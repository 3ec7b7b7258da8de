/* Prints the seconds that one sgemm of 1024 x 1024 x 1024 takes OpenBLAS on one thread: the best of 20.
   The unit of docs/measurements.md. cc -O2 -o sgemm docs/measure/sgemm.c -lopenblas */
#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void openblas_set_num_threads(int);

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + 1e-9 * t.tv_nsec;
}

int main(void) {
  enum { N = 1024 };
  float *m[3];
  double best = 0;
  openblas_set_num_threads(1);
  for (int k = 0; k < 3; k++) {
    m[k] = malloc(sizeof(float) * N * N);
    for (int i = 0; i < N * N; i++) m[k][i] = rand() / (float)RAND_MAX - 0.5f;
  }
  for (int run = 0; run < 20; run++) {
    double start = seconds();
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, N, N, N, 1, m[0], N, m[1], N, 0, m[2], N);
    double took = seconds() - start;
    if (run == 0 || took < best) best = took;
  }
  printf("%.6f\n", best);
  return 0;
}
