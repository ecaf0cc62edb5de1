/* Weighted sums of normalised features; lane i of feature f has weight W[f][i]. */
struct sums_R {
    int64_t features;
    const int64_t *feature; /* sorted */
    const real *scale;
    int lanes;
    const real *W;
};

static void sum_terms_R(const struct sums_R *s, const struct row *row, int64_t mask, real *out)
{
    int64_t at = 0, feature;
    real x;
    for (int i = 0; i < s->lanes; i++)
        out[i] = 0;
    while (next_feature_R(row, mask, 0, &at, &feature, &x)) {
        int64_t f = find_key(s->feature, s->features, feature);
        real z = f < 0 ? 0 : normalise_R(x, s->scale[f]);
        for (int i = 0; z != 0 && i < s->lanes; i++)
            out[i] += s->W[f * s->lanes + i] * z;
    }
}
