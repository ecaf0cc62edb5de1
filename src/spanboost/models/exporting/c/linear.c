static void predict_linear_R(const struct sums_R *s, const real *keep, int copies,
                             const struct row *row, int64_t mask, real *h)
{
    sum_terms_R(s, row, mask, h);
    for (int i = 0; i < s->lanes; i++)
        h[i] *= keep[i % copies];
}
