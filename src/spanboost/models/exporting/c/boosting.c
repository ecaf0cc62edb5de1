static real clip_R(real x, real low, real high)
{
    x = x < high ? x : high;
    return x > low ? x : low;
}

/* Return the sum of squares over the outputs, in four lanes: the order in which Python adds. */
static real square_R(const real *h, int copies)
{
    real lane[4] = {0, 0, 0, 0};
    int whole = OUTPUTS / 4 * 4;
    for (int k = 0; k < OUTPUTS; k++) {
        real x = h[k * copies];
        lane[k < whole ? k % 4 : 0] += x * x;
    }
    return (lane[0] + lane[1]) + (lane[2] + lane[3]);
}

/* Project the predictions h[output][copy] of every copy to norm D. */
static void project_R(real *h, int copies, int first, int last, real radius)
{
    for (int i = first; i < last; i++) {
        if (OUTPUTS == 1) {
            h[i] = clip_R(h[i], -radius, radius);
            continue;
        }
        real square = square_R(h + i, copies);
        if (square > radius * radius) {
            real shrink = radius / root_R(square);
            for (int k = 0; k < OUTPUTS; k++)
                h[k * copies + i] *= shrink;
        }
    }
}

/* Algorithm 1 or 2 over the copies first to last - 1; some partial sums are forecasts. */
struct lane_R {
    int first, last;
    const real *keep, *eta;
    real scale;
    int projects;
    real radius;
};

static void add_copies_R(const struct lane_R *lane, const real *h, int copies,
                         const int *wanted, int forecasts, real *sums)
{
    real y[OUTPUTS];
    for (int k = 0; k < OUTPUTS; k++)
        y[k] = 0;
    for (int i = lane->first; i < lane->last; i++) {
        real keep = lane->keep[i - lane->first], eta = lane->eta[i - lane->first];
        for (int k = 0; k < OUTPUTS; k++) {
            real kept = keep * y[k];
            y[k] = kept + eta * (lane->scale * h[k * copies + i]);
        }
        if (lane->projects)
            project_R(y, 1, 0, 1, lane->radius);
        for (int k = 0; k < OUTPUTS && wanted[i] >= 0; k++)
            sums[k * forecasts + wanted[i]] = y[k];
    }
}
