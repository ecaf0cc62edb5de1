/* Least squares: R' q = x, then q . c, shrunk by the leverage q . q of the row. */
struct ridge {
    int64_t features;
    const int64_t *feature; /* sorted */
    const int32_t *column; /* column + 1 of a feature, negative if several share the column */
    const double *scale, *mean, *sign; /* of features: scale, mean of the column, random sign */
    int columns, fits, copies;
    const double *R; /* [fit] rows of the upper triangle */
    const double *c; /* [fit][column][lane] */
    const double *weight, *missed; /* mean weight of a fit, share that a copy has missed */
};

static double ridge_number(const struct ridge *r, int64_t f, double x)
{
    double v = x < 1e60 ? x : 1e60, size;
    v = v > -1e60 ? v : -1e60;
    size = v < 0 ? -v : v;
    if (x != x || size > 4 * r->scale[f])
        return r->mean[f];
    if (size < 1e-60)
        return 0;
    return r->column[f] > 0 ? v : r->sign[f] * (v / r->scale[f]);
}

/* Set q to the solution, and return its squared length. */
static double ridge_solve(const double *R, int columns, double *q)
{
    double size = 0;
    for (int j = 0; j < columns; j++) {
        double v = q[j] / R[0];
        q[j] = v;
        size += v * v;
        for (int k = j + 1; k < columns; k++)
            q[k] -= R[k - j] * v;
        R += columns - j;
    }
    return size;
}
