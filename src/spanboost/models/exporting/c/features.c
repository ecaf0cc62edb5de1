/* Set the next active feature of a row and its value; return 0 after the last one.
 *
 * The constant comes first. A number is active if it is not 0 and, unless `missing`, not NaN. */
static int next_feature_R(const struct row *row, int64_t mask, int missing, int64_t *at,
                          int64_t *feature, real *x)
{
    for (;;) {
        int64_t k = (*at)++;
        if (k == 0) {
            *feature = 0;
            *x = 1;
            return 1;
        }
        k -= 1;
        if (k < NUMBERS + row->entries) {
            int64_t column = k < NUMBERS ? k : row->columns[k - NUMBERS];
            double given = k < NUMBERS ? row->numbers[k] : row->values[k - NUMBERS];
            *x = (real)given;
            if (!(missing ? *x != 0 : *x < 0 || *x > 0))
                continue;
            *feature = column < 0 ? -1 : (1 + STRIDE * column) & mask; /* -1 is unknown */
            return 1;
        }
        k -= NUMBERS + row->entries;
        if (k >= CODES)
            return 0;
        if (row->codes[k] >= 0) {
            *feature = (2 + 2 * (row->codes[k] * CODES + k)) & mask;
            *x = 1;
            return 1;
        }
    }
}
